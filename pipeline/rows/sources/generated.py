"""Rows that follow from a spec's public domains alone, for rehearsals; no spec can name them as a source."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from suffice.pipeline.rows.sources.contract import Split, spec_columns
from suffice.pipeline.rows.sources.schema_check import type_family
from suffice.pipeline.spec.plan import measures
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.column_types import TypeFamily
from suffice.pipeline.terms.declaration.derived_values import ParsedText
from suffice.pipeline.terms.declaration.domains import DomainKind, period_end, period_start
from suffice.pipeline.terms.statistics.measure import BinColumn, CodeColumn, SideColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.sources.contract import PartSchema
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.domains import Domain, Every
    from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
    from suffice.pipeline.terms.statistics.measure import ReadColumn

KIND = "generated"
N_ROWS = 4096
N_SPLITS = 16
"""Enough for the sums of several tasks to be added on a cluster."""

_MOST_VALUES = 1000
"""Values of a column that rows run through; a domain may have millions."""
_DAYS = 31
_ANY: dict[TypeFamily, tuple[Any, ...]] = {
    TypeFamily.NUMERIC: (0, 1, 2, 3, 5, 8, 13, 21, -1, 0.5, 1e6),
    TypeFamily.TEXT: ("", "a", "b", "c"),
    TypeFamily.BOOLEAN: (False, True),
    TypeFamily.DATE: (dt.date(2000, 1, 1), dt.date(2000, 2, 29)),
    TypeFamily.TIMESTAMP: (dt.datetime(2000, 1, 1), dt.datetime(2000, 2, 29, 12)),  # noqa: DTZ001 - cast to the column's zone
}
"""Values of a column that no statistic bounds, as a unit's or one that others are derived from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedRows:
    """Consecutive rows; all of it is public.

    Parameters
    ----------
    values : mapping of str to pyarrow.Array
        The values of each column, which rows run through in an order of its own.
    start, n_rows : int
        The first row, and how many there are.
    """

    values: Mapping[str, pa.Array]
    start: int
    n_rows: int


def generated_splits(spec: Spec, schemas: Sequence[PartSchema], window: str = ALL) -> tuple[Split, ...]:
    """Return `N_ROWS` rows that look as a spec says, of the column types that its source has.

    Parameters
    ----------
    spec : Spec
    schemas : sequence of PartSchema
        Of the source: they fit the spec.
    window : str
        Most rows lie in it.

    Returns
    -------
    tuple of Split
        What `read` reads. Keys, values in and beyond bounds, unknown keys and nulls are among the rows.
    """
    stated = _stated(spec, window)
    values = {
        column: _of_type(_type_of(column, schemas), stated.get(column, ())) for column in spec_columns(spec)
    }
    size = N_ROWS // N_SPLITS
    return tuple(
        Split.of(KIND, [GeneratedRows(values=values, start=start, n_rows=size)])
        for start in range(0, N_ROWS, size)
    )


def read(split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Make the rows of a split, in blocks."""
    for piece in split.pieces:
        for start in range(piece.start, piece.start + piece.n_rows, block_rows):
            stop = min(start + block_rows, piece.start + piece.n_rows)
            rows = np.arange(start, stop, dtype=np.uint64)
            chosen = [
                piece.values[column].take(pa.array(_scattered(rows, position, len(piece.values[column]))))
                for position, column in enumerate(columns)
            ]
            yield pa.RecordBatch.from_arrays(chosen, names=list(columns))


def _scattered(rows: NDArray[np.uint64], position: int, n_values: int) -> NDArray[np.uint64]:
    """Return which value each row has in a column, so that columns do not run in step."""
    mixed = rows * np.uint64(0x9E3779B97F4A7C15) + np.uint64((position + 1) * 0x632BE59BD9B4E019 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed ^ (mixed >> np.uint64(31))) % np.uint64(n_values)


def _stated(spec: Spec, window: str) -> dict[str, list[Any]]:
    """Return, by column, values that the spec bounds or lists, and some beyond."""
    values: dict[str, list[Any]] = {}
    if spec.window is not None:
        days, rule = _days(window, spec.window.every), spec.derived.get(spec.window.column)
        if isinstance(rule, ParsedText):  # what is stored reads as these days, at noon
            values[rule.column] = [rule.text(dt.datetime.combine(day, dt.time(12))) for day in days]
        else:
            values[spec.window.column] = days
    for column, domains in spec.key_columns.items():
        values.setdefault(column, []).extend(key for domain in domains for key in _keys(domain))
    for measure in measures(spec).values():
        for of in measure.reads:
            values.setdefault(of.column, []).extend(_read_values(of))
    return values


def _days(label: str, every: Every) -> list[dt.date]:
    """Return days of a window, and the one before it, where there is one."""
    start = period_start(label, every)
    first, end = start.toordinal(), period_end(start, every)
    return [dt.date.fromordinal(day) for day in (*range(first, min(end, first + _DAYS)), max(1, first - 1))]


def _keys(domain: Domain) -> list[Any]:
    """Return keys of a domain as values of a column, and one that is none of them."""
    first_keys = list(islice(domain, _MOST_VALUES))
    if domain.kind is DomainKind.PERIOD and domain.every is not None:
        return [period_start(str(label), domain.every) for label in first_keys]
    if domain.kind is DomainKind.RANGE:
        return [*first_keys, int(domain[-1]) + 1]
    return [*first_keys, *({"", -1} - set(first_keys))] if domain.kind is DomainKind.LIST else [False, True]


def _read_values(of: ReadColumn) -> list[Any]:
    """Return values that a statistic reads from a column."""
    if isinstance(of, CodeColumn):
        return _keys(of.domain)
    if isinstance(of, SideColumn):
        return [of.lower, of.upper, np.nextafter(of.lower, -np.inf), np.nextafter(of.upper, np.inf)]
    if isinstance(of, BinColumn):
        return _in_bins(of.bins)
    lattice = of.quantiser
    steps = np.linspace(lattice.lowest, lattice.highest, 17)
    inside = lattice.centre + lattice.half_range * steps / lattice.steps
    numbers = [*inside.tolist(), inside[0] - 1, inside[-1] + 1]
    return [*numbers, *(int(np.clip(np.rint(number), -(2**53), 2**53)) for number in numbers)]


def _in_bins(bins: HistogramBins) -> list[Any]:
    """Return edges and middles of bins, and what lies beyond the outer ones."""
    edges = [float(edge) for edge in {*bins.edges[:_MOST_VALUES], *bins.edges[-2:], *bins.atoms}]
    middles = [(each.lower + each.upper) / 2 for each in islice(bins, _MOST_VALUES)]
    return [*edges, *middles, bins.edges[0] - 1, bins.edges[-1] + 1]


def _type_of(column: str, schemas: Iterable[PartSchema]) -> pa.DataType:
    """Return the type of a column in the first part where it is more than nulls."""
    kinds = [schema.columns.field(column).type for schema in schemas]
    return next((kind for kind in kinds if not pa.types.is_null(kind)), pa.null())


def _of_type(kind: pa.DataType, stated: Sequence[Any]) -> pa.Array:
    """Return values as a column of this type has them, a null too; those that it cannot hold are left out."""
    if pa.types.is_dictionary(kind):
        return _of_type(kind.value_type, stated).dictionary_encode()
    if pa.types.is_string_view(kind):
        kind = pa.string()  # nothing can be taken from views
    family = type_family(kind)
    unbounded = () if family is None else _ANY.get(family, ())
    for candidates in (stated, unbounded):
        cast = (_cast(value, kind) for value in candidates)
        values = [value for value in cast if value is not None]
        if values:
            return pa.array([*values, None], type=kind)
    return pa.nulls(1, kind)


def _cast(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """Return a value in a column's type, or None where that cannot hold it."""
    try:
        if pa.types.is_decimal(kind):
            return pa.scalar(round(Decimal(str(value)), kind.scale), kind)
        if pa.types.is_timestamp(kind):
            return pa.scalar(value).cast(pa.timestamp(kind.unit)).cast(kind)  # a text may have no zone
        return pa.scalar(value).cast(kind)
    except (pa.ArrowException, InvalidOperation, NotImplementedError, OverflowError):
        return None
