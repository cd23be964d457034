"""The manifest's model: what format 1 may state, checked field by field and against itself."""

from __future__ import annotations

import hashlib
import math
import re
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator

from suffice.pipeline.declaration.domains import MOST_CELLS, Domain, DomainKind, Every
from suffice.pipeline.declaration.exact_numbers import LARGEST_SCALE, format_number
from suffice.pipeline.spec.spec import ALL, ROW
from suffice.pipeline.statistics.block import ColumnBounds, Parameters, Quantity
from suffice.pipeline.statistics.count_table import CountTable, Variable
from suffice.pipeline.statistics.sensitivity import Design, NeighboringRelation
from suffice.pipeline.statistics.statistic_plan import DECIMAL, INT64, StatisticPlan
from suffice.storage.signatures import canonical_json
from suffice.storage.signatures.signing import is_signature_value

FORMAT_VERSION = 1

_EXACT = re.compile(r"-?\d+(\.\d+|/\d+)?", re.ASCII)
_LONGEST_NUMBER = 4300
"""Python reads no longer integers by default."""


def _exact(value: object) -> Fraction:
    message = "not an exact number in canonical text"
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER or not _EXACT.fullmatch(value):
        raise ValueError(message)
    try:
        number = Fraction(value)
    except ZeroDivisionError:
        raise ValueError(message) from None
    if format_number(number) != value:
        raise ValueError(message)
    return number


def _whole(value: object) -> int:
    number = _exact(value)
    if number.denominator != 1:
        message = "not an integer"
        raise ValueError(message)
    return number.numerator


Exact = Annotated[Fraction, PlainValidator(_exact)]
Whole = Annotated[int, PlainValidator(_whole)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,62}$")]
StatisticName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
Window = Annotated[str, Field(pattern=r"^(all|[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?)$")]
Hex16 = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class _Model(BaseModel):
    """Base: nothing unknown, nothing converted, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ListedGroup(_Model):
    """A group column whose keys are listed texts, in order."""

    column: str
    kind: Literal["list", "period"]
    every: Every | None
    keys: Annotated[tuple[str, ...], Field(min_length=1, max_length=MOST_CELLS)]

    @model_validator(mode="after")
    def _keys_differ(self) -> Self:
        _require(len(set(self.keys)) == len(self.keys), "a group's keys repeat")
        _require((self.every is not None) == (self.kind == "period"), "exactly a period has a length")
        return self

    def domain(self) -> Domain:
        """Return the column's domain."""
        return Domain(kind=DomainKind(self.kind), keys=self.keys, every=self.every)


class RangeGroup(_Model):
    """A group column of consecutive integers, both ends included."""

    column: str
    kind: Literal["range"]
    first: Whole
    last: Whole

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        _require(-(2**63) <= self.first <= self.last < 2**63, "a range is empty or leaves int64")
        _require(self.last - self.first < MOST_CELLS, "a range has too many keys")
        return self

    def domain(self) -> Domain:
        """Return the column's domain."""
        return Domain(kind=DomainKind.RANGE, keys=range(self.first, self.last + 1))


class QuantityEntry(_Model):
    """An exact map from components to a quantity; components left out have coefficient 0."""

    name: str
    category: str | None
    component: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    coefficients: dict[str, Exact]
    public_n_coefficient: Exact


class BoundsEntry(_Model):
    """One column of several, and its public bounds."""

    name: str
    lower: Exact
    upper: Exact


class VariableEntry(_Model):
    """A variable of a table, and its categories in order."""

    name: str
    categories: Annotated[tuple[str, ...], Field(min_length=1)]

    def variable(self) -> Variable:
        """Return the variable."""
        return Variable(name=self.name, categories=self.categories)


class TableEntry(_Model):
    """A table of counts; its last variable runs fastest."""

    name: str
    variables: Annotated[tuple[VariableEntry, ...], Field(min_length=1)]

    def table(self) -> CountTable:
        """Return the table."""
        return CountTable(name=self.name, variables=tuple(entry.variable() for entry in self.variables))


