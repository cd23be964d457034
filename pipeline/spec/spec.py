"""The declarative spec of a release: its terms, and where the rows are. No code, no query text."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainValidator, ValidationError

from suffice.errors import SpecError, UsageError
from suffice.pipeline.spec.checking import (
    LARGEST_PLAN,
    MOST_COMPONENTS,
    check_statistic,
    check_terms,
    n_sums,
    read_derived_columns,
    read_statistic,
    spec_error,
    statistic_entries,
)
from suffice.pipeline.spec.sampled import with_prior
from suffice.pipeline.spec.terms import Terms
from suffice.pipeline.terms.declaration.document import Document, read_file, read_mapping
from suffice.pipeline.terms.declaration.domain_entries import domain_size
from suffice.pipeline.terms.declaration.domains import MOST_PERIODS, too_many_periods
from suffice.pipeline.terms.declaration.expectation import ROW_FITS, SUFFIX, Expectation
from suffice.pipeline.terms.declaration.fields import LONGEST_NAME
from suffice.pipeline.terms.declaration.source_spec import SourceSpec
from suffice.pipeline.terms.declaration.source_specs import parse_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.declaration.fields import StatisticSpec


class Spec(Terms):
    """A release's spec, validated: its terms, and where the rows are.

    Read one with :func:`load_spec`. Two specs with the same :meth:`canonical_plan` are the same release.
    """

    source: Annotated[SourceSpec, PlainValidator(parse_source)]
    expect: Expectation | None = None
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


def _validate(document: Document, directory: Path) -> Spec:
    content = document.content
    if not isinstance(content, dict):
        raise SpecError(
            document.origin, "a spec is a mapping of keys", 'see the documentation\'s page "The spec"'
        )
    if "directory" in content:
        raise SpecError(document.location(("directory",)), "unknown key")
    _check_periods(document, content)
    read = {
        "derived": read_derived_columns(document, content, directory),
        "statistics": _statistics(document, content, directory),
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
    return spec


def _check_expect(document: Document, spec: Spec) -> None:
    """Check that what is counted before the rest has a name, and is what accounts call the unit."""
    if spec.expect is None:
        return
    location = document.location(("expect",))
    if len(spec.name) > LONGEST_NAME - len(SUFFIX):
        rule = (
            f"its count is released as {spec.name}{SUFFIX}, and names have at most {LONGEST_NAME} characters"
        )
        raise SpecError(location, rule, "shorten the name")
    counts = "rows" if spec.privacy.column_unit is None else "units"
    if spec.expect.counts != counts:
        rule = f"the unit is {spec.privacy.unit_name}, so {counts} are counted"
        raise SpecError(location, rule, f"state {counts}: {spec.expect.floor}")
    if ROW_FITS in spec.derived:
        rule = f"the derived column {ROW_FITS!r} says which rows are counted"
        raise SpecError(document.location(("derived", ROW_FITS)), rule, "call it otherwise")


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


def _statistics(document: Document, content: dict[str, Any], directory: Path) -> dict[str, StatisticSpec]:
    statistics: dict[str, StatisticSpec] = {}
    for name, entry in statistic_entries(document, content).items():
        statistics[name] = read_statistic(document, name, entry, directory)
    return statistics
