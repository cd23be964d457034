"""A rehearsal tries what a release does, reads no row, charges nothing, and leaves no release."""

from __future__ import annotations

import json
import re
import shlex
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import ReleaseMissingError, SpecError, StageFailedError, SufficeError
from suffice.pipeline.rows import sources
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.documents import document
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.manifest import checksum
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.release_store import open_store
from suffice.storage.signatures.signing import signed_message
from support.making import Workspace, flights, make_workspace, write_parts
from support.running import Runner, spec_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.rows.sources.contract import Split

STAGES = [
    "ledger",
    "store",
    "account",
    "signature",
    "spool",
    "cluster",
    "source",
    "reading",
    "drawing",
    "publishing",
]


def rehearse(workspace: Workspace, *, window: str = "all", keep: bool = False, **changes: Any) -> Any:
    return suffice.rehearse(
        workspace.spec(**changes), store=workspace.store, ledger=workspace.ledger, window=window, keep=keep
    )


def entries(ledger: str) -> list[str]:
    with open_ledger(ledger) as opened:
        return [entry.hash for entry in opened.entries()]


def left_over(workspace: Workspace) -> list[str]:
    """Return the files in the store and in the spool, but for the spool's own name."""
    places = [Path(workspace.store), Path(f"{workspace.ledger.removeprefix('sqlite:///')}.spool")]
    paths = [path for place in places for path in place.rglob("*") if path.is_file()]
    return [str(path) for path in paths if path.name != "spool.json"]


