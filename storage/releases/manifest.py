"""The manifest: everything a reader needs to know about a release, in one canonical JSON document.

A release exists when its manifest does. Exact numbers are text, as :func:`format_number` writes them;
JSON integers are counts, sizes and sequences; there are no floats. Blocks are stated, for whoever reads
releases without this code; this code believes none of them, and compares them with the plan.
``operations/publishing.py`` puts its bytes into the store, last.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import platform
import re
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from suffice.errors import SpecError
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.releases.manifest_model import (
    FORMAT_VERSION,
    declared_fields,
    statistic_fields,
)
from suffice.storage.releases.manifest_reader import LARGEST_MANIFEST, MOST_NAMES, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.windows_and_amendments import AmendedRelease
    from suffice.storage.signatures.signing import Signer

LARGEST_TOMBSTONE = 4096
"""In bytes."""
_ROOM = 4096
"""Bytes of the fields that do not follow from the plan, but for the files."""
_ROOM_OF_FILE = 256

_REHEARSAL = re.compile(rb',"rehearsal":true,"release_id":"[0-9a-f]{16}"')
_REPORTED_PACKAGES = ("suffice", "numpy", "opendp", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data file of a release.

    Attributes
    ----------
    statistic : str
    path : str
        Beside the manifest: ``<statistic>.parquet``.
    size : int
        In bytes.
    sha256 : str
        Of its bytes, in hex.
    rows : int
        Cells times components.
    """

    statistic: str
    path: str
    size: int
    sha256: str
    rows: int


def compose_manifest(
    plan: Plan,
    *,
    window: str,
    amendment: int,
    amends: AmendedRelease | None,
    release_id: str,
    public_n: int | None,
    input_verified: bool,
    files: Sequence[DataFile],
    ledger_id: str,
    drawing_sequence: int,
    drawing_hash: str,
    created: datetime,
    contract: str | None = None,
    audit: str | None = None,
    signer: Signer | None = None,
) -> bytes:
    """Return the exact bytes of a release's manifest.

    Parameters
    ----------
    plan : Plan
    window : str
        The label of the period released, or ``all``.
    amendment, amends : int, AmendedRelease or None
        Which amendment of the window it is, and what it replaces; 0 and None for a first release.
    release_id, ledger_id : str
        16 and 32 hex digits.
    public_n : int or None
        The number of records, exactly where the plan makes it public.
    input_verified : bool
        Whether the grant demands that input files have the SHA-256 that their owner listed; nothing else.
    files : sequence of DataFile
        In the plan's order of statistics.
    drawing_sequence, drawing_hash : int, str
        The ledger's entry of the charge's ``drawing``.
    created : datetime
        Aware; only its hour, in UTC, is published.
    contract : str, optional
        The SHA-256 of the contract by which the data were read; left out where the account has none.
    audit : str, optional
        The SHA-256 of the audit of this plan that the account's grant names; left out where it names none.
    signer : Signer, optional
        Signs the manifest, once: what is staged and published is what this returns.

    Raises
    ------
    ValueError
        Where the number of records is given though the plan keeps it private, or the reverse, or an
        amendment names nothing that it replaces, or the reverse.
    ReleaseCorruptError
        Where the parts do not make a manifest that can be read.
    """
    if (public_n is not None) != plan.n_is_public:
        message = "the number of records goes into a manifest exactly where the plan makes it public"
        raise ValueError(message)
    if (amends is not None) != bool(amendment):
        message = "a manifest names the release that it replaces exactly where it is of an amendment"
        raise ValueError(message)
    entries: list[Mapping[str, Any]] = [statistic_fields(statistic) for statistic in plan.statistics]
    content = {
        **declared_fields(plan),
        "format_version": FORMAT_VERSION,
        "declared_order": plan.order.document(),
        "window": window,
        "amends": None if amends is None else {"number": amendment, **dataclasses.asdict(amends)},
        "release_id": release_id,
        "created": created.astimezone(UTC).strftime("%Y-%m-%dT%HZ"),
        "n": public_n,
        "statistics": [
            {**entry, "quantities": list(entry["quantities"])} if "quantities" in entry else entry
            for entry in entries
        ],
        "input_verified": input_verified,
        "files": [dataclasses.asdict(file) for file in files],
        "plan": canonical_json.decode(plan.canonical.encode()),
        "plan_hash": plan.plan_hash,
        "ledger_id": ledger_id,
        "drawing_sequence": drawing_sequence,
        "drawing_hash": drawing_hash,
        **({} if contract is None else {"contract": contract}),
        **({} if audit is None else {"audit": audit}),
        "versions": {
            **software_versions(_REPORTED_PACKAGES),
            **({} if plan.zone_data is None else {"zone_data": plan.zone_data}),
        },
        "checksum": None,
        "signature": None,
    }
    content["checksum"] = checksum(content)
    if signer is not None:
        content["signature"] = signer.sign(content)
    data = canonical_json.encode(content)
    parse_manifest(data)
    return data


def require_manifest(plan: Plan) -> None:
    """Refuse a plan whose release nobody could read, before anything is charged for it.

    Raises
    ------
    SpecError
        Where its manifest would be larger than what readers take.
    """
    read_canonical_plan(plan.canonical, plan.order)  # as readers will, within their limits
    content = {
        **declared_fields(plan),
        "declared_order": plan.order.document(),
        "plan": canonical_json.decode(plan.canonical.encode()),
    }
    names = plan.order
    if (
        len(names.groups) + len(names.statistics) + sum(2 + len(of) for *_, of in names.variables)
        > MOST_NAMES // 2
    ):
        rule = "it has too many groups, statistics and variables for one manifest"
        raise SpecError("spec", rule, "split the release")
    size = _ROOM + len(canonical_json.encode(content))
    for statistic in plan.statistics:
        fields: Mapping[str, Any] = statistic_fields(statistic)
        for name, value in fields.items():
            entries = value if name == "quantities" else (value,)
            size += len(name) + 4 + sum(len(canonical_json.encode(entry)) + 1 for entry in entries)
        size += _ROOM_OF_FILE + 2 * len(statistic.name)
        if size > LARGEST_MANIFEST:
            rule = (
                f"its manifest would take more than {LARGEST_MANIFEST} bytes, with what is stated up to here"
            )
            hint = "take fewer columns together or fewer categories, or split the release"
            raise SpecError(f"statistics.{statistic.name}", rule, hint)


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest with neither checksum nor signature.

    It finds accidents; forgery is what the signature is for, which covers the checksum too.
    """
    blank = {**content, "checksum": None, "signature": None}
    return hashlib.sha256(canonical_json.encode(blank)).hexdigest()


def tombstone(release_id: str) -> bytes:
    """Return what stands at a manifest's key where a charge was abandoned: no release, for good."""
    return canonical_json.encode(
        {"format_version": FORMAT_VERSION, "tombstone": True, "release_id": release_id}
    )


def is_tombstone(data: bytes) -> bool:
    """Return whether `data` is a tombstone, of whatever release."""
    if len(data) > LARGEST_TOMBSTONE:
        return False
    try:
        content = canonical_json.decode(data)
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("tombstone") is True


def rehearsal_manifest(manifest: bytes, signer: Signer | None) -> bytes:
    """Return an unsigned manifest marked as a rehearsal's: no reader takes it for a release.

    The mark is signed with the rest, so that what is signed is no release either.
    """
    decoded: Any = canonical_json.decode(manifest)
    content: dict[str, Any] = {**decoded, "rehearsal": True}
    content["checksum"] = checksum(content)
    if signer is not None:
        content["signature"] = signer.sign(content)
    return canonical_json.encode(content)


def is_rehearsal(data: bytes) -> bool:
    """Return whether `data` is the manifest of a rehearsal."""
    return _REHEARSAL.search(data) is not None


def software_versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed."""
    versions = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions
