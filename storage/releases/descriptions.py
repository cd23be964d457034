"""What other people's tools read of a release: a Frictionless data package, and Croissant's metadata.

Both are made of the manifest and the release's words alone, byte for byte, so that anyone can make them again
and compare. Where there are no words, neither states a licence, a contact or a source: no manifest does.

Croissant's metadata are version 1.0, as JSON-LD. The data package is Data Package 2.0, which readers of
version 1 understand too. It states no file's size: ``frictionless validate`` counts no bytes of Parquet, and
calls a stated size wrong.
"""

from __future__ import annotations

import hashlib
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from suffice.pipeline.spec.about import NOTHING, is_address
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.domains import DomainKind
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.loss_in_words import factor_of_rho
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from suffice.pipeline.spec.about import About
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.releases.manifest_model import FileEntry, Manifest


def citation(facts: Mapping[str, Any], url: str | None = None) -> str:
    """Return the sentence that cites a release.

    Parameters
    ----------
    facts : mapping
        name, window, edition, dataset, epsilon or rho, neighboring, unit, release_id, created,
        manifest_sha256; a title where there is one.
    url : str, optional
        Where the release is described on the web.
    """
    window = "" if facts["window"] == "all" else f", {facts['edition']}"
    where = f" {url}" if url else ""
    named = f"{facts['title']} ({facts['name']})" if facts.get("title") else facts["name"]
    return (
        f"{named}{window}: a differentially private release of {facts['dataset']} "
        f"({PrivacyLoss.read(facts)}, {str(facts['neighboring']).replace('_', ' ')}, unit {facts['unit']}). "
        f"Release {facts['release_id']}, {facts['created'][:10]}. Manifest SHA-256 "
        f"{facts['manifest_sha256']}.{where}"
    )


def parts(manifest: Manifest) -> Iterator[tuple[FileEntry, StatisticPlan]]:
    """Return the data files, each with the plan of its statistic."""
    return zip(manifest.files, manifest.plan.statistics, strict=True)


def within_cell(statistic: StatisticPlan) -> str:
    """Return the column that tells the rows of a cell apart."""
    return "component" if statistic.sample is None else "draw"


def title(manifest: Manifest, about: About = NOTHING) -> str:
    """Return the title of a release."""
    of = "" if manifest.window == ALL else f", {manifest.window}"
    again = f", amendment {manifest.amendment}" if manifest.amendment else ""
    if about.title:
        return f"{about.title}{of}{again}"
    what = "posterior samples" if _is_sampled(manifest) else "noisy statistics"
    return f"{manifest.name}{of}{again}: {what} of {manifest.dataset}"


def description(manifest: Manifest, about: About = NOTHING) -> str:
    """Say what a release is, and what it promises."""
    unit = "row" if manifest.plan.unit == "row" else f"value of {in_words(manifest.plan.unit)}"
    adds = str(manifest.plan.neighboring) == "add_or_remove_one"
    other = f"one {unit} more or less" if adds else f"another {unit}"
    said = f"{about.description} " if about.description else ""
    licence = "" if about.licence else " No licence is stated there."
    return (
        f"{said}Differentially private statistics of the data set {manifest.dataset}, made once: with "
        f"{other} in the data, {_promise(manifest.loss)}. {' '.join(_laws(manifest))} "
        "Every combination of group keys has its rows, empty or not. The manifest, manifest.json, states "
        f"{'what was drawn' if _is_sampled(manifest) else 'the exact maps from components to quantities'}."
        f"{licence}"
    )


def _promise(loss: PrivacyLoss) -> str:
    """Say by how much the probability of an outcome changes at most."""
    if loss.rho is None:
        return (
            "the probability of any outcome changes by a factor of at most exp(epsilon), "
            f"epsilon = {loss.text} for the whole release"
        )
    return (
        f"{factor_of_rho(loss.rho)}; it is zero-concentrated differential privacy, rho = {loss.text} for the "
        "whole release"
    )


def meaning(statistic: StatisticPlan, about: About = NOTHING) -> str:
    """Say what the file of a statistic holds."""
    words = about.words(statistic.name)
    called = f"{words.label}{f', in {words.unit}' if words.unit else ''}" if words.label else ""
    said = "".join(f"{text.rstrip('.')}. " for text in (called, words.description) if text)
    return said + _meaning(statistic)


def _meaning(statistic: StatisticPlan) -> str:
    of = f" of {', '.join(statistic.columns)}" if statistic.columns else ""
    counted = f" They are of {statistic.rows_of}." if statistic.rows_of else ""
    if statistic.sample is not None:
        drawn = statistic.sample
        if isinstance(drawn, QuantilePlan):
            return (
                f"Draws of the {drawn.parameter}{of}, family {statistic.family}: one row for each cell and "
                f"draw.{counted} Each {drawn.law}."
            )
        lower, upper = map(format_number, drawn.within)
        return (
            f"Draws of the {drawn.parameter}{of}, family {statistic.family}: one row for each cell and draw."
            f"{counted} Each is one of {drawn.grid} equally spaced points of {lower}..{upper}, drawn by the "
            f"exponential mechanism from the posterior under the prior {drawn.prior}, at temperature "
            f"{format_number(drawn.temperature)}."
        )
    if statistic.cone is not None:
        return (
            f"Noisy sufficient statistics{of}, family {statistic.family}: one row for each cell and "
            f"component.{counted} The noise on the values of a cell is cone noise, {statistic.cone}, in the "
            "units of value; it is independent from cell to cell."
        )
    return (
        f"Noisy sufficient statistics{of}, family {statistic.family}: one row for each cell and component."
        f"{counted} The noise on each value is discrete Laplace, independent, of scale "
        f"{format_number(Fraction(statistic.scale))}, in the units of value."
    )


