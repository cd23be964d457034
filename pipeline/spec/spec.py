"""The declarative spec of a release: its terms, and where the rows are; no code, no query text.

How it is read and checked: statistics, the limits on them, samples, and how complaints read.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import PlainValidator, ValidationError

from suffice.errors import PriorError, SpecError, UsageError
from suffice.pipeline.families import FAMILIES, NO_SUMS
from suffice.pipeline.families.shared.beside_sums import measure_within, most_rows
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.math.priors.mixtures import canonical_prior, log_prior_on_points
from suffice.pipeline.spec.about import LARGEST_ABOUT, NOTHING, About, is_small, misfit
from suffice.pipeline.spec.terms import Terms
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.declaration.derived_columns import MOST_DERIVED, in_order, read_derived
from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn, read_condition
from suffice.pipeline.terms.declaration.domain_entries import domain_size
from suffice.pipeline.terms.declaration.domains import (
    MOST_CELLS,
    MOST_PERIODS,
    too_many_cells,
    too_many_periods,
)
from suffice.pipeline.terms.declaration.source_specs import SourceSpec, parse_source, source_model
from suffice.pipeline.terms.declaration.spec_text import Document, read_file, read_mapping
from suffice.pipeline.terms.declaration.wording import MISSING_KEY, UNKNOWN_KEY, first_complaint, rule_of
from suffice.pipeline.terms.statistics.measure import N_SIDES
from suffice.pipeline.terms.statistics.statistic_plan import grid_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.statistics.sensitivity import Constants


_MOST_TOTAL_ROWS = 10**15
ROWS_PER_UNIT = "rows_per_unit"


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
    if family.sampled is None and "sample" in entry:
        rule = (
            f"{family.name} has several parameters, and a sample is of one, on a grid: {_taking('sampled')}"
        )
        way_out = "leave it out: from the noisy statistics anyone draws any number of posterior samples"
        raise SpecError(document.location(("statistics", name, "sample")), rule, way_out)
    try:
        context = {"directory": directory, fields.READS_CONDITION: read_condition}
        return family.spec.model_validate(entry, context=context)
    except ValidationError as error:
        raise spec_error(document, ("statistics", name), error, family.spec) from None


def _taking(part: str) -> str:
    """Name the families that have a part, for messages."""
    return ", ".join(name for name, family in FAMILIES.items() if getattr(family, part) is not None)


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


def spec_error(
    document: Document, prefix: tuple[str, ...], error: ValidationError, model: type[fields.SpecModel]
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


def _model_at(
    document: Document, model: type[fields.SpecModel], loc: tuple[int | str, ...]
) -> type[fields.SpecModel]:
    """Return the model that holds the last key of a place: fields are models, or mappings to models."""
    if "source" in model.model_fields and len(loc) > 1 and loc[0] == "source":
        model, loc = source_model(document.content["source"]), loc[1:]
    for key in loc[:-1]:
        if key in model.model_fields:
            annotation = model.model_fields[str(key)].annotation
            kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
            model = next((kind for kind in kinds if issubclass(kind, fields.SpecModel)), model)
    return model


def check_terms(document: Document, terms: Terms) -> None:
    """Check what all statistics share: the bound on rows, and the number of cells."""
    if not 1 <= terms.max_total_rows <= _MOST_TOTAL_ROWS:
        raise SpecError(document.location(("max_total_rows",)), f"must lie in 1..{_MOST_TOTAL_ROWS}")
    window, unit = terms.window, terms.privacy.column_unit
    if window is not None:
        _refuse_derived(document.location(("window", "column")), terms, window.column)
    if unit is not None:
        _refuse_derived(document.location(("privacy", "unit", "column")), terms, unit.column)
    _check_zones(document, terms)
    _check_cells(document.location(("groups",)), terms.n_cells)
    periods = sum(len(domain) for domain in terms.groups.values() if domain.every is not None)
    if periods > MOST_PERIODS:
        raise SpecError(document.location(("groups",)), too_many_periods(periods), "group by longer periods")


def _check_zones(document: Document, terms: Terms) -> None:
    """Refuse a time zone for derived times that lie in none: they would be taken for instants of UTC."""
    computed = {f"derived.{name}": of for name, of in terms.derived.items()}
    computed |= {place: of for place, of in terms.conditions.items() if not isinstance(of, str)}
    for place, of in computed.items():
        for each in of.inputs:
            if each.needs_zone and each.column in terms.derived and not terms.derived[each.column].has_zone:
                rule = f"{each.column!r} has no time zone, so that its times are read as they are"
                raise SpecError(document.location(tuple(place.split(".", 1))), rule, "leave time_zone out")


def _refuse_derived(location: str, terms: Terms, column: str) -> None:
    """Refuse a derived column where a guarantee rests on the source's own."""
    if column in terms.derived:
        rule = f"{column!r} is a derived column; window, unit and order are columns of the source"
        raise SpecError(location, rule, "name one, or let the source hold this one")


