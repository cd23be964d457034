"""Publications of very many cells, in parts: the same bytes wherever they are computed, and never twice."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
import pyarrow.parquet as pq
import pytest

from suffice.errors import ClusterError, UsageError
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.ask.publication.answer import Streams
from suffice.pipeline.cluster import clients
from suffice.publishing import parts as publication_parts
from suffice.publishing.publish import publish
from suffice.storage.operations.verify_store import verify_publication
from suffice.storage.publications.publication import RECEIPT
from suffice.storage.publications.publication_store import PublicationStore
from suffice.storage.releases import location
from suffice.storage.releases.release_store import open_release
from suffice.storage.signatures.signing import new_keys
from support.dask_clusters import NO_SPILLING, by_address, in_processes
from support.many_cells import STATISTIC, publish_many_cells
from support.publishing_in_parts import in_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.storage.publications.publication import Publication

SHOPS, DAYS, CELLS = 6, 5, 10
"""Parts of two shops each."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_many_cells(
        tmp_path_factory.mktemp("store"), "bernoulli", SHOPS, DAYS, np.random.default_rng(7)
    )


def contents(publication: Publication) -> dict[str, bytes]:
    return {file.name: publication.read(file.name) for file in publication.files}


def tables(publication: Publication, what: str) -> list[pa.Table]:
    names = sorted(file.name for file in publication.files if f"-{what}-" in file.name)
    return [pq.read_table(io.BytesIO(publication.read(name))) for name in names]


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "support.publishing_in_parts", *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[bytes]:
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(command(*words), check=False, env={**os.environ, "PYTHONPATH": paths})


def test_parts_hold_what_the_whole_posterior_has(release: Path, tmp_path: Path) -> None:
    publication, computed = in_parts(release, tmp_path, CELLS, draws=40)
    assert computed == [0, 1, 2]
    assert [file.name for file in publication.files] == [
        f"{STATISTIC}-{what}-{number:05}.parquet" for number in range(3) for what in ("summaries", "draws")
    ]
    assert {(file.role, file.format) for file in publication.files} == {("part", "parquet")}
    assert publication.stated.request["cells_per_part"] == CELLS
    posterior = open_release(release).posterior(STATISTIC)
    expected = summarise(posterior)
    rows = [row for table in tables(publication, "summaries") for row in table.to_pylist()]
    assert [(row["shop"], row["day"]) for row in rows] == [(row["shop"], row["day"]) for row in expected]
    for name in ("mean", "sd", "lower", "upper"):
        np.testing.assert_allclose([row[name] for row in rows], [row[name] for row in expected], rtol=1e-6)
    assert [file.rows for file in publication.files] == [10, 400] * 3
    drawn = [table.column("value").to_numpy() for table in tables(publication, "draws")]
    assert len(np.unique(np.concatenate(drawn))) == 3 * 400, "no part draws what another one draws"


def test_a_part_says_what_it_is_and_where_its_keys_are(release: Path, tmp_path: Path) -> None:
    publication, _ = in_parts(release, tmp_path, CELLS)
    for number, table in enumerate(tables(publication, "summaries")):
        metadata = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
        part = json.loads(metadata["part"])
        assert (part["number"], part["start"], part["stop"]) == (number, 10 * number, 10 * number + 10)
        source = json.loads(metadata["source"])
        assert source["publication_id"] == publication.publication_id
        assert source["statistic"] == STATISTIC
        assert set(table.column("shop").to_pylist()) == {2 * number + 1, 2 * number + 2}
    footer = pq.read_metadata(io.BytesIO(publication.read(publication.files[1].name))).row_group(0)
    places = {
        footer.column(place).path_in_schema: footer.column(place) for place in range(footer.num_columns)
    }
    assert (places["shop"].statistics.min, places["shop"].statistics.max) == (3, 4)
    assert places["mean"].statistics is None


