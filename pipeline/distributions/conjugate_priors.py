"""Prior distributions of the parameters, written and parametrised as in NumPyro.

A prior is a frozen value: positional or keyword arguments, checked on construction, and
``parse_prior(str(prior)) == prior``. Every prior here is proper: a cell may be empty, and an improper
prior would then leave an improper posterior.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.distributions.multivariate_priors import (
    Entries,
    NormalInverseGammaRegression,
    NormalInverseWishart,
)

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class Beta:
    r"""Beta distribution of a probability.

    .. math:: p(x) \propto x^{a - 1} (1 - x)^{b - 1}

    Parameters
    ----------
    concentration1 : float, > 0
        a: pseudo-count of true.
    concentration0 : float, > 0
        b: pseudo-count of false.
    """

    concentration1: float
    concentration0: float

    def __post_init__(self) -> None:
        _require_positive(self, "concentration1", "concentration0")

    def __str__(self) -> str:
        return _written(self)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        return rng.beta(self.concentration1, self.concentration0, size)


@dataclass(frozen=True, slots=True)
class Gamma:
    r"""Gamma distribution of a rate.

    .. math:: p(x) \propto x^{a - 1} e^{-r x}

    Parameters
    ----------
    concentration : float, > 0
        a: the shape.
    rate : float, > 0
        r, in units of one over the parameter; the mean is a / r.
    """

    concentration: float
    rate: float

    def __post_init__(self) -> None:
        _require_positive(self, "concentration", "rate")

    def __str__(self) -> str:
        return _written(self)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        return rng.gamma(self.concentration, 1.0 / self.rate, size)


@dataclass(frozen=True, slots=True, init=False)
class Dirichlet:
    r"""Dirichlet distribution of category probabilities.

    .. math:: p(x) \propto \prod_k x_k^{a_k - 1}

    Parameters
    ----------
    *concentration : float, > 0
        One pseudo-count per category, or a single one that every category shares.
    """

    concentration: tuple[float, ...]

    def __init__(self, *concentration: float) -> None:
        if not concentration:
            message = "Dirichlet needs a concentration: Dirichlet(1), or one number per category"
            raise PriorError(message)
        object.__setattr__(self, "concentration", concentration)
        for value in concentration:
            _require(self, "concentration", value, positive=True)

    def __str__(self) -> str:
        return f"Dirichlet({', '.join(_number(value) for value in self.concentration)})"

    def sample(self, size: int, rng: np.random.Generator, categories: int | None = None) -> Floats:
        """Return independent draws, (size, n_categories); `categories` where one number is for all."""
        from suffice.pipeline.distributions.dirichlet_draws import sample_dirichlet  # noqa: PLC0415 - consumers only

        concentration = np.array(self.concentration, dtype=np.float64)
        return sample_dirichlet(np.broadcast_to(concentration, (size, categories or len(concentration))), rng)


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal distribution: mean ``loc``, standard deviation ``scale`` > 0."""

    loc: float
    scale: float

    def __post_init__(self) -> None:
        _require(self, "loc", self.loc)
        _require_positive(self, "scale")

    def __str__(self) -> str:
        return _written(self)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        return rng.normal(self.loc, self.scale, size)


@dataclass(frozen=True, slots=True)
class InverseGamma:
    r"""Inverse gamma distribution of a variance.

    .. math:: p(x) \propto x^{-a - 1} e^{-s / x}

    Parameters
    ----------
    concentration : float, > 0
        a: the shape.
    scale : float, > 0
        s, in units of the parameter; the mean is s / (a - 1) for a > 1.
    """

    concentration: float
    scale: float

    def __post_init__(self) -> None:
        _require_positive(self, "concentration", "scale")

    def __str__(self) -> str:
        return _written(self)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        draws: Floats = self.scale / rng.standard_gamma(self.concentration, size)
        return draws


