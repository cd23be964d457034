"""Variable elimination: margins of a product of tables, and rows drawn from it.

A factor is a table over some variables, a number for each draw and cell besides. Variables are summed out one
by one. Which is next is chosen by minimum fill: the one whose elimination joins the fewest pairs of variables
that were not in a table together. The result is known up to a constant of each draw and cell, so factors are
scaled to a largest entry of 1 on the way: nothing underflows, however much is given.

What a variable is summed out of is, up to a constant, its law given the variables summed out after it: rows
are drawn in the opposite order, exactly.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from suffice.typing import Counts, Floats

MOST_NUMBERS = 1 << 28
"""Of the largest table that elimination may make, of one draw and all cells."""
_BLOCK = 1 << 22
"""Numbers of the largest table of a block of draws."""
_einsum: Any = np.einsum
"""By numbers of axes, a form that has no types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A table of numbers that are not negative.

    Attributes
    ----------
    variables : tuple of str
        Each once.
    values : ndarray
        Shape (n_draws, n_cells, *sizes), a size for each variable.
    """

    variables: tuple[str, ...]
    values: Floats


def marginal(factors: Sequence[Factor], keep: tuple[str, ...]) -> Floats:
    """Return the distribution of the variables `keep` that the product of factors is proportional to.

    It is (n_draws, n_cells, *sizes of keep), sums to 1 in each draw and cell, and is not a number where all
    products are 0. A table on the way that would be too large is refused.
    """
    sizes = _sizes(factors)
    order, widest = elimination_order([factor.variables for factor in factors], sizes, keep)
    draws, cells = factors[0].values.shape[:2]
    if widest * cells > MOST_NUMBERS:
        message = (
            f"the query takes a table of {widest} numbers for each draw and cell, in {cells} cells: "
            f"at most {MOST_NUMBERS} in all; give more variables, or keep fewer cells"
        )
        raise UsageError(message)
    step = max(1, _BLOCK // (widest * cells))
    blocks = [
        _marginal(
            [
                Factor(variables=factor.variables, values=factor.values[start : start + step])
                for factor in factors
            ],
            order,
            keep,
        )
        for start in range(0, draws, step)
    ]
    return np.concatenate(blocks)


def drawn_rows(factors: Sequence[Factor], rows: int, rng: np.random.Generator) -> dict[str, Counts]:
    """Draw rows from the law of one cell that the product of factors is proportional to.

    Returns
    -------
    dict of str to ndarray of shape (n_draws, rows), int64
        The number of its category, of each variable.
    """
    sizes = _sizes(factors)
    order, widest = elimination_order([factor.variables for factor in factors], sizes, ())
    if widest > MOST_NUMBERS:
        message = f"rows take a table of {widest} numbers for each draw: at most {MOST_NUMBERS}"
        raise UsageError(message)
    left, laws = list(factors), []
    for variable in order:
        joined = [factor for factor in left if variable in factor.variables]
        law = joined[0]
        for factor in joined[1:]:
            law = _product(law, factor)
        laws.append(law)
        rest = tuple(name for name in law.variables if name != variable)
        summed = law.values.sum(axis=2 + law.variables.index(variable))
        left = [factor for factor in left if variable not in factor.variables]
        left.append(Factor(variables=rest, values=_scaled(summed)))
    drawn: dict[str, Counts] = {}
    for variable, law in zip(reversed(order), reversed(laws), strict=True):
        levels = np.cumsum(np.moveaxis(law.values[:, 0], 1 + law.variables.index(variable), -1), axis=-1)
        given = [drawn[name] for name in law.variables if name != variable]
        drawn[variable] = np.empty((len(levels), rows), np.int64)
        for draw, level in enumerate(levels):
            # (rows, size), or (size,) of the variable that is drawn first.
            chosen = level[tuple(codes[draw] for codes in given)]
            points = rng.random(rows) * chosen[..., -1]
            drawn[variable][draw] = np.sum(points[:, None] >= chosen[..., :-1], axis=-1)
    return {variable: drawn[variable] for variable in sizes}


def _sizes(factors: Sequence[Factor]) -> dict[str, int]:
    return {
        variable: size
        for factor in factors
        for variable, size in zip(factor.variables, factor.values.shape[2:], strict=True)
    }


def elimination_order(
    scopes: Iterable[Sequence[str]], sizes: Mapping[str, int], keep: Sequence[str]
) -> tuple[list[str], int]:
    """Return the variables to sum out, by minimum fill, and the entries of the largest table on the way."""
    neighbours: dict[str, set[str]] = {variable: set() for variable in sizes}
    widest = 1
    for scope in scopes:
        widest = max(widest, math.prod(sizes[variable] for variable in scope))
        for variable in scope:
            neighbours[variable] |= set(scope) - {variable}
    order: list[str] = []
    left = [variable for variable in sizes if variable not in keep]

    def fill(variable: str) -> tuple[int, int]:
        around = neighbours[variable]
        missing = sum(other not in neighbours[node] for node, other in itertools.combinations(around, 2))
        return missing, math.prod(sizes[other] for other in around)

    while left:
        chosen = min(left, key=fill)
        around = neighbours.pop(chosen)
        widest = max(widest, sizes[chosen] * math.prod(sizes[other] for other in around))
        for other in around:
            neighbours[other] = (neighbours[other] | around) - {chosen, other}
        left.remove(chosen)
        order.append(chosen)
    return order, max(widest, math.prod(sizes[variable] for variable in keep))


def _marginal(factors: list[Factor], order: Sequence[str], keep: tuple[str, ...]) -> Floats:
    # Sum a variable out of the product of the factors that it stands in.
    for variable in order:
        joined = [factor for factor in factors if variable in factor.variables]
        factors = [factor for factor in factors if variable not in factor.variables]
        factors.append(_summed(joined, variable))
    result = factors[0]
    for factor in factors[1:]:
        result = _product(result, factor)
    values = _einsum(result.values, _axes(result.variables, keep), _axes(keep, keep))
    total = values.sum(axis=tuple(range(2, values.ndim)), keepdims=True)
    # Not a number in draws in which what is given has no chance.
    shares: Floats = np.divide(values, total, out=np.full_like(values, np.nan), where=total > 0.0)
    return shares


def _summed(factors: Sequence[Factor], variable: str) -> Factor:
    """Multiply factors, and sum a variable out of their product."""
    first, *others = sorted(factors, key=lambda factor: factor.values.size)
    for factor in others[:-1]:
        first = _product(first, factor)
    if others:
        return _product(first, others[-1], without=variable)
    rest = tuple(name for name in first.variables if name != variable)
    return Factor(variables=rest, values=_scaled(first.values.sum(axis=2 + first.variables.index(variable))))


def _product(first: Factor, other: Factor, without: str | None = None) -> Factor:
    every = tuple(dict.fromkeys((*first.variables, *other.variables)))
    rest = tuple(name for name in every if name != without)
    axes = [_axes(names, every) for names in (first.variables, other.variables, rest)]
    return Factor(
        variables=rest, values=_scaled(_einsum(first.values, axes[0], other.values, axes[1], axes[2]))
    )


def _axes(names: Sequence[str], among: Sequence[str]) -> list[int]:
    """Number the axes of an array for einsum: draws and cells come first."""
    return [0, 1, *(2 + among.index(name) for name in names)]


def _scaled(values: Floats) -> Floats:
    """Divide by the largest entry of each draw and cell, where that is not 0."""
    largest = values.max(axis=tuple(range(2, values.ndim)), keepdims=True)
    return values / np.where(largest > 0, largest, 1.0)
