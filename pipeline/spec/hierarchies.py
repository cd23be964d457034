"""Hierarchies of a spec: a public tree of keys, and a statistic of its own for every level.

A row's node at every level is a function of its leaf alone, which the spec states: the parent of a key comes
from a public map, or from the calendar, and never from rows. A map has the keys of the level below and no
others, and periods end where those above them end. So each row is in one node of every level, or in none of
any, and the exact counts of children add up to those of their parents in every data set.

Sensitivity in `sensitivity.md`: levels.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import SpecError
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.declaration.derived_columns import MOST_DERIVED, PublicMap, read_derived
from suffice.pipeline.terms.declaration.domains import (
    MOST_PERIODS,
    Domain,
    DomainKind,
    Every,
    duplicate,
    period_end,
    period_label,
    period_labels,
    period_start,
    too_many_periods,
)
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.hierarchy import COUNTED, SUMMED, level_name
from suffice.pipeline.terms.declaration.key_tree import KeyTree
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    from suffice.pipeline.spec.terms import Terms
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
    from suffice.pipeline.terms.declaration.hierarchy import KeyTable
    from suffice.pipeline.terms.declaration.spec_text import Document

    AnyTerms = TypeVar("AnyTerms", bound=Terms)

_TRUE = "true"
"""The only key of a root that has no column: whether a row is in the tree."""
_LIES_IN = {Every.DAY: (Every.WEEK, Every.MONTH, Every.YEAR), Every.MONTH: (Every.YEAR,)}
"""In which longer periods a period lies whole; a week of ISO 8601 lies in no month, and in no year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level of a tree as a group: its column, and the nodes' keys."""

    name: str
    column: str
    domain: Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree as groups of statistics.

    Attributes
    ----------
    levels : tuple of Level
        The root's first.
    keys : KeyTree
    derived : dict of str to DerivedColumn
        The columns of levels: maps in the order of their keys, and that of a root which had none.
    """

    levels: tuple[Level, ...]
    keys: KeyTree
    derived: dict[str, DerivedColumn]


def tree_of(
    location: str, levels: Sequence[str], groups: Mapping[str, Domain], derived: Mapping[str, DerivedColumn]
) -> Tree:
    """Return the tree of a statistic with these groups: the leaves' keys, and all that follows from them.

    Parameters
    ----------
    location : str
        Of the hierarchy, for messages.
    levels : sequence of str
        Root first. The last is a group.
    groups, derived : mapping
        Of the statistic, and of the spec.

    Raises
    ------
    SpecError
        Where a level does not follow from the one below, or not of every row alike.
    """
    *upper, leaf = levels
    if leaf not in groups:
        rule = f"the last level, {leaf!r}, is no group of the statistic: the leaves' keys are stated there"
        raise SpecError(location, rule, f"state groups: {{{leaf}: ...}}, or a table of keys")
    grouped = next((level for level in upper if level in groups), None)
    if grouped is not None:
        rule = f"the level {grouped!r} is a group too, and its keys follow from those of the leaves"
        raise SpecError(location, rule, f"leave it out of the groups: the leaf {leaf!r} alone is one")
    climb = _Climb(location, [Level(name=leaf, column=leaf, domain=groups[leaf])], [], {})
    for level in reversed(upper):
        climb.to(level, derived, is_root=level == levels[0])
    built, parents = climb.levels[::-1], climb.parents[::-1]
    root = built[0]
    if len(root.domain) != 1:
        rule = f"the first level, {root.name!r}, has {len(root.domain)} keys: it is the root, and has one"
        way_out = f"put the root above it: a name with no column, as [all, {', '.join(levels)}]"
        raise SpecError(location, rule, way_out)
    keys = tuple(tuple(map(str, level.domain)) for level in built)
    return Tree(
        levels=tuple(built),
        keys=KeyTree(levels=tuple(levels), keys=keys, parents=tuple(parents)),
        derived=climb.derived,
    )


@dataclass(frozen=True, slots=True)
class _Climb:
    """Levels from the leaves up, each with where the nodes below it stand in it."""

    location: str
    levels: list[Level]
    parents: list[tuple[int, ...]]
    derived: dict[str, DerivedColumn]

    def to(self, name: str, derived: Mapping[str, DerivedColumn], *, is_root: bool) -> None:
        """Add the level above."""
        below, of = self.levels[-1], derived.get(name)
        if of is None and below.domain.kind is DomainKind.PERIOD and name in _LONGER:
            column, targets, domain = below.column, *self._periods(Every(name), below)
        elif is_root and (of is None or of == _is_in_tree(name, below)):
            column, targets = name, [_TRUE] * len(below.domain)
            domain = Domain(kind=DomainKind.LIST, keys=(_TRUE,))
            self.derived[name] = _is_in_tree(name, below)
        elif isinstance(of, PublicMap):
            column, targets = name, self._mapped(name, of)
            domain = Domain(kind=DomainKind.LIST, keys=tuple(dict.fromkeys(targets)))
            self._check_keys(name, domain)
        else:
            raise self._underivable(name, of, below)
        place = {str(key): node for node, key in enumerate(domain)}
        self.levels.append(Level(name=name, column=column, domain=domain))
        self.parents.append(tuple(place[key] for key in targets))

    def _mapped(self, name: str, of: PublicMap) -> list[str]:
        """Return where every node of the level below leads to."""
        source = next((at for at, level in enumerate(self.levels) if level.column == of.column), None)
        if source is None or self.levels[source].domain.kind is DomainKind.PERIOD:
            below = self.levels[-1]
            rule = f"the level {name!r} is mapped from {of.column!r}, which is no level of keys below it"
            raise SpecError(
                self.location, rule, f"map it from {below.column!r}, or state periods by the calendar"
            )
        level = self.levels[source]
        if of.otherwise is not None:
            rule = f"the map of {name!r} has otherwise: rows would be in a {name} and in no {level.name}"
            raise SpecError(self.location, rule, "leave otherwise out, and map every key")
        keys = [str(key) for key in level.domain]
        unmapped = [position for position, key in enumerate(keys) if key not in of.map]
        if unmapped:
            rule = (
                f"{counted(len(unmapped), 'key')} of {level.name} without a parent in the map of {name!r}, "
                f"the first of them key number {unmapped[0] + 1}"
            )
            raise SpecError(
                self.location, rule, "add what is missing to the map, or take it out of the groups"
            )
        if len(of.map) > len(keys):
            rule = (
                f"the map of {name!r} has {counted(len(of.map) - len(keys), 'key')} that {level.name} lacks: "
                f"rows with one would count in a {name} and in no {level.name}"
            )
            raise SpecError(self.location, rule, "add them to the groups, or take them out of the map")
        # Of two keys that a column's type makes one, the first counts: in the map as in the domain.
        self.derived[name] = of.model_copy(update={"map": {key: of.map[key] for key in keys}})
        targets = [_text(of.map[key]) for key in keys]
        nodes = list(range(len(keys)))
        for parents in self.parents[source:]:
            nodes = [parents[node] for node in nodes]
        above: dict[int, str] = {}
        for node, target in zip(nodes, targets, strict=True):
            if above.setdefault(node, target) != target:
                below = self.levels[-1]
                rule = f"a {below.name} lies in two keys of {name!r}: a node has one parent"
                raise SpecError(
                    self.location, rule, f"map {name!r} from {below.column!r}, or reorder the levels"
                )
        return [above[node] for node in range(len(self.levels[-1].domain))]

    def _periods(self, every: Every, below: Level) -> tuple[list[str], Domain]:
        """Return the longer period that each period of the level below lies in, and all of them."""
        shorter = below.domain.every or Every.DAY
        if every not in _LIES_IN.get(shorter, ()):
            rule = f"a {shorter} does not lie in one {every}: the levels {every} and {shorter} do not nest"
            raise SpecError(self.location, rule, "choose day in week, day in month, or month in year")
        labels = [str(key) for key in below.domain]
        first, past = period_start(labels[0], shorter), period_end(period_start(labels[-1], shorter), shorter)
        last = dt.date.fromordinal(past - 1)
        begins, ends = period_label(first, every), period_label(last, every)
        if period_start(begins, every) != first or period_end(period_start(ends, every), every) != past:
            rule = (
                f"the keys of {below.column!r} are of {first} to {last}, which are no whole {every}s: rows "
                f"of the rest of {begins} or {ends} would count in that {every} and in no leaf"
            )
            whole = dt.date.fromordinal(period_end(period_start(ends, every), every) - 1)
            way_out = f"as from {period_start(begins, every)} to {whole}"
            raise SpecError(self.location, rule, way_out)
        domain = Domain(kind=DomainKind.PERIOD, keys=period_labels(begins, ends, every), every=every)
        return [period_label(period_start(label, shorter), every) for label in labels], domain

    def _check_keys(self, name: str, domain: Domain) -> None:
        if duplicate([str(key) for key in domain]) is not None:
            rule = f"two keys of the level {name!r} are duplicates, as text or as numbers"
            raise SpecError(self.location, rule, "write both alike in the map")

    def _underivable(self, name: str, of: DerivedColumn | None, below: Level) -> SpecError:
        if of is None:
            rule = (
                f"the level {name!r} is no derived column: which {name} a {below.name} lies in follows from "
                "the spec alone, as rows might contradict each other"
            )
        else:
            rule = (
                f"the level {name!r} is a column already, derived or the root of another hierarchy, and no "
                "public map of the level below"
            )
        way_out = f"derive it, as derived: {{{name}: {{column: {below.column}, map: {{file: ...}}}}}}"
        if below.domain.kind is DomainKind.PERIOD:
            way_out = "above periods stand week, month and year, and a root with a name of its own"
        elif of is not None:
            way_out += ", or call it otherwise"
        return SpecError(self.location, rule, way_out)


_LONGER = frozenset({Every.WEEK, Every.MONTH, Every.YEAR})


def _text(target: str | Fraction) -> str:
    return target if isinstance(target, str) else format_number(target)


def _is_in_tree(name: str, below: Level) -> DerivedColumn:
    """Return the column of a root that has none: whether a row has a key of the level below."""
    domain = below.domain
    if domain.every is not None:
        first = period_start(str(domain[0]), domain.every)
        past = period_end(period_start(str(domain[-1]), domain.every), domain.every)
        ends = [str(first), str(dt.date.fromordinal(past - 1))]
        return read_derived(name, {"column": below.column, "between": ends}, None)
    return read_derived(name, {"column": below.column, "in": domain.canonical()}, None)


def with_levels(document: Document, terms: AnyTerms, most_statistics: int) -> AnyTerms:
    """Return terms in which a statistic with a hierarchy is one for each level, and levels have columns.

    Raises
    ------
    SpecError
        Where a hierarchy is no public tree, or its statistic has nothing that adds up.
    """
    for name, entry in terms.statistics.items():
        if entry.level_shares is not None and entry.hierarchy is None:
            location = document.location(("statistics", name, "level_shares"))
            raise SpecError(location, "they are of the levels of a hierarchy, and none is stated")
    if all(entry.hierarchy is None for entry in terms.statistics.values()):
        return terms
    weights = {name: _weights(document, name, entry) for name, entry in terms.statistics.items()}
    # Shares that are decimals: of all statistics alike, so that they stay what they are to each other.
    common = math.lcm(*(sum(of, Fraction(0)).numerator for of in weights.values()))
    statistics: dict[str, fields.StatisticSpec] = {}
    hierarchies: dict[str, tuple[str, ...]] = {}
    derived = dict(terms.derived)
    for name, entry in terms.statistics.items():
        total = sum(weights[name], Fraction(0))
        # proof: levels
        shares = [entry.share * common * weight / total for weight in weights[name]]
        plain = entry.model_copy(update={"hierarchy": None, "level_shares": None})
        if entry.hierarchy is None:
            statistics[name] = plain.model_copy(update={"share": shares[0]})
            continue
        location = document.location(("statistics", name, "hierarchy"))
        _check_adding(location, terms, entry)
        groups = dict(terms.groups_of(entry))
        if entry.hierarchy.table is not None:
            groups, tabled = _from_table(location, entry.hierarchy.table, groups)
            _add(location, derived, tabled)
        tree = tree_of(location, entry.hierarchy.levels, groups, derived)
        _add(location, derived, tree.derived)
        hierarchies[name] = entry.hierarchy.levels
        for level, share in zip(tree.levels, shares, strict=True):
            update = {"groups": _at_level(groups, tree, level), "share": share}
            statistics[_checked_name(document, terms, name, level.name)] = plain.model_copy(update=update)
    location = document.location(("statistics",))
    _check_sizes(location, statistics, terms.groups, len(derived), most_statistics)
    return terms.model_copy(update={"statistics": statistics, "derived": derived, "hierarchies": hierarchies})


def check_hierarchies(document: Document, terms: Terms) -> None:
    """Check that statistics which are said to be a tree's levels are what a spec makes of a hierarchy.

    Raises
    ------
    SpecError
        Where they are not.
    """
    for name, levels in terms.trees.items():
        location = document.location(("hierarchies", name))
        entries = [terms.statistics[level_name(name, level)] for level in levels]
        leaves = entries[-1]
        _check_adding(location, terms, leaves)
        groups = terms.groups_of(leaves)
        tree = tree_of(location, levels, groups, terms.derived)
        is_derived = all(terms.derived.get(column) == of for column, of in tree.derived.items())
        for entry, level in zip(entries, tree.levels, strict=True):
            at_level = list(_at_level(groups, tree, level).items())
            is_level = list(terms.groups_of(entry).items()) == at_level and _alike(entry) == _alike(leaves)
            if not (is_derived and is_level):
                raise SpecError(location, "its statistics are not the levels of one tree")


def _alike(entry: fields.StatisticSpec) -> fields.StatisticSpec:
    """Return what levels of one tree have in common."""
    return entry.under(None).model_copy(update={"groups": None, "share": Fraction(1)})


def _at_level(groups: Mapping[str, Domain], tree: Tree, level: Level) -> dict[str, Domain]:
    """Return groups with a level in the place of the leaves."""
    leaf = tree.levels[-1].column
    return dict((level.column, level.domain) if of == leaf else (of, domain) for of, domain in groups.items())


def _weights(document: Document, name: str, entry: fields.StatisticSpec) -> tuple[Fraction, ...]:
    """Return the shares of levels among themselves: by default each twice that of the level above."""
    if entry.hierarchy is None:
        return (Fraction(1),)
    levels = entry.hierarchy.levels
    if entry.level_shares is None:
        return tuple(Fraction(2**depth) for depth in range(len(levels)))
    if len(entry.level_shares) != len(levels):
        rule = f"there are {len(levels)} levels and {counted(len(entry.level_shares), 'share')}: one for each"
        raise SpecError(document.location(("statistics", name, "level_shares")), rule, "root first")
    return entry.level_shares


def require_adding(location: str, family: str) -> None:
    """Check that a family has hierarchies; nothing that it lacks beside one need be stated first.

    Raises
    ------
    SpecError
    """
    if family not in COUNTED + SUMMED:
        rule = (
            f"a hierarchy holds counts of rows, or totals from 0 on, which add up, and {family} has neither: "
            f"{', '.join(COUNTED)} count, and {', '.join(SUMMED)} have totals"
        )
        raise SpecError(location, rule, "take one of these, or leave the hierarchy out")


def _check_adding(location: str, terms: Terms, entry: fields.StatisticSpec) -> None:
    """Check that a statistic is of counts or of totals that add up over cells."""
    require_adding(location, entry.family)
    if fields.sample_entry(entry) is not None:
        rule = "a sample has no counts that add up"
        raise SpecError(location, rule, "leave sample, or the hierarchy, out")
    if entry.within_unit is not None:
        rule = "what rows of one unit have in common does not add up over cells"
        raise SpecError(location, rule, "leave within_unit, or the hierarchy, out")
    unit = terms.privacy.column_unit
    if unit is not None and unit.max_rows_per_cell is not None:
        rule = "max_rows_per_cell keeps other rows of a unit at every level, so that levels would not add up"
        raise SpecError(location, rule, "bound units by max_rows alone")


def _from_table(
    location: str, table: KeyTable, groups: dict[str, Domain]
) -> tuple[dict[str, Domain], dict[str, DerivedColumn]]:
    """Return groups with the leaves of a table, and its other columns as maps."""
    leaf = table.levels[-1]
    if leaf in groups:
        rule = f"the keys of {leaf!r} are stated twice: as a group, and by the table of keys"
        raise SpecError(location, rule, "leave them out of the groups")
    maps: dict[str, DerivedColumn] = {}
    try:
        for at, column in enumerate(table.levels[:-1]):
            entry: dict[str, Any] = {"column": table.levels[at + 1], "map": table.parents(at)}
            maps[column] = read_derived(column, entry, None)
    except ValueError as error:
        rule = str(error) if type(error) is ValueError else "its keys are duplicates, as text or as numbers"
        raise SpecError(location, rule) from None
    return {**groups, leaf: Domain(kind=DomainKind.LIST, keys=table.keys())}, maps


def _add(location: str, derived: dict[str, DerivedColumn], more: Mapping[str, DerivedColumn]) -> None:
    """Add derived columns, none of them called like one that is something else."""
    for column, of in more.items():
        if derived.get(column, of) != of:
            rule = f"another derived column is called {column!r}, as this level is"
            raise SpecError(location, rule, "call one of the two otherwise")
        derived[column] = of


def _checked_name(document: Document, terms: Terms, name: str, level: str) -> str:
    """Return the name of a level's statistic, where it is one and no other statistic has it."""
    location = document.location(("statistics", name, "hierarchy"))
    called = level_name(name, level)
    try:
        fields.statistic_name(called)
    except ValueError:
        rule = f"its level would be the statistic {called!r}, which is no name: [A-Za-z0-9_.-], at most 63"
        raise SpecError(location, rule, "call the level, or the statistic, otherwise") from None
    if called.lower() in {other.lower() for other in terms.statistics}:
        rule = f"its level is the statistic {called!r}, and another one has this name"
        raise SpecError(location, rule, "call the other one otherwise")
    return called


def _check_sizes(
    location: str,
    statistics: Mapping[str, fields.StatisticSpec],
    shared: Mapping[str, Domain],
    n_derived: int,
    most_statistics: int,
) -> None:
    """Check what levels add: statistics, derived columns, periods, and shares."""
    if len(statistics) > most_statistics:
        rule = f"with every level there are {len(statistics)} statistics, at most {most_statistics} may be"
        raise SpecError(location, rule, "split the release")
    if n_derived > MOST_DERIVED:
        rule = f"with those of levels {n_derived} columns are derived, at most {MOST_DERIVED} may be"
        raise SpecError(location, rule, "split the release")
    stated = [shared, *(entry.groups or {} for entry in statistics.values())]
    periods = sum(len(of) for groups in stated for of in groups.values() if of.every is not None)
    if periods > MOST_PERIODS:
        raise SpecError(location, too_many_periods(periods), "group by longer periods")
    if not all(fields.SMALLEST_SHARE <= of.share <= fields.LARGEST_SHARE for of in statistics.values()):
        rule = "shares of levels and of statistics beside each other do not lie between 0.000001 and 1000000"
        raise SpecError(location, rule, "state rounder level_shares")
