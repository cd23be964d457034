r"""Distributions given that their parameters lie where those of bounded records can.

Model. A posterior under a prior that is restricted to a region A is the posterior under the whole prior,
given A:

.. math:: p(\theta \mid y, A) = \frac{p(\theta \mid y) \, 1_A(\theta)}{P(A \mid y)}. \qquad (1)

A parameter alone lies within l..u, and with F its distribution function

.. math:: F_A(x) = \frac{F(x) - F(l)}{F(u) - F(l)}, \qquad l \le x \le u. \qquad (2)

Symbols:

- l, u: ``limits``, in the parameter's unit, infinite where there is none
- F: ``known.cdf``; F_A: ``Tabulated.below``, at ``knots``

Method. Cells of which less than ``NEGLIGIBLE`` lies outside on either side stay as they are, but for those
with moments that nothing within limits has; draws that lie outside are moved to the limit. (2) is tabulated,
from merged distributions, and linear between knots. Means and standard deviations are the distribution's,
where it knows them, or else those of the table, which agree with dense sums to .002 posterior standard
deviations where tails are light. Of a mean and a variance together see ``within_region``.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from suffice.pipeline.math.distributions.composite import Draws, from_draws

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Cells, Floats, Mask

    Limits = Mapping[str, tuple[float, float]]


NEGLIGIBLE = 1e-4
"""Of a cell's posterior: what may lie outside, on either side of a parameter, without being cut off."""
FAR = 8.0
"""Standard deviations to either side of a mean within which limits matter."""
_TAIL = 1e-6
"""Probability on either side beyond which tables end."""
_EVEN = np.linspace(0.0, 1.0, 65)
"""Of the way from one end of a table to the other."""
_LEVELS = np.sin(np.linspace(0.0, np.pi / 2.0, 129)) ** 2
"""Of a distribution function where a table has knots, closer together where quantiles bend."""
_ALIKE = 2.0**-40
"""Of a table's range, the distance of knots that are taken for one."""


@runtime_checkable
class KnowsLimits(Protocol):
    """A distribution that is restricted in a way of its own."""

    def within(self, limits: tuple[float, float]) -> Distribution:
        """Return the distribution given that its parameter is within limits."""


@runtime_checkable
class KnowsLevels(Protocol):
    """A distribution whose quantiles at any levels take less time than a table."""

    def restricted(
        self, limits: tuple[float, float], below: Floats, tabulate: Callable[[Cells], Tabulated]
    ) -> Distribution:
        """Return it within limits, where its distribution function is `below`; `tabulate` has the table."""