def check_statistic(document: Document, terms: Terms, name: str, statistic: fields.StatisticSpec) -> None:
    """Check a statistic against the terms that it stands among."""
    family, location = FAMILIES[statistic.family], document.location(("statistics", name))
    check_unit(document, terms, name, statistic)
    _check_cells(location, terms.n_cells * family.n_categories(statistic))
    _check_sample(document, name, statistic, terms.n_cells)
    variables = {variable.name for table in family.tables(statistic) for variable in table.variables}
    unit, order = terms.privacy.column_unit, getattr(statistic, "order", None)
    if order is not None:
        _refuse_derived(document.location(("statistics", name, "order")), terms, order)
    if unit is not None and order == unit.column:
        raise SpecError(location, f"{order!r} is the unit, so it cannot order a unit's rows", "name a time")
    for variable in terms.groups.keys() & variables:
        rule = f"the variable {variable!r} is a group too"
        raise SpecError(location, rule, "call it otherwise, and state its column")


def check_unit(document: Document, terms: Terms, name: str, statistic: fields.StatisticSpec) -> None:
    """Check what a statistic says of units against the unit that it stands under."""
    family, path = FAMILIES[statistic.family], ("statistics", name)
    state_one = "state whose rows belong together, as unit: {column: customer_id, max_rows: 20}"
    if family.needs_unit and terms.privacy.column_unit is None:
        rule = f"{statistic.family} follows the rows of a unit; unit: row does not say which those are"
        raise SpecError(document.location(path), rule, state_one)
    if statistic.rows_of is fields.RowsOf.UNITS:
        location = document.location((*path, "rows_of"))
        if family.of_units is None:
            rule = f"{statistic.family} is of rows; rows_of: units is for {_taking('of_units')}"
            raise SpecError(location, rule, "leave it out, or choose one of those families")
        if terms.privacy.column_unit is None:
            raise SpecError(location, "each row is a unit where the unit is a row", state_one)
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


def _check_within_unit(
    location: str, unit: fields.ColumnUnit | None, statistic: fields.StatisticSpec
) -> None:
    """Check that there is something to release of units beside their rows."""
    family = FAMILIES[statistic.family]
    if family.unit_moments is None:
        rule = f"{family.name} does not tell how rows of one unit depend on each other"
        raise SpecError(location, rule, f"leave it out, or use one of: {_taking('unit_moments')}")
    if unit is None:
        rule = "it is about rows of one unit, and with unit: row every row is one"
        raise SpecError(location, rule, "leave it out, or state unit: {column: customer_id, max_rows: 20}")
    if statistic.rows_of is fields.RowsOf.UNITS:
        raise SpecError(location, "with rows_of: units each unit counts once", "leave one of the two out")
    if unit.max_rows == 1:
        way_out = "leave it out, or raise max_rows"
        raise SpecError(location, "units keep one row each: nothing is within a unit", way_out)
    most = most_rows(measure_within(family.measure(statistic)))
    if unit.max_rows > most:
        rule = f"max_rows is {unit.max_rows}: squares of a unit's sums are exact up to max_rows {most} only"
        raise SpecError(location, rule, "leave it out, lower max_rows, or lower lattice_bits")