def test_every_stage_works_and_nothing_stays(
    tmp_path: Path, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUFFICE_SPOOL", str(tmp_path / "spool"))
    with create_ledger(ledger_url) as ledger:
        ledger.grant("passengers", epsilon=Fraction(3), reason="tests")
    workspace = Workspace(
        directory=tmp_path,
        data=write_parts(flights(), tmp_path / "data"),
        ledger=ledger_url,
        store=str(tmp_path / "releases"),
    )
    before = entries(ledger_url)
    told: list[str] = []
    done = suffice.rehearse(
        workspace.spec(), store=workspace.store, ledger=ledger_url, told=lambda stage: told.append(stage.name)
    )
    assert done.ok, done.failure
    assert told == [stage.name for stage in done.stages] == STAGES
    assert all(stage.tried for stage in done.stages)
    assert entries(ledger_url) == before
    assert workspace.charge() is None
    assert workspace.account().remaining == 3
    assert left_over(workspace) == []
    assert not [path for path in (tmp_path / "spool").rglob("*") if path.name != "spool.json"]
    assert workspace.run().status == "published", "a release goes on as if there had been no rehearsal"


def test_no_row_is_read(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that cannot be read do not matter, and only generated ones are asked for."""
    for path in workspace.data.iterdir():
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        content = bytearray(path.read_bytes())
        start, size = column.dictionary_page_offset or column.data_page_offset, column.total_compressed_size
        content[start : start + size] = b"\xff" * size
        path.write_bytes(bytes(content))
    read: list[str] = []
    honest = sources.read

    def noting(split: Split, columns: Sequence[str], block_rows: int, pages: Any = None) -> Iterator[Any]:
        read.append(split.kind)
        return honest(split, columns, block_rows, pages)

    monkeypatch.setattr(sources, "read", noting)
    assert rehearse(workspace).ok
    assert set(read) == {"generated"}
    with pytest.raises(StageFailedError):
        workspace.run()


def no_grant(_: Workspace) -> dict[str, Any]:
    return {"dataset": "nobody"}


def too_dear(_: Workspace) -> dict[str, Any]:
    return {"privacy": {"epsilon": "11", "neighboring": "add_or_remove_one", "unit": "row"}}


def other_relation(_: Workspace) -> dict[str, Any]:
    return {"privacy": {"epsilon": "1", "neighboring": "replace_one", "unit": "row"}}


def other_columns(_: Workspace) -> dict[str, Any]:
    return {"groups": {"gate": ["A", "B"]}}


def no_data(workspace: Workspace) -> dict[str, Any]:
    return {"source": workspace.directory / "nothing.parquet"}


def other_store(workspace: Workspace) -> dict[str, Any]:
    make_workspace(workspace.directory / "other").run()
    (workspace.directory / "other" / "releases").rename(workspace.store)
    return {}


def damaged_spool(workspace: Workspace) -> dict[str, Any]:
    spool = Path(f"{workspace.ledger.removeprefix('sqlite:///')}.spool")
    spool.mkdir(mode=0o700)
    (spool / "spool.json").write_text("{}")
    return {}


@pytest.mark.parametrize(
    ("stage", "breaking"),
    [
        ("account", no_grant),
        ("account", too_dear),
        ("account", other_relation),
        ("store", other_store),
        ("spool", damaged_spool),
        ("source", other_columns),
        ("source", no_data),
    ],
)
def test_it_fails_as_the_release_would(
    workspace: Workspace, stage: str, breaking: Callable[[Workspace], dict[str, Any]]
) -> None:
    """At that stage, with the same error; and nothing is left then either."""
    changes = breaking(workspace)
    before, files = entries(workspace.ledger), set(left_over(workspace))
    done = rehearse(workspace, **changes)
    assert [each.name for each in done.stages] == STAGES[: STAGES.index(stage) + 1]
    assert [each.name for each in done.stages if not each.tried] == [stage]
    assert entries(workspace.ledger) == before
    assert set(left_over(workspace)) == files
    with pytest.raises(SufficeError) as raised:
        workspace.run(**changes)
    assert type(done.failure) is type(raised.value)
    assert document(done)["error"]["exit_status"] == raised.value.exit_status
    if stage != "store":  # whose texts hold ids of the moment
        assert str(done.failure) == str(raised.value)


def test_a_refused_window_is_refused_before_anything_is_tried(workspace: Workspace) -> None:
    monthly = {"column": "day", "every": "month"}
    spec = workspace.spec(window=monthly)
    with pytest.raises(SpecError, match="has not ended"):
        suffice.rehearse(spec, store=workspace.store, ledger=workspace.ledger, window="2999-01")


@pytest.mark.parametrize(
    ("every", "window"), [("day", "2013-01-31"), ("week", "2013-W05"), ("month", "2013-01"), ("year", "2013")]
)
def test_every_kind_of_window_is_rehearsed(workspace: Workspace, every: str, window: str) -> None:
    spec = workspace.spec(window={"column": "day", "every": every})
    done = suffice.rehearse(spec, store=workspace.store, ledger=workspace.ledger, window=window)
    assert done.ok, done.failure
    assert done.window == window


def test_what_is_published_needs_no_budget(workspace: Workspace) -> None:
    workspace.run()
    done = rehearse(workspace)
    assert done.ok
    assert "would read nothing and charge nothing" in done.stages[STAGES.index("account")].tried


def test_what_is_kept_is_no_release(workspace: Workspace) -> None:
    published = workspace.run()
    done = rehearse(workspace, keep=True, name="again")
    assert done.kept is not None
    for refused in (suffice.open_release, verify_release):
        with pytest.raises(ReleaseMissingError, match="a rehearsal's, of generated rows"):
            refused(done.kept)
    store = open_store(workspace.store)
    assert [listed.release_id for listed in store.releases()] == [published.release.release_id]
    assert verify_store(store).ok
    with open_ledger(workspace.ledger) as ledger:
        assert compare_with_store(ledger, store).problems == ()
    with pytest.raises(ReleaseMissingError):
        store.find("again")


def test_the_mark_alone_is_what_readers_refuse(workspace: Workspace) -> None:
    """The rest of the manifest is as a release's, so that its being read is what was tried."""
    done = rehearse(workspace, keep=True)
    content = json.loads((Path(done.kept) / "manifest.json").read_bytes())
    assert content.pop("rehearsal") is True
    content["checksum"] = checksum(content)
    parse_manifest(canonical_json.encode(content))


def test_what_is_signed_is_no_release(
    workspace: Workspace, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signature covers the mark: without it, it is nobody's."""
    pytest.importorskip("cryptography")
    key = workspace.directory / "key.pem"
    suffice.text("keys", "new", "--out", str(key))
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(key))
    done = rehearse(workspace, keep=True)
    assert "signs with" in done.stages[STAGES.index("signature")].tried
    content = json.loads((Path(done.kept) / "manifest.json").read_bytes())
    assert content["signature"] is not None
    assert b'"rehearsal":true' in signed_message(content)


def test_the_command_says_what_was_tried(workspace: Workspace, suffice: Runner) -> None:
    spec = spec_file(workspace)
    assert "every stage works" in suffice.text("rehearse", spec)
    document = suffice.json("rehearse", spec)
    assert document["ok"] is True
    assert [stage["stage"] for stage in document["stages"]] == STAGES
    refused = spec_file(workspace, dataset="nobody")
    said = suffice.text("rehearse", refused, status=3)
    assert "failed" in said
    assert "nobody" in said
    document = suffice.json("rehearse", refused, status=3)
    assert document["error"]["stage"] == "account"
    assert document["error"]["exit_status"] == 3


def test_the_page_on_rehearsals_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffice: Runner
) -> None:
    """As it is written; and the table that it shows is what is printed, but for times."""
    page = (repository / "docs" / "how-to" / "rehearse.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    printed = []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(text, "rehearse.md", "exec"), {})  # noqa: S102 - our own text
        elif language == "yaml":
            Path("release.yaml").write_text(text, encoding="utf-8")
        else:
            printed += [suffice.text(*shlex.split(line)[1:]) for line in text.splitlines()]
    for line in printed[1].splitlines():
        stage, *said = re.split(r"\s{2,}", line.strip())
        if stage in STAGES:
            assert re.search(rf"^    {stage} +[\d.]+ +{re.escape(said[-1])}$", page, re.MULTILINE), line
    assert "already" not in printed[2]
    assert [line.split()[-3:] for line in printed[3].splitlines()[3:7]] == [
        line.split()[-3:] for line in page.splitlines() if re.match(r" {4}(origin|delay) ", line)
    ]


def test_a_sample_is_compared_with_the_spec(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    sample = tmp_path / "made-up.parquet"
    pq.write_table(pa.table({"carrier": ["UA", "??", None]}), sample)
    spec = spec_file(workspace)
    declared = ("--sample", str(sample), "--sample-is", "synthetic")
    done = suffice.json("rehearse", spec, *declared)
    assert done["sample"]["rows"] == 3
    assert {"column": "carrier", "use": "a key of carrier", "values": 2, "fit": 1} in done["sample"]["checks"]
    assert "origin" in done["unchecked_columns"]
    assert "carrier" not in done["unchecked_columns"]
    assert "declared synthetic: 3 rows" in suffice.text("rehearse", spec, *declared)
    assert "nobody has checked" in suffice.text("rehearse", spec)
    assert "carrier" in suffice.json("plan", spec)["unchecked_columns"]
    assert "--sample-is" in suffice.text("rehearse", spec, *declared[:2], status=2)
    assert "--sample-is" in suffice.text("rehearse", spec, *declared[2:], status=2)
    assert "--sample-is" in suffice.text("rehearse", spec, *declared[:3], "private", status=2)
