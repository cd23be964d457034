r"""Contingency table: one count for every combination of declared categories of several columns.

.. math:: p(x \mid p) = p_{x_1 \dots x_V}, \quad T(x) = e_{x_1 \dots x_V}

Sensitivity in `sensitivity.md`: partition-of-unity or minimal-tables, with one table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.families import categorical
from suffice.pipeline.families.shared import counted_tables
from suffice.pipeline.families.shared.contract import ColumnType, Example, Family, GenerativeCase
from suffice.pipeline.families.shared.counted_tables import ZERO_OR_OTHER, Variables, default_prior, totals
from suffice.pipeline.families.shared.parameter_space import probabilities
from suffice.pipeline.families.shared.smoothness import of_tables
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import StatisticSpec
from suffice.pipeline.terms.statistics.sensitivity import Constants
from suffice.pipeline.terms.statistics.simulated_sums import code_counts

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.pipeline.terms.statistics.measure import TableCounts


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


FAMILY = Family(
    name="contingency",
    spec=ContingencySpec,
    measure=measure,
    block=lambda spec, n_is_public: counted_tables.block(tables(spec), spec.columns, n_is_public=n_is_public),
    totals=totals,
    parameters=lambda spec: Constants(tables=tables(spec)),
    prior=Dirichlet,
    default_prior=default_prior,
    plug_in=categorical.plug_in,
    log_likelihood=categorical.log_likelihood,
    noise_aware=categorical.noise_aware,
    simulate=lambda _spec, truth, sizes, rng: code_counts(sizes, truth, rng),
    takes_mixtures=True,
    truth=lambda prior, constants, size, rng: prior.sample(size, rng, constants.tables[0].size),
    n_categories=lambda spec: measure(spec).width,
    tables=tables,
    labels=lambda constants: counted_tables.labels_of(constants.tables),
    interval=HIGHEST_DENSITY,
    parameter_spaces=lambda parameters: probabilities(parameters.tables[0].size),
    jax_likelihood=categorical.jax_likelihood,
    smoothness=of_tables(lambda parameters: (parameters.tables[0].size,)),
    example=Example(
        entry={"columns": {"a": ["0", "1"], "b": {"categories": ["0", "1", "2"], "other": "true"}}},
        columns={"a": ColumnType.TEXT, "b": ColumnType.TEXT},
    ),
    generative_case=GenerativeCase(entry={"columns": {"a": ZERO_OR_OTHER, "b": ZERO_OR_OTHER}}),
)