def _check_count_clipped(location: str, statistic: fields.StatisticSpec) -> None:
    """Check that a statistic has sums of rows beside which those that clipping moved can be counted."""
    family = FAMILIES[statistic.family]
    if family.clipping_bounds is None:
        rule = f"{family.name} does not count what clipping moved"
        raise SpecError(location, rule, f"leave it out, or use one of: {_taking('clipping_bounds')}")
    if statistic.rows_of is fields.RowsOf.UNITS:
        rule = "it counts rows that clipping moved, and with rows_of: units each unit counts once"
        raise SpecError(location, rule, "leave one of the two out")
    beside = {"within_unit": statistic.within_unit, "sample": fields.sample_entry(statistic)}
    for key in (key for key, stated in beside.items() if stated is not None):
        rule = f"counts stand beside sums alone, and {key} is stated too"
        raise SpecError(location, rule, "leave one of the two out")


def n_sums(statistic: fields.StatisticSpec) -> int:
    """Return how many sums a statistic rests on, which its components do not exceed; nothing is expanded.

    Of a sample the points of its grid count.
    """
    sample = fields.sample_entry(statistic)
    if sample is not None:
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
    if entry is None:
        return statistic
    family = FAMILIES[statistic.family]
    prior = entry.prior
    if prior is None:
        prior = str(family.default_prior(family.parameters(statistic)))
    try:
        stated = canonical_prior(prior)
    except PriorError as error:
        raise SpecError(document.location(("statistics", name, "sample", "prior")), str(error)) from None
    return statistic.model_copy(update={"sample": entry.model_copy(update={"prior": stated})})


def _check_sample(document: Document, name: str, statistic: fields.StatisticSpec, n_cells: int) -> None:
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
    if n_cells * entry.draws > MOST_CELLS:
        rule = f"{n_cells * entry.draws} draws are declared in all cells, at most {MOST_CELLS} are released"
        raise SpecError(document.location((*path, "draws")), rule, "draw fewer, or coarsen a domain")
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


class Spec(Terms):
    """A release's spec, validated: its terms, and where the rows are.

    Read one with :func:`load_spec`. Two specs with the same :meth:`canonical_plan` are the same release.
    """

    source: Annotated[SourceSpec, PlainValidator(parse_source)]
    expect: fields.Expectation | None = None
    about: About = NOTHING
    directory: Path = Path()

    @property
    def is_clustered(self) -> bool:
        """Whether the rows of a column unit are declared to stand together."""
        unit = self.privacy.column_unit
        return unit is not None and getattr(self.source, "clustered_by", None) == unit.column

    @property
    def source_address(self) -> str:
        """The place of the rows as accounts name it: an absolute path or pattern, or its like."""
        return self.source.address(self.directory)


