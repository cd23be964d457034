r"""Bayesian networks from noisy tables of (parents, node): which are taken together, and by which engine.

Model: rows follow a network with nodes v; the table z of (parents, v) is released with noise for every
node. The question is the posterior of all conditional probabilities. It is a product over parts of the
network,

.. math:: p(\theta \mid z) = \prod_i p(\theta_i \mid z_i) \qquad (1)

**The engine is chosen here.** A *family* is all nodes with the same parents: features of one class, the
combination of the parents' categories. The tables of a family agree on the margin of its parents, and its
posterior is exact (``multinomial.class_counts``); so is that of a root that is nobody's only parent
(``multinomial``). A part of several families agrees on more margins and takes MCMC
(``posterior``); one with a table of more than ``MOST_ENTRIES`` entries is taken family by family, whose
margins are then not reconciled: (1) then leaves out what they say about each other. What a part is, and why
it may be less than the whole network, is stated in ``table_network``.

Where a family's parents are a single root, its counts are margins of the nodes' tables; it has no table of
its own, and its probabilities belong to the family. Else the combinations of the parents have a prior of
Dirichlet(1).

Pooled: each data set has latent tables of its own, and the probabilities are those of all. What is taken
together is drawn by the same chains for all data sets, probabilities integrated out; other families are
multiplied (``combined``).

Chains start at possible counts: margins by inverse variance, tables projected onto the simplex of their
total, in turns. With :math:`s_i` entries of table i to one of a shared margin :math:`m_i`, the margin is

.. math:: \bar m = \sum_i \frac{m_i}{s_i} \Big/ \sum_i \frac{1}{s_i}, \qquad
    n_i \leftarrow n_i + (\bar m - m_i) / s_i \qquad (2)

since the noise of :math:`m_i` has :math:`s_i` times the variance of an entry. (``margin``, ``spread`` and
``mean`` in the code; in rows.)
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.composite import PiecewiseTables, Probabilities
from suffice.pipeline.math.distributions.dirichlet import project_simplex
from suffice.pipeline.math.engines.combined import products, table_factors
from suffice.pipeline.math.engines.multinomial.class_counts import StarCounts, star_posterior
from suffice.pipeline.math.engines.multinomial.count_posterior import count_posterior
from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts
from suffice.pipeline.math.engines.network.table_network import parts
from suffice.pipeline.math.engines.network.table_posterior import NoisyTables, generator_of, network_posterior
from suffice.pipeline.terms.statistics.count_table import released_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.composite import Piece
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats, Rows


def pooled_network_distribution(
    released: Sequence[CountTable], data_sets: Sequence[NoisyTables], concentrations: Sequence[Floats]
) -> PiecewiseTables:
    """Return the posterior of probabilities that data sets share, in the order of the tables' entries.

    Parameters
    ----------
    released : sequence of CountTable
        The tables of (parents, node).
    data_sets : sequence of NoisyTables
        Of the same cells; each has its own N and its own noise.
    concentrations : sequence of ndarray of shape (n_rows, n_categories), float64
        The prior of each node given each combination of its parents; it counts once.

    Raises
    ------
    UsageError
        Where the data barely fit the probabilities of a family of nodes that is taken by itself.
    """
    pieces = joint_pieces(released, data_sets, concentrations)
    cells = data_sets[0].n_cells
    alone = family_pieces(released, data_sets[0].take(slice(1)), concentrations)
    if alone:

        def factors(rows: Rows) -> list[tuple[Any, ...]]:
            # Given the probabilities data sets are independent: a family's posterior is a product.
            factors = [family_pieces(released, each.take(rows), concentrations) for each in data_sets]
            return list(zip(*map(table_factors, factors), strict=True))

        width = sum(table.size for table in released)
        distributions = products(factors, cells, width, generator_of(data_sets, concentrations))
        pieces += [
            (distribution, slice(None), positions)
            for distribution, (_, _, positions) in zip(distributions, alone, strict=True)
        ]
    return PiecewiseTables(pieces=tuple(pieces), apart=not_reconciled(released))


MOST_ENTRIES = 128
"""Of each table of a part whose tables are taken together: chains of larger ones mix slowly."""

_MOST_ROUNDS = 200
_CLOSE = 1e-6
"""Share of the noise scale within which projected margins agree."""


def network_distribution(
    released: Sequence[CountTable], noisy: NoisyTables, concentrations: Sequence[Floats]
) -> PiecewiseTables:
    """Return the posterior of all probabilities, in the order of the tables' entries.

    Parameters
    ----------
    released : sequence of CountTable
        The tables of (parents, node).
    noisy : NoisyTables
        Their noisy counts.
    concentrations : sequence of ndarray of shape (n_rows, n_categories), float64
        The prior of each node given each combination of its parents.
    """
    pieces = [
        *joint_pieces(released, [noisy], concentrations),
        *family_pieces(released, noisy, concentrations),
    ]
    return PiecewiseTables(pieces=tuple(pieces), apart=not_reconciled(released))


def joint_pieces(
    released: Sequence[CountTable], data_sets: Sequence[NoisyTables], concentrations: Sequence[Floats]
) -> list[Piece]:
    """Return posteriors of parts that are taken together, given data sets that share the probabilities.

    Each is a posterior, which of its entries are taken, and where these stand.
    """
    joint, _ = joint_parts(released)
    if not joint:
        return []
    starts = np.cumsum([0, *(table.size for table in released)])
    projected = []
    for each in data_sets:
        low, high = each.n_prior.support
        counts = [
            totals.by_release[:, 0].reshape(-1, *table.shape)
            for totals, table in zip(each.released, released_tables(released), strict=True)
        ]
        known_n = float(low) if low == high else None
        projected.append(project_nodes(released, counts, known_n=known_n, scale=each.scales[0]))
    pieces: list[Piece] = []
    for part in joint:
        entries = np.concatenate([np.arange(starts[position], starts[position + 1]) for position in part])
        drawn = network_posterior(
            [released[position] for position in part],
            [each.part(part) for each in data_sets],
            [possible[:, entries] for possible in projected],
            [concentrations[position] for position in part],
        )
        pieces.append((Probabilities(drawn), np.arange(len(entries)), entries))
    return pieces


def family_pieces(
    released: Sequence[CountTable], noisy: NoisyTables, concentrations: Sequence[Floats]
) -> list[Piece]:
    """Return posteriors of the other families of nodes, one by one, as ``joint_pieces`` does."""
    return [
        _family_piece(released, noisy, concentrations, root, nodes)
        for part in joint_parts(released)[1]
        for root, nodes in _families_of(released, part)
    ]


def not_reconciled(released: Sequence[CountTable]) -> tuple[str, ...]:
    """Return the names of tables that share margins with others which their posterior does not see."""
    return tuple(
        released[position].name
        for part in joint_parts(released)[1]
        for root, nodes in _families_of(released, part)
        for position in ([] if root is None else [root]) + nodes
        if _is_apart(released, {position for position in (root, *nodes) if position is not None})
    )


def joint_parts(released: Sequence[CountTable]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the parts of several families that are taken together, and those taken family by family.

    It depends on the tables' variables and sizes alone.
    """
    joint: list[list[int]] = []
    by_family: list[list[int]] = []
    for part in parts(released):
        # The choice of the engine: one family is exact, several agree on more margins than one.
        several = len(_families_of(released, part)) > 1
        # Chains of large tables mix slowly.
        is_small = max(released[position].size for position in part) <= MOST_ENTRIES
        (joint if several and is_small else by_family).append(part)
    return joint, by_family


