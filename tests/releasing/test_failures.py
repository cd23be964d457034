"""Runs that fail or are interrupted: what is returned, what stays spent, and what the next run does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice.errors import (
    ChargeInProgressError,
    ChargeSpentError,
    LedgerError,
    StageFailedError,
)
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.releases.manifest import compose_manifest
from suffice.storage.releases.release_store import open_store
from support.making import Workspace, make_workspace

if TYPE_CHECKING:
    from suffice.storage.ledger.charge import Charge


ON_CONE = {
    "joint": {
        "family": "multivariate_normal",
        "columns": {"arr_delay": {"lower": -60, "upper": 180}, "stops": {"lower": 0, "upper": 5}},
        "noise": "cone",
    }
}
both_noises = pytest.mark.parametrize("workspace", [None, ON_CONE], ids=["laplace", "cone"], indirect=True)
"""What happens to a charge is the same whatever draws its noise."""


@pytest.fixture
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    return replace(make_workspace(tmp_path), statistics=getattr(request, "param", None))


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


@both_noises
def test_a_failure_while_reading_returns_the_epsilon(workspace: Workspace) -> None:
    damaged = sorted(workspace.data.iterdir())[1]
    content = bytearray(damaged.read_bytes())
    content[4:200] = bytes(196)
    damaged.write_bytes(bytes(content))
    with pytest.raises(StageFailedError) as caught:
        workspace.run()
    assert caught.value.stage == "reading"
    assert caught.value.exit_status == 1
    assert "returned" in str(caught.value)
    assert workspace.account().spent == workspace.account().reserved == 0
    current = workspace.charge()
    assert current is not None
    assert current.state == "abandoned"


def test_after_a_failed_reading_the_next_run_is_a_new_attempt(workspace: Workspace) -> None:
    damaged = sorted(workspace.data.iterdir())[1]
    content = damaged.read_bytes()
    damaged.write_bytes(content[:4] + bytes(196) + content[200:])
    with pytest.raises(StageFailedError):
        workspace.run()
    damaged.write_bytes(content)
    assert workspace.run().status == "published"
    assert workspace.account().spent == 1
    current = workspace.charge()
    assert current is not None
    assert current.attempt == 2


def test_a_source_that_changed_after_it_was_read_returns_the_epsilon(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole snapshot is checked once more when all is read, before noise is drawn."""
    from suffice.pipeline.rows.reduce import tree

    original = tree.exact_sums
    changed = min(workspace.data.iterdir())
    content = changed.read_bytes()

    def then_changed(*args: Any, **kwargs: Any) -> Any:
        sums = original(*args, **kwargs)
        changed.write_bytes(content + b"more")
        return sums

    monkeypatch.setattr(tree, "exact_sums", then_changed)
    with pytest.raises(StageFailedError) as caught:
        workspace.run()
    assert caught.value.stage == "reading"
    assert caught.value.__context__ is None
    assert workspace.account().spent == workspace.account().reserved == 0
    monkeypatch.undo()
    changed.write_bytes(content)
    assert workspace.run().status == "published"


