"""Pooled posteriors of Bayesian networks whose tables are taken together by MCMC.

Each data set has latent tables of its own, consistent in themselves, and the probabilities are those of all:
what is taken together in one posterior is drawn by the same chains for all data sets at once, with the
probabilities integrated out. Other families of nodes are multiplied as those of tables without MCMC are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.pipeline.math.distributions.piecewise import PiecewiseTables
from suffice.pipeline.math.engines.network.decomposition import family_pieces, joint_pieces, not_reconciled
from suffice.pipeline.math.engines.network.posterior import generator_of
from suffice.pipeline.math.engines.pooled.importance_sampling import products
from suffice.pipeline.math.engines.pooled.multinomial import table_factors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.network.posterior import NoisyTables
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
            found = [family_pieces(released, each.take(rows), concentrations) for each in data_sets]
            return list(zip(*map(table_factors, found), strict=True))

        width = sum(table.size for table in released)
        distributions = products(factors, cells, width, generator_of(data_sets, concentrations))
        pieces += [
            (distribution, slice(None), positions)
            for distribution, (_, _, positions) in zip(distributions, alone, strict=True)
        ]
    return PiecewiseTables(pieces=tuple(pieces), apart=not_reconciled(released))
