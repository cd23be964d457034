"""A kind of source of the test's own: one declaration and one reader, and it is released like any other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import pytest

from suffice.errors import InputNotVerifiedError, SpecError, StageFailedError, UsageError
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources import SOURCES
from suffice.pipeline.rows.sources.contract import PartSchema, Pin, Split
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.source_specs import SOURCE_SPECS, SourceSpec
from support.making import flights, make_workspace, mapping
from support.splits import splits_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from support.making import Workspace

TABLES: dict[str, pa.Table] = {}


class TableSpec(SourceSpec):
    kind: ClassVar[str] = "table"

    table: str
    version: str = "newest"

    def address(self, directory: Path) -> str:  # noqa: ARG002 - it stands nowhere
        return f"table:{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    name: str
    start: int = field(repr=False)
    n_rows: int = field(repr=False)


class TableSource:
    """Rows in this process's memory, in splits of fifty."""

    KIND = TableSpec.kind

    def pin(
        self,
        spec: Spec,
        window: str = "all",  # noqa: ARG002 - the protocol's
        contract: DataContract | None = None,  # noqa: ARG002 - its columns are a catalogue's
    ) -> Pin:
        assert isinstance(spec.source, TableSpec)
        name = spec.source.table
        if name not in TABLES:
            message = f"source.table: no table {name}"
            raise UsageError(message)
        public = {"kind": self.KIND, "address": spec.source_address}
        return Pin(kind=self.KIND, public=public, private=(name, TABLES[name]))

    def schema(self, pin: Pin) -> tuple[PartSchema, ...]:
        name, table = pin.private
        return (PartSchema(part=name, columns=table.schema),)

    def splits(self, pin: Pin) -> tuple[Split, ...]:
        name, table = pin.private
        slices = [
            Slice(name=name, start=start, n_rows=min(50, table.num_rows - start))
            for start in range(0, table.num_rows, 50)
        ]
        return tuple(Split.of(self.KIND, [piece]) for piece in slices)

    def read(self, split: Split, columns: Sequence[str], block_rows: int) -> Iterator[pa.RecordBatch]:
        for piece in split.pieces:
            rows = TABLES[piece.name].select(list(columns)).slice(piece.start, piece.n_rows)
            yield from rows.combine_chunks().to_batches(max_chunksize=block_rows)

    def verify(self, pin: Pin, checksums: str) -> None:
        del checksums
        message = f"source.table: {pin.private[0]} has no files, and the account demands checksums of them"
        raise InputNotVerifiedError(message)

    def check(self, pin: Pin) -> None:
        name, table = pin.private
        if TABLES.get(name) is not table:
            message = f"the table {name} has changed"
            raise StageFailedError("reading", message)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCE_SPECS, TableSpec.kind, TableSpec)
    monkeypatch.setitem(SOURCES, TableSpec.kind, TableSource())
    monkeypatch.setitem(TABLES, "flights", flights())


def test_its_sums_are_those_of_the_same_rows_in_parquet(workspace: Workspace) -> None:
    spec = load_spec(mapping({"table": "flights"}))
    with open_cluster_for_sums("threads") as cluster:
        ours, theirs = (
            to_python(exact_sums(chunk_job(each), splits_of(each), cluster).open_totals())
            for each in (spec, workspace.spec())
        )
    assert ours.keys() == theirs.keys()
    assert all(sums.tolist() == theirs[name].tolist() for name, sums in ours.items())
    assert spec.plan_hash() == workspace.spec().plan_hash()


def test_it_is_released_like_any_other(workspace: Workspace) -> None:
    outcome = workspace.run(source={"table": "flights"})
    assert outcome.status == "published"
    assert workspace.run(source={"table": "flights"}).status == "already_published"


def test_a_public_number_of_rows_is_that_of_its_splits(tmp_path: Path) -> None:
    privacy = {"epsilon": "1", "neighboring": "replace_one", "unit": "row"}
    workspace = make_workspace(tmp_path, neighboring="replace_one")
    outcome = workspace.run(source={"table": "flights"}, groups=None, privacy=privacy)
    assert outcome.release.public_n == flights().num_rows


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"table": "flights", "sheet": "1"}, r"source\.sheet: unknown key \(known keys: table, version\)"),
        ({"table": ["a"]}, r"source\.table: "),
        ({"version": "3"}, r"source: a source names its kind by a key: parquet, .*, table"),
        ({"sql": "a"}, r"source: a source names its kind by a key: parquet, "),
    ],
)
def test_what_is_wrong_with_its_entry_is_said(entry: dict[str, str], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load_spec(mapping(entry))


def test_what_is_not_there_is_refused_before_anything_is_charged(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match=r"source\.table: no table trains"):
        workspace.run(source={"table": "trains"})
    assert workspace.charge() is None


def test_a_kind_that_is_registered_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    class SqlSpec(SourceSpec):
        kind: ClassVar[str] = "sql"

        sql: str

    monkeypatch.setitem(SOURCE_SPECS, "sql", SqlSpec)
    assert isinstance(load_spec(mapping({"sql": "flights"})).source, SqlSpec)
