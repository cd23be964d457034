r"""Distributions and priors: conjugate updates, and the line on which a parameter is nearly normal.

Model. A conjugate distribution of the parameters :math:`\theta` has, with respect to a fixed measure, the
density

.. math:: p(\theta \mid \eta) = \exp(\eta \cdot T(\theta)) / Z(\eta). \qquad (1)

Data add their statistics to :math:`\eta`. Given R disjoint data sets, with :math:`\eta_0` of the prior and
:math:`\eta_r` of the posterior given the r-th alone,

.. math:: \eta = \eta_1 + \dots + \eta_R - (R - 1) \eta_0. \qquad (2)

A parameter alone, :math:`\theta = h(x)`, has on the line the density

.. math:: f(x) = p(h(x)) \, h'(x), \qquad (3)

with x its logarithm (rates, scales, variances), its logit (probabilities) or itself (means). There a
conjugate distribution has a centre c and a width w near its mean and its standard deviation.

Symbols:

- eta: ``natural()``, (n_cells, n_natural)
- log Z: ``log_normaliser()``, (n_cells,), but for a constant of the family
- x: ``position``, in all of the real line
- h: ``Line.parameter``; its inverse is ``Line.position``, and :math:`\log h'` is ``Line.log_slope``
- c, w: ``Coordinate.centre`` and ``Coordinate.width``, (n_cells,), w > 0

Method. Densities are formulas and right but for rounding. Distribution functions of gammas and betas whose
concentrations are all at least ``LARGE`` = 4 are the normal approximation of Peizer and Pratt (1968), with D
the deviance between the observed and the expected part, g the gap between the two and d a corrected distance,

.. math:: F \approx \Phi\left(d \, \sqrt D / |g|\right), \qquad (4)

off by at most 1.0e-4 (gamma) and 1.9e-4 (beta), measured over concentrations from 4 to 10^4. Others are
exact.

Priors are written and parametrised as in NumPyro, are checked on construction, and ``parse_prior(str(prior))
== prior``. Every prior is proper: a cell may be empty, and an improper prior would leave an improper
posterior. Vectors are lists of numbers, matrices lists of their rows.

References
----------
Peizer, Pratt. A normal approximation for binomial, F, beta, and other common, related tail probabilities, I.
J. Amer. Statist. Assoc. 63, 1968. Diaconis, Ylvisaker. Conjugate priors for exponential families. Ann.
Statist. 7, 1979. NIST Digital Library of Mathematical Functions (DLMF).
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.weighted_sum import Summand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from suffice.typing import Floats, Rows


class Distribution(Protocol):
    """What a posterior needs of the distribution of its parameters."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters' names."""

    def mean(self, parameter: str) -> Floats:
        """Means, (n_cells,) or (n_cells, n_categories)."""

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, shaped as the means."""

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles, shaped as the means with len(q) as a last axis."""

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities at points that are shaped as the means with the points as a last axis.

        Shaped as the points; None where the parameter's density is not known, but only draws of it.
        """

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws, each shaped as the means with draws as a first axis."""


class DistributionOfCells(Distribution, Protocol):
    """A distribution of which some cells can be taken."""

    def at(self, cells: slice | Rows) -> Self:
        """Return the distribution of some cells."""


class ConjugateDistribution(DistributionOfCells, Protocol):
    """A distribution that updates turn into others of its kind."""

    def natural(self) -> Floats:
        """Return the natural parameters, (n_cells, n_natural)."""

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution of the same kind and names with these natural parameters."""

    def log_normaliser(self) -> Floats:
        r"""Return :math:`\log Z(\eta)` up to a constant, of every cell."""


class MixtureOfConjugates(Distribution, Protocol):
    """A distribution that is a mixture of conjugate ones, one for every value of latent statistics."""

    def prior_distribution(self) -> ConjugateDistribution:
        """The prior, as the distribution of one cell."""

    def mixture(self, draws: int, rng: np.random.Generator) -> ConjugateDistribution:
        """One conjugate distribution per draw of the latent statistics, draw by draw, then by cell."""


@runtime_checkable
class Labelled(Protocol):
    """A distribution some of whose parameters have a last axis of named entries."""

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """The entries' names, by parameter."""


