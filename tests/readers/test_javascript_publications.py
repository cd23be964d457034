"""The JavaScript reader reads publications: every number as Arrow reads it, and nothing that was changed."""

from __future__ import annotations

import copy
import hashlib
import io
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.data_files.tables import parquet_bytes
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.publishing.publish import publish
from suffice.storage.publications.publication import PublishedEntry, compose_publication, file_path
from suffice.storage.releases.manifest import checksum
from suffice.storage.signatures.signing import PUBLICATION, PUBLICATION_KEY, RELEASE, load_signer, new_keys
from support.javascript import read_publication, read_publications
from support.many_cells import STATISTIC, publish_many_cells
from support.publications import CREATED, request_of
from support.published import make_release
from support.publishing_in_parts import in_parts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from suffice.data_files.source import Provenance

PLAIN: dict[str, Any] = {"compression": "none", "use_dictionary": False, "data_page_version": "1.0"}


class _NoSource:
    """Stands for where a table comes from, which the reader does not look at."""

    def text(self) -> str:
        return "{}"


def written(table: pa.Table) -> bytes:
    """Return a table as publications write it."""
    source: Provenance = _NoSource()  # type: ignore[assignment]
    return parquet_bytes(table, source)


def make(folder: Path, tables: Mapping[str, tuple[str, bytes, int | None]], **changes: Any) -> Path:
    """Put a publication into a folder: files by name, each its role, content and rows."""
    folder.mkdir(parents=True)
    entries = []
    for name, (role, data, rows) in tables.items():
        sha256 = hashlib.sha256(data).hexdigest()
        entries.append(
            PublishedEntry.model_validate(
                {
                    "name": name,
                    "path": file_path(name, sha256),
                    "role": role,
                    "format": name.rsplit(".", 1)[1],
                    "size": len(data),
                    "sha256": sha256,
                    "rows": rows,
                }
            )
        )
        (folder / entries[-1].path).write_bytes(data)
    request = request_of(**changes.pop("request", {}))
    manifest = compose_publication(
        request,
        title="Posterior of cancelled",
        losses={
            release["release_id"]: PrivacyLoss.of_epsilon(Fraction(1)) for release in request["releases"]
        },
        files=entries,
        created=CREATED,
        **changes,
    )
    (folder / "manifest.json").write_bytes(manifest)
    return folder


def plain(values: list[Any]) -> list[Any]:
    """Write values as the reader's answers do, where JSON has no place for them."""
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return [names.get(str(value), value) if isinstance(value, float) else value for value in values]


def as_arrow_reads(data: bytes) -> dict[str, list[Any]]:
    table = pq.read_table(io.BytesIO(data))
    return {name: plain(table[name].to_pylist()) for name in table.column_names}


def drawn(publication: dict[str, Any], name: str) -> dict[str, list[Any]]:
    """Return columns of draws; JavaScript writes doubles up to 1e21 in the digits of whole numbers."""
    return {
        column: [float(value) if type(value) is int else value for value in part["values"]]
        for column, part in publication["draws"][name].items()
    }


