"""The columns that a spec implies: a type family of each, and values that the spec states."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.rows.sources.contract import spec_columns
from suffice.pipeline.spec.plan import measures
from suffice.pipeline.terms.declaration.column_types import (
    ANY_FAMILY,
    DATES,
    NUMBERS,
    TEXTS,
    TIMESTAMPS,
    ColumnFamily,
    TypeFamily,
)
from suffice.pipeline.terms.declaration.column_unit import UnitType
from suffice.pipeline.terms.declaration.derived_columns import PublicMap
from suffice.pipeline.terms.declaration.derived_conditions import (
    ColumnComparison,
    Combination,
    Membership,
    Negation,
    TextMatch,
)
from suffice.pipeline.terms.declaration.derived_values import Bins, Cut, ParsedText
from suffice.pipeline.terms.declaration.domains import DomainKind, period_end, period_start
from suffice.pipeline.terms.statistics.measure import BinColumn, CodeColumn, SideColumn, orders_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
    from suffice.pipeline.terms.statistics.measure import ReadColumn

    Row = dict[str, Any]
    Use = tuple[str, frozenset[TypeFamily], TypeFamily | None, list[Any]]

_MOST_STATED = 12
"""Values of a column that are taken from the spec: both ends of a domain of millions, say."""

_CSV = {
    "number": TypeFamily.NUMERIC,
    "integer": TypeFamily.NUMERIC,
    "boolean": TypeFamily.BOOLEAN,
    "date": TypeFamily.DATE,
    "timestamp": TypeFamily.TIMESTAMP,
    "timestamp_with_offset": TypeFamily.TIMESTAMP,
}
_HIVE = {
    "integer": TypeFamily.NUMERIC,
    "text": TypeFamily.TEXT,
    "date": TypeFamily.DATE,
    "boolean": TypeFamily.BOOLEAN,
}


@dataclass(kw_only=True)
class ImpliedColumn:
    """One column of the source, as far as a spec implies it.

    Attributes
    ----------
    family : TypeFamily
    has_zone : bool
        Of timestamps.
    is_whole : bool
        Of numbers: whether integers are stored.
    stated : list
        Values that the spec states, as Python has them.
    """

    family: TypeFamily = TypeFamily.NUMERIC
    has_zone: bool = False
    is_whole: bool = False
    stated: list[Any] = field(default_factory=list)


def implied_schema(spec: Spec, contract: DataContract | None = None) -> dict[str, ImpliedColumn]:
    """Return the source's columns by name, as a contract that the spec fits or the spec itself has them."""
    served: dict[str, set[TypeFamily]] = {name: set(ANY_FAMILY) for name in spec_columns(spec)}
    implied = {name: ImpliedColumn() for name in served}
    hints: dict[str, TypeFamily] = {}
    for name, families, hint, stated in _uses(spec):
        if name not in served:
            continue  # a derived one
        served[name] &= families
        if hint is not None:
            hints.setdefault(name, hint)
        implied[name].stated.extend(stated)
    zoned = {each.column for derived in spec.computed.values() for each in derived.inputs if each.needs_zone}
    for name, column in implied.items():
        column.family = _chosen(served[name], hints.get(name), spec, name)
        column.has_zone = name in zoned or _csv_type(spec, name) == "timestamp_with_offset"
        if column.has_zone:
            column.family = TypeFamily.TIMESTAMP
        numbers = [value for value in column.stated if isinstance(value, int | float)]
        column.is_whole = column.family is TypeFamily.NUMERIC and (
            _csv_type(spec, name) == "integer" or not any(isinstance(value, float) for value in numbers)
        )
        if _csv_type(spec, name) == "number":
            column.is_whole = False
        if contract is not None:
            _take(column, contract.columns[name])
    return implied


def _take(column: ImpliedColumn, family: ColumnFamily) -> None:
    """Let a column be what a contract says."""
    column.family = family.read_as
    column.has_zone = family is ColumnFamily.TIMESTAMP_WITH_ZONE
    column.is_whole = family is ColumnFamily.INTEGER


def _chosen(served: set[TypeFamily], hint: TypeFamily | None, spec: Spec, name: str) -> TypeFamily:
    stated = _CSV.get(_csv_type(spec, name) or "")
    hive = getattr(spec.source, "hive", {}).get(name)
    if hive is not None:
        return _HIVE[str(hive.type)]
    if getattr(spec.source, "kind", "") == "csv":
        return stated or TypeFamily.TEXT
    if hint in served and hint is not None:
        return hint
    order = (TypeFamily.NUMERIC, TypeFamily.TEXT, TypeFamily.BOOLEAN, TypeFamily.DATE, TypeFamily.TIMESTAMP)
    return next((family for family in order if family in served), TypeFamily.NUMERIC)


def _csv_type(spec: Spec, name: str) -> str | None:
    if getattr(spec.source, "kind", "") != "csv":
        return None
    columns = getattr(spec.source, "columns", {})
    return str(columns[name]) if name in columns else "text"


def _uses(spec: Spec) -> Iterator[Use]:
    """List column, families that serve, the likeliest of them, and values that are stated."""
    unit = spec.privacy.column_unit
    if unit is not None:
        is_text = unit.type is UnitType.TEXT
        hint = TypeFamily.TEXT if is_text else TypeFamily.NUMERIC
        yield unit.column, ANY_FAMILY, hint, []
        if unit.column in spec.derived:
            yield spec.stored_unit or unit.column, TEXTS, TypeFamily.TEXT, []
    for column, domains in spec.key_columns.items():
        for domain in domains:
            yield column, _serving(domain), _hint(domain), _keys(domain)
    for measure in measures(spec).values():
        for read in measure.reads:
            if isinstance(read, CodeColumn):
                yield read.column, _serving(read.domain), _hint(read.domain), _keys(read.domain)
            else:
                yield read.column, NUMBERS, TypeFamily.NUMERIC, _bounded(read)
        for order in orders_of([measure]):
            yield order, NUMBERS | DATES, TypeFamily.NUMERIC, [1, 2, 3]
    yield from _of_conditions(spec)
    if spec.window is not None:
        yield spec.window.column, DATES, TypeFamily.DATE, []


