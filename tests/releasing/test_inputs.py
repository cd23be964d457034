"""Releases over what pandas wrote, over input that its owner listed, and what is said on the way."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.cli import app
from suffice.errors import InputNotVerifiedError, SufficeWarning
from suffice.pipeline.spec.plan import compile_plan, plan_document, source_columns
from suffice.storage.ledger.opening import open_ledger
from support.making import Workspace, flights, make_workspace, write_parts
from support.pandas_files import as_pandas_writes

if TYPE_CHECKING:
    from pathlib import Path

UNIT = {"column": "customer", "max_rows": "2"}
PRIVACY = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": UNIT}


def customers(directory: Path, *, with_null: bool) -> Workspace:
    """Make a workspace whose unit column pandas wrote as doubles in one file, where a null stands."""
    table = flights().append_column("customer", pa.array(np.arange(600) // 3))
    workspace = make_workspace(directory, table=table, unit="column:customer")
    part = pq.read_table(workspace.data / "part-1.parquet")
    if with_null:
        ids = part["customer"].to_pylist()
        part = part.set_column(
            part.schema.get_field_index("customer"), "customer", pa.array([None, *ids[1:]])
        )
        part = as_pandas_writes(part)
        assert part.schema.field("customer").type == pa.float64()
    pq.write_table(part, workspace.data / "part-1.parquet")
    return workspace


def command(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    with pytest.raises(SystemExit) as caught:
        app.main(words)
    captured = capsys.readouterr()
    assert caught.value.code == status, captured
    return captured.out, captured.err


def test_a_release_over_units_of_two_types_warns_and_is_made(tmp_path: Path) -> None:
    workspace = customers(tmp_path, with_null=True)
    with pytest.warns(SufficeWarning, match=r"customer is integer in .*part-0.* floating point in .*part-1"):
        outcome = workspace.run(privacy=PRIVACY)
    assert outcome.status == "published"
    # And without one nothing is said: every warning is an error in these tests.
    assert customers(tmp_path / "whole", with_null=False).run(privacy=PRIVACY).status == "published"


def test_commands_print_the_warning_and_leave_the_result_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = customers(tmp_path, with_null=True)
    spec = str(workspace.write_spec(privacy=PRIVACY))
    out, err = command(capsys, "plan", spec, "--json")
    read = workspace.spec(privacy=PRIVACY)
    told = {"expect": None, "person": None, "unchecked_columns": list(source_columns(read))}
    assert json.loads(out) == {**plan_document(compile_plan(read)), **told}
    assert err.startswith("suffice: warning: privacy.unit.column: customer is integer in ")
    assert err.count("\n") == 1
    words = ("release", spec, "--ledger", workspace.ledger, "--store", workspace.store, "--json")
    out, released = command(capsys, *words)
    assert json.loads(out)["status"] == "published"
    assert released == err
    for path in workspace.data.iterdir():
        path.unlink()
    out, err = command(capsys, "plan", spec, "--json")
    assert json.loads(out)["name"] == "flights"
    assert "no schema: the source is not in sight" in err
    _, err = command(capsys, "plan", str(workspace.write_spec()))
    assert err == "", "rows have no types to compare"


def listed(workspace: Workspace) -> Path:
    """Write the owner's list beside the data."""
    path = workspace.directory / "SHA256SUMS"
    files = sorted(workspace.data.iterdir())
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  data/{file.name}\n" for file in files]
    path.write_text("".join(lines))
    return path


def demand(workspace: Workspace, path: Path | str) -> None:
    with open_ledger(workspace.ledger) as ledger:
        ledger.grant("passengers", epsilon=Fraction(10), checksums=str(path), reason="input is checked")


def entries(workspace: Workspace) -> int:
    with open_ledger(workspace.ledger) as ledger:
        return len(list(ledger.entries()))


