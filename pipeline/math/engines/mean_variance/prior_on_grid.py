r"""A prior of any form of a mean and a variance, on the grid of x and lambda.

Model: positions are means x in half ranges h about the centre c, and log variances :math:`\lambda`. The
density of a prior p of the mean and the variance is there

.. math:: \log f(x, \lambda) = \log p(\mu, v) + \lambda, \quad \mu = c + h x, \; v = h^2 e^\lambda \quad (1)

where the prior is of the standard deviation, :math:`\sqrt v` takes the place of v and half of the last term
is left. Of a mixture of normal-inverse-gamma priors a component is

.. math::
    \frac{w \sqrt k\, b^a}{\Gamma(a)}
    \exp\bigl(-(a + 1/2) \lambda - (b + k (x - m)^2 / 2) e^{-\lambda}\bigr) \qquad (2)

    u = \log\Bigl(1 + \frac{k}{2 b} (x - m)^2\Bigr) - \lambda \qquad (3)

The question is whether the prior is proper, and where it is. Components of one m, one a and one k / b, as
those that are spread over scales, differ by b alone: their sum is :math:`e^{-(a + 1/2) \lambda}` times a
function of u, and a table of its logarithm is enough, off by less than 1e-7 times what the last component
falls. Integrals are those of ``distribution``; a prior whose integral has not converged at the ends of the
grid (``_LEFT_OUT`` nats) is refused.

====== ================== ================================== ================ ==================
symbol in the code        meaning                            shape            unit
====== ================== ================================== ================ ==================
x      ``first``          means                              (n, p)           half ranges
lambda ``second``         log variances                      (n, q)           of half ranges^2
m, k   ``loc``,           of a component                     (n_components,)  half ranges, none
       ``precision``
a, b   ``concentration``, of a component                     (n_components,)  none, half ranges^2
       ``scale``
====== ================== ================================== ================ ==================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.mean_variance.distribution import (
    PANELS,
    Panels,
    around,
    finest,
    node_weights,
    positions,
)
from suffice.pipeline.math.priors.by_name import Independent, JointDensity
from suffice.pipeline.math.priors.density import LEAST, DensityOnLine
from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.typing import Floats

_DEEPEST = 1e300
_PER_UNIT = 1024.0
"""Entries of the table for each unit of u: off by less than 1e-7 times what the last component falls."""
_CONSTANT, _ALONE = 1e-12, 700.0
"""Exponents of the largest and of the smallest b at which the table begins and ends."""
_SAME = 1e-12
_LONGEST = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ConjugatesOnGrid:
    """Components of a mixture, of one perhaps, in half ranges; all arrays (n,).

    Attributes
    ----------
    loc, precision, concentration, scale : ndarray, float64
    log_height : ndarray, float64
        Log weights and constants.
    start : float
        Where the table begins, if the components differ by their scales alone.
    table : ndarray of shape (n_entries,), float64, or None
        Logs of the sum, less what depends on the log variance alone.
    """

    loc: Floats
    precision: Floats
    concentration: Floats
    scale: Floats
    log_height: Floats
    start: float
    table: Floats | None = field(repr=False)

    @classmethod
    def of(cls, prior: NormalInverseGamma | Mixture, centre: float, half_range: float) -> Self:
        """Take the components, and lay out a table where there may be one."""
        from scipy.special import gammaln

        parts: Sequence[Any] = prior.components if isinstance(prior, Mixture) else (prior,)
        weights = np.array(prior.weights if isinstance(prior, Mixture) else (1.0,))
        loc, precision, concentration, scale = np.array(
            [
                (
                    (part.loc - centre) / half_range,
                    part.precision,
                    part.concentration,
                    part.scale / half_range**2,
                )
                for part in parts
            ]
        ).T
        # (2): what does not depend on x and lambda.
        log_height = np.log(weights) + np.log(precision) / 2.0
        log_height += concentration * np.log(scale) - gammaln(concentration)
        start, table = 0.0, None
        alike = (loc, concentration, np.log(precision / scale))
        if len(parts) > 1 and all(
            np.ptp(values) <= _SAME * (1.0 + np.max(np.abs(values))) for values in alike
        ):
            # Below, b e^u is 0 for all b; above, for none but the smallest is anything left.
            start, end = math.log(_CONSTANT / np.max(scale)), math.log(_ALONE / np.min(scale))
            count = math.ceil((end - start) * _PER_UNIT) + 1
            if count <= _LONGEST:
                table = np.full(count, -np.inf)
                # (b + k (x - m)^2 / 2) e^-lambda = b e^u by (3).
                growth = np.exp(start + np.arange(count) / _PER_UNIT)
                for height, b in zip(log_height, scale, strict=True):
                    np.logaddexp(table, height - b * growth, out=table)
        return cls(
            loc=loc,
            precision=precision,
            concentration=concentration,
            scale=scale,
            log_height=log_height,
            start=start,
            table=table,
        )

    def log_density(self, first: Floats, second: Floats) -> Floats:
        """Log densities at positions (n, p) and (n, q), but for a constant: (n, p, q)."""
        if self.table is not None:
            return self._from_table(self.table, first, second)
        per_variance = np.exp(-second)[:, None, :]
        of_each = np.empty((len(self.loc), len(first), first.shape[1], second.shape[1]))
        parts = (self.log_height, self.loc, self.precision, self.concentration, self.scale)
        for of_component, height, m, k, a, b in zip(of_each, *parts, strict=True):
            np.multiply((b + k / 2.0 * (first - m) ** 2)[:, :, None], -per_variance, out=of_component)
            np.add(of_component, (height - (a + 0.5) * second)[:, None, :], out=of_component)
        top = np.maximum(np.max(of_each, axis=0), -_DEEPEST)
        of_each -= top
        with np.errstate(divide="ignore"):
            mixed: Floats = top + np.log(np.sum(np.exp(of_each, out=of_each), axis=0))
        return mixed

    def _from_table(self, table: Floats, first: Floats, second: Floats) -> Floats:
        """The same, where components differ by their scales alone."""
        # (3).
        ratio = self.precision[0] / (2.0 * self.scale[0])
        growth = np.log1p(ratio * (first - self.loc[0]) ** 2)[:, :, None] - second[:, None, :]
        place = (growth - self.start) * _PER_UNIT
        index = np.clip(place, 0.0, len(table) - 2.0).astype(np.int64)
        low = table[index]
        log_density: Floats = table[index + 1] - low
        log_density *= np.clip(place - index, 0.0, 1.0)
        log_density += low
        beyond = place > len(table) - 1.0
        if np.any(beyond):
            # The smallest scale is left alone.
            last = int(np.argmin(self.scale))
            log_density[beyond] = np.maximum(
                self.log_height[last] - self.scale[last] * np.exp(growth[beyond]), -_DEEPEST
            )
        log_density -= ((self.concentration[0] + 0.5) * second)[:, None, :]
        return log_density


AnyJointPrior: TypeAlias = Independent | JointDensity | NormalInverseGamma | Mixture

_LARGEST_MEAN = 1e75
_FARTHEST = 200.0
_LEFT_OUT = 15.0
"""Nats by which the mass beyond the ends of the grid must be below all of it."""
_NEARLY_NOTHING = 40.0
_FALL = 4.0
_SPREAD = np.concatenate([np.arange(0.0, 8.0, 0.5), np.exp2(np.arange(3.0, 250.0))])
_STEPS = 67
_OCTAVES = np.concatenate([-np.exp2(np.arange(60.0, -3.0, -1.0)), [0.0], np.exp2(np.arange(-2.0, 61.0))])
_LIMITS = np.array([[-_LARGEST_MEAN, _LARGEST_MEAN], [-_FARTHEST, _FARTHEST]])


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityOnGrid:
    """A proper prior on the grid; made by ``DensityOnGrid.of``.

    Attributes
    ----------
    prior : Independent, JointDensity, NormalInverseGamma or Mixture
    log_density : callable
        Positions (n, p) and (n, q) -> log densities (n, p, q), but for a constant.
    first, last : (float, float)
        Ends of the support, as far as the grid goes.
    is_open : ((bool, bool), (bool, bool))
        Whether means, and log variances, have no lower and no upper end.
    edges : (ndarray, ndarray)
        Positions along both sides between which the density is smooth, or negligible.
    centre, width : (float, float)
        Medians, and interquartile ranges over that of the standard normal.
    lowest : float
        Log variance that only ``LEAST`` of the prior is below.
    """

    prior: AnyJointPrior
    log_density: Callable[[Floats, Floats], Floats] = field(repr=False)
    first: tuple[float, float]
    last: tuple[float, float]
    is_open: tuple[tuple[bool, bool], tuple[bool, bool]]
    edges: tuple[Floats, Floats]
    centre: tuple[float, float]
    width: tuple[float, float]
    lowest: float

    @classmethod
    def of(cls, prior: AnyJointPrior, centre: float, half_range: float) -> Self:
        """Check that a prior is proper and find where it is.

        Raises
        ------
        PriorError
            Where its support leaves the parameters', or its integral is zero or does not converge.
        """
        if isinstance(prior, Independent):
            return cls._of_two(prior, centre, half_range)
        if isinstance(prior, JointDensity):
            return cls._of_both(prior, centre, half_range)
        return cls._of_conjugates(prior, centre, half_range)

    @classmethod
    def _of_two(cls, prior: Independent, centre: float, half_range: float) -> Self:
        times = 1.0 if prior.of == "variance" else 2.0
        log_half = math.log(half_range)
        mean = DensityOnLine.of(prior.mean, Line.IDENTITY, centre)
        spread = DensityOnLine.of(prior.spread, Line.LOGARITHM, 2.0 / times * log_half)

        def to_log_variance(position: Any) -> Any:
            return times * position - 2.0 * log_half

        def log_density(first: Floats, second: Floats) -> Floats:
            of_mean = mean.log_density(centre + half_range * first)
            # The density of a logarithm: the last term of (1) is in it.
            of_spread = spread.log_density((second + 2.0 * log_half) / times)
            joint: Floats = of_mean[:, :, None] + of_spread[:, None, :]
            return joint

        ends = [(line.first, line.last) for line in (mean, spread)]
        limits = [line.line.ends for line in (mean, spread)]
        is_open = tuple(
            (bool(end[0] == limit[0]), bool(end[1] == limit[1]))
            for end, limit in zip(ends, limits, strict=True)
        )
        edges = ((_near(mean) - centre) / half_range, to_log_variance(_near(spread)))
        return cls(
            prior=prior,
            log_density=log_density,
            first=((mean.first - centre) / half_range, to_log_variance(spread.first)),
            last=((mean.last - centre) / half_range, to_log_variance(spread.last)),
            is_open=(is_open[0], is_open[1]),
            edges=edges,
            centre=((mean.centre - centre) / half_range, to_log_variance(spread.centre)),
            width=(mean.width / half_range, times * spread.width),
            lowest=to_log_variance(spread.lowest),
        )

    @classmethod
    def _of_both(cls, prior: JointDensity, centre: float, half_range: float) -> Self:
        times = 1.0 if prior.of == "variance" else 2.0
        log_half = math.log(half_range)

        def log_density(first: Floats, second: Floats) -> Floats:
            # Rounding must not carry a position at an end out of the support.
            mean = np.clip(centre + half_range * first, *prior.mean)
            spread = np.clip(np.exp((second + 2.0 * log_half) / times), *prior.spread)
            both = np.broadcast_arrays(mean[:, :, None], spread[:, None, :])
            # (1): d v = v d lambda, d sqrt(v) = sqrt(v) d lambda / 2.
            return prior(*both) + second[:, None, :] / times

        with np.errstate(divide="ignore"):
            log_ends = times * np.log(np.array(prior.spread)) - 2.0 * log_half
        mean_ends = (np.array(prior.mean) - centre) / half_range
        ends = np.clip([mean_ends, log_ends], _LIMITS[:, :1], _LIMITS[:, 1:])
        start = (
            _laid_out(0.0, ends[0], np.array(mean_ends)),
            _laid_out(0.0, ends[1], log_ends, positions=_log_spread(prior.spread, times, log_half)),
        )
        return cls._of_density(prior, log_density, ends, start)

    @classmethod
    @lru_cache(maxsize=16)
    def _of_conjugates(cls, prior: NormalInverseGamma | Mixture, centre: float, half_range: float) -> Self:
        """A mixture of normal inverse gamma distributions, of one perhaps."""
        parts = ConjugatesOnGrid.of(prior, centre, half_range)
        # A component has its log variance about log(b / a), with sd 1 / sqrt(a); its mean about m, with sd
        # sqrt(b / (a k)).
        log_variance, of_variance = (
            np.log(parts.scale / parts.concentration),
            1.0 / np.sqrt(parts.concentration),
        )
        ladders = [
            np.concatenate([middle + width * ladder for middle, width in zip(*of, strict=True)])
            for of, ladder in (
                ((parts.loc, np.exp(log_variance / 2.0) / np.sqrt(parts.precision)), _OCTAVES),
                ((log_variance, of_variance), np.concatenate([PANELS, _OCTAVES])),
            )
        ]
        first, second = (
            np.unique(np.clip(np.append(ladder, limits), *limits))
            for ladder, limits in zip(ladders, _LIMITS, strict=True)
        )
        return cls._of_density(prior, parts.log_density, _LIMITS, (first, second))

    @classmethod
    def _of_density(
        cls,
        prior: AnyJointPrior,
        log_density: Callable[[Floats, Floats], Floats],
        ends: Floats,
        start: tuple[Floats, Floats],
    ) -> Self:
        """Where a density is, from positions (n,) and (m,) to start at."""
        is_open = ends == _LIMITS
        with np.errstate(invalid="ignore"):
            top = np.max(log_density(start[0][None], start[1][None]))
        if top == -np.inf:
            message = f"prior {prior}: no density was found anywhere in its support: state a narrower one"
            raise PriorError(message)
        panels = Panels.of(log_density, *around(log_density, start))
        share, log_mass = panels.shares()
        for side in (0, 1):
            _require_proper(prior, log_density, start, side, (_LIMITS[side], is_open[side]), log_mass)
        mass = np.einsum("ij,rij->r", node_weights(), share)
        matters = mass > math.exp(-_NEARLY_NOTHING)
        corners = np.concatenate([panels.left[matters], panels.right[matters]])
        # Where the density was cut finely, so is what it is multiplied by.
        gaps = np.tile((panels.right - panels.left)[matters], (2, 1))
        edges = [
            finest(corners[:, side], gaps[:, side], np.min(corners[:, side]), np.max(corners[:, side]))
            for side in (0, 1)
        ]
        # An interquartile range of 1.349 standard deviations is that of a normal distribution.
        _, *of_mean = _quantiles(panels, share, 0)
        lowest, *of_variance = _quantiles(panels, share, 1)
        return cls(
            prior=prior,
            log_density=log_density,
            first=(float(ends[0, 0]), float(ends[1, 0])),
            last=(float(ends[0, 1]), float(ends[1, 1])),
            is_open=((bool(is_open[0, 0]), bool(is_open[0, 1])), (bool(is_open[1, 0]), bool(is_open[1, 1]))),
            edges=(edges[0], edges[1]),
            centre=(of_mean[1], of_variance[1]),
            width=((of_mean[2] - of_mean[0]) / 1.349, (of_variance[2] - of_variance[0]) / 1.349),
            lowest=lowest,
        )


def _near(line: DensityOnLine) -> Floats:
    """The edges of a density on a line that are not far out in its tails: few where it is smooth."""
    value = line.log_density(line.edges)
    gap = np.diff(line.edges)
    size = np.log(np.maximum(np.append(gap, gap[-1]), np.append(gap[0], gap)))
    matters = value + size > np.max(value + size) - _NEARLY_NOTHING
    beside = matters.copy()
    beside[1:] |= matters[:-1]
    beside[:-1] |= matters[1:]
    position, value = line.edges[beside], value[beside]
    kept = [0]
    for number in range(1, len(position)):
        is_far = position[number] - position[kept[-1]] > line.width
        if is_far or abs(value[number] - value[kept[-1]]) > _FALL:
            kept.append(number)
    return np.asarray(position[kept], dtype=np.float64)


def _laid_out(typical: float, ends: Floats, support: Floats, positions: Floats | None = None) -> Floats:
    """Locations at which a density is searched: in octaves, and evenly over a bounded support."""
    edges = [ends, typical - _SPREAD, typical + _SPREAD]
    if np.all(np.isfinite(support)):
        edges.append(np.linspace(ends[0], ends[1], _STEPS))
    if positions is not None:
        edges.append(positions)
    if ends[0] > -math.inf and abs(ends[1] - ends[0]) <= 2.0 * _FARTHEST:
        edges.append(np.arange(ends[0], ends[1], 2.0))
    return np.unique(np.clip(np.concatenate(edges), *ends))


def _log_spread(support: tuple[float, float], times: float, log_half: float) -> Floats | None:
    """Positions evenly over a bounded support of a variance or standard deviation."""
    if not math.isfinite(support[1]):
        return None
    inner = np.linspace(*support, _STEPS)[1:-1]
    logs: Floats = times * np.log(inner) - 2.0 * log_half
    return logs


def _require_proper(
    prior: AnyJointPrior,
    log_density: Callable[[Floats, Floats], Floats],
    start: tuple[Floats, Floats],
    side: int,
    ends: tuple[Floats, NDArray[np.bool_]],
    log_mass: float,
) -> None:
    """Refuse a density that has not all but vanished along an end of the grid, before its support does."""
    across = start[1 - side]
    gaps = np.gradient(across)
    for end, is_open in zip(*ends, strict=True):
        if not is_open:
            continue
        line = np.array([[end]])
        value = (
            log_density(line, across[None])[0, 0] if side == 0 else log_density(across[None], line)[0, :, 0]
        )
        beyond = np.logaddexp.reduce(value + np.log(gaps)) + math.log(abs(end))
        if beyond > log_mass - _LEFT_OUT:
            message = (
                f"prior {prior} is improper, or cannot be told from an improper one: its integral does not "
                "converge towards an end of its support. Give a prior that falls faster there, or a support "
                "that ends earlier"
            )
            raise PriorError(message)


def _quantiles(panels: Panels, share: Floats, side: int) -> tuple[float, ...]:
    """The lowest place of one coordinate, and its quartiles."""
    mass = node_weights() * share
    position = positions(panels.left, panels.right)[side]
    weight = np.sum(mass, axis=2 if side == 0 else 1).ravel()
    order = np.argsort(position.ravel())
    below = np.cumsum(weight[order])
    quartiles = np.interp([LEAST, 0.25, 0.5, 0.75], below / below[-1], position.ravel()[order])
    return tuple(quartiles.tolist())
