r"""Any public prior of a normal's mean and variance: two priors, or one log density of both.

.. math:: \log f(x, \lambda) = \log p(\mu, v) + \lambda, \qquad \mu = c + h x, \quad v = h^2 e^\lambda

is the density on the plane of means in half ranges h about the centre c and of log variances; where the prior
is of the standard deviation, :math:`\sqrt v` takes the place of v and half of the last term is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.densities import LEAST, Density, DensityOnLine, Line, ends_of, prior_error_of_values
from suffice.pipeline.planes.panels import Panels, around, finest, node_weights, places

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.densities import ScipyDistribution
    from suffice.pipeline.priors import Prior

    Floats: TypeAlias = NDArray[np.float64]

_LARGEST_MEAN = 1e75
_FARTHEST = 200.0
_LEFT_OUT = 15.0
"""Nats by which what lies beyond the plane's ends must be less than everything."""
_NEARLY_NOTHING = 40.0
_FALL = 4.0
_SPREAD = np.concatenate([np.arange(0.0, 8.0, 0.5), np.exp2(np.arange(3.0, 250.0))])
_STEPS = 67
_OF_VARIANCE = ("variance", "sd")


@dataclass(frozen=True, slots=True, init=False)
class Independent:
    """Independent priors of a normal's mean and of its variance, or of its standard deviation.

    ``Independent(mean=scipy.stats.norm(0, 10), sd=scipy.stats.halfnorm(scale=5))``

    Parameters
    ----------
    mean : frozen distribution of scipy.stats, Density, Prior or str
        Of the mean, in the column's unit; of a lognormal column, of the mean of its logarithm.
    variance, sd : the same
        One of the two: the prior of the variance, or that of its root. They are different parameters:
        ``variance=scipy.stats.halfnorm()`` is another prior than ``sd=scipy.stats.halfnorm()``.

    Raises
    ------
    PriorError
        Where not exactly one of ``variance`` and ``sd`` is given, or a part is no prior of one number.
    """

    mean: Density
    spread: Density
    of: str

    def __init__(
        self,
        *,
        mean: Density | ScipyDistribution | Prior | str | None = None,
        variance: Density | ScipyDistribution | Prior | str | None = None,
        sd: Density | ScipyDistribution | Prior | str | None = None,
    ) -> None:
        from suffice.pipeline.named_densities import one_number  # noqa: PLC0415 - it parses with this

        example = "Independent(mean=Normal(0, 10), sd=HalfNormal(5))"
        if mean is None:
            message = f"Independent lacks the prior of the mean: write it as {example}"
            raise PriorError(message)
        of, spread = _one_of("Independent", variance, sd, example)
        object.__setattr__(self, "mean", one_number(mean))
        object.__setattr__(self, "spread", one_number(spread))
        object.__setattr__(self, "of", of)

    def __str__(self) -> str:
        return f"Independent(mean={self.mean}, {self.of}={self.spread})"