@dataclass(frozen=True, slots=True)
class NormalInverseGamma:
    r"""Joint prior of a normal's mean and variance.

    .. math::
        v \sim \mathrm{InverseGamma}(a, s), \qquad m \mid v \sim \mathrm{Normal}(\mu, \sqrt{v / \kappa})

    Parameters
    ----------
    loc : float
        The prior mean of the mean, in the column's unit.
    precision : float, > 0
        kappa: how many rows the prior mean weighs.
    concentration : float, > 0
        a: the shape of the variance's inverse gamma.
    scale : float, > 0
        s, in the square of the column's unit.
    """

    loc: float
    precision: float
    concentration: float
    scale: float

    def __post_init__(self) -> None:
        _require(self, "loc", self.loc)
        _require_positive(self, "precision", "concentration", "scale")

    def __str__(self) -> str:
        return _written(self)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws of mean and variance, (size, 2)."""
        variance = self.scale / rng.standard_gamma(self.concentration, size)
        return np.stack([rng.normal(self.loc, np.sqrt(variance / self.precision)), variance], axis=1)


Prior: TypeAlias = (
    Beta
    | Gamma
    | Dirichlet
    | Normal
    | InverseGamma
    | NormalInverseGamma
    | NormalInverseWishart
    | NormalInverseGammaRegression
)

_PRIORS: dict[str, type[Prior]] = {
    kind.__name__: kind
    for kind in (
        Beta,
        Gamma,
        Dirichlet,
        Normal,
        InverseGamma,
        NormalInverseGamma,
        NormalInverseWishart,
        NormalInverseGammaRegression,
    )
}

CONJUGATE_NAMES = tuple(_PRIORS)


def parse_prior(text: str) -> Prior:
    """Read a prior such as ``Beta(1, 1)`` or ``Gamma(concentration=2, rate=0.5)``.

    Nothing is evaluated: the text has to be one call of a known name with number literals, or with lists of
    them where a prior takes vectors and matrices.

    Raises
    ------
    PriorError
        When the text is not such a call, the name is unknown or a value breaks a rule.
    """
    name, arguments, keywords = parse_call(text, known=tuple(_PRIORS))
    try:
        return _PRIORS[name](*arguments, **keywords)  # type: ignore[arg-type]
    except TypeError:
        names = ", ".join(field.name for field in fields(_PRIORS[name]))
        message = f"prior {text!r}: {name} takes exactly ({names})"
        raise PriorError(message) from None


def parse_call(text: str, *, known: tuple[str, ...]) -> tuple[str, tuple[Entries, ...], dict[str, Entries]]:
    """Split the text of one call with number literals into name, arguments and keywords."""
    way_out = f"write one of {', '.join(known)} with numbers, as in Beta(1, 1)" if "Beta" in known else ""
    way_out = way_out or f"write one of {', '.join(known)} with numbers"
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        position = f"at character {error.offset} of {text.strip()!r}" if error.offset else f"in {text!r}"
        message = f"prior: {error.msg} {position}: {way_out}"
        raise PriorError(message) from None
    except (ValueError, MemoryError, RecursionError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        message = f"prior {text!r} is not a distribution with its numbers: {way_out}"
        raise PriorError(message)
    if call.func.id not in known:
        message = f"prior {text!r}: {call.func.id} is not known: {way_out}"
        if "Beta" in known:
            message += (
                ", or another density by its name, as in HalfCauchy(2). Distributions of scipy.stats and "
                "suffice.Density have no text: give them in Python"
            )
        raise PriorError(message)
    keywords: dict[str, Entries] = {}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in keywords:
            message = f"prior {text!r}: every keyword is written once, by name: {way_out}"
            raise PriorError(message)
        keywords[keyword.arg] = _literal(keyword.value, text)
    return call.func.id, tuple(_literal(node, text) for node in call.args), keywords


def parse_number(node: ast.expr, text: str) -> float:
    """Return the number that a literal, with or without a sign, stands for.

    Raises
    ------
    PriorError
        Where it is none; `text` is what it is a part of.
    """
    number = None if isinstance(node, ast.List) else _literal(node, text)
    if isinstance(number, int | float):
        return number
    message = f"prior {text!r}: every weight must be a plain number"
    raise PriorError(message)


def _literal(node: ast.expr, text: str, depth: int = 0) -> Entries:
    """Return the number that a literal, with or without a sign, stands for, or the list of such."""
    if isinstance(node, ast.List) and depth < 2:
        return tuple(_literal(entry, text, depth + 1) for entry in node.elts)  # type: ignore[return-value]
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        node = node.operand
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and node.value is not True
        and node.value is not False
    ):
        return sign * node.value
    message = f"prior {text!r}: every argument must be a plain number"
    raise PriorError(message)


def _require_positive(prior: Prior, *names: str) -> None:
    for name in names:
        _require(prior, name, getattr(prior, name), positive=True)


def _require(prior: Prior, name: str, value: float, *, positive: bool = False) -> None:
    """Refuse what is no finite number, or no positive one where the prior would be improper."""
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


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def _written(prior: Prior) -> str:
    values = ", ".join(_number(getattr(prior, field.name)) for field in fields(prior))
    return f"{type(prior).__name__}({values})"
