"""The manifest: everything a reader needs to know about a release, in one canonical JSON document.

A release exists when its manifest does. Exact numbers are text, as :func:`format_number` writes them;
JSON integers are counts, sizes and sequences; there are no floats. Blocks are stated, not derived: a
reader rebuilds components, scales and maps from here, whatever its own version would compute.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import platform
from dataclasses import dataclass
from datetime import UTC
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from suffice.errors import ReleaseCorruptError
from suffice.pipeline.declaration.domains import Domain, DomainKind
from suffice.pipeline.declaration.exact_numbers import format_number
from suffice.storage.releases.manifest_model import FORMAT_VERSION, Manifest
from suffice.storage.signatures import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.statistics.block import ColumnBounds, Quantity
    from suffice.pipeline.statistics.count_table import CountTable
    from suffice.pipeline.statistics.statistic_plan import StatisticPlan
    from suffice.storage.signatures.signing import Signer

LARGEST_MANIFEST = 2**30
"""Readers refuse a manifest of more bytes."""

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
    release_id: str,
    public_n: int | None,
    input_verified: bool,
    files: Sequence[DataFile],
    ledger_id: str,
    drawing_sequence: int,
    drawing_hash: str,
    created: datetime,
    signer: Signer | None = None,
) -> bytes:
    """Return the exact bytes of a release's manifest.

    Parameters
    ----------
    plan : Plan
    window : str
        The label of the period released, or ``all``.
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
    signer : Signer, optional
        Signs the manifest, once: what is staged and published is what this returns.

    Raises
    ------
    ValueError
        Where the number of records is given though the plan keeps it private, or the reverse.
    ReleaseCorruptError
        Where the parts do not make a manifest that can be read.
    """
    if (public_n is not None) != plan.n_is_public:
        message = "the number of records goes into a manifest exactly where the plan makes it public"
        raise ValueError(message)
    content = {
        "format_version": FORMAT_VERSION,
        "name": plan.name,
        "dataset": plan.dataset,
        "window": window,
        "release_id": release_id,
        "created": created.astimezone(UTC).strftime("%Y-%m-%dT%HZ"),
        "epsilon": format_number(plan.epsilon),
        "neighboring": str(plan.neighboring),
        "unit": plan.unit,
        **(plan.column_unit.bound() if plan.column_unit else {}),
        "n": public_n,
        "max_total_rows": plan.max_total_rows,
        "cells": plan.n_cells,
        "groups": [_group(column, domain) for column, domain in plan.groups.items()],
        "statistics": [_statistic(statistic) for statistic in plan.statistics],
        "input_verified": input_verified,
        "files": [dataclasses.asdict(file) for file in files],
        "plan": canonical_json.decode(plan.canonical.encode()),
        "plan_hash": plan.plan_hash,
        "ledger_id": ledger_id,
        "drawing_sequence": drawing_sequence,
        "drawing_hash": drawing_hash,
        "versions": _versions(),
        "checksum": None,
        "signature": None,
    }
    content["checksum"] = checksum(content)
    if signer is not None:
        content["signature"] = signer.sign(content)
    data = canonical_json.encode(content)
    parse_manifest(data)
    return data


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest, and check all that can be checked without its files.

    Raises
    ------
    ReleaseCorruptError
        Where a byte of it was changed, it contradicts itself, or is of a newer format.
    """
    try:
        content = canonical_json.decode(data)
    except ValueError as error:
        raise _corrupt(str(error)) from None
    if not isinstance(content, dict):
        raise _corrupt("it is no JSON object")
    version = content.get("format_version")
    if isinstance(version, bool) or version != FORMAT_VERSION:
        raise _corrupt(f"it is damaged, or of another format than {FORMAT_VERSION}, which this suffice reads")
    if content.get("checksum") != checksum(content):
        raise _corrupt("its checksum does not fit")
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(map(str, first["loc"]))
        raise _corrupt(f"{location}: {first['msg']}" if location else first["msg"]) from None


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
    try:
        content = canonical_json.decode(data)
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("tombstone") is True


def _corrupt(rule: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(f"the manifest is corrupt: {rule}")


def _group(column: str, domain: Domain) -> dict[str, Any]:
    head = {"column": column, "kind": str(domain.kind)}
    if domain.kind is DomainKind.RANGE:
        return {**head, "first": str(domain[0]), "last": str(domain[-1])}
    return {**head, "every": str(domain.every) if domain.every else None, "keys": list(domain)}


def _statistic(statistic: StatisticPlan) -> dict[str, Any]:
    parameters, weight = statistic.parameters, statistic.moment_weight
    return {
        "name": statistic.name,
        "family": statistic.family,
        "columns": list(statistic.columns),
        "design": str(statistic.design),
        "components": list(statistic.components),
        "epsilon": format_number(statistic.epsilon),
        "l1_sensitivity": str(statistic.l1_sensitivity),
        "noise": "discrete_laplace",
        "scale": format_number(Fraction(statistic.scale)),
        "partition_total": _optional(statistic.partition_total),
        "value_type": statistic.value_type,
        "quantities": [_quantity(quantity, statistic.components) for quantity in statistic.quantities],
        **({"moment_weight": format_number(weight)} if weight is not None else {}),
        "parameters": {
            "categories": list(parameters.categories),
            "lower": _optional(parameters.lower),
            "upper": _optional(parameters.upper),
            "lattice_bits": parameters.lattice_bits,
            **_constants(parameters.constants),
            **_columns(parameters.columns),
            **_tables(parameters.tables),
        },
    }


def _columns(columns: Sequence[ColumnBounds]) -> dict[str, Any]:
    """Return the columns' entry of statistics of several columns."""
    if not columns:
        return {}
    return {
        "columns": [
            {"name": of.name, "lower": format_number(of.lower), "upper": format_number(of.upper)}
            for of in columns
        ]
    }


def _constants(constants: Mapping[str, Fraction]) -> dict[str, Any]:
    """Return the constants' entry where there are any: manifests without one say the same as ever."""
    if not constants:
        return {}
    return {"constants": {name: format_number(number) for name, number in constants.items()}}


def _tables(tables: Sequence[CountTable]) -> dict[str, Any]:
    """Return the tables' entry where there are any: each table's variables, each variable's categories."""
    if not tables:
        return {}
    return {
        "tables": [
            {
                "name": table.name,
                "variables": [
                    {"name": variable.name, "categories": list(variable.categories)}
                    for variable in table.variables
                ],
            }
            for table in tables
        ]
    }


def _quantity(quantity: Quantity, components: Sequence[str]) -> dict[str, Any]:
    return {
        "name": quantity.name,
        "category": quantity.category,
        **({"component": quantity.component} if quantity.component is not None else {}),
        **({"labels": [list(label) for label in quantity.labels]} if quantity.labels else {}),
        "coefficients": {
            components[component]: format_number(weight)
            for component, weight in quantity.coefficients.items()
        },
        "public_n_coefficient": format_number(quantity.public_n_coefficient),
    }


def _optional(number: Fraction | int | None) -> str | None:
    return None if number is None else format_number(number)


def _versions() -> dict[str, str]:
    """Return the versions that a release may depend on, of what is installed."""
    versions = {"python": platform.python_version()}
    for package in _REPORTED_PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions
