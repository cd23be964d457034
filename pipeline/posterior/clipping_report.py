r"""Whether clipping matters to a posterior, told from public numbers and released statistics only.

A statistic sums clipped records, its model knows nothing of bounds. Taken at its posterior mean, the model
says itself which share of records lies beyond the bounds, and where posteriors of ever more such records,
clipped, would end up: away from that mean by a bias that no number of records removes. An unbiased normal
posterior's 95 % interval, moved by b of its standard deviations, covers
:math:`\Phi(1.96 - b) - \Phi(-1.96 - b)`: 94.3 % at b = 1/4, 83 % at 1, 48 % at 2.

Both are understated where much is clipped, since the posterior mean comes from the clipped records; but
where the posterior models clipping (``clipped_sums``) they are not, and nothing is moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.statistics.beyond_bounds import Outside
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


THRESHOLD = 0.25
"""Posterior standard deviations of bias above which clipping matters: a 95 % interval then covers 94.3 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipping:
    """What clipping does to the posterior of every cell, as its own model tells.

    Attributes
    ----------
    share : ndarray of shape (n_cells,), float64
        Of records beyond the bounds under the model at its posterior mean, 0 to 1; NaN where there is none.
    bias : ndarray of shape (n_cells,), float64
        By how many posterior standard deviations clipping moves a parameter, the largest over parameters;
        0 where the standard deviation is infinite, NaN where the mean is, infinite where nothing is within.
    is_modelled : ndarray of shape (n_cells,), bool
        Where the posterior takes clipping into account: the bias is what it would be otherwise.
    is_known : ndarray of shape (n_cells,), bool
        Where it is known whether clipping matters: it is modelled, or the bias is a number.
    is_warned : ndarray of shape (n_cells,), bool
        Where the bias exceeds ``THRESHOLD`` and clipping is not modelled.
    """

    share: Floats
    bias: Floats
    is_modelled: NDArray[np.bool_]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Where clipping could be judged: where it could not, no warning says nothing."""
        return np.asarray(self.is_modelled | ~np.isnan(self.bias))

    @property
    def is_warned(self) -> NDArray[np.bool_]:
        """Where clipping matters."""
        return np.asarray((self.bias > THRESHOLD) & ~self.is_modelled)


def clipping_of(
    outside: Callable[..., Outside],
    means: Sequence[Floats],
    sds: Sequence[Floats],
    constants: Parameters,
    is_modelled: NDArray[np.bool_] | None = None,
) -> Clipping:
    """Judge clipping by posterior means and standard deviations, (n_cells,) each, parameter by parameter."""
    known = np.all(np.isfinite(means), axis=0)
    modelled = np.zeros(known.shape, dtype=bool) if is_modelled is None else is_modelled
    share, bias = (np.full(known.shape, np.nan) for _ in range(2))
    # A prior far beyond the bounds clips everything: no parameter fits what is left, the shift is infinite.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = outside(*(mean[known] for mean in means), constants)
        biases = [np.abs(shift) / sd[known] for shift, sd in zip(found.shifts, sds, strict=True)]
    share[known], bias[known] = found.share, np.max(biases, axis=0)
    return Clipping(share=share, bias=bias, is_modelled=modelled)
