"""`suffice inspect`, and a grant of the contract that it proposes: as commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.making import mapping
from support.running import spec_file
from support.typed_files import ROWS, by_pandas, by_pyarrow, with_nulls

if TYPE_CHECKING:
    from support.making import Workspace
    from support.running import Runner

GRANT = ("ledger", "grant", "passengers", "--epsilon", "10", "--reason", "2013 reporting")


def typed(workspace: Workspace) -> str:
    """Write three files, each typed otherwise, and a spec over them."""
    for path in workspace.data.iterdir():
        path.unlink()
    by_pyarrow(ROWS, workspace.data / "a.parquet")
    by_pandas(with_nulls("carrier", "all"), workspace.data / "b.parquet")
    texts = pa.table({"stops": ["1", "many", None], "cancelled": ["true", "no", "0"]})
    pq.write_table(texts, workspace.data / "c.parquet")
    (workspace.data / "d.parquet").write_bytes(b"")
    statistics = {name: mapping("")["statistics"][name] for name in ("carrier", "cancelled", "stops")}
    return spec_file(workspace, groups=None, statistics=statistics)


def test_exact_numbers_are_for_a_person(
    workspace: Workspace, suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, out = typed(workspace), tmp_path / "contract.json"
    assert "no terminal shows them" in suffice.text("inspect", spec, status=2)
    document = suffice.json("inspect", spec, "--out", str(out))
    assert document["exact_counts"] is None
    assert json.loads(out.read_text()) == document["contract"]
    assert "never overwritten" in suffice.text("inspect", spec, "--out", str(out), status=2)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "these numbers are exact and no release" in suffice.text("inspect", spec)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_no_file_has_is_in_no_proposal(
    workspace: Workspace, suffice: Runner, tmp_path: Path, kind: str
) -> None:
    statistics = {"s": {"family": "bernoulli", "column": "canceled"}}
    spec, out = spec_file(workspace, groups=None, statistics=statistics), tmp_path / "contract.json"
    if kind == "csv":
        (tmp_path / "a.csv").write_text("cancelled\ntrue\n")
        of_files = json.loads(Path(spec).read_text())
        Path(spec).write_text(json.dumps({**of_files, "source": {"csv": str(tmp_path / "a.csv")}}))
    message = suffice.text("inspect", spec, "--out", str(out), status=4)
    assert "no file has a column 'canceled'" in message
    assert not out.exists()


def test_files_that_are_not_read_are_counted(
    workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace.data / "dt=20130201"
    folder.mkdir()
    (folder / "000000_0").write_bytes(b"PAR1")
    (workspace.data / "_SUCCESS").write_bytes(b"")
    (workspace.data / ".hidden").write_bytes(b"")
    statistics = {"s": {"family": "bernoulli", "column": "cancelled"}}
    spec = spec_file(workspace, groups=None, statistics=statistics)
    stated = json.loads(Path(spec).read_text())
    source = {**stated["source"], "hive": {"dt": "date"}}
    Path(spec).write_text(json.dumps({**stated, "source": source}))
    assert suffice.json("inspect", spec, "--exact-counts")["exact_counts"]["other_files"] == 1
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "1 file beside them not read" in suffice.text("inspect", spec, "--exact-counts")


def test_a_table_of_stored_columns_is_described_without_counts(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    import duckdb

    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        connection.execute("CREATE TABLE rows AS SELECT true AS cancelled")
    source = {"duckdb": str(tmp_path / "rows.duckdb"), "table": "main.rows"}
    statistics = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
    spec = spec_file(workspace, groups=None, statistics=statistics)
    Path(spec).write_text(json.dumps({**json.loads(Path(spec).read_text()), "source": source}))
    assert "no row was read" in suffice.text("inspect", spec, "--exact-counts")


def test_what_does_not_fit_is_counted(workspace: Workspace, suffice: Runner) -> None:
    document = suffice.json("inspect", typed(workspace), "--exact-counts")
    counts = document["exact_counts"]
    columns = {column.pop("column"): column for column in counts["columns"]}
    assert counts["other_files"] == 0
    assert {key: counts[key] for key in ("folders", "files", "read", "rows")} == {
        "folders": 1,
        "files": 4,
        "read": 3,
        "rows": 15,
    }
    assert columns["stops"] == {"values": 14, "fit": 13, "types": {"integer": 2, "text": 1}}
    assert columns["cancelled"] == {"values": 15, "fit": 14, "types": {"boolean": 2, "text": 1}}
    assert columns["carrier"] == {"values": 6, "fit": 6, "types": {"absent": 1, "floating": 1, "text": 1}}
    families = document["contract"]["columns"]
    assert families == {
        "arr_delay": "floating",
        "cancelled": "boolean",
        "carrier": "text",
        "customer": "integer",
        "day": "date",
        "stops": "integer",
    }


def test_the_owner_learns_of_folders_that_are_not_read(workspace: Workspace, suffice: Runner) -> None:
    for path in workspace.data.iterdir():
        path.unlink()
    for name in ("20130105", "2013-01-05 00", "05.01.2013", "__HIVE_DEFAULT_PARTITION__"):
        (workspace.data / f"dt={name}").mkdir()
        pq.write_table(pa.table({"cancelled": [True]}), workspace.data / f"dt={name}" / "a.parquet")
    source: Any = {"parquet": str(workspace.data), "hive": {"dt": "date"}}
    spec = mapping(
        source,
        groups=None,
        window={"column": "dt", "every": "day"},
        statistics={"cancelled": {"family": "bernoulli", "column": "cancelled"}},
    )
    path = workspace.directory / "folders.json"
    path.write_text(json.dumps(spec))
    counts = suffice.json("inspect", str(path), "--exact-counts")["exact_counts"]
    assert counts["unread_folders"] == ["dt=05.01.2013"]
    assert "no window holds them: dt=05.01.2013" in suffice.text("inspect", str(path), "--exact-counts")


def test_a_proposed_contract_is_granted_and_kept(
    workspace: Workspace, suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of `docs/how-to/state-a-contract.md`."""
    monkeypatch.chdir(tmp_path)
    Path("flights.yaml").write_text(Path(typed(workspace)).read_text())
    suffice.text("inspect", "flights.yaml", "--out", "contract.json")
    assert "nothing guards the account" in suffice.text(*GRANT, "--contract", "contract.json", status=2)
    account = suffice.json(*GRANT, "--contract", "contract.json", "--witness", "witness.json")
    assert (account["guarded"], account["witness"]) == (True, str(tmp_path / "witness.json"))
    released = suffice.json("release", "flights.yaml")
    assert released["contract"] == account["contract"]["sha256"]
    assert (
        suffice.json("plan", "flights.yaml", "--ledger", workspace.ledger)["contract"] == released["contract"]
    )
    shown = suffice.text("ledger", "show")
    assert f"  contract {released['contract'][:16]}: 6 columns\n" in shown
    assert "unwitnessed" not in shown
    assert suffice.json("ledger", "verify", "--witness", "witness.json")["ok"]
    contract: dict[str, Any] = json.loads(Path("contract.json").read_text())
    fewer = {**contract, "columns": {"carrier": "text"}}
    Path("fewer.json").write_text(json.dumps(fewer))
    assert "it can gain columns" in suffice.text(*GRANT, "--contract", "fewer.json", status=3)
    Path("damaged.json").write_text(json.dumps({**contract, "columns": {"carrier": "varchar"}}))
    assert "columns.carrier" in suffice.text(*GRANT, "--contract", "damaged.json", status=2)
    Path("more.json").write_text(json.dumps({**contract, "columns": {**contract["columns"], "gate": "text"}}))
    assert len(suffice.json(*GRANT, "--contract", "more.json")["contract"]["columns"]) == 7


