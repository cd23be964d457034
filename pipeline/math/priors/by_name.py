"""Priors of one number by name, as in NumPyro: those that are conjugate and others, from text or objects.

Nothing is evaluated: the text has to be one call of a known name with number literals, or ``Independent``
with two of them.
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.priors.density import LEVELS, Density
from suffice.pipeline.math.priors.parsing import CONJUGATE, called_name, parse_call, parse_prior

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.joint_density import Independent


def _truncated_normal(stats: Any, loc: float, scale: float, low: float, high: float) -> Any:
    return stats.truncnorm((low - loc) / scale, (high - loc) / scale, loc, scale)


# By name: the numbers that it takes, and the distribution of scipy.stats.
_NAMED: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "Beta": (("concentration1", "concentration0"), lambda stats, a, b: stats.beta(a, b)),
    "Cauchy": (("loc", "scale"), lambda stats, loc, scale: stats.cauchy(loc, scale)),
    "Exponential": (("rate",), lambda stats, rate: stats.expon(scale=1.0 / rate)),
    "Gamma": (("concentration", "rate"), lambda stats, a, rate: stats.gamma(a, scale=1.0 / rate)),
    "HalfCauchy": (("scale",), lambda stats, scale: stats.halfcauchy(scale=scale)),
    "HalfNormal": (("scale",), lambda stats, scale: stats.halfnorm(scale=scale)),
    "InverseGamma": (("concentration", "scale"), lambda stats, a, scale: stats.invgamma(a, scale=scale)),
    "Laplace": (("loc", "scale"), lambda stats, loc, scale: stats.laplace(loc, scale)),
    "LogNormal": (("loc", "scale"), lambda stats, loc, scale: stats.lognorm(scale, scale=math.exp(loc))),
    "Normal": (("loc", "scale"), lambda stats, loc, scale: stats.norm(loc, scale)),
    "StudentT": (("df", "loc", "scale"), lambda stats, df, loc, scale: stats.t(df, loc, scale)),
    "TruncatedNormal": (("loc", "scale", "low", "high"), _truncated_normal),
    "Uniform": (("low", "high"), lambda stats, low, high: stats.uniform(low, high - low)),
}
_OF_ANY_SIGN = ("loc", "low", "high")
"""What need not be above 0."""
NAMES = tuple(name for name in _NAMED if name not in CONJUGATE)
"""What has no conjugate prior of its own name."""


def one_number(prior: object) -> Density:
    """Return a prior of one number as a density: of an object, a frozen distribution or its text.

    Raises
    ------
    PriorError
        Where it is none.
    """
    density = Density.of(prior)
    if density is not None:
        return density
    if isinstance(prior, Beta | Gamma | InverseGamma | Normal):
        return parse_density(str(prior))
    if isinstance(prior, str):
        return parse_density(prior)
    message = (
        "a prior of one number is a frozen continuous distribution of scipy.stats, a suffice.Density, or one "
        f"of {', '.join(_NAMED)}, not {prior!r}"
    )
    raise PriorError(message)


def parse_density(text: str) -> Density:
    """Read a density such as ``HalfCauchy(2)`` or ``TruncatedNormal(loc=0, scale=1, low=0, high=3)``.

    Raises
    ------
    PriorError
        Where the text is no such call, or a number breaks a rule.
    """
    written, frozen = named_distribution(text)
    lower, upper = (float(end) for end in frozen.support())
    hints = tuple(float(position) for position in frozen.ppf(np.array(LEVELS)))
    return Density(frozen.logpdf, lower, upper, name=written, hints=hints, is_named=True)


def named_distribution(text: str) -> tuple[str, Any]:
    """Return the text of a density by name, and its distribution of ``scipy.stats``.

    Raises
    ------
    PriorError
        As for ``parse_density``.
    """
    from scipy import stats

    name, arguments, keywords = parse_call(text, known=tuple(_NAMED))
    names, distribution = _NAMED[name]
    given: dict[str, Any] = dict(zip(names, arguments, strict=False)) | keywords
    if len(given) != len(arguments) + len(keywords) or set(given) != set(names):
        message = f"prior {text!r}: {name} takes exactly ({', '.join(names)})"
        raise PriorError(message)
    for key, value in given.items():
        is_number = isinstance(value, int | float) and math.isfinite(value)
        positive = key not in _OF_ANY_SIGN
        if not is_number or (positive and value <= 0.0):
            rule = "a finite number above 0" if positive else "a finite number"
            message = f"{name}: {key} must be {rule}, not {value!r}"
            raise PriorError(message)
    if "low" in given and not given["low"] < given["high"]:
        message = f"{name}: low must be below high, not {given['low']!r} and {given['high']!r}"
        raise PriorError(message)
    try:
        frozen = distribution(stats, *(float(given[key]) for key in names))
    except OverflowError:
        message = f"{text.strip()}: its numbers are too large to work with"
        raise PriorError(message) from None
    return f"{name}({', '.join(f'{float(given[key]):.15g}' for key in names)})", frozen


def parse_one_component(text: str) -> Prior | Density | Independent:
    """Read a conjugate prior, a density by its name, or ``Independent(mean=..., variance=...)``.

    Raises
    ------
    PriorError
        Where the text is none of them.
    """
    name, call = called_name(text)
    if name in NAMES:
        return parse_density(text)
    mixtures = {"Mixture", "ScaleMixture", "SpreadGamma", "SpreadInverseGamma"}
    known_names = {*CONJUGATE, *NAMES, *mixtures, "Independent"}
    if name and name not in known_names:
        message = (
            f"prior {text!r}: {name} is not known: write one of {', '.join(sorted(known_names))}, as in "
            "Beta(1, 1). Others: suffice.Density, in Python"
        )
        raise PriorError(message)
    if call is None or name != "Independent":
        return parse_prior(text)
    source = text.strip()
    parts = {keyword.arg: ast.get_source_segment(source, keyword.value) for keyword in call.keywords}
    known = {"mean", "variance", "sd"}
    if call.args or len(parts) != len(call.keywords) or not set(parts) <= known:
        message = (
            f"prior {text!r}: Independent takes two priors by keyword, as in Independent(mean=Normal(0, 10), "
            "sd=HalfNormal(5)), or variance= in the place of sd="
        )
        raise PriorError(message)
    from suffice.pipeline.math.priors.joint_density import Independent  # rarely needed

    return Independent(mean=parts.get("mean"), variance=parts.get("variance"), sd=parts.get("sd"))