@dataclass(frozen=True, slots=True)
class OfCells:
    """A distribution all arrays of which have the cells first."""

    def at(self, cells: slice | Rows) -> Self:
        """Return the distribution of some cells."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        taken = {name: column[cells] for name, column in columns.items() if isinstance(column, np.ndarray)}
        return replace(self, **taken)


def moment_above(least: float, freedom: Floats, numerator: Floats, denominator: Floats) -> Floats:
    """Return a moment where there are enough degrees of freedom that it exists; infinity elsewhere."""
    # Tails fall like powers: a moment is finite only above so many degrees of freedom.
    exists = np.broadcast_to(freedom > least, np.broadcast_shapes(numerator.shape, denominator.shape))
    moment: Floats = np.divide(numerator, denominator, out=np.full(exists.shape, np.inf), where=exists)
    return moment


Entries: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Prior(Summand):
    """A conjugate prior; every field is a finite number, and above 0 unless it is a ``loc``."""

    def __post_init__(self) -> None:
        for field in fields(self):
            require_number(self, field.name, getattr(self, field.name), positive=field.name != "loc")

    def __str__(self) -> str:
        values = ", ".join(written(getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({values})"

    def _of_one_cell(self) -> dict[str, Any]:
        """The fields as arrays (1,)."""
        return {field.name: np.array([getattr(self, field.name)], dtype=np.float64) for field in fields(self)}


def either(kind: str, name: str, value: float | None, scipys: str, by_scipy: float | None) -> float:
    """Return a number that was given by its name or by the one that ``scipy.stats`` has for it.

    Raises
    ------
    TypeError
        Where it was given by neither, or by both.
    """
    if (value is None) == (by_scipy is None):
        message = f"{kind} takes {name}, or {scipys}= in its place"
        raise TypeError(message)
    return value if by_scipy is None else by_scipy  # type: ignore[return-value]


def freeze(prior: Prior) -> None:
    """Turn lists into tuples, so that a prior is a value, and refuse what holds no finite numbers."""
    for field in fields(prior):
        object.__setattr__(prior, field.name, _frozen(prior, field.name, getattr(prior, field.name)))


def _frozen(prior: Prior, name: str, value: object, depth: int = 0) -> object:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple) and depth < 2 and value:
        return tuple(_frozen(prior, name, entry, depth + 1) for entry in value)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    try:
        finite = number and math.isfinite(float(value))  # type: ignore[arg-type]
    except OverflowError:
        finite = False
    if not finite:
        message = f"{type(prior).__name__}: {name} must hold finite numbers, not {value!r}"
        raise PriorError(message)
    return value.item() if isinstance(value, np.number) else value


def require_number(prior: Prior, name: str, value: float, *, positive: bool) -> None:
    """Refuse what is no finite number, or no positive one where the prior would be improper.

    Raises
    ------
    PriorError
    """
    kind = type(prior).__name__
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{kind}: {name} must be a number, not {value!r}"
        raise PriorError(message)
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite or (positive and float(value) <= 0.0):
        rule = "a finite number above 0 (the prior must be proper)" if positive else "a finite number"
        message = f"{kind}: {name} must be {rule}, not {value!r}"
        raise PriorError(message)


def require_positive(prior: Prior, *names: str) -> None:
    """Refuse fields that are no single number above 0."""
    for name in names:
        value = getattr(prior, name)
        if isinstance(value, tuple) or value <= 0:
            message = (
                f"{type(prior).__name__}: {name} must be a number above 0 (the prior must be proper), "
                f"not {value!r}"
            )
            raise PriorError(message)


def vector_of(prior: Prior, name: str, size: int) -> Floats:
    """Return the vector (size,) that a field stands for: one number for all, or one each."""
    value = np.array(_regular(prior, name), dtype=np.float64)
    if value.shape not in {(), (size,)}:
        message = f"{type(prior).__name__}: {name} needs 1 or {size} numbers"
        raise PriorError(message)
    return np.broadcast_to(value, (size,)).copy()


def matrix_of(prior: Prior, name: str, size: int) -> Floats:
    """Return the matrix (size, size): a multiple of the identity, a diagonal, or a positive definite one."""
    value = np.array(_regular(prior, name), dtype=np.float64)
    kind = type(prior).__name__
    if value.shape not in {(), (size,), (size, size)}:
        message = f"{kind}: {name} needs 1 or {size} numbers, or {size} lists of {size}"
        raise PriorError(message)
    matrix: Floats = value if value.ndim == 2 else np.diag(np.broadcast_to(value, (size,)))
    symmetric = np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0)
    # Of D^(-1/2) M D^(-1/2), D the diagonal: M is positive definite if and only if this is.
    root = np.sqrt(np.abs(np.diag(matrix)))
    # Judged in units in which the diagonal is 1: columns may have very different ones.
    if not symmetric or root.min() == 0.0 or np.linalg.eigvalsh(matrix / root / root[:, None]).min() <= 0.0:
        message = f"{kind}: {name} must be symmetric and positive definite (the prior must be proper)"
        raise PriorError(message)
    return (matrix + matrix.T) / 2.0


def _regular(prior: Prior, name: str) -> Entries:
    value: Entries = getattr(prior, name)
    rows = [entry for entry in value if isinstance(entry, tuple)] if isinstance(value, tuple) else []
    if rows and (len(rows) != len(value) or len({len(row) for row in rows}) != 1):  # type: ignore[arg-type]
        message = f"{type(prior).__name__}: {name} is neither a number, a list nor a list of equal lists"
        raise PriorError(message)
    return value


def written(value: object) -> str:
    """Return the text of a number, or of a list of numbers or lists."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 1e15):
        return repr(value)
    return str(int(value))  # type: ignore[call-overload]


