"""The declarative spec of a release: what is released, about whom, at what price. No code, no query text."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field, PlainValidator, ValidationError, ValidationInfo

from suffice.errors import SpecError, UsageError
from suffice.pipeline.declaration.complaints import MISSING_KEY, UNKNOWN_KEY, first_complaint, rule_of
from suffice.pipeline.declaration.document import Document, read_file, read_mapping
from suffice.pipeline.declaration.domains import MOST_CELLS, Domain, period_start, too_many_cells
from suffice.pipeline.declaration.fields import (
    Column,
    ColumnUnit,
    Epsilon,
    EveryField,
    Integer,
    Name,
    SpecModel,
    StatisticSpec,
    canonical,
    domain_size,
    label_name,
    parse_domain,
    statistic_name,
)
from suffice.pipeline.declaration.source_specs import (
    NOT_BUILT,
    SOURCE_SPECS,
    SourceSpec,
    parse_source,
    source_model,
)
from suffice.pipeline.families import FAMILIES, NO_SUMS
from suffice.pipeline.statistics.sensitivity import NeighboringRelation

if TYPE_CHECKING:
    from collections.abc import Mapping

ALL = "all"
"""The window label of a spec without windows."""
ROW = "row"
"""The privacy unit where it is no column's value."""

DEFAULT_MAX_TOTAL_ROWS = 10**12
_MOST_TOTAL_ROWS = 10**15
_MOST_STATISTICS = 1000
MOST_COMPONENTS = 2**16
"""Of all statistics in a cell: each is named in the manifest, which anyone has to be able to read."""
MOST_PERIODS = 100_000
"""Of all groups by period: each is named in the manifest too."""
LARGEST_PLAN = 4 * 2**20
"""In bytes."""
PLAN_VERSION = "1"


class Window(SpecModel):
    """Releases per period of a date column: ``--window 2013-01`` selects those rows."""

    column: Column
    every: EveryField


def _neighboring(value: object) -> NeighboringRelation:
    if not isinstance(value, str) or value not in set(NeighboringRelation):
        message = f"{value!r} is neither add_or_remove_one nor replace_one"
        raise ValueError(message)
    return NeighboringRelation(value)


def _unit(value: object) -> str | ColumnUnit:
    if isinstance(value, dict):
        return ColumnUnit.model_validate(value)
    if value != ROW:
        message = f"{value!r} is not a privacy unit: use row, or {{column: customer_id, max_rows: 20}}"
        raise ValueError(message)
    return ROW


class Privacy(SpecModel):
    """The price and the guarantee."""

    epsilon: Epsilon
    neighboring: Annotated[NeighboringRelation, PlainValidator(_neighboring)]
    unit: Annotated[str | ColumnUnit, PlainValidator(_unit)] = ROW

    @property
    def column_unit(self) -> ColumnUnit | None:
        """The unit where it is a column's value; None where it is a row."""
        return self.unit if isinstance(self.unit, ColumnUnit) else None

    @property
    def unit_name(self) -> str:
        """The unit as accounts name it: ``row`` or ``column:NAME``."""
        return f"column:{self.unit.column}" if isinstance(self.unit, ColumnUnit) else ROW


def _groups(value: object, info: ValidationInfo) -> dict[str, Domain]:
    if not isinstance(value, dict):
        message = "groups map column names to domains"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    directory = (info.context or {}).get("directory", Path())
    groups: dict[str, Domain] = {}
    cells = 1
    for column, domain in value.items():  # counted before they are listed
        label_name("group", column)
        try:
            cells *= domain_size(domain)
        except ValueError as error:
            message = f"{column}: {error}"
            raise ValueError(message) from None
    if cells > MOST_CELLS:
        message = f"{too_many_cells(cells)} (coarsen a domain)"
        raise ValueError(message)
    for column, domain in value.items():
        try:
            groups[column] = parse_domain(domain, directory=directory, column=column)
        except ValueError as error:
            message = f"{column}: {error}"
            raise ValueError(message) from None
    return groups


class Terms(SpecModel):
    """What is charged: all that a spec declares but its source. Defaults are filled, domains inlined."""

    name: Name
    dataset: Name
    window: Window | None = None
    privacy: Privacy
    groups: Annotated[dict[str, Domain], PlainValidator(_groups)] = Field(default_factory=dict)
    statistics: dict[str, StatisticSpec]
    max_total_rows: Integer = DEFAULT_MAX_TOTAL_ROWS

    def canonical_plan(self) -> str:
        """Return the canonical plan: compact JSON, sorted keys, numbers as decimal text, no source."""
        content = {name: canonical(getattr(self, name)) for name in Terms.model_fields}
        content["format_version"] = PLAN_VERSION
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def plan_hash(self) -> str:
        """Return the SHA-256 of the canonical plan, in hex: the identity of what is charged."""
        return hashlib.sha256(self.canonical_plan().encode()).hexdigest()

    @property
    def grid(self) -> str | None:
        """The window grid, ``column:every``, or None where the spec has no window."""
        return f"{self.window.column}:{self.window.every}" if self.window else None


class Spec(Terms):
    """A release's spec, validated: its terms, and where the rows are.

    Read one with :func:`load_spec`. Two specs with the same :meth:`canonical_plan` are the same release.
    """

    source: Annotated[SourceSpec, PlainValidator(parse_source)]
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


def require_spec(spec: object) -> None:
    """Refuse what is no spec, as the path of one.

    Raises
    ------
    UsageError
        Naming :func:`load_spec`.
    """
    if not isinstance(spec, Spec):
        message = f"a {type(spec).__name__} is no spec: read it first, with suffice.load_spec(...)"
        raise UsageError(message)