@pytest.mark.slow
def test_input_that_is_not_the_owners_is_refused_before_the_charge(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert workspace.run(name="before").release.manifest["input_verified"] is False
    demand(workspace, listed(workspace))
    verified = workspace.run(name="verified").release
    assert verified.manifest["input_verified"] is True
    before = entries(workspace)
    # One bit of the first page: Parquet without page checksums does not see it.
    file = workspace.data / "part-0.parquet"
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputNotVerifiedError) as caught:
        workspace.run(name="after")
    assert caught.value.exit_status == 3
    assert str(caught.value).startswith(f"source.parquet: {workspace.data}: the input is not what")
    assert "part-0" not in str(caught.value)
    assert entries(workspace) == before
    assert workspace.charge("after") is None
    demand(workspace, "")
    content[100] ^= 1
    file.write_bytes(content)
    assert workspace.run(name="after").release.manifest["input_verified"] is False


def test_the_list_enters_no_plan_manifest_or_message(tmp_path: Path) -> None:
    """All that a release says of checksums is whether they were demanded."""
    first, second = make_workspace(tmp_path / "one"), make_workspace(tmp_path / "other")
    demand(second, listed(second))
    releases = [workspace.run().release for workspace in (first, second)]
    plans = [release.manifest["plan_hash"] for release in releases]
    assert plans[0] == plans[1]
    demanded = json.dumps(releases[1].manifest)
    for line in (second.directory / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert digest not in demanded
        assert name not in demanded
    assert "SHA256SUMS" not in demanded
    keys = [set(release.manifest) for release in releases]
    assert keys[0] == keys[1]


def test_a_spec_cannot_name_checksums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever may name hashes could test guesses of the data without a charge."""
    workspace = make_workspace(tmp_path)
    path = workspace.write_spec()
    spec = json.loads(path.read_text())
    path.write_text(json.dumps({**spec, "source": {**spec["source"], "checksums": "SHA256SUMS"}}))
    _, err = command(capsys, "plan", str(path), status=2)
    assert "unknown key" in err
    _, err = command(capsys, "release", str(path), "--checksums", "SHA256SUMS", status=2)
    assert "checksums" in err


def test_an_owner_names_checksums_at_the_grant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = make_workspace(tmp_path)
    path = listed(workspace)
    words = (
        "ledger",
        "grant",
        "passengers",
        "--epsilon",
        "10",
        "--reason",
        "x",
        "--ledger",
        workspace.ledger,
    )

    def granted(*options: str) -> Any:
        out, _ = command(capsys, *words, *options, "--json")
        return json.loads(out)["checksums"]

    assert granted() is None
    assert granted("--checksums", str(path)) == str(path)
    assert granted() == str(path)
    out, _ = command(capsys, *words)
    assert f"input checked against {path}" in out
    _, err = command(capsys, *words, "--checksums", str(path), "--no-checksums", status=2)
    assert "exclude each other" in err
    assert granted("--no-checksums") is None
    path.write_text("nothing\n")
    _, err = command(capsys, *words, "--checksums", str(path), status=2)
    assert err.startswith("suffice: --checksums: the list of checksums: line 1 is not a SHA-256")
    _, err = command(capsys, *words, "--checksums", str(path) + ".old", status=2)
    assert "cannot be read" in err
    assert granted() is None


def test_an_order_with_a_null_changes_no_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """pandas wrote the place of one row as null, and so all of its file as doubles."""
    table = flights().append_column("customer", pa.array(np.arange(600) // 5))
    chain = {
        "family": "markov_chain",
        "column": "carrier",
        "categories": ["UA", "DL", "AA"],
        "order": "stops",
        "transitions": "3",
    }
    statuses = []
    for name, is_null in (("whole", False), ("null", True)):
        workspace = make_workspace(tmp_path / name, unit="column:customer")
        stops = pa.array(
            [None if is_null and row == 0 else stop for row, stop in enumerate(table["stops"].to_pylist())]
        )
        first = table.set_column(table.schema.get_field_index("stops"), "stops", stops)
        write_parts(first, workspace.data)
        pq.write_table(as_pandas_writes(first.slice(0, 200)), workspace.data / "part-0.parquet")
        spec = workspace.write_spec(statistics={"steps": chain}, privacy=PRIVACY)
        command(capsys, "release", str(spec), "--ledger", workspace.ledger, "--store", workspace.store)
        statuses.append(pq.read_schema(workspace.data / "part-0.parquet").field("stops").type)
    assert statuses == [pa.int64(), pa.float64()]