_FARTHEST = 200.0
"""The position beyond which exponentials leave the numbers that are worked with: e^200 is 7e86."""
_NEAREST_ONE = 36.0
"""The logit beyond which a probability is rounded to 1."""
_LARGEST_MEAN = 1e75
"""The mean beyond which fourth powers overflow."""


class Line(StrEnum):
    """How a parameter is mapped to the real line."""

    LOGARITHM = "logarithm"
    LOGIT = "logit"
    IDENTITY = "identity"

    @property
    def domain(self) -> tuple[float, float]:
        """Where the parameter lies."""
        ends = {Line.LOGARITHM: (0.0, math.inf), Line.LOGIT: (0.0, 1.0)}
        return ends.get(self, (-math.inf, math.inf))

    @property
    def ends(self) -> tuple[float, float]:
        """Positions beyond which the parameter's numbers would overflow or be rounded to an end."""
        ends = {Line.LOGARITHM: (-_FARTHEST, _FARTHEST), Line.LOGIT: (-_FARTHEST, _NEAREST_ONE)}
        return ends.get(self, (-_LARGEST_MEAN, _LARGEST_MEAN))

    def position(self, parameter: Floats) -> Floats:
        """Positions of parameters; infinite at the ends of the domain."""
        with np.errstate(divide="ignore"):
            if self is Line.LOGARITHM:
                return np.log(parameter)
            if self is Line.LOGIT:
                # log p - log(1 - p): both ends of 0..1 keep their digits.
                return np.log(parameter) - np.log1p(-parameter)
        return parameter

    def parameter(self, position: Floats) -> Floats:
        """Parameters at positions."""
        if self is Line.LOGARITHM:
            return np.exp(position)
        with np.errstate(over="ignore"):
            return 1.0 / (1.0 + np.exp(-position)) if self is Line.LOGIT else position

    def density(self, parameter: Floats, log_density: Callable[[Floats], Floats]) -> Floats:
        """Densities of parameters, from log densities at positions; 0 outside of the domain.

        At an end of the domain the density is that next to it: a large number where it is infinite.
        """
        low, high = self.domain
        # Next to an end of the domain the density is taken where numbers still tell.
        position = np.clip(self.position(np.clip(parameter, low, high)), *self.ends)
        with np.errstate(over="ignore"):
            # (3), solved for p.
            density = np.exp(log_density(position) - self.log_slope(position))
        return np.where((parameter < low) | (parameter > high), 0.0, density)

    def log_slope(self, position: Floats) -> Floats:
        """Log of the derivative of the parameter."""
        if self is Line.LOGARITHM:
            return position
        if self is Line.LOGIT:
            # Of the logit h' = h (1 - h), which is even in x: exp(-|x|) does not overflow.
            return -np.abs(position) - 2.0 * np.log1p(np.exp(-np.abs(position)))
        return np.zeros_like(position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """Distributions in their coordinate.

    Attributes
    ----------
    centre, width : ndarray of shape (n,), float64
        About the mean and the standard deviation of every distribution.
    cdf : callable
        A position for every distribution, (n,) -> probabilities below.
    log_density : callable
        Positions that broadcast with (n,) -> log densities at these positions.
    line : Line
        How values of the parameter become positions.
    """

    centre: Floats
    width: Floats
    cdf: Callable[[Floats], Floats]
    log_density: Callable[[Floats], Floats]
    line: Line


class OneParameter(OfCells, ABC):
    """A conjugate distribution of the parameter ``name``.

    Updates add to the two fields that ``_natural`` names, where a class does not say otherwise.
    """

    __slots__ = ()
    name: str
    _natural: ClassVar[tuple[str, str]]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    def natural(self) -> Floats:
        """Return the natural parameters, (n_cells, 2)."""
        return np.stack([getattr(self, name) for name in self._natural], axis=-1)

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution of the same name with these natural parameters."""
        return replace(self, **{name: eta[..., column] for column, name in enumerate(self._natural)})

    @abstractmethod
    def coordinate(self) -> Coordinate:
        """Return the logarithm of rates and scales, the logit of probabilities, and means as they are."""

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points)."""
        # (3), cell by cell.
        coordinate = self.coordinate()
        return coordinate.line.density(points, lambda position: coordinate.log_density(position.T).T)

    def widened(self, variance: Floats) -> Self:
        """Weaken distributions so that their variances on the line rise by this much (n,)."""
        # w^2 is inverse to eta in all of these families, so that w^2 / k = w^2 + variance with k = 1 / (1 +
        # variance / w^2).
        kept = 1.0 / (1.0 + variance / self.coordinate().width ** 2)
        return replace(self, **{name: kept * getattr(self, name) for name in self._natural})


def coordinate_of(distribution: Distribution) -> Coordinate:
    """Return the coordinate of a distribution that is known to have one parameter."""
    return _of_one_parameter(distribution).coordinate()


def widened(distribution: Distribution, variance: Floats) -> OneParameter:
    """Weaken distributions that are known to have one parameter; see ``OneParameter.widened``."""
    return _of_one_parameter(distribution).widened(variance)


def _of_one_parameter(distribution: Distribution) -> OneParameter:
    if not isinstance(distribution, OneParameter):
        raise TypeError(type(distribution).__name__)
    return distribution


LARGE = 4.0
"""The concentration from which distribution functions are those of (4)."""


def times_exp(factor: Floats, position: Floats) -> Floats:
    """Return a factor times exp(position); infinite beyond the largest number, which is as it should be."""
    with np.errstate(over="ignore"):
        return factor * np.exp(position)


def log_height(concentration: Floats) -> Floats:
    """Return a log a - a - log gamma(a)."""
    from scipy.special import gammaln

    a = np.maximum(concentration, 1e-300)
    large = np.maximum(a, 100.0)
    # Stirling's series, DLMF 5.11.1. The next term, 1 / (1260 a^5), is below 8e-14 from 100 on.
    series = 0.5 * np.log(large / (2.0 * np.pi)) - 1.0 / (12.0 * large) + 1.0 / (360.0 * large**3)
    small = np.minimum(a, 100.0)
    # Below 100 the terms are below 500: their cancellation costs at most three digits.
    exact = small * np.log(small) - small - gammaln(small)
    return np.where(a < 100.0, exact, series)


def excess(x: Floats) -> Floats:
    """Return x - log(1 + x)."""
    # x - log(1 + x) = x^2 / 2 - x^3 / 3 + ...: for |x| <= 1e-4 the rest is at most 5e-9 of it.
    near = np.clip(x, -1e-4, 1e-4)
    with np.errstate(divide="ignore"):
        return np.where(near == x, near * near * (0.5 - near / 3.0), x - np.log1p(np.maximum(x, -1.0)))


def root_over(deviance: Floats, gap: Floats, scale: Floats) -> Floats:
    """Root of a deviance over the gap that it is of, and its limit where the gap vanishes."""
    # D = (g / scale)^2 (1 + O(g / scale)) as the gap g vanishes.
    near = np.abs(gap) < 1e-9 * scale
    return np.where(near, 1.0 / scale, np.sqrt(deviance) / np.where(near, 1.0, np.abs(gap)))