def load_spec(source: str | os.PathLike[str] | Mapping[str, Any]) -> Spec:
    """Read and validate a spec.

    Parameters
    ----------
    source : path or mapping
        A YAML file, a JSON file (``.json``), or the same content as a nested mapping, whose relative
        paths then start from the current directory.

    Returns
    -------
    Spec

    Raises
    ------
    SpecError
        Naming the place, the rule, the value and a way out.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _validate(read_file(str(path)), path.parent)
    return _validate(read_mapping(source), Path())


def load_about(path: str | os.PathLike[str]) -> About:
    """Read words for the public: those below ``about`` in a spec, or a file of them alone.

    Raises
    ------
    SpecError
        Naming the place and the rule. Whether the words fit a release is not known here.
    """
    document = read_file(str(path))
    content = document.content
    is_spec = isinstance(content, dict) and "about" in content
    try:
        return About.model_validate(content["about"] if is_spec else content)
    except ValidationError as error:
        raise spec_error(document, ("about",) if is_spec else (), error, About) from None


def require_spec(spec: object) -> None:
    """Refuse what is no spec, as the path of one; the UsageError names :func:`load_spec`."""
    if not isinstance(spec, Spec):
        message = f"a {type(spec).__name__} is no spec: read it first, with suffice.load_spec(...)"
        raise UsageError(message)


def _validate(document: Document, directory: Path) -> Spec:
    content = document.content
    if not isinstance(content, dict):
        way_out = 'see the documentation\'s page "The spec"'
        raise SpecError(document.origin, "a spec is a mapping of keys", way_out)
    if "directory" in content:
        raise SpecError(document.location(("directory",)), "unknown key")
    _check_periods(document, content)
    read = {
        "derived": read_derived_columns(document, content, directory),
        "statistics": {
            name: read_statistic(document, name, entry, directory)
            for name, entry in statistic_entries(document, content).items()
        },
        "directory": directory,
    }
    try:
        spec = Spec.model_validate({**content, **read}, context={"directory": directory})
    except ValidationError as error:
        raise spec_error(document, (), error, Spec) from None
    check_terms(document, spec)
    _check_expect(document, spec)
    bound = {
        name: with_prior(document, name, each.under(spec.privacy.max_rows))
        for name, each in spec.statistics.items()
    }
    spec = spec.model_copy(update={"statistics": bound})
    for name, statistic in spec.statistics.items():
        check_statistic(document, spec, name, statistic)
    components = sum(n_sums(statistic) for statistic in spec.statistics.values())
    if components > MOST_COMPONENTS:
        rule = f"{components} components are declared, at most {MOST_COMPONENTS} are released together"
        raise SpecError(document.location(("statistics",)), rule, "coarsen a domain, or make it a group")
    if len(spec.canonical_plan().encode()) > LARGEST_PLAN:
        rule = f"the plan takes more than {LARGEST_PLAN} bytes, and stands in every release"
        raise SpecError(document.origin, rule, "list fewer keys, or state them as a range or by period")
    _check_about(document, spec)
    return spec


def _check_about(document: Document, spec: Spec) -> None:
    """Check that words are for what the release has."""

    def terms_of(name: str) -> tuple[str, Constants]:
        statistic = spec.statistics[name]
        return statistic.family, FAMILIES[statistic.family].parameters(statistic)

    other = misfit(spec.about, spec.statistics, terms_of, spec.groups)
    if other is not None:
        place, rule = other
        raise SpecError(document.location(("about", *place)), rule)
    if not is_small(spec.about):
        rule = f"words take more than {LARGEST_ABOUT // 2} bytes, and every reader reads them"
        raise SpecError(document.location(("about",)), rule, "shorten descriptions, or name fewer values")


def _check_expect(document: Document, spec: Spec) -> None:
    """Check that what is counted before the rest has a name, and is what accounts call the unit."""
    if spec.expect is None:
        return
    location = document.location(("expect",))
    if len(spec.name) > fields.LONGEST_NAME - len(fields.SUFFIX):
        count = spec.name + fields.SUFFIX
        rule = f"its count is released as {count}, and names have at most {fields.LONGEST_NAME} characters"
        raise SpecError(location, rule, "shorten the name")
    counts = "rows" if spec.privacy.column_unit is None else "units"
    if spec.expect.counts != counts:
        rule = f"the unit is {spec.privacy.unit_name}, so {counts} are counted"
        raise SpecError(location, rule, f"state {counts}: {spec.expect.floor}")
    if fields.ROW_FITS in spec.derived:
        rule = f"the derived column {fields.ROW_FITS!r} says which rows are counted"
        raise SpecError(document.location(("derived", fields.ROW_FITS)), rule, "call it otherwise")


def _check_periods(document: Document, content: dict[str, Any]) -> None:
    """Count the periods of all date ranges of a spec before any of them is listed."""
    count = 0
    left: list[object] = [content.get("groups"), content.get("statistics")]
    while left:
        entry = left.pop()
        if isinstance(entry, dict) and set(entry) == {"from", "to", "every"}:
            with contextlib.suppress(ValueError):  # said later, with its place
                count += domain_size(entry)
        elif isinstance(entry, dict):
            left += entry.values()
        elif isinstance(entry, list):
            left += entry
    if count > MOST_PERIODS:
        raise SpecError(document.origin, too_many_periods(count), "coarsen a range: every: month, say")
