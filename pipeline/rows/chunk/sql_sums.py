"""A measure's exact sums as queries that DuckDB answers: the integers that `chunk` gives.

One query gives the sums of powers and the counts of few codes of all statistics; tables of counts and
products of several columns have queries of their own. Sums have 128 bits, of which 2**63 rows of squares of
30 bits take 124.

Keys are looked up by the same tables as in `Encoder`, and values are rounded by the same float64 operations
in the same order as in `quantise`. No expression is an error for any value. NULL stands for a row that does
not enter.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from suffice.errors import SchemaError
from suffice.pipeline.rows.chunk.exact_sums import LIMB_BITS
from suffice.pipeline.rows.sources.duckdb_tables import ROWS
from suffice.pipeline.terms.declaration.domain_lookup import (
    UNSIGNED_SHIFT,
    Dense,
    Interval,
    Listed,
    Sparse,
    lookup,
)
from suffice.pipeline.terms.declaration.table_names import quoted
from suffice.pipeline.terms.statistics.lattice import Quantiser, Shape
from suffice.pipeline.terms.statistics.measure import (
    CodeColumn,
    CodeCounts,
    MomentSums,
    PowerSums,
    SideColumn,
    TableCounts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.lattice import Transform
    from suffice.pipeline.terms.statistics.measure import LatticeColumn, ReadColumn

MOST_DIGITS = 15
"""Of decimals: float64 holds all integers of as many digits."""

_ROUNDS_TO_INTEGER = 1.5 * 2.0**52
"""Float64 numbers of this size are 1 apart: adding it rounds what is at most 2**51, ties to even."""
_LARGEST_COMMON = 1 << 53


class SqlColumns:
    """Writes the rows of one query, and gathers its parameters and tables of keys.

    Parameters
    ----------
    job : ChunkJob
        What is summed; its cells are those of the rows.
    columns : pyarrow.Schema
        The columns of the table, as Arrow reads them.
    """

    def __init__(self, job: ChunkJob, columns: pa.Schema) -> None:
        self.n_cells = job.n_cells
        self._columns = columns
        self.parameters: dict[str, float] = {}
        self.keys: dict[str, pa.Table] = {}
        self._joins: list[str] = []
        self._first: list[str] = []
        self._values: dict[ReadColumn, tuple[str, str]] = {}
        window = [] if job.window is None else [self._code(*job.window, is_needed=True)]
        self._chosen = " AND ".join(f"{code} IS NOT NULL" for code in window) or "TRUE"
        self._cell = "0"
        for column, domain in job.groups.items():
            code = self._code(column, domain, is_needed=True)
            self._cell = f"({self._cell} * {len(domain)} + {code})"

    def value(self, of: ReadColumn) -> str:
        """Return the name of a column's code or lattice value in `rows`; NULL where a row does not enter."""
        if of not in self._values:
            if isinstance(of, SideColumn):
                message = "sides of bounds are not read in a database"
                raise TypeError(message)
            value = self._coded(of) if isinstance(of, CodeColumn) else self._lattice(of)
            self._values[of] = f"v{len(self._values)}", value
        return self._values[of][0]

    @property
    def rows(self) -> str:
        """The rows that belong to a cell, with their ``cell`` and every value asked for, as a subquery."""
        first = ", ".join([f"CAST({self._cell} AS BIGINT) AS cell", *self._first])
        rows_query = f"SELECT {first} FROM {' '.join([f'{ROWS} AS t', *self._joins])} WHERE {self._chosen}"  # noqa: S608
        values = ", ".join(["cell", *(f"{value} AS {name}" for name, value in self._values.values())])
        return f"(SELECT {values} FROM ({rows_query}) WHERE cell IS NOT NULL)"  # noqa: S608

    def _coded(self, of: CodeColumn) -> str:
        code = self._once(self._code(of.column, of.domain))
        return code if of.fallback is None else f"coalesce({code}, {of.fallback})"

    def _lattice(self, of: LatticeColumn) -> str:
        quantiser, kind = of.quantiser, self._kind(of.column)
        lowest, highest = quantiser.lowest, quantiser.highest
        if pa.types.is_integer(kind) and of.transform is None and quantiser == Quantiser.counting(highest):
            # Float64 holds the bounds, and rounding to it keeps the order: clipping integers is the same.
            value = self._once(_integer(_name(of.column), kind))
            value = f"CAST({_clipped(value, str(lowest), str(highest))} AS BIGINT)"
            return value if of.fallback is None else f"coalesce({value}, {of.fallback})"
        number = self._number(of.column)
        shape = number if of.transform is None else self._transformed(number, of.transform)
        centre, half_range, steps = map(
            self._parameter, (quantiser.centre, quantiser.half_range, quantiser.steps)
        )
        scaled = self._once(f"((({shape}) - {centre}) / {half_range}) * {steps}")
        # Bounds are integers: clipped before rounding is clipped after it, and nothing leaves 2**51.
        value = self._rounded(_clipped(scaled, self._parameter(lowest), self._parameter(highest)))
        if pa.types.is_floating(kind):
            value = f"CASE WHEN isnan({scaled}) THEN NULL ELSE {value} END"
        return value if of.fallback is None else f"coalesce({value}, {of.fallback})"

    def _once(self, expression: str) -> str:
        """Return the name of an expression that is computed once a row."""
        self._first.append(f"{expression} AS e{len(self._first)}")
        return f"e{len(self._first) - 1}"

    def _rounded(self, number: str) -> str:
        """Return a number of at most 2**51 in magnitude as the nearest integer, ties to even."""
        shift = self._parameter(_ROUNDS_TO_INTEGER)
        return f"CAST((({number}) + {shift}) - {shift} AS BIGINT)"

    def _transformed(self, number: str, by: Transform) -> str:
        z = f"(({number} - {self._parameter(by.centre)}) / {self._parameter(by.unit)})"
        if by.shape is Shape.ABSOLUTE:
            return f"abs({z})"
        if by.shape is Shape.SQUARE:
            return f"({z} * {z})"
        message = "a logarithm is not written as SQL"
        raise ValueError(message)

    def _number(self, column: str) -> str:
        """Return a column as float64, as `as_float64` does."""
        kind, number = self._kind(column), f"CAST({_name(column)} AS DOUBLE)"
        if not pa.types.is_decimal(kind) or not kind.scale:
            return number
        # Arrow multiplies the unscaled integer, which one rounded division cannot hide: it is within 0.25.
        unscaled = self._rounded(f"{number} * {self._parameter(float(10**kind.scale))}")
        return f"(CAST({unscaled} AS DOUBLE) * {self._parameter(float(f'1e-{kind.scale}'))})"

    def _code(self, column: str, domain: Domain, *, is_needed: bool = False) -> str:
        """Return the code of a column's value, as `Encoder` does; NULL where it is not declared.

        Rows whose code is needed may be left out where they have none.
        """
        kind, name = self._kind(column), _name(column)
        table = lookup(domain, kind)
        join = "JOIN" if is_needed else "LEFT JOIN"
        if isinstance(table, Listed):
            # Texts by their bytes: the column's collation may take others for the same.
            is_text = not pa.types.is_decimal(kind)
            value = f"CAST({name} AS VARCHAR) COLLATE C" if is_text else name
            return self._joined(value, table.keys, table.codes, join)
        if isinstance(table, Interval):
            return _inside(_integer(name, kind), table.begins * table.divisor, table.ends * table.divisor, 0)
        keys, codes = _integer_keys(table)
        if pa.types.is_floating(kind):
            return self._code_of_float(f"CAST({name} AS DOUBLE)", table, keys, codes, join)
        value = _integer(name, kind)
        if kind == pa.uint64():
            unsigned = keys.view(np.uint64) ^ np.uint64(UNSIGNED_SHIFT)
            return self._code_of_integer(value, unsigned, codes, table.divisor, join)
        return self._code_of_integer(value, keys, codes, table.divisor, join)

    def _code_of_integer(
        self,
        value: str,
        keys: NDArray[np.int64] | NDArray[np.uint64],
        codes: NDArray[np.int32],
        divisor: int,
        join: str,
    ) -> str:
        if not len(keys):
            return "NULL"
        first, last = int(keys[0]), int(keys[-1])
        if last - first == len(keys) - 1:
            if divisor == 1 and _is_counting(codes):
                shift = int(codes[0]) - first
                # Clipped too, so that no shift of another value overflows, wherever it is evaluated.
                within = f"{_clipped(value, str(first), str(last))} + ({shift})" if shift else value
                return f"CASE WHEN {value} BETWEEN {first} AND {last} THEN CAST({within} AS BIGINT) END"
            if (codes == codes[0]).all():
                return _inside(value, first * divisor, (last + 1) * divisor, int(codes[0]))
        if divisor > 1:
            value = f"({value} // {divisor} - CAST({value} % {divisor} < 0 AS BIGINT))"
        return self._joined(value, pa.array(keys), codes, join)

    def _code_of_float(
        self,
        value: str,
        table: Dense | Sparse,
        keys: NDArray[np.int64],
        codes: NDArray[np.int32],
        join: str,
    ) -> str:
        if isinstance(table, Sparse) and table.of_bits:
            return self._joined(f"({value} + 0.0)", pa.array(keys.view(np.float64)), codes, join)
        held = np.array([int(float(key)) == key for key in keys.tolist()], np.bool_)
        keys, codes = keys[held], codes[held]
        if not len(keys):
            return "NULL"
        first, last = int(keys[0]), int(keys[-1])
        is_dense = last - first == len(keys) - 1 and max(-first, last) <= _LARGEST_COMMON
        if is_dense and _is_counting(codes):
            within = _clipped(value, str(float(first)), str(float(last)))
            return (
                f"CASE WHEN {value} BETWEEN {float(first)} AND {float(last)} AND {value} = floor({value}) "
                f"THEN CAST({within} AS BIGINT) - {first} + {codes[0]} END"
            )
        return self._joined(f"({value} + 0.0)", pa.array(keys.astype(np.float64)), codes, join)

    def _joined(self, value: str, keys: pa.Array, codes: NDArray[np.int32], join: str) -> str:
        """Return the code of a value by a table of distinct keys: a row meets one of them at most."""
        if not len(keys):
            return "NULL"
        name = f"keys;{len(self.keys)}"
        self.keys[name] = pa.table({"key": keys, "code": pa.array(codes.astype(np.int64))})
        self._joins.append(f"{join} {quoted(name)} ON {value} = {quoted(name)}.key")
        return f"{quoted(name)}.code"

    def _parameter(self, number: float) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = float(number)
        return f"CAST(${name} AS DOUBLE)"

    def _kind(self, column: str) -> pa.DataType:
        """Return the type of a column's values.

        Raises
        ------
        SchemaError
            Where it is one that is not summed in the database.
        """
        kind = self._columns.field(column).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not _is_summed(kind):
            message = (
                f"source.push_down: the column {column!r} is read as {kind}; DuckDB sums integers up to 64 "
                f"bits, floating-point numbers, decimals of at most {MOST_DIGITS} digits, booleans, texts, "
                "dates, and timestamps in microseconds: leave push_down out"
            )
            raise SchemaError(message)
        return kind


def _is_summed(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_decimal(kind):
        return bool(kind.precision <= MOST_DIGITS)
    if types.is_timestamp(kind):
        return bool(kind.unit == "us")
    tests = (types.is_integer, types.is_float32, types.is_float64, types.is_boolean, types.is_string)
    return types.is_date32(kind) or any(test(kind) for test in tests)


def _clipped(value: str, lowest: str, highest: str) -> str:
    """Return a value between two bounds; NULL stays NULL."""
    return (
        f"CASE WHEN {value} < {lowest} THEN {lowest} WHEN {value} > {highest} THEN {highest} ELSE {value} END"
    )


def _name(column: str) -> str:
    return f"t.{quoted(column)}"


def _integer(name: str, kind: pa.DataType) -> str:
    """Return a value as the integer that stands in Arrow's buffer; NULL for an infinite time."""
    if pa.types.is_date(kind):
        return f"CAST({name} - DATE '1970-01-01' AS BIGINT)"
    if pa.types.is_timestamp(kind):
        return f"epoch_us({name})"
    return name if kind == pa.uint64() else f"CAST({name} AS BIGINT)"


def _integer_keys(table: Dense | Sparse) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return keys in ascending order, and their codes."""
    if isinstance(table, Sparse):
        return table.keys, table.codes
    places = np.flatnonzero(table.codes >= 0)
    return places + np.int64(table.first), table.codes[places]


def _is_counting(codes: NDArray[np.int32]) -> bool:
    return bool((np.diff(codes) == 1).all())


def _inside(value: str, begins: int, ends: int, code: int) -> str:
    return f"CASE WHEN {value} >= {begins} AND {value} < {ends} THEN {code} END"


_LIMB = 1 << LIMB_BITS
_FEW_CODES = 8
"""So many codes are counted beside other sums, each for itself; more have a query of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumQuery:
    """A query that gives some sums.

    Parameters
    ----------
    sql : str
        Its columns are ``cell``, and either ``place`` and ``n`` or ``low0``, ``high0``, ``low1`` and so on.
    parameters : dict of str to float
        Public numbers.
    keys : dict of str to pyarrow.Table
        Public keys and their codes.
    statistic : str
        Whose counts they are, each with its place; empty where each row has several sums.
    places : tuple of (str, int)
        Of each sum in a row: the statistic, and the place in its table.
    """

    sql: str
    parameters: dict[str, float]
    keys: dict[str, pa.Table]
    statistic: str = ""
    places: tuple[tuple[str, int], ...] = ()

    def write(self, answers: Mapping[str, NDArray[np.int64]], sums: Sums) -> None:
        """Write an answer into tables of zeros."""
        cells = answers["cell"]
        if self.statistic:
            sums[self.statistic].low[cells, answers["place"]] = answers["n"]
        for number, (statistic, place) in enumerate(self.places):
            table = sums[statistic]
            table.low[cells, place] = answers[f"low{number}"]
            if table.high is not None:
                table.high[cells, place] = answers[f"high{number}"]


def sum_queries(job: ChunkJob, columns: pa.Schema) -> tuple[SumQuery, ...]:
    """Return the queries of a job over rows that are units of their own, without derived columns.

    Parameters
    ----------
    job : ChunkJob
        What to sum.
    columns : pyarrow.Schema
        The columns of the table, as Arrow reads them.

    Raises
    ------
    SchemaError
        Where a column is of a type that is not summed in the database.
    """
    if job.unit is not None or job.derived:
        message = "bounded rows and derived columns are not summed in a database"
        raise ValueError(message)
    return (*_of_one_column(job, columns), *_of_several(job, columns))


def _of_one_column(job: ChunkJob, columns: pa.Schema) -> Iterator[SumQuery]:
    """Write one query for all sums of powers and all counts of few codes."""
    rows = SqlColumns(job, columns)
    sums: dict[tuple[str, int], str] = {}
    for name, measure in job.measures.items():
        if isinstance(measure, PowerSums):
            value = rows.value(measure.of)
            written = [f"count({value})", f"sum({value})", f"sum({value} * {value})"][: measure.width]
        elif isinstance(measure, CodeCounts) and measure.width <= _FEW_CODES:
            value = rows.value(measure.of)
            written = [f"count(*) FILTER (WHERE {value} = {code})" for code in range(measure.width)]
        else:
            continue
        sums |= {(name, place): each for place, each in enumerate(written)}
    if sums:
        yield _sums(rows, sums)


def _of_several(job: ChunkJob, columns: pa.Schema) -> Iterator[SumQuery]:
    """Write the queries of all that `_of_one_column` leaves."""
    for name, measure in job.measures.items():
        if isinstance(measure, CodeCounts) and measure.width > _FEW_CODES:
            yield _counts(SqlColumns(job, columns), name, [measure.of], [measure.of], 0)
        elif isinstance(measure, TableCounts):
            for number, table in enumerate(measure.tables):
                start = sum(measure.widths[:number])
                yield _counts(SqlColumns(job, columns), name, table, measure.reads, start)
        elif isinstance(measure, MomentSums):
            rows = SqlColumns(job, columns)
            values = [rows.value(of) for of in measure.of]
            products = [f"{a} * {b}" for a, b in combinations_with_replacement(values, 2)]
            written = ["count(*)", *(f"sum({each})" for each in (*values, *products))]
            yield _sums(rows, {(name, place): each for place, each in enumerate(written)}, values)
        elif not isinstance(measure, CodeCounts | PowerSums):
            message = f"{type(measure).__name__} is not summed in a database"
            raise TypeError(message)


def _counts(
    rows: SqlColumns, name: str, table: Sequence[CodeColumn], reads: Sequence[ReadColumn], start: int
) -> SumQuery:
    """Count the combinations of a table's codes, from place `start` on, among rows that have all codes."""
    present = _present([rows.value(of) for of in reads])
    place = "0"
    for of in table:
        place = f"({place} * {of.n_codes} + {rows.value(of)})"
    sql = (
        f"SELECT cell, {start} + {place} AS place, count(*) AS n "  # noqa: S608
        f"FROM {rows.rows} WHERE {present} GROUP BY ALL"
    )
    return SumQuery(sql=sql, parameters=rows.parameters, keys=rows.keys, statistic=name)


def _sums(rows: SqlColumns, sums: Mapping[tuple[str, int], str], complete: Sequence[str] = ()) -> SumQuery:
    """Give sums, each as two limbs, of all rows, or of those that have some values."""
    named = ", ".join(
        f"CAST(coalesce({each}, 0) AS HUGEINT) AS s{number}" for number, each in enumerate(sums.values())
    )
    limbs = ", ".join(_limbs(number) for number in range(len(sums)))
    where = f"WHERE {_present(complete)}" if complete else ""
    # A single cell is no group: then there is a row even where no row of the table enters.
    cell, group = ("cell", "GROUP BY cell") if rows.n_cells > 1 else ("0 AS cell", "")
    grouped = f"SELECT {cell}, {named} FROM {rows.rows} {where} {group}"  # noqa: S608
    sql = f"SELECT cell, {limbs} FROM ({grouped})"  # noqa: S608
    return SumQuery(sql=sql, parameters=rows.parameters, keys=rows.keys, places=tuple(sums))


def _limbs(number: int) -> str:
    """Split a sum as `Table` does; remainders of negative numbers are negative here."""
    low = f"((s{number} % {_LIMB} + {_LIMB}) % {_LIMB})"
    return (
        f"CAST({low} AS BIGINT) AS low{number}, "
        f"CAST((s{number} - {low}) // {_LIMB} AS BIGINT) AS high{number}"
    )


def _present(values: Sequence[str]) -> str:
    return " AND ".join(f"{value} IS NOT NULL" for value in values)