@dataclass(frozen=True, slots=True, init=False)
class JointDensity:
    """Any prior of a normal's mean and variance, or standard deviation, by its log density.

    ``JointDensity(lambda mean, sd: -abs(mean) / sd - sd, mean=(-math.inf, math.inf), sd=(0, math.inf))``

    Parameters
    ----------
    log_density : callable
        Means and variances (or standard deviations), two arrays (n,) of numbers inside of the support ->
        log densities (n,) of both together, but for a constant; ``-inf`` where there is none.
    mean : (float, float)
        Ends of the mean's support, in the column's unit; infinite where it has none.
    variance, sd : (float, float)
        One of the two: what the density's second argument is, and the ends of its support.

    Raises
    ------
    PriorError
        Where not exactly one of ``variance`` and ``sd`` is given, or a support is no interval.
    """

    log_density: Callable[[Floats, Floats], Any] = field(repr=False)
    mean: tuple[float, float]
    spread: tuple[float, float]
    of: str

    def __init__(
        self,
        log_density: Callable[[Floats, Floats], Any],
        *,
        mean: tuple[float, float] | None = None,
        variance: tuple[float, float] | None = None,
        sd: tuple[float, float] | None = None,
    ) -> None:
        if not callable(log_density):
            message = f"JointDensity: log_density must be a function of two arrays, not {log_density!r}"
            raise PriorError(message)
        example = "JointDensity(log_density, mean=(-math.inf, math.inf), sd=(0, math.inf))"
        if mean is None:
            message = f"JointDensity lacks the support of the mean: write it as {example}"
            raise PriorError(message)
        of, spread = _one_of("JointDensity", variance, sd, example)
        object.__setattr__(self, "log_density", log_density)
        object.__setattr__(self, "mean", ends_of("JointDensity", "mean", mean))
        object.__setattr__(self, "spread", ends_of("JointDensity", of, spread))
        object.__setattr__(self, "of", of)
        if self.spread[0] < 0.0:
            message = f"JointDensity: {of} lies in 0..inf, and its support must too, not {self.spread!r}"
            raise PriorError(message)

    def __str__(self) -> str:
        mean, spread = ("..".join(f"{end:g}" for end in ends) for ends in (self.mean, self.spread))
        return f"JointDensity on mean {mean}, {self.of} {spread}"

    def __call__(self, mean: Floats, spread: Floats) -> Floats:
        """Log densities, checked: numbers or minus infinity, one for every pair.

        Raises
        ------
        PriorError
            Where they are anything else.
        """
        way_out = "it takes two arrays (n,) of numbers inside of its support and returns n log densities"
        try:
            with np.errstate(all="ignore"):
                value = np.asarray(self.log_density(mean.ravel(), spread.ravel()), dtype=np.float64)
        except (TypeError, ValueError) as error:
            message = f"prior {self}: its log density cannot be called with two arrays: {way_out}"
            raise PriorError(message) from error
        if value.shape != (mean.size,):
            message = (
                f"prior {self}: its log density of {mean.size} pairs has the shape {value.shape}: {way_out}"
            )
            raise PriorError(message)
        if np.any(np.isnan(value) | (value == np.inf)):
            raise prior_error_of_values(self)
        return value.reshape(mean.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityOnPlane:
    """A proper prior on the plane; made by ``DensityOnPlane.of``.

    Attributes
    ----------
    prior : Independent or JointDensity
    log_density : callable
        Places (n, p) and (n, q) -> log densities (n, p, q), but for a constant.
    first, last : (float, float)
        Ends of the support, as far as the plane goes.
    is_open : ((bool, bool), (bool, bool))
        Whether means, and log variances, have no lower and no upper end.
    edges : (ndarray, ndarray)
        Places along both sides between which the density is smooth, or negligible.
    centre, width : (float, float)
        Medians, and interquartile ranges over that of the standard normal.
    lowest : float
        Log variance that only ``LEAST`` of the prior is below.
    """

    prior: Independent | JointDensity
    log_density: Callable[[Floats, Floats], Floats] = field(repr=False)
    first: tuple[float, float]
    last: tuple[float, float]
    is_open: tuple[tuple[bool, bool], tuple[bool, bool]]
    edges: tuple[Floats, Floats]
    centre: tuple[float, float]
    width: tuple[float, float]
    lowest: float

    @classmethod
    def of(cls, prior: Independent | JointDensity, centre: float, half_range: float) -> Self:
        """Check that a prior is proper and find where it is.

        Raises
        ------
        PriorError
            Where its support leaves the parameters', or its integral is zero or does not converge.
        """
        if isinstance(prior, Independent):
            return cls._of_two(prior, centre, half_range)
        return cls._of_both(prior, centre, half_range)

    @classmethod
    def _of_two(cls, prior: Independent, centre: float, half_range: float) -> Self:
        times = 1.0 if prior.of == "variance" else 2.0
        log_half = math.log(half_range)
        mean = DensityOnLine.of(prior.mean, Line.IDENTITY, centre)
        spread = DensityOnLine.of(prior.spread, Line.LOGARITHM, 2.0 / times * log_half)

        def to_log_variance(place: Any) -> Any:
            return times * place - 2.0 * log_half

        def log_density(first: Floats, second: Floats) -> Floats:
            of_mean = mean.log_density(centre + half_range * first)
            of_spread = spread.log_density((second + 2.0 * log_half) / times)
            joint: Floats = of_mean[:, :, None] + of_spread[:, None, :]
            return joint

        ends = [(line.first, line.last) for line in (mean, spread)]
        limits = [line.line.ends for line in (mean, spread)]
        is_open = tuple(
            (bool(own[0] == limit[0]), bool(own[1] == limit[1]))
            for own, limit in zip(ends, limits, strict=True)
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
            # Rounding must not carry a place at an end out of the support.
            mean = np.clip(centre + half_range * first, *prior.mean)
            spread = np.clip(np.exp((second + 2.0 * log_half) / times), *prior.spread)
            both = np.broadcast_arrays(mean[:, :, None], spread[:, None, :])
            return prior(*both) + second[:, None, :] / times

        with np.errstate(divide="ignore"):
            log_ends = times * np.log(np.array(prior.spread)) - 2.0 * log_half
        mean_ends = (np.array(prior.mean) - centre) / half_range
        limits = np.array([[-_LARGEST_MEAN, _LARGEST_MEAN], [-_FARTHEST, _FARTHEST]])
        ends = np.clip([mean_ends, log_ends], limits[:, :1], limits[:, 1:])
        is_open = ends == limits
        start = (
            _laid_out(0.0, ends[0], np.array(mean_ends)),
            _laid_out(0.0, ends[1], log_ends, places=_log_spread(prior.spread, times, log_half)),
        )
        with np.errstate(invalid="ignore"):
            top = np.max(log_density(start[0][None], start[1][None]))
        if top == -np.inf:
            message = f"prior {prior}: no density was found anywhere in its support: state a narrower one"
            raise PriorError(message)
        panels = Panels.of(log_density, *around(log_density, start))
        share, log_mass = panels.shares()
        for side in (0, 1):
            _require_proper(prior, log_density, start, side, (limits[side], is_open[side]), log_mass)
        mass = np.einsum("ij,rij->r", node_weights(), share)
        matters = mass > math.exp(-_NEARLY_NOTHING)
        corners = np.concatenate([panels.left[matters], panels.right[matters]])
        gaps = np.tile((panels.right - panels.left)[matters], (2, 1))
        edges = [
            finest(corners[:, side], gaps[:, side], np.min(corners[:, side]), np.max(corners[:, side]))
            for side in (0, 1)
        ]
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


def _one_of(kind: str, variance: Any, sd: Any, example: str) -> tuple[str, Any]:
    """What the second prior is of, and that prior."""
    given = [(of, value) for of, value in zip(_OF_VARIANCE, (variance, sd), strict=True) if value is not None]
    if not given:
        message = f"{kind} lacks variance= or sd=, what the spread is: write it as {example}"
        raise PriorError(message)
    if len(given) > 1:
        message = f"{kind} takes variance= or sd=, not both: write it as {example}"
        raise PriorError(message)
    return given[0]


def _near(line: DensityOnLine) -> Floats:
    """The edges of a density on a line that are not far out in its tails: few where it is smooth."""
    value = line.log_density(line.edges)
    gap = np.diff(line.edges)
    size = np.log(np.maximum(np.append(gap, gap[-1]), np.append(gap[0], gap)))
    matters = value + size > np.max(value + size) - _NEARLY_NOTHING
    beside = matters.copy()
    beside[1:] |= matters[:-1]
    beside[:-1] |= matters[1:]
    place, value = line.edges[beside], value[beside]
    kept = [0]
    for number in range(1, len(place)):
        is_far = place[number] - place[kept[-1]] > line.width
        if is_far or abs(value[number] - value[kept[-1]]) > _FALL:
            kept.append(number)
    return np.asarray(place[kept], dtype=np.float64)


def _laid_out(typical: float, ends: Floats, support: Floats, places: Floats | None = None) -> Floats:
    """Places to look for a density at: in octaves, and evenly over a bounded support."""
    found = [ends, typical - _SPREAD, typical + _SPREAD]
    if np.all(np.isfinite(support)):
        found.append(np.linspace(ends[0], ends[1], _STEPS))
    if places is not None:
        found.append(places)
    if ends[0] > -math.inf and abs(ends[1] - ends[0]) <= 2.0 * _FARTHEST:
        found.append(np.arange(ends[0], ends[1], 2.0))
    return np.unique(np.clip(np.concatenate(found), *ends))


def _log_spread(support: tuple[float, float], times: float, log_half: float) -> Floats | None:
    """Places evenly over a bounded support of a variance or standard deviation."""
    if not math.isfinite(support[1]):
        return None
    inner = np.linspace(*support, _STEPS)[1:-1]
    logs: Floats = times * np.log(inner) - 2.0 * log_half
    return logs


def _require_proper(
    prior: JointDensity,
    log_density: Callable[[Floats, Floats], Floats],
    start: tuple[Floats, Floats],
    side: int,
    ends: tuple[Floats, NDArray[np.bool_]],
    log_mass: float,
) -> None:
    """Refuse a density that has not all but vanished along an end of the plane, before its support does."""
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
    place = places(panels.left, panels.right)[side]
    weight = np.sum(mass, axis=2 if side == 0 else 1).ravel()
    order = np.argsort(place.ravel())
    below = np.cumsum(weight[order])
    found = np.interp([LEAST, 0.25, 0.5, 0.75], below / below[-1], place.ravel()[order])
    return tuple(found.tolist())
