"""Posteriors given moments taken for exact, under priors whose scales are latent: for the plug-in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.multivariate.evidence import State, no_gradient
from suffice.pipeline.math.engines.multivariate.hmc import sample_until_settled
from suffice.pipeline.math.engines.multivariate.log_posterior import evidence_of
from suffice.pipeline.math.engines.multivariate.priors_of_columns import (
    lengths,
    mixture_of_states,
    moments_of,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.composite import ConjugateMixture
    from suffice.pipeline.math.distributions.normal_inverse_wishart import Moments
    from suffice.pipeline.math.engines.multivariate.evidence import Evidence
    from suffice.pipeline.math.engines.multivariate.priors_of_columns import Update
    from suffice.typing import Cells, Floats

_LEAST_ROWS = 1e-9
"""In the place of no rows, whose averages are not defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalesTarget:
    """The log density of latent scales given the moments of every cell.

    Attributes
    ----------
    evidence : Evidence
    state : State
        One a cell.
    """

    evidence: Evidence
    state: State

    def take(self, cells: Cells) -> Self:
        """Return the density of some cells."""
        return replace(self, state=_indexed(self.state, cells))

    def at(self, x: Floats) -> State:
        """Return the moments of every chain of b; those of a cell follow one another."""
        n_cells = len(self.state.n)
        return _indexed(self.state, np.repeat(np.arange(n_cells), x.shape[1] // n_cells))

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density (b,), up to a constant, and its gradient (n_latent, b)."""
        state = self.at(x)
        return evidence_of((self.evidence,), state, x, no_gradient(state))


def posterior_of_moments(sums: Moments, evidence: Evidence, update: Update, prior: str) -> ConjugateMixture:
    """Return the posterior under a prior with latent scales, which chains draw; the moments are given.

    Parameters
    ----------
    sums : Moments
        In half ranges, possible.
    evidence : Evidence
    update : callable
        Moments, coordinates of scales and a generator -> the parameters given both.
    prior : str
        Its text. The chains' generator rests on it and the moments: who asks again gets the same.
    """
    n = np.maximum(sums.n, _LEAST_ROWS)
    mean = (sums.total / n[:, None]).T
    second = np.moveaxis(sums.products / n[:, None, None], 0, 2)
    spread = np.moveaxis(sums.scatter / n[:, None, None], 0, 2)
    target = ScalesTarget(evidence=evidence, state=State(n=n, mean=mean, spread=spread, second=second))
    content = repr((prior, sums.n.tolist(), sums.total.tolist(), sums.products.tolist())).encode()
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(content).digest()[:16], "big"))
    n_chains, iterations = lengths(len(n))
    diagonal = np.arange(len(mean))
    visible = spread.copy()
    visible[diagonal, diagonal] += 1e-9
    base, guess = evidence.start(replace(target.state, spread=visible, second=second + visible - spread))
    start = base[:, :, None] + guess[:, :, None] * rng.standard_normal((*base.shape, n_chains))
    kept = sample_until_settled(target, start, guess, iterations, rng)
    flat = kept.transpose(1, 0, 3, 2).reshape(kept.shape[1], -1)
    # States stand in the order of draws, then chains, then cells.
    state = _indexed(target.state, np.tile(np.arange(len(n)), iterations * n_chains))
    moments = moments_of(state, sums.centre, sums.half_range)
    return mixture_of_states(update(moments, flat, rng), kept, rng)


def _indexed(state: State, cells: Cells) -> State:
    return State(
        n=state.n[cells],
        mean=state.mean[:, cells],
        spread=state.spread[:, :, cells],
        second=state.second[:, :, cells],
    )
