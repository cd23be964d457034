"""Priors from their text: sums, points and truncations, and all that ``mixtures`` and ``by_name`` read.

A text is a sum of terms, each a prior or a number times one: ``0.5*Point(0.3) + 0.5*Beta(1, 1)``. Priors of
one number may be ``Point(value)``, ``Points({value: weight, ...})`` or ``Truncated(prior, lower, upper)``, of
which an end may be left out by name, ``Truncated(HalfCauchy(2), upper=5)``, or ``SpikeAndSlab(0.2, Normal(0,
1))``. Those of coefficients are read in ``coefficients.py``. Nothing is evaluated. A text is
what the same prior is in Python.
"""

from __future__ import annotations

import ast
from typing import Any

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.weighted_sum import WeightedSum
from suffice.pipeline.math.priors.by_name import called_name, parse_number
from suffice.pipeline.math.priors.composed import Point, Points, Truncated, simplest
from suffice.pipeline.math.priors.effects import SpikeAndSlab
from suffice.pipeline.math.priors.mixtures import parse_mixture

_DEEPEST = 20
_FORM = "write a sum as 0.5*Point(0.3) + 0.5*Beta(1, 1)"


def parse_any(text: str) -> Any:
    """Read a prior of any kind that has a text.

    Raises
    ------
    PriorError
        Where the text is none.
    """
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return parse_mixture(text)  # whose error tells where it ends
    return simplest(_of(expression, text, 0))


def _of(node: ast.expr, text: str, depth: int) -> Any:
    """Return the prior that an expression stands for; `text` is all of it."""
    if depth > _DEEPEST:
        message = f"prior: sums and truncations go {_DEEPEST} levels deep: state a simpler one"
        raise PriorError(message)
    if isinstance(node, ast.BinOp):
        return WeightedSum(*_terms(node, text, depth))
    name, call = called_name(ast.unparse(node))
    if call is None:
        return parse_mixture(text if depth == 0 else ast.unparse(node))
    match name:
        case "Point":
            read: Any = Point(_only_number(call, text))
        case "Points":
            read = Points(_weights(call, text))
        case "Truncated":
            read = _truncated(call, text, depth)
        case "SpikeAndSlab":
            read = _spike_and_slab(call, text, depth)
        case _:
            read = parse_mixture(text if depth == 0 else ast.unparse(node))
    return read


def _terms(node: ast.expr, text: str, depth: int) -> list[Any]:
    """Return the weights and priors of a sum by turns."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        # A sum of very many terms nests to the left.
        terms: list[Any] = []
        rest: ast.expr = node
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Add):
            terms = [*_terms(rest.right, text, depth + 1), *terms]
            rest = rest.left
        return [*_terms(rest, text, depth + 1), *terms]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        weight, prior = node.left, node.right
        if isinstance(weight, ast.Call):
            weight, prior = prior, weight
        return [parse_number(weight, text), _of(prior, text, depth + 1)]
    if isinstance(node, ast.BinOp):
        message = f"prior {text!r}: priors are weighed by * and added by +: {_FORM}"
        raise PriorError(message)
    return [1.0, _of(node, text, depth + 1)]


def _only_number(call: ast.Call, text: str) -> float:
    nodes = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "value")]
    if len(nodes) != 1 or len(call.args) + len(call.keywords) != 1:
        message = f"prior {text!r}: Point takes exactly one number, as Point(0.3)"
        raise PriorError(message)
    return parse_number(nodes[0], text)


def _weights(call: ast.Call, text: str) -> dict[float, float]:
    given = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if not isinstance(given, ast.Dict) or None in given.keys:
        message = f"prior {text!r}: Points takes values and their weights, as Points({{0.1: 0.2, 0.5: 0.8}})"
        raise PriorError(message)
    weights: dict[float, float] = {}
    for key, value in zip(given.keys, given.values, strict=True):
        assert key is not None  # noqa: S101 - checked above
        number = parse_number(key, text)
        if number in weights:
            message = f"prior {text!r}: Points has {number:g} twice: give each value once"
            raise PriorError(message)
        weights[number] = parse_number(value, text)
    return weights


def _spike_and_slab(call: ast.Call, text: str, depth: int) -> WeightedSum:
    given = dict(zip(("inclusion", "slab"), call.args, strict=False))
    given |= {keyword.arg or "": keyword.value for keyword in call.keywords}
    if set(given) != {"inclusion", "slab"} or len(call.args) + len(call.keywords) != 2:
        message = (
            f"prior {text!r}: write it as SpikeAndSlab(0.2, Normal(0, 1)): the probability of not being 0"
        )
        raise PriorError(message)
    return SpikeAndSlab(parse_number(given["inclusion"], text), _of(given["slab"], text, depth + 1))


def _truncated(call: ast.Call, text: str, depth: int) -> Truncated:
    ends: dict[str | None, ast.expr] = dict(zip(("lower", "upper"), call.args[1:], strict=False))
    named: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
    is_known = set(named) <= {"lower", "upper"} and not set(named) & set(ends)
    if (
        not 1 <= len(call.args) <= 3
        or not is_known
        or len(named) != len(call.keywords)
        or not {**ends, **named}
    ):
        message = (
            f"prior {text!r}: Truncated takes a prior and its ends, as Truncated(Beta(1, 1), 0.1, 0.4) or "
            "Truncated(HalfCauchy(2), upper=5)"
        )
        raise PriorError(message)
    numbers = {str(name): parse_number(node, text) for name, node in {**ends, **named}.items()}
    return Truncated(_of(call.args[0], text, depth + 1), **numbers)
