"""The exact sums of a spec by DuckDB: one GROUP BY per statistic, written independently of the engine."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from suffice.pipeline.spec.plan import measures
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind, Every, period_start
from suffice.pipeline.terms.statistics.lattice import Shape
from suffice.pipeline.terms.statistics.measure import (
    BinColumn,
    CodeColumn,
    CodeCounts,
    CountedPowers,
    FirstRow,
    MomentSums,
    PowerSums,
    ReadColumn,
    RowCounts,
    SideColumn,
    TableCounts,
    TransitionCounts,
    UnitMean,
    UnitProducts,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.lattice import Transform


def duckdb_sums(spec: Spec, files: list[Path], window: str | None = None) -> dict[str, NDArray[Any]]:
    """Return what `exact.to_python` should give, shape (n_cells, n_sums) of Python integers by statistic."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    names = ", ".join(f"'{file}'" for file in files)
    source = f"read_parquet([{names}])"
    described = connection.execute(f"DESCRIBE FROM {source}").fetchall()
    types = {row[0]: row[1] for row in described}
    sizes = [len(domain) for domain in spec.groups.values()]
    cell = "0"
    for column, domain in spec.groups.items():
        cell = f"({cell}) * {len(domain)} + ({_code(column, domain, types[column])})"
    where = "TRUE"
    if spec.window is not None and window is not None:
        length = len(window)
        where = f"substr(strftime({_quoted(spec.window.column)}, '%Y-%m-%d'), 1, {length}) = '{window}'"
    result = {}
    for name, measure in measures(spec).items():
        if isinstance(measure, TableCounts):
            result[name] = _tables(
                connection, measure, f"{source} WHERE {where}", cell, types, math.prod(sizes)
            )
            continue
        if isinstance(measure, TransitionCounts):
            unit = spec.privacy.column_unit
            assert unit is not None
            positions = {"unit": _quoted(unit.column), "place": _quoted(measure.order), "cell": cell}
            chosen = f"{source} WHERE {where}"
            result[name] = _transitions(connection, measure, chosen, positions, types, math.prod(sizes))
            continue
        apart = FirstRow | UnitMean | RowCounts | UnitProducts | CountedPowers
        assert not isinstance(measure, apart), "whole units and counts of moved records are not for SQL"
        columns = ", ".join(
            f"{_value(of, types)} AS v{position}" for position, of in enumerate(measure.reads)
        )
        complete = " AND ".join(f"v{position} IS NOT NULL" for position in range(len(measure.reads)))
        rows = connection.execute(
            f"FROM (FROM {source} SELECT {cell} AS cell, {columns} WHERE {where}) "
            f"SELECT cell, {_aggregates(measure)} WHERE cell IS NOT NULL AND {complete} GROUP BY cell"
        ).fetchall()
        sums = np.zeros((math.prod(sizes), measure.width), object)
        for cell_number, *values in rows:
            sums[cell_number] = [int(value) for value in values]
        result[name] = sums
    return result


def _tables(
    connection: duckdb.DuckDBPyConnection,
    measure: TableCounts,
    rows: str,
    cell: str,
    types: dict[str, str],
    n_cells: int,
) -> NDArray[Any]:
    """One GROUP BY per table, over the rows that have a code of every column of every table."""
    values = {of: f"v{number}" for number, of in enumerate(measure.reads)}
    coded = ", ".join(f"{_value(of, types)} AS {name}" for of, name in values.items())
    complete = " AND ".join(f"{name} IS NOT NULL" for name in ("cell", *values.values()))
    parts = []
    for table in measure.tables:
        names = ", ".join(values[of] for of in table)
        counts = np.zeros((n_cells, *(of.n_codes for of in table)), object)
        query = f"FROM (SELECT {cell} AS cell, {coded} FROM {rows}) "  # noqa: S608 - of a test's spec
        query += f"SELECT cell, {names}, count(*) "
        for *position, count in connection.execute(
            f"{query} WHERE {complete} GROUP BY cell, {names}"
        ).fetchall():
            counts[tuple(position)] = count
        parts.append(counts.reshape(n_cells, -1))
    return np.concatenate(parts, axis=1)


def _transitions(
    connection: duckdb.DuckDBPyConnection,
    measure: TransitionCounts,
    rows: str,
    positions: dict[str, str],
    types: dict[str, str],
    n_cells: int,
) -> NDArray[Any]:
    """Step from row to row of every unit with a window function."""
    columns = ", ".join(f"{expression} AS {name}" for name, expression in positions.items())
    is_number = f"AND NOT isnan({positions['place']})" if types[measure.order] in {"DOUBLE", "FLOAT"} else ""
    query = (
        f"WITH coded AS (SELECT {columns}, {_value(measure.of, types)} AS code FROM {rows} {is_number}), "  # noqa: S608
        "steps AS (SELECT cell, code, row_number() OVER w AS number, lag(code) OVER w AS before, "
        "lag(cell) OVER w AS cell_before FROM coded "
        "WHERE unit IS NOT NULL AND place IS NOT NULL AND cell IS NOT NULL AND code IS NOT NULL "
        "WINDOW w AS (PARTITION BY unit ORDER BY place, code, cell)) "
        "SELECT cell, before, code, count(*) FROM steps "
        f"WHERE cell = cell_before AND number <= {measure.most + 1} GROUP BY ALL"
    )
    counts = np.zeros((n_cells, measure.of.n_codes, measure.of.n_codes), object)
    for cell, before, code, count in connection.execute(query).fetchall():
        counts[cell, before, code] = count
    return counts.reshape(n_cells, -1)


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _aggregates(measure: CodeCounts | PowerSums | MomentSums) -> str:
    if isinstance(measure, CodeCounts):
        return ", ".join(f"count(*) FILTER (v0 = {code})" for code in range(measure.width))
    if isinstance(measure, MomentSums):
        names = [f"v{position}" for position in range(len(measure.of))]
        products = [f"{a} * {b}" for a, b in itertools.combinations_with_replacement(names, 2)]
        return ", ".join(["count(*)", *(f"sum({value})" for value in [*names, *products])])
    return ", ".join(["count(*)", "sum(v0)", "sum(v0 * v0)"][: measure.degree + 1])


