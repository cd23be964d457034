r"""Any public prior of a parameter: a log density on a stated support, and what quadrature needs of it.

Model. Densities are looked at on the line on which conjugate distributions are nearly normal: the logarithm
of rates, scales and variances, the logit of probabilities, means as they are. With :math:`\theta = h(x)`,

.. math:: \log f(x) = \log p(h(x)) + \log h'(x). \qquad (1)

A prior is proper where f has a finite integral Z above 0 over the stated support. Where the support goes on
beyond the end e of the positions that are worked with, this is taken for granted if

.. math:: \log f(e) + \log |e| < \log Z - 15, \qquad (2)

because a tail that falls from there on at least as fast as :math:`x^{-2}` has no more mass than :math:`f(e)
|e|`.

Symbols:

- theta: the parameter, in its unit, in ``lower``..``upper``
- x: ``position``, any real number
- p: ``Density.log_density``, but for a constant
- f: ``DensityOnLine.log_density``
- Z: ``log_mass``

Method. Numerical. Panels come from ``adaptive_blocks.divide_line``; a bounded support is scanned at 262,145
values for spikes and steps, any other at as many between two far quantiles. The mass is accepted where a
second rule with other nodes, summed over panels, and the distribution function where it is known, agree with
the first to 1e-4 of it. No finite set of values sees every spike.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.adaptive_blocks import divide_line
from suffice.pipeline.math.distributions.quadrature import integral_rule
from suffice.pipeline.math.distributions.weighted_sum import Summand
from suffice.pipeline.math.priors.checks import called, ends_of, is_finite, prior_error_of_values
from suffice.pipeline.math.priors.names import named_by_scipy

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.typing import Floats


_NOTHING = -1e100
"""Replaces the logarithm of 0 where parabolas are fitted."""
_FLOOR = -1e3
"""Replaces lower log densities where bends are measured."""
_NEARLY_ALL = (0.0005, 0.9995)
"""Quantiles between which an unbounded support is scanned."""
_SCANNED = (1 << 18) + 1
"""Values at which a bounded support is scanned: a spike of a millionth of it is higher than its surroundings
over two of these, if it holds a few per cent of the mass."""
_LOOKED_AT, _AT_A_TIME = 1 << 24, 1 << 18
"""Values at which a density is looked at closely, all together and at a time: a spike whose standard
deviation is a hundred-millionth of the support stands out over two of these, if it holds a few per cent."""
_SHARP = 0.05
"""Nats by which a log density bends between neighbours of a scan where panels have to be finer."""
_STRIDES = (1, 8, 64, 512)
_MOST_SHARP = 256
_OFF_MIDDLE = 0.382
_NARROWEST = 1e-13
"""Width of a panel, over one more than its position, in which a density is no more than a point."""
_AGREES = 1e-4
"""Share of a prior by which two rules, or one and a distribution function, may disagree."""
_FLOOR_UNDER_IT = (
    "put a floor under the distance to that value and hint at it, as np.log(np.abs(p - 0.3) + 1e-12) with "
    "hints=(0.3,)"
)
_RISE = 10.0
_SPREAD = np.concatenate([np.arange(0.0, 8.0, 0.25), np.exp2(np.arange(3.0, 250.0))])
LEVELS = (1e-9, 1e-5, 1e-3, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 0.999, 1.0 - 1e-5, 1.0 - 1e-9)
_ROUNDING = 1e-12
"""By how much the computed ends of a support may miss those of the parameter's."""
LEAST = 1e-4
_LEFT_OUT = 15.0
"""Nats by which the mass beyond the ends of the line must be below all of it."""


class ScipyDistribution(Protocol):
    """A frozen continuous distribution of ``scipy.stats``."""

    def logpdf(self, x: Any) -> Any:
        """Log densities."""

    def support(self) -> Any:
        """Both ends of the support."""

    def ppf(self, q: Any) -> Any:
        """Quantiles."""