@both_noises
@pytest.mark.parametrize("stage", ["drawing", "staging"])
def test_a_failure_after_drawing_began_is_spent_and_fenced(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """The fault is injected where no data can make it happen; what follows is the real thing."""

    def fail(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("secret 4242")

    if stage == "drawing":
        monkeypatch.setattr("suffice.pipeline.rows.mechanism.mechanism.privatize", fail)
    else:
        monkeypatch.setattr("suffice.releasing.run.compose_manifest", fail)
    with pytest.raises(StageFailedError) as caught:
        workspace.run()
    assert caught.value.stage == stage
    assert "4242" not in str(caught.value)
    assert caught.value.__context__ is None
    assert workspace.account().spent == 1
    current = workspace.charge()
    assert current is not None
    assert current.state == "abandoned"
    left = Path(workspace.store) / "flights" / "all" / current.release_id
    assert [path.name for path in left.iterdir()] == ["manifest.json"]  # the tombstone
    monkeypatch.undo()
    with pytest.raises(ChargeSpentError, match="--new-attempt"):
        workspace.run()
    assert workspace.run(new_attempt=True).status == "published"
    assert workspace.account().spent == 2
    current = workspace.charge()
    assert current is not None
    assert current.attempt == 2
    assert suffice.open_release("flights", store=workspace.store).release_id == current.release_id


@pytest.mark.parametrize("workspace", [ON_CONE], ids=["cone"], indirect=True)
def test_a_draw_of_cone_noise_that_fails_is_not_charged(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for its totals: a thread that fails has met no data, and the charge is returned."""

    def fail(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("secret 4242")

    monkeypatch.setattr("suffice.pipeline.rows.mechanism.cone.matrix.exponentials", fail)
    with pytest.raises(StageFailedError) as caught:
        workspace.run()
    assert caught.value.stage == "preflight"
    assert "4242" not in str(caught.value)
    assert caught.value.__context__ is None
    assert workspace.account().spent == workspace.account().reserved == 0
    monkeypatch.undo()
    assert workspace.run().status == "published"
    assert workspace.account().spent == 1


@both_noises
def test_what_was_staged_is_published_by_the_next_run(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError("the store is away")

    monkeypatch.setattr("suffice.storage.releases.release_store.ReleaseStore.put_manifest", fail)
    with pytest.raises(StageFailedError, match="nothing is lost"):
        workspace.run()
    staged = workspace.charge()
    assert staged is not None
    assert staged.state == "staged"
    monkeypatch.undo()
    for path in workspace.data.iterdir():
        path.unlink()
    outcome = workspace.run()
    assert outcome.status == "published"
    assert outcome.release.release_id == staged.release_id
    manifest = Path(workspace.store) / "flights" / "all" / staged.release_id / "manifest.json"
    assert manifest.read_bytes() == staged.manifest
    assert workspace.account().spent == 1


def test_a_tombstone_where_staged_bytes_belong_spends_the_charge(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError("the store is away")

    monkeypatch.setattr("suffice.storage.releases.release_store.ReleaseStore.put_manifest", fail)
    with pytest.raises(StageFailedError):
        workspace.run()
    staged = workspace.charge()
    assert staged is not None
    monkeypatch.undo()
    open_store(workspace.store).put_tombstone("flights", "all", staged.release_id)
    with pytest.raises(ChargeSpentError, match="--new-attempt"):
        workspace.run()
    assert workspace.run(new_attempt=True).status == "published"
    assert workspace.account().spent == 2


def test_a_run_that_finds_a_tombstone_does_not_say_that_it_published(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = SqlLedger.stage

    def stage(ledger: SqlLedger, held: Charge, manifest: bytes) -> Charge:
        staged = original(ledger, held, manifest)
        open_store(workspace.store).put_tombstone(staged.name, staged.window, staged.release_id)
        return staged

    monkeypatch.setattr(SqlLedger, "stage", stage)
    with pytest.raises(ChargeSpentError, match="--new-attempt"):
        workspace.run()
    current = workspace.charge()
    assert current is not None
    assert current.state == "abandoned"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_interrupt_while_reading_returns_the_epsilon(workspace: Workspace) -> None:
    """A real SIGTERM to a real process, sent when the charge is reserved."""
    script = f"""
import os, signal, sys
from suffice.cli import app as cli
import suffice.pipeline.rows.reduce.tree as reduce
original = reduce.exact_sums
def interrupted(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGTERM)
    return original(*args, **kwargs)
reduce.exact_sums = interrupted
words = ["release", {str(workspace.write_spec())!r}]
words += ["--store", {workspace.store!r}, "--ledger", {workspace.ledger!r}]
cli.main([*words, "--json"])
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert finished.returncode == 130, finished.stderr
    assert "returned" in finished.stdout
    assert workspace.account().spent == workspace.account().reserved == 0


@both_noises
def test_an_interrupt_after_the_draw_waits_for_the_publication(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = compose_manifest

    def interrupted(*args: Any, **kwargs: Any) -> bytes:
        os.kill(os.getpid(), signal.SIGINT)
        return original(*args, **kwargs)

    monkeypatch.setattr("suffice.releasing.run.compose_manifest", interrupted)
    with pytest.raises(suffice.SufficeError) as caught:
        workspace.run()
    assert caught.value.exit_status == 130
    assert "published" in str(caught.value)
    monkeypatch.undo()
    assert workspace.run().status == "already_published"


@both_noises
def test_a_charge_that_another_run_left_marked_meanwhile_is_not_drawn_for(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked up when nothing was charged; right before this run charges, another put its marker."""
    reserve, enter = SqlLedger.reserve, SqlLedger.enter_drawing

    def fail(*_: object, **__: object) -> None:
        message = "the ledger is away"
        raise LedgerError(message)

    def late(ledger: SqlLedger, *args: Any, **kwargs: Any) -> Charge:
        monkeypatch.setattr(SqlLedger, "reserve", reserve)
        monkeypatch.setattr(SqlLedger, "enter_drawing", fail)
        with pytest.raises(StageFailedError, match="counts as spent"):
            workspace.run()
        monkeypatch.setattr(SqlLedger, "enter_drawing", enter)
        return reserve(ledger, *args, **kwargs)

    monkeypatch.setattr(SqlLedger, "reserve", late)
    with pytest.raises(ChargeInProgressError, match="run again"):
        workspace.run()
    left = workspace.charge()
    assert left is not None
    assert (left.state, left.marked, left.epoch) == ("reserved", True, 2)
    assert workspace.run().status == "published"  # the spool proves that the first never drew to its end
    assert workspace.account().spent == 1
