"""How far off estimates are that rest on a posterior sample, and on a Laplace release at equal epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon, format_number
from suffice.pipeline.terms.declaration.wording import text_table

if TYPE_CHECKING:
    from fractions import Fraction

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanError:
    """A mean absolute error over simulated data sets.

    Attributes
    ----------
    value : float
        In the parameter's unit; not finite where a posterior has no mean.
    standard_error : float
        Its Monte Carlo error.
    """

    value: float
    standard_error: float

    @classmethod
    def of(cls, errors: Floats) -> Self:
        """Average the absolute errors of so many data sets, at least two."""
        spread = float(errors.std(ddof=1)) / math.sqrt(len(errors))
        return cls(value=float(errors.mean()), standard_error=spread)

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.standard_error:.2g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedErrors:
    """Errors of both mechanisms with one number of records.

    Attributes
    ----------
    n : int
        Records in a cell.
    laplace_mean, laplace_draw : MeanError
        Of the Laplace posterior's mean, and of one draw of that posterior.
    sample_draw, sample_mean : MeanError
        Of one draw of the sample, and of the mean of its draws.
    """

    n: int
    laplace_mean: MeanError
    laplace_draw: MeanError
    sample_draw: MeanError
    sample_mean: MeanError


_ERRORS = {
    "laplace_mean": "Laplace, mean",
    "laplace_draw": "Laplace, one draw",
    "sample_draw": "sample, one draw",
    "sample_mean": "sample, mean of draws",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorComparison:
    """One statistic by either mechanism, at equal epsilon; made by ``beside_sample``.

    Attributes
    ----------
    statistic, parameter : str
    truth : float
        The parameter that data were drawn with, in its unit.
    epsilon : Fraction
        The statistic's part, in nats, which either costs.
    method : str
        Of the Laplace posterior.
    prior : str
        Both start from it: the Laplace posterior as it is, the sample on its grid.
    n_prior : str
        Of a private N, as the Laplace posterior believes it; empty where it has no use for one.
    draws : int
        Of the sample.
    temperature : float, >= 1
        Of the sample.
    within : tuple of Fraction
        The ends of the sample's grid: a truth beyond them is never drawn.
    simulations : int
        Data sets of each size.
    errors : tuple of ComparedErrors
        One for each number of records, as asked for.
    """

    statistic: str
    parameter: str
    truth: float
    epsilon: Fraction
    method: str
    prior: str
    n_prior: str
    draws: int
    temperature: float
    within: tuple[Fraction, Fraction]
    simulations: int
    errors: tuple[ComparedErrors, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``suffice plan --beside sample --json`` prints of each statistic."""
        return {
            "statistic": self.statistic,
            "parameter": self.parameter,
            "truth": self.truth,
            "epsilon": format_epsilon(self.epsilon),
            "method": self.method,
            "prior": self.prior,
            "n_prior": self.n_prior or None,
            "draws": self.draws,
            "temperature": self.temperature,
            "within": [format_number(end) for end in self.within],
            "simulations": self.simulations,
            "errors": [
                {"n": errors.n, **{name: _written(getattr(errors, name)) for name in _ERRORS}}
                for errors in self.errors
            ],
        }

    def __str__(self) -> str:
        rows = [[str(errors.n), *(str(getattr(errors, name)) for name in _ERRORS)] for errors in self.errors]
        lower, upper = self.within
        beyond = (
            ""
            if float(lower) <= self.truth <= float(upper)
            else f"this truth lies beyond the sample's {format_number(lower)}..{format_number(upper)}: it is "
            "never drawn\n"
        )
        believed = f", N: {self.n_prior}" if self.n_prior else ""
        return (
            f"{self.statistic}: {self.parameter} {self.truth:g}, prior {self.prior}, epsilon "
            f"{format_epsilon(self.epsilon)} either way\n"
            f"Laplace posterior: {self.method}{believed}; sample: draws {self.draws}, temperature "
            f"{self.temperature:.6g}\n{beyond}"
            f"mean absolute error (its standard error), {self.simulations} simulations\n\n"
            + text_table(["n", *_ERRORS.values()], rows)
        )


def _written(error: MeanError) -> dict[str, float | None]:
    """Write an error; what is not finite as nothing."""
    numbers = {field.name: getattr(error, field.name) for field in fields(error)}
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}
