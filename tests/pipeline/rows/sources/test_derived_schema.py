"""The schema check of derived columns: their inputs, what they serve, and names that the source has too."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from suffice.errors import SchemaError
from suffice.pipeline.rows.sources.contract import PartSchema
from suffice.pipeline.rows.sources.schema_check import check_schema
from support.hostile import bernoulli, categorical, make_spec, normal

SCHEMA = pa.schema(
    [
        ("delay", pa.float64()),
        ("carrier", pa.dictionary(pa.int32(), pa.string())),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("naive", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", "UTC")),
        ("nothing", pa.null()),
    ]
)
LATE = {"column": "delay", "above": "15"}


def check(
    derived: dict[str, Any], statistic: dict[str, Any], schema: pa.Schema = SCHEMA, **others: Any
) -> None:
    spec = make_spec("data/", {"s": statistic}, derived=derived, **others)
    check_schema(spec, [PartSchema(part="a.parquet", columns=schema)])


@pytest.mark.parametrize(
    ("entry", "statistic"),
    [
        (LATE, bernoulli("x")),
        ({"column": "nothing", "above": "15"}, bernoulli("x")),
        ({"column": "zoned", "at_least": "2013-01-01", "time_zone": "UTC"}, bernoulli("x")),
        ({"column": "day", "part": "weekday"}, categorical("x", {"range": ["1", "7"]})),
        ({"column": "naive", "part": "hour"}, normal("x", "0", "23")),
        ({"column": "carrier", "case": "lower"}, categorical("x", ["ua"])),
        ({"column": "carrier", "map": {"UA": "1"}, "type": "number"}, normal("x", "0", "1")),
        ({"any_of": ["flag", LATE]}, bernoulli("x")),
        ({"sum": ["delay", "delay"], "lower": "0", "upper": "9"}, normal("x", "0", "9")),
    ],
)
def test_what_serves_is_accepted(entry: dict[str, Any], statistic: dict[str, Any]) -> None:
    check({"x": entry}, statistic)


@pytest.mark.parametrize(
    ("entry", "statistic", "rule"),
    [
        (
            LATE,
            normal("x", "0", "1"),
            "statistics.s.column: the derived column 'x' is boolean; numeric is needed",
        ),
        ({"column": "carrier", "case": "lower"}, bernoulli("x"), "derived column 'x' is text"),
        ({"column": "day", "part": "hour"}, normal("x", "0", "1"), "'day' is date; timestamp is needed"),
        ({"column": "carrier", "above": "15"}, bernoulli("x"), "'carrier' is text; numeric is needed"),
        ({"column": "delay", "above": "2013-01-01"}, bernoulli("x"), "date or timestamp is needed"),
        ({"column": "absent", "above": "15"}, bernoulli("x"), "no column 'absent'"),
        (
            {"column": "naive", "part": "hour", "time_zone": "UTC"},
            normal("x", "0", "1"),
            "leave time_zone out",
        ),
        ({"any_of": ["flag", "carrier"]}, bernoulli("x"), "'carrier' is text; boolean is needed"),
        (
            {"column": "y", "trim": "true"},
            categorical("x", ["a"]),
            "derived.x: the derived column 'y' is boolean",
        ),
    ],
)
def test_what_does_not_serve_is_refused(entry: dict[str, Any], statistic: dict[str, Any], rule: str) -> None:
    with pytest.raises(SchemaError) as caught:
        check({"x": entry, "y": LATE}, statistic)
    assert rule in str(caught.value)
    assert caught.value.exit_status == 4


def test_what_nothing_reads_is_not_looked_at() -> None:
    """A contract, and a file of text, show no columns but those that are read."""
    check({"x": {"column": "absent", "above": "15"}, "y": {"any_of": ["x", "flag"]}}, bernoulli("flag"))
    for entry in ({"column": "absent", "above": "15"}, {"column": "carrier", "above": "15"}):
        with pytest.raises(SchemaError, match=r"^derived\.x: "):
            check({"x": entry, "y": {"any_of": ["x", "flag"]}}, bernoulli("y"))


def test_a_name_that_the_source_has_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"derived.flag: a.parquet has a column of this name"):
        check({"flag": LATE}, bernoulli("flag"))


def test_groups_may_be_derived() -> None:
    check({"x": LATE}, bernoulli("flag"), groups={"x": ["true", "false"]})
    with pytest.raises(SchemaError, match=r"groups.x: the derived column 'x' is boolean"):
        check({"x": LATE}, bernoulli("flag"), groups={"x": {"range": ["0", "1"]}})