def _value(of: ReadColumn, types: dict[str, str]) -> str:
    assert not isinstance(of, SideColumn)
    if isinstance(of, CodeColumn):
        code = _code(of.column, of.domain, types[of.column])
        return code if of.fallback is None else f"coalesce({code}, {of.fallback})"
    if isinstance(of, BinColumn):
        given = f"CAST({_quoted(of.column)} AS DOUBLE)"
        begun = " + ".join(
            f"CAST({given} {'>=' if each.holds_lower else '>'} {_double(each.lower)} AS INTEGER)"
            for each in list(of.bins)[1:]
        )
        value = f"CASE WHEN NOT isnan({given}) THEN {begun} END"
        return value if of.fallback is None else f"coalesce({value}, {of.fallback})"
    quantiser = of.quantiser
    given = number = f"CAST({_quoted(of.column)} AS DOUBLE)"
    if of.transform is not None:
        number = _transformed(number, of.transform)
    scaled = f"(({number} - {_double(quantiser.centre)}) / {_double(quantiser.half_range)})"
    rounded = f"round_even({scaled} * {_double(quantiser.steps)}, 0)"
    clipped = f"greatest(least({rounded}, {_double(quantiser.highest)}), {_double(quantiser.lowest)})"
    value = f"CASE WHEN NOT isnan({given}) THEN CAST({clipped} AS HUGEINT) END"
    return value if of.fallback is None else f"coalesce({value}, {of.fallback})"


def _transformed(number: str, transform: Transform) -> str:
    z = f"(({number} - {_double(transform.centre)}) / {_double(transform.unit)})"
    if transform.shape is Shape.ABSOLUTE:
        return f"abs({z})"
    if transform.shape is Shape.SQUARE:
        return f"({z} * {z})"
    if transform.shape is Shape.LOG:
        return f"CASE WHEN {z} > 0 THEN ln({z}) WHEN {z} <= 0 THEN {_double(-math.inf)} END"
    return f"pow(greatest(least({z}, 1), 0), {_double(transform.exponent)})"


def _double(number: float) -> str:
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def _code(column: str, domain: Domain, kind: str) -> str:
    value = _quoted(column)
    if domain.kind is DomainKind.PERIOD:
        assert domain.every is not None
        labels = [str(label) for label in domain]
        form = "%G-W%V" if domain.every is Every.WEEK else "%Y-%m-%d"
        label = f"substr(strftime({value}, '{form}'), 1, {domain.every.label_length})"
        assert all(period_start(text, domain.every) for text in labels)
        return _cases((f"{label} = '{text}'", code) for code, text in enumerate(labels))
    if domain.kind is DomainKind.BOOLEAN:
        return _cases((f"{value} = {_number(text, kind)}", code) for code, text in enumerate("01"))
    if isinstance(domain.keys, range) and kind != "VARCHAR":
        integer = f"try_cast({value} AS HUGEINT)"
        inside = f"{integer} BETWEEN {domain.keys[0]} AND {domain.keys[-1]}"
        return f"CASE WHEN {inside} AND {integer} = {value} THEN {integer} - ({domain.keys[0]}) END"
    literals = [_literal(str(key), kind) for key in domain]
    return _cases((f"{value} = {text}", code) for code, text in enumerate(literals) if text)


def _cases(branches: Any) -> str:
    text = " ".join(f"WHEN {condition} THEN {code}" for condition, code in branches)
    return f"CASE {text} END" if text else "NULL"


def _literal(key: str, kind: str) -> str | None:
    escaped = key.replace("'", "''")
    if kind == "VARCHAR":
        return f"'{escaped}'"
    if kind in {"DATE", "BOOLEAN"} or kind.startswith("TIMESTAMP"):
        return f"try_cast('{escaped}' AS {kind})"
    return _number(key, kind)


def _number(key: str, kind: str) -> str | None:
    try:
        float(key)
    except ValueError:
        return None
    if kind == "BOOLEAN":
        return "TRUE" if key == "1" else "FALSE"
    return f"CAST('{key}' AS {kind})" if kind in {"DOUBLE", "FLOAT"} else f"CAST({key} AS DECIMAL(38, 9))"