@pytest.mark.usefixtures("workspace")
def test_a_grant_that_nothing_guards_says_so(suffice: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    from suffice.cli import app

    with pytest.raises(SystemExit) as caught:
        app.main([*GRANT])
    captured = capsys.readouterr()
    assert caught.value.code == 0
    assert captured.err.startswith("suffice: warning: nothing guards the account passengers")
    assert "unwitnessed" in captured.out
    assert "no contract" in captured.out
    assert suffice.json(*GRANT, "--unwitnessed")["guarded"] is False


def test_the_owner_learns_how_many_are_in_no_window(workspace: Workspace, suffice: Runner) -> None:
    """What a rule does not read is counted for the owner, and the rule is in the proposed contract."""
    for path in workspace.data.iterdir():
        path.unlink()
    texts = pa.table({"begun": ["14-NOV-93", "31-NOV-93", "no day", None], "cancelled": [True] * 4})
    pq.write_table(texts, workspace.data / "a.parquet")
    rule = {"column": "begun", "parse": "date", "format": "%d-%b-%y", "pivot": "1950"}
    spec = spec_file(
        workspace,
        groups=None,
        window={"column": "day", "every": "month"},
        derived={"day": rule},
        statistics={"cancelled": {"family": "bernoulli", "column": "cancelled"}},
    )
    shown = suffice.json("inspect", spec, "--exact-counts")
    assert shown["contract"]["derived"] == {"day": rule}
    (day,) = (column for column in shown["exact_counts"]["columns"] if column["column"] == "day")
    assert day == {"column": "day", "values": 3, "fit": 1, "types": {}}
    planned = suffice.text("plan", spec)
    assert "per window of (begun as date, written %d-%b-%y with years from 1950):month:UTC" in planned
    assert "reading: the whole table for every window, as day is derived" in planned


@pytest.mark.parametrize(
    ("rule", "reading"),
    [
        ({"parse": "timestamp", "epoch": "milliseconds"}, "the window's rows alone, where raw is an integer"),
        ({"parse": "date", "format": "%Y%m%d"}, "the window's rows alone, where raw is an integer; else the"),
        ({"parse": "date", "format": "%d.%m.%Y"}, "the whole table for every window, as day is derived"),
    ],
)
def test_the_plan_says_what_a_window_reads(
    workspace: Workspace, suffice: Runner, rule: dict[str, str], reading: str
) -> None:
    source: Any = {"postgresql": "public.flights"}
    spec = mapping(
        source,
        groups=None,
        window={"column": "day", "every": "month"},
        derived={"day": {"column": "raw", **rule}},
        statistics={"cancelled": {"family": "bernoulli", "column": "cancelled"}},
    )
    path = workspace.directory / "read.json"
    path.write_text(json.dumps(spec))
    assert f"reading: {reading}" in suffice.text("plan", str(path))