def columns_of(statistic: StatisticPlan, about: About = NOTHING) -> Iterator[tuple[str, str, str]]:
    """Give name, type and meaning of each column of a file."""
    for name, domain in statistic.groups.items():
        kind = "integer" if domain.kind is DomainKind.RANGE else "string"
        words = about.keys.get(name)
        said = f" {words.description}" if words is not None and words.description else ""
        yield name, kind, f"Key of the cell: {about.column(name)}.{said}"
    if statistic.sample is not None:
        yield "draw", "integer", "Which draw of the cell it is, counted from 0."
        point = "bin" if isinstance(statistic.sample, QuantilePlan) else "point of the grid"
        yield "value", "integer", f"The {point} that was drawn, counted from 0."
        return
    yield "component", "string", "Which component of the statistic the value is of."
    yield "value", "integer", "The component's sum over the rows of the cell, in lattice units, plus noise."
    total = statistic.partition_total
    if total is None:
        yield "estimate", "number", "The value again, in lattice steps."
    else:
        meaning = f"The value divided by {total}, what one record adds over all components: a pseudo-count."
        yield "estimate", "number", meaning


def version(manifest: Manifest) -> str:
    """Return the edition of the window as a version: amendments replace what came before."""
    return f"{manifest.amendment + 1}.0.0"


def created(manifest: Manifest) -> str:
    """Return the hour in which a release was made, as an instant."""
    return manifest.stated.created.replace("Z", ":00:00Z")


def _is_sampled(manifest: Manifest) -> bool:
    return all(statistic.sample is not None for statistic in manifest.plan.statistics)


def _laws(manifest: Manifest) -> Iterator[str]:
    """Say how the files' values came about."""
    sampled = [statistic.name for statistic in manifest.plan.statistics if statistic.sample is not None]
    on_cone = [statistic.name for statistic in manifest.plan.statistics if statistic.cone is not None]
    if len(sampled) + len(on_cone) < len(manifest.plan.statistics):
        others = [*sampled, *on_cone]
        besides = f" but those of {', '.join(others)}" if others else ""
        yield (
            f"Every value{besides} carries discrete Laplace noise of the scale that its file states, so "
            "counts may be negative and sums need not add up."
        )
    if on_cone:
        yield (
            f"The values of a cell in the files of {', '.join(on_cone)} carry cone noise together, so "
            "counts may be negative and sums need not add up."
        )
    if sampled:
        yield (
            f"The files of {', '.join(sampled)} hold draws of a posterior, made flatter as privacy asks for, "
            "and no statistics."
        )


MOST_LISTED = 1000
"""Keys and components that the package repeats; the manifest has all."""

_PARQUET_MEDIA_TYPE = "application/vnd.apache.parquet"


