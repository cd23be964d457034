r"""Priors of a regression's parameters, each for itself: of coefficients, the intercept and the residuals.

Model. Parameters that are named are independent,

.. math:: \pi(\theta) = \prod_j \pi_j(\theta_j) \; p_0(\text{others} \mid \theta), \qquad (1)

each with any prior of one number, so that a coefficient may be exactly 0 with a probability (spike and slab);
all others have the default prior :math:`p_0` given the named ones.

Symbols:

- pi_j: ``every``, of all coefficients that are not named, and ``named``

Method. Points and densities are those of ``composed.py``, each density integrated for itself.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.priors.by_name import called_name, one_number
from suffice.pipeline.math.priors.composed import (
    AnyDensity,
    ComposedOnLine,
    OfOneNumber,
    composed_on_line,
    simplest,
)
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.math.priors.reading import parse_any

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line, Prior
    from suffice.pipeline.math.priors.composed import Together
    from suffice.pipeline.math.priors.density import DensityOnLine
    from suffice.typing import Floats

SPREADS = ("sd", "variance")
"""Names of the residuals' spread."""


@dataclass(frozen=True, slots=True, init=False)
class Coefficients:
    """A prior of a regression's parameters, each for itself: ``Coefficients("Horseshoe(0.1)")``.

    ``Coefficients("SpikeAndSlab(0.5, Normal(0, 1))", distance="Normal(0.1, 0.05)", sd="HalfNormal(5)")``.
    What is not named has the default prior given what is.

    Parameters
    ----------
    every : prior of one number or str, optional
        Of each coefficient not named, in the outcome's unit over the predictor's; not of the intercept.
    **named
        By name of a predictor, or ``intercept``; ``sd`` or ``variance`` of the residuals, without points.

    Raises
    ------
    PriorError
        Where none is given, one is no prior of one number, or both ``sd`` and ``variance`` are.
    """

    every: Any
    named: tuple[tuple[str, Any], ...]

    def __init__(self, every: Any = None, /, **named: Any) -> None:
        if every is None and not named:
            message = "Coefficients takes a prior of each, or of those named: Coefficients(Horseshoe(0.1))"
            raise PriorError(message)
        if set(SPREADS) <= set(named):
            message = "Coefficients takes sd= or variance=, not both"
            raise PriorError(message)
        object.__setattr__(self, "every", None if every is None else _of_one_number(every))
        object.__setattr__(
            self, "named", tuple((name, _of_one_number(prior)) for name, prior in named.items())
        )

    def __str__(self) -> str:
        every = [] if self.every is None else [f"{self.every}"]
        return f"Coefficients({', '.join([*every, *(f'{name}={prior}' for name, prior in self.named)])})"

    def parts(self, predictors: tuple[str, ...], *, intercept: bool) -> dict[str, Any]:
        """Return the prior of every parameter that has one, by name.

        Raises
        ------
        PriorError
            Where a name is no parameter.
        """
        known = (*predictors, *(("intercept",) if intercept else ()), *SPREADS)
        unknown = [name for name, _ in self.named if name not in known]
        if unknown:
            message = f"prior {self}: there is no {unknown[0]!r}: name {', '.join(known[:8])}"
            raise PriorError(message)
        of_each = {} if self.every is None else dict.fromkeys(predictors, self.every)
        return of_each | dict(self.named)


def _of_one_number(prior: Any) -> OfOneNumber | Mixture | Prior:
    read: OfOneNumber | Mixture | Prior = parse_any(prior) if isinstance(prior, str) else simplest(prior)
    if not isinstance(read, OfOneNumber):
        for component in read.components if isinstance(read, Mixture) else (read,):
            one_number(component)
    return read


def parse_stated(text: str) -> Any:
    """Read a prior of any kind that has a text, ``Coefficients`` as well.

    Raises
    ------
    PriorError
        Where the text is none.
    """
    name, call = called_name(text)
    if name != "Coefficients" or call is None:
        return parse_any(text)
    names = [keyword.arg for keyword in call.keywords]
    if len(call.args) > 1 or None in names or len(set(names)) < len(names):
        message = f"prior {text!r}: Coefficients takes a prior of each, and others by name, each once"
        raise PriorError(message)
    every = [ast.unparse(node) for node in call.args]
    return Coefficients(*every, **{str(part.arg): ast.unparse(part.value) for part in call.keywords})


NonConjugate: TypeAlias = AnyDensity | Coefficients
"""Priors that are neither conjugate nor mixtures of such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLine:
    """A prior of one parameter, resolved.

    Attributes
    ----------
    atoms : tuple of (float, float)
        Values, and logs of their probabilities.
    log_rest : float
        Log of the probability of what is at no value.
    """

    atoms: tuple[tuple[float, float], ...]
    log_rest: float
    line: Line
    density: DensityOnLine | Together | None

    @classmethod
    def of(cls, prior: Any, line: Line) -> OnLine:
        """Resolve a prior of a number on a line.

        Raises
        ------
        PriorError
            Where it is improper or leaves the parameter's domain.
        """
        resolved = composed_on_line(prior, line, 0.0)
        if isinstance(resolved, ComposedOnLine):
            pairs = zip(resolved.atoms.tolist(), resolved.log_chance.tolist(), strict=True)
            return cls(atoms=tuple(pairs), log_rest=resolved.log_rest, line=line, density=resolved.together)
        return cls(atoms=(), log_rest=0.0, line=line, density=resolved)

    def log_density(self, parameter: Floats) -> Floats:
        """Log densities of the part without atoms, which integrates to its probability."""
        assert self.density is not None  # noqa: S101 - asked of what has one
        position = self.line.position(parameter)
        value = np.full(parameter.shape, -np.inf)
        inside = (position >= self.density.first) & (position <= self.density.last)
        value[inside] = self.density.log_density(position[inside]) - self.line.log_slope(position[inside])
        return value - getattr(self.density, "log_mass", 0.0)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Draws of all of it, by its distribution function between nodes."""
        values = [value for value, _ in self.atoms]
        chance = np.exp([*(log_chance for _, log_chance in self.atoms), self.log_rest])
        chosen = rng.choice(len(chance), size, p=chance / chance.sum())
        drawn = np.array([*values, np.nan])[chosen]
        rest = chosen == len(values)
        if self.density is not None:
            drawn[rest] = self._continuous(int(rest.sum()), rng)
        return drawn

    def _continuous(self, size: int, rng: np.random.Generator) -> Floats:
        assert self.density is not None  # noqa: S101 - asked of what has one
        edges = self.density.edges
        share = np.linspace(0.0, 1.0, _POINTS, endpoint=False)
        position = np.append((edges[:-1, None] + share * np.diff(edges)[:, None]).ravel(), edges[-1])
        middle = (position[1:] + position[:-1]) / 2.0
        log_mass = self.density.log_density(middle) + np.log(np.maximum(np.diff(position), 1e-300))
        below = np.concatenate([[0.0], np.cumsum(np.exp(log_mass - np.max(log_mass)))])
        return self.line.parameter(np.interp(rng.random(size), below / below[-1], position))


_POINTS = 32
"""Between two edges of a density."""
