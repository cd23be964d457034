"""Croissant's metadata of a release, version 1.0, as JSON-LD."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon
from suffice.storage.releases.citation import citation
from suffice.storage.releases.description_texts import (
    columns_of,
    created,
    description,
    meaning,
    parts,
    version,
    within_cell,
)

if TYPE_CHECKING:
    from suffice.storage.releases.manifest_model import Manifest

_PARQUET = "application/x-parquet"
"""The one name by which Croissant's own tool knows Parquet, and loads it."""
_TYPES = {"string": "sc:Text", "integer": "sc:Integer", "number": "sc:Float"}


def croissant(data: bytes, manifest: Manifest) -> dict[str, Any]:
    """Return metadata of Croissant 1.0, as JSON-LD."""
    files = manifest.files
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"{manifest.name}@{manifest.edition}",
        "identifier": manifest.release_id,
        "description": description(manifest),
        "citeAs": citation(_facts(data, manifest)),
        "url": "manifest.json",
        "version": version(manifest),
        "datePublished": created(manifest),
        "isLiveDataset": False,
        "keywords": ["differential privacy"],
        "distribution": [
            _file_object("manifest.json", len(data), hashlib.sha256(data).hexdigest(), "application/json"),
            *(_file_object(file.path, file.size, file.sha256, _PARQUET) for file in files),
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": statistic.name,
                "name": statistic.name,
                "description": meaning(statistic),
                "key": [
                    {"@id": _field_id(statistic.name, column)}
                    for column in (*manifest.plan.groups, within_cell(statistic))
                ],
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": _field_id(statistic.name, column),
                        "name": column,
                        "description": text,
                        "dataType": _TYPES[kind],
                        "source": {"fileObject": {"@id": file.path}, "extract": {"column": column}},
                    }
                    for column, kind, text in columns_of(statistic, manifest)
                ],
            }
            for file, statistic in parts(manifest)
        ],
    }


def _facts(data: bytes, manifest: Manifest) -> dict[str, str]:
    return {
        "name": manifest.name,
        "window": manifest.window,
        "edition": manifest.edition,
        "dataset": manifest.dataset,
        "epsilon": format_epsilon(manifest.epsilon),
        "neighboring": str(manifest.plan.neighboring),
        "unit": manifest.plan.unit,
        "release_id": manifest.release_id,
        "created": manifest.stated.created,
        "manifest_sha256": hashlib.sha256(data).hexdigest(),
    }


def _field_id(name: str, column: str) -> str:
    """Return a reference to a field; columns have any printable name."""
    return f"{name}/{quote(column, safe='')}"


def _file_object(path: str, size: int, sha256: str, encoding: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "contentSize": f"{size} B",
        "encodingFormat": encoding,
        "sha256": sha256,
    }


_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that Croissant 1.0 gives."""
