"""The schema check: names and type families, and nothing that depends on a value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import SchemaError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources.schema_check import check_schema, type_family, unit_warnings
from suffice.pipeline.terms.declaration.column_types import TypeFamily
from support.hostile import bernoulli, categorical, make_spec, normal, poisson

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

CANARY = "CANARY-51c0"
COLUMNS: dict[str, pa.Array] = {
    "text": pa.array([CANARY]),
    "view": pa.array([CANARY], pa.string_view()),
    "dictionary": pa.array([CANARY]).dictionary_encode(),
    "integer": pa.array([1]),
    "half": pa.array([1.0], pa.float16()),
    "price": pa.array([Decimal(1)], pa.decimal128(5, 2)),
    "flag": pa.array([True]),
    "day": pa.array([dt.date(2013, 1, 1)]),
    "instant": pa.array([0], pa.timestamp("ns", "UTC")),
    "nothing": pa.nulls(1),
    "nested": pa.array([[1]]),
    "struct": pa.array([{"a": 1}]),
    "binary": pa.array([CANARY.encode()]),
    "time": pa.array([dt.time(1)]),
    "span": pa.array([1], pa.duration("s")),
}
NUMERIC = {"integer", "half", "price", "nothing"}
TEXT = {"text", "view", "dictionary"}
DATES = {"day", "instant"}
ANY = NUMERIC | TEXT | DATES | {"flag"}


def check(directory: Path, **spec: Any) -> None:
    made: Spec = make_spec(directory, spec.pop("statistics", {"n": poisson("integer", "9")}), **spec)
    check_schema(made, sources.schema(sources.pin(made)))


@pytest.fixture(scope="module")
def every_type(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("types")
    pq.write_table(pa.table(COLUMNS), directory / "a.parquet")
    pq.write_table(pa.table(COLUMNS).slice(0, 0), directory / "b.parquet")
    return directory


USES: list[tuple[str, dict[str, Any], set[str]]] = [
    ("normal", {"statistics": {"s": normal("COLUMN", "0", "1")}}, NUMERIC),
    ("poisson", {"statistics": {"s": poisson("COLUMN", "5")}}, NUMERIC),
    ("bernoulli", {"statistics": {"s": bernoulli("COLUMN")}}, NUMERIC | {"flag"}),
    ("list", {"statistics": {"s": categorical("COLUMN", ["1"])}}, ANY),
    ("range", {"statistics": {"s": categorical("COLUMN", {"range": ["1", "2"]})}}, NUMERIC | TEXT),
    ("group", {"groups": {"COLUMN": ["a"]}}, ANY),
    ("period", {"groups": {"COLUMN": {"from": "2013", "to": "2014", "every": "year"}}}, DATES | {"nothing"}),
    ("window", {"window": {"column": "COLUMN", "every": "month"}}, DATES | {"nothing"}),
]
POSITIONS = {"group": "groups.{}", "period": "groups.{}", "window": "window.column"}


def with_column(entry: Any, column: str) -> Any:
    if isinstance(entry, dict):
        return {with_column(key, column): with_column(value, column) for key, value in entry.items()}
    return column if entry == "COLUMN" else entry


@pytest.mark.parametrize(("use", "spec", "serving"), USES, ids=[use for use, _, _ in USES])
def test_which_types_serve_which_use(
    every_type: Path, use: str, spec: dict[str, Any], serving: set[str]
) -> None:
    location = POSITIONS.get(use, "statistics.s.column")
    for column in COLUMNS:
        if column in serving:
            check(every_type, **with_column(spec, column))
            continue
        with pytest.raises(SchemaError) as caught:
            check(every_type, **with_column(spec, column))
        message = str(caught.value)
        assert message.startswith(f"{location.format(column)}: {every_type / 'a.parquet'}: ")
        assert f"the column {column!r} is " in message
        assert " is needed" in message
        is_dated = use in {"window", "period"} and column in NUMERIC | TEXT
        assert ("parse: date" in message) is is_dated, "and what makes dates of it"
        assert CANARY not in message
        assert caught.value.exit_status == 4


def test_a_missing_column_is_named_with_those_there_are(every_type: Path) -> None:
    with pytest.raises(
        SchemaError, match=r"groups\.planet: .*a\.parquet: no column 'planet'; its columns are text, "
    ):
        check(every_type, groups={"planet": ["a"]})


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="occurs 2 times"):
        check(tmp_path, statistics={"s": poisson("x", "9")})


def test_every_file_is_checked(tmp_path: Path) -> None:
    pq.write_table(pa.table({"integer": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"integer": [1.5]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"integer": pa.nulls(2)}), tmp_path / "c.parquet")
    check(tmp_path)
    pq.write_table(pa.table({"integer": ["1"]}), tmp_path / "d.parquet")
    with pytest.raises(SchemaError, match=r"d\.parquet: the column 'integer' is text; numeric is needed"):
        check(tmp_path)
    with pytest.raises(SchemaError, match=r"is numeric in .*a\.parquet, but text in .*d\.parquet"):
        check(tmp_path, statistics={"s": categorical("integer", ["1"])})


def test_columns_that_are_not_used_may_be_anything(tmp_path: Path) -> None:
    pq.write_table(pa.table({"integer": [1], "other": [[1]]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"integer": [1], "another": [CANARY]}), tmp_path / "b.parquet")
    check(tmp_path)


def test_the_check_depends_on_no_value(tmp_path: Path) -> None:
    """A column without a value in some file, which writers give the null type, fits every use."""
    statistics = {"s": categorical("text", ["a"]), "t": bernoulli("flag")}
    pq.write_table(pa.table({"text": ["a"], "flag": [True]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": pa.nulls(1), "flag": pa.nulls(1)}), tmp_path / "b.parquet")
    check(tmp_path, statistics=statistics)


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        (pa.uint64(), TypeFamily.NUMERIC),
        (pa.decimal256(50, 3), TypeFamily.NUMERIC),
        (pa.large_string(), TypeFamily.TEXT),
        (pa.dictionary(pa.int8(), pa.large_string()), TypeFamily.TEXT),
        (pa.dictionary(pa.int8(), pa.float64()), TypeFamily.NUMERIC),
        (pa.date64(), TypeFamily.DATE),
        (pa.timestamp("s"), TypeFamily.TIMESTAMP),
        (pa.binary(4), None),
        (pa.large_binary(), None),
        (pa.map_(pa.string(), pa.int8()), None),
        (pa.run_end_encoded(pa.int32(), pa.int64()), None),
        (pa.month_day_nano_interval(), None),
    ],
)
def test_families(kind: pa.DataType, family: TypeFamily | None) -> None:
    assert type_family(kind) is family


def unit_spec(tmp_path: Path, arrays: Sequence[pa.Array], **declared: str) -> Spec:
    """Write files whose unit columns are these, and return a spec over them."""
    for number, array in enumerate(arrays):
        directory = tmp_path / "units"
        directory.mkdir(exist_ok=True)
        pq.write_table(pa.table({"u": array, "flag": [True] * len(array)}), directory / f"{number}.parquet")
    unit = {"column": "u", "max_rows": "2", **declared}
    return make_spec(
        tmp_path / "units",
        {"s": bernoulli("flag")},
        privacy={"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit},
    )


def unit_refusal(tmp_path: Path, *arrays: pa.Array, **declared: str) -> str:
    """Return what is said of files whose unit columns are these; nothing where they serve."""
    spec = unit_spec(tmp_path, arrays, **declared)
    try:
        check_schema(spec, sources.schema(sources.pin(spec)))
    except SchemaError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", COLUMNS)
def test_every_readable_family_serves_as_a_unit(tmp_path: Path, name: str) -> None:
    said = unit_refusal(tmp_path, COLUMNS[name])
    assert CANARY not in said
    unreadable = {"nested", "struct", "binary", "time", "span"}
    assert bool(said) == (name in unreadable)
    assert not said or said.startswith("privacy.unit.column: ")


FIVE = Decimal(5)


@pytest.mark.parametrize(
    ("arrays", "rule"),
    [
        ([pa.array([5], pa.int32()), pa.array([5.0]), pa.array([5], pa.uint64())], ""),
        ([pa.array([5], pa.int32()), pa.array([FIVE]), pa.nulls(1)], ""),
        ([pa.array(["5"]), pa.array(["5"]).dictionary_encode(), pa.array(["5"], pa.large_string())], ""),
        ([pa.array([5.0]), pa.array([FIVE])], "decimal in"),
        ([pa.array([FIVE]), pa.array([5.0], pa.float32()).dictionary_encode()], "floating-point in"),
        ([pa.array([5]), pa.array(["5"])], "text in"),
        ([pa.array([FIVE], pa.decimal256(76, 39))], "more than 38 digits"),
        ([pa.array([FIVE], pa.decimal256(76, 2))], "more than 38 digits"),
        ([pa.array([FIVE], pa.decimal256(76, 38))], ""),
        ([pa.array([FIVE], pa.decimal128(38, -0))], ""),
    ],
)
def test_units_that_could_not_be_told_to_be_equal_are_refused(
    tmp_path: Path, arrays: list[pa.Array], rule: str
) -> None:
    said = unit_refusal(tmp_path, *arrays)
    assert (rule in said) if rule else not said


def test_a_unit_column_that_is_not_there(tmp_path: Path) -> None:
    pq.write_table(pa.table({"flag": [True]}), tmp_path / "a.parquet")
    unit = {"column": "u", "max_rows": "2"}
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
    spec = make_spec(tmp_path, {"s": bernoulli("flag")}, privacy=privacy)
    with pytest.raises(SchemaError, match=r"^privacy.unit.column: .*no column 'u'"):
        check_schema(spec, sources.schema(sources.pin(spec)))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    ("declared", "serving"),
    [("integer", {"integer", "half", "nothing"}), ("text", {"text", "view", "dictionary", "nothing"})],
)
def test_a_declared_type_refuses_other_families(
    tmp_path: Path, name: str, declared: str, serving: set[str]
) -> None:
    said = unit_refusal(tmp_path, COLUMNS[name], type=declared)
    assert bool(said) == (name not in serving)
    assert not said or said.startswith("privacy.unit.column: ")
    assert CANARY not in said


def test_integers_may_be_decimals_without_a_fraction(tmp_path: Path) -> None:
    assert not unit_refusal(tmp_path, pa.array([FIVE], pa.decimal128(38, 0)), type="integer")
    assert "declared type integer" in unit_refusal(
        tmp_path, pa.array([FIVE], pa.decimal128(9, 1)), type="integer"
    )


@pytest.mark.parametrize(
    ("arrays", "is_warned"),
    [
        ([pa.array([5]), pa.array([5.0])], True),
        ([pa.array([5.0]), pa.nulls(1), pa.array([5], pa.uint8())], True),
        ([pa.array([5], pa.int32()), pa.array([5.0]).dictionary_encode()], True),
        ([pa.array([5]), pa.array([5], pa.uint64()), pa.nulls(1)], False),
        ([pa.array([5.0]), pa.array([5.0], pa.float32())], False),
        ([pa.array(["5"]), pa.array(["5"], pa.large_string())], False),
        ([pa.array([], pa.int64()), pa.array([], pa.float64())], True),
    ],
)
def test_units_of_two_types_are_warned_of_from_the_schema(
    tmp_path: Path, arrays: list[pa.Array], is_warned: bool
) -> None:
    spec = unit_spec(tmp_path, arrays)
    said = unit_warnings(spec, sources.schema(sources.pin(spec)))
    assert bool(said) == is_warned
    for text in said:
        assert len(text) <= 500
        assert "enter nothing" in text


def test_a_warning_stays_short(tmp_path: Path) -> None:
    column, directory = "u" * 255, tmp_path / ("d" * 200) / ("e" * 200)
    directory.mkdir(parents=True)
    for name, kind in (("a", pa.int64()), ("b", pa.float64())):
        table = pa.table({column: pa.array([5], kind), "flag": [True]})
        pq.write_table(table, directory / f"{name}.parquet")
    unit = {"column": column, "max_rows": "2", "nulls": "own_unit"}
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
    spec = make_spec(directory, {"s": bernoulli("flag")}, privacy=privacy)
    (text,) = unit_warnings(spec, sources.schema(sources.pin(spec)))
    assert len(text) <= 500
    assert "a.parquet, but" in text
    plain = make_spec(directory, {"s": bernoulli("flag")})
    assert unit_warnings(plain, sources.schema(sources.pin(plain))) == ()
