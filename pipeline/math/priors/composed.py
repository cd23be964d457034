r"""Priors of one number that are composed: point masses, weighted sums of anything, and truncations.

Model. A weighted sum has the distribution

.. math:: \pi = \sum_k w_k \, \pi_k \Big/ \sum_k w_k, \qquad
    \pi_k = \delta_{a_k} \text{ or a density.} \qquad (1)

Given that the parameter lies in l..u, ends included, it is

.. math:: \pi(\theta \mid l..u) \propto \sum_k w_k \, \pi_k(\theta) \, 1(l \le \theta \le u), \qquad (2)

so that a component counts by its weight times what it has within, the integral of its density over l..u.

Symbols:

- w_k: ``weights``; a_k: ``values``, in the parameter's unit; l, u: ``lower``, ``upper``
- on the line, of all of it together: ``atoms`` with ``log_chance``, and ``parts`` with ``log_weight``

Method. Each density is integrated for itself, as in ``density.py``, so that a narrow component is seen
however wide the others are.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.distribution import Line, Prior, written
from suffice.pipeline.math.distributions.weighted_sum import Summand, WeightedSum
from suffice.pipeline.math.priors.by_name import Independent, JointDensity, one_number
from suffice.pipeline.math.priors.checks import ends_of
from suffice.pipeline.math.priors.density import Density, DensityOnLine
from suffice.pipeline.math.priors.log_prior import LogPrior
from suffice.pipeline.math.priors.mixtures import Mixture, parse_mixture
from suffice.pipeline.math.priors.other_libraries import MOST_POINTS, density_of, weights_of

if TYPE_CHECKING:
    from suffice.typing import Floats


_FEWEST_HINTS = 3


@dataclass(frozen=True, slots=True, init=False)
class Points(Summand):
    """A parameter that is one of a few values: ``Points({0.1: 0.2, 0.5: 0.8})``.

    Parameters
    ----------
    weights : mapping of float to float
        Value, in the parameter's unit -> weight above 0; they need not sum to 1.
    name : str
        What it is called, where it is not written out.

    Raises
    ------
    PriorError
        Where a value is no finite number, a weight none above 0, or there are none or more than 1,000.
    """

    values: tuple[float, ...]
    weights: tuple[float, ...]
    name: str

    def __init__(self, weights: Mapping[float, float], *, name: str = "") -> None:
        given: Any = weights
        if not isinstance(given, Mapping) or not 0 < len(given) <= MOST_POINTS:
            message = (
                f"Points takes 1 to {MOST_POINTS} values with their weights: Points({{0.1: 0.2, 0.5: 0.8}})"
            )
            raise PriorError(message)
        pairs = [
            (
                _finite("Points", "every value", value),
                _finite("Points", "every weight", weight, positive=True),
            )
            for value, weight in weights.items()
        ]
        values, shares = zip(*sorted(pairs), strict=True)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", shares)
        object.__setattr__(self, "name", name)

    def __str__(self) -> str:
        if self.name:
            return self.name
        pairs = zip(self.values, self.weights, strict=True)
        return f"Points({{{', '.join(f'{written(value)}: {written(weight)}' for value, weight in pairs)}}})"


@dataclass(frozen=True, slots=True, init=False)
class Point(Points):
    """A parameter that is known, or a summand that says how probable a single value is: ``Point(0.3)``.

    Parameters
    ----------
    value : float
        In the parameter's unit.

    Raises
    ------
    PriorError
        Where it is no finite number.
    """

    def __init__(self, value: float) -> None:
        object.__setattr__(self, "values", (_finite("Point", "the value", value),))
        object.__setattr__(self, "weights", (1.0,))
        object.__setattr__(self, "name", "")

    def __str__(self) -> str:
        return f"Point({written(self.values[0])})"


@dataclass(frozen=True, slots=True, init=False)
class Truncated(Summand):
    """A prior of one number given that it lies in a range: ``Truncated(Beta(1, 1), 0.1, 0.4)``.

    Parameters
    ----------
    prior : Prior, Mixture, Density, Points, WeightedSum, str or distribution of scipy.stats
        Any prior of one number.
    lower, upper : float
        Ends of the range, in the parameter's unit; a point mass at an end belongs to it. Infinite where they
        are left out.

    Raises
    ------
    PriorError
        Where the range is none.
    """

    prior: Any
    lower: float
    upper: float

    def __init__(self, prior: Any, lower: float = -math.inf, upper: float = math.inf) -> None:
        ends_of("Truncated", "the interval", (lower, upper))
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "lower", float(lower))
        object.__setattr__(self, "upper", float(upper))

    def __str__(self) -> str:
        ends = "".join(
            f", {name}={written(end)}"
            for name, end in (("lower", self.lower), ("upper", self.upper))
            if math.isfinite(end)
        )
        if math.isfinite(self.lower) and math.isfinite(self.upper):
            ends = f", {written(self.lower)}, {written(self.upper)}"
        return f"Truncated({self.prior}{ends})"


Composed: TypeAlias = Points | Truncated | WeightedSum
OfOneNumber: TypeAlias = Density | Points | Truncated | WeightedSum
"""Priors of one number that are answered by quadrature."""
AnyDensity: TypeAlias = OfOneNumber | Independent | JointDensity | LogPrior
"""Priors that are neither conjugate nor mixtures of such."""


def _finite(kind: str, name: str, value: object, *, positive: bool = False) -> float:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    if not is_number or not math.isfinite(float(value)) or (positive and float(value) <= 0.0):  # type: ignore[arg-type]
        rule = "a finite number above 0" if positive else "a finite number"
        message = f"{kind}: {name} must be {rule}, not {value!r}"
        raise PriorError(message)
    return float(value)  # type: ignore[arg-type]


def simplest(prior: Any, parse: Callable[[str], Any] = parse_mixture) -> Any:
    """Return a prior as it is answered: what is composed of conjugate ones alone may be one of these.

    Sums of conjugate priors of one kind are a ``Mixture``, a density truncated is a density, and
    distributions of other libraries are densities or points; anything else is what it was. Texts
    within are read by `parse`.

    Raises
    ------
    PriorError
        Where a component is no prior of one number.
    """
    if isinstance(prior, str):
        return parse(prior)
    if isinstance(prior, WeightedSum):
        return _simplest_sum(prior, parse)
    if isinstance(prior, Truncated):
        return _simplest_truncated(prior, parse)
    if isinstance(prior, Summand):
        return prior
    weights = weights_of(prior)
    return Points(weights[1], name=weights[0]) if weights is not None else density_of(prior) or prior


def _simplest_sum(prior: WeightedSum, parse: Callable[[str], Any]) -> Any:
    components = [simplest(component, parse) for component in prior.components]
    if len(components) == 1:
        return components[0]
    parts = [part for pair in zip(prior.weights, components, strict=True) for part in pair]
    if isinstance(components[0], Prior) and all(type(each) is type(components[0]) for each in components):
        return Mixture(*parts)
    for each in components:
        _require_of_one_number(each)
    return WeightedSum(*parts)


def _simplest_truncated(prior: Truncated, parse: Callable[[str], Any]) -> Truncated | Density:
    inner = simplest(prior.prior, parse)
    _require_of_one_number(inner)
    if isinstance(inner, Points | Truncated | WeightedSum | Mixture):
        return Truncated(inner, prior.lower, prior.upper)
    density = one_number(inner)
    within = _within(density, prior.lower, prior.upper)
    if within is None:
        raise _nothing_within(prior)
    name = str(Truncated(inner, prior.lower, prior.upper))
    return dataclasses.replace(within, name=name, is_named=density.is_named)


def is_known_by_values(prior: object) -> bool:
    """Whether a prior has a density that nothing but its values tells of."""
    match prior:
        case Density():
            return prior.cdf is None and not prior.hints
        case WeightedSum():
            return any(map(is_known_by_values, prior.components))
        case Truncated():
            return is_known_by_values(prior.prior)
    return False


def _require_of_one_number(prior: object) -> None:
    if isinstance(prior, Points | Truncated | WeightedSum | Density):
        return
    for component in prior.components if isinstance(prior, Mixture) else (prior,):
        one_number(component)


def _within(density: Density, lower: float, upper: float) -> Density | None:
    """Return a density on what a range has of its support; None where that is nothing."""
    low, high = max(density.lower, lower), min(density.upper, upper)
    if not low < high:
        return None
    # Hints beyond the range say nothing, and few of them may miss what a scan sees.
    hints = tuple(hint for hint in density.hints if low < hint < high)
    hints = hints if len(hints) >= _FEWEST_HINTS else ()
    return dataclasses.replace(density, lower=low, upper=high, hints=hints, cdf=None)


def _nothing_within(prior: Truncated) -> PriorError:
    return PriorError(f"prior {prior}: it has nothing within these ends: state others")


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The densities of a composed prior, on the line; other attributes as in ``DensityOnLine``.

    Attributes
    ----------
    parts : tuple of DensityOnLine
    log_weight : ndarray of shape (n_parts,), float64
        Log prior probabilities.
    """

    parts: tuple[DensityOnLine, ...]
    log_weight: Floats
    line: Line
    first: float
    last: float
    edges: Floats
    centre: float
    width: float
    lowest: float

    @classmethod
    def of(cls, parts: tuple[DensityOnLine, ...], log_weight: Floats) -> Self:
        """Join densities that have these log prior probabilities."""
        share = np.exp(log_weight - np.logaddexp.reduce(log_weight))
        centres, widths = (np.array([getattr(part, name) for part in parts]) for name in ("centre", "width"))
        middle = float(share @ centres)
        return cls(
            parts=parts,
            log_weight=log_weight,
            line=parts[0].line,
            first=min(part.first for part in parts),
            last=max(part.last for part in parts),
            edges=np.unique(np.concatenate([part.edges for part in parts])),
            centre=middle,
            # The law of total variance, on the line.
            width=math.sqrt(float(share @ (widths**2 + (centres - middle) ** 2))),
            lowest=min(part.lowest for part in parts),
        )

    def log_density(self, position: Floats) -> Floats:
        """Log of the densities' part of (1) at positions."""
        terms = []
        for log_weight, part in zip(self.log_weight, self.parts, strict=True):
            value = np.full(position.shape, -np.inf)
            inside = (position >= part.first) & (position <= part.last)
            value[inside] = part.log_density(position[inside]) - part.log_mass + log_weight
            terms.append(value)
        together: Floats = np.logaddexp.reduce(terms)
        return together


OnLine: TypeAlias = DensityOnLine | Together


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedOnLine:
    """A composed prior, checked, on the line; made by ``ComposedOnLine.of``.

    Attributes
    ----------
    line : Line
    atoms : ndarray of shape (n_atoms,), float64
        Ascending values, in the parameter's unit.
    log_chance : ndarray of shape (n_atoms,), float64
        Log prior probabilities.
    together : Together or None
        All densities, with what is left of the probability; None where there are atoms alone.
    """

    line: Line
    atoms: Floats
    log_chance: Floats
    together: Together | None

    @classmethod
    def of(cls, prior: Composed | Mixture, line: Line, typical: float) -> Self:
        """Check all that a prior is composed of; `typical` is a position to start at.

        Raises
        ------
        PriorError
            Where a component is improper or leaves the parameter's domain, or nothing is within a range.
        """
        points, parts = _resolved(prior, line, typical, (-math.inf, math.inf))
        merged: dict[float, float] = {}
        for value, log_chance in points:
            merged[value] = float(np.logaddexp(merged.get(value, -math.inf), log_chance))
        low, high = line.domain
        outside = [value for value in merged if not low <= value <= high]
        if outside:
            message = (
                f"prior {prior}: the parameter lies in {low:g}..{high:g}, and {outside[0]:g} does not: leave "
                "this point out"
            )
            raise PriorError(message)
        atoms = sorted(merged)
        log_weight = np.array([weight for _, weight in parts])
        return cls(
            line=line,
            atoms=np.array(atoms, dtype=np.float64),
            log_chance=np.array([merged[value] for value in atoms], dtype=np.float64),
            together=Together.of(tuple(part for part, _ in parts), log_weight) if parts else None,
        )

    @property
    def log_rest(self) -> float:
        """Log prior probability of all densities together."""
        return -math.inf if self.together is None else float(np.logaddexp.reduce(self.together.log_weight))

    @property
    def positions(self) -> Floats:
        """Of the atoms, as far as the line goes."""
        return np.clip(self.line.position(self.atoms), *self.line.ends)

    @property
    def centre_and_width(self) -> tuple[float, float]:
        """About the mean and the standard deviation on the line, of atoms and densities."""
        centres, widths = self.positions, np.zeros(len(self.atoms))
        share = np.exp(self.log_chance)
        if self.together is not None:
            centres = np.append(centres, self.together.centre)
            widths = np.append(widths, self.together.width)
            share = np.append(share, math.exp(self.log_rest))
        middle = float(share @ centres)
        # The law of total variance.
        return middle, math.sqrt(float(share @ (widths**2 + (centres - middle) ** 2)))


def composed_on_line(prior: OfOneNumber, line: Line, typical: float) -> DensityOnLine | ComposedOnLine:
    """Return a prior of one number on the line; `typical` is a position to start at.

    Raises
    ------
    PriorError
        Where it is improper or leaves the parameter's domain.
    """
    kind = DensityOnLine if isinstance(prior, Density) else ComposedOnLine
    return kind.of(prior, line, typical)  # type: ignore[arg-type]


_Weighed: TypeAlias = tuple[list[tuple[float, float]], list[tuple[DensityOnLine, float]]]
"""Values and densities, each with the log of its share."""


def _resolved(prior: Any, line: Line, typical: float, ends: tuple[float, float]) -> _Weighed:
    """Return what a prior has within ends: its points and densities, with logs of shares of all of it."""
    if isinstance(prior, Points):
        largest = max(prior.weights)
        whole = math.log(math.fsum(weight / largest for weight in prior.weights))
        pairs = zip(prior.values, prior.weights, strict=True)
        return [
            (value, math.log(weight / largest) - whole)
            for value, weight in pairs
            if ends[0] <= value <= ends[1]
        ], []
    if isinstance(prior, Truncated):
        inner = (prior.lower, prior.upper)
        whole = _log_total(_resolved(prior.prior, line, typical, inner))
        if whole == -math.inf:
            raise _nothing_within(prior)
        both = (max(ends[0], prior.lower), min(ends[1], prior.upper))
        # (2), and of an outer range what both have in common.
        return _scaled(_resolved(prior.prior, line, typical, both), -whole)
    if isinstance(prior, WeightedSum | Mixture):
        shares = WeightedSum(*_by_turns(prior)).shares
        points: list[tuple[float, float]] = []
        parts: list[tuple[DensityOnLine, float]] = []
        for share, component in zip(shares, prior.components, strict=True):
            if share > 0.0:
                of_component = _scaled(_resolved(component, line, typical, ends), math.log(share))
                points += of_component[0]
                parts += of_component[1]
        return points, parts
    density = one_number(prior)
    within = _within(density, *ends)
    if within is None:
        return [], []
    on_line = DensityOnLine.of(within, line, typical)
    if (within.lower, within.upper) == (density.lower, density.upper):
        return [], [(on_line, 0.0)]
    # What the range has of the density, whose support may leave the parameter's domain.
    return [], [(on_line, on_line.log_mass - _log_mass(density, line, typical))]


