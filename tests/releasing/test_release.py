"""One release end to end: the order of ledger, engine, mechanism and store, and what reruns do."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import suffice
from suffice.errors import (
    AccountMissingError,
    BudgetExceededError,
    GuaranteeError,
    LedgerMissingError,
    NameTakenError,
    SchemaError,
    SpecChangedError,
    SpecError,
    StoreError,
    UsageError,
    WrongStoreError,
)
from suffice.releasing.release import carry_out
from suffice.storage.ledger.opening import open_ledger
from support.making import ORIGINS, Workspace, flights, make_workspace
from support.small_disk import small_disk


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path)


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_a_release_is_charged_published_and_read_back(workspace: Workspace) -> None:
    outcome = workspace.run()
    assert outcome.status == "published"
    assert outcome.remaining.text == "9"
    release = outcome.release
    assert list(release.statistics) == ["carrier", "cancelled", "stops", "arr_delay"]
    assert (release.name, release.dataset, release.window) == ("flights", "passengers", "all")
    assert release.loss.epsilon == 1
    for statistic in release.statistics.values():
        assert statistic.groups == {"origin": ["EWR", "JFK", "LGA"]}
        assert statistic.values.shape == (3, len(statistic.plan.components))
    assert workspace.account().spent == 1
    current = workspace.charge()
    assert current is not None
    assert current.state == "published"
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.verify() == ()


def test_a_rerun_reads_nothing_charges_nothing_and_changes_no_byte(workspace: Workspace) -> None:
    first = workspace.run()
    before = files(Path(workspace.store))
    for path in workspace.data.iterdir():
        path.unlink()
    second = workspace.run()
    assert second.status == "already_published"
    assert second.release.release_id == first.release.release_id
    assert files(Path(workspace.store)) == before
    assert workspace.account().spent == 1
    assert workspace.run(new_attempt=True).status == "already_published"
    assert workspace.account().spent == 1


def test_a_rerun_writes_nothing_to_a_store_that_is_read_only(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        workspace = replace(make_workspace(tmp_path), store=str(disk.path / "releases"))
        first = workspace.run()
        disk.forbid_writing()
        again = workspace.run()
        assert (again.status, again.release.release_id) == ("already_published", first.release.release_id)
        with pytest.raises(StoreError, match="EROFS"):  # what has to be written is refused before the charge
            workspace.run(name="second")
    account = workspace.account()
    assert (account.spent, account.reserved) == (Fraction(1), Fraction(0))
    assert workspace.charge("second") is None


def test_the_same_key_with_another_spec_is_refused(workspace: Workspace) -> None:
    workspace.run()
    with pytest.raises(SpecChangedError, match="choose another name") as caught:
        workspace.run(groups=None)
    assert caught.value.exit_status == 2
    assert any("groups" in key for key in caught.value.differing_keys)
    assert workspace.account().spent == 1


def test_over_budget_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, granted="1.5")
    workspace.run()
    for path in workspace.data.iterdir():
        path.unlink()
    with pytest.raises(BudgetExceededError) as caught:
        workspace.run(name="again")
    assert (caught.value.requested, caught.value.remaining) == (Fraction(1), Fraction(1, 2))
    assert caught.value.exit_status == 3
    assert workspace.account().spent == 1
    assert workspace.charge("again") is None


def test_another_relation_unit_source_or_grid_is_refused(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, sources=[str(tmp_path / "data")])
    replaced = {"epsilon": "1", "neighboring": "replace_one", "unit": "row"}
    with pytest.raises(GuaranteeError):
        workspace.run(privacy=replaced)
    with pytest.raises(GuaranteeError):
        workspace.run(source={"parquet": str(tmp_path / "database")})
    column = make_workspace(tmp_path / "column", unit="column:passenger")
    by_carrier = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": UNIT}
    for privacy in ({**by_carrier, "unit": "row"}, by_carrier):
        with pytest.raises(GuaranteeError) as caught:
            column.run(privacy=privacy)
        assert caught.value.exit_status == 3
    with pytest.raises(GuaranteeError):
        make_workspace(tmp_path / "rows").run(privacy=by_carrier)
    monthly = make_workspace(tmp_path / "monthly", per_window="day:month:UTC")
    with pytest.raises(GuaranteeError):
        carry_out(
            monthly.spec(window={"column": "day", "every": "year"}),
            store=monthly.store,
            ledger=monthly.ledger,
            window="2013",
        )
    for refused in (workspace, column, monthly):
        assert refused.account().spent == refused.account().reserved == 0


UNIT = {"column": "carrier", "max_rows": 5}


@pytest.mark.parametrize("nulls", ["drop", "own_unit"])
def test_a_release_by_unit_is_bounded_charged_and_stated(tmp_path: Path, nulls: str) -> None:
    workspace = make_workspace(tmp_path, unit="column:carrier", granted="1000000")
    privacy = {"epsilon": "1000000", "neighboring": "add_or_remove_one", "unit": {**UNIT, "nulls": nulls}}
    release = workspace.run(privacy=privacy).release
    assert (release.unit, release.manifest["max_rows"], release.manifest["unit_nulls"]) == (
        "column:carrier",
        5,
        nulls,
    )
    assert (workspace.account().unit, workspace.account().remaining) == ("column:carrier", Fraction(0))
    carriers = sum(row["estimate"] for row in release.table("carrier"))
    table = flights()
    without = sum(
        carrier is None and origin in ORIGINS
        for carrier, origin in zip(table["carrier"].to_pylist(), table["origin"].to_pylist(), strict=True)
    )
    # Three carriers with five rows each; at such an epsilon there is no noise to speak of.
    assert round(carriers) == 15 + (without if nulls == "own_unit" else 0)
    assert workspace.run(privacy=privacy).status == "already_published"


def test_windows_are_released_one_by_one_within_a_grant_per_window(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, granted="1", per_window="day:month:UTC")
    spec = workspace.spec(window={"column": "day", "every": "month"})
    for window in ("2013-01", "2013-02"):
        outcome = carry_out(spec, store=workspace.store, ledger=workspace.ledger, window=window)
        assert (outcome.release.window, outcome.remaining.text) == (window, "0")
    with pytest.raises(SpecError, match="--window"):
        carry_out(spec, store=workspace.store, ledger=workspace.ledger)
    with pytest.raises(BudgetExceededError):
        carry_out(
            workspace.spec(name="more", window={"column": "day", "every": "month"}),
            store=workspace.store,
            ledger=workspace.ledger,
            window="2013-01",
        )
    latest = suffice.open_release("flights", store=workspace.store)
    assert latest.window == "2013-02"
    assert suffice.open_release("flights@2013-01", store=workspace.store).window == "2013-01"


def test_what_is_missing_is_named(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(LedgerMissingError, match="grant"):
        carry_out(workspace.spec(), store=workspace.store, ledger=f"sqlite:///{tmp_path / 'absent.db'}")
    with pytest.raises(AccountMissingError):
        workspace.run(dataset="others")
    assert not (tmp_path / "absent.db").exists()


def test_a_name_belongs_to_one_dataset(workspace: Workspace) -> None:
    workspace.run()
    with open_ledger(workspace.ledger) as ledger:
        ledger.grant("others", epsilon=Fraction(5), reason="tests")
    with pytest.raises(NameTakenError):
        workspace.run(dataset="others")


def test_a_store_belongs_to_one_ledger_and_a_charge_to_one_store(
    workspace: Workspace, tmp_path: Path
) -> None:
    workspace.run()
    other = make_workspace(tmp_path / "other")
    with pytest.raises(WrongStoreError):
        carry_out(workspace.spec(), store=workspace.store, ledger=other.ledger)
    with pytest.raises(WrongStoreError, match="releases"):
        carry_out(workspace.spec(), store=str(tmp_path / "second-store"), ledger=workspace.ledger)
    assert other.account().spent == 0


@pytest.mark.parametrize(
    "statistics",
    [
        {"x": {"family": "bernoulli", "column": "absent"}},
        {"x": {"family": "bernoulli", "column": "carrier"}},
        {"x": {"family": "normal", "column": "origin", "lower": 0, "upper": 1}},
        {"x": {"family": "poisson", "column": "cancelled", "upper": 1}},
    ],
)
def test_schema_errors_come_before_the_charge(workspace: Workspace, statistics: dict[str, Any]) -> None:
    with pytest.raises(SchemaError) as caught:
        workspace.run(statistics=statistics)
    assert caught.value.exit_status == 4
    assert workspace.account().reserved == workspace.account().spent == 0
    assert workspace.charge() is None


@pytest.mark.slow
def test_neighbours_and_empty_data_give_the_same_shape_charge_and_status(tmp_path: Path) -> None:
    shapes = set()
    for index, table in enumerate((flights(), flights().slice(0, 0), flights().slice(0, 1), flights(seed=9))):
        workspace = make_workspace(tmp_path / str(index), table=table)
        outcome = workspace.run()
        sizes = tuple(sorted((entry["statistic"], entry["rows"]) for entry in outcome.release.files))
        lengths = tuple(
            sorted((path.name, path.stat().st_size) for path in Path(outcome.release.uri).iterdir())
        )
        shapes.add((outcome.status, outcome.remaining.text, sizes, lengths))
    assert len(shapes) == 1


def test_python_calls_read_the_environment(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUFFICE_STORE", workspace.store)
    monkeypatch.setenv("SUFFICE_LEDGER", workspace.ledger)
    release = suffice.release(workspace.spec())
    assert release.uri.startswith(workspace.store)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["opendp", "numba", "dask"])
def test_a_missing_engine_is_named_before_anything_is_charged(workspace: Workspace, package: str) -> None:
    """In a process in which the package cannot be imported, as where the extra is not installed.

    Inner loops in C, where they were built, need no numba: here they are not used.
    """
    words = ["release", str(workspace.write_spec()), "--store", workspace.store, "--ledger", workspace.ledger]
    script = (
        f"import os, sys; sys.modules[{package!r}] = None; os.environ['SUFFICE_KERNELS'] = 'numba'\n"
        f"from suffice.cli.app import main; main([*{words!r}, '--json'])"
    )
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert finished.returncode == 1, finished.stderr
    assert json.loads(finished.stdout)["error"]["type"] == "MissingExtraError"
    assert "suffice[pipeline]" in finished.stdout
    assert workspace.charge() is None


@pytest.mark.parametrize("variable", ["SUFFICE_KERNELS", "SUFFICE_PAGES"])
def test_a_variable_that_chooses_nothing_is_refused_before_anything_is_charged(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "of another kind")
    with pytest.raises(UsageError, match=f"{variable}: this is not .*: set that, or leave it") as caught:
        workspace.run()
    assert "of another kind" not in str(caught.value)
    assert workspace.charge() is None


def test_paths_are_accepted_and_what_is_no_spec_is_named(workspace: Workspace) -> None:
    release = suffice.release(workspace.spec(), store=Path(workspace.store), ledger=workspace.ledger)
    assert suffice.open_release(Path(release.uri)).release_id == release.release_id
    assert suffice.open_release("flights", store=Path(workspace.store)).release_id == release.release_id
    with pytest.raises(suffice.SufficeError, match="the spec cannot be read"):
        suffice.plan("release.yaml")
    with pytest.raises(suffice.SufficeError, match="int is no spec"):
        suffice.release(1)  # type: ignore[arg-type]
    with pytest.raises(suffice.SufficeError, match="ledger: a PosixPath"):
        suffice.release(workspace.spec(), ledger=Path("ledger.db"))  # type: ignore[arg-type]
    with pytest.raises(suffice.SufficeError, match="where maps"):
        release.table("cancelled", where="origin=JFK")  # type: ignore[arg-type]
    assert len(repr(release)) < 500
    assert len(repr(release.posterior("cancelled"))) < 500


def test_parts_of_a_source_are_never_left_out_in_silence(workspace: Workspace) -> None:
    (workspace.data / "more.parquet").mkdir()
    with pytest.raises(suffice.SufficeError, match="is no file"):
        workspace.run()
    (workspace.data / "more.parquet").rmdir()
    (workspace.data / "gone.PARQUET").symlink_to("nowhere")
    with pytest.raises(suffice.SufficeError, match="is no file"):
        workspace.run()
    assert workspace.charge() is None
    (workspace.directory / "hive" / "month=1").mkdir(parents=True)
    with pytest.raises(suffice.SufficeError, match=r"\*\*"):
        workspace.run(source={"parquet": str(workspace.directory / "hive")})
    with pytest.raises(SpecError, match="a source is"):
        workspace.run(source={"parquet": ""})