def check_window(spec: Terms, window: str) -> str:
    """Check a window label against the spec, and return it.

    Raises
    ------
    SpecError
        Where the spec has windows and none is named, or the reverse, or the label is not canonical.
    """
    if spec.window is None:
        if window != ALL:
            raise SpecError(
                "--window", f"{window!r} is given, but the spec has no window key", "leave it out"
            )
        return ALL
    if window == ALL:
        raise SpecError("--window", "the spec releases by window, and none is named", "as --window 2013-01")
    try:
        period_start(window, spec.window.every)
    except ValueError as error:
        raise SpecError("--window", str(error)) from None
    return window


def _validate(document: Document, directory: Path) -> Spec:
    content = document.content
    if not isinstance(content, dict):
        raise SpecError(document.origin, "a spec is a mapping of keys", "see docs/reference/spec.md")
    if "directory" in content:
        raise SpecError(document.location(("directory",)), "unknown key")
    _check_source(document, content)
    _check_periods(document, content)
    statistics = _statistics(document, content, directory)
    try:
        spec = Spec.model_validate(
            {**content, "statistics": statistics, "directory": directory}, context={"directory": directory}
        )
    except ValidationError as error:
        raise spec_error(document, (), error, Spec) from None
    check_terms(document, spec)
    for name, statistic in spec.statistics.items():
        check_statistic(document, spec, name, statistic)
    components = sum(n_sums(statistic) for statistic in spec.statistics.values())
    if components > MOST_COMPONENTS:
        rule = f"{components} components are declared, at most {MOST_COMPONENTS} are released together"
        raise SpecError(document.location(("statistics",)), rule, "coarsen a domain, or make it a group")
    if len(spec.canonical_plan().encode()) > LARGEST_PLAN:
        rule = f"the plan takes more than {LARGEST_PLAN} bytes, and stands in every release"
        raise SpecError(document.origin, rule, "list fewer keys, or state them as a range or by period")
    return spec


def _check_source(document: Document, content: dict[str, Any]) -> None:
    source = content.get("source")
    kinds = set(source) if isinstance(source, dict) else set()
    for kind in NOT_BUILT:
        if kind in kinds and kind not in SOURCE_SPECS:
            raise SpecError(
                document.location(("source", kind)),
                f"{kind} sources are not built yet",
                f"use {' or '.join(SOURCE_SPECS)}",
            )


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
    if count > MOST_CELLS:
        rule = f"its date ranges hold {count} periods in all; at most {MOST_CELLS} cells are released"
        raise SpecError(document.origin, rule, "coarsen one: every: month, say")


def _statistics(document: Document, content: dict[str, Any], directory: Path) -> dict[str, StatisticSpec]:
    statistics: dict[str, StatisticSpec] = {}
    for name, entry in statistic_entries(document, content).items():
        statistics[name] = read_statistic(document, name, entry, directory)
    return statistics


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
    model = FAMILIES[entry["family"]].spec
    try:
        return model.model_validate(entry, context={"directory": directory})
    except ValidationError as error:
        raise spec_error(document, ("statistics", name), error, model) from None


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
        hint = f"write it as `{path[-1]}: ...`; docs/reference/spec.md says what it means"
        return SpecError(document.location(path[:-1]), f"the key {path[-1]!r} is missing", hint)
    return SpecError(document.location(path), rule_of(first))


def _model_at(document: Document, model: type[SpecModel], loc: tuple[int | str, ...]) -> type[SpecModel]:
    """Return the model that holds the last key of a place: fields are models, or mappings to models."""
    if model is Spec and len(loc) > 1 and loc[0] == "source":
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
    _check_cells(document.location(("groups",)), _group_cells(terms))
    periods = sum(len(domain) for domain in terms.groups.values() if domain.every is not None)
    if periods > MOST_PERIODS:
        rule = f"{periods} periods are declared, at most {MOST_PERIODS} are released together"
        raise SpecError(document.location(("groups",)), rule, "group by longer periods")


def check_statistic(document: Document, terms: Terms, name: str, statistic: StatisticSpec) -> None:
    """Check a statistic against the terms that it stands among."""
    family, location = FAMILIES[statistic.family], document.location(("statistics", name))
    _check_cells(location, _group_cells(terms) * family.n_categories(statistic))
    variables = {variable.name for table in family.tables(statistic) for variable in table.variables}
    if family.needs_unit and terms.privacy.column_unit is None:
        raise SpecError(
            location,
            f"{statistic.family} follows the rows of a unit; unit: row does not say which those are",
            "state whose rows belong together, as unit: {column: customer_id, max_rows: 20}",
        )
    unit, order = terms.privacy.column_unit, getattr(statistic, "order", None)
    if unit is not None and order == unit.column:
        raise SpecError(location, f"{order!r} is the unit, so it cannot order a unit's rows", "name a time")
    for variable in terms.groups.keys() & variables:
        raise SpecError(
            location,
            f"the variable {variable!r} is a group too",
            "call it otherwise, and state its column",
        )


def n_sums(statistic: StatisticSpec) -> int:
    """Return how many sums a statistic rests on, which its components do not exceed; nothing is expanded."""
    return FAMILIES[statistic.family].measure(statistic).width


def _group_cells(terms: Terms) -> int:
    return math.prod(len(domain) for domain in terms.groups.values())


def _check_cells(location: str, cells: int) -> None:
    if cells > MOST_CELLS:
        raise SpecError(location, too_many_cells(cells), "coarsen a domain")