@runtime_checkable
class KnowsBoundedMoments(Protocol):
    """A distribution whose tails may have no moments, however unlikely they are."""

    def bounded_moments(self, parameter: str) -> tuple[Floats, Floats]:
        """Return means and standard deviations without such tails, where they are next to impossible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restricted:
    """A distribution given that its parameters lie somewhere.

    Attributes
    ----------
    plain : Distribution
        Wherever they may lie, of all cells.
    """

    plain: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinLimits(Restricted):
    """A distribution given that its parameters lie within limits, or in a region of both.

    Attributes
    ----------
    limits : dict of str to (float, float)
        Of each parameter.
    inner : Distribution or None
        Of the cells that the limits cut off a part of, in their order; None where there are none.
    cut : ndarray of shape (n_cells,), bool
        Which they are.
    share : ndarray of shape (n_cells,), float64
        P(A | y) of (1); 1 where next to nothing is cut off.
    """

    limits: Limits
    inner: Distribution | None
    cut: Mask
    share: Floats

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.cut)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.plain.parameters

    @property
    def diagnostics(self) -> dict[str, Any]:
        """Those of the distribution without limits."""
        return dict(getattr(self.plain, "diagnostics", {}))

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles of some cells are those of draws."""
        return from_draws(self.plain) or from_draws(self.inner)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        plain, _ = bounded_moments(self.plain, parameter)
        return plain if self.inner is None else self._joined(plain, self.inner.mean(parameter))

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        _, plain = bounded_moments(self.plain, parameter)
        return plain if self.inner is None else self._joined(plain, self.inner.sd(parameter))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles."""
        return self.by_part(parameter, lambda part: part.quantiles(parameter, q, draws, rng))

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities; 0 outside of the limits."""
        low, high = self.limits[parameter]
        plain = self.plain.density(parameter, points)
        if plain is None:
            return None
        plain = np.where((points < low) | (points > high), 0.0, plain)
        if self.inner is None:
            return plain
        inner = self.inner.density(parameter, points[self.cut])
        return None if inner is None else self._joined(plain.T, inner.T).T

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        drawn = {
            name: np.clip(values, *self.limits[name])
            for name, values in self.plain.sample(draws, rng).items()
        }
        if self.inner is None:
            return drawn
        inner = self.inner.sample(draws, rng)
        return {name: self._joined(values, inner[name]) for name, values in drawn.items()}

    def by_part(self, parameter: str, values: Callable[[Distribution], Floats]) -> Floats:
        """Values of a parameter (n_cells, n_values), worked out only where they count.

        Parameters
        ----------
        parameter : str
            Its name.
        values : callable
            Distribution of some cells -> values of the parameter there.
        """
        if self.inner is None:
            return np.clip(values(self.plain), *self.limits[parameter])
        inner = values(self.inner)
        restricted = np.empty((len(self.cut), *inner.shape[1:]))
        restricted[self.cut] = inner
        rest = np.flatnonzero(~self.cut)
        if rest.size:
            known: Any = self.plain
            restricted[rest] = np.clip(values(known.take(rest)), *self.limits[parameter])
        return restricted

    def _joined(self, plain: Floats, inner: Floats) -> Floats:
        joined = plain.copy()
        joined[..., self.cut] = inner
        return joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabulated:
    """One parameter between knots, over which its distribution function is linear.

    Attributes
    ----------
    name : str
    knots, below : ndarray of shape (n_cells, n_knots), float64
        Ascending; the distribution function there, from 0 to 1.
    moments : callable
        Without arguments -> means and standard deviations, each (n_cells,): those of the distribution, or
        NaN where they are those of the table. It remembers them.
    """

    name: str
    knots: Floats
    below: Floats
    moments: Callable[[], tuple[Floats, Floats]]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        means, _ = self.moments()
        return np.where(np.isnan(means), self._mean(), means)

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        middle = (self.knots[:, 1:] + self.knots[:, :-1]) / 2.0
        # F_A is linear over a step d: uniform there, with the variance d^2 / 12 about its middle.
        away = middle - self._mean()[:, None]
        square = np.sum(np.diff(self.below) * (away**2 + np.diff(self.knots) ** 2 / 12.0), axis=1)
        _, sds = self.moments()
        return np.where(np.isnan(sds), np.sqrt(square), sds)

    def _mean(self) -> Floats:
        middle = (self.knots[:, 1:] + self.knots[:, :-1]) / 2.0
        mean: Floats = np.sum(np.diff(self.below) * middle, axis=1)
        return mean

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles from the table; they rest on no draws."""
        return self._inverse(np.broadcast_to(np.asarray(q), (len(self.knots), len(q))))

    def quantiles_at(self, levels: Floats) -> Floats:
        """Quantiles at levels (n_cells, n_levels) of every cell's own."""
        return self._inverse(levels)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points), between the middles of steps."""
        values = np.empty(points.shape)
        for cell, at in enumerate(points):
            low, high = self.knots[cell, 0], self.knots[cell, -1]
            # Knots that are alike but for rounding have no slope between them.
            apart = np.append(True, np.diff(self.knots[cell]) > _ALIKE * (high - low))
            knots, below = self.knots[cell, apart], self.below[cell, apart]
            middle, slope = (knots[1:] + knots[:-1]) / 2.0, np.diff(below) / np.diff(knots)
            values[cell] = np.where((at < low) | (at > high), 0.0, np.interp(at, middle, slope))
        return values

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        return {self.name: self._inverse(rng.random((len(self.knots), draws))).T}

    def _inverse(self, level: Floats) -> Floats:
        return np.stack(
            [
                np.interp(cell_level, below, knots)
                for cell_level, below, knots in zip(level, self.below, self.knots, strict=True)
            ]
        )


def unrestricted(distribution: Distribution) -> Distribution:
    """Return a distribution as it is without limits."""
    return distribution.plain if isinstance(distribution, Restricted) else distribution


def within(plain: Distribution, limits: tuple[float, float]) -> Distribution:
    """Restrict the one parameter of a distribution that knows its distribution function."""
    (name,) = plain.parameters
    if isinstance(plain, KnowsLimits):
        return plain.within(limits)
    cut = near_limits(plain, name, limits)
    if not hasattr(plain, "cdf") or not cut.any():
        return uncut(plain, {name: limits}, np.zeros_like(cut))
    known: Any = plain
    cut_cells = known.take(np.flatnonzero(cut))
    # F at both limits: what lies outside of each.
    below = cut_cells.cdf(np.tile(limits, (int(np.sum(cut)), 1)))
    is_cut = (below[:, 0] > NEGLIGIBLE) | (below[:, 1] < 1.0 - NEGLIGIBLE)
    is_cut |= impossible(cut_cells, name, limits)
    cut[cut] = is_cut
    if not cut.any():
        return uncut(plain, {name: limits}, cut)
    restricted, below = cut_cells.take(np.flatnonzero(is_cut)), below[is_cut]

    def tabulate(cells: Cells) -> Tabulated:
        of_cells = restricted.take(cells)
        return _tabulated(of_cells, name, limits, _ends(of_cells, name), below[cells])

    inner: Distribution
    if isinstance(restricted, KnowsLevels):
        inner = restricted.restricted(limits, below, tabulate)
    else:
        inner = tabulate(np.arange(len(below)))
    share = np.ones(len(cut))
    share[cut] = np.maximum(below[:, 1] - below[:, 0], np.finfo(np.float64).tiny)
    return WithinLimits(plain=plain, limits={name: limits}, inner=inner, cut=cut, share=share)


def uncut(plain: Distribution, limits: Limits, none: Mask) -> WithinLimits:
    """Return a distribution of which limits cut off nothing; `none` is false of all cells."""
    return WithinLimits(plain=plain, limits=limits, inner=None, cut=none, share=np.ones(len(none)))


def _ends(known: Any, name: str) -> Floats:
    """Return ends beyond which next to nothing lies, (n_cells, 2)."""
    if isinstance(known, Draws):
        # Of mixtures, whose quantiles are those of draws: too few lie far out.
        span: Floats = known.span(_TAIL)  # type: ignore[attr-defined]
        return span
    ends: Floats = known.quantiles(name, [_TAIL, 1.0 - _TAIL], 0, np.random.default_rng(0))
    return ends


def near_limits(plain: Distribution, name: str, limits: tuple[float, float]) -> Mask:
    """Cells whose limits are not far from their means."""
    mean, sd = _near_moments(plain, name)
    with np.errstate(invalid="ignore"):
        return np.asarray(~((mean - FAR * sd > limits[0]) & (mean + FAR * sd < limits[1])))


def impossible(known: Distribution, name: str, limits: tuple[float, float]) -> Mask:
    """Cells of a heavy tail: little of it is outside of the limits, and it makes their moments infinite.

    Within l..u a standard deviation is at most (u - l) / 2 (Popoviciu).
    """
    _, sd = _near_moments(known, name)
    return np.asarray(~(sd <= (limits[1] - limits[0]) / 2.0))


def _near_moments(known: Any, name: str) -> tuple[Floats, Floats]:
    """Return means and standard deviations; but for far tails, where those take long to work out."""
    moments: tuple[Floats, Floats] = known.near if hasattr(known, "near") else bounded_moments(known, name)
    return moments


def bounded_moments(known: Distribution, name: str) -> tuple[Floats, Floats]:
    """Return means and standard deviations of what limits cut nothing off, whether tails have them or not."""
    if isinstance(known, KnowsBoundedMoments):
        return known.bounded_moments(name)
    return known.mean(name), known.sd(name)


def _tabulated(
    known: Any, name: str, limits: tuple[float, float], ends: Floats, at_limits: Floats
) -> Tabulated:
    """Tabulate the distribution function between limits, or where all but a millionth of it ends.

    `at_limits` has it at both limits, (n_cells, 2).
    """
    clipped = np.clip(ends, *limits)
    # Numbers may end before a millionth is left, nearer to 0 or 1 than they go: the table then goes on.
    goes_on = np.isfinite(limits) & (np.abs(known.cdf(clipped) - at_limits) > NEGLIGIBLE)
    low, high = np.where(goes_on, limits, clipped).T
    # Where no more than that lies within, the limit that it is nearest to, and what is beside it.
    none = high <= low
    unit = np.where(np.isfinite(limits).all(), limits[1] - limits[0], abs(limits[0]))
    high = np.where(none & (low <= limits[0]), low + unit / 2.0, high)
    low = np.where(none & (low >= limits[1]), high - unit / 2.0, low)
    # Dense beside both ends: what is cut off far out in a tail falls steeply.
    share = np.unique(
        np.concatenate([_EVEN, np.exp2(-np.arange(7.0, 40.0)), 1.0 - np.exp2(-np.arange(7.0, 40.0))])
    )
    knots = low[:, None] + (high - low)[:, None] * share
    # Where knots are best is seen by a rough distribution function, what they have below by the exact one.
    rough = known.coarser() if hasattr(known, "coarser") else known
    below = _scaled(rough.cdf(knots), share)
    for each in (rough, known):
        at = np.stack([np.interp(_LEVELS, *pair) for pair in zip(below, knots, strict=True)])
        knots = np.sort(np.concatenate([at, low[:, None] + (high - low)[:, None] * _EVEN], axis=1), axis=1)
        below = _scaled(each.cdf(knots), np.linspace(0.0, 1.0, knots.shape[1]))
    return Tabulated(
        name=name,
        knots=np.clip(knots, *limits),
        below=below,
        moments=functools.cache(lambda: _moments_within(known, limits)),
    )


def _moments_within(plain: Any, limits: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return means and standard deviations; NaN where the distribution does not know them."""
    # The distribution's sums, where it has them: no table is as exact in heavy tails.
    known = plain.moments_within(limits) if hasattr(plain, "moments_within") else None
    if known is None:
        none = np.full(len(plain.mean(plain.parameters[0])), np.nan)
        return none, none
    resolved = np.isfinite(known[0]) & np.isfinite(known[1])
    return np.where(resolved, known[0], np.nan), np.where(resolved, known[1], np.nan)


def _scaled(below: Floats, otherwise: Floats) -> Floats:
    """From 0 to 1, where there is anything at all."""
    # (2); rounding may not make it fall.
    rises = np.maximum.accumulate(below, axis=1) - below[:, :1]
    whole = rises[:, -1:]
    return np.where(whole > 0.0, rises / np.where(whole > 0.0, whole, 1.0), otherwise)
