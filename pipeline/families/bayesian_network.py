r"""Discrete Bayesian network: declared variables, each with declared parents.

.. math:: p(x) = \prod_v \theta_{v, \mathrm{pa}_v(x), x_v}, \quad T(x) = (e_{\mathrm{pa}_v(x), x_v})_v

One table of (parents, node) for each node but roots that are the only parent of another node: their counts
are margins of its table, and are not released again. Sensitivity in `sensitivity.md`: partition-of-unity or
minimal-tables.
"""

from __future__ import annotations

from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, PlainValidator, model_validator

from suffice.pipeline.families import categorical
from suffice.pipeline.families.shared import counted_tables
from suffice.pipeline.families.shared.contract import ColumnType, Example, Family, GenerativeCase
from suffice.pipeline.families.shared.smoothness import of_tables
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import StatisticSpec
from suffice.pipeline.terms.statistics.count_table import released_layout, released_tables
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity
from suffice.pipeline.terms.statistics.simulated_sums import table_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.pipeline.terms.statistics.measure import TableCounts
    from suffice.typing import Floats


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        message = "parents are a list of nodes"
        raise ValueError(message)
    if len(set(value)) < len(value):
        message = "a parent stands there twice"
        raise ValueError(message)
    return tuple(value)


class NodeSpec(counted_tables.VariableSpec):
    """A node: its column, categories and parents."""

    parents: Annotated[tuple[str, ...], PlainValidator(_names)] = ()


class BayesianNetworkSpec(StatisticSpec):
    """The nodes."""

    nodes: Annotated[dict[str, NodeSpec], BeforeValidator(counted_tables.written_out)]

    @model_validator(mode="after")
    def _has_no_cycle(self) -> Self:
        for name, node in self.nodes.items():
            for parent in node.parents:
                if parent not in self.nodes:
                    message = f"the parent {parent!r} of {name!r} is no node: declare it"
                    raise ValueError(message)
        try:
            TopologicalSorter({name: node.parents for name, node in self.nodes.items()}).prepare()
        except CycleError as error:
            message = f"the nodes form no network: parents run in a circle: {' -> '.join(error.args[1])}"
            raise ValueError(message) from None
        return self


def _layout(spec: BayesianNetworkSpec) -> dict[str, tuple[str, ...]]:
    return {name: (*node.parents, name) for name, node in spec.nodes.items()}


def measure(spec: BayesianNetworkSpec) -> TableCounts:
    """Count each node within each combination of its parents, but for margins of other counts."""
    return counted_tables.measure(spec.nodes, [*released_layout(_layout(spec)).values()])


def tables(spec: BayesianNetworkSpec) -> tuple[CountTable, ...]:
    """Return one table for each node."""
    return counted_tables.count_tables(spec.nodes, _layout(spec))


def block(spec: BayesianNetworkSpec, n_is_public: bool) -> Block:
    """Release the nodes' tables; counts of roots left out are means of margins, by inverse variance."""
    every = tables(spec)
    released = released_tables(every)
    starts = [0, *accumulate(table.size for table in released)]
    quantities: list[Quantity] = []
    for root in every:
        if root in released:
            continue
        holders = [
            (table, start)
            for table, start in zip(released, starts, strict=False)
            if table.variables[:-1] == root.variables
        ]
        precisions = [Fraction(1, table.shape[1]) for table, _ in holders]
        quantities += (
            Quantity(
                name="count",
                labels=label,
                coefficients={
                    start + index * table.shape[1] + position: precision / sum(precisions)
                    for (table, start), precision in zip(holders, precisions, strict=True)
                    for position in range(table.shape[1])
                },
            )
            for index, label in enumerate(root.labels())
        )
    return counted_tables.block(released, spec.nodes, n_is_public=n_is_public, derived=tuple(quantities))


def project(statistic: NoisyStatistic) -> Floats:
    """Return possible counts (n_cells, n_probabilities): nowhere negative, and shared margins agree."""
    from suffice.pipeline.math.engines.network.decomposition import project_nodes  # consumers only

    return project_nodes(
        statistic.plan.parameters.tables,
        counted_tables.tables_of(statistic),
        known_n=float(statistic.known_n) if statistic.plan.design is Design.MINIMAL else None,
        scale=statistic.plan.scale,
    )


