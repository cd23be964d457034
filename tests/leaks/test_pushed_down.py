"""What DuckDB sums itself stays in memory: no error shows it, and no file gets a byte."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import suffice
from suffice.errors import SufficeError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.mechanism.noise import Sampler
from suffice.pipeline.rows.reduce import push_down, tree
from suffice.releasing import run as release_run
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from support.hostile import bernoulli, categorical, normal, poisson
from support.leaking import Sought, leaks, sought_in
from support.making import Workspace, make_workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 450_067
"""A number that nothing else has."""
STATISTICS = {
    "delay": normal("delay", "-60", "180", lattice_bits="24"),
    "flag": bernoulli("flag"),
    "stops": poisson("stops", "5"),
    "kind": categorical("kind", [str(number) for number in range(20)]),
}


def table() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "g": rng.choice(["a", "b"], ROWS),
            "flag": rng.random(ROWS) < 0.4,
            "stops": rng.poisson(2, ROWS),
            "delay": rng.normal(10, 60, ROWS),
            "kind": rng.choice(["0", "1"], ROWS),
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    made = make_workspace(tmp_path, granted="100", table=table())
    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{made.data}/*.parquet'")  # noqa: S608
    return made


def terms(place: Workspace, *, pushes_down: bool = True) -> dict[str, Any]:
    source = {"duckdb": str(place.directory / "rows.duckdb"), "table": "main.t", "push_down": "true"}
    return {
        "statistics": STATISTICS,
        "groups": {"g": ["a", "b"]},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"},
        **({"source": source} if pushes_down else {}),
    }


def sought(place: Workspace, patch: pytest.MonkeyPatch) -> Sought:
    """The totals of the same rows in Parquet, and what is private of the database."""
    found = sought_in(place.spec(**terms(place, pushes_down=False)))
    status = (place.directory / "rows.duckdb").stat()
    found.add("a file's size or time", [status.st_size, status.st_mtime_ns])
    found.add_noise(patch)
    return found


def fail(patch: pytest.MonkeyPatch, owner: Any, name: str, error: BaseException) -> None:
    """Let a step do its work, and fail afterwards."""
    original = getattr(owner, name)

    def failing(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        raise error

    patch.setattr(owner, name, failing)


def fail_in_a_query(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    """When the first query was answered and is written."""
    from suffice.pipeline.rows.chunk.sql_sums import SumQuery

    fail(patch, SumQuery, "write", error)


def change_the_file(patch: pytest.MonkeyPatch, place: Workspace) -> None:
    original = push_down.pushed_sums

    def then(*args: Any, **kwargs: Any) -> Any:
        totals = original(*args, **kwargs)
        os.utime(place.directory / "rows.duckdb", (1, 1))
        return totals

    patch.setattr(push_down, "pushed_sums", then)


STAGES: dict[str, Callable[[pytest.MonkeyPatch, Workspace], None]] = {
    "a query": lambda patch, _: fail_in_a_query(patch, duckdb.Error(f"{ROWS} rows")),
    "a bug": lambda patch, _: fail_in_a_query(patch, ValueError(f"{ROWS} rows")),
    "an interrupted query": lambda patch, _: fail_in_a_query(patch, KeyboardInterrupt()),
    "the check of the pin": change_the_file,
    "noise": lambda patch, _: fail(patch, Sampler, "draw_into", MemoryError()),
    "staging": lambda patch, _: fail(patch, SqlLedger, "stage", RuntimeError("no")),
}


@pytest.mark.parametrize(
    ("stage", "contained"), [*((stage, True) for stage in STAGES), ("the check of the pin", False)]
)
def test_no_error_shows_anything_exact(
    place: Workspace, monkeypatch: pytest.MonkeyPatch, stage: str, *, contained: bool
) -> None:
    """And the mutant, whose errors keep the frames that they passed."""
    numbers = sought(place, monkeypatch)
    assert "an exact total" in numbers.numbers.values()
    if not contained:
        monkeypatch.setattr(release_run, "contained", lambda work: work())
    STAGES[stage](monkeypatch, place)
    with pytest.raises((SufficeError, KeyboardInterrupt)) as caught:
        suffice.release(place.spec(**terms(place)), store=place.store, ledger=place.ledger)
    assert (leaks(caught.value, numbers) == []) == contained


def test_a_release_is_published_and_no_row_is_read(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "read", None)
    monkeypatch.setattr(tree, "exact_sums", None)
    progress: list[tuple[int, int]] = []
    release = suffice.release(
        place.spec(**terms(place)),
        store=place.store,
        ledger=place.ledger,
        progress=lambda done, of: progress.append((done, of)),
    )
    assert progress == [(1, 2), (2, 2)]
    assert set(release.statistics) == set(STATISTICS)


def test_other_processes_are_refused_before_anything_is_charged(place: Workspace) -> None:
    spec = place.spec(**terms(place))
    with pytest.raises(UsageError, match="use the cluster threads"):
        suffice.release(spec, store=place.store, ledger=place.ledger, cluster="local")
    suffice.release(spec, store=place.store, ledger=place.ledger)


WITHOUT_FILES = """
import resource, signal, sys
sys.path[:0] = {path!r}
import suffice
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.chunk.sql_sums import sum_queries
from suffice.pipeline.rows.reduce.push_down import pushed_sums
from suffice.pipeline.rows.sources import duckdb_tables

{change}
spec = suffice.load_spec({spec!r})
job = chunk_job(spec)
pin = sources.pin(spec)
queries = sum_queries(job, sources.schema(pin)[0].columns)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
totals = pushed_sums(job, queries, pin, n_threads=2)
print(int(totals.open_totals()["kind"].low.sum()))
"""


@pytest.mark.slow
def test_no_file_gets_a_byte(place: Workspace) -> None:
    """In a process that may write to none: the system ends every write to a file with an error."""
    content = {"name": "test", "dataset": "test", **terms(place)}
    text = WITHOUT_FILES.format(path=sys.path, change="", spec=content)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(ROWS), done.stderr[-2000:]


@pytest.mark.slow
def test_a_write_to_a_file_would_be_seen(place: Workspace) -> None:
    """The control: the same process writes to a file while a query is answered."""
    content = {"name": "test", "dataset": "test", **terms(place)}
    change = (
        "from suffice.pipeline.rows.chunk import sql_sums\n"
        "write = sql_sums.SumQuery.write\n"
        f"sql_sums.SumQuery.write = lambda *all: (write(*all), open({str(place.directory / 'f')!r}, 'w')"
        ".write('x' * 10**6))"
    )
    text = WITHOUT_FILES.format(path=sys.path, change=change, spec=content)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "StageFailedError: a task failed while it read the data" in done.stderr
