"""Make the hostile test vectors: each one thing wrong, and every hash around it made right again."""

# ruff: noqa: E501 - cases stand in tables, a line each

from __future__ import annotations

import datetime as dt
import hashlib
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scripts.vectors.damage import (
    READER,
    RECOMPUTATION,
    SIGNATURE,
    WORDS,
    Hostile,
    content_of,
    encoded,
    sealed,
    statistic_of,
    with_manifest,
)
from scripts.vectors.hostile_files import hostile_files
from scripts.vectors.hostile_samples import hostile_quantiles, hostile_samples
from scripts.vectors.releases import with_words, written
from suffice.pipeline.spec.about import read_about
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.storage.releases.about_file import Wording, about_name
from suffice.storage.releases.manifest import checksum, rehearsal_manifest, tombstone
from suffice.storage.releases.withdrawal import WITHDRAWN, compose_withdrawal
from suffice.storage.signatures import ed25519
from suffice.storage.signatures.signing import ABOUT, PublicKey, Signer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scripts.vectors.damage import Content
    from scripts.vectors.releases import MadeRelease


def write_hostile(root: Path, made: dict[str, MadeRelease], signer: Signer) -> None:
    """Write every hostile vector, and ``hostile.json``."""
    hostile = [
        *_damaged(made["one-cell"]),
        *_text_of_manifests(made["one-cell"]),
        *_fields(made["first-families"], made["window"], made["amendment"]),
        *_in_rho(made["in-rho"]),
        *_on_cone(made["on-a-cone"]),
        *hostile_files(made["first-families"], made["saturated"]),
        *hostile_samples(made["samples"]),
        *hostile_quantiles(made["drawn-quantiles"]),
        *_signatures(made["first-families"], signer),
        *_words(made["first-families"], made["one-cell"], signer),
        *_no_releases(made["one-cell"], signer),
    ]
    index = []
    for release in hostile:
        directory = root / "hostile" / release.name
        directory.mkdir(parents=True)
        for name, data in release.files.items():
            (directory / name).write_bytes(data)
        index.append({field: getattr(release, field) for field in ("name", "reason", "check", "refused_by")})
    (root / "hostile.json").write_bytes(written({"hostile": index}))


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
    content = content_of(made)
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