def _is_apart(released: Sequence[CountTable], family: set[int]) -> bool:
    """Whether tables beyond a family share a variable with it."""
    variables = {variable.name for position in family for variable in released[position].variables}
    return any(
        variable.name in variables
        for position, table in enumerate(released)
        if position not in family
        for variable in table.variables
    )


def _families_of(released: Sequence[CountTable], part: Sequence[int]) -> list[tuple[int | None, list[int]]]:
    """Return the families of a part, by position among all tables."""
    return [
        (None if root is None else part[root], [part[node] for node in nodes])
        for root, nodes in families([released[position] for position in part])
    ]


def _family_piece(
    released: Sequence[CountTable],
    noisy: NoisyTables,
    concentrations: Sequence[Floats],
    root: int | None,
    nodes: Sequence[int],
) -> Piece:
    """Return the posterior of one family, which of its entries are taken, and where these stand."""
    starts = np.cumsum([0, *(table.size for table in released)])
    if root is not None and not nodes:
        alone = NoisyCounts.of(
            noisy.table(root), concentration=concentrations[root][0], n_prior=noisy.n_prior
        )
        everything = np.arange(released[root].size)
        return Probabilities(count_posterior(alone)), everything, starts[root] + everything
    names = [variable.name for variable in released[nodes[0]].variables[:-1]]
    positions = [
        np.arange(table.size).reshape(1, *table.shape) + start
        for table, start in zip(released, starts, strict=False)
    ]
    n_classes = released[nodes[0]].size // released[nodes[0]].shape[-1]
    of_nodes = [by_class(released[node], positions[node], names).ravel() for node in nodes]
    posterior = star_posterior(
        StarCounts(
            features=tuple(
                noisy.table(node).part(order - starts[node])
                for node, order in zip(nodes, of_nodes, strict=True)
            ),
            # Combinations of several parents have no table of their own: all are alike a priori.
            class_concentration=np.ones(n_classes) if root is None else concentrations[root][0],
            feature_concentrations=tuple(
                by_class(released[node], concentrations[node].reshape(1, *released[node].shape), names)[0]
                for node in nodes
            ),
            n_prior=noisy.n_prior,
        )
    )
    entries = [] if root is None else [starts[root] + np.arange(n_classes)]
    # The class is of the family only where it is a root; else another part has its probabilities.
    taken = np.arange(0 if entries else n_classes, posterior.mean.shape[1])
    return Probabilities(posterior), taken, np.concatenate([*entries, *of_nodes])


