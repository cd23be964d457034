"""The declarative spec of a release: its terms, and where the rows are; no code, no query text.

How it is read and checked as a whole.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field, PlainValidator, PrivateAttr, ValidationError

from suffice.errors import SpecError, UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec import assumed
from suffice.pipeline.spec.about import LARGEST_ABOUT, NOTHING, About, is_small, misfit
from suffice.pipeline.spec.checks import check_statistic, check_terms, n_sums, with_prior
from suffice.pipeline.spec.chosen_noise import with_noise
from suffice.pipeline.spec.entry_reading import (
    LARGEST_PLAN,
    MOST_COMPONENTS,
    MOST_STATISTICS,
    NOT_STATED,
    read_derived_columns,
    read_statistic,
    spec_error,
    statistic_entries,
)
from suffice.pipeline.spec.hierarchies import with_levels
from suffice.pipeline.spec.terms import Terms
from suffice.pipeline.terms.declaration import fields, priced
from suffice.pipeline.terms.declaration.column_types import HiveType
from suffice.pipeline.terms.declaration.derived_columns import (
    of_units,
)
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
)
from suffice.pipeline.terms.declaration.spec_file import read_file
from suffice.pipeline.terms.declaration.spec_text import Document, read_mapping
from suffice.pipeline.terms.declaration.wording import (
    counted,
)

if TYPE_CHECKING:
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.statistics.sensitivity import Constants


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
    for key in NOT_STATED:
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
    spec = with_levels(document, spec, MOST_STATISTICS)
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