def _fields(made: MadeRelease, window: MadeRelease, amendment: MadeRelease) -> list[Hostile]:
    """Return manifests in which a field is wrong; their checksums are right."""
    name = "cancelled"

    def put(key: str, value: object) -> Callable[[Content], None]:
        return lambda content: content.update({key: value})

    def of(key: str, value: object) -> Callable[[Content], None]:
        return lambda content: statistic_of(content, name).update({key: value})

    def of_file(key: str, value: object) -> Callable[[Content], None]:
        return lambda content: content["files"][0].update({key: value})

    def plan(content: Content) -> None:
        content["plan"]["max_total_rows"] = "1000"

    def plan_and_hash(content: Content) -> None:
        plan(content)
        content["plan_hash"] = hashlib.sha256(encoded(content["plan"])).hexdigest()

    def coefficients(content: Content) -> None:
        quantity = next(each for each in statistic_of(content, name)["quantities"] if each["name"] == "total")
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
    hostile = [
        Hostile(
            name=f"manifest-{key}",
            reason=reason,
            check=check,
            refused_by=by,
            files=with_manifest(made, change, keep_signature=by == RECOMPUTATION),
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
        *hostile,
        *(
            Hostile(name=key, reason=reason, check="window", files=with_manifest(of, change))
            for key, (reason, of, change) in of_window.items()
        ),
    ]


def _in_rho(made: MadeRelease) -> list[Hostile]:
    """Return releases in rho whose noise is not what rho asks for, or rests on a sensitivity that is stated."""

    def halved(content: Content, name: str) -> None:
        entry = statistic_of(content, name)
        entry["scale"] = format_number(Fraction(entry["scale"]) / 2)

    def quieter(content: Content) -> None:
        halved(content, "delay")
        entry = statistic_of(content, "delay")
        entry["l2_squared"] = str(int(entry["l2_squared"]) // 4)

    def removed(content: Content) -> None:
        del statistic_of(content, "network")["l2_squared"]

    cases = {
        "l2": ("plan", "a smaller L2 sensitivity, and less noise, than follow from the plan", quieter, RECOMPUTATION),
        "l2-missing": ("noise", "rho without an L2 sensitivity", removed, READER),
        "rho-scale": ("noise", "less noise than rho asks for", lambda content: halved(content, "network"), READER),
    }  # fmt: skip
    return [
        Hostile(
            name=f"manifest-{key}",
            reason=reason,
            check=check,
            refused_by=by,
            files=with_manifest(made, change, keep_signature=by == RECOMPUTATION),
        )
        for key, (check, reason, change, by) in cases.items()
    ]


def _on_cone(made: MadeRelease) -> list[Hostile]:
    """Return releases whose noise on a cone is not what epsilon asks for, or of another cone."""

    def stated(**changes: object) -> Callable[[Content], None]:
        return lambda content: statistic_of(content, "size")["cone_noise"].update(changes)

    def faster(content: Content) -> None:
        noise = statistic_of(content, "size")["cone_noise"]
        noise["rate"] = format_number(2 * Fraction(noise["rate"]))

    def as_laplace(content: Content) -> None:
        entry = statistic_of(content, "size")
        entry |= {"mechanism": "discrete_laplace", "scale": "4096", "l1_sensitivity": "4096"}
        del entry["cone_noise"]

    cases = {
        "cone-rate": ("plan", "noise on a cone at twice the rate that follows from the plan", faster, RECOMPUTATION),
        "cone-rate-above": ("noise", "noise on a cone at a rate above epsilon", stated(rate="7"), READER),
        "cone-rate-zero": ("noise", "noise on a cone at a rate of 0", stated(rate="0"), READER),
        "cone-columns": ("shape", "noise on a cone of fewer columns than components", stated(columns=2), READER),
        "cone-steps": ("plan", "noise on a cone of another lattice", stated(steps="65"), RECOMPUTATION),
        "cone-as-laplace": ("plan", "noise on a cone that claims to be Laplace noise", as_laplace, RECOMPUTATION),
    }  # fmt: skip
    return [
        Hostile(
            name=f"manifest-{key}",
            reason=reason,
            check=check,
            refused_by=by,
            files=with_manifest(made, change, keep_signature=by == RECOMPUTATION),
        )
        for key, (check, reason, change, by) in cases.items()
    ]


def _louder(content: Content) -> None:
    entry = statistic_of(content, "cancelled")
    entry["l1_sensitivity"] = str(2 * int(entry["l1_sensitivity"]))
    entry["scale"] = str(2 * float(entry["scale"])).removesuffix(".0")


def _other_keys(content: Content) -> None:
    content["groups"][0]["keys"] = ["EWR", "JFK", "SFO"]


def _signatures(made: MadeRelease, signer: Signer) -> list[Hostile]:
    """Return releases whose signature the key of the vectors did not make."""
    content = content_of(made)
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


def _words(made: MadeRelease, another: MadeRelease, signer: Signer) -> list[Hostile]:
    """Return releases beside whose manifest stand other words than theirs."""
    first, second = map(json.loads, made.words.files)

    def resealed(content: Content, **changes: Any) -> bytes:
        changed = {**content, **changes, "checksum": None, "signature": None}
        changed["checksum"] = checksum(changed)
        return canonical_json.encode({**changed, "signature": signer.sign(changed, ABOUT)})

    def about(statistic: str = "cancelled", label: str = "cancelled") -> Content:
        return {"statistics": {statistic: {"label": label}}}

    unsigned = with_words(made.manifest, Wording(), read_about(about()), None).files
    moved = with_words(another.manifest, Wording(), read_about(about()), signer).files
    unfit = resealed(first, about=about("cancelled", "cancelled") | {"titel": "Flights"})
    cases = {
        "unsigned": ("words without a signature beside a signed manifest", unsigned),
        "moved": ("the words of another release", moved),
        "changed": ("words that were changed after their checksum", (canonical_json.encode({**first, "about": about()}),)),
        "broken-chain": ("words that do not follow those before them", (made.words.files[0], resealed(second, replaces="0" * 64))),
        "number": ("the second words in the place of the first", (made.words.files[1],)),
        "no-such-statistic": ("words for a statistic that the release does not have", (resealed(first, about=about("late")),)),
        "direction": ("a label with a mark of direction", (resealed(first, about=about(label="delay \u202e3")),)),
        "field": ("words of an unknown field", (unfit,)),
        "text": ("no canonical JSON", (made.words.files[0] + b"\n",)),
        "large": ("words of more than 256 KiB", (made.words.files[0].ljust(2**18 + 1),)),
    }  # fmt: skip
    return [
        Hostile(
            name=f"words-{key}",
            reason=reason,
            check="about",
            refused_by=WORDS,
            files={
                **made.files,
                "manifest.json": made.manifest,
                **{about_name(number): data for number, data in enumerate(files, start=1)},
            },
        )
        for key, (reason, files) in cases.items()
    ]


def _no_releases(made: MadeRelease, signer: Signer) -> list[Hostile]:
    """Return what stands where a release would, and is none to be read."""
    release_id = content_of(made)["release_id"]
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