def families(released: Sequence[CountTable]) -> list[tuple[int | None, list[int]]]:
    """Return every family: the root that is its class, if any, and the nodes with these parents."""
    roots = {table.name: index for index, table in enumerate(released) if len(table.variables) == 1}
    nodes: dict[frozenset[str], list[int]] = {}
    for index, table in enumerate(released):
        parents = frozenset(variable.name for variable in table.variables[:-1])
        if parents:
            nodes.setdefault(parents, []).append(index)
    families = [
        (roots.pop(next(iter(names)), None) if len(names) == 1 else None, members)
        for names, members in nodes.items()
    ]
    return [*families, *((root, []) for root in roots.values())]


def by_class(table: CountTable, values: Any, names: Sequence[str]) -> Any:
    """Values (n, *table.shape) as (n, n_classes, n_categories), the parents in the order of `names`."""
    parents = [variable.name for variable in table.variables[:-1]]
    axes = [1 + parents.index(name) for name in names]
    ordered = np.transpose(values, (0, *axes, values.ndim - 1))
    return ordered.reshape(len(values), -1, table.shape[-1])


def project_nodes(
    nodes: Sequence[CountTable], counts: Sequence[Floats], *, known_n: float | None, scale: float
) -> Floats:
    """Project the tables that are released of some nodes; add the margins that are not."""
    released = released_tables(nodes)
    projected = project_tables(released, counts, known_n=known_n, scale=scale)
    ends = np.cumsum([table.size for table in released])
    families = {
        table.name: values.reshape(-1, *table.shape)
        for table, values in zip(released, np.split(projected, ends[:-1], axis=1), strict=True)
    }
    for node in nodes:
        if node.name not in families:
            child = next(table for table in released if table.variables[:-1] == node.variables)
            # A root that was not released is the margin of its children.
            families[node.name] = families[child.name].sum(axis=2)
    return np.concatenate([families[node.name].reshape(len(projected), -1) for node in nodes], axis=1)


def project_tables(
    released: Sequence[CountTable], counts: Sequence[Floats], *, known_n: float | None, scale: float
) -> Floats:
    """Return possible counts (n_cells, n_entries): nowhere negative, and shared margins agree.

    Margins are averaged by inverse variance and tables projected onto the simplex of their total, in turns,
    until both hold.
    """
    shared = shared_variables(released)
    n_cells = len(counts[0])
    for _round in range(_MOST_ROUNDS):
        counts = agreeing(counts, released, shared, known_n)
        # Both conditions then hold, to ``_CLOSE`` scales of the noise.
        if min(float(table.min()) for table in counts) > -_CLOSE * scale:
            break
        counts = [
            project_simplex(table.reshape(n_cells, -1), np.maximum(_total(table), 0.0)[:, None]).reshape(
                table.shape
            )
            for table in counts
        ]
    projected: Floats = np.concatenate([table.reshape(n_cells, -1) for table in counts], axis=1)
    return np.maximum(projected, 0.0)


def _total(table: Floats) -> Floats:
    total: Floats = table.sum(axis=tuple(range(1, table.ndim)))
    return total


def shared_variables(released: Sequence[CountTable]) -> list[frozenset[str]]:
    """Return the sets of variables that tables share, and what these sets share, the smallest first."""
    scopes = [frozenset(variable.name for variable in table.variables) for table in released]
    # Margins of margins agree too: the set is closed under intersection.
    separators = {first & second for first, second in combinations(scopes, 2)} | {frozenset[str]()}
    while True:
        more = separators | {first & second for first, second in combinations(separators, 2)}
        if more == separators:
            return sorted(separators, key=lambda names: (len(names), sorted(names)))
        separators = more


def agreeing(
    counts: Sequence[Floats],
    released: Sequence[CountTable],
    shared: Sequence[frozenset[str]],
    known_n: float | None,
) -> list[Floats]:
    """Let tables agree on every margin that they share: its mean by inverse variance, spread evenly.

    Smaller margins come first, and a larger one that agrees on them moves none of them.
    """
    result = list(counts)
    for names in shared:
        margins: list[tuple[int, Any, Floats, float]] = []
        for index, table in enumerate(released):
            variables_of_table = [variable.name for variable in table.variables]
            if names <= set(variables_of_table):
                others = tuple(axis for axis, name in enumerate(variables_of_table, 1) if name not in names)
                kept = [axis for axis, name in enumerate(variables_of_table, 1) if name in names]
                order = sorted(range(len(kept)), key=lambda position: variables_of_table[kept[position] - 1])
                margin = result[index].sum(axis=others, keepdims=True)
                spread = result[index][0].size / margin[0].size
                aligned = np.transpose(
                    margin.reshape(len(margin), *(margin.shape[axis] for axis in kept)),
                    (0, *(1 + position for position in order)),
                )
                margins.append((index, (margin.shape, np.argsort(order)), aligned, spread))
        if known_n is not None and not names:
            # A public N has no noise.
            mean = np.full(margins[0][2].shape, known_n)
        else:
            # (2).
            weight = sum(1.0 / spread for *_, spread in margins)
            mean = sum((margin / spread for *_, margin, spread in margins), np.zeros(1)) / weight
        for index, (shape, back), margin, spread in margins:
            change = np.transpose(mean - margin, (0, *(1 + position for position in back))).reshape(shape)
            # (2): the nearest table with that margin, as all its entries have the same variance.
            result[index] = result[index] + change / spread
    return result
