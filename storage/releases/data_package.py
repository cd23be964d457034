"""A Frictionless data package of a release: Data Package 2.0, which readers of version 1 understand too.

It states no file's size: ``frictionless validate`` counts no bytes of Parquet, and takes a size that is
stated for a wrong one.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.domains import DomainKind
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon, format_number
from suffice.storage.releases.description_texts import (
    columns_of,
    created,
    description,
    meaning,
    parts,
    title,
    version,
    within_cell,
)

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.releases.manifest_model import Manifest

MOST_LISTED = 1000
"""Keys and components that the package repeats; the manifest has all."""

_PARQUET = "application/vnd.apache.parquet"


def datapackage(data: bytes, manifest: Manifest) -> dict[str, Any]:
    """Return a Data Package 2.0 descriptor, which readers of version 1 understand too."""
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": f"{manifest.name}.{manifest.edition}".lower(),
        "id": manifest.release_id,
        "title": title(manifest),
        "description": description(manifest),
        "version": version(manifest),
        "created": created(manifest),
        "keywords": ["differential privacy"],
        "resources": [
            {
                "name": statistic.name.lower(),  # no two differ by their capitals alone
                "path": file.path,
                "format": "parquet",
                "mediatype": _PARQUET,
                "hash": f"sha256:{file.sha256}",
                "title": statistic.name,
                "description": meaning(statistic),
                "schema": {
                    "fields": [
                        {
                            "name": column,
                            "type": kind,
                            "description": text,
                            "constraints": {"required": True, **_listed(column, statistic, manifest)},
                        }
                        for column, kind, text in columns_of(statistic, manifest)
                    ],
                    "primaryKey": [*manifest.plan.groups, within_cell(statistic)],
                },
                "suffice": _law(statistic),
            }
            for file, statistic in parts(manifest)
        ],
        "suffice": {
            "format_version": manifest.stated.format_version,
            "dataset": manifest.dataset,
            "window": manifest.window,
            "amendment": manifest.amendment,
            "epsilon": format_epsilon(manifest.epsilon),
            "neighboring": str(manifest.plan.neighboring),
            "unit": manifest.plan.unit,
            "manifest": {"path": "manifest.json", "bytes": len(data), "hash": _hash(data)},
        },
    }


def _law(statistic: StatisticPlan) -> dict[str, Any]:
    """Return the law of the noise, as the manifest states it."""
    total = statistic.partition_total
    if statistic.sample is not None:
        drawn = statistic.sample
        return {
            "family": statistic.family,
            "columns": list(statistic.columns),
            "mechanism": "exponential",
            "parameter": drawn.parameter,
            "draws": drawn.draws,
            "grid": drawn.grid,
            "within": [format_number(end) for end in drawn.within],
            "prior": drawn.prior,
            "range_sensitivity": str(drawn.range_sensitivity),
            "scale": str(drawn.scale),
            "temperature": format_number(drawn.temperature),
            "epsilon": format_number(statistic.epsilon),
        }
    return {
        "family": statistic.family,
        "columns": list(statistic.columns),
        "mechanism": "discrete_laplace",
        "scale": format_number(Fraction(statistic.scale)),
        "l1_sensitivity": str(statistic.l1_sensitivity),
        "epsilon": format_number(statistic.epsilon),
        "partition_total": None if total is None else str(total),
    }


def _listed(column: str, statistic: StatisticPlan, manifest: Manifest) -> dict[str, Any]:
    """Return the constraints of a column whose values the manifest lists, unless there are very many."""
    if column == "component" and len(statistic.components) <= MOST_LISTED:
        return {"enum": list(statistic.components)}
    if statistic.sample is not None and column in {"draw", "value"}:
        most = statistic.sample.draws if column == "draw" else statistic.sample.grid
        return {"minimum": "0", "maximum": str(most - 1)}
    domain: Domain | None = manifest.plan.groups.get(column)
    if domain is None:
        return {}
    if domain.kind is DomainKind.RANGE:
        return {"minimum": str(domain[0]), "maximum": str(domain[-1])}
    return {"enum": list(domain)} if len(domain) <= MOST_LISTED else {}


def _hash(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
