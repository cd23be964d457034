"""What families of counts share: declared categories and variables, tables over them, and their block.

A row enters all tables of a statistic or none of them: it has to have a category of every variable. So
every entering row adds 1 to exactly one entry of each table, and V tables are a partition of unity with
total V. Sensitivity in `sensitivity.md`: partition-of-unity or minimal-tables.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self

import numpy as np
from pydantic import BeforeValidator, model_validator

from suffice.pipeline.families.shared.parameter_space import probabilities
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.terms.declaration.fields import Boolean, Column, DomainField, SpecModel, label_name
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics import l2_sensitivity
from suffice.pipeline.terms.statistics.count_table import CountTable, Variable, label_columns, released_tables
from suffice.pipeline.terms.statistics.measure import CodeColumn, TableCounts
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity, minimal_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.parameter_space import ParameterSpace
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

OTHER = "other"
"""What null and unlisted values are called where a spec says ``other: true``."""


class DeclaredCategories(Protocol):
    """A column and its categories; null and unlisted values go to `other` if declared."""

    @property
    def column(self) -> str: ...  # noqa: D102
    @property
    def categories(self) -> Domain: ...  # noqa: D102
    @property
    def other(self) -> bool: ...  # noqa: D102


def require_one_other(spec: DeclaredCategories) -> None:
    """Refuse a category called like the one that null and unlisted values go to."""
    if spec.other and OTHER in spec.categories:
        message = "a category cannot be called 'other' where other: true is stated"
        raise ValueError(message)


def names(spec: DeclaredCategories) -> tuple[str, ...]:
    """Return all released categories as text, ``other`` last."""
    return (*map(str, spec.categories), *((OTHER,) if spec.other else ()))


def code_column(spec: DeclaredCategories) -> CodeColumn:
    """Return how the column is read: null and unlisted values as `other`, or as not entering."""
    return CodeColumn(
        column=spec.column,
        domain=spec.categories,
        fallback=len(spec.categories) if spec.other else None,
    )


ZERO_OR_OTHER: dict[str, Any] = {"categories": ["0"], "other": "true"}
"""A variable of which every row has a category; for examples."""


class VariableSpec(SpecModel):
    """A variable: its column and categories; null and unlisted values go to `other` if declared."""

    column: Column
    categories: DomainField
    other: Boolean = False

    @model_validator(mode="after")
    def _other_is_one_category(self) -> Self:
        require_one_other(self)
        return self


def written_out(value: object) -> object:
    """Write variables out: ``{origin: [JFK, LGA]}`` as ``{origin: {column: origin, categories: [...]}}``."""
    if not isinstance(value, dict) or not value:
        message = "variables are written as {name: categories}, or {name: {categories: ..., other: true}}"
        raise ValueError(message)
    return {label_name("variable", name): _written_out(name, entry) for name, entry in value.items()}


def _written_out(name: str, entry: object) -> object:
    if isinstance(entry, dict) and not entry.keys() & {"range", "from", "to", "every", "file"}:
        return {"column": name, **entry}
    return {"column": name, "categories": entry}


Variables = Annotated[dict[str, VariableSpec], BeforeValidator(written_out)]


def variable(name: str, spec: VariableSpec) -> Variable:
    """Return a declared variable with all its categories."""
    return Variable(name=name, categories=names(spec))


def measure(variables: Mapping[str, VariableSpec], tables: Sequence[Sequence[str]]) -> TableCounts:
    """Count the tables over variables named by `tables`; every row that enters has all `variables`."""
    columns = {name: code_column(spec) for name, spec in variables.items()}
    return TableCounts(tables=tuple(tuple(columns[name] for name in of) for of in tables))


def count_tables(
    variables: Mapping[str, VariableSpec], tables: Mapping[str, Sequence[str]]
) -> tuple[CountTable, ...]:
    """Return the tables of the given names over variables named by `tables`."""
    known = {name: variable(name, spec) for name, spec in variables.items()}
    return tuple(
        CountTable(name=table, variables=tuple(known[name] for name in names))
        for table, names in tables.items()
    )


def block(
    tables: Sequence[CountTable],
    variables: Mapping[str, VariableSpec],
    *,
    n_is_public: bool,
    derived: tuple[Quantity, ...] = (),
) -> Block:
    """Release every entry, `derived` quantities beside; with a public N where every physical row enters."""
    labels = chain.from_iterable(table.labels() for table in tables)
    quantities = (
        *derived,
        *(
            Quantity(name="count", labels=label, coefficients={position: Fraction(1)})
            for position, label in enumerate(labels)
        ),
    )
    components = tuple(chain.from_iterable(table.components() for table in tables))
    if n_is_public and all(spec.other for spec in variables.values()):
        return Block(
            design=Design.MINIMAL,
            components=components,
            largest_value=1,
            minimal_sensitivity=minimal_tables(len(tables)),
            minimal_l2_squared=l2_sensitivity.minimal_tables(len(tables)),
            quantities=quantities,
        )
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=components,
        largest_value=1,
        record_l1=len(tables),
        record_l2_squared=l2_sensitivity.tables(len(tables)),
        quantities=quantities,
    )


def totals(_spec: object, _design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Take every count."""
    return sums


