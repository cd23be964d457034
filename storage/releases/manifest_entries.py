"""The entries of a manifest that follow from its plan, as types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypeAlias, TypedDict

from suffice.pipeline.terms.declaration.documents import (
    Also,
    Count,
    Exact,
    Family,
    Neighboring,
    UnitNullsName,
    matching,
    one_of,
)
from suffice.pipeline.terms.declaration.fields import FEWEST_POINTS, MOST_DRAWS, MOST_POINTS
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Iterable

_Pair = Also(minItems=2, maxItems=2)
_Distinct = Also(minItems=1, uniqueItems=True)
_Natural = Annotated[str, matching("^[1-9][0-9]*$")]


class GroupOfRange(TypedDict):
    """A group column whose keys are consecutive integers."""

    column: str
    kind: Literal["range"]
    first: Exact
    last: Exact


class GroupOfKeys(TypedDict):
    """A group column whose keys are listed."""

    column: str
    kind: Literal["list", "period"]
    every: Literal["day", "week", "month", "year"] | None
    keys: Annotated[list[str], _Distinct]


class Declared(TypedDict):
    """What of a manifest follows from a plan without its statistics."""

    name: str
    dataset: str
    unit: str
    epsilon: NotRequired[Exact]
    rho: NotRequired[Exact]
    neighboring: Neighboring
    max_rows: NotRequired[Count]
    max_rows_per_cell: NotRequired[Count]
    unit_nulls: NotRequired[UnitNullsName]
    max_total_rows: Annotated[Count, Also(minimum=1)]
    cells: Annotated[Count, Also(minimum=1)]
    groups: list[GroupOfRange | GroupOfKeys]


class QuantityEntry(TypedDict):
    """A number people ask for, as a map of components."""

    name: Annotated[str, matching("^[a-z_]+$")]
    category: str | None
    component: NotRequired[str]
    labels: NotRequired[list[Annotated[list[str], _Pair]]]
    coefficients: dict[str, Exact]
    public_n_coefficient: Exact


class VariableEntry(TypedDict):
    """A variable of a table."""

    name: str
    categories: list[str]


class TableEntry(TypedDict):
    """A table that is counted."""

    name: str
    variables: list[VariableEntry]


class ColumnEntry(TypedDict):
    """A column of several, and its bounds."""

    name: str
    lower: Exact
    upper: Exact


class BinsEntry(TypedDict):
    """The bins of a histogram: edges, and values with a bin of their own."""

    edges: list[Exact]
    atoms: list[Exact]


class ParametersEntry(TypedDict):
    """The public constants of a statistic."""

    categories: list[str]
    lower: Exact | None
    upper: Exact | None
    lattice_bits: int | None
    constants: NotRequired[dict[str, Exact]]
    columns: NotRequired[list[ColumnEntry]]
    tables: NotRequired[list[TableEntry]]
    bins: NotRequired[BinsEntry]


class WithinUnitEntry(TypedDict):
    """How rows and units share a block."""

    max_rows: Exact
    row_weight: Exact
    row_components: list[str]
    unit_total: Exact


class CountClippedEntry(TypedDict):
    """How sums and counts of clipped values share a block."""

    weight: Exact
    sum_components: list[str]
    sum_partition_total: Exact | None


class StatisticEntry(TypedDict):
    """What every statistic states."""

    name: Annotated[str, matching("^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
    family: Family
    columns: list[str]
    rows_of: str | None
    design: Annotated[str, one_of(*Design)]
    epsilon: NotRequired[Exact]
    rho: NotRequired[Exact]
    parameters: ParametersEntry
    cells: NotRequired[Annotated[Count, Also(minimum=1)]]
    groups: NotRequired[list[GroupOfRange | GroupOfKeys]]


class ComponentsEntry(StatisticEntry):
    """A statistic of which components are released."""

    components: Annotated[list[str], _Distinct]
    partition_total: Exact | None
    value_type: Annotated[str, one_of("int64", "decimal128(38, 0)")]
    quantities: Iterable[QuantityEntry]


class NoisyEntry(ComponentsEntry):
    """A statistic of which noisy components are released."""

    l1_sensitivity: _Natural
    l2_squared: NotRequired[_Natural]
    mechanism: Literal["discrete_laplace"]
    scale: Annotated[str, matching(r"^(0\.\d*[1-9]|[1-9]\d*(\.\d+)?)$")]
    moment_weight: NotRequired[Exact]
    within_unit: NotRequired[WithinUnitEntry]
    count_clipped: NotRequired[CountClippedEntry]


class ConeNoiseEntry(TypedDict):
    """The law of noise on a cone."""

    rate: Exact
    columns: Annotated[int, Also(minimum=1)]
    linear: bool
    steps: _Natural


class ConeEntry(ComponentsEntry):
    """A statistic whose components have noise together, on the cone that records lie in."""

    mechanism: Literal["cone_noise"]
    cone_noise: ConeNoiseEntry


class DrawnEntry(StatisticEntry):
    """A statistic of which something is drawn."""

    mechanism: Literal["exponential"]
    draws: Annotated[int, Also(minimum=1, maximum=MOST_DRAWS)]
    range_sensitivity: _Natural
    scale: _Natural


class SampledEntry(DrawnEntry):
    """A statistic of which draws are released: it has no components."""

    parameter: str
    grid: Annotated[int, Also(minimum=FEWEST_POINTS, maximum=MOST_POINTS)]
    within: Annotated[list[Exact], _Pair]
    prior: str
    temperature: Exact


class QuantileEntry(DrawnEntry):
    """A statistic of which draws of a quantile are released: the bins are its parameters'."""

    quantile: Exact
    rank_scale: Exact


AnyEntry: TypeAlias = NoisyEntry | ConeEntry | SampledEntry | QuantileEntry