def _of_conditions(spec: Spec) -> Iterator[Use]:
    """List what derived columns and conditions of rows use."""
    for derived in spec.computed.values():
        yield from _derived(derived)
    for condition in spec.conditions.values():
        if isinstance(condition, str):
            yield condition, frozenset({TypeFamily.BOOLEAN}), TypeFamily.BOOLEAN, [False, True]


def _derived(derived: DerivedColumn) -> Iterator[Use]:
    if isinstance(derived, Combination | Negation):
        conditions = derived.conditions if isinstance(derived, Combination) else (derived.condition,)
        for condition in conditions:
            if isinstance(condition, str):
                yield condition, frozenset({TypeFamily.BOOLEAN}), TypeFamily.BOOLEAN, [False, True]
            else:
                yield from _derived(condition)
        return
    hint, stated = _stated(derived)
    for of in derived.inputs:
        likely = TypeFamily.TIMESTAMP if of.families <= TIMESTAMPS else hint
        numbers = [0.5, 1.0, 2.0] if set(of.families) == set(NUMBERS) else []
        yield of.column, of.families, likely, stated or numbers


def _stated(derived: DerivedColumn) -> tuple[TypeFamily | None, list[Any]]:
    """Return what a column is likeliest, and values of it that a derived one states or turns on."""
    match derived:
        case Membership() | PublicMap():
            return _hint(derived.domain), _keys(derived.domain)
        case TextMatch():
            texts = [each for text in derived.texts for each in (text, f"a{text}z", text[:-1])]
            return TypeFamily.TEXT, texts
        case ParsedText():
            suffixed = (f"2.5{text}" for text in derived.suffixes or ())
            return TypeFamily.TEXT, ["1", "20130105", "05-JAN-13", "1.234,5", *suffixed]
        case Bins() | Cut():
            edges = derived.bins if isinstance(derived, Bins) else derived.cut
            return None, [each for edge in edges for each in (float(edge) - 1, float(edge))]
        case ColumnComparison():
            ends = (end[0] for end in (derived.lowest, derived.highest) if end is not None)
            return None, [each for end in ends for each in _around(end)]
    return None, []


def _around(end: Fraction | str) -> list[Any]:
    if isinstance(end, str):
        return [dt.date.fromisoformat(end)]
    return [float(end) - 1, float(end), float(end) + 1]


def _serving(domain: Domain) -> frozenset[TypeFamily]:
    return {
        DomainKind.LIST: ANY_FAMILY,
        DomainKind.RANGE: frozenset({TypeFamily.NUMERIC, TypeFamily.TEXT}),
        DomainKind.PERIOD: DATES,
        DomainKind.BOOLEAN: frozenset({TypeFamily.BOOLEAN, TypeFamily.NUMERIC}),
    }[domain.kind]


def _hint(domain: Domain) -> TypeFamily:
    if domain.kind is DomainKind.RANGE:
        return TypeFamily.NUMERIC
    if domain.kind is DomainKind.PERIOD:
        return TypeFamily.DATE
    if domain.kind is DomainKind.BOOLEAN or {"true", "false"} >= set(islice(domain, 3)):
        return TypeFamily.BOOLEAN
    return TypeFamily.TEXT


def _keys(domain: Domain) -> list[Any]:
    """Return keys as values of a column: those at both ends of the domain."""
    half = _MOST_STATED // 2
    keys = list(domain) if len(domain) <= _MOST_STATED else [*domain[:half], *domain[-half:]]
    if domain.kind is DomainKind.PERIOD and domain.every is not None:
        starts = [period_start(str(key), domain.every) for key in keys]
        last = dt.date.fromordinal(period_end(starts[-1], domain.every) - 1)
        return [*starts, last]
    if _hint(domain) is TypeFamily.BOOLEAN:
        return [key == "true" for key in keys]
    return keys


def _of_bins(bins: HistogramBins) -> list[Any]:
    """Return atoms and outer edges, both sides of inner edges, and what lies beyond."""
    edges = [float(edge) for edge in bins.edges]
    half = _MOST_STATED // 2
    ends = edges if len(edges) <= _MOST_STATED else [*edges[:half], *edges[-half:]]
    atoms = [float(atom) for atom in bins.atoms[:_MOST_STATED]]
    below = [float(np.nextafter(edge, -np.inf)) for edge in ends]
    return [*ends, *below, *atoms, edges[0] - 1, edges[-1] + 1]


def _bounded(of: ReadColumn) -> list[Any]:
    """Return the ends of what a statistic reads, its middle, and what lies beyond."""
    if isinstance(of, SideColumn):
        return [float(of.lower), float(of.upper)]
    if isinstance(of, CodeColumn):
        return _keys(of.domain)
    if isinstance(of, BinColumn):
        return _of_bins(of.bins)
    lattice = of.quantiser
    places = np.linspace(lattice.lowest, lattice.highest, 5)
    values = lattice.centre + lattice.half_range * places / lattice.steps
    transform = of.transform
    if transform is not None:
        values = transform.centre + transform.unit * np.array([-1.0, 0.0, 0.25, 1.0, 4.0])
    return [float(value) for value in (*values, values[0] - 1, values[-1] + 1)]
