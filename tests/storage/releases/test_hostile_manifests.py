"""Whatever bytes stand where a manifest should: a typed error, soon, in little memory, naming the field."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import ReleaseCorruptError, SpecError
from suffice.storage.releases import manifest
from suffice.storage.releases.manifest import checksum, require_manifest
from suffice.storage.releases.manifest_model import Stated
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, parse_manifest
from support import manifest_mutants
from support.manifest_mutants import changed, encode, paths, sealed
from support.releases import compose, make_plan, public_n_plan, smallest_files

if TYPE_CHECKING:
    from pathlib import Path

UNIT = {
    "epsilon": "1",
    "neighboring": "replace_one",
    "unit": {"column": "customer_id", "max_rows": "20", "nulls": "drop"},
}
BOUNDS = {"lower": "-1", "upper": "3"}
SEVERAL: dict[str, Any] = {
    "box": {"family": "multivariate_normal", "columns": {"y": BOUNDS, "x": BOUNDS}},
    "bayes": {"family": "naive_bayes", "outcome": {"z": ["0", "1"]}, "features": {"b": ["1"], "a": ["3"]}},
    "waits": {
        "family": "gamma",
        "column": "w",
        "shape": "0.3",
        "upper": "9",
        "groups": {"hour": {"range": ["0", "2"]}, "origin": ["JFK", "LGA"]},
    },
}
GROUPS = {
    "origin": ["EWR", "Zürich"],
    "hour": {"range": ["0", "23"]},
    "month": {"from": "2023-11", "to": "2024-02", "every": "month"},
}


def document(**changes: Any) -> dict[str, Any]:
    plan = make_plan(**changes)
    content: dict[str, Any] = json.loads(compose(plan, smallest_files(plan)))
    return content


def documents() -> list[dict[str, Any]]:
    public = public_n_plan()
    return [
        document(),
        document(groups=GROUPS, statistics=SEVERAL),
        document(privacy=UNIT),
        json.loads(compose(public, smallest_files(public))),
    ]


def run_mutants(tmp_path: Path, step: int) -> dict[str, Any]:
    path = tmp_path / "documents.json"
    path.write_text(json.dumps(documents()))
    run = subprocess.run(
        [sys.executable, str(manifest_mutants.__file__), str(path), str(step)],
        capture_output=True,
        text=True,
        check=False,
        timeout=3000,
    )
    assert run.returncode == 0, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    return outcome


def check_mutants(outcome: dict[str, Any], least: int) -> None:
    assert outcome["counted"] >= least
    assert outcome["wrong"] == []
    assert outcome["read"] == []
    assert outcome["longest"] <= 500
    assert outcome["seconds"] < 2
    assert outcome["mb"] < 100


@pytest.mark.slow
def test_mutants_of_every_field_are_refused_soon_and_in_little_memory(tmp_path: Path) -> None:
    check_mutants(run_mutants(tmp_path, 13), 1000)


@pytest.mark.audit
@pytest.mark.timeout(3000)
def test_all_mutants_of_every_field_are_refused_soon_and_in_little_memory(tmp_path: Path) -> None:
    check_mutants(run_mutants(tmp_path, 1), 13_000)


def other_than(value: object) -> object:
    """Return another value of the same kind, which would be read if it were not compared."""
    if isinstance(value, list):
        return [*value, value[-1]] if value else ["1"]
    if isinstance(value, dict):
        return {**value, "zz": "1"}
    if isinstance(value, str):
        return value[:-1] + str((int(value[-1]) + 1) % 10) if value[-1:].isdigit() else value + "x"
    return "1" if value is None else int(value) + 1  # type: ignore[call-overload]


@pytest.mark.slow
def test_every_field_that_follows_from_the_plan_is_compared() -> None:
    """Without any one of the comparisons a value of the right form would be believed."""
    compared = set()
    for content in documents():
        for path in paths(content):
            if path[0] in Stated.model_fields or path[0] == "plan":
                continue
            standing: Any = content
            for key in path:
                standing = standing[key]
            with pytest.raises(ReleaseCorruptError) as caught:
                parse_manifest(sealed_as_it_is(changed(content, path, other_than(standing))))
            assert str(path[0]) in str(caught.value)
            compared.add(tuple(part for part in path if isinstance(part, str)))
    assert len({part for path in compared for part in path}) > 40
    for field in (
        ("epsilon",),
        ("neighboring",),
        ("unit",),
        ("max_rows",),
        ("unit_nulls",),
        ("max_total_rows",),
        ("cells",),
        ("groups", "keys"),
        ("groups", "every"),
        ("groups", "first"),
        ("statistics", "family"),
        ("statistics", "cells"),
        ("statistics", "groups", "keys"),
        ("statistics", "groups", "last"),
        ("statistics", "columns"),
        ("statistics", "l1_sensitivity"),
        ("statistics", "mechanism"),
        ("statistics", "scale"),
        ("statistics", "value_type"),
        ("statistics", "partition_total"),
        ("statistics", "moment_weight"),
        ("statistics", "quantities"),
        ("statistics", "quantities", "public_n_coefficient"),
        ("statistics", "parameters", "lattice_bits"),
        ("statistics", "parameters", "lower"),
        ("statistics", "parameters", "constants", "shape"),
        ("statistics", "parameters", "tables", "variables", "categories"),
        ("statistics", "parameters", "columns", "upper"),
    ):
        assert field in compared


def sealed_as_it_is(content: dict[str, Any]) -> bytes:
    """Make the checksum right, and leave the plan's hash."""
    return encode({**content, "checksum": checksum(content)})