def test_summaries_and_draws_are_arrows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two statistics, keys that are hostile text, a signature."""
    new_keys(tmp_path / "key")
    new_keys(tmp_path / "other")
    monkeypatch.setenv(PUBLICATION_KEY, str(tmp_path / "key"))
    statistics = ["flag", "kind"]
    made = publish(
        make_release(tmp_path / "releases"),
        statistics,
        draws=30,
        formats=("parquet", "csv", "json"),
        to=tmp_path,
    )
    folder = tmp_path / "publications" / made.publication_id
    public, other = ((tmp_path / f"{name}.pub").read_text() for name in ("key", "other"))
    kept: list[dict[str, Any]] = [{"publicKeys": [other, public]}, {"publicationId": made.publication_id}]
    refused: list[tuple[dict[str, Any], str]] = [
        ({"publicKeys": [other]}, "signature"),
        ({"publicKeys": []}, "signature"),
        ({"publicationId": "0" * 32}, "manifest"),
        ({"names": ["nothing"]}, "usage"),
    ]
    publication, unchecked, *others = read_publications(
        [(folder, options) for options in (*kept, *(options for options, _ in refused))]
    )
    assert [each["code"] for each in others] == [code for _, code in refused]
    assert (publication["signature"], unchecked["signature"]) == ("checked", "not_checked")
    assert publication["publicationId"] == made.publication_id
    assert publication["sizes"] == {file.name: file.size for file in made.files}
    assert list(publication["summaries"]) == list(publication["draws"]) == statistics
    for name in statistics:
        assert publication["summaries"][name] == as_arrow_reads(made.read(f"{name}-summaries.parquet"))
        assert drawn(publication, name) == as_arrow_reads(made.read(f"{name}-draws.parquet"))
        kinds = {column: part["kind"] for column, part in publication["draws"][name].items()}
        assert kinds["value"] == kinds["month"] == "Float64Array"
        assert kinds["place"] == "Array"


def test_parts_are_read_as_one_table(tmp_path: Path) -> None:
    release = publish_many_cells(tmp_path / "store", "bernoulli", 6, 5, np.random.default_rng(7))
    made, computed = in_parts(release, tmp_path / "to", 10, draws=7)
    assert len(computed) == 3
    publication = read_publication(tmp_path / "to" / "publications" / made.publication_id)
    for what, columns in (
        ("summaries", publication["summaries"][STATISTIC]),
        ("draws", drawn(publication, STATISTIC)),
    ):
        parts = sorted(file.name for file in made.files if f"-{what}-" in file.name)
        tables = [pq.read_table(io.BytesIO(made.read(name))) for name in parts]
        assert len(tables) == 3
        assert columns == pa.concat_tables(tables).to_pydict()


def test_every_value_that_may_stand_in_a_table_is_arrows(tmp_path: Path) -> None:
    """Missing values in runs and alone, pages and groups of rows, ends of types, names of objects."""
    rng = np.random.default_rng(7)
    n = 5000
    alone, runs = rng.random(n) < 0.3, np.arange(n) // 700 % 2 == 0
    columns = {
        "__proto__": pa.array([f"<é\U0001f600{i % 7}>" for i in range(n)], mask=alone),
        "": pa.array([["", "\ufeffa", "b" * 300][i // 9 % 3] for i in range(n)], mask=runs),
        "whole": pa.array(rng.integers(-(2**53) + 1, 2**53, n)),
        "missing": pa.array(rng.integers(-9, 9, n), mask=alone),
        "double": pa.array(rng.normal(size=n) * 10.0 ** rng.integers(-320, 300, n)),
        "none": pa.array([None] * n, pa.string()),
        "truth": pa.array(rng.random(n) < 0.5, mask=runs),
        "odd": pa.array([[None, float("nan"), float("inf"), -float("inf"), 5e-324][i % 5] for i in range(n)]),
    }
    table = pa.table(columns)
    in_groups = io.BytesIO()
    pq.write_table(table, in_groups, row_group_size=1111, data_page_size=900, write_batch_size=64, **PLAIN)
    empty, huge = table.slice(0, 0), pa.table({"huge": pa.array([2**63 - 1, -(2**63), 3])})
    required = pa.table({"a": [1.5, 2.5]}).cast(pa.schema([pa.field("a", pa.float64(), nullable=False)]))
    made = {"one": table, "grouped": table, "empty": empty, "huge": huge, "required": required}
    contents = {name: written(content) for name, content in made.items()} | {"grouped": in_groups.getvalue()}
    files = {
        f"{name}-draws.parquet": ("draws", contents[name], content.num_rows) for name, content in made.items()
    }
    publication = read_publication(make(tmp_path / "made", files))
    for name, data in contents.items():
        expected = as_arrow_reads(data)
        if name == "huge":
            expected = {"huge": [str(value) for value in expected["huge"]]}
        assert drawn(publication, name) == expected, name
    kinds = {column: part["kind"] for column, part in publication["draws"]["one"].items()}
    assert kinds["whole"] == kinds["double"] == "Float64Array"
    assert kinds["missing"] == "Array"


def test_other_forms_of_parquet_are_refused_by_name(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2.0, 2.0] * 50, "b": ["x", "y", "y"] * 50})
    settings: dict[str, tuple[pa.Table, dict[str, Any]]] = {
        "compressed": (table, {"compression": "snappy"}),
        "dictionary": (table, {"use_dictionary": True}),
        "version": (table, {"data_page_version": "2.0"}),
        "narrow": (table.set_column(0, "a", pa.array([1] * 150, pa.int32())), {}),
        "nested": (table.set_column(0, "a", pa.array([[1.0]] * 150)), {}),
        "delta": (table, {"column_encoding": {"a": "BYTE_STREAM_SPLIT", "b": "DELTA_BYTE_ARRAY"}}),
        "rows": (table.slice(1), {}),
        "plain": (table, {}),
    }
    asked: list[tuple[Path, dict[str, Any]]] = []
    for name, (code, given) in settings.items():
        sink = io.BytesIO()
        pq.write_table(code, sink, **{**PLAIN, **given})
        asked.append((make(tmp_path / name, {"a-draws.parquet": ("draws", sink.getvalue(), 150)}), {}))
    asked.append((make(tmp_path / "none", {"a-draws.parquet": ("draws", b"no table", 150)}), {}))
    *refused, read, none = read_publications(asked)
    assert [answer.get("code") for answer in (*refused, none)] == ["file"] * 8
    assert drawn(read, "a") == table.to_pydict()


@pytest.mark.slow
def test_damaged_tables_end_in_one_kind_of_error(tmp_path: Path) -> None:
    """Whatever bit changes, every hash made right again: a table of the stated rows, or a refusal."""
    rng = np.random.default_rng(7)
    data = written(pa.table({"place": ["a", None, "c"], "whole": [1, 2, None], "value": [0.5, None, 2.5]}))
    asked: list[tuple[Path, dict[str, Any]]] = []
    for number, place in enumerate([*range(0, len(data), 9), *range(len(data) - 9, len(data))]):
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        files = {"a-draws.parquet": ("draws", bytes(damaged), 3)}
        asked.append((make(tmp_path / str(number), files), {}))
    answers = read_publications(asked)
    assert {answer.get("code") for answer in answers} <= {None, "file"}
    assert sum("code" in answer for answer in answers) > len(answers) / 4
    rows = [
        len(part["values"])
        for answer in answers
        if "draws" in answer
        for part in answer["draws"]["a"].values()
    ]
    assert set(rows) == {3}


PLACES: tuple[tuple[tuple[str | int, ...], Any], ...] = (
    (("format_version",), 2),
    (("publication_id",), "0" * 32),
    (("request", "draws"), 1001),
    (("request", "kind"), "<b>"),
    (("request", "algorithm"), 0),
    (("request", "releases"), []),
    (("request", "releases", 0, "label"), "a\nb"),
    (("request", "releases", 0, "uri"), "s3://x"),
    (("title",), ""),
    (("title",), "a\u2028b"),
    (("created",), "2026-01-31T08:15Z"),
    (("epsilon",), {}),
    (("epsilon", "0" * 16), "1"),
    (("epsilon", "ab" * 8), "1e9"),
    (("cost",), "1"),
    (("diagnostics",), {"a": 1}),
    (("files",), []),
    (("files", 0, "name"), "other.parquet"),
    (("files", 0, "path"), "../../x"),
    (("files", 0, "role"), "release"),
    (("files", 0, "format"), "PARQUET"),
    (("files", 0, "size"), 0),
    (("files", 0, "size"), 2**30 + 1),
    (("files", 0, "sha256"), "0" * 64),
    (("files", 0, "rows"), -1),
    (("versions",), {"a b": "1"}),
    (("signature",), "none"),
    (("more",), 1),
)


def sealed(document: dict[str, Any], *, request: bool) -> bytes:
    """Return a manifest whose checksum is right, and its id too where the request is meant."""
    if request:
        digest = hashlib.sha256(canonical_json.encode(document["request"])).hexdigest()
        document["publication_id"] = digest[:32]
    document["checksum"] = checksum(document)
    return canonical_json.encode(document)


def test_manifests_that_contradict_themselves_are_refused(tmp_path: Path) -> None:
    files = {"a-draws.parquet": ("draws", written(pa.table({"value": [1.0]})), 1)}
    directory = make(tmp_path / "made", files)
    document = json.loads((directory / "manifest.json").read_bytes())
    (entry,) = document["files"]
    data = (directory / entry["path"]).read_bytes()
    asked: list[tuple[Path, dict[str, Any]]] = []

    def ask(manifest: bytes, content: bytes | None = data) -> None:
        folder = tmp_path / str(len(asked))
        folder.mkdir()
        (folder / "manifest.json").write_bytes(manifest)
        if content is not None:
            (folder / entry["path"]).write_bytes(content)
        asked.append((folder, {}))

    for path, value in PLACES:
        changed = copy.deepcopy(document)
        place: Any = changed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        ask(sealed(changed, request=path[0] == "request" and path[-1] != "draws"))
    fields = [field for field in document if field != "checksum"]
    for field in fields:
        ask(sealed({key: value for key, value in document.items() if key != field}, request=False))
    whole = canonical_json.encode(document)
    ask(whole.replace(b'"cost"', b' "cost"'))
    ask(whole.replace(b"Posterior of", b"Posterior if"))
    ask(sealed({**document, "files": [entry, entry]}, request=False))
    ask(b"")
    manifests = len(asked)
    for content in (None, data[:-1], data + b"x", bytes([data[0] ^ 1]) + data[1:]):
        ask(whole, content)
    ask(whole)
    *refused, kept = read_publications(asked)
    assert drawn(kept, "a") == {"value": [1.0]}
    codes = [answer.get("code") for answer in refused]
    places = [*(path for path, _ in PLACES), *fields]
    wrong = [(i, code) for i, code in enumerate(codes[:manifests]) if code != "manifest"]
    assert not wrong, [(places[i : i + 1], code) for i, code in wrong]
    assert codes[manifests:] == ["file"] * 4
    assert all(0 < len(answer["message"]) <= 500 for answer in refused)


def test_what_was_signed_as_a_release_is_no_signature_of_a_publication(tmp_path: Path) -> None:
    new_keys(tmp_path / "key")
    signer = load_signer(tmp_path / "key")
    demanded = {"publicKeys": [(tmp_path / "key.pub").read_text()]}
    files = {"a.json": ("card", b"{}", None)}
    content = json.loads((make(tmp_path / "none", files) / "manifest.json").read_bytes())
    for kind in (PUBLICATION, RELEASE):
        folder = make(tmp_path / kind.name, files)
        signed = canonical_json.encode({**content, "signature": signer.sign(content, kind)})
        (folder / "manifest.json").write_bytes(signed)
    right, of_release, unsigned, undemanded = read_publications(
        [(tmp_path / name, demanded) for name in ("publication", "release", "none")]
        + [(tmp_path / "none", {})]
    )
    assert right["signature"] == "checked"
    assert of_release["code"] == unsigned["code"] == "signature"
    assert undemanded["signature"] == "unsigned"
