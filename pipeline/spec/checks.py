"""What a declaration has to be as a whole: statistics against the terms that they stand among.

What one key may say alone, its field checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import PriorError, SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import measure_within, most_rows
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.declaration.column_types import TypeFamily
from suffice.pipeline.terms.declaration.column_unit import UnitNulls, UnitType
from suffice.pipeline.terms.declaration.derived_columns import UniformText, of_units
from suffice.pipeline.terms.declaration.derived_conditions import condition_inputs
from suffice.pipeline.terms.declaration.derived_values import ParsedText
from suffice.pipeline.terms.declaration.domains import (
    MOST_CELLS,
    MOST_PERIODS,
    Domain,
    DomainKind,
    cell_count,
    too_many_cells,
    too_many_periods,
)
from suffice.pipeline.terms.declaration.row_rules import is_rule, unit_misfit, window_misfit
from suffice.pipeline.terms.declaration.unit_aggregates import UnitAggregate
from suffice.pipeline.terms.statistics.measure import N_SIDES, columns_of
from suffice.pipeline.terms.statistics.sample_plan import grid_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from suffice.pipeline.spec.terms import Terms
    from suffice.pipeline.terms.declaration.column_unit import ColumnUnit
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
    from suffice.pipeline.terms.declaration.spec_text import Document

_MOST_TOTAL_ROWS = 10**15
ROWS_PER_UNIT = "rows_per_unit"
_STATE_A_UNIT = "state whose rows belong together, as unit: {column: customer_id, max_rows: 20}"


def taking(part: str) -> str:
    """Name the families that have a part, for messages."""
    return ", ".join(name for name, family in FAMILIES.items() if getattr(family, part) is not None)


def check_terms(document: Document, terms: Terms) -> None:
    """Check what all statistics share: the bound on rows, and the number of cells."""
    if not 1 <= terms.max_total_rows <= _MOST_TOTAL_ROWS:
        raise SpecError(document.location(("max_total_rows",)), f"must lie in 1..{_MOST_TOTAL_ROWS}")
    window, unit = terms.window, terms.privacy.column_unit
    _check_columns_of_units(document, terms)
    if window is not None:
        _refuse_of_units(document, terms, ("window", "column"), [window.column], "windows divide")
        misfit = window_misfit(window.column, terms.derived, window.time_zone)
        _check_rule(document.location(("window", "column")), window.column, misfit)
    if unit is not None:
        _refuse_of_units(document, terms, ("privacy", "unit", "column"), [unit.column], "units are values of")
        misfit = unit_misfit(unit.column, terms.derived)
        _check_rule(document.location(("privacy", "unit", "column")), unit.column, misfit)
        _check_unit_type(document, unit, terms.derived.get(unit.column))
        if unit.nulls is UnitNulls.OWN_UNIT and isinstance(terms.derived.get(unit.column), ParsedText):
            rule = "what a unit's rule does not read would be a unit of its own each time, whoever's it is"
            raise SpecError(
                document.location(("privacy", "unit", "nulls")), rule, "leave it out: such rows drop"
            )
    _check_zones(document, terms)
    _check_groups(document.location(("groups",)), terms.groups)
    _check_keys(document, ("groups",), terms.derived, terms.groups)


def _check_keys(
    document: Document,
    place: tuple[str, ...],
    derived: Mapping[str, DerivedColumn],
    domains: Mapping[str, Domain],
) -> None:
    """Refuse keys that no text of a derived column is equal to: their cells would hold noise alone."""
    for column, domain in domains.items():
        of = derived.get(column)
        if not isinstance(of, UniformText) or domain.kind is not DomainKind.LIST:
            continue
        for key in map(str, domain):
            misfit = of.misfit(key)
            if misfit is not None:
                rule = f"no row has {key!r}, as {column!r} is derived: {misfit}"
                raise SpecError(document.location((*place, column)), rule, "write the key so, too")


def _check_groups(location: str, groups: Mapping[str, Domain]) -> None:
    _check_cells(location, cell_count(groups))
    periods = sum(len(domain) for domain in groups.values() if domain.every is not None)
    if periods > MOST_PERIODS:
        raise SpecError(location, too_many_periods(periods), "group by longer periods")


def _check_zones(document: Document, terms: Terms) -> None:
    """Refuse a time zone for derived times that lie in none: they would be taken for instants of UTC."""
    computed = {f"{of.section}.{name}": of for name, of in terms.derived.items()}
    computed |= {place: of for place, of in terms.conditions.items() if not isinstance(of, str)}
    for place, of in computed.items():
        for each in of.inputs:
            if each.needs_zone and each.column in terms.derived and not terms.derived[each.column].has_zone:
                rule = f"{each.column!r} has no time zone, so that its times are read as they are"
                raise SpecError(document.location(tuple(place.split(".", 1))), rule, "leave time_zone out")


def _check_rule(location: str, column: str, misfit: str | None) -> None:
    """Refuse a column of a window or a unit that no grant can name by its rule."""
    if misfit is not None:
        raise SpecError(location, misfit, "derive it so, or let the source hold it")
    if is_rule(column):
        raise SpecError(location, "the column is called as rules of derived ones are written", "rename it")


def _check_unit_type(document: Document, unit: ColumnUnit, of: DerivedColumn | None) -> None:
    """Refuse a type of units that their derived column is not of."""
    needed = {UnitType.TEXT: TypeFamily.TEXT, UnitType.INTEGER: TypeFamily.NUMERIC}
    if of is not None and unit.type is not None and of.family is not needed[unit.type]:
        rule = f"the derived column {unit.column!r} is {of.family}, not {unit.type}"
        raise SpecError(document.location(("privacy", "unit", "type")), rule, "leave it out")


def _check_columns_of_units(document: Document, terms: Terms) -> None:
    """Check that columns of units are aggregates of rows, rest on each other alone, and choose no rows."""
    on_units = of_units(terms.derived)
    if on_units and terms.privacy.column_unit is None:
        name = next(name for name, of in terms.derived.items() if isinstance(of, UnitAggregate))
        rule = "unit: row does not say which rows belong together"
        raise SpecError(document.location(("per_unit", name)), rule, _STATE_A_UNIT)
    places: dict[tuple[str, ...], DerivedColumn] = {
        (of.section, name): of for name, of in terms.derived.items()
    }
    conditions = ((place, of) for place, of in terms.conditions.items() if not isinstance(of, str))
    places |= {tuple(place.split(".", 1)): of for place, of in conditions}
    for place, of in places.items():
        columns = [each.column for each in of.inputs]
        resting = [column for column in columns if column in on_units]
        if resting and isinstance(of, UnitAggregate):
            rule = f"{resting[0]!r} is of units already, and this is of their rows"
            raise SpecError(document.location(place), rule, "name a column of rows")
        if resting and len(resting) < len(columns):
            other = next(column for column in columns if column not in on_units)
            rule = f"{resting[0]!r} is of units and {other!r} of rows: a unit has many values of that"
            raise SpecError(document.location(place), rule, "state the other below per_unit, as its max, say")
    where = _columns_of_condition(terms, "where")
    _refuse_of_units(document, terms, ("where",), where, "rows are chosen by")
    _refuse_of_units(document, terms, ("groups",), terms.groups, "cells are of")


def _refuse_of_units(
    document: Document, terms: Terms, place: tuple[str, ...], columns: Iterable[str], use: str
) -> None:
    """Refuse columns of units where rows are told apart, of which these columns are made."""
    on_units = of_units(terms.derived)
    for column in columns:
        if column in on_units:
            rule = f"{column!r} is a column of units; {use} columns of rows"
            way_out = "use it in a statistic with rows_of: units, as its column or its where"
            raise SpecError(document.location(place), rule, way_out)


def _columns_of_condition(terms: Terms, place: str) -> list[str]:
    """Return the columns of the condition that a place states; none where it states none."""
    condition = terms.conditions.get(place)
    return [] if condition is None else [of.column for of in condition_inputs(condition)]


def _check_statistic_of_units(
    document: Document, terms: Terms, name: str, statistic: fields.StatisticSpec
) -> None:
    """Refuse columns of units in a statistic's groups, and in statistics of rows."""
    path = ("statistics", name)
    _refuse_of_units(document, terms, (*path, "groups"), statistic.groups or {}, "cells are of")
    if statistic.rows_of is fields.RowsOf.UNITS:
        return
    where = _columns_of_condition(terms, f"statistics.{name}.where")
    columns = [*columns_of(FAMILIES[statistic.family].measure(statistic)), *where]
    used = next((column for column in columns if column in of_units(terms.derived)), None)
    if used is not None:
        rule = f"{used!r} is a column of units, and this is a statistic of rows"
        way_out = f"state rows_of: units, for {taking('of_units')}"
        raise SpecError(document.location(path), rule, way_out)


