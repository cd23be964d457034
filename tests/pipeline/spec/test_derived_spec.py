"""What a spec may derive, what it may not, and what of it stands in the canonical plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import SpecError
from suffice.pipeline.rows.sources.contract import spec_columns
from suffice.pipeline.spec.plan import Plan, compile_plan, plan_document
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.spec.spec import Spec, load_spec

if TYPE_CHECKING:
    from pathlib import Path

IS_LATE = {"column": "delay", "above": "15.0"}


def mapping(derived: Any, **changes: Any) -> dict[str, Any]:
    return {
        "name": "late",
        "dataset": "flights",
        "source": {"parquet": "flights/"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "derived": derived,
        "statistics": {"late": {"family": "bernoulli", "column": "is_late"}},
        **changes,
    }


def load(derived: Any, **changes: Any) -> Spec:
    return load_spec(mapping(derived, **changes))


EVERY: dict[str, Any] = {
    "is_late": IS_LATE,
    "in_range": {"column": "delay", "between": ["-1e3", "2.50"]},
    "in_summer": {"column": "time", "between": ["2013-06-01", "2013-08-31"], "time_zone": "Europe/Berlin"},
    "is_big": {"column": "carrier", "in": ["UA", "AA"]},
    "is_some": {"column": "number", "in": {"range": ["1", "9"]}},
    "is_one": {"column": "carrier", "equals": "UA"},
    "hour": {"column": "time", "part": "hour", "time_zone": "America/New_York"},
    "tidy": {"column": "carrier", "normalize": "NFKC", "trim": "true", "case": "upper"},
    "region": {"column": "tidy", "map": {"UA": "west", "AA": "south"}, "otherwise": "other"},
    "score": {"column": "carrier", "map": {"UA": "1.50"}, "type": "number"},
    "gain": {"difference": ["dep", "delay"], "lower": "-60", "upper": "60"},
    "all": {"all_of": ["is_late", IS_LATE, {"any_of": ["is_big", "cancelled"]}]},
    "begins": {"column": "carrier", "starts_with": "U"},
    "holds": {"column": "carrier", "contains": ["A", "B"]},
    "absent": {"column": "carrier", "is_null": "true"},
    "small": {"not": {"not": "is_big"}},
    "dated": {"column": "date", "parse": "date", "format": "%d-%b-%y", "pivot": "1970"},
    "at": {"column": "seconds", "parse": "timestamp", "epoch": "seconds"},
    "hour_at": {"column": "at", "part": "hour", "time_zone": "America/New_York"},
    "damage": {
        "column": "cost",
        "parse": "number",
        "suffixes": {"K": "1e3", "M": "1000000"},
        "thousands": ",",
    },
    "age": {"column": "years", "bins": ["0", "18.0", "65"]},
    "age_name": {"column": "years", "cut": ["18"], "labels": ["child", "adult"]},
    "first": {"coalesce": ["dep", "delay"], "type": "number", "otherwise": "0.0"},
    "metres": {"product": ["feet", {"number": "0.3048"}], "lower": "0", "upper": "9"},
}


def test_every_kind_stands_in_the_plan_and_is_read_back() -> None:
    spec = load(EVERY)
    plan = compile_plan(spec)
    stated = json.loads(plan.canonical)["derived"]
    assert stated["is_late"] == {"column": "delay", "above": "15"}
    assert stated["is_some"] == {"column": "number", "in": {"range": ["1", "9"]}}
    assert stated["region"]["type"] == "text", "defaults are filled"
    assert stated["absent"] == {"column": "carrier", "present": False}
    assert stated["begins"] == {"column": "carrier", "starts_with": ["U"]}
    assert stated["small"] == {"not": {"not": "is_big"}}
    assert stated["damage"]["suffixes"] == {"K": "1000", "M": "1000000"}
    assert stated["metres"]["product"] == ["feet", {"number": "0.3048"}]
    assert stated["all"]["all_of"][:2] == ["is_late", {"column": "delay", "above": "15"}]
    read = read_canonical_plan(plan.canonical, plan.order)
    assert read.assemble(list(read.statistics())) == plan
    for name in EVERY:
        assert f"\n{name}: " in str(plan)
    assert plan_document(plan)["derived"]["hour"] == "hour of time in America/New_York"


def test_the_order_of_derived_columns_is_not_part_of_a_release() -> None:
    backwards = dict(reversed(EVERY.items()))
    assert load(EVERY).plan_hash() == load(backwards).plan_hash()
    other = {**EVERY, "is_late": {"column": "delay", "above": "16"}}
    assert load(EVERY).plan_hash() != load(other).plan_hash()


def test_only_the_sources_columns_that_are_needed_are_read() -> None:
    groups = {"region": ["west", "south", "other"]}
    assert sorted(spec_columns(load(EVERY, groups=groups))) == ["carrier", "delay"]


def test_files_are_inlined(tmp_path: Path) -> None:
    (tmp_path / "regions.csv").write_text("carrier,region\nUA,west\nAA,south\n", encoding="utf-8")
    (tmp_path / "big.csv").write_text("UA\n", encoding="utf-8")
    content = mapping(
        {
            "is_late": IS_LATE,
            "region": {"column": "carrier", "map": {"file": "regions.csv"}},
            "is_big": {"column": "carrier", "in": {"file": "big.csv"}},
        }
    )
    (tmp_path / "spec.json").write_text(json.dumps(content), encoding="utf-8")
    stated = json.loads(load_spec(tmp_path / "spec.json").canonical_plan())["derived"]
    assert stated["region"]["map"] == {"UA": "west", "AA": "south"}
    assert stated["is_big"]["in"] == ["UA"]


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ("UA,west\nUA,east\n", "lines 1 and 2 are duplicates"),
        ("UA\n", "needs 2 columns: line 1 has another number"),
        ("carrier,region\n", "is empty"),
        ("UA,we\u202est\n", "line 1 has a character that cannot be seen"),
    ],
)
def test_a_map_file_is_refused_by_its_lines(tmp_path: Path, lines: str, rule: str) -> None:
    (tmp_path / "m.csv").write_text(lines, encoding="utf-8")
    content = mapping({"is_late": IS_LATE, "r": {"column": "carrier", "map": {"file": "m.csv"}}})
    (tmp_path / "spec.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(SpecError, match=rule):
        load_spec(tmp_path / "spec.json")


REFUSED: list[tuple[Any, str]] = [
    ([], "maps names of new columns"),
    ({"is_late": "delay"}, "needs a mapping"),
    ({"is_late": {"column": "delay"}}, "exactly one of above"),
    ({"is_late": {"column": "delay", "above": "1", "below": "2"}}, "exactly one of above"),
    ({"is_late": {"column": "delay", "abov": "1"}}, "unknown key 'abov': perhaps above"),
    ({"is_late": {"column": "t", "contain": "a"}}, "unknown key 'contain': perhaps contains;"),
    ({"is_late": {"column": "t", "is": "a"}}, "unknown key 'is': perhaps equals;"),
    ({"is_late": {"column": "t", "not_equals": "a"}}, "write {not: {column: x, equals: ...}}"),
    ({"is_late": {"column": "t", "not": {"equals": "a"}}}, "'not' stands around a condition"),
    ({"is_late": {"column": "delay", "above": "late"}}, "'late' is not a finite decimal number"),
    ({"is_late": {"column": "delay", "above": "nan"}}, "not a finite decimal"),
    ({"is_late": {"column": "delay", "above": "2013-02-30"}}, "is no date"),
    ({"is_late": {"column": "delay", "between": ["2", "1"]}}, "before it begins"),
    ({"is_late": {"column": "delay", "between": ["1", "2013-01-01"]}}, "both are dates"),
    ({"is_late": {"column": "delay", "above": "1", "time_zone": "UTC"}}, "compared with a number"),
    ({"is_late": {"column": "t", "above": "2013-01-01", "time_zone": "Mars/Olympus"}}, "is no time zone"),
    ({"is_late": {"column": "t", "above": "2013-01-01", "time_zone": "../../etc/passwd"}}, "is no time zone"),
    ({"is_late": {"column": "t", "part": "minute"}}, "not one of year, quarter"),
    ({"is_late": {"column": "t", "in": []}}, "the domain is empty"),
    ({"is_late": {"column": "t", "in": {"from": "2013", "to": "2014", "every": "year"}}}, "no members"),
    ({"is_late": {"column": "t", "map": {}}}, "at least one entry"),
    ({"is_late": {"column": "t", "map": {"1": "a", "1.0": "b"}}}, "duplicates"),
    ({"is_late": {"column": "t", "map": {"1": "a"}, "type": "number"}}, "not a finite decimal"),
    ({"is_late": {"column": "t", "trim": "false"}}, "needs normalize: NFC, trim: true"),
    ({"is_late": {"sum": ["a", "b"], "lower": "0"}}, "the key 'upper' is missing"),
    ({"is_late": {"sum": ["a", "b"], "lower": "1", "upper": "1"}}, "not below upper"),
    ({"is_late": {"sum": ["a"], "lower": "0", "upper": "1"}}, "a list of two columns"),
    ({"is_late": {"any_of": ["a"]}}, "a list of 2 to 100"),
    ({"is_late": {"any_of": ["a", {"column": "t", "part": "hour"}]}}, "unknown key 'part'"),
    ({"is_late": {"all_of": ["is_late", "x"]}}, "computed from each other: is_late"),
    ({"is_late": {"all_of": ["b", "x"]}, "b": {"all_of": ["is_late", "x"]}}, "computed from each other"),
    ({"is_late": IS_LATE, "mean": IS_LATE}, "'mean' is reserved"),
    ({"is_late": {"column": "t", "starts_with": ""}}, "none of them empty"),
    ({"is_late": {"column": "t", "starts_with": "a", "contains": "b"}}, "exactly one of starts_with"),
    ({"is_late": {"column": "t", "is_null": "true", "present": "true"}}, "exactly one of present"),
    ({"is_late": {"not": {"column": "t", "part": "hour"}}}, "unknown key 'part'"),
    ({"is_late": {"column": "t", "parse": "time"}}, "not one of date, timestamp, number"),
    ({"is_late": {"column": "t", "parse": "date"}}, "needs format"),
    ({"is_late": {"column": "t", "parse": "date", "format": "%d-%b-%y"}}, "state pivot"),
    ({"is_late": {"column": "t", "parse": "date", "format": "%H:%M"}}, "needs a year"),
    ({"is_late": {"column": "t", "parse": "date", "epoch": "days", "pivot": "1970"}}, "for %y of a format"),
    ({"is_late": {"column": "t", "parse": "date", "epoch": "days", "decimal": ","}}, "are of numbers"),
    ({"is_late": {"column": "t", "parse": "number", "epoch": "days"}}, "are of dates and times"),
    (
        {"is_late": {"column": "t", "parse": "number", "decimal": ",", "thousands": ","}},
        "two different signs",
    ),
    ({"is_late": {"column": "t", "parse": "number", "suffixes": {"K1": "1000"}}}, "none of them a digit"),
    ({"is_late": {"column": "t", "parse": "number", "suffixes": {"K": "many"}}}, "not a finite decimal"),
    ({"is_late": {"column": "t", "bins": ["1", "1.0"]}}, "above the one before"),
    ({"is_late": {"column": "t", "bins": ["1"]}}, "a list of 2 to 100"),
    ({"is_late": {"column": "t", "cut": ["1"], "labels": ["a"]}}, "1 cuts make 2 parts"),
    ({"is_late": {"column": "t", "cut": ["1"], "labels": ["a", "a"]}}, "a label occurs twice"),
    ({"is_late": {"coalesce": []}}, "a list of 1 to 100"),
    ({"is_late": {"coalesce": ["a"], "type": "number", "otherwise": "x"}}, "not a finite decimal"),
    ({"is_late": {"coalesce": ["a"], "type": "date", "otherwise": "x"}}, "leave it out"),
    ({"is_late": {"sum": [{"number": "1"}, {"number": "2"}], "lower": "0", "upper": "9"}}, "is a column"),
    (
        {
            "is_late": {"column": "p", "part": "hour", "time_zone": "Europe/Berlin"},
            "p": {"column": "t", "parse": "timestamp", "format": "%Y-%m-%d %H:%M"},
        },
        "'p' has no time zone",
    ),
    ({"is_late": IS_LATE, "a=b": IS_LATE}, "no '='"),
]


def test_a_name_does_not_leave_its_line_of_a_message() -> None:
    with pytest.raises(SpecError) as caught:
        load({"a\nsuffice: published\u202e": IS_LATE})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("derived", "rule"), REFUSED, ids=[rule for _, rule in REFUSED])
def test_what_breaks_a_rule_is_refused_with_its_place(derived: Any, rule: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(derived)
    assert rule in str(caught.value)
    assert "derived" in str(caught.value)
    assert caught.value.exit_status == 2
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"window": {"column": "is_late", "every": "month"}}, "window.column"),
        (
            {
                "privacy": {
                    "epsilon": "1",
                    "neighboring": "add_or_remove_one",
                    "unit": {"column": "is_late", "max_rows": "2"},
                }
            },
            "privacy.unit.column",
        ),
        (
            {
                "privacy": {
                    "epsilon": "1",
                    "neighboring": "add_or_remove_one",
                    "unit": {"column": "customer", "max_rows": "2"},
                },
                "statistics": {
                    "m": {
                        "family": "markov_chain",
                        "column": "state",
                        "categories": ["a", "b"],
                        "order": "is_late",
                        "transitions": "3",
                    }
                },
            },
            "statistics.m.order",
        ),
    ],
    ids=["window", "unit", "order"],
)
def test_a_window_a_unit_and_an_order_are_of_no_condition(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(SpecError, match=r"is derived in another way|is a derived column") as caught:
        load({"is_late": IS_LATE}, **changes)
    assert place in str(caught.value)


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    text = json.dumps(mapping({"is_late": IS_LATE})).replace(
        '"is_late": {"column"', '"is_late": {"column": "x", "above": "1"}, "is_late": {"column"'
    )
    path = tmp_path / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert caught.value.exit_status == 2


def read_whole(text: str, plan: Plan) -> Plan:
    read = read_canonical_plan(text, plan.order)
    return read.assemble(list(read.statistics()))


@pytest.mark.parametrize(
    "derived",
    [
        None,
        [],
        {"x": 1},
        {"x": {"column": "a", "map": {"file": "passwd"}, "type": "number"}},
        {"x": {"column": "a", "in": {"file": "/etc/passwd"}}},
        {"x": {"column": "a", "above": "15.0"}},
        {"x": {"all_of": ["x", "y"]}},
        {"x": {"column": "a", "in": {"from": "0001-01-01", "to": "9999-12-31", "every": "day"}}},
    ],
)
def test_a_hostile_plan_is_refused(derived: Any) -> None:
    plan = compile_plan(load({"is_late": IS_LATE}))
    content = json.loads(plan.canonical)
    content["derived"] = derived if not isinstance(derived, dict) else {**content["derived"], **derived}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    with pytest.raises(SpecError):
        read_whole(text, plan)
