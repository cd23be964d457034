"""The spec: what it accepts, what it refuses and how, and the canonical plan."""

from __future__ import annotations

import copy
import json
import os
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import SpecError
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.spec.windows_and_amendments import check_window

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = """\
name: flights-by-origin
dataset: nycflights13
source: {parquet: data/flights/}
window: {column: flight_date, every: month}
privacy:
  epsilon: "1.0"
  neighboring: add_or_remove_one
  unit: row
groups:
  origin: [EWR, JFK, LGA]
  month: {range: [1, 12]}
statistics:
  carrier:   {family: categorical, column: carrier, categories: [UA, B6, NO], other: true}
  cancelled: {family: bernoulli, column: cancelled, share: 1}
  arr_delay: {family: normal, column: arr_delay, lower: -60, upper: 180, nulls: drop, share: 2}
"""


def load(tmp_path: Path, text: str, name: str = "release.yaml") -> Spec:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load_spec(path)


def refusal(tmp_path: Path, text: str, name: str = "release.yaml") -> str:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, text, name)
    assert caught.value.exit_status == 2
    return str(caught.value).removeprefix(str(tmp_path) + "/")


def test_the_example_is_read(tmp_path: Path) -> None:
    spec = load(tmp_path, EXAMPLE)
    assert spec.grid == "flight_date:month:UTC"
    assert list(spec.groups["month"]) == list(range(1, 13))
    assert list(spec.statistics) == ["carrier", "cancelled", "arr_delay"]
    assert list(spec.statistics["carrier"].categories) == ["UA", "B6", "NO"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("written", "instead", "where", "rule"),
    [
        ('"1.0"', "-1", "release.yaml:6: privacy.epsilon", "not above 0"),
        ('"1.0"', "0", "release.yaml:6: privacy.epsilon", "not above 0"),
        ('"1.0"', ".inf", "release.yaml:6: privacy.epsilon", "finite decimal"),
        ('"1.0"', ".nan", "release.yaml:6: privacy.epsilon", "finite decimal"),
        ('"1.0"', "1e999", "release.yaml:6: privacy.epsilon", "not above 0"),
        ('"1.0"', "0.0000001", "release.yaml:6: privacy.epsilon", "six fractional digits"),
        ("add_or_remove_one", "swap", "release.yaml:7: privacy.neighboring", "neither"),
        ("unit: row", "unit: {column: a}", "release.yaml:8: privacy.unit", "'max_rows' is missing"),
        ("unit: row", "unit: {column: a, max_rows: 0}", "privacy.unit.max_rows", "lies in 1..1000000000"),
        ("unit: row", "unit: {column: a, max_rows: 2.5}", "privacy.unit.max_rows", "not an integer"),
        ("unit: row", "unit: {max_rows: 3, column: ''}", "privacy.unit.column", "printable"),
        ("unit: row", "unit: {column: a, max_rows: 3, nulls: x}", "privacy.unit.nulls", "own_unit"),
        (
            "unit: row",
            "unit: {column: a, max_rows: 3, by: b}",
            "privacy.unit.by",
            "max_rows_per_cell, type, nulls",
        ),
        (
            "unit: row",
            "unit: customer_id",
            "release.yaml:8: privacy.unit",
            "{column: customer_id, max_rows: 20}",
        ),
        ("unit: row", "unit:", "release.yaml:8: privacy.unit", "value is missing"),
        ("unit: row", "unit: row\n  unit: row", "release.yaml:9: privacy.unit", "stands twice"),
        ("[1, 12]", "[12, 1]", "groups", "month: the range"),
        ("[1, 12]", "[1, 99999999]", "groups", "99999999"),
        ("[1, 12]", "[a, b]", "groups", "not an integer"),
        ("[EWR, JFK, LGA]", "[]", "groups", "empty"),
        ("[EWR, JFK, LGA]", "[EWR, EWR]", "groups", "duplicates"),
        ("[EWR, JFK, LGA]", "[1, 01]", "groups", "duplicates"),
        ("[EWR, JFK, LGA]", '["1", "1.0"]', "groups", "duplicates"),
        ("[EWR, JFK, LGA]", "{from: 2013-1, to: 2013-03, every: month}", "groups", "2013-1"),
        ("[EWR, JFK, LGA]", "{from: 2013-04, to: 2013-03, every: month}", "groups", "before"),
        ("[EWR, JFK, LGA]", "{from: 2013-02-29, to: 2013-03-01, every: day}", "groups", "2013-02-29"),
        ("[EWR, JFK, LGA]", "{file: absent.csv}", "groups", "absent.csv"),
        ("origin:", "mean:", "groups", "reserved"),
        ("EWR,", "&a EWR,", "release.yaml:10", "anchors"),
        ("EWR,", "!!str EWR,", "release.yaml:10", "tags"),
        ("[UA, B6, NO]", "[UA, other]", "release.yaml:13: statistics.carrier", "'other'"),
        ("[UA, B6, NO]", "[UA, UA]", "statistics.carrier.categories", "duplicates"),
        ("-60", "180", "release.yaml:15: statistics.arr_delay", "lower must be below upper"),
        ("-60", "1e400", "statistics.arr_delay.lower", "too large"),
        ("-60", "1e-999", "statistics.arr_delay.lower", "too small"),
        ("share: 2", "shrae: 2", "release.yaml:15: statistics.arr_delay.shrae", "unknown key"),
        ("share: 2", "share: 0", "statistics.arr_delay.share", "share"),
        ("share: 2", "lattice_bits: 25", "statistics.arr_delay", "2..24"),
        ("share: 1}", "nulls: {value: 2}}", "statistics.cancelled", "0 or 1"),
        ("family: normal", "family: cauchy", "statistics.arr_delay.family", "no family 'cauchy'"),
        ("family: normal", "family: cauchy", "statistics.arr_delay.family", "no family"),
        ("family: normal", "family: uniform", "statistics.arr_delay.family", "smallest and largest value"),
        ("parquet:", "sql:", "release.yaml:3: source", "names its kind by a key: parquet, csv"),
        ("name: fl", "name: Fl", "release.yaml:1: name", "does not match"),
        ("dataset: n", "dataset: ../n", "release.yaml:2: dataset", "does not match"),
        ("every: month", "every: fortnight", "window.every", "day, week, month, year"),
        ("arr_delay: {", "CANCELLED: {", "statistics.CANCELLED", "letter case"),
        ("arr_delay: {", "a/b: {", "statistics.a/b", "does not match"),
        ("source:", "sauce:", "release.yaml", "source"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_place(
    tmp_path: Path, written: str, instead: str, where: str, rule: str
) -> None:
    assert written in EXAMPLE
    message = refusal(tmp_path, EXAMPLE.replace(written, instead, 1))
    assert where in message
    assert rule in message


@pytest.mark.parametrize("missing", ["name", "dataset", "privacy", "statistics"])
def test_required_keys(missing: str) -> None:
    spec = json.loads(json.dumps(_mapping()))
    del spec[missing]
    with pytest.raises(SpecError, match=missing):
        load_spec(spec)


def test_two_documents_deep_nesting_and_broken_text_are_refused(tmp_path: Path) -> None:
    assert "one YAML document" in refusal(tmp_path, EXAMPLE + "---\nname: b\n")
    assert "deeper" in refusal(tmp_path, "name: " + "[" * 40 + "]" * 40)
    assert "valid YAML" in refusal(tmp_path, "name: [")
    assert "valid JSON" in refusal(tmp_path, "{", "release.json")
    assert "stands twice" in refusal(tmp_path, '{"name": "a", "name": "b"}', "release.json")
    assert "NaN" in refusal(tmp_path, '{"name": NaN}', "release.json")
    assert "surrogate" in refusal(tmp_path, '{"name": "\\ud800"}', "release.json")
    with pytest.raises(SpecError, match="there is no such file"):
        load_spec(tmp_path / "absent.yaml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_only_a_file_of_bounded_size_is_read(tmp_path: Path) -> None:
    """A device or a pipe might never end, and whoever runs a flow names the spec."""
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    for name in ("pipe.yaml", "device.yaml"):
        with pytest.raises(SpecError, match="cannot be read"):
            load_spec(tmp_path / name)
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(2**26 + 1)
    with pytest.raises(SpecError, match="larger than 64 MiB"):
        load_spec(tmp_path / "large.yaml")


def test_yaml_booleans_and_octals_stay_text(tmp_path: Path) -> None:
    spec = load(tmp_path, EXAMPLE.replace("[EWR, JFK, LGA]", "[NO, yes, 01, 1e3, ~, 2013-01-01]"))
    assert list(spec.groups["origin"]) == ["NO", "yes", "01", "1e3", "~", "2013-01-01"]


def test_json_yaml_and_mappings_are_the_same_spec(tmp_path: Path) -> None:
    from_yaml = load(tmp_path, EXAMPLE)
    mapping = _mapping()
    from_json = load(tmp_path, json.dumps(mapping), "release.json")
    assert from_yaml.plan_hash() == from_json.plan_hash() == load_spec(mapping).plan_hash()


def test_json_numbers_are_exact(tmp_path: Path) -> None:
    text = json.dumps(_mapping()).replace('"1.0"', "0.100000")
    canonical = json.loads(load(tmp_path, text, "release.json").canonical_plan())
    assert canonical["privacy"]["epsilon"] == "0.1"


def test_the_canonical_plan_has_defaults_and_no_source(tmp_path: Path) -> None:
    canonical = json.loads(load(tmp_path, EXAMPLE).canonical_plan())
    assert "source" not in canonical
    assert "directory" not in canonical
    assert canonical["max_total_rows"] == "1000000000000"
    assert canonical["privacy"]["epsilon"] == "1"
    assert canonical["statistics"]["arr_delay"]["lattice_bits"] == "16"
    assert canonical["statistics"]["carrier"]["share"] == "1"
    assert canonical["groups"]["month"] == {"range": ["1", "12"]}


def test_what_changes_the_release_changes_the_hash_and_the_source_does_not() -> None:
    spec = _mapping()
    hashes = {load_spec(spec).plan_hash()}
    changes: list[tuple[tuple[str, ...], Any]] = [
        (("privacy", "epsilon"), "2"),
        (("privacy", "neighboring"), "replace_one"),
        (("groups", "origin"), ["EWR", "LGA", "JFK"]),
        (("window", "every"), "day"),
        (("statistics", "arr_delay", "lower"), "-61"),
        (("statistics", "carrier", "other"), "false"),
        (("max_total_rows",), "1000"),
    ]
    for path, value in changes:
        changed: Any = copy.deepcopy(spec)
        entry = changed
        for key in path[:-1]:
            entry = entry[key]
        entry[path[-1]] = value
        hashes.add(load_spec(changed).plan_hash())
    assert len(hashes) == len(changes) + 1
    same = {**copy.deepcopy(spec), "source": {"parquet": "elsewhere/*.parquet"}}
    assert load_spec(same).plan_hash() == load_spec(spec).plan_hash()
    equal = copy.deepcopy(spec)
    equal["privacy"]["epsilon"] = Decimal("1.000")
    assert load_spec(equal).plan_hash() == load_spec(spec).plan_hash()


def test_domain_files_are_inlined(tmp_path: Path) -> None:
    (tmp_path / "origins.csv").write_text('origin\nEWR\n"JFK"\nLGA\n', encoding="utf-8")
    from_file = load(tmp_path, EXAMPLE.replace("[EWR, JFK, LGA]", "{file: origins.csv}"))
    assert from_file.plan_hash() == load(tmp_path, EXAMPLE).plan_hash()
    (tmp_path / "origins.csv").write_text("EWR,1\nJFK,2\n", encoding="utf-8")
    assert "one column" in refusal(tmp_path, EXAMPLE.replace("[EWR, JFK, LGA]", "{file: origins.csv}"))


def test_periods_are_consecutive(tmp_path: Path) -> None:
    spec = load(tmp_path, EXAMPLE.replace("[EWR, JFK, LGA]", "{from: 2019-11, to: 2020-02, every: month}"))
    assert list(spec.groups["origin"]) == ["2019-11", "2019-12", "2020-01", "2020-02"]


@pytest.mark.slow
def test_too_many_cells_are_refused_with_the_count(tmp_path: Path) -> None:
    message = refusal(tmp_path, EXAMPLE.replace("[1, 12]", "[1, 4000000]"))
    assert "12000000 cells" in message
    categories = ", ".join(f"c{index}" for index in range(30_000))
    many = EXAMPLE.replace("[1, 12]", "[1, 120]").replace("[UA, B6, NO]", f"[{categories}]")
    message = refusal(tmp_path, many)
    assert "10800000 cells" in message


@pytest.mark.parametrize("window", ["2013-1", "2013", "2013-01-01", "2013-13", "all", "x", ""])
def test_windows_are_canonical(tmp_path: Path, window: str) -> None:
    with pytest.raises(SpecError):
        check_window(load(tmp_path, EXAMPLE), window)


def test_a_window_without_windows_is_refused(tmp_path: Path) -> None:
    assert check_window(load(tmp_path, EXAMPLE), "2013-01") == "2013-01"
    plain = load(tmp_path, EXAMPLE.replace("window: {column: flight_date, every: month}\n", ""))
    assert check_window(plain, "all") == "all"
    with pytest.raises(SpecError, match="no window key"):
        check_window(plain, "2013-01")


def test_sources_are_relative_to_the_spec(tmp_path: Path) -> None:
    pattern = load(tmp_path, EXAMPLE).source_address
    assert pattern == str((tmp_path / "data" / "flights").resolve())
    globbed = load(tmp_path, EXAMPLE.replace("data/flights/", "data/../x/*.parquet"))
    assert globbed.source_address == str(tmp_path.resolve() / "x" / "*.parquet")


def _mapping() -> dict[str, Any]:
    return {
        "name": "flights-by-origin",
        "dataset": "nycflights13",
        "source": {"parquet": "data/flights/"},
        "window": {"column": "flight_date", "every": "month"},
        "privacy": {"epsilon": "1.0", "neighboring": "add_or_remove_one", "unit": "row"},
        "groups": {"origin": ["EWR", "JFK", "LGA"], "month": {"range": [1, 12]}},
        "statistics": {
            "carrier": {
                "family": "categorical",
                "column": "carrier",
                "categories": ["UA", "B6", "NO"],
                "other": True,
            },
            "cancelled": {"family": "bernoulli", "column": "cancelled", "share": 1},
            "arr_delay": {
                "family": "normal",
                "column": "arr_delay",
                "lower": -60,
                "upper": 180,
                "nulls": "drop",
                "share": 2,
            },
        },
    }
