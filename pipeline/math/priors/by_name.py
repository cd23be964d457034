r"""Priors from their text or as objects: conjugate ones, densities by name, and pairs of both.

Names and parameters are those of NumPyro. Nothing is evaluated: the text has to be a call of a known name
with number literals, or with lists of them where a prior takes vectors and matrices, or ``Independent`` with
two such calls.

Model of a pair. The mean and the variance (or the standard deviation) of a normal column have

.. math:: p(m, v) = p_m(m) \, p_v(v), \qquad (1)

by two densities (``Independent``), or a stated log density of both, but for a constant (``JointDensity``). A
prior of the standard deviation :math:`s = \sqrt v` is another one than the same of v: :math:`p_v(v) =
p_s(\sqrt v) / 2 \sqrt v`.

Symbols:

- m: ``mean``, any number, in the column's unit
- v, s: ``spread``, > 0; ``of`` tells which of the two it is

Method. Text is read exactly; densities are of ``scipy.stats``, right but for rounding, or the horseshoe's.
"""

from __future__ import annotations

import ast
import difflib
import math
import sys
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions import normal_inverse_gamma, spread_scales
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.priors.bin_walk import BinWalk
from suffice.pipeline.math.priors.checks import called, ends_of, prior_error_of_values
from suffice.pipeline.math.priors.density import LEVELS, Density
from suffice.pipeline.math.priors.horseshoe import HorseshoeDistribution
from suffice.pipeline.math.priors.other_libraries import density_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from suffice.pipeline.math.distributions.distribution import Entries, Prior
    from suffice.pipeline.math.priors.density import ScipyDistribution
    from suffice.typing import Floats


CONJUGATE: dict[str, type[Prior]] = {
    prior.__name__: prior
    for prior in (
        Beta,
        Gamma,
        Dirichlet,
        BinWalk,
        Normal,
        InverseGamma,
        normal_inverse_gamma.NormalInverseGamma,
        NormalInverseWishart,
        normal_inverse_gamma.NormalInverseGammaRegression,
        spread_scales.SpreadNormalInverseWishart,
        spread_scales.SpreadNormalInverseGammaRegression,
    )
}


def parse_prior(text: str) -> Prior:
    """Read a prior such as ``Beta(1, 1)`` or ``Gamma(concentration=2, rate=0.5)``.

    Nothing is evaluated: the text has to be one call of a known name with number literals, or with lists of
    them where a prior takes vectors and matrices.

    Raises
    ------
    PriorError
        When the text is not such a call, the name is unknown or a value breaks a rule.
    """
    name, arguments, keywords = parse_call(text, known=tuple(CONJUGATE))
    try:
        return CONJUGATE[name](*arguments, **keywords)
    except TypeError:
        message = f"prior {text!r}: {_takes(name)}"
        raise PriorError(message) from None


def _takes(name: str) -> str:
    """Return what a conjugate prior takes, by our names and by those of ``scipy.stats``."""
    names = [field.name for field in fields(CONJUGATE[name])]
    here = {ours: theirs for theirs, ours in _BY_SCIPY.get(name, {}).items()}
    by_scipy = f", or ({', '.join(here.get(each, each) for each in names)}) as in scipy.stats" if here else ""
    return f"{name} takes exactly ({', '.join(names)}){by_scipy}"


def parse_call(text: str, *, known: tuple[str, ...]) -> tuple[str, tuple[Entries, ...], dict[str, Entries]]:
    """Split the text of one call with number literals into name, arguments and keywords."""
    way_out = f"write one of {', '.join(known)} with numbers, as in Beta(1, 1)" if "Beta" in known else ""
    way_out = way_out or f"write one of {', '.join(known)} with numbers"
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        position = f"at character {error.offset} of {text.strip()!r}" if error.offset else f"in {text!r}"
        name = text.partition("(")[0].strip()
        message = f"prior: {error.msg} {position}: {_takes(name) if name in CONJUGATE else way_out}"
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


