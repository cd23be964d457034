"""Derived columns of hostile values of every type: never an error, one row's answer, that of plain Python."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.partition import ChunkJob
from suffice.pipeline.terms.declaration.derived_columns import read_derived
from suffice.pipeline.terms.declaration.time_zones import zone_offsets
from support.derived_reference import derived_value

if TYPE_CHECKING:
    from collections.abc import Mapping

BERLIN, ADELAIDE = "Europe/Berlin", "Australia/Adelaide"
INTEGERS = [0, 1, -1, 15, 16, 2**53 + 1, 2**63 - 1, -(2**63), 12, None, 7]
FLOATS = [0.0, -0.0, 0.1, 15.0, 15.000001, np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, None, 2.5, 1.0]
DECIMALS = [Decimal(text) for text in ("0", "0.1", "15", "-15.01", "99999.99", "12")]
TEXTS = ["a", " A ", "", "\u00a0é\u2003", "É", "01", "1", "15", "nul\0l", "x" * 300, None, "Ünder"]
TEXTS += [
    "25K",
    "2.55M",
    "1,234.5",
    "1.234,5",
    "+.5e3",
    "5-JAN-13",
    "30-FEB-13",
    "20130105",
    " 31 dec 69",
    "1e999",
]
SECONDS = [0, -1, 1_364_691_600, 1_364_691_599, 1_382_835_600, 4_120_000_000, 253_402_300_799, None]
SECONDS += [253_402_300_800, -62_135_596_800, -62_135_596_801, 2**63 - 1, -(2**63), 20_000_000_000]


def times(unit: int, kind: pa.DataType) -> pa.Array:
    """Return times from seconds where they fit, else the extreme values of 64 bits."""
    raw = [None if s is None else max(-(2**63), min(2**63 - 1, s * unit)) for s in SECONDS]
    return pa.array(raw, pa.int64()).cast(kind)


NUMBERS = {
    "int8": pa.array([0, 1, -1, 15, 16, 127, -128, None], pa.int8()),
    "int64": pa.array(INTEGERS, pa.int64()),
    "uint64": pa.array([0, 1, 15, 2**64 - 1, 2**63, 2**53 + 1, None], pa.uint64()),
    "float16": pa.array(np.array([0, -0.0, 0.1, 15, np.nan, np.inf, 65504], np.float16)),
    "float32": pa.array(FLOATS, pa.float32()),
    "float64": pa.array(FLOATS, pa.float64()),
    "decimal32": pa.array([*DECIMALS, None], pa.decimal32(9, 2)),
    "decimal128": pa.array([*DECIMALS, None], pa.decimal128(38, 18)),
    "decimal256": pa.array([*DECIMALS, Decimal(10**60), -Decimal(10**60), None], pa.decimal256(76, 4)),
}
TEXT = {
    "string": pa.array(TEXTS, pa.string()),
    "large": pa.array(TEXTS, pa.large_string()),
    "view": pa.array(TEXTS, pa.string_view()),
    "not utf-8": pa.array([b" ok ", b"\xff\xfe", b"A\xc3", b"", None], pa.binary()).view(pa.string()),
}
DAYS = {
    "date32": pa.array(
        [0, -1, 15_000, 2**31 - 1, -(2**31), 2_932_896, 2_932_897, -719_162, None], pa.int32()
    ).cast(pa.date32()),
    "date64": times(1000, pa.date64()),
    **{f"naive {unit}": times(per, pa.timestamp(unit)) for unit, per in (("s", 1), ("us", 10**6))},
}
ZONED = {
    f"zoned {unit}": times(per, pa.timestamp(unit, zone))
    for unit, per, zone in (("s", 1, "UTC"), ("ms", 10**3, BERLIN), ("ns", 10**9, ADELAIDE))
}
FLAGS = {"boolean": pa.array([True, False, None])}
NONE = {"null": pa.nulls(5)}
COLUMNS: dict[str, pa.Array] = {**NUMBERS, **TEXT, **DAYS, **ZONED, **FLAGS, **NONE}
CONSTANTS = [
    "0",
    "15",
    "0.1",
    "-0.5",
    "1e150",
    "-1e150",
    "127",
    "128",
    "9223372036854775807",
    "1e-150",
    "99999.99",
]
DATES = ["1970-01-01", "2013-03-31", "0001-01-01", "9999-12-31", "2013-10-27"]
KEYS = ["a", "15", "1", "01", "0.1", "", "true", "A"]
ENDS = ["above", "at_least", "below", "at_most"]


def comparisons(constants: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    comparison = st.builds(lambda key, value: {key: value}, st.sampled_from(ENDS), st.sampled_from(constants))
    in_order = sorted(constants, key=float) if constants is CONSTANTS else sorted(constants)
    two = st.tuples(*[st.integers(0, len(constants) - 1)] * 2).map(
        lambda ends: {"between": [in_order[min(ends)], in_order[max(ends)]]}
    )
    return st.one_of(comparison, two)


def of(names: Any, functions: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda name, function: {"column": name, **function}, st.sampled_from([*names]), functions
    )


ZONES = st.sampled_from(
    [{}, {"time_zone": BERLIN}, {"time_zone": ADELAIDE}, {"time_zone": "Africa/Casablanca"}]
)
PARTS = ["year", "quarter", "month", "week", "day", "weekday", "hour"]
MEMBERS = st.lists(
    st.sampled_from([*KEYS[:-1], "0.5"]), min_size=1, unique_by=lambda key: key.lstrip("0") or "0"
)
MAPPED: st.SearchStrategy[dict[str, Any]] = MEMBERS.flatmap(
    lambda keys: st.sampled_from(
        [
            {"map": {key: f"to {key}" for key in keys}},
            {"map": {key: f"to {key}" for key in keys}, "otherwise": "others"},
            {"map": {key: str(len(key)) for key in keys}, "type": "number", "otherwise": "-2.5"},
        ]
    )
)
CONDITION = st.one_of(
    of([*NUMBERS, *NONE], comparisons(CONSTANTS)),
    of([*DAYS, *NONE], comparisons(DATES)),
    of(ZONED, st.builds(lambda end, zone: {**end, **zone}, comparisons(DATES), ZONES)),
    of([*NUMBERS, *TEXT, *FLAGS, *NONE], MEMBERS.map(lambda keys: {"in": keys})),
    of([*TEXT, *FLAGS], st.sampled_from(KEYS).map(lambda key: {"equals": key})),
)
MATCHES = st.builds(
    lambda key, texts: {key: texts},
    st.sampled_from(["starts_with", "ends_with", "contains"]),
    st.lists(st.sampled_from(["a", "A", "é", "1", " ", "x" * 20]), min_size=1, unique=True),
)
NEGATED = st.one_of(
    st.just("boolean"),
    CONDITION,
    st.sampled_from([*COLUMNS]).map(lambda name: {"column": name, "is_null": "true"}),
)
PARSED: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"parse": "number"},
        {"parse": "number", "suffixes": {"K": "1000", "M": "1000000", "doz": "12", "%": "0.01"}},
        {"parse": "number", "thousands": ","},
        {"parse": "number", "decimal": ",", "thousands": "."},
        {"parse": "date", "format": "%d-%b-%y", "pivot": "1970"},
        {"parse": "timestamp", "format": "%Y%m%d"},
        {"parse": "date", "format": "%d %b %y", "pivot": "1999"},
        *({"parse": "date", "epoch": unit} for unit in ("days", "seconds", "milliseconds", "nanoseconds")),
    ]
)
EDGES = st.lists(st.sampled_from(CONSTANTS), min_size=2, unique_by=float).map(
    lambda edges: sorted(edges, key=float)
)
DIVIDED = st.one_of(
    EDGES.map(lambda edges: {"bins": edges}),
    EDGES.map(lambda edges: {"cut": edges, "labels": [f"part {n}" for n in range(len(edges) + 1)]}),
)
COALESCED = st.one_of(
    st.lists(st.sampled_from([*NUMBERS, *NONE]), min_size=1).map(
        lambda names: {"coalesce": names, "type": "number"}
    ),
    st.just({"coalesce": ["float64", "int64"], "type": "number", "otherwise": "7"}),
    st.just({"coalesce": ["string", "view", "large"], "otherwise": "none"}),
    st.just({"coalesce": ["null", "boolean"], "type": "boolean"}),
)
COMBINATION = st.builds(
    lambda key, first, others: {key: [first, *others]},
    st.sampled_from(["any_of", "all_of"]),
    CONDITION,
    st.lists(st.one_of(st.just("boolean"), CONDITION), min_size=1, max_size=3),
)
ARITHMETIC = st.builds(
    lambda operation, first, second: {operation: [first, second], "lower": "-100.5", "upper": "1e20"},
    st.sampled_from(["sum", "difference", "product", "ratio"]),
    st.sampled_from([*NUMBERS, *NONE]),
    st.sampled_from([*NUMBERS, {"number": "2.5"}]),
)
ENTRY = st.one_of(
    CONDITION,
    COMBINATION,
    of(TEXT, MATCHES),
    NEGATED.map(lambda condition: {"not": condition}),
    of([*NUMBERS, *TEXT, *NONE], PARSED),
    of([*NUMBERS, *NONE], DIVIDED),
    COALESCED,
    of([*DAYS, *NONE], st.sampled_from(PARTS[:-1]).map(lambda part: {"part": part})),
    of(ZONED, st.builds(lambda part, zone: {"part": part, **zone}, st.sampled_from(PARTS), ZONES)),
    of(
        [*TEXT, *NONE],
        st.sampled_from(
            [
                {"trim": "true"},
                {"case": "upper"},
                {"trim": "true", "case": "lower"},
                {"normalize": "NFC"},
                {"normalize": "NFKD", "trim": "true", "case": "upper"},
            ]
        ),
    ),
    of([*NUMBERS, *TEXT, *FLAGS, *NONE], MAPPED),
    ARITHMETIC,
)


def derive(entry: Mapping[str, Any], rows: pa.RecordBatch, cuts: list[int] | None = None) -> list[Any]:
    """Return a derived column of rows that are read in parts."""
    derived = read_derived("new", entry, None)
    job = ChunkJob(
        measures={},
        groups={},
        derived={"new": derived},
        zones={zone: zone_offsets(zone) for zone in derived.time_zones},
    )
    parts = [rows.slice(start, end - start) for start, end in pairwise([0, *(cuts or []), rows.num_rows])]
    return [value for part in with_derived(parts, job, ["new"]) for value in part.column("new").to_pylist()]


def hostile_rows(n_rows: int, seed: int, *, dictionaries: bool) -> pa.RecordBatch:
    """Return rows of every type, each value drawn for itself; dictionaries have unused and null entries."""
    rng = np.random.default_rng(seed)
    arrays = []
    for values in COLUMNS.values():
        chosen = rng.integers(0, len(values), n_rows).astype(np.int32)
        if dictionaries:
            arrays.append(pa.DictionaryArray.from_arrays(chosen, values))
        else:  # some types cannot be taken from
            arrays.append(pa.concat_arrays([values.slice(index, 1) for index in chosen.tolist()]))
    return pa.RecordBatch.from_arrays(arrays, [*COLUMNS])


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(entry=ENTRY, seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 30), max_size=3).map(sorted))
def test_each_row_has_the_answer_of_plain_python(entry: dict[str, Any], seed: int, cuts: list[int]) -> None:
    rows = hostile_rows(30, seed, dictionaries=False)
    reference = [
        derived_value(entry, {name: rows.column(name)[row] for name in rows.schema.names})
        for row in range(30)
    ]
    assert derive(entry, rows) == reference
    assert derive(entry, rows, cuts) == reference
    assert derive(entry, rows, [*range(1, 30)]) == reference
    assert derive(entry, hostile_rows(30, seed, dictionaries=True), cuts) == reference