def datapackage(data: bytes, manifest: Manifest, about: About) -> dict[str, Any]:
    """Return a Data Package 2.0 descriptor, which readers of version 1 understand too."""
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": f"{manifest.name}.{manifest.edition}".lower(),
        "id": manifest.release_id,
        "title": title(manifest, about),
        "description": description(manifest, about),
        **_of_whom(about),
        "version": version(manifest),
        "created": created(manifest),
        "keywords": ["differential privacy"],
        "resources": [
            {
                "name": statistic.name.lower(),  # no two differ by their capitals alone
                "path": file.path,
                "format": "parquet",
                "mediatype": _PARQUET_MEDIA_TYPE,
                "hash": f"sha256:{file.sha256}",
                "title": about.label(statistic.name),
                "description": meaning(statistic, about),
                "schema": {
                    "fields": [
                        {
                            "name": column,
                            "type": kind,
                            **_called(column, statistic, about),
                            "description": text,
                            "constraints": {"required": True, **_listed(column, statistic)},
                        }
                        for column, kind, text in columns_of(statistic, about)
                    ],
                    "primaryKey": [*statistic.groups, within_cell(statistic)],
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
            **manifest.loss.stated,
            "neighboring": str(manifest.plan.neighboring),
            "unit": manifest.plan.unit,
            "manifest": {
                "path": "manifest.json",
                "bytes": len(data),
                "hash": f"sha256:{hashlib.sha256(data).hexdigest()}",
            },
        },
    }


_LICENCE_ID = re.compile(r"[-a-zA-Z0-9._]+", re.ASCII)


def _of_whom(about: About) -> dict[str, Any]:
    """Return licence, contact and source as a data package states them."""
    stated: dict[str, Any] = {}
    if about.licence:
        is_id = _LICENCE_ID.fullmatch(about.licence) is not None
        named = {"name": about.licence} if is_id else {"name": "custom", "title": about.licence}
        stated["licenses"] = [{"path": about.licence} if is_address(about.licence) else named]
    if about.contact:
        stated["contributors"] = [{"title": about.contact, "roles": ["contact"]}]
    if about.source:
        path = {"path": about.source} if is_address(about.source) else {}
        stated["sources"] = [{"title": about.source, **path}]
    return stated


def _called(column: str, statistic: StatisticPlan, about: About) -> dict[str, Any]:
    """Return what a column and its keys are called, where that is said."""
    words, domain = about.keys.get(column), statistic.groups.get(column)
    if words is None or domain is None:
        return {}
    title = {"title": words.label} if words.label else {}
    if not words.values or len(domain) > MOST_LISTED:
        return title
    named = [{"value": key, "label": about.key(column, key)} for key in domain]
    return {**title, "categories": named}


def _law(statistic: StatisticPlan) -> dict[str, Any]:
    """Return the law of the noise, as the manifest states it."""
    total = statistic.partition_total
    if statistic.sample is not None:
        drawn = statistic.sample
        if isinstance(drawn, QuantilePlan):
            return {
                "family": statistic.family,
                "columns": list(statistic.columns),
                "mechanism": "exponential",
                "quantile": format_number(drawn.quantile),
                "draws": drawn.draws,
                "bins": drawn.bins.written(),
                "range_sensitivity": str(drawn.range_sensitivity),
                "scale": str(drawn.scale),
                "rank_scale": format_number(drawn.rank_scale),
                **statistic.loss.stated,
            }
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
            **statistic.loss.stated,
        }
    if statistic.cone is not None:
        return {
            "family": statistic.family,
            "columns": list(statistic.columns),
            "mechanism": statistic.mechanism,
            "rate": format_number(statistic.cone.rate),
            "linear": statistic.cone.linear,
            "steps": str(statistic.cone.steps),
            **statistic.loss.stated,
        }
    return {
        "family": statistic.family,
        "columns": list(statistic.columns),
        "mechanism": "discrete_laplace",
        "scale": format_number(Fraction(statistic.scale)),
        "l1_sensitivity": str(statistic.l1_sensitivity),
        **({} if statistic.l2_squared is None else {"l2_squared": str(statistic.l2_squared)}),
        **statistic.loss.stated,
        "partition_total": None if total is None else str(total),
    }


def _listed(column: str, statistic: StatisticPlan) -> dict[str, Any]:
    """Return the constraints of a column whose values the manifest lists, unless there are very many."""
    if column == "component" and len(statistic.components) <= MOST_LISTED:
        return {"enum": list(statistic.components)}
    if statistic.sample is not None and column in {"draw", "value"}:
        most = statistic.sample.draws if column == "draw" else statistic.sample.n_points
        return {"minimum": "0", "maximum": str(most - 1)}
    domain: Domain | None = statistic.groups.get(column)
    if domain is None:
        return {}
    if domain.kind is DomainKind.RANGE:
        return {"minimum": str(domain[0]), "maximum": str(domain[-1])}
    return {"enum": list(domain)} if len(domain) <= MOST_LISTED else {}


_PARQUET = "application/x-parquet"
"""The one name by which Croissant's own tool knows Parquet, and loads it."""
_TYPES = {"string": "sc:Text", "integer": "sc:Integer", "number": "sc:Float"}


def croissant(data: bytes, manifest: Manifest, about: About) -> dict[str, Any]:
    """Return metadata of Croissant 1.0, as JSON-LD."""
    files = manifest.files
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"{manifest.name}@{manifest.edition}",
        **({"alternateName": title(manifest, about)} if about.title else {}),
        "identifier": manifest.release_id,
        "description": description(manifest, about),
        **({"license": about.licence} if about.licence else {}),
        **({"isBasedOn": about.source} if about.source else {}),
        **({"maintainer": {"@type": "sc:Organization", "name": about.contact}} if about.contact else {}),
        "citeAs": citation({**_facts(data, manifest), "title": about.title}),
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
                "description": meaning(statistic, about),
                "key": [
                    {"@id": _field_id(statistic.name, column)}
                    for column in (*statistic.groups, within_cell(statistic))
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
                    for column, kind, text in columns_of(statistic, about)
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
        **manifest.loss.stated,
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


_MAKERS: dict[str, Callable[[bytes, Manifest, About], dict[str, Any]]] = {
    "croissant.json": croissant,
    "datapackage.json": datapackage,
}
DESCRIPTIONS = tuple(_MAKERS)
"""The names of the files, beside the manifest."""


def describe(data: bytes, manifest: Manifest, about: About = NOTHING) -> dict[str, bytes]:
    """Return the descriptions of a release by file name.

    Parameters
    ----------
    data : bytes
        The manifest's exact bytes.
    manifest : Manifest
        What was read from them.
    about : About
        The release's words.
    """
    return {name: canonical_json.encode(make(data, manifest, about)) for name, make in _MAKERS.items()}