def called_name(text: str) -> tuple[str, ast.Call | None]:
    """Return the name that the text of one call calls, and the call; no name where it is something else."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return "", None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return "", None
    return call.func.id, call


def parse_number(node: ast.expr, text: str) -> float:
    """Return the number that a literal, with or without a sign, or a fraction of two stands for.

    Raises
    ------
    PriorError
        Where it is none; `text` is what it is a part of.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        above, below = (parse_number(part, text) for part in (node.left, node.right))
        if not below:
            message = f"prior {text!r}: a fraction has 0 below it"
            raise PriorError(message)
        return above / below
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
        if isinstance(node.value, int) and node.value > sys.float_info.max:
            # Written out it could be longer than Python agrees to convert.
            message = "prior: a number is too large: magnitudes go up to 1.8e308"
            raise PriorError(message)
        return sign * node.value
    message = f"prior {text!r}: every argument must be a plain number"
    raise PriorError(message)


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
    "Horseshoe": (("scale",), lambda _stats, scale: HorseshoeDistribution(scale)),
    "InverseGamma": (("concentration", "scale"), lambda stats, a, scale: stats.invgamma(a, scale=scale)),
    "Laplace": (("loc", "scale"), lambda stats, loc, scale: stats.laplace(loc, scale)),
    "LogNormal": (("loc", "scale"), lambda stats, loc, scale: stats.lognorm(scale, scale=math.exp(loc))),
    "Normal": (("loc", "scale"), lambda stats, loc, scale: stats.norm(loc, scale)),
    "StudentT": (("df", "loc", "scale"), lambda stats, df, loc, scale: stats.t(df, loc, scale)),
    "TruncatedNormal": (("loc", "scale", "low", "high"), _truncated_normal),
    "Uniform": (("low", "high"), lambda stats, low, high: stats.uniform(low, high - low)),
}
_BY_SCIPY: dict[str, dict[str, str]] = {
    "Beta": {"a": "concentration1", "b": "concentration0"},
    "Exponential": {"scale": "rate"},
    "Gamma": {"a": "concentration", "scale": "rate"},
    "InverseGamma": {"a": "concentration"},
}
"""Names that ``scipy.stats`` has for the same numbers; its scale is one over a rate."""
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
    density = prior if isinstance(prior, Density) else density_of(prior)
    if density is not None:
        return density
    if isinstance(prior, Beta | Gamma | InverseGamma | Normal):
        return parse_density(str(prior))
    if isinstance(prior, str):
        return parse_density(prior)
    message = (
        "a prior of one number is a frozen continuous distribution of scipy.stats, NumPyro or PreliZ, a "
        f"suffice.Density, or one of {', '.join(_NAMED)}, not {prior!r}"
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
    # Quantiles tell quadrature where the density is.
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
    given: dict[str, Any] = dict(zip(names, arguments, strict=False)) | _translated(name, keywords)
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


def _translated(name: str, keywords: dict[str, Entries]) -> dict[str, Any]:
    """Return the numbers of a density by our names, where they are given by those of ``scipy.stats``."""
    named: dict[str, Any] = {}
    for key, value in keywords.items():
        here = _BY_SCIPY.get(name, {}).get(key, key)
        is_inverse = here == "rate" != key and isinstance(value, int | float) and value > 0.0
        named.setdefault(here, 1.0 / value if is_inverse else value)  # type: ignore[operator]
    return named


def _way_out(name: str, known: Collection[str]) -> str:
    """Return which distribution may have been meant, or all that there are."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=1)
    if near:
        return f"did you mean {by_lower[near[0]]}?"
    # A message has 500 characters: the defaults of several columns are left to those who know their names.
    named = [each for each in sorted(known) if not each.startswith("SpreadNormal")]
    return f"write one of {', '.join(named)}, as in Beta(1, 1). Others: suffice.Density, in Python"


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
    mixtures = {
        "Coefficients",
        "Mixture",
        "Point",
        "Points",
        "ScaleMixture",
        "SpikeAndSlab",
        "SpreadGamma",
        "SpreadInverseGamma",
        "Truncated",
    }
    known_names = {*CONJUGATE, *NAMES, *mixtures, "Independent"}
    if name and name not in known_names:
        message = f"prior {text!r}: {name} is not known: {_way_out(name, known_names)}"
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

    return Independent(mean=parts.get("mean"), variance=parts.get("variance"), sd=parts.get("sd"))


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

        example = "Independent(mean=Normal(0, 10), sd=HalfNormal(5))"
        if mean is None:
            message = f"Independent lacks the prior of the mean: write it as {example}"
            raise PriorError(message)
        of, spread = _spread_given("Independent", variance, sd, example)
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
        of, spread = _spread_given("JointDensity", variance, sd, example)
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
        value = called(self, self.log_density, (mean.ravel(), spread.ravel()), way_out)
        if value.shape != (mean.size,):
            message = (
                f"prior {self}: its log density of {mean.size} pairs has the shape {value.shape}: {way_out}"
            )
            raise PriorError(message)
        if np.any(np.isnan(value) | (value == np.inf)):
            raise prior_error_of_values(self)
        return value.reshape(mean.shape)


def _spread_given(kind: str, variance: Any, sd: Any, example: str) -> tuple[str, Any]:
    """What the second prior is of, and that prior."""
    given = [(of, value) for of, value in zip(_OF_VARIANCE, (variance, sd), strict=True) if value is not None]
    if not given:
        message = f"{kind} lacks variance= or sd=, what the spread is: write it as {example}"
        raise PriorError(message)
    if len(given) > 1:
        message = f"{kind} takes variance= or sd=, not both: write it as {example}"
        raise PriorError(message)
    return given[0]
