"""How the parts of a spec are read: statistics, derived columns, the limits on them, and how complaints read.

A plan that stands in a release is read by the same rules, and without what only a spec states.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES, NO_SUMS
from suffice.pipeline.spec.checks import taking
from suffice.pipeline.spec.hierarchies import require_adding
from suffice.pipeline.spec.terms import Terms
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.declaration.derived_columns import (
    MOST_DERIVED,
    in_order,
    read_derived,
    read_per_unit,
)
from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn, read_condition
from suffice.pipeline.terms.declaration.wording import MISSING_KEY, UNKNOWN_KEY, first_complaint, rule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from suffice.pipeline.terms.declaration.spec_text import Document

MOST_STATISTICS = 1000
NOT_STATED = ("directory", "hierarchies")
"""What a spec has and does not state under this name."""

MOST_COMPONENTS = 2**16
"""Of all statistics in a cell: each is named in the manifest, which anyone has to be able to read."""

LARGEST_PLAN = 4 * 2**20
"""In bytes."""


def statistic_entries(document: Document, content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the statistics' entries, their names and number checked, not yet what they say."""
    entries = content.get("statistics")
    if not isinstance(entries, dict) or not entries:
        raise SpecError(document.location(("statistics",)), "a spec declares at least one statistic")
    if len(entries) > MOST_STATISTICS:
        rule = f"{len(entries)} statistics are declared, at most {MOST_STATISTICS} are released together"
        raise SpecError(document.location(("statistics",)), rule, "split the release")
    families = f"families: {', '.join(FAMILIES)}"
    known: set[str] = set()
    for name, entry in entries.items():
        path = ("statistics", name)
        try:
            fields.statistic_name(name)
        except ValueError as error:
            raise SpecError(document.location(path), str(error)) from None
        if name.lower() in known:
            raise SpecError(document.location(path), "another statistic has this name in other letter case")
        known.add(name.lower())
        if not isinstance(entry, dict) or not isinstance(entry.get("family"), str):
            raise SpecError(document.location(path), "a statistic is a mapping with a family", families)
        family = entry["family"]
        if family not in FAMILIES:
            rule = f"no family {family!r}"
            if family in NO_SUMS:
                rule = f"{family} is no exponential family: {NO_SUMS[family]}"
            raise SpecError(document.location((*path, "family")), rule, families)
    return entries


def read_statistic(
    document: Document, name: str, entry: dict[str, Any], directory: Path | None
) -> fields.StatisticSpec:
    """Return one statistic, validated by its family; without a directory no domain is read from a file."""
    family = FAMILIES[entry["family"]]
    if family.drawn is None and "sample" in entry:
        rule = (
            f"{family.name} has several parameters, and a sample is of one, on a grid: {taking('sampled')}; "
            f"or of a quantile: {taking('sampled_quantile')}"
        )
        way_out = "leave it out: from the noisy statistics anyone draws any number of posterior samples"
        raise SpecError(document.location(("statistics", name, "sample")), rule, way_out)
    if "hierarchy" in entry:
        require_adding(document.location(("statistics", name, "hierarchy")), family.name)
    try:
        context = {"directory": directory, fields.READS_CONDITION: read_condition}
        return family.spec.model_validate(entry, context=context)
    except ValidationError as error:
        raise spec_error(document, ("statistics", name), error, family.spec) from None


def read_derived_columns(
    document: Document, content: dict[str, Any], directory: Path | None
) -> dict[str, DerivedColumn]:
    """Return the derived columns, validated; without a directory no map or list is read from a file."""
    entries, path = content.get("derived", {}), ("derived",)
    if not isinstance(entries, dict):
        raise SpecError(document.location(path), "it maps names of new columns to what they are")
    if len(entries) > MOST_DERIVED:
        rule = f"{len(entries)} columns are derived, at most {MOST_DERIVED} may be"
        raise SpecError(document.location(path), rule, "split the release")
    derived = {}
    for name, entry in entries.items():
        if directory is not None and isinstance(entry, dict) and "per_unit" in entry:
            rule = "columns of units are stated below per_unit, beside derived"
            way_out = "as per_unit: {visits: count, spend: {sum: amount, lower: 0, upper: 100}}"
            raise SpecError(document.location(("derived", name)), rule, way_out)
        derived[name] = _read_column(
            document, ("derived", name), partial(read_derived, name, entry, directory)
        )
    derived |= _read_per_unit_columns(document, content, derived)
    try:
        in_order(derived)
    except ValueError as error:
        raise SpecError(document.location(path), str(error)) from None
    return derived


def _read_per_unit_columns(
    document: Document, content: dict[str, Any], derived: Mapping[str, DerivedColumn]
) -> dict[str, DerivedColumn]:
    """Return the columns of units, none of them called like a derived column."""
    entries = content.get("per_unit", {})
    if not isinstance(entries, dict):
        raise SpecError(document.location(("per_unit",)), "it maps names of new columns to what they are")
    if len(entries) + len(derived) > MOST_DERIVED:
        rule = f"{len(entries) + len(derived)} columns are derived, at most {MOST_DERIVED} may be"
        raise SpecError(document.location(("per_unit",)), rule, "split the release")
    read = {}
    for name, entry in entries.items():
        if name in derived:
            rule = "a derived column has this name too"
            raise SpecError(document.location(("per_unit", name)), rule, "call one of the two otherwise")
        read[name] = _read_column(document, ("per_unit", name), partial(read_per_unit, name, entry))
    return read


def _read_column(
    document: Document, path: tuple[str, ...], read: Callable[[], DerivedColumn]
) -> DerivedColumn:
    try:
        return read()
    except ValidationError as error:
        raise spec_error(document, path, error, DerivedColumn) from None
    except ValueError as error:
        raise SpecError(document.location(path), str(error)) from None


def spec_error(
    document: Document, prefix: tuple[str, ...], error: ValidationError, model: type[fields.SpecModel]
) -> SpecError:
    """Turn pydantic's first complaint into ours: place, rule, value, way out."""
    first = first_complaint(error.errors(include_url=False))
    path = (*prefix, *first["loc"])
    if first["type"] == UNKNOWN_KEY:
        holder = _model_at(document, model, first["loc"])
        names = [name for name in holder.model_fields if name not in NOT_STATED]
        known = ", ".join([*names, *(["per_unit"] if issubclass(holder, Terms) else [])])
        return SpecError(document.location(path), "unknown key", f"known keys: {known}")
    if first["type"] == MISSING_KEY:
        hint = f'write it as `{path[-1]}: ...`; the documentation\'s page "The spec" says what it means'
        return SpecError(document.location(path[:-1]), f"the key {path[-1]!r} is missing", hint)
    return SpecError(document.location(path), rule_of(first))


def _model_at(
    document: Document, model: type[fields.SpecModel], loc: tuple[int | str, ...]
) -> type[fields.SpecModel]:
    """Return the model that holds the last key of a place: fields are models, or mappings to models."""
    if "source" in model.model_fields and len(loc) > 1 and loc[0] == "source":
        from suffice.pipeline.terms.declaration.source_specs import source_model  # of a spec with a mistake

        model, loc = source_model(document.content["source"]), loc[1:]
    for key in loc[:-1]:
        if key in model.model_fields:
            annotation = model.model_fields[str(key)].annotation
            kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
            model = next((kind for kind in kinds if issubclass(kind, fields.SpecModel)), model)
    return model
