"""What a spec and a plan are checked by: statistics, the limits on them, and how complaints read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES, NO_SUMS
from suffice.pipeline.families.shared.within_unit import measure_within, most_rows
from suffice.pipeline.spec.sampled import check_sample, refuse_sample
from suffice.pipeline.terms.declaration.derived_column import DerivedColumn
from suffice.pipeline.terms.declaration.derived_columns import MOST_DERIVED, in_order, read_derived
from suffice.pipeline.terms.declaration.domains import (
    MOST_CELLS,
    MOST_PERIODS,
    too_many_cells,
    too_many_periods,
)
from suffice.pipeline.terms.declaration.fields import RowsOf, SpecModel, statistic_name
from suffice.pipeline.terms.declaration.sample_entry import sample_entry
from suffice.pipeline.terms.declaration.source_specs import source_model
from suffice.pipeline.terms.declaration.wording import MISSING_KEY, UNKNOWN_KEY, first_complaint, rule_of
from suffice.pipeline.terms.statistics.side_column import N_SIDES

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.terms import Terms
    from suffice.pipeline.terms.declaration.document import Document
    from suffice.pipeline.terms.declaration.fields import ColumnUnit, StatisticSpec

_MOST_TOTAL_ROWS = 10**15
_MOST_STATISTICS = 1000
MOST_COMPONENTS = 2**16
"""Of all statistics in a cell: each is named in the manifest, which anyone has to be able to read."""
LARGEST_PLAN = 4 * 2**20
"""In bytes."""


def statistic_entries(document: Document, content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the statistics' entries, their names and number checked, not yet what they say."""
    entries = content.get("statistics")
    if not isinstance(entries, dict) or not entries:
        raise SpecError(document.location(("statistics",)), "a spec declares at least one statistic")
    if len(entries) > _MOST_STATISTICS:
        rule = f"{len(entries)} statistics are declared, at most {_MOST_STATISTICS} are released together"
        raise SpecError(document.location(("statistics",)), rule, "split the release")
    known: set[str] = set()
    for name, entry in entries.items():
        path = ("statistics", name)
        try:
            statistic_name(name)
        except ValueError as error:
            raise SpecError(document.location(path), str(error)) from None
        if name.lower() in known:
            raise SpecError(document.location(path), "another statistic has this name in other letter case")
        known.add(name.lower())
        if not isinstance(entry, dict) or not isinstance(entry.get("family"), str):
            raise SpecError(
                document.location(path), "a statistic is a mapping with a family", _known_families()
            )
        family = entry["family"]
        if family not in FAMILIES:
            raise SpecError(document.location((*path, "family")), _no_family(family), _known_families())
    return entries


def read_statistic(
    document: Document, name: str, entry: dict[str, Any], directory: Path | None
) -> StatisticSpec:
    """Return one statistic, validated by its family; without a directory no domain is read from a file."""
    family = FAMILIES[entry["family"]]
    if family.sampled is None and "sample" in entry:
        refuse_sample(document, name, family)
    model = family.spec
    try:
        return model.model_validate(entry, context={"directory": directory})
    except ValidationError as error:
        raise spec_error(document, ("statistics", name), error, model) from None


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
        try:
            derived[name] = read_derived(name, entry, directory)
        except ValidationError as error:
            raise spec_error(document, ("derived", name), error, DerivedColumn) from None
        except ValueError as error:
            raise SpecError(document.location(("derived", name)), str(error)) from None
    try:
        in_order(derived)
    except ValueError as error:
        raise SpecError(document.location(path), str(error)) from None
    return derived


def _no_family(family: str) -> str:
    if family in NO_SUMS:
        return f"{family} is no exponential family: {NO_SUMS[family]}"
    return f"no family {family!r}"


def _known_families() -> str:
    return f"families: {', '.join(FAMILIES)}"


