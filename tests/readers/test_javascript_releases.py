"""The JavaScript reader beside Python's: which releases it reads, what it refuses, and their tables."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import ReleaseCorruptError
from suffice.pipeline.families import FAMILIES
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.statistic_reading import decode_statistic
from suffice.storage.signatures.signing import load_signer, new_keys
from support.entries import counting_nulls, entry_of
from support.javascript import ONE_SUM, ask, ask_all, judge, node
from support.manifest_mutants import encode, is_unvouched, mutants, sealed
from support.releases import compose, make_plan, publish, smallest_files, some_values

if TYPE_CHECKING:
    from suffice.pipeline.spec.plan import Plan

READER = Path(__file__).parents[2] / "readers" / "javascript"
COMPUTED_AGAIN = (*ONE_SUM, "categorical", "normal", "lognormal")


def every_family() -> Plan:
    """Return a plan with each family that needs no unit, in two groups."""
    entries = {
        name: entry_of(name, dict(family.example.entry))
        for name, family in FAMILIES.items()
        if not family.needs_unit
    }
    groups = {
        "g": ["a", "é<\U0001f600"],
        "month": {"range": [11, 13]},
        "week": {"from": "2020-W52", "to": "2021-W02", "every": "week"},
    }
    return make_plan(groups=groups, statistics=entries)


@pytest.mark.slow
@pytest.mark.parametrize("tests", ["parts", "vectors"])
def test_its_own_tests_pass(tests: str) -> None:
    """Every vector of the format, valid and hostile, and the parts that the reader rests on."""
    done = subprocess.run(
        [node(), "--test", f"test/{tests}.test.js"],
        cwd=READER,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, "\n".join(
        line for line in done.stdout.splitlines() if "not ok" in line or "error:" in line
    )
    assert "# fail 0" in done.stdout


def test_tables_are_pythons(tmp_path: Path) -> None:
    plan = every_family()
    directory = publish(tmp_path, plan, some_values(plan, reach=2**62))
    release = suffice.open_release(str(directory))
    where = {"g": "é<\U0001f600", "month": 12}
    names = [statistic.name for statistic in plan.statistics]
    answers = ask(directory, [{"statistic": name, "table": {"where": where}} for name in names])
    assert answers["signature"] == "unsigned"
    for name, rows in zip(names, answers["answers"], strict=True):
        expected = release.table(name, where)
        assert len(rows) == len(expected) > 0
        for row, other in zip(rows, expected, strict=True):
            assert row["estimate"] == pytest.approx(other["estimate"], rel=1e-15, abs=1e-300)
            assert row["noiseSd"] == pytest.approx(other["noise_sd"], rel=1e-12)
            assert row["cell"]["week"] == other["week"]


def documents() -> dict[str, dict[str, Any]]:
    """Return manifests of plans whose every field the reader computes again."""
    groups = {
        "g": ["a", "b"],
        "r": {"range": [1, 3]},
        "m": {"from": "2012-12", "to": "2013-01", "every": "month"},
    }
    entries = {name: entry_of(name, dict(FAMILIES[name].example.entry)) for name in COMPUTED_AGAIN}
    entries["bernoulli"]["groups"] = {"r": {"range": [1, 2]}, "g": ["b", "c"]}
    unit = {"column": "who", "max_rows": 3}
    minimal = {
        name: counting_nulls(entry, str(entry.get("minimum", "0")))
        for name, entry in entries.items()
        if name != "lognormal"
    }
    plans = {
        "families": make_plan(groups=groups, statistics=entries),
        "units": make_plan(privacy={"epsilon": "0.7", "neighboring": "replace_one", "unit": unit}),
        "minimal": make_plan(
            groups=None,
            privacy={"epsilon": "0.7", "neighboring": "replace_one"},
            statistics=minimal,
        ),
    }
    return {name: json.loads(compose(plan, smallest_files(plan))) for name, plan in plans.items()}


@pytest.mark.audit
@pytest.mark.parametrize("which", ["families", "units", "minimal"])
def test_no_manifest_contradicts_its_plan(which: str) -> None:
    document = documents()[which]
    step = {"families": 499, "units": 37, "minimal": 97}[which]
    hostile = [(path, data) for path, data in mutants(document, step) if len(data) < 200_000]
    first, *judged = judge([encode(document), *(data for _, data in hostile)])
    assert first["code"] is None, first
    wrong = [
        (path, verdict)
        for (path, _), verdict in zip(hostile, judged, strict=True)
        if verdict["code"] != "manifest"
        and not is_unvouched(path)
        and path[-1] != "location"
        and path[0] != "input_verified"
    ]
    assert not wrong
    assert len(hostile) > 30


def in_rho() -> list[dict[str, Any]]:
    """Return manifests in rho: of rows, of units bounded in cells too, and beside a public N."""
    entries = {name: entry_of(name, dict(FAMILIES[name].example.entry)) for name in COMPUTED_AGAIN}
    clipped = {
        f"{name}_clipped": {**entries[name], "count_clipped": {"weight": "0.3"}}
        for name in ("poisson", "normal")
    }
    whole = {
        name: counting_nulls(entry, str(entry.get("minimum", "0")))
        for name, entry in {**entries, **clipped}.items()
        if name != "lognormal"
    }
    weighted = {
        f"weighted_{exponent}": {**whole["normal"], "moment_weight": f"{2**exponent}"}
        for exponent in range(4)
    }
    of_units = {"bernoulli_of_units": {**entries["bernoulli"], "rows_of": "units"}}
    bounded = {"column": "who", "max_rows": 5, "max_rows_per_cell": 2}
    plans = [
        make_plan(privacy={"rho": "0.7", **changes}, **more)
        for changes, more in (
            ({"neighboring": "add_or_remove_one"}, {"statistics": {**entries, **clipped}}),
            ({"neighboring": "replace_one", "unit": bounded}, {"statistics": {**entries, **of_units}}),
            ({"neighboring": "replace_one"}, {"groups": None, "statistics": {**whole, **weighted}}),
        )
    ]
    return [json.loads(compose(plan, smallest_files(plan))) for plan in plans]


@pytest.mark.slow
def test_another_l2_sensitivity_is_refused() -> None:
    """A smaller one would let a manifest state less noise than its rho takes."""
    documents = in_rho()
    assert [verdict["code"] for verdict in judge([encode(document) for document in documents])] == [None] * 3
    changed = []
    for document in documents:
        for position, statistic in enumerate(document["statistics"]):
            for by in (-1, 1):
                copied = json.loads(json.dumps(document))
                copied["statistics"][position]["l2_squared"] = str(int(statistic["l2_squared"]) + by)
                changed.append(sealed(copied))
    assert all("l2_squared" in (verdict["message"] or "") for verdict in judge(changed))
    for manifest in changed[:2]:
        with pytest.raises(ReleaseCorruptError, match="l2_squared"):
            parse_manifest(manifest)


@pytest.mark.slow
def test_another_scale_of_the_noise_is_refused() -> None:
    changed = []
    for document in (documents()["families"], in_rho()[0]):
        for position, statistic in enumerate(document["statistics"]):
            scale = float(statistic["scale"])
            for other in (math.nextafter(scale, 0), math.nextafter(scale, math.inf), scale / 2):
                copied = json.loads(json.dumps(document))
                copied["statistics"][position]["scale"] = f"{other:.400f}".rstrip("0").rstrip(".")
                changed.append(sealed(copied))
    verdicts = judge(changed)
    assert all("scale" in verdict["message"] for verdict in verdicts)
    assert judge([sealed(document)])[0]["code"] is None


@pytest.mark.parametrize("field", ["contract", "audit"])
def test_a_contract_and_an_audit_are_hashes_or_left_out_for_both_readers(field: str) -> None:
    document = documents()["families"]
    assert field not in document
    stated = {"a" * 64: True, "A" * 64: False, "a" * 63: False, None: False, 5: False}
    changed = [sealed({**document, field: value}) for value in stated]
    for (value, is_read), data, verdict in zip(stated.items(), changed, judge(changed), strict=True):
        assert (verdict["code"] is None) == is_read, verdict
        if is_read:
            assert getattr(parse_manifest(data), field) == value
        else:
            with pytest.raises(ReleaseCorruptError, match=field):
                parse_manifest(data)


@pytest.mark.audit
def test_damaged_data_files_are_refused_where_python_refuses_them(tmp_path: Path) -> None:
    """Whatever bit changes, with every hash made right again."""
    plan = make_plan()
    directory = publish(tmp_path / "whole", plan)
    document = json.loads((directory / "manifest.json").read_bytes())
    rng = np.random.default_rng(3)
    asked: list[dict[str, Any]] = []
    refused: list[str | None] = []
    for position, (file, statistic) in enumerate(zip(document["files"], plan.statistics, strict=True)):
        data = (directory / file["path"]).read_bytes()
        for place in {0, len(data) - 1, len(data) - 5, *rng.integers(4, len(data), 40).tolist()}:
            damaged = bytearray(data)
            damaged[place] ^= 1 << int(rng.integers(8))
            copied = json.loads(json.dumps(document))
            copied["files"][position]["sha256"] = hashlib.sha256(damaged).hexdigest()
            other = tmp_path / f"{position}-{place}"
            other.mkdir()
            for name in (entry["path"] for entry in document["files"]):
                (other / name).write_bytes(
                    damaged if name == file["path"] else (directory / name).read_bytes()
                )
            (other / "manifest.json").write_bytes(sealed(copied))
            asked.append({"directory": str(other)})
            try:
                decode_statistic(bytes(damaged), statistic)
            except ReleaseCorruptError:
                refused.append("file")
            else:
                refused.append(None)
    answers = ask_all([*asked, {"directory": str(directory)}])
    assert [answer.get("code") for answer in answers] == [*refused, None]
    assert refused.count("file") > 0.8 * len(refused)
    (directory / document["files"][0]["path"]).write_bytes(b"")
    assert ask(directory, [])["code"] == "file"


@pytest.mark.slow
def test_signatures(tmp_path: Path) -> None:
    new_keys(tmp_path / "key")
    new_keys(tmp_path / "other")
    plan = make_plan()
    directory = publish(tmp_path / "store", plan, signer=load_signer(tmp_path / "key"))
    public, other = ((tmp_path / f"{name}.pub").read_text() for name in ("key", "other"))
    assert ask(directory, [])["signature"] == "not_checked"
    assert ask(directory, [], [other, public])["signature"] == "checked"
    assert ask(directory, [], [other])["code"] == "signature"
    assert ask(directory, [], [])["code"] == "signature"
    assert ask(directory, [], ["nonsense"])["code"] == "signature"
    document = json.loads((directory / "manifest.json").read_bytes())
    (directory / "manifest.json").write_bytes(sealed({**document, "drawing_sequence": 5}))
    assert "code" not in ask(directory, [])
    assert ask(directory, [], [public])["code"] == "signature"
    (directory / "manifest.json").write_bytes(sealed({**document, "signature": None}))
    assert ask(directory, [], [public])["code"] == "signature"
