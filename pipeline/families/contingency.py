r"""Contingency table: one count for every combination of declared categories of several columns.

.. math:: p(x \mid p) = p_{x_1 \dots x_V}, \quad T(x) = e_{x_1 \dots x_V}

Sensitivity in `sensitivity.md`: partition-of-unity or minimal-tables, with one table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.families import categorical
from suffice.pipeline.families.shared import counted_tables
from suffice.pipeline.families.shared.contract import Family
from suffice.pipeline.families.shared.counted_tables import ZERO_OR_OTHER, Variables, default_prior, totals
from suffice.pipeline.families.shared.example import ColumnType, Example, GenerativeCase
from suffice.pipeline.families.shared.parameter_space import probabilities
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.intervals import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import StatisticSpec
from suffice.pipeline.terms.statistics.block import Block, Parameters
from suffice.pipeline.terms.statistics.simulated_sums import code_counts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.pipeline.terms.statistics.measure import TableCounts
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Floats


_TABLE = "joint"


class ContingencySpec(StatisticSpec):
    """Columns of declared categories, counted jointly."""

    columns: Variables


def measure(spec: ContingencySpec) -> TableCounts:
    """Count every combination."""
    return counted_tables.measure(spec.columns, [list(spec.columns)])


def tables(spec: ContingencySpec) -> tuple[CountTable, ...]:
    """Return the one table over all columns."""
    return counted_tables.count_tables(spec.columns, {_TABLE: list(spec.columns)})


def block(spec: ContingencySpec, n_is_public: bool) -> Block:
    """Release one count per combination; beside a public N where every physical row is counted."""
    return counted_tables.block(tables(spec), spec.columns, n_is_public=n_is_public)


def parameters(spec: ContingencySpec) -> Parameters:
    """Return the table."""
    return Parameters(tables=tables(spec))


def labels(constants: Parameters) -> dict[str, tuple[str | None, ...]]:
    """Call the entries of the probability by the categories of all columns."""
    return counted_tables.labels_of(constants.tables)


def n_categories(spec: ContingencySpec) -> int:
    """Return the number of combinations."""
    return measure(spec).width


def truth(prior: Dirichlet, constants: Parameters, size: int, rng: np.random.Generator) -> Floats:
    """Draw probabilities of every combination."""
    return prior.sample(size, rng, constants.tables[0].size)


def simulate(
    _spec: ContingencySpec, truth: Floats, sizes: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedSums:
    """Draw the counts of every combination."""
    return code_counts(sizes, truth, rng)


FAMILY = Family(
    name="contingency",
    spec=ContingencySpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    prior=Dirichlet,
    default_prior=default_prior,
    plug_in=categorical.plug_in,
    log_likelihood=categorical.log_likelihood,
    noise_aware=categorical.noise_aware,
    simulate=simulate,
    takes_mixtures=True,
    truth=truth,
    n_categories=n_categories,
    tables=tables,
    labels=labels,
    interval=HIGHEST_DENSITY,
    parameter_spaces=lambda parameters: probabilities(parameters.tables[0].size),
    jax_likelihood=categorical.jax_likelihood,
    example=Example(
        entry={"columns": {"a": ["0", "1"], "b": {"categories": ["0", "1", "2"], "other": "true"}}},
        columns={"a": ColumnType.TEXT, "b": ColumnType.TEXT},
    ),
    generative_case=GenerativeCase(entry={"columns": {"a": ZERO_OR_OTHER, "b": ZERO_OR_OTHER}}),
)
