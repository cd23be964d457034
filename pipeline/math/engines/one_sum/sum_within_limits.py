r"""A probability, a rate or a scale behind a noisy sum, given that it lies where that of bounded records can.

Model: the mixture of betas, gammas or inverse gammas of ``sum_posterior``, merged, restricted to limits l..u:

.. math:: F_A(x) = \frac{F(x) - F(l)}{F(u) - F(l)} \qquad (1)

Method. A quantile of (1) at q is that of F at F(l) + q (F(u) - F(l)): nothing is tabulated. Moments of parts
are closed forms. Of a part with mean m and variance v let I(x) be its distribution function, and

.. math::
    T(x) = \frac{x^a (1 - x)^b}{a B(a, b)} \text{ of a beta}, \qquad
    T(x) = \frac{(r x)^a e^{-r x}}{\Gamma(a + 1)} \text{ of a gamma.}

By I(a + 1, b) = I(a, b) - T (DLMF 8.17.20) and P(a + 1, z) = P(a, z) - T (DLMF 8.8.5), below x

.. math::
    E (t - m)_{t < x} &= -m \, T(x) \\
    E (t - m)^2_{t < x} &= v \, I(x) - m \, T(x) \left(x - m + \frac{1 - m - x}{a + b + 1}\right)
        \text{ of a beta} \qquad (2) \\
    E (t - m)^2_{t < x} &= v \, \bigl(I(x) - (r x - a + 1) \, T(x)\bigr) \text{ of a gamma,}

which are differences of no large numbers. On a side without a limit what lies beyond the other is taken from
the moments that there are without limits, which are those of all pairs.

Merged parts leave out unlikely pairs, which may hold most of a spread. Where less than ``_ENOUGH`` lies
within, or where between two limits parts lack more than ``_LACKING`` of the moments that all pairs have,
moments are sums over all pairs.

Of inverse gammas moments are sums over all pairs: parts that are widened have other means, or none.

Where less than ``_LEAST`` lies within, levels of F have too few digits: these cells keep the table of
``within_limits``, and so do draws.

========= ============== ================================================ ==============
symbol    in the code    meaning                                          shape
========= ============== ================================================ ==============
l, u      ``limits``     ends of the parameter's range                    2
F(l), F(u) ``below``     distribution functions there                     (n_cells, 2)
========= ============== ================================================ ==============
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, cast

import numpy as np

from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import widened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.gamma import GammaDistribution
    from suffice.pipeline.math.distributions.merged import Components
    from suffice.pipeline.math.distributions.within_limits import Tabulated
    from suffice.typing import Cells, Floats, Mask

_LEAST = 1e-3
"""Share within limits from which on levels of the whole distribution have digits enough."""
_ENOUGH, _LACKING = 0.1, 2e-3
"""Share from which on parts are fine enough for moments, and what these may lack, in units of the sd."""


class WholeSum(Protocol):
    """The distribution without limits: a ``LatentSumPosterior``."""

    @property
    def name(self) -> str:
        """The parameter's."""

    @property
    def n_cells(self) -> int:
        """The number of cells."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def update(self) -> Callable[[Floats, Floats], Distribution]:
        """N and S -> the conjugate distribution."""

    @property
    def merged(self) -> Components:
        """Merged pairs of all cells."""

    @property
    def near(self) -> tuple[Floats, Floats]:
        """Means and standard deviations, but for far tails."""

    @property
    def means(self) -> Floats:
        """Means."""

    @property
    def sds(self) -> Floats:
        """Standard deviations."""

    @property
    def levels(self) -> Floats | None:
        """Design effects."""

    def mean(self, parameter: str) -> Floats:
        """Means."""

    def quantiles_at(self, parameter: str, levels: Floats, near: Floats | None = None) -> Floats:
        """Quantiles at levels of every cell's own."""

    def rough_quantiles_at(self, levels: Floats) -> Floats:
        """About the quantiles."""

    def moments_within(self, limits: tuple[float, float]) -> tuple[Floats, Floats] | None:
        """Means and standard deviations within limits, over all pairs."""

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points."""

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumWithinLimits:
    """The distribution (1) of cells that limits cut off a part of; made by ``SumWithinLimits.of``.

    Attributes
    ----------
    plain : WholeSum
        Without limits, of the same cells.
    limits : (float, float)
    below : ndarray of shape (n_cells, 2), float64
        The distribution function at both limits.
    moments : callable
        Without arguments -> means and standard deviations, each (n_cells,); it remembers them.
    table : callable
        Without arguments -> the table of all cells, for draws.
    far : ndarray of shape (n_far,), int64
        The cells of which hardly anything lies within.
    far_table : callable
        Without arguments -> their table.
    """

    plain: WholeSum
    limits: tuple[float, float]
    below: Floats
    moments: Callable[[], tuple[Floats, Floats]]
    table: Callable[[], Tabulated]
    far: Cells
    far_table: Callable[[], Tabulated]

    @classmethod
    def of(
        cls,
        plain: WholeSum,
        limits: tuple[float, float],
        below: Floats,
        tabulate: Callable[[Cells], Tabulated],
        moments: Callable[[], tuple[Floats, Floats]],
    ) -> Self:
        """Restrict cells; ``tabulate`` gives the table of some, ascending, `moments` those of all."""
        cells, far = np.arange(len(below)), np.flatnonzero(below[:, 1] - below[:, 0] < _LEAST)
        return cls(
            plain=plain,
            limits=limits,
            below=below,
            moments=functools.cache(moments),
            table=functools.cache(lambda: tabulate(cells)),
            far=far,
            far_table=functools.cache(lambda: tabulate(far)),
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.plain.parameters

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._with_far(self.moments()[0], lambda table: table.mean(parameter))

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._with_far(self.moments()[1], lambda table: table.sd(parameter))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles; they rest on no draws."""
        return self._with_far(
            np.clip(self.plain.quantiles_at(parameter, self._levels(np.asarray(q))), *self.limits),
            lambda table: table.quantiles(parameter, q, draws, rng),
        )

    def rough_quantiles(self, parameter: str, q: Sequence[float]) -> Floats:
        """About the quantiles, by which the exact ones that are wanted may be chosen."""
        return self._with_far(
            np.clip(self.plain.rough_quantiles_at(self._levels(np.asarray(q))), *self.limits),
            lambda table: table.quantiles(parameter, q, 0, np.random.default_rng(0)),
        )

    def quantiles_at(self, parameter: str, levels: Floats, near: Floats) -> Floats:
        """Quantiles at levels (n_cells, n_levels) of every cell's own; `near` has about the quantiles."""
        return self._with_far(
            np.clip(self.plain.quantiles_at(parameter, self._levels(levels), near), *self.limits),
            lambda table: table.quantiles_at(levels[self.far]),
        )

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points)."""
        low, high = self.limits
        with np.errstate(divide="ignore", invalid="ignore"):  # of cells that keep their table
            inside = self.plain.density(parameter, points) / np.diff(self.below)
        values = np.where((points < low) | (points > high), 0.0, inside)
        return self._with_far(values, lambda table: table.density(parameter, points[self.far]))

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        return self.table().sample(draws, rng)

    def _levels(self, levels: Floats) -> Floats:
        """Levels of the whole distribution, by (1)."""
        low, high = self.below[:, :1], self.below[:, 1:]
        return low + levels * (high - low)

    def _with_far(self, values: Floats, of_table: Callable[[Tabulated], Floats]) -> Floats:
        """With those of the table where hardly anything lies within."""
        if self.far.size:
            values = values.copy()
            values[self.far] = of_table(self.far_table())
        return values


def moments_within(plain: WholeSum, limits: tuple[float, float]) -> tuple[Floats, Floats]:
    """Means and standard deviations within limits, each (n_cells,)."""
    merged, cells = plain.merged, plain.n_cells
    given = cast(
        "BetaDistribution | GammaDistribution",
        widened(plain.update(merged.n, merged.total), merged.scatter),
    )
    is_bounded = bool(np.isfinite(limits).all())
    # Of what lies between two limits, or of what lies beyond the one that there is.
    below, above = (-np.inf, limits[0]), (limits[1], np.inf)
    low, high = limits if is_bounded else below if np.isfinite(limits[0]) else above
    centre = np.clip(plain.near[0], *limits) if is_bounded else plain.means
    parts = np.subtract(
        moments_below(given, high, centre[merged.cell]), moments_below(given, low, centre[merged.cell])
    )
    sums = np.stack([np.bincount(merged.cell, merged.weight * part, cells) for part in parts])
    if not is_bounded:
        # About the mean all mass, first and second moment are 1, 0 and Var.
        sums = np.stack([np.ones(cells), np.zeros(cells), plain.sds**2]) - sums
    with np.errstate(invalid="ignore", divide="ignore"):  # of cells that keep their table
        away = sums[1] / sums[0]
        means, sds = centre + away, np.sqrt(np.maximum(sums[2] / sums[0] - away**2, 0.0))
    share = sums[0]
    doubtful = share < _ENOUGH
    if is_bounded:
        doubtful |= _lacking(plain, given, centre, (share, sds))
    # Of tempered cells parts are all that there is.
    exact = np.flatnonzero(doubtful & (share >= _LEAST) & (plain.levels is None))
    if exact.size:
        of_pairs = plain.take(exact).moments_within(limits)
        means[exact], sds[exact] = cast("tuple[Floats, Floats]", of_pairs)
    return means, sds


def _lacking(
    plain: WholeSum,
    given: BetaDistribution | GammaDistribution,
    centre: Floats,
    within: tuple[Floats, Floats],
) -> Mask:
    """Cells of which merged parts, without unlikely pairs, lack a part of the moments within limits."""
    merged, cells, (share, sds) = plain.merged, plain.n_cells, within
    away, v = given.mean(plain.name) - centre[merged.cell], given.sd(plain.name) ** 2
    of_parts = [np.bincount(merged.cell, merged.weight * part, cells) for part in (away, v + away**2)]
    means, all_sds = plain.near
    of_pairs = means - centre, all_sds**2 + (means - centre) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        # All that parts lack may lie within.
        lack = np.abs(np.subtract(of_pairs, of_parts)) / (share * np.stack([sds, sds**2]))
    return np.asarray(~np.all(lack < _LACKING, axis=0))


def moments_below(given: BetaDistribution | GammaDistribution, limit: float, centre: Floats) -> Floats:
    """Mass, and first and second moment about a centre, of what lies below a limit, (3, n_parts)."""
    (name,) = given.parameters
    m, v = given.mean(name), given.sd(name) ** 2
    coordinate = given.coordinate()
    low, high = coordinate.line.domain
    if limit <= low:
        return np.zeros((3, len(m)))
    if limit >= high:
        share, first, second = np.ones(len(m)), np.zeros(len(m)), v
    else:
        position = coordinate.line.position(np.full(len(m), limit))
        share, density = coordinate.cdf(position), np.exp(coordinate.log_density(position))
        # (2); the density on the line is a T.
        if isinstance(given, BetaDistribution):
            a, b = given.concentration1, given.concentration0
            t = density / a
            second = v * share - m * t * (limit - m + (1.0 - m - limit) / (a + b + 1.0))
        else:
            a, z = given.concentration, given.rate * limit
            t = density / a
            second = v * (share - (z - a + 1.0) * t)
        first = -m * t
    away = m - centre
    # E (t - c)^k from the moments about m.
    return np.stack([share, first + away * share, second + 2.0 * away * first + away**2 * share])