def spec_error(
    document: Document, prefix: tuple[str, ...], error: ValidationError, model: type[SpecModel]
) -> SpecError:
    """Turn pydantic's first complaint into ours: place, rule, value, way out."""
    first = first_complaint(error.errors(include_url=False))
    path = (*prefix, *first["loc"])
    if first["type"] == UNKNOWN_KEY:
        holder = _model_at(document, model, first["loc"])
        known = ", ".join(name for name in holder.model_fields if name != "directory")
        return SpecError(document.location(path), "unknown key", f"known keys: {known}")
    if first["type"] == MISSING_KEY:
        hint = f'write it as `{path[-1]}: ...`; the documentation\'s page "The spec" says what it means'
        return SpecError(document.location(path[:-1]), f"the key {path[-1]!r} is missing", hint)
    return SpecError(document.location(path), rule_of(first))


def _model_at(document: Document, model: type[SpecModel], loc: tuple[int | str, ...]) -> type[SpecModel]:
    """Return the model that holds the last key of a place: fields are models, or mappings to models."""
    if "source" in model.model_fields and len(loc) > 1 and loc[0] == "source":
        model, loc = source_model(document.content["source"]), loc[1:]
    for key in loc[:-1]:
        if key in model.model_fields:
            annotation = model.model_fields[str(key)].annotation
            kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
            model = next((kind for kind in kinds if issubclass(kind, SpecModel)), model)
    return model


def check_terms(document: Document, terms: Terms) -> None:
    """Check what all statistics share: the bound on rows, and the number of cells."""
    if not 1 <= terms.max_total_rows <= _MOST_TOTAL_ROWS:
        raise SpecError(document.location(("max_total_rows",)), f"must lie in 1..{_MOST_TOTAL_ROWS}")
    _check_physical(document, terms)
    _check_cells(document.location(("groups",)), _group_cells(terms))
    periods = sum(len(domain) for domain in terms.groups.values() if domain.every is not None)
    if periods > MOST_PERIODS:
        raise SpecError(document.location(("groups",)), too_many_periods(periods), "group by longer periods")


def _check_physical(document: Document, terms: Terms) -> None:
    """Refuse a derived column where a guarantee rests on the source's own."""
    window, unit = terms.window, terms.privacy.column_unit
    places = [
        *([(("window", "column"), window.column)] if window else []),
        *([(("privacy", "unit", "column"), unit.column)] if unit else []),
    ]
    for path, column in places:
        _refuse_derived(document.location(path), terms, column)


def _refuse_derived(location: str, terms: Terms, column: str) -> None:
    if column in terms.derived:
        rule = f"{column!r} is a derived column; window, unit and order are columns of the source"
        raise SpecError(location, rule, "name one, or let the source hold this one")


def check_statistic(document: Document, terms: Terms, name: str, statistic: StatisticSpec) -> None:
    """Check a statistic against the terms that it stands among."""
    family, location = FAMILIES[statistic.family], document.location(("statistics", name))
    check_unit(document, terms, name, statistic)
    _check_cells(location, _group_cells(terms) * family.n_categories(statistic))
    check_sample(document, name, statistic, _group_cells(terms))
    variables = {variable.name for table in family.tables(statistic) for variable in table.variables}
    unit, order = terms.privacy.column_unit, getattr(statistic, "order", None)
    if order is not None:
        _refuse_derived(document.location(("statistics", name, "order")), terms, order)
    if unit is not None and order == unit.column:
        raise SpecError(location, f"{order!r} is the unit, so it cannot order a unit's rows", "name a time")
    for variable in terms.groups.keys() & variables:
        raise SpecError(
            location,
            f"the variable {variable!r} is a group too",
            "call it otherwise, and state its column",
        )