@dataclass(frozen=True, slots=True)
class Density(Summand):
    """Any prior of one parameter, by its log density: ``Density(lambda p: 2 * np.log(p), 0, 1)``.

    Parameters
    ----------
    log_density : callable
        The parameter, an array (n,) of numbers inside of the support -> log densities (n,), but for a
        constant; ``-inf`` where there is none.
    lower, upper : float
        The support, in the parameter's unit; infinite where it has no end.
    hints : tuple of float
        Values at which the density is high or bends, in the parameter's unit: the centre of a narrow spike
        and a value on either side of it. A bounded support is scanned at 262,145 values, so that spikes of a
        millionth of it are seen; no finite set of values sees every spike.
    cdf : callable, optional
        The distribution function, (n,) -> (n,): what quadrature finds is held against it.

    Raises
    ------
    PriorError
        Where the support is no interval. That the density is proper is checked for the parameter that it
        is the prior of.
    """

    log_density: Callable[[Floats], Any] = field(repr=False)
    lower: float
    upper: float
    name: str = field(default="Density", kw_only=True)
    hints: tuple[float, ...] = field(default=(), kw_only=True, repr=False)
    cdf: Callable[[Floats], Any] | None = field(default=None, kw_only=True, repr=False)
    is_named: bool = field(default=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.log_density):
            message = f"Density: log_density must be a function of an array, not {self.log_density!r}"
            raise PriorError(message)
        ends_of("Density", "support", (self.lower, self.upper))
        given: Any = self.hints
        if isinstance(given, str) or not np.iterable(given) or not all(map(is_finite, given)):
            message = f"Density: hints must be finite numbers, as hints=(0.29, 0.3, 0.31), not {given!r}"
            raise PriorError(message)

    def __str__(self) -> str:
        return self.name if self.is_named else f"{self.name} on {self.lower:g}..{self.upper:g}"

    @classmethod
    def of(cls, prior: object) -> Self | None:
        """Return a density, or that of a frozen distribution of ``scipy.stats``; None of anything else.

        Raises
        ------
        PriorError
            Where the distribution is not one of a real number.
        """
        if isinstance(prior, cls):
            return prior
        if not type(prior).__module__.startswith("scipy.stats"):
            return None
        given: Any = prior
        if not all(hasattr(given, needed) for needed in ("logpdf", "support", "ppf", "dist")):
            message = (
                "a prior from scipy.stats must be a frozen continuous distribution of one number, as "
                "scipy.stats.lognorm(0.5)"
            )
            raise PriorError(message)
        if any(np.ndim(value) for value in (*given.args, *given.kwds.values())):
            message = (
                f"a prior from scipy.stats must be univariate: give {given.dist.name} plain numbers and "
                "no arrays"
            )
            raise PriorError(message)
        name = named_by_scipy(given)
        lower, upper = (float(end) for end in given.support())
        if math.isnan(lower) or math.isnan(upper):
            message = f"{name} is no distribution: one of its numbers is not where scipy.stats allows it"
            raise PriorError(message)
        hints = tuple(float(position) for position in given.ppf(np.array(LEVELS)))
        return cls(given.logpdf, lower, upper, name=name, hints=hints, cdf=getattr(given, "cdf", None))

    def __call__(self, parameter: Floats) -> Floats:
        """Log densities, checked: numbers or minus infinity, one for every parameter.

        Raises
        ------
        PriorError
            Where they are anything else.
        """
        way_out = "it takes an array (n,) of numbers inside of its support and returns n log densities"
        value = called(self, self.log_density, (parameter.ravel(),), way_out)
        if value.shape != (parameter.size,):
            message = f"prior {self}: its log density of {parameter.size} numbers has the shape {value.shape}"
            raise PriorError(f"{message}: {way_out}")
        infinite = parameter.ravel()[value == np.inf]
        if infinite.size:
            message = (
                f"prior {self}: its density is infinite at {infinite[0]:g}: where it has an integral all the "
                f"same, {_FLOOR_UNDER_IT}; else narrow the support"
            )
            raise PriorError(message)
        if np.any(np.isnan(value)):
            raise prior_error_of_values(self)
        return value.reshape(parameter.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityOnLine:
    """A proper density on the line; made by ``DensityOnLine.of``.

    Attributes
    ----------
    density : Density
    line : Line
    first, last : float
        Ends of the support, as far as the line goes.
    edges : ndarray of shape (n_edges,), float64
        Ascending, from first to last: between two of them the density is smooth, or negligible.
    centre, width : float
        Median, and the interquartile range over that of the standard normal.
    lowest : float
        Only ``LEAST`` of the prior is below.
    log_mass : float
        Log of the integral of the density as it was given.
    """

    density: Density
    line: Line
    first: float
    last: float
    edges: Floats
    centre: float
    width: float
    lowest: float
    log_mass: float

    @classmethod
    def of(
        cls,
        density: Density,
        line: Line,
        typical: float,
        *,
        is_scanned: bool = False,
        sharp: Floats | None = None,
        is_looked_at: bool = False,
    ) -> Self:
        """Check that a density is proper and find where it is; `typical` is a position to start at.

        A bounded support is scanned unless there are hints that suffice. One that is not, without hints, is
        scanned where nearly all of its mass was seen, and looked at again; `sharp` is what that scan saw.
        What neither hints nor a distribution function vouch for is at last looked at closely.

        Raises
        ------
        PriorError
            Where its support leaves the parameter's, or its integral is zero or does not converge.
        """
        low, high = line.domain
        if density.lower < low - _ROUNDING or density.upper > high + _ROUNDING:
            shown = density if density.is_named else "prior"
            both = f"{low:g}, {high:g}" if math.isfinite(high) else f"lower={low:g}"
            message = (
                f"prior {density}: the parameter lies in {low:g}..{high:g}, and the support must too: "
                f"truncate the prior, as Truncated({shown}, {both})"
            )
            raise PriorError(message)
        # The support on the line, cut where numbers end.
        ends = line.position(np.clip([density.lower, density.upper], low, high))
        first, last = (float(end) for end in np.clip(ends, *line.ends))
        is_bounded = _is_bounded(density)
        around = _places(density, line, typical, (first, last), is_scanned=is_scanned)
        if sharp is not None:
            around.append(sharp)
        positions = np.clip(np.concatenate(around), first, last)
        edges = np.unique(positions)

        def evaluate(position: Floats) -> Floats:
            return np.maximum(_log_density(density, line, position), _NOTHING)

        left, right, top = divide_line(evaluate, edges, most_rise=_RISE)
        if top <= _NOTHING:
            message = f"prior {density}: no density was found anywhere in its support: state a narrower one"
            raise PriorError(message)
        # Z by the rule of every panel.
        nodes, weights = integral_rule(left, right)
        # The mass of every node, relative to the highest density seen.
        mass = np.exp(evaluate(nodes) - top) * weights
        with np.errstate(divide="ignore"):
            log_mass = float(top + np.log(np.sum(mass)))
        _require_proper(density, line, (first, last), log_mass)
        # The distribution function at the nodes.
        below = np.cumsum(mass) / np.sum(mass)
        low, high = np.interp(_NEARLY_ALL, below, nodes.ravel()).tolist()
        if not is_bounded and not density.hints and sharp is None:
            seen = _unresolved(density, line, np.linspace(low, high, _SCANNED))
            return cls.of(density, line, typical, sharp=seen)
        if not _is_seen(density, line, (left, right), lambda place: np.exp(evaluate(place) - top), mass):
            if (
                is_bounded and density.hints and not is_scanned
            ):  # a histogram: its quantiles are not its steps
                return cls.of(density, line, typical, is_scanned=True)
            message = (
                f"prior {density}: its mass is not seen whole: two rules of quadrature, or one and its cdf, "
                "disagree. State hints=(...), values at and on either side of every spike and step, or a "
                f"narrower support; where it is infinite at a value, {_FLOOR_UNDER_IT}"
            )
            raise PriorError(message)
        narrow = np.empty(0) if is_looked_at else _narrow(density, line, (low, high))
        if len(narrow):
            sharp = narrow if sharp is None else np.concatenate([sharp, narrow])
            return cls.of(density, line, typical, sharp=sharp, is_looked_at=True)
        lowest, lower, middle, upper = np.interp([LEAST, 0.25, 0.5, 0.75], below, nodes.ravel())
        return cls(
            density=density,
            line=line,
            first=first,
            last=last,
            edges=np.unique(np.concatenate([[first], left, right, _far(typical, first, last), [last]])),
            centre=float(middle),
            # The interquartile range of the standard normal is 1.349.
            width=float(upper - lower) / 1.349,
            lowest=float(lowest),
            log_mass=log_mass,
        )

    def log_density(self, position: Floats) -> Floats:
        """Log density at positions, but for a constant."""
        return _log_density(self.density, self.line, position)


def _is_bounded(density: Density) -> bool:
    return math.isfinite(density.lower) and math.isfinite(density.upper)


def _places(
    density: Density, line: Line, typical: float, ends: tuple[float, float], *, is_scanned: bool
) -> list[Any]:
    """Return positions to begin with: ends, a typical one, hints, and of a bounded support what scans see."""
    low, high = line.domain
    places: list[Any] = [ends, np.ravel([typical - _SPREAD, typical + _SPREAD])]
    is_bounded = _is_bounded(density)
    if is_bounded:
        inner = np.clip(np.linspace(density.lower, density.upper, 67)[1:-1], low, high)
        places += [line.position(inner), np.linspace(*ends, 67)]
    if density.hints:
        places.append(line.position(np.clip(np.array(density.hints), low, high)))
    if is_bounded and (is_scanned or not density.hints):
        scanned = np.clip(np.linspace(density.lower, density.upper, _SCANNED), low, high)
        places.append(_unresolved(density, line, np.clip(line.position(scanned), *ends)))
    return places


def _unresolved(density: Density, line: Line, positions: Floats) -> Floats:
    """Return the ascending positions about which a scan sees the density bend sharply: spikes and steps."""
    positions = np.unique(positions)
    value = np.maximum(_log_density(density, line, positions), _FLOOR)
    edges = []
    for stride in _STRIDES:
        place, height = positions[::stride], value[::stride]
        # The second difference: the step squared times the second derivative, or a kink.
        bend = np.abs(height[:-2] - 2.0 * height[1:-1] + height[2:])
        # Towards ends of the line steps are long, and bends are those of a smooth density.
        steps = np.diff(place)
        # Second differences mean bends on even steps only.
        is_even = np.maximum(steps[:-1], steps[1:]) < 1.5 * np.minimum(steps[:-1], steps[1:])
        sharp = np.flatnonzero(is_even & (bend > _SHARP))
        sharp = sharp[np.argsort(bend[sharp])[-_MOST_SHARP:]]
        edges += [place[sharp], place[sharp + 1], place[sharp + 2]]
    return np.concatenate(edges)


def _narrow(density: Density, line: Line, ends: tuple[float, float]) -> Floats:
    """Return positions of narrow spikes between two, of a density of which only values are known."""
    if density.cdf is not None or density.hints:
        return np.empty(0)
    low, high = line.parameter(np.array(ends)).tolist()
    if _is_bounded(density):
        low, high = density.lower, density.upper
    return line.position(np.clip(_looked_at_closely(density, low, high), *line.domain))


@functools.lru_cache(maxsize=128)
def _looked_at_closely(density: Density, low: float, high: float) -> Floats:
    """Return parameters about which a density bends sharply, of very many that are evenly spaced."""
    step = (high - low) / _LOOKED_AT
    places, bends = [np.empty(0)], [np.empty(0)]
    for first in range(0, _LOOKED_AT, _AT_A_TIME):
        # Three more than a part has: bends at its ends are seen as well.
        parameter = low + step * (np.arange(first, first + _AT_A_TIME + 3.0) + 0.5)
        parameter = parameter[parameter < high]
        value = np.maximum(density(parameter), _FLOOR)
        bend = np.abs(value[:-2] - 2.0 * value[1:-1] + value[2:])
        sharp = np.flatnonzero(bend > _SHARP)
        sharp = sharp[np.argsort(bend[sharp])[-_MOST_SHARP:]]
        places.append(parameter[sharp + 1])
        bends.append(bend[sharp])
    kept = np.argsort(np.concatenate(bends))[-_MOST_SHARP:]
    place = np.concatenate(places)[kept]
    # A spike lies within two steps of where it is seen.
    return np.unique(np.clip(place[:, None] + step * np.arange(-2.0, 3.0), low, high))


def _is_seen(
    density: Density,
    line: Line,
    panels: tuple[Floats, Floats],
    relative: Callable[[Floats], Floats],
    mass: Floats,
) -> bool:
    """Whether a second rule, and the density's own distribution function, confirm its mass.

    The second rule has other nodes: 8 on either side of a cut that is off the middle of every panel.
    """
    left, right = panels
    # Off the middle, at the golden section, so that the second rule has other nodes.
    cut = left + _OFF_MIDDLE * (right - left)
    again = np.zeros(len(left))
    for ends in ((left, cut), (cut, right)):
        nodes, weights = integral_rule(*ends, 8)
        again += np.sum(relative(nodes) * weights, axis=1)
    first = np.sum(mass, axis=1)
    total = float(np.sum(first))
    away = np.inf
    # A density that is high at single numbers alone has its mass where numbers end.
    at_points = right - left < _NARROWEST * (1.0 + np.abs(left))
    if total > 0.0 and float(np.sum(first[at_points])) <= _AGREES * total:
        # The disagreement in total variation, panel by panel.
        away = float(np.sum(np.abs(again - first))) / total
        if density.cdf is not None and away <= _AGREES:
            rule = "its cdf takes an array (n,) and returns n probabilities"
            below = np.clip(line.parameter(right), density.lower, density.upper)
            known = called(density, density.cdf, (below,), rule)
            away = float(np.max(np.abs(np.cumsum(first) / total - known)))
    return away <= _AGREES


def _far(typical: float, first: float, last: float) -> Floats:
    """Positions in octaves: moments may rest on tails where hardly any density is left."""
    octaves = np.concatenate([typical - _SPREAD[_SPREAD >= 8.0], typical + _SPREAD[_SPREAD >= 8.0]])
    return octaves[(octaves > first) & (octaves < last)]


def _log_density(density: Density, line: Line, position: Floats) -> Floats:
    # Rounding must not carry a position at an end out of the support.
    parameter = np.clip(line.parameter(position), density.lower, density.upper)
    # (1).
    return density(parameter) + line.log_slope(position)


def _require_proper(density: Density, line: Line, ends: tuple[float, float], log_mass: float) -> None:
    """Refuse a density that has not all but vanished where numbers end, before its support does."""
    for end, limit in zip(ends, line.ends, strict=True):
        if end != limit:
            continue
        # (2).
        beyond = _log_density(density, line, np.array([end]))[0] + math.log(abs(end))
        if beyond > log_mass - _LEFT_OUT:
            number = float(line.parameter(np.array(end)))
            message = (
                f"prior {density} is improper, or cannot be told from an improper one: its integral does not "
                f"converge before {number:.2g}, where numbers end. Give a prior that falls faster towards "
                "there, or a support that ends earlier, with a point for what lies beyond: in a sum "
                "Gamma(0.01, 0.01) is all but 0.152*Point(0) + 0.848*Truncated(Gamma(0.01, 0.01), "
                "lower=1e-80)"
            )
            raise PriorError(message)