class ParametersEntry(_Model):
    """Public constants of the posterior; ``constants``, ``columns`` and ``tables`` where there are any."""

    categories: tuple[str, ...]
    lower: Exact | None
    upper: Exact | None
    lattice_bits: Annotated[int, Field(ge=0, le=62)] | None
    constants: dict[str, Exact] = Field(default_factory=dict)
    columns: tuple[BoundsEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()


class StatisticEntry(_Model):
    """One block: components, price, noise, maps."""

    name: StatisticName
    family: str
    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    design: Design
    components: Annotated[tuple[str, ...], Field(min_length=1)]
    epsilon: Exact
    l1_sensitivity: Whole
    noise: Literal["discrete_laplace"]
    scale: Exact
    partition_total: Whole | None
    value_type: Literal["int64", "decimal128(38, 0)"]
    quantities: tuple[QuantityEntry, ...]
    moment_weight: Exact | None = None
    parameters: ParametersEntry

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        _require(self.value_type in {INT64, DECIMAL}, "an unknown value type")
        _require(len(set(self.components)) == len(self.components), "components repeat")
        _require(
            (self.partition_total is not None) == (self.design is Design.PARTITION_OF_UNITY),
            "exactly a partition of unity has a total",
        )
        _require(self.partition_total is None or self.partition_total > 0, "a partition's total is positive")
        _require(self.epsilon > 0 and self.l1_sensitivity > 0, "epsilon and sensitivity are positive")
        _require(0 < self.scale <= LARGEST_SCALE, "the scale lies within 0..2^55")
        _require(Fraction(float(self.scale)) == self.scale, "the scale is no float64")
        _require(self.scale * self.epsilon >= self.l1_sensitivity, "the scale is too small for its epsilon")
        tables = self.parameters.tables
        _require(
            not tables or sum(entry.table().size for entry in tables) == len(self.components),
            "the components are not the tables' entries",
        )
        components = set(self.components)
        for quantity in self.quantities:
            _require(quantity.coefficients.keys() <= components, "a map names no component")
            _require(all(quantity.coefficients.values()), "a map states a coefficient of 0")
        return self

    def plan(self) -> StatisticPlan:
        """Return the block as the plan that it was released by."""
        position = {name: component for component, name in enumerate(self.components)}
        return StatisticPlan(
            name=self.name,
            family=self.family,
            columns=self.columns,
            design=self.design,
            components=self.components,
            epsilon=self.epsilon,
            l1_sensitivity=self.l1_sensitivity,
            scale=float(self.scale),
            partition_total=self.partition_total,
            value_type=self.value_type,
            quantities=tuple(
                Quantity(
                    name=quantity.name,
                    category=quantity.category,
                    component=quantity.component,
                    labels=quantity.labels,
                    coefficients={position[name]: weight for name, weight in quantity.coefficients.items()},
                    public_n_coefficient=quantity.public_n_coefficient,
                )
                for quantity in self.quantities
            ),
            parameters=Parameters(
                categories=self.parameters.categories,
                lower=self.parameters.lower,
                upper=self.parameters.upper,
                lattice_bits=self.parameters.lattice_bits,
                constants=self.parameters.constants,
                columns=tuple(
                    ColumnBounds(name=of.name, lower=of.lower, upper=of.upper)
                    for of in self.parameters.columns
                ),
                tables=tuple(entry.table() for entry in self.parameters.tables),
            ),
            moment_weight=self.moment_weight,
        )


class FileEntry(_Model):
    """One data file beside the manifest."""

    statistic: StatisticName
    path: str
    size: Annotated[int, Field(gt=0, le=2**40)]
    sha256: Hex64
    rows: Annotated[int, Field(gt=0)]

    @model_validator(mode="after")
    def _is_beside_the_manifest(self) -> Self:
        _require(self.path == f"{self.statistic}.parquet", "a file is not named after its statistic")
        return self


class SignatureEntry(_Model):
    """Who signed the manifest with this entry null, and how; checked against keys that a reader pins."""

    algorithm: Literal["ed25519"]
    key_id: Hex16
    value: str

    @model_validator(mode="after")
    def _is_canonical(self) -> Self:
        _require(is_signature_value(self.value), "a signature is 64 bytes in canonical base64")
        return self


class Manifest(_Model):
    """A manifest of format 1. Attributes are the document's fields.

    ``max_rows`` and ``unit_nulls`` are stated where the unit is a column's value.
    """

    format_version: Literal[1]
    name: Name
    dataset: Name
    window: Window
    release_id: Hex16
    created: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z$")]
    epsilon: Exact
    neighboring: NeighboringRelation
    unit: str
    max_rows: Annotated[int, Field(gt=0)] | None = None
    unit_nulls: Literal["drop", "own_unit"] | None = None
    n: Count | None
    max_total_rows: Annotated[int, Field(gt=0)]
    cells: Annotated[int, Field(gt=0, le=MOST_CELLS)]
    groups: tuple[Annotated[ListedGroup | RangeGroup, Field(discriminator="kind")], ...]
    statistics: Annotated[tuple[StatisticEntry, ...], Field(min_length=1)]
    input_verified: bool
    files: tuple[FileEntry, ...]
    plan: dict[str, Any]
    plan_hash: Hex64
    ledger_id: Hex32
    drawing_sequence: Annotated[int, Field(gt=0)]
    drawing_hash: Hex64
    versions: dict[str, str]
    checksum: Hex64
    signature: SignatureEntry | None

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        plan_hash = hashlib.sha256(canonical_json.encode(self.plan)).hexdigest()
        _require(plan_hash == self.plan_hash, "the plan's hash does not fit")
        _require(_charged(self.plan) == self._stated(), "it contradicts the plan that was charged")
        names = [statistic.name for statistic in self.statistics]
        _require(len({name.lower() for name in names}) == len(names), "statistics repeat")
        _require(
            sum(entry.epsilon for entry in self.statistics) == self.epsilon, "the epsilons do not add up"
        )
        columns = [group.column for group in self.groups]
        _require(len({*columns, "component", "value", "estimate"}) == len(columns) + 3, "columns repeat")
        cells = math.prod(len(group.domain()) for group in self.groups)
        _require(cells == self.cells, "the number of cells is not the groups' product")
        rows = [(entry.name, cells * len(entry.components)) for entry in self.statistics]
        _require(
            [(file.statistic, file.rows) for file in self.files] == rows, "the files are not the statistics'"
        )
        minimal = any(statistic.design is Design.MINIMAL for statistic in self.statistics)
        _require((self.n is not None) == minimal, "a public n and minimal statistics go together")
        _require(not minimal or self.unit == ROW, "minimal statistics protect a row")
        return self

    def _stated(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dataset": self.dataset,
            "epsilon": format_number(self.epsilon),
            "neighboring": str(self.neighboring),
            "unit": (self.unit, self.max_rows, self.unit_nulls),
            "has_windows": self.window != ALL,
            "max_total_rows": str(self.max_total_rows),
            "groups": sorted(group.column for group in self.groups),
            "statistics": sorted(statistic.name for statistic in self.statistics),
        }

    def domains(self) -> dict[str, Domain]:
        """Return the group columns' domains, in declared order."""
        return {group.column: group.domain() for group in self.groups}


def _charged(plan: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a canonical plan says of the fields that a manifest repeats."""
    try:
        return {
            **{name: plan[name] for name in ("name", "dataset", "max_total_rows")},
            **{name: plan["privacy"][name] for name in ("epsilon", "neighboring")},
            "unit": _charged_unit(plan["privacy"]["unit"]),
            "has_windows": plan["window"] is not None,
            **{name: sorted(plan[name]) for name in ("groups", "statistics")},
        }
    except (KeyError, TypeError, ValueError):
        return None


def _charged_unit(unit: str | dict[str, str]) -> tuple[str, int | None, str | None]:
    if isinstance(unit, str):
        return unit, None, None
    return f"column:{unit['column']}", int(unit["max_rows"]), unit["nulls"]


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ValueError(rule)