def default_prior(_parameters: Constants) -> Dirichlet:
    """Return the uniform prior of every distribution."""
    return Dirichlet(1)


def labels_of(tables: Sequence[CountTable]) -> dict[str, tuple[str | None, ...]]:
    """Call the entries of some tables by their table and the categories of its variables."""
    return label_columns([label for table in tables for label in table.labels()])


def probabilities_of(tables: Sequence[CountTable]) -> tuple[ParameterSpace]:
    """Return the space of each table's probabilities of its last variable given the others."""
    from suffice.pipeline.math.distributions.dirichlet import block_starts  # consumers only

    starts = block_starts(tables).tolist()
    return probabilities(sum(table.size for table in tables), tuple(starts))


def concentrations(prior: Dirichlet, tables: Sequence[CountTable]) -> list[Floats]:
    """Return the prior's numbers for each table, shaped (n_rows, n_categories) of its last variable."""
    sizes = [table.size for table in tables]
    every = np.broadcast_to(np.array(prior.concentration, dtype=np.float64), (sum(sizes),))
    parts = np.split(every, np.cumsum(sizes)[:-1])
    return [part.reshape(-1, table.shape[-1]) for part, table in zip(parts, tables, strict=True)]


def tables_of(statistic: NoisyStatistic) -> list[Floats]:
    """Return the noisy counts of each released table, of shape (n_cells, *table.shape)."""
    released = released_tables(statistic.plan.parameters.tables)
    ends = np.cumsum([table.size for table in released])
    parts = np.split(statistic.values.astype(np.float64), ends[:-1], axis=1)
    return [part.reshape(-1, *table.shape) for part, table in zip(parts, released, strict=True)]


def noisy_tables(statistic: NoisyStatistic) -> list[NoisyTotals]:
    """Return the noisy counts of each released table, of all releases."""
    totals = NoisyTotals.of(statistic)
    ends = np.cumsum([table.size for table in released_tables(statistic.plan.parameters.tables)])
    return [totals.part(entries) for entries in np.split(np.arange(ends[-1]), ends[:-1])]


def truth(prior: Dirichlet, tables: Sequence[CountTable], size: int, rng: np.random.Generator) -> Floats:
    """Draw the probabilities of each table's last variable given the others, (size, n_probabilities)."""
    from suffice.pipeline.math.distributions.dirichlet import block_starts, sample_blocks  # consumers only

    entries = sum(table.size for table in tables)
    concentration = np.broadcast_to(np.array(prior.concentration, dtype=np.float64), (size, entries))
    return sample_blocks(concentration, block_starts(tables), rng)


def plug_in_distribution(tables: Sequence[CountTable], prior: Dirichlet, counts: Floats) -> Distribution:
    r"""Update every distribution's prior: :math:`\mathrm{Dirichlet}(c + n)`, of projected counts."""
    from suffice.pipeline.math.distributions.dirichlet import BlockDirichlet, block_starts  # consumers only

    return BlockDirichlet(
        concentration=np.array(prior.concentration, dtype=np.float64) + counts, starts=block_starts(tables)
    )