FORMER: dict[str, tuple[Any, str]] = {
    "a coefficient tenfold": (
        lambda c: c["statistics"][0]["quantities"][0]["coefficients"].update(UA="10"),
        "statistics.carrier.quantities.0.coefficients.UA",
    ),
    "another family": (lambda c: c["statistics"][1].update(family="normal"), "statistics.cancelled.family"),
    "other bounds": (
        lambda c: c["statistics"][2]["parameters"].update(upper="181"),
        "parameters.upper",
    ),
    "another lattice": (lambda c: c["statistics"][2]["parameters"].update(lattice_bits=9), "lattice_bits"),
    "another column": (
        lambda c: c["statistics"][1].update(columns=["other"]),
        "statistics.cancelled.columns.0",
    ),
    "no quantities": (
        lambda c: c["statistics"][1].update(quantities=[]),
        "statistics.cancelled.quantities.0",
    ),
}


@pytest.mark.parametrize(("change", "field"), FORMER.values(), ids=FORMER.keys())
def test_what_once_verified_is_refused_by_name(change: Any, field: str) -> None:
    content = document()
    parse_manifest(sealed(content))
    change(content)
    with pytest.raises(ReleaseCorruptError, match=field):
        parse_manifest(sealed(content))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 100,
        b"[" * 10**6,
        b'{"a":' * 10**5,
        b"9" * 10**6,
        b"[" + b"[]," * 10**6,
        b'"' + b"x" * 10**6,
        b'{"cells":1,"cells":1}',
        b'{"cells":1e999}',
        b'{"cells":NaN}',
        b'{"cells":"\\ud800"}',
        bytes(LARGEST_MANIFEST + 1),
    ],
    ids=range(12),
)
def test_bytes_of_any_kind_are_refused(data: bytes) -> None:
    with pytest.raises(ReleaseCorruptError) as caught:
        parse_manifest(data)
    assert len(str(caught.value)) < 200


def test_a_key_twice_and_a_lone_surrogate_are_refused_inside_too() -> None:
    data = encode(document())
    for old, new in [
        (b'"cells":3,', b'"cells":3,"cells":3,'),
        (b'"EWR"', b'"\\ud800"'),
        (b'"EWR"', b'"\\u0045WR"'),
        (b'"EWR"', '"\u202eEWR"'.encode()),
        (b'"plan":{', b'"plan":{"name":"x",'),
    ]:
        assert old in data
        with pytest.raises(ReleaseCorruptError):
            parse_manifest(data.replace(old, new))


@pytest.mark.slow
def test_the_largest_plans_fit_and_larger_ones_are_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {f"c{i}": {"lower": "-1.5", "upper": "3.25"} for i in range(64)}
    entry = {"family": "multivariate_normal", "columns": columns, "noise": "laplace"}
    require_manifest(make_plan(groups=None, statistics={"a": entry}))
    monkeypatch.setattr(manifest, "LARGEST_MANIFEST", 200_000)
    few = {**entry, "columns": dict([*columns.items()][:8])}
    require_manifest(make_plan(groups=None, statistics={"a": few}))
    with pytest.raises(SpecError, match=r"statistics\.c: its manifest would take more than"):
        require_manifest(make_plan(groups=None, statistics={"a": few, "b": few, "c": few}))
    many = {"family": "categorical", "column": "c", "categories": {"range": ["1", "65537"]}}
    with pytest.raises(SpecError, match="components are declared, at most 65536"):
        make_plan(groups=None, statistics={"a": many})
    with pytest.raises(SpecError, match="periods are declared"):
        make_plan(groups={"day": {"from": "1600-01-01", "to": "2000-01-01", "every": "day"}})
    with pytest.raises(SpecError, match="the plan takes more than"):
        make_plan(groups={"key": [f"{number:040}" for number in range(110_000)]})
