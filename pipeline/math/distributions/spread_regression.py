"""A prior of a regression: the residuals' scale is spread over eight decades, coefficients are about 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions import spread
from suffice.pipeline.math.distributions.distribution import Entries, Prior, freeze, vector_of
from suffice.pipeline.math.distributions.spread import CONCENTRATION
from suffice.pipeline.math.distributions.spread_normal_inverse_wishart import require_half_ranges

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class SpreadNormalInverseGammaRegression(Prior):
    r"""Joint prior of a regression of which little is known but the bounds of its columns.

    With x, y about the middle of their bounds, :math:`\mu`, in half ranges h, the intercept being the
    coefficient of a column of ones,

    .. math::
        \log v \sim f, \qquad s \mid v \sim \mathrm{InverseGamma}(3, 2 v), \qquad
        \beta_k \mid s, v \sim \mathrm{Normal}(0, \sqrt{s / v})

    with f the density of ``spread.py``, of scales between :math:`10^{-8}` and 1. The residuals'
    variance s is v on average, given its scale v, which is latent. With both integrated out a coefficient is
    Student's t of 6 degrees of freedom and scale :math:`\sqrt{2 / 3}`; one of 1 takes the outcome through
    half its range while the predictor goes through half of its own. No coefficient has a spread scale: where
    noise hides the difference of two predictors, such a prior decides that one of them does nothing.

    Parameters
    ----------
    loc : list of float
        mu: the middle of the columns' bounds, in their units, the outcome's last; 0 without an intercept.
    half_range : list of float, > 0
        h: half the width of the columns' bounds, in their units, the outcome's last.
    """

    loc: Entries
    half_range: Entries

    def __post_init__(self) -> None:
        freeze(self)
        require_half_ranges(self, self.half_range)

    def of(self, columns: int, *, linear: bool) -> tuple[Floats, Floats]:
        """Return loc and half ranges, (columns,) each.

        Raises
        ------
        PriorError
            Where the prior is not one of so many columns, or tells of an intercept where there is none.
        """
        loc, half_range = vector_of(self, "loc", columns), vector_of(self, "half_range", columns)
        if not linear and loc.any():
            message = f"{type(self).__name__}: loc must be 0 where there is no intercept"
            raise PriorError(message)
        return loc, half_range

    def map_to_half_ranges(self, columns: int, *, linear: bool) -> tuple[Floats, Floats]:
        """Return B (k, k) and b (k,): coefficients in the columns' units are B beta + b."""
        loc, half_range = self.of(columns, linear=linear)
        slopes = half_range[-1] / half_range[:-1]
        if not linear:
            return np.diag(slopes), np.zeros(len(slopes))
        matrix = np.diag([*slopes, half_range[-1]])
        matrix[-1, :-1] = -slopes * loc[:-1]
        return matrix, np.array([*np.zeros(len(slopes)), loc[-1]])

    def sample(
        self, size: int, rng: np.random.Generator, columns: int, *, linear: bool
    ) -> tuple[Floats, Floats]:
        """Return independent draws of coefficients (size, k) and variances (size,), in the columns' units."""
        matrix, shift = self.map_to_half_ranges(columns, linear=linear)
        v = spread.sample((size,), rng)
        variance = 2.0 * v / rng.standard_gamma(CONCENTRATION, size)
        beta = np.sqrt(variance / v)[:, None] * rng.standard_normal((size, len(shift)))
        unit = self.of(columns, linear=linear)[1][-1] ** 2
        return beta @ matrix.T + shift, variance * unit
