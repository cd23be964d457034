"""Distributions of one number that other libraries have: of scipy.stats, NumPyro and PreliZ.

They are known by where they come from and asked by what they are called there, so that none is imported. A
continuous one becomes a ``Density`` with its log density, its support and, where there is one, its
distribution function; one of whole numbers, or of a few stated ones, becomes a probability for each of them.

Method. As exact as the library: scipy.stats and PreliZ work in float64, and NumPyro is asked in float64. A
distribution on infinitely many whole numbers is taken where it has all but 1e-12.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.priors.density import LEVELS, Density
from suffice.pipeline.math.priors.names import named_by_numpyro, named_by_preliz, named_by_scipy

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats


MOST_POINTS = 1000
"""Values that may have a probability of their own."""
_LEFT_OUT = 1e-12
"""Probability that whole numbers may have beyond those that are taken."""
_FEWEST_AT_ONCE = 1024
"""Values that JAX is given at a time, or a greater power of 2: it compiles anew for every number of them."""


def density_of(prior: Any) -> Density | None:
    """Return a continuous distribution of another library as a density; None of anything else.

    Raises
    ------
    PriorError
        Where it is one of several numbers, or is not frozen.
    """
    match _library(prior):
        case "numpyro":
            _require_single(prior)
            return None if weights_of(prior) is not None else _of_numpyro(prior)
        case "preliz":
            _require_frozen(prior)
            return None if prior.kind == "discrete" else _of_preliz(prior)
        case _:
            return None if weights_of(prior) is not None else Density.of(prior)


def weights_of(prior: Any) -> tuple[str, dict[float, float]] | None:
    """Return the name of a distribution of single values and their probabilities; None of anything else.

    Raises
    ------
    PriorError
        Where it has too many of them.
    """
    match _library(prior):
        case "numpyro" if type(prior).__name__ == "Delta":
            _require_single(prior)
            return named_by_numpyro(prior), {float(prior.v): 1.0}
        case "numpyro" if getattr(prior, "is_discrete", False):
            _require_single(prior)
            name, values = named_by_numpyro(prior), _in_support(-math.inf, math.inf, prior)
            # Some of them index by a value.
            return name, _weights(
                name, values, lambda at: np.exp(_in_float64(prior.log_prob)(at.astype(np.int64)))
            )
        case "preliz" if getattr(prior, "kind", "") == "discrete":
            _require_frozen(prior)
            name, (first, last) = named_by_preliz(prior), prior.support
            values = _whole_numbers(float(first), float(last), prior.ppf)
            return name, _weights(name, values, prior.pdf)
        case "scipy" if all(hasattr(prior, needed) for needed in ("pmf", "support", "ppf", "dist")):
            name = named_by_scipy(prior)
            first, last = prior.support()
            if hasattr(prior.dist, "xk"):
                return name, _stated(name, prior.dist, float(first))
            values = _whole_numbers(float(first), float(last), prior.ppf)
            return name, _weights(name, values, prior.pmf)
    return None


def _library(prior: object) -> str:
    return type(prior).__module__.partition(".")[0]


def _in_support(lower: float, upper: float, prior: Any) -> Floats:
    """Return the whole numbers that a distribution of NumPyro is of, or the first of them."""
    try:
        return np.asarray(prior.enumerate_support(), dtype=np.float64)
    except NotImplementedError:
        lower = float(getattr(prior.support, "lower_bound", 0.0))
        return _whole_numbers(lower, upper, lambda _level: lower)


def _whole_numbers(lower: float, upper: float, ppf: Callable[[float], Any]) -> Floats:
    """Return the whole numbers between two ends, or about the median where there is no lower one."""
    first = float(ppf(0.5)) - MOST_POINTS // 2 if math.isinf(lower) else lower
    return np.arange(first, min(upper, first + MOST_POINTS - 1.0) + 1.0)


def _weights(name: str, values: Floats, chances_of: Callable[[Floats], Any]) -> dict[float, float]:
    chances = np.asarray(chances_of(values), dtype=np.float64)
    if len(values) > MOST_POINTS or not abs(float(np.sum(chances)) - 1.0) <= _LEFT_OUT:
        message = (
            f"a prior of whole numbers has at most {MOST_POINTS} of them, and {name} has more: give fewer"
        )
        raise PriorError(message)
    return {value: chance for value, chance in zip(values.tolist(), chances.tolist(), strict=True) if chance}


def _stated(name: str, of: Any, first: float) -> dict[float, float]:
    """Return the values of ``rv_discrete(values=...)``, moved so that `first` is the least of them."""
    values, chances = np.ravel(of.xk), np.ravel(of.pk)
    if len(values) > MOST_POINTS:
        message = (
            f"a prior of single values has at most {MOST_POINTS} of them, and {name} has more: give fewer"
        )
        raise PriorError(message)
    moved = values - np.min(values) + first
    return {value: chance for value, chance in zip(moved.tolist(), chances.tolist(), strict=True) if chance}


def _require_single(prior: Any) -> None:
    if tuple(prior.batch_shape) or tuple(prior.event_shape):
        message = (
            f"a prior from NumPyro must be of one number: {type(prior).__name__} has the shape "
            f"{(*prior.batch_shape, *prior.event_shape)}; give it plain numbers"
        )
        raise PriorError(message)


def _of_numpyro(prior: Any) -> Density:
    lower, upper = (
        float(getattr(prior.support, end, default))
        for end, default in (("lower_bound", -math.inf), ("upper_bound", math.inf))
    )
    hints: tuple[float, ...] = ()
    try:
        quantiles = _in_float64(prior.icdf)(np.array(LEVELS))
        hints = tuple(float(value) for value in quantiles if lower < value < upper)
    except (NotImplementedError, ImportError):
        pass  # then supports are scanned
    return Density(_in_float64(prior.log_prob), lower, upper, name=named_by_numpyro(prior), hints=hints)


def _in_float64(function: Callable[[Any], Any]) -> Callable[[Floats], Floats]:
    """Let a function of JAX, of one number, work in float64, whatever it works in elsewhere."""

    def of_arrays(values: Floats) -> Floats:
        import jax  # present, as the distribution is

        size = max(_FEWEST_AT_ONCE, 1 << (values.size - 1).bit_length())
        with jax.enable_x64(True):  # noqa: FBT003 - the only argument
            answers = np.asarray(function(jax.numpy.asarray(np.resize(values, size))), dtype=np.float64)
        return answers[: values.size].reshape(values.shape)

    return of_arrays


def _require_frozen(prior: Any) -> None:
    if not getattr(prior, "is_frozen", False):
        message = f"a prior from PreliZ must have all its numbers: {type(prior).__name__} lacks some"
        raise PriorError(message)


def _of_preliz(prior: Any) -> Density:
    lower, upper = (float(end) for end in prior.support)
    hints = tuple(float(value) for value in np.asarray(prior.ppf(np.array(LEVELS))) if np.isfinite(value))
    return Density(prior.logpdf, lower, upper, name=named_by_preliz(prior), hints=hints, cdf=prior.cdf)
