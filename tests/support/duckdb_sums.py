"""The exact sums of a spec by DuckDB: one GROUP BY per statistic, written independently of the engine."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from suffice.pipeline.domains import Domain, DomainKind, period_start
from suffice.pipeline.plan import measures
from suffice.pipeline.sums import CodeColumn, CodeCounts, Measure, MomentSums, ReadColumn
from suffice.pipeline.transforms import Shape

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.spec import Spec
    from suffice.pipeline.transforms import Transform


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
        columns = ", ".join(f"{_value(of, types)} AS v{place}" for place, of in enumerate(measure.reads))
        complete = " AND ".join(f"v{place} IS NOT NULL" for place in range(len(measure.reads)))
        rows = connection.execute(
            f"FROM (FROM {source} SELECT {cell} AS cell, {columns} WHERE {where}) "
            f"SELECT cell, {_aggregates(measure)} WHERE cell IS NOT NULL AND {complete} GROUP BY cell"
        ).fetchall()
        sums = np.zeros((math.prod(sizes), measure.width), object)
        for cell_number, *values in rows:
            sums[cell_number] = [int(value) for value in values]
        result[name] = sums
    return result


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _aggregates(measure: Measure) -> str:
    if isinstance(measure, CodeCounts):
        return ", ".join(f"count(*) FILTER (v0 = {code})" for code in range(measure.width))
    if isinstance(measure, MomentSums):
        names = [f"v{place}" for place in range(len(measure.of))]
        products = [f"{a} * {b}" for a, b in itertools.combinations_with_replacement(names, 2)]
        return ", ".join(["count(*)", *(f"sum({value})" for value in [*names, *products])])
    return ", ".join(["count(*)", "sum(v0)", "sum(v0 * v0)"][: measure.degree + 1])


def _value(of: ReadColumn, types: dict[str, str]) -> str:
    if isinstance(of, CodeColumn):
        code = _code(of.column, of.domain, types[of.column])
        return code if of.fallback is None else f"coalesce({code}, {of.fallback})"
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
        label = f"substr(strftime({value}, '%Y-%m-%d'), 1, {domain.every.label_length})"
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
