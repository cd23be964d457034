"""The declarative spec of a release: its terms, and where the rows are; no code, no query text.

How it is read and checked: statistics, the limits on them, samples, and how complaints read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

from pydantic import Field, PlainValidator, PrivateAttr, ValidationError

from suffice.errors import SpecError, UsageError
from suffice.pipeline.families import FAMILIES, NO_SUMS
from suffice.pipeline.spec import assumed
from suffice.pipeline.spec.about import LARGEST_ABOUT, NOTHING, About, is_small, misfit
from suffice.pipeline.spec.checks import check_statistic, check_terms, n_sums, taking, with_prior
from suffice.pipeline.spec.chosen_noise import with_noise
from suffice.pipeline.spec.hierarchies import require_adding, with_levels
from suffice.pipeline.spec.terms import Terms
from suffice.pipeline.terms.declaration import fields, priced
from suffice.pipeline.terms.declaration.column_types import HiveType
from suffice.pipeline.terms.declaration.derived_columns import (
    MOST_DERIVED,
    in_order,
    of_units,
    read_derived,
    read_per_unit,
)
from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn, read_condition
from suffice.pipeline.terms.declaration.domain_entries import domain_size
from suffice.pipeline.terms.declaration.domains import (
    MOST_PERIODS,
    cells_in_words,
    too_many_periods,
)
from suffice.pipeline.terms.declaration.hierarchy import by_level
from suffice.pipeline.terms.declaration.source_specs import (
    GivenSpec,
    SourceSpec,
    parse_source,
    source_model,
)
from suffice.pipeline.terms.declaration.spec_file import read_file
from suffice.pipeline.terms.declaration.spec_text import Document, read_mapping
from suffice.pipeline.terms.declaration.wording import (
    MISSING_KEY,
    UNKNOWN_KEY,
    counted,
    first_complaint,
    rule_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.statistics.sensitivity import Constants

_MOST_STATISTICS = 1000
_NOT_STATED = ("directory", "hierarchies")
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
        names = [name for name in holder.model_fields if name not in _NOT_STATED]
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
        model, loc = source_model(document.content["source"]), loc[1:]
    for key in loc[:-1]:
        if key in model.model_fields:
            annotation = model.model_fields[str(key)].annotation
            kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
            model = next((kind for kind in kinds if issubclass(kind, fields.SpecModel)), model)
    return model


@dataclass(frozen=True, slots=True)
class _Stated:
    """What a spec was read from; all are equal, as it adds nothing to the terms."""

    content: Any = field(default=None, compare=False)


class Spec(Terms):
    """A release's spec, validated: its terms, and where the rows are.

    Read one with :func:`load_spec`. Two specs with the same :meth:`canonical_plan` are the same release.
    """

    source: Annotated[SourceSpec, PlainValidator(parse_source)] = Field(default_factory=GivenSpec)
    expect: priced.Expectation | None = None
    about: About = NOTHING
    assume: assumed.Assumed | None = None
    directory: Path = Path()
    _stated: _Stated = PrivateAttr(default=_Stated())

    def plan(self) -> Plan:
        """Return the plan: the price, and how noisy each statistic would be; see :func:`suffice.plan`."""
        from suffice.pipeline.spec.plan import compile_plan  # it compiles what is read here

        return compile_plan(self)

    def __repr__(self) -> str:
        statistics = counted(len(self.statistics), "statistic")
        price = f"{self.privacy.loss} of {self.dataset}"
        cells = cells_in_words(by_level(self.all_groups, self.trees))
        return f"Spec({self.name}: {statistics} in {cells}, {price})"

    def __str__(self) -> str:
        return repr(self) if self._stated.content is None else self.to_yaml()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython calls it so
        printer.text(str(self))

    def to_yaml(self) -> str:
        """Return the spec as it was stated, in YAML: paths are relative to where they were."""
        from suffice.pipeline.terms.declaration.spec_yaml import yaml_text  # yaml is slow to import

        return yaml_text(self._stated.content)

    @property
    def is_clustered(self) -> bool:
        """Whether the rows of a column unit are declared to stand together."""
        unit = self.privacy.column_unit
        return unit is not None and getattr(self.source, "clustered_by", None) == unit.column

    @property
    def has_source(self) -> bool:
        """Whether it says where the rows are; else whoever runs the release hands them over."""
        return not isinstance(self.source, GivenSpec)

    @property
    def source_address(self) -> str:
        """The place of the rows as accounts name it: an absolute path or pattern, or its like."""
        return self.source.address(self.directory)


AnySpec: TypeAlias = Spec | str | os.PathLike[str] | Mapping[str, Any]
"""What a spec is read from: see :func:`load_spec`."""


def load_spec(source: AnySpec) -> Spec:
    """Read and validate a spec.

    Parameters
    ----------
    source : path, str, mapping or Spec
        A YAML file, a JSON file (``.json``), or the same content as a YAML text of several lines or a nested
        mapping, whose relative paths then start from the current directory. A spec is returned as it is.

    Returns
    -------
    Spec

    Raises
    ------
    SpecError
        Naming the place, the rule, the value and a way out.
    """
    if isinstance(source, Spec):
        return source
    if isinstance(source, str) and "\n" in source.strip():
        from suffice.pipeline.terms.declaration.spec_yaml import read_yaml  # yaml is slow to import

        return _validate(read_yaml(source, "spec"), Path())
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _validate(read_file(str(path)), path.parent)
    if not isinstance(source, Mapping):
        message = (
            f"{type(source).__name__} is no spec: give a path, a YAML text, a mapping or suffice.spec(...)"
        )
        raise UsageError(message)
    return _validate(read_mapping(source), Path())


def load_about(source: Mapping[str, Any] | str | os.PathLike[str]) -> About:
    """Read words for the public: a mapping, those below ``about`` in a spec, or a file of them alone.

    Raises
    ------
    SpecError
        Naming the place and the rule. Whether the words fit a release is not known here.
    """
    document = read_mapping(source) if isinstance(source, Mapping) else read_file(str(source))
    content = document.content
    is_spec = isinstance(content, dict) and "about" in content
    try:
        return About.model_validate(content["about"] if is_spec else content)
    except ValidationError as error:
        raise spec_error(document, ("about",) if is_spec else (), error, About) from None


def require_source(spec: Spec, *, is_given: bool = False) -> None:
    """Refuse a spec without a source where no rows are given, and one with a source where they are.

    Raises
    ------
    UsageError
        Saying both ways out.
    """
    if is_given and spec.has_source:
        message = f"the spec reads {spec.source_address}, and data is given too: leave one of the two out"
        raise UsageError(message)
    if not is_given and not spec.has_source:
        message = (
            "the spec names no source: add one, as source: {parquet: data/}, or hand the rows over in "
            "Python, with suffice.release(spec, data=frame)"
        )
        raise UsageError(message)


def _validate(document: Document, directory: Path) -> Spec:
    content = document.content
    if not isinstance(content, dict):
        way_out = 'see the documentation\'s page "The spec"'
        raise SpecError(document.origin, "a spec is a mapping of keys", way_out)
    for key in _NOT_STATED:
        if key in content:
            raise SpecError(document.location((key,)), "unknown key")
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
        stated = {key: value for key, value in content.items() if key != "per_unit"}
        spec = Spec.model_validate({**stated, **read}, context={"directory": directory})
    except ValidationError as error:
        raise spec_error(document, (), error, Spec) from None
    check_terms(document, spec)
    spec = with_levels(document, spec, _MOST_STATISTICS)
    _check_expect(document, spec)
    _check_files_by_window(document, spec)
    _check_folders_of_windows(document, spec)
    bound = {name: with_prior(document, name, spec.bound(each)) for name, each in spec.statistics.items()}
    settled = {name: with_noise(document, spec, name, each) for name, each in bound.items()}
    spec = spec.model_copy(update={"statistics": settled})
    spec._stated = _Stated(content)  # noqa: SLF001 - a new spec's own
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
    _check_assumed(document, spec)
    return spec


def _check_about(document: Document, spec: Spec) -> None:
    """Check that words are for what the release has."""

    def terms_of(name: str) -> tuple[str, Constants]:
        statistic = spec.statistics[name]
        return statistic.family, FAMILIES[statistic.family].parameters(statistic)

    other = misfit(spec.about, spec.statistics, terms_of, spec.key_columns)
    if other is not None:
        place, rule = other
        raise SpecError(document.location(("about", *place)), rule)
    if not is_small(spec.about):
        rule = f"words take more than {LARGEST_ABOUT // 2} bytes, and every reader reads them"
        raise SpecError(document.location(("about",)), rule, "shorten descriptions, or name fewer values")


def _check_assumed(document: Document, spec: Spec) -> None:
    """Check that what is assumed is of statistics and parameters that there are."""
    if spec.assume is None or not spec.assume.statistics:
        return
    constants = {
        name: (of.family, FAMILIES[of.family].parameters(of)) for name, of in spec.statistics.items()
    }
    other = assumed.misfit(spec.assume, constants)
    if other is not None:
        place, rule = other
        raise SpecError(document.location(("assume", *place)), rule)


def _check_expect(document: Document, spec: Spec) -> None:
    """Check that what is counted before the rest has a name, and is what accounts call the unit."""
    if spec.expect is None:
        return
    location = document.location(("expect",))
    if len(spec.name) > fields.LONGEST_NAME - len(priced.SUFFIX):
        count = spec.name + priced.SUFFIX
        rule = f"its count is released as {count}, and names have at most {fields.LONGEST_NAME} characters"
        raise SpecError(location, rule, "shorten the name")
    counts = "rows" if spec.privacy.column_unit is None else "units"
    if spec.expect.loss.measure is not spec.privacy.loss.measure:
        rule = f"it states {spec.expect.loss.measure}, and privacy states {spec.privacy.loss.measure}"
        raise SpecError(location, rule, f"state {spec.privacy.loss.measure} in both")
    if spec.expect.counts != counts:
        rule = f"the unit is {spec.unit_name}, so {counts} are counted"
        raise SpecError(location, rule, f"state {counts}: {spec.expect.floor}")
    on_units = of_units(spec.derived)
    named = next((name for name in spec.expect.columns or () if name in on_units), None)
    if named is not None:
        rule = f"{named!r} is of units, and rows are looked at for these columns"
        raise SpecError(document.location(("expect", "columns")), rule, "name columns of rows")
    if priced.ROW_FITS in spec.derived:
        rule = f"the derived column {priced.ROW_FITS!r} says which rows are counted"
        raise SpecError(document.location(("derived", priced.ROW_FITS)), rule, "call it otherwise")


def _check_files_by_window(document: Document, spec: Spec) -> None:
    """Check that names of files can tell their window: those of one folder, which state nothing else."""
    if spec.window is None or spec.window.files_by_window is None:
        return
    root = getattr(spec.source, "csv", getattr(spec.source, "parquet", None))
    rule = None
    if root is None:
        rule = f"a source of kind {spec.source.kind} has no files that its spec names"
    elif any(sign in root for sign in "*?["):
        rule = "the names are below one directory or URL: name it in source without *, ? and ["
    elif getattr(spec.source, "hive", None):
        rule = "folders KEY=VALUE state dates by source.hive: leave one of the two out"
    if rule is not None:
        raise SpecError(document.location(("window", "files_by_window")), rule)


def _check_folders_of_windows(document: Document, spec: Spec) -> None:
    """Check that folders which divide rows into windows state dates."""
    folder = getattr(spec.source, "hive", {}).get(spec.window.column) if spec.window else None
    if folder is not None and folder.type is not HiveType.DATE:
        name = spec.window.column if spec.window else ""
        rule = f"the window's column is of dates, and the folders' values are read as {folder.type}"
        way_out = f"write hive: {{{name}: date}}, which reads 2013-01-05 and 20130105"
        other = f"or its format, as {{{name}: {{date: '%d%m%Y'}}}}"
        raise SpecError(document.location(("source", "hive")), rule, f"{way_out}, {other}")


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
