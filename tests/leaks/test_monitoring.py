"""Nothing of the rows stands in a log or in metrics, and the data of a neighbour change no byte of either."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from suffice.cli import app
from suffice.errors import LedgerError
from suffice.monitoring import records, textfile
from suffice.monitoring.records import FIELDS
from suffice.monitoring.standing import standing
from suffice.monitoring.textfile import rendered
from suffice.pipeline.rows.reduce import tree
from suffice.releasing import run as release_run
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.releases.release_store import ReleaseStore
from support.canaries import CANARY_NUMBER, CANARY_TEXT, FORMS, canary_table
from support.making import flights, make_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import pyarrow as pa

    from support.making import Workspace

    Inject = Callable[[pytest.MonkeyPatch], None]

NOW = datetime(2013, 5, 5, tzinfo=UTC)
AS_OF = ("--as-of", "2013-05-05T00:00Z")
WINDOW = {"column": "day", "every": "month", "first": "2013-01"}
TABLE = canary_table()


def raising(owner: Any, name: str, error: BaseException) -> Inject:
    def inject(patch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> Any:
            raise error

        patch.setattr(owner, name, fail)

    return inject


def interrupt(patch: pytest.MonkeyPatch) -> None:
    original = tree.exact_sums

    def stopped(*words: Any, **terms: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return original(*words, **terms)

    patch.setattr(tree, "exact_sums", stopped)


TEXT = f"{CANARY_TEXT} {CANARY_NUMBER}"
STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
STAGES: dict[str, Inject] = {
    "published": lambda _: None,
    "reading": raising(tree, "exact_sums", RuntimeError(TEXT)),
    "no stage": raising(release_run, "held", RuntimeError(TEXT)),
    "an error of ours": raising(SqlLedger, "mark", LedgerError("no")),
    "staging": raising(SqlLedger, "stage", RuntimeError(TEXT)),
    "publishing": raising(ReleaseStore, "put_manifest", RuntimeError(TEXT)),
    "interrupted": interrupt,
}


def commanded(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """Run a command; return what it wrote to standard output and to standard error."""
    with pytest.raises(SystemExit):
        app.main(words)
    captured = capsys.readouterr()
    return captured.out, captured.err


def place_of(directory: Path, table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    directory.mkdir()
    place = make_workspace(directory, table=table)
    monkeypatch.setenv("SUFFICE_LEDGER", place.ledger)
    monkeypatch.setenv("SUFFICE_STORE", place.store)
    monkeypatch.setenv("SUFFICE_METRICS", str(directory / "counts"))
    monkeypatch.setenv("SUFFICE_LOG", "json")
    return place


def released(
    place: Workspace, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[list[dict[str, Any]], str]:
    """Release a window; return the log, and the metrics after it."""
    spec = str(place.write_spec(window=WINDOW))
    words = ("release", spec, "--window", "2013-01", "--publish-timeout", "0", *more)
    _, log = commanded(capsys, *words)
    metrics, _ = commanded(capsys, "metrics", spec, *AS_OF)
    return [json.loads(line) for line in log.splitlines()], metrics


def looked_through(text: str) -> list[bytes]:
    return [form for form in FORMS if form in text.encode()]


MORE = {"no stage", "an error of ours", "staging", "publishing"}
"""Stages that `make audit` tries."""


def these_stages(stages: Iterable[str]) -> list[Any]:
    return [pytest.param(stage, marks=pytest.mark.audit) if stage in MORE else stage for stage in stages]


@pytest.mark.slow
@pytest.mark.parametrize("stage", these_stages(STAGES))
def test_canaries_are_absent_and_public_fields_present(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stage: str
) -> None:
    place = place_of(tmp_path / "place", TABLE, monkeypatch)
    STAGES[stage](monkeypatch)
    lines, metrics = released(place, capsys)
    said = json.dumps(lines) + metrics
    assert looked_through(said) == []
    assert "suffice_epsilon_remaining" in metrics
    assert {name for line in lines for name in line} <= FIELDS.keys()
    assert [line["line"] for line in lines] == list(range(1, len(lines) + 1))
    started, *between, ended = lines
    assert (started["event"], ended["event"]) == ("started", "ended")
    assert {line["event"] for line in between} <= {"error", "notice", "warning"}
    charge = place.charge(window="2013-01")
    assert charge is not None
    public = {"dataset": "passengers", "name": "flights", "window": "2013-01", "state": str(charge.state)}
    assert public.items() <= ended.items()
    assert (ended["charge"], ended["release_id"]) == (charge.charge_id, charge.release_id)
    assert (ended["exit_status"] == 0) == (stage == "published")
    assert re.search(r"\d\d:\d\d", said.replace("Z", "")) is None, "a time finer than an hour"
    assert looked_through(said + CANARY_TEXT) != [], "a canary would be found"


def blanked(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what is drawn for each run; it follows nothing."""
    return [
        {
            name: "" if name in {"run", "charge", "release_id", "started"} else value
            for name, value in line.items()
        }
        for line in lines
    ]


