r"""What a model says of records beyond the bounds, where a posterior models that they were clipped.

Taken at its posterior mean, the model says itself which share of records lies beyond the bounds, and where
posteriors of ever more such records, clipped, would end up: away from that mean by a bias that no number of
records removes, and that a posterior which models clipping is free of. Where records are not as the model
says, the share may be anything: of a skewed column that ends at a natural bound nothing was clipped. In cells
that describe records as bounds leave them, as they were to do, neither number says anything: both are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.clipped_record import Outside
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


THRESHOLD = 0.25
"""Posterior standard deviations of bias above which clipping matters: a 95 % interval then covers 94.3 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipping:
    """What clipping does to the posterior of every cell, as its own model tells.

    Attributes
    ----------
    share : ndarray of shape (n_cells,), float64
        Of records beyond the bounds under the model at its posterior mean, 0 to 1; NaN where there is no
        mean, or clipping was not to be modelled.
    bias : ndarray of shape (n_cells,), float64
        By how many posterior standard deviations clipping moves a parameter, the largest over parameters;
        0 where the standard deviation is infinite, NaN where the share is, infinite where nothing is within.
    is_modelled : ndarray of shape (n_cells,), bool
        Where the posterior takes clipping into account: the bias is what it would be otherwise.
    is_warned : ndarray of shape (n_cells,), bool
        Where clipping is modelled: what lies beyond the bounds is the model's extrapolation. And where it was
        to be modelled, could not be, and the bias exceeds ``THRESHOLD``.
    """

    share: Floats
    bias: Floats
    is_modelled: NDArray[np.bool_]

    @property
    def is_warned(self) -> NDArray[np.bool_]:
        """Where numbers rest on what the model says of records that the release knows nothing of."""
        return np.asarray(self.is_modelled | (self.bias > THRESHOLD))


def clipping_of(
    outside: Callable[..., Outside],
    means: Sequence[Floats],
    sds: Sequence[Floats],
    constants: Constants,
    is_modelled: NDArray[np.bool_] | None = None,
    *,
    everywhere: bool = False,
) -> Clipping:
    """Judge clipping by posterior means and standard deviations, (n_cells,) each, parameter by parameter.

    In cells that model clipping, or everywhere: where they were all to be of records before clipping.
    """
    is_number = np.all(np.isfinite(means), axis=0)
    modelled = np.zeros(is_number.shape, dtype=bool) if is_modelled is None else is_modelled
    known = is_number & (modelled | everywhere)
    share, bias = (np.full(known.shape, np.nan) for _ in range(2))
    # A prior far beyond the bounds clips everything: no parameter fits what is left, the shift is infinite.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = outside(*(mean[known] for mean in means), constants)
        biases = [np.abs(shift) / sd[known] for shift, sd in zip(shares.shifts, sds, strict=True)]
    share[known], bias[known] = shares.share, np.max(biases, axis=0)
    return Clipping(share=share, bias=bias, is_modelled=modelled)
