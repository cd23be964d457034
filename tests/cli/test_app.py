"""The command line: fields of its JSON, exit statuses, and what reaches standard output."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from suffice.cli.app import leave_garbage
from support.making import Workspace, flights, make_workspace, write_parts
from support.running import Runner, spec_file


def test_the_whole_road(workspace: Workspace, suffice: Runner) -> None:
    spec = spec_file(workspace)
    plan = suffice.json("plan", spec)
    assert plan["cells"] == 3
    released = suffice.json("release", spec)
    assert released["status"] == "published"
    assert released["remaining_epsilon"] == "9"
    assert {entry["statistic"] for entry in released["files"]} == {
        "carrier",
        "cancelled",
        "stops",
        "arr_delay",
    }
    for entry in released["files"]:
        assert Path(entry["path"]).is_file()
        assert pq.read_metadata(entry["path"]).num_rows == entry["rows"]
    again = suffice.json("release", spec)
    assert (again["status"], again["release_id"]) == ("already_published", released["release_id"])
    shown = suffice.json("show", "flights")
    assert {key: shown[key] for key in ("name", "dataset", "window", "release_id", "uri", "epsilon")} == {
        "name": "flights",
        "dataset": "passengers",
        "window": "all",
        "release_id": released["release_id"],
        "uri": released["uri"],
        "epsilon": "1",
    }
    assert suffice.json("show", released["uri"]) == shown
    verified = suffice.json("verify", "flights", "--ledger", workspace.ledger)
    assert verified == {
        "ok": True,
        "problems": [],
        "ledger": "checked",
        "signature": "unsigned",
        "withdrawn": None,
    }
    assert suffice.json("verify", released["uri"])["ledger"] == "not_checked"


def test_a_column_unit_is_said_with_its_bound(
    tmp_path: Path, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path, unit="column:carrier")
    monkeypatch.setenv("SUFFICE_STORE", workspace.store)
    monkeypatch.setenv("SUFFICE_LEDGER", workspace.ledger)
    unit = {"column": "carrier", "max_rows": 20}
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
    spec = spec_file(workspace, privacy=privacy)
    said = {"unit": "column:carrier", "max_rows": 20, "unit_nulls": "drop"}
    for command in (("plan", spec), ("release", spec), ("show", "flights")):
        assert suffice.json(*command).items() >= said.items()
    assert "at most 20 rows of each; rows without one enter nothing" in suffice.text("plan", spec)
    shown = suffice.text("show", "flights")
    assert [line.split()[1] for line in shown.splitlines() if line.startswith(("unit", "max_rows"))] == [
        "column:carrier",
        "20",
        "drop",
    ]
    stranger = spec_file(workspace, name="other", privacy={**privacy, "unit": {**unit, "column": "origin"}})
    assert "protects the unit column:carrier" in suffice.text("release", stranger, status=3)
    assert "max_rows" not in suffice.json("plan", spec_file(workspace))


def test_tables_filter_and_never_sum(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    suffice.json("release", spec_file(workspace))
    table = suffice.json("table", "flights", "arr_delay")
    assert (table["statistic"], table["family"]) == ("arr_delay", "normal")
    assert len(table["rows"]) == 9
    jfk = suffice.json("table", "flights", "arr_delay", "--where", "origin=JFK")["rows"]
    assert [row for row in table["rows"] if row["origin"] == "JFK"] == jfk
    assert set(jfk[0]) == {"origin", "quantity", "estimate", "noise_sd"}
    counts = suffice.json("table", "flights", "carrier", "--where", "origin=JFK")["rows"]
    assert [(row["quantity"], row["category"]) for row in counts] == [
        ("count", "UA"),
        ("count", "DL"),
        ("count", "other"),
    ]
    for name in ("t.csv", "t.parquet"):
        suffice.text("table", "flights", "carrier", "--out", str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 0
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 9
    assert "x.txt" in suffice.text("table", "flights", "carrier", "--out", "x.txt", status=2)
    assert "no group" in suffice.text("table", "flights", "carrier", "--where", "month=1", status=2)
    assert "origin=ZZZ" in suffice.text("table", "flights", "carrier", "--where", "origin=ZZZ", status=2)
    assert "no statistic" in suffice.text("table", "flights", "absent", status=2)


@pytest.mark.slow
@pytest.mark.usefixtures("chains_once")
def test_several_columns_go_the_whole_road(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    bounds = {"lower": -60, "upper": 180}
    columns = {"arr_delay": bounds, "stops": {"lower": 0, "upper": 9}}
    spec = spec_file(
        workspace,
        statistics={
            "pair": {"family": "multivariate_normal", "columns": columns},
            "late": {
                "family": "linear_regression",
                "predictors": {"stops": columns["stops"]},
                "outcome": {"arr_delay": bounds},
            },
        },
    )
    planned = suffice.json("plan", spec)["statistics"][0]["derived"]
    suffice.json("release", spec)
    table = suffice.json("table", "flights", "pair", "--where", "origin=JFK")["rows"]
    named = [(row["quantity"], row["component"]) for row in table]
    assert named == [(entry["quantity"], entry.get("component", "")) for entry in planned]
    assert named[0] == ("n", "")
    assert named[-1] == ("total_of_products", "arr_delay, stops")
    prior = "NormalInverseWishart([10, 2], 1, 6, [900, 2])"
    words = ("posterior", "flights", "pair", "--method", "plug-in", "--prior", prior)
    rows = suffice.json(*words)["rows"]
    assert {(row["parameter"], row["component"]) for row in rows} == {
        *((parameter, column) for parameter in ("mean", "variance") for column in columns),
        ("covariance", "arr_delay, stops"),
    }
    rows = suffice.json("posterior", "flights", "late", "--method", "plug-in")["rows"]
    assert [(row["parameter"], row["component"]) for row in rows[:3]] == [
        ("coefficient", "stops"),
        ("intercept", ""),
        ("variance", ""),
    ]
    asked = ("posterior", "flights", "pair", "--where", "origin=JFK", "--seed", "3")
    aware = suffice.json(*asked)
    assert aware["method"] == "noise-aware"
    assert aware["diagnostics"]["sampler"].startswith("MCMC")
    assert aware["diagnostics"]["largest_r_hat"] > 0.9
    assert suffice.json(*asked) == aware
    assert "sampler MCMC" in suffice.text(*asked)
    assert "diagnostics" not in suffice.json(*words)
    out, plot = tmp_path / "draws.csv", tmp_path / "plot.svg"
    suffice.text(*words, "--draws", "20", "--draws-out", str(out), "--plot", str(plot))
    header, first, *_ = out.read_text(encoding="utf-8").splitlines()
    assert header == '"origin","component","draw","parameter","value"'
    assert first.startswith('"EWR","arr_delay",0,"mean",')
    suffice.json("verify", "flights")


@pytest.mark.parametrize(
    "words",
    [
        ("--prior", "Beta(1"),
        ("--prior", "Beta(-1, 1)"),
        ("--prior", "Gamma(1, 1)"),
        ("--prior", "__import__('os')"),
        ("--n-prior", "Beta(1, 1)"),
        ("--method", "magic"),
        ("--mass", "1.5"),
        ("--draws", "0"),
        ("--draws", "1"),
        ("--where", "origin"),
        ("--plot", "p.pdf"),
        ("--unknown", "1"),
    ],
)
def test_bad_arguments_are_exit_2(workspace: Workspace, suffice: Runner, words: tuple[str, str]) -> None:
    suffice.json("release", spec_file(workspace))
    error = suffice.json("posterior", "flights", "cancelled", *words, status=2)["error"]
    assert error["exit_status"] == 2
    assert error["message"]


def test_every_refusal_has_its_status_and_its_json(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    spec = spec_file(workspace)
    assert suffice.json("plan", str(tmp_path / "absent.yaml"), status=2)["error"]["type"] == "SpecError"
    assert suffice.json("show", "absent", status=5)["error"]["exit_status"] == 5
    over = spec_file(workspace, privacy={"epsilon": "11", "neighboring": "add_or_remove_one"})
    assert suffice.json("release", over, status=3)["error"]["type"] == "BudgetExceededError"
    schema = spec_file(workspace, statistics={"x": {"family": "bernoulli", "column": "absent"}})
    assert suffice.json("release", schema, status=4)["error"]["type"] == "SchemaError"
    spec = spec_file(workspace)
    missing = f"sqlite:///{tmp_path / 'none.db'}"
    assert "ledger grant" in suffice.json("release", spec, "--ledger", missing, status=5)["error"]["message"]
    assert suffice.json("release", spec, "--window", "2013-01", status=2)["error"]["exit_status"] == 2
    assert suffice.json("release", spec, "--cluster", "nonsense", status=2)["error"]["exit_status"] == 2
    assert "unknown" in suffice.text("unknown", status=2)
    assert suffice.json("ledger", "show")["accounts"][0]["spent"] == "0"


@pytest.mark.slow
def test_the_ledger_commands(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    suffice.json("release", spec_file(workspace))
    (account,) = suffice.json("ledger", "show", "passengers")["accounts"]
    assert {
        key: account[key] for key in ("dataset", "neighboring", "unit", "granted", "spent", "remaining")
    } == {
        "dataset": "passengers",
        "neighboring": "add_or_remove_one",
        "unit": "row",
        "granted": "10",
        "spent": "1",
        "remaining": "9",
    }
    (charge,) = account["charges"]
    assert (charge["name"], charge["window"], charge["epsilon"], charge["state"]) == (
        "flights",
        "all",
        "1",
        "published",
    )
    checked = suffice.json("ledger", "verify")
    assert (checked["ok"], checked["problems"], checked["store"]) == (True, [], "not_checked")
    assert suffice.json("ledger", "verify", "--store", workspace.store)["store"] == "checked"
    grant = ("ledger", "grant", "passengers", "--reason", "more", "--unwitnessed")
    assert suffice.json(*grant, "--epsilon", "12")["granted"] == "12"
    assert suffice.json(*grant, "--epsilon", "0.5", status=3)["error"]["exit_status"] == 3
    assert suffice.json(*grant, "--epsilon", "12", "--neighboring", "replace_one", status=3)["error"][
        "message"
    ]
    assert suffice.json(*grant, "--epsilon", "-1", status=2)["error"]["exit_status"] == 2
    fresh = ("--ledger", f"sqlite:///{tmp_path / 'fresh.db'}")
    assert suffice.json(*grant, "--epsilon", "1", *fresh, status=5)["error"]["exit_status"] == 5
    assert suffice.json(*grant, "--epsilon", "1", *fresh, "--create")["granted"] == "1"
    assert "remaining 11" in suffice.text("ledger", "show")


def test_init_proposes_a_window_of_folders_before_one_of_columns(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    folder = tmp_path / f"sales-{'of-a-long-name' * 5}" / "month=2013-01"
    folder.parent.mkdir()
    workspace.data.rename(folder)
    assert "# window: {column: day," in suffice.text("init", str(folder))
    text = suffice.text("init", f"{{parquet: {folder.parent}, hive: {{month: date}}}}")
    assert "# window: {column: month, every: month}" in text
    name = text.split("name: ", 1)[1].split("\n", 1)[0]
    assert len(f"{name}.expect") <= 63


def test_init_writes_what_a_person_must_complete(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    out = tmp_path / "skeleton.yaml"
    suffice.text("init", str(workspace.data), "--out", str(out))
    text = out.read_text(encoding="utf-8")
    assert "stops" in text
    assert "is missing" in suffice.text("plan", str(out), status=2), (
        "nothing may be left for the data to decide"
    )
    stated = (
        text.replace("dataset: ", "dataset: passengers ", 1)
        .replace("epsilon: ", 'epsilon: "1" ', 1)
        .replace("lower: , upper: ", "lower: 0, upper: 10")
        .replace("categories: ", "categories: [UA, DL]")
    )
    out.write_text(stated, encoding="utf-8")
    assert suffice.json("plan", str(out))["dataset"] == "passengers"
    assert "exists" in suffice.text("init", str(workspace.data), "--out", str(out), status=2)
    assert "no Parquet file" in suffice.text("init", str(tmp_path / "absent"), status=2)
    (tmp_path / "rows.csv").write_text("day,amount\n", encoding="utf-8")
    assert "    amount:\n" in suffice.text("init", str(tmp_path / "rows.csv"))
    (tmp_path / "rows.dat").write_text("day,amount\n", encoding="utf-8")
    assert "as in a spec: suffice init" in suffice.text("init", str(tmp_path / "rows.dat"), status=2)
    stated = f"{{csv: {tmp_path / 'rows.csv'}, columns: {{amount: number}}}}"
    assert "name: rows\n" in suffice.text("init", stated)
    assert "names its kind by a key" in suffice.text("init", "{sql: SELECT 1}", status=2)


def test_tampering_is_exit_5(workspace: Workspace, suffice: Runner) -> None:
    released = suffice.json("release", spec_file(workspace))
    path = Path(released["files"][0]["path"])
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert (
        suffice.json("table", "flights", released["files"][0]["statistic"], status=5)["error"]["exit_status"]
        == 5
    )
    verified = suffice.json("verify", "flights", status=5)
    assert not verified["ok"]
    assert verified["problems"]


@pytest.mark.slow
def test_help_and_plan_import_nothing_heavy(workspace: Workspace) -> None:
    for words in (["--help"], ["plan", spec_file(workspace)]):
        script = (
            "import sys; from suffice.cli.app import main\n"
            "heavy = {'dask', 'distributed', 'prefect', 'sqlalchemy', 'scipy', 'numba', 'pyarrow'}\n"
            "try: main(sys.argv[1:])\n"
            "finally: print(sorted(heavy & set(sys.modules)))"
        )
        finished = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True, env=os.environ
        )
        assert finished.stdout.splitlines()[-1] == "[]"


def test_an_unexpected_error_says_nothing_of_the_data(
    workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("secret 4242")

    monkeypatch.setattr("suffice.releasing.release.carry_out", fail)
    text = suffice.text("release", spec_file(workspace), status=1)
    assert "4242" not in text
    assert "RuntimeError" in text


@pytest.mark.usefixtures("workspace")
def test_an_interrupt_is_one_document_and_130(suffice: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("suffice.storage.releases.release_store.open_release", interrupted)
    assert suffice.json("show", "flights", status=130)["error"]["exit_status"] == 130
    assert "interrupted" in suffice.text("show", "flights", status=130)


def test_errors_of_options_name_the_option(workspace: Workspace, suffice: Runner) -> None:
    suffice.json("release", spec_file(workspace))
    for words in (
        ("--seed", "abc"),
        ("--draws", "1.5"),
        ("--mass", "x"),
        ("--seed", "-1"),
        ("--draws", "10000000000"),
    ):
        message = suffice.json("posterior", "flights", "cancelled", *words, status=2)["error"]["message"]
        assert words[0] in message


def test_the_version(suffice: Runner) -> None:
    assert suffice.text("--version").startswith("suffice 0.")


@pytest.mark.slow
def test_saturated_values_are_said_to_be(workspace: Workspace, suffice: Runner) -> None:
    """Thirty thousand records behind a promise of five: an error would depend on the data."""
    write_parts(flights(30_000), workspace.data)
    statistic = {"family": "normal", "column": "arr_delay", "lower": -60, "upper": 180, "lattice_bits": 24}
    suffice.json("release", spec_file(workspace, max_total_rows=5, groups=None, statistics={"d": statistic}))
    assert suffice.json("table", "flights", "d")["saturated"] > 0
    assert "saturated" in suffice.text("table", "flights", "d")
    assert "saturated" in suffice.text("posterior", "flights", "d", "--method", "plug-in")
    suffice.json("release", spec_file(workspace, name="fine"))
    assert suffice.json("table", "fine", "arr_delay")["saturated"] == 0


def test_a_plan_names_derived_columns_that_nothing_reads(suffice: Runner, tmp_path: Path) -> None:
    derived = {"used": {"column": "a", "above": "1"}, "unused": {"column": "b", "above": "1"}}
    path = tmp_path / "unused.json"
    path.write_text(
        json.dumps(
            {
                "name": "n",
                "dataset": "d",
                "source": {"csv": "x.csv", "columns": {"a": "number"}},
                "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
                "derived": derived,
                "statistics": {"used": {"family": "bernoulli", "column": "used"}},
            }
        ),
        encoding="utf-8",
    )
    assert "\nnothing reads: unused\n" in suffice.text("plan", str(path))


@pytest.mark.parametrize("given", ["", '["--version"]'])
def test_what_is_left_at_the_end_is_not_looked_through_unless_a_program_calls(given: str) -> None:
    code = f"""
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 0))  # handlers run last come, first served
from suffice.cli.app import GARBAGE, main
try:
    main({given})
finally:
    print(gc.get_freeze_count() > 0, gc.get_threshold()[0] == GARBAGE)  # a lower threshold would look at once
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[1:] == [f"False {not given}", str(not given)]


def test_libraries_that_report_leaks_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", sys)
    before = gc.get_freeze_count()
    leave_garbage()
    assert gc.get_freeze_count() == before