def _by_turns(prior: WeightedSum | Mixture) -> list[Any]:
    return [part for pair in zip(prior.weights, prior.components, strict=True) for part in pair]


def _scaled(weighed: _Weighed, log_share: float) -> _Weighed:
    points, parts = weighed
    return (
        [(value, log_weight + log_share) for value, log_weight in points],
        [(part, log_weight + log_share) for part, log_weight in parts],
    )


def _log_total(weighed: _Weighed) -> float:
    logs = [log_weight for each in weighed for _, log_weight in each]
    return float(np.logaddexp.reduce(logs)) if logs else -math.inf


def _log_mass(density: Density, line: Line, typical: float) -> float:
    """Return the log of a density's integral over all of its support, on a line that has all of that."""
    low, high = line.domain
    if density.lower < low or density.upper > high:
        line = Line.LOGARITHM if density.lower >= 0.0 else Line.IDENTITY
        middle = float(np.median(density.hints)) if density.hints else _middle(density)
        typical = float(np.clip(line.position(np.array([middle])), *line.ends)[0])
    return DensityOnLine.of(density, line, typical).log_mass


def _middle(density: Density) -> float:
    """Return a value inside of a support."""
    if math.isfinite(density.lower) and math.isfinite(density.upper):
        return (density.lower + density.upper) / 2.0
    if math.isfinite(density.lower):
        return density.lower + 1.0
    return density.upper - 1.0 if math.isfinite(density.upper) else 0.0
