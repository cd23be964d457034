"""Draws of Dirichlet vectors, exact down to concentrations far below 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats


def sample_dirichlet(concentration: Floats, rng: np.random.Generator) -> Floats:
    """One draw for every vector along the last axis, without underflow at small concentrations."""
    if concentration.shape[-1] == 2:
        first = rng.beta(concentration[..., 0], concentration[..., 1])
        return np.stack([first, 1.0 - first], axis=-1)
    # In the order in which they lie in memory: whole columns are drawn and added.
    axes = np.argsort([-abs(stride) for stride in concentration.strides], kind="stable")
    laid_out = concentration.transpose(axes)
    small = laid_out < 1.0
    if not np.any(small):
        gammas = rng.standard_gamma(laid_out).transpose(np.argsort(axes))
    else:
        gammas = rng.standard_gamma(np.where(small, laid_out + 1.0, laid_out))
        # Gamma(a) is Gamma(a + 1) times U^(1 / a): in logs, or small concentrations are all zero.
        logs = np.log(gammas)
        logs[small] += np.log1p(-rng.random(int(np.sum(small)))) / laid_out[small]
        logs = logs.transpose(np.argsort(axes))
        gammas = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    gammas /= np.sum(gammas, axis=-1, keepdims=True)
    return gammas