def _refuse_derived(location: str, terms: Terms, column: str) -> None:
    """Refuse a derived column where the order of a unit's rows rests on the source's own."""
    if column in terms.derived:
        kind = "column of units" if column in of_units(terms.derived) else "derived column"
        rule = f"{column!r} is a {kind}; order is a column of the source"
        raise SpecError(location, rule, "name one, or let the source hold this one")


def check_statistic(document: Document, terms: Terms, name: str, statistic: fields.StatisticSpec) -> None:
    """Check a statistic against the terms that it stands among."""
    family, location = FAMILIES[statistic.family], document.location(("statistics", name))
    check_unit(document, terms, name, statistic)
    _check_statistic_of_units(document, terms, name, statistic)
    _check_keys(document, ("statistics", name, "groups"), terms.derived, statistic.groups or {})
    column, categories = (getattr(statistic, part, None) for part in ("column", "categories"))
    if isinstance(column, str) and isinstance(categories, Domain):
        _check_keys(document, ("statistics", name), terms.derived, {column: categories})
    groups = terms.groups_of(statistic)
    if statistic.groups is not None:
        _check_groups(document.location(("statistics", name, "groups")), groups)
    _check_cells(location, cell_count(groups) * family.n_categories(statistic))
    _check_sample(document, name, statistic, cell_count(groups))
    variables = {variable.name for table in family.tables(statistic) for variable in table.variables}
    unit, order = terms.privacy.column_unit, getattr(statistic, "order", None)
    if order is not None:
        _refuse_derived(document.location(("statistics", name, "order")), terms, order)
    if unit is not None and order == unit.column:
        raise SpecError(location, f"{order!r} is the unit, so it cannot order a unit's rows", "name a time")
    for variable in groups.keys() & variables:
        rule = f"the variable {variable!r} is a group too"
        raise SpecError(location, rule, "call it otherwise, and state its column")


