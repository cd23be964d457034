"""Compile a canonical plan that somebody else wrote: by the code that compiles specs, and as strictly.

Such a plan may be hostile. What it would expand to is counted before it is expanded, and statistics are
compiled one after another, so that a reader can stop at the first that is not what was stated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from suffice.errors import SpecError
from suffice.pipeline.spec import checks, entry_reading
from suffice.pipeline.spec.chosen_noise import with_noise
from suffice.pipeline.spec.compiled_statistics import compile_statistics
from suffice.pipeline.spec.hierarchies import check_hierarchies
from suffice.pipeline.spec.plan import Plan, assemble
from suffice.pipeline.spec.terms import PLAN_VERSION, Terms
from suffice.pipeline.terms.declaration.domain_entries import domain_size
from suffice.pipeline.terms.declaration.domains import MOST_PERIODS
from suffice.pipeline.terms.declaration.exact_numbers import parse_decimal
from suffice.pipeline.terms.declaration.fields import LARGEST_SHARE, SMALLEST_SHARE
from suffice.pipeline.terms.declaration.spec_text import Document, read_mapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.spec.terms import DeclaredOrder
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

_ORIGIN = "plan"
_MOST_CONTAINERS = 100_000
_MOST_ENTRIES = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalPlan:
    """A canonical plan whose terms are read, and whose statistics are not yet.

    Attributes
    ----------
    text : str
        The canonical plan.
    terms : Terms
        Without statistics.
    """

    text: str
    terms: Terms
    _document: Document
    _entries: dict[str, dict[str, Any]]

    def statistics(self) -> Iterator[tuple[StatisticSpec, StatisticPlan]]:
        """Read and compile statistics in declared order, each when it is asked for.

        Raises
        ------
        SpecError
            Where one breaks a rule of specs.
        """
        read: list[StatisticSpec] = []
        shares = Fraction(0)
        for name, entry in self._entries.items():
            shares += _share(name, entry)

        def entries() -> Iterator[tuple[str, StatisticSpec]]:
            left = entry_reading.MOST_COMPONENTS
            for name, entry in self._entries.items():
                _count_periods(("statistics", name), entry, left)
                statistic = entry_reading.read_statistic(self._document, name, entry, None)
                statistic = checks.with_prior(self._document, name, self.terms.bound(statistic))
                statistic = with_noise(self._document, self.terms, name, statistic, is_planned=True)
                checks.check_unit(self._document, self.terms, name, statistic)
                left -= checks.n_sums(statistic)
                if left < 0:
                    raise _refused(("statistics",), "it has too many components")
                checks.check_statistic(self._document, self.terms, name, statistic)
                read.append(statistic)
                yield name, statistic

        for plan in compile_statistics(self.terms, entries(), shares):
            yield read[-1], plan

    @property
    def heading(self) -> Plan:
        """The plan without its statistics."""
        return assemble(self.terms, ())

    def assemble(self, statistics: list[tuple[StatisticSpec, StatisticPlan]]) -> Plan:
        """Return the whole plan.

        Raises
        ------
        SpecError
            Where the text is not canonical: it would be charged under another hash; or where statistics are
            not the levels of a tree, as it says.
        """
        plans = [plan for _, plan in statistics]
        specs = {plan.name: statistic for statistic, plan in statistics}
        terms = self.terms.model_copy(update={"statistics": specs})
        check_hierarchies(self._document, terms)
        plan = assemble(terms, plans)
        if plan.canonical != self.text:
            raise _refused((), "it is not in canonical form")
        return plan


def read_canonical_plan(text: str, order: DeclaredOrder) -> CanonicalPlan:
    """Read a canonical plan.

    Parameters
    ----------
    text : str
    order : DeclaredOrder
        In which its names were declared.

    Raises
    ------
    SpecError
        Where it is no plan that a spec could have; the text repeats no value.
    """
    if (
        len(text) > entry_reading.LARGEST_PLAN
        or text.count("[") + text.count("{") > _MOST_CONTAINERS
        or text.count(",") > _MOST_ENTRIES
    ):
        raise _refused((), "it has too many parts")
    try:
        content = order.restore(json.loads(text))
    except (ValueError, RecursionError, AttributeError, TypeError):
        raise _refused((), "it is no plan, or its names are not those of the declared order") from None
    if content.pop("format_version", None) != PLAN_VERSION:
        raise _refused(("format_version",), f"it is not of version {PLAN_VERSION}")
    if content.get("window", "") is None:
        del content["window"]
    left = MOST_PERIODS
    for name, domain in content["groups"].items():
        left -= _count_periods(("groups", name), domain, left)
    document = read_mapping(content, _ORIGIN)
    entries = entry_reading.statistic_entries(document, document.content)
    for name, entry in entries.items():
        left -= _count_periods(("statistics", name, "groups"), entry.get("groups"), left)
    read = {"derived": entry_reading.read_derived_columns(document, document.content, None), "statistics": {}}
    try:
        terms = Terms.model_validate({**document.content, **read}, context={"directory": None})
    except ValidationError as error:
        raise entry_reading.spec_error(document, (), error, Terms) from None
    checks.check_terms(document, terms)
    return CanonicalPlan(text=text, terms=terms, _document=document, _entries=entries)


def _share(name: str, entry: dict[str, Any]) -> Fraction:
    try:
        share = parse_decimal(entry["share"])
    except (KeyError, TypeError, ValueError):
        share = Fraction(0)
    if not SMALLEST_SHARE <= share <= LARGEST_SHARE:  # all are summed before the first is validated
        raise _refused(("statistics", name, "share"), "it is no share")
    return share


def _count_periods(path: tuple[str, ...], value: object, most: int) -> int:
    """Count the periods of the domains in an entry, before they are listed; refuse more than `most`."""
    if not isinstance(value, dict):
        return 0
    if value.keys() == {"from", "to", "every"}:
        try:
            periods = domain_size(value)
        except ValueError:
            periods = 0  # refused when it is read
    else:
        periods = sum(_count_periods((*path, key), entry, most) for key, entry in value.items())
    if periods > most:
        raise _refused(path, "it has too many periods")
    return periods


def _refused(path: tuple[str, ...], rule: str) -> SpecError:
    return SpecError(Document(None, _ORIGIN, {}).location(path), rule)