def check_unit(document: Document, terms: Terms, name: str, statistic: StatisticSpec) -> None:
    """Check what a statistic says of units against the unit that it stands under."""
    family, path = FAMILIES[statistic.family], ("statistics", name)
    state_one = "state whose rows belong together, as unit: {column: customer_id, max_rows: 20}"
    if family.needs_unit and terms.privacy.column_unit is None:
        rule = f"{statistic.family} follows the rows of a unit; unit: row does not say which those are"
        raise SpecError(document.location(path), rule, state_one)
    if statistic.rows_of is RowsOf.UNITS:
        location = document.location((*path, "rows_of"))
        if family.of_units is None:
            takers = ", ".join(name for name, each in FAMILIES.items() if each.of_units is not None)
            rule = f"{statistic.family} is of rows; rows_of: units is for {takers}"
            raise SpecError(location, rule, "leave it out, or choose one of those families")
        if terms.privacy.column_unit is None:
            raise SpecError(location, "each row is a unit where the unit is a row", state_one)
    if statistic.within_unit is not None:
        _check_within_unit(document.location((*path, "within_unit")), terms.privacy.column_unit, statistic)
    if statistic.count_clipped is not None:
        _check_count_clipped(document.location((*path, "count_clipped")), statistic)
    broken = family.refused_under(statistic)
    if broken is not None:
        raise SpecError(document.location(path), broken)


def _check_within_unit(location: str, unit: ColumnUnit | None, statistic: StatisticSpec) -> None:
    """Check that there is something to release of units beside their rows."""
    family = FAMILIES[statistic.family]
    if family.unit_moments is None:
        known = ", ".join(name for name, each in FAMILIES.items() if each.unit_moments is not None)
        rule = f"{family.name} does not tell how rows of one unit depend on each other"
        raise SpecError(location, rule, f"leave it out, or use one of: {known}")
    if unit is None:
        rule = "it is about rows of one unit, and with unit: row every row is one"
        raise SpecError(location, rule, "leave it out, or state unit: {column: customer_id, max_rows: 20}")
    if statistic.rows_of is RowsOf.UNITS:
        raise SpecError(location, "with rows_of: units each unit counts once", "leave one of the two out")
    if unit.max_rows == 1:
        way_out = "leave it out, or raise max_rows"
        raise SpecError(location, "units keep one row each: nothing is within a unit", way_out)
    most = most_rows(measure_within(family.measure(statistic)))
    if unit.max_rows > most:
        rule = f"max_rows is {unit.max_rows}: squares of a unit's sums are exact up to max_rows {most} only"
        raise SpecError(location, rule, "leave it out, lower max_rows, or lower lattice_bits")


def _check_count_clipped(location: str, statistic: StatisticSpec) -> None:
    """Check that a statistic has sums of rows beside which those that clipping moved can be counted."""
    family = FAMILIES[statistic.family]
    if family.clipping_bounds is None:
        known = ", ".join(name for name, each in FAMILIES.items() if each.clipping_bounds is not None)
        rule = f"{family.name} does not count what clipping moved"
        raise SpecError(location, rule, f"leave it out, or use one of: {known}")
    if statistic.rows_of is RowsOf.UNITS:
        rule = "it counts rows that clipping moved, and with rows_of: units each unit counts once"
        raise SpecError(location, rule, "leave one of the two out")
    for key, is_there in (
        ("within_unit", statistic.within_unit is not None),
        ("sample", sample_entry(statistic) is not None),
    ):
        if is_there:
            rule = f"counts stand beside sums alone, and {key} is stated too"
            raise SpecError(location, rule, "leave one of the two out")


def n_sums(statistic: StatisticSpec) -> int:
    """Return how many sums a statistic rests on, which its components do not exceed; nothing is expanded.

    Of a sample the points of its grid count.
    """
    sample = sample_entry(statistic)
    if sample is not None:
        return sample.grid
    rows = FAMILIES[statistic.family].measure(statistic)
    if statistic.count_clipped is not None:
        return rows.width + N_SIDES
    return (rows if statistic.within_unit is None else measure_within(rows)).width


def _group_cells(terms: Terms) -> int:
    return math.prod(len(domain) for domain in terms.groups.values())


def _check_cells(location: str, cells: int) -> None:
    if cells > MOST_CELLS:
        raise SpecError(location, too_many_cells(cells), "coarsen a domain")