def check_unit(document: Document, terms: Terms, name: str, statistic: fields.StatisticSpec) -> None:
    """Check what a statistic says of units against the unit that it stands under."""
    family, path = FAMILIES[statistic.family], ("statistics", name)
    if family.needs_unit and terms.privacy.column_unit is None:
        rule = f"{statistic.family} follows the rows of a unit; unit: row does not say which those are"
        raise SpecError(document.location(path), rule, _STATE_A_UNIT)
    if statistic.rows_of is fields.RowsOf.UNITS:
        location = document.location((*path, "rows_of"))
        if family.of_units is None:
            rule = f"{statistic.family} is of rows; rows_of: units is for {taking('of_units')}"
            raise SpecError(location, rule, "leave it out, or choose one of those families")
        if terms.privacy.column_unit is None:
            raise SpecError(location, "each row is a unit where the unit is a row", _STATE_A_UNIT)
    if statistic.within_unit is not None:
        _check_within_unit(document.location((*path, "within_unit")), terms.privacy.column_unit, statistic)
    if statistic.count_clipped is not None:
        _check_count_clipped(document.location((*path, "count_clipped")), statistic)
    if statistic.where is not None and family.name == ROWS_PER_UNIT:
        rule = (
            f"{family.name} counts the rows of units that a bound leaves out, and this acts after the bound"
        )
        raise SpecError(document.location((*path, "where")), rule, "state it at the top of the spec")
    broken = family.refused_under(statistic)
    if broken is not None:
        raise SpecError(document.location(path), broken)


def _check_within_unit(location: str, unit: ColumnUnit | None, statistic: fields.StatisticSpec) -> None:
    """Check that there is something to release of units beside their rows."""
    family = FAMILIES[statistic.family]
    if family.unit_moments is None:
        rule = f"{family.name} does not tell how rows of one unit depend on each other"
        raise SpecError(location, rule, f"leave it out, or use one of: {taking('unit_moments')}")
    if unit is None:
        rule = "it is about rows of one unit, and with unit: row every row is one"
        raise SpecError(location, rule, "leave it out, or state unit: {column: customer_id, max_rows: 20}")
    if statistic.rows_of is fields.RowsOf.UNITS:
        raise SpecError(location, "with rows_of: units each unit counts once", "leave one of the two out")
    bound = "max_rows" if unit.max_rows_per_cell is None else "max_rows_per_cell"
    rows = statistic.contribution.rows_in_cell
    if rows == 1:
        kept = "one row each" if bound == "max_rows" else "one row in a cell"
        way_out = f"leave it out, or raise {bound}"
        raise SpecError(location, f"units keep {kept}: nothing is within a unit", way_out)
    most = most_rows(measure_within(family.measure(statistic)))
    if rows > most:
        rule = f"{bound} is {rows}: squares of a unit's sums are exact up to {bound} {most} only"
        raise SpecError(location, rule, f"leave it out, lower {bound}, or lower lattice_bits")


