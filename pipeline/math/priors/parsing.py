"""Conjugate priors from their text; nothing is evaluated."""

from __future__ import annotations

import ast
import sys
from dataclasses import fields
from typing import TYPE_CHECKING

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import (
    NormalInverseGamma,
    NormalInverseGammaRegression,
)
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.distributions.spread_scales import (
    SpreadNormalInverseGammaRegression,
    SpreadNormalInverseWishart,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Entries, Prior

CONJUGATE: dict[str, type[Prior]] = {
    prior.__name__: prior
    for prior in (
        Beta,
        Gamma,
        Dirichlet,
        Normal,
        InverseGamma,
        NormalInverseGamma,
        NormalInverseWishart,
        NormalInverseGammaRegression,
        SpreadNormalInverseWishart,
        SpreadNormalInverseGammaRegression,
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
        names = ", ".join(field.name for field in fields(CONJUGATE[name]))
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
        if isinstance(node.value, int) and node.value > sys.float_info.max:
            # Written out it could be longer than Python agrees to convert.
            message = "prior: a number is too large: magnitudes go up to 1.8e308"
            raise PriorError(message)
        return sign * node.value
    message = f"prior {text!r}: every argument must be a plain number"
    raise PriorError(message)
