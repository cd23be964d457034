r"""What the parameters of several columns can be where every record lies within public bounds.

In half ranges about the middle of the bounds every column x lies in -1..1. So do means m, and

.. math::
    \operatorname{Var}(x_i) \le (1 - m_i) (1 + m_i), \qquad
    -\min\bigl((1 - m_i)(1 - m_j),\ (1 + m_i)(1 + m_j)\bigr) \le \operatorname{Cov}(x_i, x_j)
        \le \min\bigl((1 - m_i)(1 + m_j),\ (1 + m_i)(1 - m_j)\bigr),

as the means of :math:`(1 \mp x_i)(1 \mp x_j)`, which are products of what is never below 0, tell.

Of the least squares of y on x, with slopes b, residual variance v and the intercept :math:`b_0`, the mean of
y is :math:`\mu = b_0 + b^T m` and its variance v at least. As m is in -1..1, some :math:`\mu` as near to 0 as
:math:`\max(0, |b_0| - \sum_k |b_k|)` can be that mean, and

.. math:: v \le (1 - \mu)(1 + \mu) \le 1 - \max\bigl(0,\ |b_0| - \textstyle\sum_k |b_k|\bigr)^2.

Without an intercept columns are about 0 in units of the bound farther from it, and v is at most the mean of
y squared, 1. Slopes alone have no limits: predictors may vary as little as they like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from suffice.pipeline.math.distributions.design_sums import Scaling
from suffice.pipeline.terms.statistics.moment_columns import is_linear, lattice_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats, Mask

    Drawn = Mapping[str, Floats]
    """Parameters by name, (..., n_entries) or (...,); what stands before goes along with each other."""

FAR = 8.0
"""Standard deviations to either side of a mean within which the ends of a region matter."""


class Region(Protocol):
    """A region that parameters lie in."""

    def named(self, columns: Floats) -> Drawn:
        """Return parameters that stand in rows, (n_numbers, n), by name."""

    def inside(self, drawn: Drawn) -> Mask:
        """Return which parameters lie in the region, (...)."""

    def nearest(self, drawn: Drawn) -> dict[str, Floats]:
        """Move parameters outside of it to its edge."""

    def near(self, distribution: Distribution) -> Mask:
        """Return of which cells a part may lie outside, (n_cells,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionOfColumns:
    """Means, variances and covariances of columns within bounds.

    Attributes
    ----------
    centre, half_range : ndarray of shape (d,), float64
        Of the bounds.
    """

    centre: Floats
    half_range: Floats

    @classmethod
    def of(cls, parameters: Parameters) -> Self:
        """Return that of a statistic's columns."""
        lattices = [lattice_of(column, linear=True) for column in parameters.columns]
        centre, half_range = np.array(lattices, dtype=np.float64).T
        return cls(centre=centre, half_range=half_range)

    def named(self, columns: Floats) -> Drawn:
        """Return parameters by name: means, variances, and covariances of pairs."""
        size = len(self.centre)
        mean, variance, covariance = np.split(columns.T, [size, 2 * size], axis=-1)
        return {"mean": mean, "variance": variance, "covariance": covariance}

    def inside(self, drawn: Drawn) -> Mask:
        """Return which parameters lie in the region."""
        mean, variance, covariance = self._in_half_ranges(drawn)
        least, most = self._limits(mean)
        within = (np.abs(mean) <= 1.0) & (variance <= (1.0 - mean) * (1.0 + mean))
        pairs = (covariance >= least) & (covariance <= most)
        return np.asarray(np.all(within, axis=-1) & np.all(pairs, axis=-1))

    def nearest(self, drawn: Drawn) -> dict[str, Floats]:
        """Move means to the bounds, then shrink deviations, then all correlations alike."""
        mean, variance, covariance = self._in_half_ranges(drawn)
        mean = np.clip(mean, -1.0, 1.0)
        kept = np.minimum(variance, (1.0 - mean) * (1.0 + mean))
        shrunk = np.sqrt(np.divide(kept, variance, out=np.ones_like(kept), where=variance > 0.0))
        first, second = np.triu_indices(len(self.centre), 1)
        covariance = covariance * shrunk[..., first] * shrunk[..., second]
        least, most = self._limits(mean)
        limit = np.where(covariance < 0.0, -least, most)
        share = np.divide(limit, np.abs(covariance), out=np.ones_like(limit), where=covariance != 0.0)
        covariance = covariance * np.minimum(1.0, share.min(axis=-1, keepdims=True))
        h = self.half_range
        return {
            "mean": self.centre + h * mean,
            "variance": h**2 * kept,
            "covariance": h[first] * h[second] * covariance,
        }

    def near(self, distribution: Distribution) -> Mask:
        """Return of which cells a part may lie outside."""
        means = self._in_half_ranges({name: distribution.mean(name) for name in distribution.parameters})
        zero = {name: distribution.sd(name) for name in distribution.parameters}
        zero["mean"] = zero["mean"] + self.centre
        sds = self._in_half_ranges(zero)
        with np.errstate(invalid="ignore", over="ignore"):
            ends = [np.abs(mean) + FAR * sd for mean, sd in zip(means, sds, strict=True)]
            room = 1.0 - ends[0]
            first, second = np.triu_indices(len(self.centre), 1)
            far = np.all(room > 0.0, axis=1) & np.all(ends[1] < room * (2.0 - room), axis=1)
            far &= np.all(ends[2] < room[:, first] * room[:, second], axis=1)
        return np.asarray(~far)

    def _in_half_ranges(self, drawn: Drawn) -> tuple[Floats, Floats, Floats]:
        first, second = np.triu_indices(len(self.centre), 1)
        h = self.half_range
        return (
            (drawn["mean"] - self.centre) / h,
            drawn["variance"] / h**2,
            drawn["covariance"] / (h[first] * h[second]),
        )

    def _limits(self, mean: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest covariances beside such means, in half ranges."""
        first, second = np.triu_indices(len(self.centre), 1)
        below, above = 1.0 + mean, 1.0 - mean
        least = np.minimum(above[..., first] * above[..., second], below[..., first] * below[..., second])
        most = np.minimum(above[..., first] * below[..., second], below[..., first] * above[..., second])
        return -least, most


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionOfRegression:
    """Coefficients, an intercept and a residual variance of columns within bounds.

    Attributes
    ----------
    scaling : Scaling
        From half ranges to the columns' units.
    linear : bool
        Whether there is an intercept.
    """

    scaling: Scaling
    linear: bool

    @classmethod
    def of(cls, parameters: Parameters) -> Self:
        """Return that of a statistic's columns."""
        return cls(scaling=Scaling.of(parameters), linear=is_linear(parameters))

    def named(self, columns: Floats) -> Drawn:
        """Return parameters by name: coefficients, the intercept where there is one, and the variance."""
        slopes = len(self.scaling.shift) - int(self.linear)
        intercept = {"intercept": columns[slopes]} if self.linear else {}
        return {"coefficient": columns[:slopes].T, **intercept, "variance": columns[-1]}

    def inside(self, drawn: Drawn) -> Mask:
        """Return which parameters lie in the region."""
        _, apart, variance = self._in_half_ranges(drawn)
        return np.asarray(variance <= 1.0 - np.maximum(apart, 0.0) ** 2) & (apart <= 1.0)

    def nearest(self, drawn: Drawn) -> dict[str, Floats]:
        """Move the variance to its limit, then the intercept."""
        slopes, apart, variance = self._in_half_ranges(drawn)
        kept = np.minimum(variance, 1.0)
        beyond = np.maximum(apart - np.sqrt(1.0 - kept), 0.0)
        moved = {**drawn, "variance": kept * self.scaling.outcome**2}
        if self.linear:
            moved["intercept"] = drawn["intercept"] - self.scaling.outcome * beyond * np.sign(slopes[..., -1])
        return moved

    def near(self, distribution: Distribution) -> Mask:
        """Return of which cells a part may lie outside."""
        variance, sd = (moment("variance") for moment in (distribution.mean, distribution.sd))
        with np.errstate(invalid="ignore", over="ignore"):
            most = (variance + FAR * sd) / self.scaling.outcome**2
            if not self.linear:
                return np.asarray(~(most < 1.0))
            means, sds = (
                np.concatenate([moment("coefficient"), moment("intercept")[:, None]], axis=1)
                for moment in (distribution.mean, distribution.sd)
            )
            _, apart, _ = self._in_half_ranges(
                {"coefficient": means[:, :-1], "intercept": means[:, -1], "variance": variance}
            )
            row = np.abs(np.linalg.inv(self.scaling.matrix))
            # An sd of |b_0| and of every |b_k|, however they go together.
            apart = apart + FAR * (sds @ row.sum(axis=0))
            return np.asarray(~((apart < 1.0) & (most < 1.0 - np.maximum(apart, 0.0) ** 2)))

    def _in_half_ranges(self, drawn: Drawn) -> tuple[Floats, Floats, Floats]:
        """Return coefficients, how far the mean of y is from the middle at least, and the variance."""
        coefficient = drawn["coefficient"]
        if self.linear:
            coefficient = np.concatenate([coefficient, drawn["intercept"][..., None]], axis=-1)
        scaled = self.scaling.coefficients_in_half_ranges(coefficient)
        apart = np.zeros(scaled.shape[:-1])
        if self.linear:
            apart = np.abs(scaled[..., -1]) - np.abs(scaled[..., :-1]).sum(axis=-1)
        return scaled, apart, drawn["variance"] / self.scaling.outcome**2