@pytest.fixture(scope="module")
def on_threads(release: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return contents(in_parts(release, tmp_path_factory.mktemp("threads"), CELLS, draws=10)[0])


@pytest.mark.slow
def test_processes_give_the_bytes_that_threads_give(
    release: Path, tmp_path: Path, on_threads: dict[str, bytes]
) -> None:
    assert contents(in_parts(release, tmp_path, CELLS, draws=10, cluster="local")[0]) == on_threads


@pytest.mark.audit
@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_bytes(
    release: Path, tmp_path: Path, on_threads: dict[str, bytes], workers: int
) -> None:
    with dask.config.set(NO_SPILLING), by_address(n_workers=workers) as processes:
        publication, _ = in_parts(release, tmp_path, CELLS, draws=10, cluster=processes.scheduler_address)
    assert contents(publication) == on_threads


def test_one_thread_and_a_release_in_files_give_the_same_bytes(
    release: Path, tmp_path: Path, on_threads: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.pipeline.cluster.connection.processors", lambda: 1)
    monkeypatch.setattr(location, "MOST_HELD", 0)
    assert contents(in_parts(release, tmp_path, CELLS, draws=10)[0]) == on_threads


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_where_it_was(
    release: Path, tmp_path: Path, on_threads: dict[str, bytes]
) -> None:
    assert run(release, tmp_path, "threads", CELLS, 10, 3).returncode == -signal.SIGKILL
    folders = list((tmp_path / "publications").iterdir())
    assert len(folders) == 1
    standing = sorted(path.name for path in folders[0].iterdir() if not path.name.startswith("."))
    assert len(standing) == 3
    assert PublicationStore.open(tmp_path).find(folders[0].name) is None, "nothing is published yet"
    publication, computed = in_parts(release, tmp_path, CELLS, draws=10)
    assert len(computed) == 2, "one part was whole, of another half stood there"
    assert contents(publication) == on_threads
    again, nothing = in_parts(release, tmp_path, CELLS, draws=10)
    assert (again.publication_id, nothing) == (publication.publication_id, [])


@pytest.mark.audit
def test_a_scheduler_that_is_lost_leaves_its_parts_and_the_same_command_goes_on(
    release: Path, tmp_path: Path
) -> None:
    put_file = PublicationStore.put_file
    with in_processes(tmp_path / "worker") as (address, scheduler), pytest.MonkeyPatch.context() as patch:

        def put(self: PublicationStore, *arguments: Any) -> Any:
            stored = put_file(self, *arguments)
            scheduler.kill()
            scheduler.wait()
            return stored

        patch.setattr(PublicationStore, "put_file", put)
        patch.setattr(clients, "CONNECT_SECONDS", 15)  # to find it again, too
        with pytest.raises(ClusterError) as caught:
            in_parts(release, tmp_path, 2, draws=10, cluster=address)
    told = str(caught.value)
    kept = int(re.search(r"([0-9]+) of 18 parts are written and kept: the same command", told)[1])  # type: ignore[index]
    assert caught.value.__suppress_context__
    assert "127.0.0.1" not in told
    assert len(told) <= 500
    assert 1 <= kept < 18
    publication, computed = in_parts(release, tmp_path, 2, draws=10)
    assert len(computed) == 18 - kept
    assert len(contents(publication)) == 36
    assert contents(publication) == contents(in_parts(release, tmp_path / "whole", 2, draws=10)[0])


def test_a_part_that_was_damaged_or_is_of_another_version_is_computed_again(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication, _ = in_parts(release, tmp_path, CELLS)
    folder = tmp_path / "publications" / publication.publication_id
    expected = contents(publication)
    (folder / "manifest.json").unlink()
    first, second, _third = (folder / file.path for file in publication.files)
    first.unlink()
    second.chmod(0o600)
    second.write_bytes(second.read_bytes()[:-1])
    with pytest.raises(Exception, match=r"other bytes than .* stand at"):
        in_parts(release, tmp_path, CELLS)
    second.unlink()
    again, computed = in_parts(release, tmp_path, CELLS)
    assert contents(again) == expected
    assert 1 in computed
    assert 2 not in computed
    (folder / "manifest.json").unlink()
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.9")
    _, computed = in_parts(release, tmp_path, CELLS)
    assert computed == [0, 1, 2]


@pytest.mark.slow
def test_a_part_of_another_request_is_not_taken(
    release: Path, tmp_path: Path, on_threads: dict[str, bytes]
) -> None:
    """Files of other draws have the names of these, and stand where somebody has put them."""
    made, _ = in_parts(release, tmp_path / "these", CELLS, draws=10)
    others, _ = in_parts(release, tmp_path / "others", CELLS, draws=20)
    store = PublicationStore.open(tmp_path / "swapped")
    for file in others.files:
        store.put_file(made.publication_id, file.name, others.read(file.name))
    publication, computed = in_parts(release, tmp_path / "swapped", CELLS, draws=10)
    assert computed == [0, 1, 2]
    assert contents(publication) == on_threads


def test_whoever_signs_goes_on_from_parts_of_their_own_alone(
    release: Path, tmp_path: Path, on_threads: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forged part has its name, its hash and its metadata; only the publisher's receipt is missing."""
    for key in ("ours", "theirs"):
        new_keys(tmp_path / key)
    made, _ = in_parts(release, tmp_path / "unsigned", CELLS, draws=10)
    store = PublicationStore.open(tmp_path / "shared")
    forged = "draws-00001.parquet"
    for file in made.files:
        data = made.read(file.name)
        if file.name.endswith(forged):
            data = forge(data)
        store.put_file(made.publication_id, file.name, data)
    # The control: who does not sign takes it.
    taken, computed = in_parts(release, copied(tmp_path / "shared"), CELLS, draws=10)
    assert computed == []
    assert contents(taken) != on_threads

    monkeypatch.setenv("SUFFICE_PUBLICATION_KEY", str(tmp_path / "theirs"))
    theirs, _ = in_parts(release, tmp_path / "elsewhere", CELLS, draws=10)
    elsewhere = PublicationStore.open(tmp_path / "elsewhere")
    for standing in elsewhere.files(theirs.publication_id):
        if standing.name == RECEIPT:
            receipt = elsewhere.read_file(theirs.publication_id, standing.path)
            store.put_file(made.publication_id, RECEIPT, receipt or b"")
    store.put_file(made.publication_id, RECEIPT, b'{"signature":{}}')
    monkeypatch.setenv("SUFFICE_PUBLICATION_KEY", str(tmp_path / "ours"))
    publication, computed = in_parts(release, tmp_path / "shared", CELLS, draws=10)
    assert computed == [0, 1, 2]
    assert contents(publication) == on_threads

    (tmp_path / "shared" / "publications" / made.publication_id / "manifest.json").unlink()
    again, computed = in_parts(release, tmp_path / "shared", CELLS, draws=10)
    assert computed == []
    assert contents(again) == on_threads
    assert verify_publication(store, made.publication_id).ok


def forge(data: bytes) -> bytes:
    """Return a part with other values, and the same metadata."""
    table = pq.read_table(io.BytesIO(data))
    place = table.column_names.index("value")
    changed = table.set_column(place, "value", [[0.5] * table.num_rows])
    sink = io.BytesIO()
    pq.write_table(changed, sink, compression="none", use_dictionary=False)
    return sink.getvalue()


def copied(folder: Path) -> Path:
    other = folder.with_name(f"{folder.name} copied")
    shutil.copytree(folder, other)
    return other


@pytest.mark.parametrize(
    "told",
    [
        {"largest_r_hat": "high"},
        {"fewest_effective_draws": [1]},
        {"sampler": 3},
        {"sampler": "x" * 301},
        {"draws": 10**400},
        {"draws": True},
        {"oracle": 1.0},
    ],
)
def test_a_part_with_diagnostics_that_none_can_have_is_computed_again(
    release: Path, tmp_path: Path, told: dict[str, Any]
) -> None:
    made, _ = in_parts(release, tmp_path / "made", CELLS)
    store = PublicationStore.open(tmp_path / "hostile")
    for file in made.files:
        table = pq.read_table(io.BytesIO(made.read(file.name)))
        part = json.loads(table.schema.metadata[b"part"])
        stated = json.dumps({**part, "diagnostics": told}, sort_keys=True)
        changed = table.replace_schema_metadata({**table.schema.metadata, b"part": stated.encode()})
        sink = io.BytesIO()
        pq.write_table(changed, sink)
        store.put_file(made.publication_id, file.name, sink.getvalue())
    publication, computed = in_parts(release, tmp_path / "hostile", CELLS)
    assert computed == [0, 1, 2]
    assert contents(publication) == contents(made)


def test_more_files_than_a_manifest_names_are_refused_before_any_is_made(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication_parts, "MOST_FILES", 5)
    with pytest.raises(UsageError, match="make 6 files, and a publication has at most 5"):
        in_parts(release, tmp_path, CELLS, draws=1)
    assert not list(tmp_path.rglob("*.parquet"))


def test_parts_of_what_where_keeps(release: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publication_parts, "cells_per_part", lambda _plan, _draws: 2)
        publication = publish(release, STATISTIC, draws=0, where={"day": "day 3"}, to=tmp_path)
    keys = [
        (row["shop"], row["day"]) for table in tables(publication, "summaries") for row in table.to_pylist()
    ]
    assert keys == [(shop, "day 3") for shop in range(1, SHOPS + 1)]
    assert len(publication.files) == 3


def test_progress_counts_cells_and_ends_with_all(release: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publication_parts, "cells_per_part", lambda _plan, _draws: CELLS)
        publish(release, STATISTIC, draws=0, to=tmp_path, progress=lambda done, of: told.append((done, of)))
    assert told == [(10, 30), (20, 30), (30, 30)]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"formats": ["csv", "parquet"]}, "in parts of at most 10 cells, as Parquet alone: leave csv out"),
        ({"formats": "card"}, "leave card out"),
        ({"cluster": "elsewhere"}, "^--cluster is threads, local, or the address"),
        ({"draws": -1}, "draws is an integer"),
        ({"draws": "many"}, "draws is an integer"),
        ({"where": {"shop": 99}}, "no cell of the release has shop=99"),
    ],
)
def test_what_cannot_be_published_in_parts_is_refused_before_anything_is_written(
    release: Path, tmp_path: Path, changes: dict[str, Any], rule: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publication_parts, "cells_per_part", lambda _plan, _draws: CELLS)
        with pytest.raises(UsageError, match=rule):
            publish(release, STATISTIC, **{"draws": 0, "to": tmp_path, **changes})
    assert not list(tmp_path.iterdir())


def test_streams_of_parts_are_their_own() -> None:
    first, second = (Streams(seed=5, place=(0, number)).draws().random(3) for number in (0, 1))
    assert not np.array_equal(first, second)


@pytest.mark.audit
@pytest.mark.timeout(1800)
def test_memory_does_not_grow_with_the_number_of_cells(tmp_path: Path) -> None:
    """Ten times the cells take at most a quarter more memory, reading the release included.

    Of few cells all parts are cut at once; of many, some are cut while others are computed.
    """
    peaks = []
    for shops in (1000, 10_000):
        store = tmp_path / str(shops)
        path = publish_many_cells(store, "bernoulli", shops, 100, np.random.default_rng(7))
        program = (
            "import resource, sys\n"
            "from suffice.publishing.publish import publish\n"
            f"publish(sys.argv[1], {STATISTIC!r}, draws=0)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        done = subprocess.run([sys.executable, "-c", program, path], check=True, stdout=subprocess.PIPE)
        peaks.append(int(done.stdout))
    assert peaks[1] < 1.25 * peaks[0] + 50_000
    assert peaks[1] < 1_000_000, "kilobytes"
