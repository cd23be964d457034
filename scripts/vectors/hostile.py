"""Make the hostile test vectors: each one thing wrong, and every hash around it made right again."""

# ruff: noqa: E501 - cases stand in tables, a line each

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import hashlib
import io
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scripts.vectors.releases import written
from suffice.pipeline.declaration import canonical_json
from suffice.pipeline.declaration.exact_numbers import format_number
from suffice.pipeline.statistics.sample_plan import LARGEST_RANGE, LARGEST_SAMPLE_SCALE, smallest_scale
from suffice.storage.releases.manifest import checksum, rehearsal_manifest, tombstone
from suffice.storage.releases.withdrawal import WITHDRAWN, compose_withdrawal
from suffice.storage.signatures import ed25519
from suffice.storage.signatures.keys import PublicKey
from suffice.storage.signatures.signing import Signer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scripts.vectors.releases import MadeRelease

    Content = dict[str, Any]
    Files = dict[str, bytes]

READER, RECOMPUTATION, SIGNATURE = "reader", "recomputation", "signature"
"""Who refuses: every reader; one that compiles the plan, or demands a signature; one that demands it."""

_WRITER: dict[str, Any] = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "none",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One hostile release: its files by name, and why it has to be refused."""

    name: str
    reason: str
    check: str
    files: Files
    refused_by: str = READER


def write_hostile(root: Path, made: dict[str, MadeRelease], signer: Signer) -> None:
    """Write every hostile vector, and ``hostile.json``."""
    found = [
        *_damaged(made["one-cell"]),
        *_text_of_manifests(made["one-cell"]),
        *_fields(made["first-families"], made["window"], made["amendment"]),
        *_parquet(made["first-families"], made["saturated"]),
        *_samples(made["samples"]),
        *_signatures(made["first-families"], signer),
        *_no_releases(made["one-cell"], signer),
    ]
    index = []
    for one in found:
        directory = root / "hostile" / one.name
        directory.mkdir(parents=True)
        for name, data in one.files.items():
            (directory / name).write_bytes(data)
        index.append({field: getattr(one, field) for field in ("name", "reason", "check", "refused_by")})
    (root / "hostile.json").write_bytes(written({"hostile": index}))


def sealed(content: Content, *, keep_signature: bool = False) -> bytes:
    """Write a manifest with whatever content: its checksum right, and its signature gone."""
    changed = {**content, "signature": content["signature"] if keep_signature else None}
    blank = {**changed, "checksum": None, "signature": None}
    changed["checksum"] = hashlib.sha256(_encode(blank)).hexdigest()
    return _encode(changed)


def _encode(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _content(made: MadeRelease) -> Content:
    content: Content = json.loads(made.manifest)
    return content


def _changed(made: MadeRelease, change: Callable[[Content], None], *, keep_signature: bool = False) -> Files:
    """Return a release whose manifest was changed and sealed again."""
    content = copy.deepcopy(_content(made))
    change(content)
    return {**made.files, "manifest.json": sealed(content, keep_signature=keep_signature)}


def _with_file(made: MadeRelease, statistic: str, data: bytes) -> Files:
    """Return a release with another data file, to which its manifest agrees."""
    path = f"{statistic}.parquet"

    def change(content: Content) -> None:
        (entry,) = (entry for entry in content["files"] if entry["path"] == path)
        entry["size"], entry["sha256"] = len(data), hashlib.sha256(data).hexdigest()

    return {**_changed(made, change), path: data}


def _damaged(made: MadeRelease) -> list[Hostile]:
    """Return releases to whose manifest a file does not agree."""
    path = "cancelled.parquet"
    data = made.files[path]
    flipped = data[:200] + bytes([data[200] ^ 1]) + data[201:]
    whole = {**made.files, "manifest.json": made.manifest}
    changes = {
        "file-missing": ("its data file is missing", {"manifest.json": made.manifest}),
        "file-changed": ("one bit of its data file was changed", {**whole, path: flipped}),
        "file-truncated": ("the last byte of its data file is missing", {**whole, path: data[:-1]}),
        "file-longer": ("a byte follows its data file", {**whole, path: data + b"\0"}),
    }
    return [
        Hostile(name=name, reason=reason, check="files", files=files)
        for name, (reason, files) in changes.items()
    ]


def _text_of_manifests(made: MadeRelease) -> list[Hostile]:
    """Return manifests whose bytes are not canonical; where they can have a checksum, it is right."""
    text = made.manifest.decode()
    content = _content(made)
    floats = {**content, "cells": 1.0}
    escaped = text.replace('"name":"one-cell"', '"name":"\\u006fne-cell"')
    twice = text.replace('"name":"one-cell"', '"name":"one-cell","name":"one-cell"', 1)
    order = dict(sorted(content.items(), reverse=True))
    texts = {
        "json-space": ("a space follows a comma", text.replace(',"', ', "', 1)),
        "json-newline": ("a line feed follows it", text + "\n"),
        "json-byte-order-mark": ("it begins with a byte order mark", "\ufeff" + text),
        "json-duplicate-key": ("a key stands twice", twice),
        "json-escape": ("a letter is escaped", escaped),
        "json-key-order": ("its keys are not sorted", json.dumps(order, separators=(",", ":"))),
        "json-float": ("a count is written as 1.0", sealed(floats).decode()),
        "json-exponent": ("a count is written as 1e0", text.replace('"cells":1,', '"cells":1e0,')),
        "json-huge-number": (
            "a count has 5,000 digits",
            text.replace('"drawing_sequence":3,', f'"drawing_sequence":{"9" * 5000},'),
        ),
        "json-number-beyond-2-53": (
            "an integer is 2^53: no reader may round it",
            sealed({**content, "drawing_sequence": 2**53}).decode(),
        ),
        "json-nested": ("it is nested 20,000 deep", '{"a":' * 20_000 + "1" + "}" * 20_000),
        "json-cut-off": ("its second half is missing", text[: len(text) // 2]),
        "json-array": ("it is an array", f"[{text}]"),
        "json-empty": ("it is empty", ""),
    }
    not_utf8 = made.manifest.replace(b"one-cell", b"one-\xff\xfeel", 1)
    return [
        *(
            Hostile(
                name=name,
                reason=reason,
                check="canonical JSON",
                files={**made.files, "manifest.json": text.encode()},
            )
            for name, (reason, text) in texts.items()
        ),
        Hostile(
            name="json-not-utf-8",
            reason="it is not UTF-8",
            check="canonical JSON",
            files={**made.files, "manifest.json": not_utf8},
        ),
        Hostile(
            name="checksum",
            reason="the hour of its creation was changed, and its checksum was not",
            check="checksum",
            files={
                **made.files,
                "manifest.json": made.manifest.replace(b"2026-01-31T08Z", b"2026-01-31T09Z"),
            },
        ),
    ]


def _statistic(content: Content, name: str) -> Content:
    (found,) = (entry for entry in content["statistics"] if entry["name"] == name)
    return found  # type: ignore[no-any-return]


def _fields(made: MadeRelease, window: MadeRelease, amendment: MadeRelease) -> list[Hostile]:
    """Return manifests in which a field is wrong; their checksums are right."""
    name = "cancelled"

    def put(key: str, value: object) -> Callable[[Content], None]:
        return lambda content: content.update({key: value})

    def of(key: str, value: object) -> Callable[[Content], None]:
        return lambda content: _statistic(content, name).update({key: value})

    def of_file(key: str, value: object) -> Callable[[Content], None]:
        return lambda content: content["files"][0].update({key: value})

    def plan(content: Content) -> None:
        content["plan"]["max_total_rows"] = "1000"

    def plan_and_hash(content: Content) -> None:
        plan(content)
        content["plan_hash"] = hashlib.sha256(_encode(content["plan"])).hexdigest()

    def coefficients(content: Content) -> None:
        quantity = next(one for one in _statistic(content, name)["quantities"] if one["name"] == "total")
        quantity["coefficients"] = {"true": "2"}

    def removed(content: Content) -> None:
        del content["input_verified"]

    def swapped(content: Content) -> None:
        content["files"][0], content["files"][1] = content["files"][1], content["files"][0]

    first = {
        "format-2": ("format_version", "format version 2", put("format_version", 2), READER),
        "format-text": ("format_version", "format version as text", put("format_version", "1"), READER),
        "field-unknown": ("fields", "a field that the format lacks", put("note", "hello"), READER),
        "field-missing": ("fields", "a field is missing", removed, READER),
        "release-id": ("fields", "a release id in capitals", put("release_id", "ABCDEF0123456789"), READER),
        "scale-too-small": ("noise", "less noise than epsilon and sensitivity ask for", of("scale", "1"), READER),
        "scale-zero": ("noise", "a scale of 0", of("scale", "0"), READER),
        "scale-not-exact": ("noise", "a scale that is no exact number", of("scale", "2.5e0"), READER),
        "mechanism-unknown": ("noise", "a mechanism that the format does not know", of("mechanism", "gaussian"), READER),
        "epsilon-split": ("noise", "parts of epsilon add up to more than the whole", of("epsilon", "1.9"), READER),
        "epsilon-negative": ("noise", "a negative epsilon", of("epsilon", "-0.4"), READER),
        "cells": ("shape", "more cells than its groups have keys", put("cells", 4), READER),
        "component-twice": ("shape", "a component stands twice", of("components", ["true", "true"]), READER),
        "rows": ("shape", "a file with more rows than cells times components", of_file("rows", 7), READER),
        "file-size": ("files", "a file of another size", of_file("size", 10**9), READER),
        "path-above": ("paths", "a file in the folder above", of_file("path", "../cancelled.parquet"), READER),
        "path-absolute": ("paths", "a file at an absolute path", of_file("path", "/etc/hostname"), READER),
        "path-url": ("paths", "a file at another host", of_file("path", "https://example.org/a"), READER),
        "path-other": ("paths", "another statistic's file", of_file("path", "delay.parquet"), READER),
        "files-swapped": ("files", "its files are not in the order of its statistics", swapped, READER),
        "n-private": ("fields", "a number of records where it is private", put("n", 100), READER),
        "plan-hash": ("plan", "a plan with another hash", plan, READER),
        "plan": ("plan", "another plan, its hash made right", plan_and_hash, RECOMPUTATION),
        "sensitivity": ("plan", "a larger sensitivity and scale than follow from the plan", _louder, RECOMPUTATION),
        "coefficients": ("plan", "a total counted twice", coefficients, RECOMPUTATION),
        "family": ("plan", "another family", of("family", "binomial"), RECOMPUTATION),
        "dataset": ("plan", "another data set", put("dataset", "others"), RECOMPUTATION),
        "keys": ("plan", "keys of a group that the plan lacks", _other_keys, RECOMPUTATION),
    }  # fmt: skip
    found = [
        Hostile(
            name=f"manifest-{key}",
            reason=reason,
            check=check,
            refused_by=by,
            files=_changed(made, change, keep_signature=by == RECOMPUTATION),
        )
        for key, (check, reason, change, by) in first.items()
    ]
    of_window = {
        "manifest-window": ("a window with no such day", window, put("window", "2013-01-32")),
        "manifest-window-other": ("a window of another length", window, put("window", "2013")),
        "manifest-amends-itself": (
            "an amendment of itself",
            amendment,
            lambda content: content["amends"].update(release_id=content["release_id"]),
        ),
    }
    return [
        *found,
        *(
            Hostile(name=key, reason=reason, check="window", files=_changed(of, change))
            for key, (reason, of, change) in of_window.items()
        ),
    ]


def _louder(content: Content) -> None:
    entry = _statistic(content, "cancelled")
    entry["l1_sensitivity"] = str(2 * int(entry["l1_sensitivity"]))
    entry["scale"] = str(2 * float(entry["scale"])).removesuffix(".0")


def _other_keys(content: Content) -> None:
    content["groups"][0]["keys"] = ["EWR", "JFK", "SFO"]


def _parquet(made: MadeRelease, saturated: MadeRelease) -> list[Hostile]:
    """Return data files that are no files of the format; size and SHA-256 in the manifest are theirs."""
    data = made.files["cancelled.parquet"]
    table = pq.read_table(io.BytesIO(data))
    required = pa.schema([_nullable(field, nullable=False) for field in table.schema])
    table = table.cast(required)
    n_rows = table.num_rows

    def column(name: str, values: pa.Array) -> pa.Table:
        position = table.schema.get_field_index(name)
        return table.set_column(position, pa.field(name, values.type, nullable=False), values)

    values = table["value"].to_pylist()
    plus_one = pa.array([values[0] + 1, *values[1:]], pa.int64())
    nullable = table.cast(pa.schema([_nullable(field, nullable=True) for field in table.schema]))
    footer = int.from_bytes(data[-8:-4], "little")
    end = len(data) - 8 - footer
    again = data[end:]
    cases: dict[str, tuple[str, bytes]] = {
        "compressed": ("its pages are compressed", _parquet_bytes(table, compression="snappy")),
        "compressed-zstd": ("its pages are compressed by zstd", _parquet_bytes(table, compression="zstd")),
        "dictionary": ("its values stand in a dictionary", _parquet_bytes(table, use_dictionary=True)),
        "delta": (
            "its integers are differences",
            _parquet_bytes(table, column_encoding={"value": "DELTA_BINARY_PACKED"}),
        ),
        "split-bytes": (
            "the bytes of its numbers are split",
            _parquet_bytes(table, column_encoding={"estimate": "BYTE_STREAM_SPLIT"}),
        ),
        "pages-2": ("its pages are of version 2", _parquet_bytes(table, data_page_version="2.0")),
        "page-checksums": ("its pages have checksums", _parquet_bytes(table, write_page_checksum=True)),
        "statistics": ("its columns have statistics", _parquet_bytes(table, write_statistics=True)),
        "row-groups": ("its rows stand in two row groups", _parquet_bytes(table, row_group_size=n_rows // 2)),
        "nullable": ("its columns may hold nulls", _parquet_bytes(nullable)),
        "schema-embedded": ("it holds an Arrow schema", _parquet_bytes(table, store_schema=True)),
        "int32": ("its values have 32 bits", _parquet_bytes(column("value", table["value"].cast(pa.int32())))),
        "columns-swapped": ("two columns changed places", _parquet_bytes(table.select([0, 2, 1, 3]))),
        "column-more": (
            "it has a column more",
            _parquet_bytes(
                table.append_column(pa.field("exact", pa.int64(), nullable=False), table["value"])
            ),
        ),
        "column-renamed": (
            "a column has another name",
            _parquet_bytes(table.rename_columns(["origin", "component", "count", "estimate"])),
        ),
        "column-less": ("it has no estimates", _parquet_bytes(table.select([0, 1, 2]))),
        "row-more": ("its last row stands twice", _parquet_bytes(pa.concat_tables([table, table.slice(n_rows - 1)]))),
        "row-less": ("its last row is missing", _parquet_bytes(table.slice(0, n_rows - 1))),
        "rows-swapped": ("its rows are in reverse order", _parquet_bytes(table.take(list(range(n_rows))[::-1]))),
        "key": (
            "a key that the plan lacks",
            _parquet_bytes(column("origin", pa.array(["SFO", *table["origin"].to_pylist()[1:]]))),
        ),
        "component": (
            "components in another order",
            _parquet_bytes(column("component", pa.array(["true", "false"] * (n_rows // 2)))),
        ),
        "estimate": ("an estimate does not follow from its value", _parquet_bytes(column("value", plus_one))),
        "trailing": ("four bytes follow its end", data + b"PAR1"),
        "two-footers": ("a second footer follows the first", data + again),
        "bytes-between": ("bytes of no column stand before the footer", data[:end] + bytes(16) + again),
        "footer-too-long": (
            "its footer claims 2 GiB",
            data[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
        ),
        "magic": ("it does not begin as Parquet does", b"PARE" + data[4:]),
        "cut-off": ("its second half is missing", data[: len(data) // 2]),
        "empty": ("it is empty", b""),
    }  # fmt: skip
    found = [
        Hostile(
            name=f"parquet-{key}",
            reason=reason,
            check="data file" if changed else "files",
            files=_with_file(made, "cancelled", changed),
        )
        for key, (reason, changed) in cases.items()
    ]
    wide = saturated.files["delay.parquet"]
    lowest = (1 - 10**38).to_bytes(16, "big", signed=True)
    beyond = wide.replace(lowest, (-(10**38)).to_bytes(16, "big", signed=True), 1)
    found.append(
        Hostile(
            name="parquet-beyond-38-digits",
            reason="a value has 39 digits: it lies beyond the end of its type",
            check="data file",
            files=_with_file(saturated, "delay", beyond),
        )
    )
    return found


def _nullable(field: pa.Field, *, nullable: bool) -> pa.Field:
    return field.with_nullable(nullable)


def _parquet_bytes(table: pa.Table, *, row_group_size: int | None = None, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_size, **{**_WRITER, **options})
    return sink.getvalue()


def _samples(made: MadeRelease) -> list[Hostile]:
    """Return samples that the format does not know, or that cost more than they state."""
    name = "cancelled_drawn"
    table = pq.read_table(io.BytesIO(made.files[f"{name}.parquet"]))
    table = table.cast(pa.schema([_nullable(field, nullable=False) for field in table.schema]))

    def with_first(column: str, value: int) -> bytes:
        values = pa.array([value, *table[column].to_pylist()[1:]], pa.int64())
        field = pa.field(column, pa.int64(), nullable=False)
        return _parquet_bytes(table.set_column(table.schema.get_field_index(column), field, values))

    def of(**changes: object) -> Callable[[Content], None]:
        return lambda content: _statistic(content, name).update(changes)

    def hotter(content: Content) -> None:
        scale = 2 * int(_statistic(content, name)["scale"])
        _statistic(content, name).update(scale=str(scale), temperature=_exact_temperature(scale))

    def understated(content: Content) -> None:
        entry = _statistic(content, name)
        scale = int(entry["scale"]) // 2 + 1
        smaller = str(int(entry["range_sensitivity"]) // 2)
        entry.update(range_sensitivity=smaller, scale=str(scale), temperature=_exact_temperature(scale))

    def too_large(content: Content) -> None:
        largest, entry = LARGEST_RANGE + 2, _statistic(content, name)
        scale = smallest_scale(largest, entry["draws"], Fraction(entry["epsilon"]))
        entry.update(range_sensitivity=str(largest), scale=str(scale), temperature=_exact_temperature(scale))

    def too_hot(content: Content) -> None:
        scale = LARGEST_SAMPLE_SCALE + 1
        _statistic(content, name).update(scale=str(scale), temperature=_exact_temperature(scale))

    manifests: dict[str, tuple[str, str, Callable[[Content], None], str]] = {
        "range-too-large": ("noise", "a range above 2^62, and the scale that follows", too_large, READER),
        "scale-too-large": ("noise", "a scale above 2^46, at which the data hardly count", too_hot, READER),
        "scale-too-small": ("noise", "a sample colder than epsilon allows", of(scale=str(2**20), temperature="1"), READER),
        "temperature": ("noise", "a temperature that is not its scale's", of(temperature="999"), READER),
        "mechanism": ("shape", "draws that claim to be noisy sums", of(mechanism="discrete_laplace"), READER),
        "draws": ("shape", "fewer draws than its file has rows of", of(draws=2), READER),
        "hotter": ("plan", "twice the scale that follows from the plan", hotter, RECOMPUTATION),
        "range": ("plan", "half the range that follows from the plan", understated, RECOMPUTATION),
    }  # fmt: skip
    files = {
        "beyond-grid": ("a draw that is no point of its grid", with_first("value", 1025)),
        "below-grid": ("a draw below its grid", with_first("value", -1)),
        "draw-column": ("draws that are counted otherwise", with_first("draw", 1)),
    }
    return [
        *(
            Hostile(
                name=f"sample-{key}",
                reason=reason,
                check=check,
                refused_by=by,
                files=_changed(made, change, keep_signature=by == RECOMPUTATION),
            )
            for key, (check, reason, change, by) in manifests.items()
        ),
        *(
            Hostile(
                name=f"sample-{key}", reason=reason, check="data file", files=_with_file(made, name, data)
            )
            for key, (reason, data) in files.items()
        ),
    ]


def _exact_temperature(scale: int) -> str:
    return format_number(Fraction(scale, 2**20))


def _signatures(made: MadeRelease, signer: Signer) -> list[Hostile]:
    """Return releases whose signature the key of the vectors did not make."""
    content = _content(made)
    other_key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"another test key").digest())
    other = Signer(public_key=PublicKey(ed25519.public_raw(other_key)), _private_key=other_key)
    signature = content["signature"]
    value = signature["value"]
    flipped = ("B" if value[0] == "A" else "A") + value[1:]
    hour_later = {**content, "created": "2026-01-31T09Z"}
    hour_later["checksum"] = checksum(hour_later)
    cases = {
        "none": ("no signature", READER, {**content, "signature": None}),
        "other-key": ("a signature by another key", SIGNATURE, {**content, "signature": other.sign(content)}),
        "other-key-same-id": (
            "a signature by another key under the id of the demanded one",
            SIGNATURE,
            {**content, "signature": {**other.sign(content), "key_id": signer.public_key.key_id}},
        ),
        "forged": ("a signature of which a bit was changed", SIGNATURE, _signed(content, value=flipped)),
        "moved": ("the signature of another manifest: an hour was changed", SIGNATURE, hour_later),
        "algorithm-none": ("a signature by no algorithm", READER, _signed(content, algorithm="none")),
        "too-short": ("a signature of 63 bytes", READER, _signed(content, value=value[:-4])),
        "base64": ("a signature in two lines", READER, _signed(content, value=value[:44] + "\n" + value[44:])),
    }  # fmt: skip
    return [
        Hostile(
            name=f"signature-{key}",
            reason=reason,
            check="signature",
            refused_by=SIGNATURE if key == "none" else by,
            files={**made.files, "manifest.json": canonical_json.encode(changed)},
        )
        for key, (reason, by, changed) in cases.items()
    ]


def _signed(content: Content, **changes: str) -> Content:
    return {**content, "signature": {**content["signature"], **changes}}


def _no_releases(made: MadeRelease, signer: Signer) -> list[Hostile]:
    """Return what stands where a release would, and is none to be read."""
    release_id = _content(made)["release_id"]
    created = dt.datetime(2026, 2, 1, 10, tzinfo=dt.UTC)

    def withdrawal(manifest: bytes, reason: str, signed_by: Signer | None = None) -> bytes:
        return compose_withdrawal(manifest, release_id, reason=reason, created=created, signer=signed_by)

    whole = {**made.files, "manifest.json": made.manifest}
    return [
        Hostile(
            name="no-manifest", reason="it has no manifest: nothing was published", check="existence",
            files=dict(made.files),
        ),
        Hostile(
            name="tombstone", reason="its charge was abandoned", check="existence",
            files={"manifest.json": tombstone(release_id)},
        ),
        Hostile(
            name="rehearsal", reason="it is a rehearsal's, of generated rows", check="existence",
            files={**made.files, "manifest.json": rehearsal_manifest(made.manifest, None)},
        ),
        Hostile(
            name="withdrawn", reason="it was withdrawn", check="withdrawal",
            files={**whole, WITHDRAWN: withdrawal(made.manifest, "the source held the rows of a test twice")},
        ),
        Hostile(
            name="withdrawn-signed", reason="it was withdrawn, with a signature", check="withdrawal",
            files={**whole, WITHDRAWN: withdrawal(made.manifest, "carriers are those of 2012", signer)},
        ),
        Hostile(
            name="withdrawal-of-another", reason="the withdrawal beside it is of another manifest",
            check="withdrawal", files={**whole, WITHDRAWN: withdrawal(b"another", "wrong")},
        ),
        Hostile(
            name="withdrawal-not-canonical", reason="the withdrawal beside it is no document of the format",
            check="withdrawal", files={**whole, WITHDRAWN: b'{"withdrawn": true}'},
        ),
    ]  # fmt: skip
