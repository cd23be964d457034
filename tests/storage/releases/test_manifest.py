"""The manifest: what it states, that it rebuilds the plan, and everything that it refuses."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import ReleaseCorruptError, StoreError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.releases.manifest import checksum, is_tombstone, tombstone
from suffice.storage.releases.manifest_reader import parse_manifest
from support.releases import (
    HASH,
    LEDGER_ID,
    RELEASE_ID,
    compose,
    flip_bit,
    make_plan,
    public_n_plan,
    smallest_files,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.spec.plan import Plan

GROUPS = {
    "origin": ["EWR", "Zürich"],
    "hour": {"range": [str(-(2**63)), str(3 - 2**63)]},
    "month": {"from": "2023-11", "to": "2024-02", "every": "month"},
}
EXTREME = {
    "a": {"family": "normal", "column": "a", "lower": "-1e150", "upper": "1e-30", "share": "0.0001"},
    "b": {"family": "normal", "column": "b", "lower": "-0.1", "upper": "0.3", "lattice_bits": "24"},
    "c": {"family": "bernoulli", "column": "c", "share": "3"},
    "d": {"family": "categorical", "column": "d", "categories": ["x", "y", '"\\'], "share": "7"},
}

CONSTANTS = {
    "a": {"family": "negative_binomial", "column": "a", "successes": "2.5", "upper": "9"},
    "b": {"family": "gamma", "column": "b", "shape": "0.3", "upper": "9"},
    "c": {"family": "normal_known_variance", "column": "c", "variance": "2", "lower": "-1e-30", "upper": "7"},
    "d": {"family": "weibull", "column": "d", "shape": "1.7", "upper": "1e-50"},
    "e": {"family": "lognormal", "column": "e", "lower": "1e-150", "upper": "7"},
    "f": {"family": "pareto", "column": "f", "minimum": "1e-150", "upper": "1e150"},
}
BY_CUSTOMER = {
    "epsilon": "1",
    "neighboring": "replace_one",
    "unit": {"column": "customer_id", "max_rows": "20", "nulls": "own_unit"},
}


VARIABLE = {"categories": ["x", "y", '"\\', "a=b,c"], "other": "true"}
TABLES = {
    "a": {"family": "contingency", "columns": {"z": VARIABLE, "b": ["1", "2"]}},
    "b": {"family": "naive_bayes", "outcome": {"z": VARIABLE}, "features": {"b": ["1", "2"], "a": ["3"]}},
    "c": {
        "family": "bayesian_network",
        "nodes": {"z": {**VARIABLE, "parents": ["b"]}, "b": {"column": "z", "categories": ["1", "2"]}},
    },
}


def composed(plan: Plan) -> bytes:
    return compose(plan, smallest_files(plan))


def sealed(content: dict[str, Any]) -> bytes:
    """Write a manifest with whatever content, its checksum right."""
    return canonical_json.encode({**content, "checksum": checksum(content)})


@pytest.mark.parametrize(
    "plan",
    [
        make_plan(),
        make_plan(groups=None),
        make_plan(groups=GROUPS),
        make_plan(statistics=EXTREME),
        make_plan(statistics=CONSTANTS),
        make_plan(statistics=TABLES),
        make_plan(privacy={"epsilon": "0.7", "neighboring": "replace_one"}),
        make_plan(privacy=BY_CUSTOMER),
        make_plan(max_total_rows="5000"),
        public_n_plan(),
    ],
)
def test_a_reader_rebuilds_the_plan_from_the_manifest_alone(plan: Plan) -> None:
    manifest = parse_manifest(composed(plan))
    assert manifest.plan == plan
    assert list(manifest.plan.groups) == list(plan.groups)


def test_the_manifest_says_who_paid_and_when_to_the_hour() -> None:
    content = json.loads(composed(make_plan()))
    assert content["release_id"] == RELEASE_ID
    assert (content["ledger_id"], content["drawing_sequence"], content["drawing_hash"]) == (
        LEDGER_ID,
        4,
        HASH,
    )
    assert content["created"] == "2026-01-31T08Z"
    assert content["signature"] is None
    assert "source" not in content["plan"]
    assert {"python", "suffice", "pyarrow", "numpy"} <= content["versions"].keys()
    assert content["statistics"][0]["epsilon"] == "0.25"
    assert Fraction(content["statistics"][0]["scale"]) == Fraction(1 / 0.25)
    assert content["cells"] == 3


def test_a_column_unit_is_stated_with_its_bound() -> None:
    content = json.loads(composed(make_plan(privacy=BY_CUSTOMER)))
    stated = (content["unit"], content["max_rows"], content["unit_nulls"])
    assert stated == ("column:customer_id", 20, "own_unit")
    assert content["plan"]["privacy"]["unit"] == {
        "column": "customer_id",
        "max_rows": "20",
        "nulls": "own_unit",
    }
    assert not {"max_rows", "unit_nulls"} & json.loads(composed(make_plan())).keys()
    for change in ({"max_rows": 19}, {"unit_nulls": "drop"}, {"unit": "row"}, {"unit": "column:other"}):
        with pytest.raises(ReleaseCorruptError, match=next(iter(change))):
            parse_manifest(sealed({**content, **change}))
    for field in ("max_rows", "unit_nulls"):
        rest = {name: value for name, value in content.items() if name != field}
        with pytest.raises(ReleaseCorruptError, match=f"{field}: it contradicts the plan"):
            parse_manifest(sealed(rest))


def test_a_bound_in_cells_is_stated_where_there_is_one() -> None:
    unit = {"column": "customer_id", "max_rows": "20", "max_rows_per_cell": "2", "nulls": "own_unit"}
    content = json.loads(composed(make_plan(privacy={**BY_CUSTOMER, "unit": unit})))
    assert (content["max_rows"], content["max_rows_per_cell"]) == (20, 2)
    assert content["plan"]["privacy"]["unit"] == unit
    plain = json.loads(composed(make_plan(privacy=BY_CUSTOMER)))
    assert "max_rows_per_cell" not in plain
    rest = {name: value for name, value in content.items() if name != "max_rows_per_cell"}
    for other in (rest, {**content, "max_rows_per_cell": 3}, {**plain, "max_rows_per_cell": 2}):
        with pytest.raises(ReleaseCorruptError, match="it contradicts the plan"):
            parse_manifest(sealed(other))


def test_n_is_stated_exactly_where_it_is_public() -> None:
    assert parse_manifest(composed(public_n_plan())).n == 1000
    assert parse_manifest(composed(make_plan())).n is None
    for plan, n in [(make_plan(), 1000), (public_n_plan(), None)]:
        with pytest.raises(ValueError, match="number of records"):
            compose(plan, smallest_files(plan), public_n=n)


@pytest.mark.parametrize(
    "changes",
    [
        {"release_id": "0123"},
        {"release_id": "../../../../"},
        {"ledger_id": ""},
        {"drawing_sequence": None},
        {"drawing_hash": None},
        {"window": "2013-1"},
        {"window": "2013-01"},
        {"files": []},
    ],
)
def test_parts_that_make_no_manifest_are_not_composed(changes: dict[str, Any]) -> None:
    plan = make_plan()
    with pytest.raises(ReleaseCorruptError):
        compose(plan, **{"files": smallest_files(plan), **changes})


@pytest.mark.slow
def test_no_flipped_bit_goes_unnoticed() -> None:
    data = composed(public_n_plan())
    positions = range(0, 8 * len(data), 29)
    assert len(positions) > 500
    missed_without_checksum = 0
    for position in positions:
        flipped = flip_bit(data, position)
        with pytest.raises(ReleaseCorruptError):
            parse_manifest(flipped)
        try:
            parse_manifest(sealed(json.loads(flipped)))
        except (ValueError, StoreError):
            continue
        missed_without_checksum += 1
    assert missed_without_checksum > 10


def test_bytes_that_are_not_canonical_are_refused() -> None:
    data = composed(make_plan())
    content = json.loads(data)
    for changed in (
        data + b" ",
        data + b"\n",
        json.dumps(content, sort_keys=True).encode(),
        json.dumps(dict(reversed(content.items())), separators=(",", ":")).encode(),
        data.replace(b'"cells":3', b'"cells":3.0'),
        data.replace(b'"cells":3', b'"cells":3,"cells":3'),
        data.replace(b"{", b'{"cells":4,', 1),
        b"[]",
        b'"text"',
        b"",
        data[:-1],
    ):
        assert changed != data
        with pytest.raises(ReleaseCorruptError):
            parse_manifest(changed)


@pytest.mark.parametrize("version", [0, 2, 10, None, "1", True, [1]])
def test_other_format_versions_are_refused(version: object) -> None:
    content = {**json.loads(composed(make_plan())), "format_version": version}
    with pytest.raises(ReleaseCorruptError, match="another format"):
        parse_manifest(sealed(content))


def first(content: dict[str, Any]) -> dict[str, Any]:
    statistic: dict[str, Any] = content["statistics"][0]
    return statistic


HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "a path upwards": lambda c: c["files"][0].update(path="../../carrier.parquet"),
    "an absolute path": lambda c: c["files"][0].update(path="/etc/passwd"),
    "another file's path": lambda c: c["files"][0].update(path="cancelled.parquet"),
    "a statistic upwards": lambda c: (
        first(c).update(name="../x"),
        c["files"][0].update(statistic="../x", path="../x.parquet"),
    ),
    "no size": lambda c: c["files"][0].update(size=0),
    "an endless size": lambda c: c["files"][0].update(size=2**50),
    "another number of rows": lambda c: c["files"][0].update(rows=7),
    "files in another order": lambda c: c["files"].reverse(),
    "a file less": lambda c: c["files"].pop(),
    "a file twice": lambda c: c["files"].append(c["files"][0]),
    "no SHA-256": lambda c: c["files"][0].update(sha256="abc"),
    "an unknown field": lambda c: c.update(note="x"),
    "a field less": lambda c: c.pop("unit"),
    "another name": lambda c: c.update(name="others"),
    "another dataset": lambda c: c.update(dataset="others"),
    "another epsilon": lambda c: c.update(epsilon="0.5"),
    "an epsilon not canonical": lambda c: c.update(epsilon="1.0"),
    "another relation": lambda c: c.update(neighboring="replace_one"),
    "another unit": lambda c: c.update(unit="column:customer_id"),
    "a bound on the rows of a row": lambda c: c.update(max_rows=1),
    "another bound on rows": lambda c: c.update(max_total_rows=7),
    "a window that was not charged": lambda c: c.update(window="2013-01"),
    "an n that is private": lambda c: c.update(n=5),
    "another plan": lambda c: c["plan"].update(name="others"),
    "another column in the plan": lambda c: c["plan"]["statistics"]["carrier"].update(column="x"),
    "another number of cells": lambda c: c.update(cells=4),
    "a key more": lambda c: c["groups"][0]["keys"].append("XXX"),
    "a key twice": lambda c: c["groups"][0].update(keys=["EWR", "EWR", "JFK"]),
    "another group column": lambda c: c["groups"][0].update(column="destination"),
    "an endless range": lambda c: c.update(
        groups=[{"column": "origin", "kind": "range", "first": "0", "last": "999999999999"}]
    ),
    "an empty range": lambda c: c.update(
        groups=[{"column": "origin", "kind": "range", "first": "3", "last": "1"}]
    ),
    "a smaller scale": lambda c: first(c).update(scale="3"),
    "a scale that is no float": lambda c: first(c).update(scale="4.1"),
    "an endless scale": lambda c: first(c).update(scale=str(2**56)),
    "a scale in another form": lambda c: first(c).update(scale="4e0"),
    "a scale by zero": lambda c: first(c).update(scale="1/0"),
    "a scale as a number": lambda c: first(c).update(scale=4),
    "a scale of endless digits": lambda c: first(c).update(scale="4." + "0" * 10**6 + "1"),
    "other noise": lambda c: first(c).update(noise="gaussian"),
    "an epsilon more": lambda c: first(c).update(epsilon="0.5"),
    "an epsilon below zero": lambda c: first(c).update(epsilon="-1"),
    "no partition total": lambda c: first(c).update(partition_total=None),
    "another value type": lambda c: first(c).update(value_type="float64"),
    "a component twice": lambda c: first(c).update(components=["UA", "UA", "other"]),
    "a map from nowhere": lambda c: first(c)["quantities"][0].update(coefficients={"XX": "1"}),
    "a map of nothing": lambda c: first(c)["quantities"][0].update(coefficients={"UA": "0"}),
    "a statistic twice": lambda c: first(c).update(name="Cancelled"),
    "a signature": lambda c: c.update(signature={"algorithm": "none"}),
    "a count as a boolean": lambda c: c.update(drawing_sequence=True),
    "text instead of a list": lambda c: first(c).update(components="UA"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_manifest_that_contradicts_itself_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(composed(make_plan()))
    parse_manifest(sealed(content))
    change(content)
    with pytest.raises(ReleaseCorruptError):
        parse_manifest(sealed(content))


def test_tombstones_are_no_manifests() -> None:
    data = tombstone(RELEASE_ID)
    assert data == b'{"format_version":1,"release_id":"0123456789abcdef","tombstone":true}'
    assert is_tombstone(data)
    assert not is_tombstone(composed(make_plan()))
    assert not is_tombstone(b"{")
    with pytest.raises(ReleaseCorruptError):
        parse_manifest(data)


def test_a_manifest_without_constants_says_nothing_of_them() -> None:
    """Format 1 began without them: what has none is written as ever, and read."""
    entry = json.loads(composed(make_plan()))["statistics"][0]
    assert set(entry["parameters"]) == {"categories", "lower", "upper", "lattice_bits"}
    content = json.loads(composed(make_plan(statistics=CONSTANTS)))["statistics"]
    assert content[0]["parameters"]["constants"] == {"successes": "2.5"}
    assert "constants" not in content[3]["parameters"]