def plug_in(statistic: NoisyStatistic, prior: Dirichlet) -> Distribution:
    """Update the prior of each node given its parents, of projected counts."""
    return counted_tables.plug_in_distribution(statistic.plan.parameters.tables, prior, project(statistic))


def noise_aware(statistic: NoisyStatistic, prior: Dirichlet, n_prior: NPrior) -> Distribution:
    """Return the posterior given the tables of each part: exact where that is one family, else by MCMC."""
    from suffice.pipeline.math.engines.network.decomposition import network_distribution  # consumers only
    from suffice.pipeline.math.engines.network.table_posterior import NoisyTables

    nodes = statistic.plan.parameters.tables
    noisy = NoisyTables.of(nodes, counted_tables.noisy_tables(statistic), n_prior)
    return network_distribution(nodes, noisy, counted_tables.concentrations(prior, nodes))


def disjoint(
    statistics: Sequence[NoisyStatistic], prior: Dirichlet, n_priors: Sequence[NPrior]
) -> Distribution:
    """Return the posterior of probabilities that data sets share, each with latent tables of its own."""
    from suffice.pipeline.math.engines.network.decomposition import pooled_network_distribution
    from suffice.pipeline.math.engines.network.table_posterior import NoisyTables  # consumers only

    nodes = statistics[0].plan.parameters.tables
    data_sets = [
        NoisyTables.of(nodes, counted_tables.noisy_tables(statistic), n_prior)
        for statistic, n_prior in zip(statistics, n_priors, strict=True)
    ]
    return pooled_network_distribution(nodes, data_sets, counted_tables.concentrations(prior, nodes))


def by_mcmc(constants: Constants) -> bool:
    """Tell whether tables of several families of nodes are taken together."""
    from suffice.pipeline.math.engines.network.decomposition import joint_parts  # consumers only

    return bool(joint_parts(constants.tables)[0])


def jax_likelihood(
    statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], _latent: None
) -> Any:
    """Return the log likelihood of every cell, a sum over families of nodes."""
    from suffice.pipeline.math.engines.jax_sums import network  # an extra

    nodes, noisy = statistic.plan.parameters.tables, counted_tables.tables_of(statistic)
    return network(nodes, noisy, given["probability"], statistic.plan.scale, n_prior)


FAMILY = Family(
    name="bayesian_network",
    spec=BayesianNetworkSpec,
    measure=measure,
    block=block,
    totals=counted_tables.totals,
    parameters=lambda spec: Constants(tables=tables(spec)),
    prior=Dirichlet,
    default_prior=counted_tables.default_prior,
    plug_in=plug_in,
    log_likelihood=categorical.log_likelihood,
    noise_aware=noise_aware,
    simulate=lambda spec, truth, sizes, rng: table_counts(
        tables(spec), released_tables(tables(spec)), truth, sizes, rng
    ),
    truth=lambda prior, constants, size, rng: counted_tables.truth(prior, constants.tables, size, rng),
    by_mcmc=by_mcmc,
    disjoint=disjoint,
    n_categories=lambda spec: measure(spec).width,
    tables=tables,
    labels=lambda constants: counted_tables.labels_of(constants.tables),
    interval=HIGHEST_DENSITY,
    parameter_spaces=lambda parameters: counted_tables.probabilities_of(parameters.tables),
    jax_likelihood=jax_likelihood,
    smoothness=of_tables(lambda parameters: [table.shape[-1] for table in parameters.tables]),
    example=Example(
        entry={"nodes": {"a": ["0", "1"], "b": {"categories": ["0", "1", "2"], "parents": ["a"]}}},
        columns={"a": ColumnType.TEXT, "b": ColumnType.TEXT},
    ),
    generative_case=GenerativeCase(
        entry={
            "nodes": {
                "b": {**counted_tables.ZERO_OR_OTHER, "parents": ["a"]},
                "a": counted_tables.ZERO_OR_OTHER,
                "c": {**counted_tables.ZERO_OR_OTHER, "parents": ["a"]},
            }
        }
    ),
)