@pytest.mark.parametrize("stage", these_stages(["published", "reading", "publishing"]))
def test_a_neighbour_changes_no_byte_of_a_log_or_of_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stage: str
) -> None:
    said = said_of_neighbours(tmp_path, monkeypatch, capsys, STAGES[stage])
    for lines, of_neighbour in itertools.pairwise(said):
        assert lines == of_neighbour


def said_of_neighbours(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], inject: Inject
) -> list[tuple[str, str]]:
    """Return the log and the metrics of a release of each of two tables, without what differs lawfully."""
    whole = flights(300)
    tables = {"whole": whole, "few rows": whole.slice(0, 7)}  # a neighbour's neighbour, and so on
    told = []
    for name, table in tables.items():
        with monkeypatch.context() as patch:
            place = place_of(directory / name, table, patch)
            inject(patch)
            lines, metrics = released(place, capsys)
        text = json.dumps(blanked(lines)).replace(str(place.directory), "")
        told.append((text, re.sub(r"(?m)^suffice_\w+_hour_seconds .*$", "", metrics)))
    return told


def telling(what: str, where: str) -> Inject:
    """A mutant that tells how many rows there were, or how long they took."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        told: list[int] = []
        sums, render = tree.exact_sums, textfile.rendered

        def measured(job: Any, splits: Any, *words: Any, **terms: Any) -> Any:
            before = time.perf_counter_ns()
            totals = sums(job, splits, *words, **terms)
            took = time.perf_counter_ns() - before
            told.append(sum(split.n_rows for split in splits) if what == "rows" else took)
            if where == "log":
                records.write("notice", message=f"{told[-1]} {what}")
            return totals

        def with_it(*words: Any, **terms: Any) -> str:
            return render(*words, **terms) + f"suffice_last_{what} {told[-1]}\n"

        patch.setattr(tree, "exact_sums", measured)
        if where == "metrics":
            patch.setattr(textfile, "rendered", with_it)

    return inject


@pytest.mark.parametrize("where", ["log", "metrics"])
@pytest.mark.parametrize("what", ["rows", "nanoseconds"])
def test_a_count_or_a_duration_that_is_told_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str, where: str
) -> None:
    """The control of the test before: what it compares differs, and where the mutant tells it only."""
    lines, of_neighbour = said_of_neighbours(tmp_path, monkeypatch, capsys, telling(what, where))
    position = ("log", "metrics").index(where)
    assert lines[position] != of_neighbour[position]
    assert lines[1 - position] == of_neighbour[1 - position]


def test_no_line_is_written_while_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place = place_of(tmp_path / "place", flights(60), monkeypatch)
    seen: dict[str, int] = {}

    def noting(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def noted(*words: Any, **terms: Any) -> Any:
            seen[f"before {name}"] = capfd.readouterr().err.count("\n")
            noticed = original(*words, **terms)
            seen[f"after {name}"] = capfd.readouterr().err.count("\n")
            return noticed

        monkeypatch.setattr(owner, name, noted)

    for owner, name in ((tree, "exact_sums"), (SqlLedger, "stage"), (ReleaseStore, "put_manifest")):
        noting(owner, name)
    spec = str(place.write_spec(window=WINDOW))
    with pytest.raises(SystemExit):
        app.main(["release", spec, "--window", "2013-01"])
    assert capfd.readouterr().err.count("\n") >= 1
    assert seen.pop("before exact_sums") == 1, "the line that it began"
    assert set(seen.values()) == {0}
    assert len(seen) == 5


def test_metrics_tell_nothing_of_a_release_that_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(tmp_path / "place", flights(60), monkeypatch)
    spec = place.write_spec(window=WINDOW)
    taken = []

    def noting(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def noted(*words: Any, **terms: Any) -> Any:
            taken.append(rendered(standing([spec], as_of=AS_OF[1]), now=NOW))
            return original(*words, **terms)

        monkeypatch.setattr(owner, name, noted)

    noting(tree, "exact_sums")
    noting(SqlLedger, "enter_drawing")
    noting(SqlLedger, "stage")
    with pytest.raises(SystemExit):
        app.main(["release", str(spec), "--window", "2013-01"])
    assert len(taken) == 3
    assert taken[0] == taken[1] == taken[2]
    assert rendered(standing([spec], as_of=AS_OF[1]), now=NOW) != taken[0]
