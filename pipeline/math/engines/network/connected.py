"""Parts of a network whose tables can be taken together without trusting its independences.

Where every two parents of a node are joined by an edge themselves, the tables released are all that the
network says about the rows: no combination of consistent tables contradicts it, and the largest tables are
the cliques of a junction tree. Where parents are not joined, their common table shows how independent they
are, and rows that do not follow the network would be moved from entry to entry, far beyond the noise, until
they do. The table of such a node is no part of a larger one.

References
----------
Lauritzen. Graphical models. Oxford, 1996.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pipeline.terms.statistics.count_table import CountTable

Scope: TypeAlias = tuple[int, ...]
"""Variables by number, ascending: the axes of a table in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JunctionTree:
    """Cliques in an order in which each shares with all those before it what it shares with one of them.

    Attributes
    ----------
    cliques : tuple of Scope
    separators : tuple of Scope
        What each clique but the first shares with those before it.
    """

    cliques: tuple[Scope, ...]
    separators: tuple[Scope, ...]


def parts(released: Sequence[CountTable]) -> list[list[int]]:
    """Split tables of (parents, node) by position: connected parts, and nodes whose parents are not joined.

    The latter stand alone, but for nodes with the same parents.
    """
    names = [frozenset(variable.name for variable in table.variables) for table in released]
    parents = [names[position] - {table.name} for position, table in enumerate(released)]
    together = set(range(len(released)))
    while True:
        edges = {
            frozenset((parent, released[position].name))
            for position in together
            for parent in parents[position]
        }
        cut = {
            position
            for position in together
            if any(frozenset(pair) not in edges for pair in combinations(parents[position], 2))
        }
        if not cut:
            break
        together -= cut
    alone: dict[frozenset[str], list[int]] = {}
    for position in sorted(set(range(len(released))) - together):
        alone.setdefault(parents[position], []).append(position)
    return [*_connected(sorted(together), names), *alone.values()]


def junction_tree(scopes: Iterable[Scope]) -> JunctionTree:
    """Order the largest of the given scopes; they are the cliques of a connected part."""
    distinct = [set(scope) for scope in dict.fromkeys(scopes)]
    left = sorted(scope for scope in distinct if not any(scope < other for other in distinct))
    order, separators = [left.pop(0)], []
    while left:
        clique, before = max(
            ((clique, before) for clique in left for before in order),
            key=lambda pair: len(pair[0] & pair[1]),
        )
        left.remove(clique)
        order.append(clique)
        separators.append(clique & before)
    return JunctionTree(
        cliques=tuple(tuple(sorted(clique)) for clique in order),
        separators=tuple(tuple(sorted(separator)) for separator in separators),
    )


def _connected(positions: Sequence[int], names: Sequence[frozenset[str]]) -> list[list[int]]:
    """Join tables that share variables, directly or by others."""
    found: list[tuple[set[str], list[int]]] = []
    for position in positions:
        touching = [part for part in found if part[0] & names[position]]
        found = [part for part in found if part not in touching]
        variables = set(names[position]).union(*(part[0] for part in touching))
        found.append((variables, sorted([position, *(each for part in touching for each in part[1])])))
    return [part for _, part in found]
