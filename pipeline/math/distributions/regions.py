r"""What the parameters of several columns can be where every record lies within public bounds.

Model. In half ranges about the middle of the bounds every column x lies in -1..1. So do means m, and

.. math::
    \operatorname{Var}(x_i) \le (1 - m_i) (1 + m_i), \qquad
    -\min\bigl((1 - m_i)(1 - m_j),\ (1 + m_i)(1 + m_j)\bigr) \le \operatorname{Cov}(x_i, x_j)
        \le \min\bigl((1 - m_i)(1 + m_j),\ (1 + m_i)(1 - m_j)\bigr). \qquad (1)

Proof. The products :math:`(1 \mp x_i)(1 \mp x_j)` are nowhere negative, so that their means are not either:
for instance :math:`E (1 - x_i)(1 - x_j) = (1 - m_i)(1 - m_j) + \operatorname{Cov}(x_i, x_j) \ge 0`.

Of the least squares of y on x, with slopes b, residual variance v and the intercept :math:`b_0`, the mean of
y is :math:`\mu = b_0 + b^T m` and its variance v at least. As m is in -1..1, a :math:`\mu` as near to 0 as
:math:`\max(0, |b_0| - \sum_k |b_k|)` can be that mean, and

.. math:: v \le (1 - \mu)(1 + \mu) \le 1 - \max\bigl(0,\ |b_0| - \textstyle\sum_k |b_k|\bigr)^2. \qquad (2)

Without an intercept columns are about 0 in units of the bound farther from it, and v is at most the mean of y
squared, 1. Slopes alone have no limits: predictors may vary as little as they like.

A posterior under a prior that is restricted to such a region A is the posterior under the whole prior, given
A.

Symbols:

- m, Var, Cov: ``mean``, ``variance`` and ``covariance``, (..., d), (..., d) and (..., d (d - 1) / 2), without
  a unit
- b, b_0: ``slopes``, (..., k), the intercept last
- v: ``variance`` of a regression's residuals, (...,), in squares of the outcome's half range
- |b_0| - sum |b_k|: ``apart``, (...,)

Method. (1) and (2) are necessary; more than two columns together may have limits beyond them. Cells of which
less than a 10,000th lies outside stay as they are, but for draws outside, which are moved to the edge. Of the
others draws outside are left out (rejection), and moments and quantiles are those of the rest.

References
----------
Bhatia, Davis. A better bound on the variance. Amer. Math. Monthly 107, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.distributions.distribution import Distribution
from suffice.pipeline.math.distributions.normal_inverse_gamma import Scaling
from suffice.pipeline.math.distributions.within_limits import NEGLIGIBLE, Restricted
from suffice.pipeline.terms.statistics.moment_columns import is_linear, lattice_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Cells, Floats, Mask

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
    def of(cls, parameters: Constants) -> Self:
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
        # (1).
        within = (np.abs(mean) <= 1.0) & (variance <= (1.0 - mean) * (1.0 + mean))
        pairs = (covariance >= least) & (covariance <= most)
        return np.asarray(np.all(within, axis=-1) & np.all(pairs, axis=-1))

    def nearest(self, drawn: Drawn) -> dict[str, Floats]:
        """Move means to the bounds, then shrink deviations, then all correlations alike."""
        mean, variance, covariance = self._in_half_ranges(drawn)
        mean = np.clip(mean, -1.0, 1.0)
        # Deviations shrink by the root of what their variance shrinks by, and covariances with both.
        kept = np.minimum(variance, (1.0 - mean) * (1.0 + mean))
        shrunk = np.sqrt(np.divide(kept, variance, out=np.ones_like(kept), where=variance > 0.0))
        first, second = np.triu_indices(len(self.centre), 1)
        covariance = covariance * shrunk[..., first] * shrunk[..., second]
        least, most = self._limits(mean)
        # A common factor of all correlations keeps the matrix positive semidefinite.
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
            # With |m_i| <= 1 - r_i, Var <= r_i (2 - r_i) and |Cov| <= r_i r_j are within (1).
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
        # (1).
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
    def of(cls, parameters: Constants) -> Self:
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
        # (2), and |mu| <= 1.
        return np.asarray(variance <= 1.0 - np.maximum(apart, 0.0) ** 2) & (apart <= 1.0)

    def nearest(self, drawn: Drawn) -> dict[str, Floats]:
        """Move the variance to its limit, then the intercept."""
        slopes, apart, variance = self._in_half_ranges(drawn)
        kept = np.minimum(variance, 1.0)
        # (2), solved for the distance of the mean of y: it is moved by the intercept.
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


_DRAWN, _FEWEST, _MOST_ROUNDS = 20_000, 500, 5
"""Draws of a round, draws of a cell that are enough, and rounds."""
_LEAST_KEPT, _MOST_KEPT = 1000, 8000
"""Draws of a cell that are kept."""
_NUMBERS, _KEPT_NUMBERS = 1 << 22, 1 << 24
"""Numbers that are drawn at once, and that all cells keep within the limits of one."""


@runtime_checkable
class TakesCells(Distribution, Protocol):
    """A distribution of which cells can be taken."""

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinSeveral(Draws, Restricted):
    """A distribution given that its parameters lie in a region; made by ``within_several``.

    Attributes
    ----------
    region : Region
    drawn : dict of str to ndarray of shape (n_kept, n_cut, ...), float64
        Draws in the region, of the cells of which it cuts off a part.
    cut : ndarray of shape (n_cells,), bool
        Which they are.
    """

    region: Region
    drawn: Mapping[str, Floats]
    cut: Mask

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.plain.parameters

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """What each parameter is of, where it is of several."""
        components: Mapping[str, tuple[str, ...]] = getattr(self.plain, "components", {})
        return components

    @property
    def diagnostics(self) -> dict[str, Any]:
        """Those of the distribution without a region."""
        return dict(getattr(self.plain, "diagnostics", {}))

    def mean(self, parameter: str) -> Floats:
        """Means."""
        mean = np.array(self.plain.mean(parameter))
        # Moments of the draws that are left.
        mean[self.cut] = self.drawn[parameter].mean(axis=0)
        return mean

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        sd = np.array(self.plain.sd(parameter))
        sd[self.cut] = self.drawn[parameter].std(axis=0)
        return sd

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        sample = self.plain.sample(draws, rng)
        if not self.region.inside(sample).all():
            sample = self.region.nearest(sample)
        if self.cut.any():
            kept = len(self.drawn[self.parameters[0]])
            chosen = rng.integers(kept, size=(draws, int(self.cut.sum())))
            for name, values in self.drawn.items():
                sample[name][:, self.cut] = values[chosen, np.arange(values.shape[1])]
        return sample


def within_several(plain: Distribution, region: Region) -> Distribution:
    """Restrict the parameters of several columns to a region."""
    cut = region.near(plain)
    if not cut.any() or not isinstance(plain, TakesCells):
        # One draw of no cell: moments and quantiles of no draws would be asked of nothing.
        nothing = {name: np.empty((1, 0, *plain.mean(name).shape[1:])) for name in plain.parameters}
        return WithinSeveral(plain=plain, region=region, drawn=nothing, cut=np.zeros_like(cut))
    cells = np.flatnonzero(cut)
    entries = sum(int(np.prod(plain.mean(name).shape[1:])) for name in plain.parameters)
    kept = int(np.clip(_KEPT_NUMBERS // (entries * len(cells)), _LEAST_KEPT, _MOST_KEPT))
    step = max(1, _NUMBERS // (_DRAWN * entries))
    parts = [
        _drawn_inside(plain.take(cells[start : start + step]), region, kept)
        for start in range(0, len(cells), step)
    ]
    is_cut = np.concatenate([outside for outside, _ in parts])
    cut[cut] = is_cut
    drawn = {
        name: np.concatenate([part_draws[name] for _, part_draws in parts], axis=1)
        for name in plain.parameters
    }
    return WithinSeveral(
        plain=plain, region=region, drawn={name: values[:, is_cut] for name, values in drawn.items()}, cut=cut
    )


def _drawn_inside(part: Distribution, region: Region, kept: int) -> tuple[Mask, dict[str, Floats]]:
    """Return of which cells more than ``NEGLIGIBLE`` lies outside, and draws inside, (kept, n_cells, ...)."""
    # Always the same draws: what is asked of a posterior twice is answered alike.
    rng = np.random.default_rng(0)
    # Rejection: draws given the region are the draws that lie in it.
    drawn = part.sample(_DRAWN, rng)
    inside = region.inside(drawn)
    is_cut = np.asarray(np.mean(~inside, axis=0) > NEGLIGIBLE)
    for _ in range(_MOST_ROUNDS - 1):
        if not is_cut.any() or inside.sum(axis=0)[is_cut].min() >= _FEWEST:
            break
        more = part.sample(_DRAWN, rng)
        drawn = {name: np.concatenate([values, more[name]]) for name, values in drawn.items()}
        inside = np.concatenate([inside, region.inside(more)])
    # Where prior and released values contradict each other: the nearest that bounded records can have.
    few = inside.sum(axis=0) < _FEWEST
    if few.any():
        moved = region.nearest({name: values[:, few] for name, values in drawn.items()})
        for name, values in moved.items():
            drawn[name][:, few] = values
        inside[:, few] = True
    kept_draws = {name: np.empty((kept, *values.shape[1:])) for name, values in drawn.items()}
    for cell in np.flatnonzero(is_cut):
        rows = np.resize(np.flatnonzero(inside[:, cell]), kept)
        for name, values in drawn.items():
            kept_draws[name][:, cell] = values[rows, cell]
    return is_cut, kept_draws