def _check_count_clipped(location: str, statistic: fields.StatisticSpec) -> None:
    """Check that a statistic has sums of rows beside which those that clipping moved can be counted."""
    family = FAMILIES[statistic.family]
    if family.clipping_bounds is None:
        rule = f"{family.name} does not count what clipping moved"
        raise SpecError(location, rule, f"leave it out, or use one of: {taking('clipping_bounds')}")
    if statistic.rows_of is fields.RowsOf.UNITS:
        rule = "it counts rows that clipping moved, and with rows_of: units each unit counts once"
        raise SpecError(location, rule, "leave one of the two out")
    beside = {"within_unit": statistic.within_unit, "sample": fields.sample_entry(statistic)}
    for key in (key for key, stated in beside.items() if stated is not None):
        rule = f"counts stand beside sums alone, and {key} is stated too"
        raise SpecError(location, rule, "leave one of the two out")


def n_sums(statistic: fields.StatisticSpec) -> int:
    """Return how many sums a statistic rests on, which its components do not exceed; nothing is expanded.

    Of a sample the points of its grid count, of a quantile the bins.
    """
    sample = fields.sample_entry(statistic)
    if isinstance(sample, fields.SampleEntry):
        return sample.grid
    rows = FAMILIES[statistic.family].measure(statistic)
    if statistic.count_clipped is not None:
        return rows.width + N_SIDES
    return (rows if statistic.within_unit is None else measure_within(rows)).width


def _check_cells(location: str, cells: int) -> None:
    if cells > MOST_CELLS:
        raise SpecError(location, too_many_cells(cells), "coarsen a domain")


def with_prior(document: Document, name: str, statistic: fields.StatisticSpec) -> fields.StatisticSpec:
    """Return a statistic whose sample states its prior: the family's default where none is given."""
    entry = fields.sample_entry(statistic)
    if not isinstance(entry, fields.SampleEntry):
        return statistic
    from suffice.pipeline.math.priors.mixtures import canonical_prior  # samples alone have priors

    family = FAMILIES[statistic.family]
    prior = entry.prior
    if prior is None:
        prior = str(family.default_prior(family.parameters(statistic)))
    try:
        stated = canonical_prior(prior)
    except PriorError as error:
        raise SpecError(document.location(("statistics", name, "sample", "prior")), str(error)) from None
    return statistic.model_copy(update={"sample": entry.model_copy(update={"prior": stated})})


def _check_sample(document: Document, name: str, statistic: fields.StatisticSpec, cells: int) -> None:
    """Check a sample against its family and the statistic that it stands in."""
    entry = fields.sample_entry(statistic)
    if entry is None:
        return
    path = ("statistics", name, "sample")
    if statistic.within_unit is not None:
        location, rule = (
            document.location((*path[:-1], "within_unit")),
            "a sample has nothing of units beside it",
        )
        raise SpecError(location, rule, "leave one of the two out")
    if cells * entry.draws > MOST_CELLS:
        rule = f"{cells * entry.draws} draws are declared in all cells, at most {MOST_CELLS} are released"
        raise SpecError(document.location((*path, "draws")), rule, "draw fewer, or coarsen a domain")
    if isinstance(entry, fields.QuantileEntry):
        return
    space = sampled_parameter(statistic)
    lower, upper = entry.within
    least, most = space.support.ends
    if lower <= least or upper >= most:
        inside = "above 0 and below 1" if space.support is Support.PROBABILITY else "above 0"
        rule = (
            f"both ends of a {space.name} are {inside}: elsewhere one record could move the log likelihood "
            "without bound"
        )
        raise SpecError(document.location((*path, "within")), rule, "as [0.005, 0.5]")
    values = grid_values(entry.within, entry.grid)
    distinct = set(values.tolist())
    if len(distinct) < entry.grid or (space.support is Support.PROBABILITY and 1.0 in distinct):
        rule = "its points are not distinct in float64, in which they are read, or the last one is 1 there"
        raise SpecError(document.location((*path, "within")), rule, "widen it, or take fewer points")
    from suffice.pipeline.math.priors.mixtures import log_prior_on_points  # samples alone have priors

    try:
        log_prior_on_points(str(entry.prior), values)
    except PriorError as error:
        way_out = "choose within and a prior that leave every point a chance"
        raise SpecError(document.location((*path, "prior")), str(error), way_out) from None


def sampled_parameter(statistic: fields.StatisticSpec) -> ParameterSpace:
    """Return the one parameter of a sampled statistic."""
    family = FAMILIES[statistic.family]
    (space,) = family.parameter_spaces(family.parameters(statistic))
    return space
