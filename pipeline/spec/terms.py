"""The terms of a release: what is charged, which is all that a spec declares but its source.

A canonical plan sorts groups, statistics and their variables; the order in which they are declared is kept
beside it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, PlainValidator

from suffice.pipeline.spec.windows_and_amendments import Window
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.declaration.column_unit import ColumnUnit
from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn, read_condition
from suffice.pipeline.terms.declaration.domains import cell_count, key_columns
from suffice.pipeline.terms.declaration.hierarchy import level_name, read_levels
from suffice.pipeline.terms.declaration.priced import PricedModel
from suffice.pipeline.terms.declaration.row_rules import column_or_rule, stored_column
from suffice.pipeline.terms.declaration.scalars import read_choice
from suffice.pipeline.terms.declaration.time_zones import window_grid
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.terms.declaration.contribution import Contribution
    from suffice.pipeline.terms.declaration.domains import Domain


ROW = "row"
"""The privacy unit where it is no column's value."""


DEFAULT_MAX_TOTAL_ROWS = 10**12


PLAN_VERSION = "1"
_CONDITION = "\0where"
"""Begins the name of a column that a condition of rows is computed in: no other column's name does."""


def _unit(value: object) -> str | ColumnUnit:
    if isinstance(value, dict):
        return ColumnUnit.model_validate(value)
    if value != ROW:
        column = str(value).removeprefix("column:") if isinstance(value, str) else "customer_id"
        message = (
            f"{value!r} is not a privacy unit: use row, or {{column: {column}, max_rows: 20}}, with the "
            "most rows of a unit that count"
        )
        raise ValueError(message)
    return ROW


class Privacy(PricedModel):
    """The price and the guarantee."""

    neighboring: Annotated[
        NeighboringRelation, PlainValidator(partial(read_choice, kind=NeighboringRelation))
    ]
    unit: Annotated[str | ColumnUnit, PlainValidator(_unit)] = ROW

    @property
    def column_unit(self) -> ColumnUnit | None:
        """The unit where it is a column's value; None where it is a row."""
        return self.unit if isinstance(self.unit, ColumnUnit) else None


def _hierarchies(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        message = "hierarchies map names to the levels of a tree"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueError only
    return {str(name): read_levels(levels) for name, levels in value.items()}


class Terms(fields.SpecModel):
    """What is charged: all that a spec declares but its source. Defaults are filled, domains inlined.

    Attributes
    ----------
    hierarchies : dict of str to tuple of str
        The levels of every tree, root first, by what its statistic was called: each is a statistic of its
        own, ``NAME.LEVEL``. A spec states them in the statistic.
    """

    name: fields.ReleaseName
    dataset: fields.Name
    window: Window | None = None
    privacy: Privacy
    where: Annotated[str | DerivedColumn | None, PlainValidator(read_condition)] = None
    derived: dict[str, DerivedColumn] = Field(default_factory=dict)
    groups: fields.Groups = Field(default_factory=dict)
    statistics: dict[str, fields.StatisticSpec]
    hierarchies: Annotated[dict[str, tuple[str, ...]], PlainValidator(_hierarchies)] = Field(
        default_factory=dict
    )
    max_total_rows: fields.Integer = DEFAULT_MAX_TOTAL_ROWS

    @property
    def n_cells(self) -> int:
        """Number of cells of these groups: the product of their sizes."""
        return cell_count(self.groups)

    def groups_of(self, statistic: fields.StatisticSpec) -> dict[str, Domain]:
        """Return a statistic's groups: those of the spec where it states none."""
        return self.groups if statistic.groups is None else statistic.groups

    @property
    def all_groups(self) -> dict[str, dict[str, Domain]]:
        """The groups of every statistic, by its name."""
        return {name: self.groups_of(statistic) for name, statistic in self.statistics.items()}

    @property
    def key_columns(self) -> dict[str, list[Domain]]:
        """The columns that statistics are grouped by, each with its domains."""
        return key_columns([self.groups, *self.all_groups.values()])

    @property
    def trees(self) -> dict[str, tuple[str, ...]]:
        """The hierarchies of which every level is among the statistics."""
        return {
            name: levels
            for name, levels in self.hierarchies.items()
            if all(level_name(name, level) in self.statistics for level in levels)
        }

    def contribution_to(self, statistic: fields.StatisticSpec) -> Contribution | None:
        """Return how many rows of a unit enter a statistic; None where the unit is a row."""
        unit = self.privacy.column_unit
        return None if unit is None else unit.contribution(cell_count(self.groups_of(statistic)))

    def bound(self, statistic: fields.StatisticSpec) -> fields.StatisticSpec:
        """Return a statistic as it stands under these terms; groups that are theirs are not stated."""
        bound = statistic.under(self.contribution_to(statistic))
        return bound.model_copy(update={"groups": None}) if bound.groups == self.groups else bound

    @property
    def conditions(self) -> dict[str, str | DerivedColumn]:
        """The conditions under which rows enter, by the place that states them: all, or one statistic."""
        stated: dict[str, object] = {"where": self.where}
        stated |= {f"statistics.{name}.where": of.where for name, of in self.statistics.items()}
        return {place: of for place, of in stated.items() if isinstance(of, str | DerivedColumn)}

    @property
    def computed(self) -> dict[str, DerivedColumn]:
        """All columns that are computed from others: those that are derived, and conditions of rows."""
        conditions = {
            _CONDITION + place: of for place, of in self.conditions.items() if isinstance(of, DerivedColumn)
        }
        return {**self.derived, **conditions}

    @property
    def condition_columns(self) -> dict[str, str]:
        """The columns that hold the conditions, by the place that states them."""
        return {
            place: of if isinstance(of, str) else _CONDITION + place for place, of in self.conditions.items()
        }

    def canonical_plan(self) -> str:
        """Return the canonical plan: compact JSON, sorted keys, numbers as decimal text, no source."""
        content = {name: fields.canonical(getattr(self, name)) for name in Terms.model_fields}
        content["hierarchies"] = fields.canonical(self.trees)
        for name in ("where", "hierarchies"):
            if not content[name]:
                del content[name]
        content["format_version"] = PLAN_VERSION
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def plan_hash(self) -> str:
        """Return the SHA-256 of the canonical plan, in hex: the identity of what is charged."""
        return hashlib.sha256(self.canonical_plan().encode()).hexdigest()

    @property
    def grid(self) -> str | None:
        """The window grid, ``column:every:time_zone``, as accounts name it; None where there is no window."""
        window = self.window
        if window is None:
            return None
        return window_grid(column_or_rule(window.column, self.derived), window.every, window.time_zone)

    @property
    def unit_name(self) -> str:
        """The unit as accounts name it: ``row``, or ``column:`` and the column, by its rule if derived."""
        unit = self.privacy.column_unit
        return ROW if unit is None else f"column:{column_or_rule(unit.column, self.derived)}"

    @property
    def stored_unit(self) -> str | None:
        """The column of the source that tells the units; None where the unit is a row."""
        unit = self.privacy.column_unit
        return None if unit is None else stored_column(unit.column, self.derived)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOrder:
    """The order of groups, of statistics, and of the variables within statistics.

    It is no part of what is charged; a release keeps it, as cells and components follow it.

    Attributes
    ----------
    groups, statistics : tuple of str
        Names in order.
    variables : tuple of (str, str, tuple of str)
        Statistic, key of its entry, names in order: of every mapping by variables or columns.
    """

    groups: tuple[str, ...]
    statistics: tuple[str, ...]
    variables: tuple[tuple[str, str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, terms: Terms) -> Self:
        """Return the order of a spec, or of other terms."""
        return cls(
            groups=tuple(terms.groups),
            statistics=tuple(terms.statistics),
            variables=tuple(
                (name, key, tuple(entry))
                for name, statistic in terms.statistics.items()
                for key, entry in statistic
                if isinstance(entry, dict)
            ),
        )

    @classmethod
    def read(cls, document: object) -> Self:
        """Read what :meth:`document` wrote.

        Raises
        ------
        ValueError
            Where it is anything else.
        """
        match document:
            case {"groups": groups, "statistics": statistics, "variables": list(variables), **rest} if (
                not rest
            ):
                return cls(
                    groups=_names(groups),
                    statistics=_names(statistics),
                    variables=tuple(_variables(entry) for entry in variables),
                )
        raise _unreadable()

    def document(self) -> dict[str, Any]:
        """Return the order as JSON states it. No name is a key there, so that no name can look like one."""
        return {
            "groups": list(self.groups),
            "statistics": list(self.statistics),
            "variables": [[name, key, list(names)] for name, key, names in self.variables],
        }

    def restore(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Return a canonical plan in this order.

        Raises
        ------
        ValueError
            Where the names are not those of the plan.
        """
        statistics = _ordered(plan.get("statistics"), self.statistics)
        for name, key, names in self.variables:
            entry = statistics.get(name)
            if not isinstance(entry, dict):
                raise _unreadable()
            statistics[name] = {**entry, key: _ordered(entry.get(key), names)}
        return {**plan, "groups": _ordered(plan.get("groups"), self.groups), "statistics": statistics}


def _ordered(mapping: object, names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(mapping, dict) or len(names) != len(mapping) or set(names) != mapping.keys():
        raise _unreadable()
    return {name: mapping[name] for name in names}


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _unreadable()
    return tuple(value)


def _variables(value: object) -> tuple[str, str, tuple[str, ...]]:
    match value:
        case [str(name), str(key), names]:
            return name, key, _names(names)
    raise _unreadable()


def _unreadable() -> ValueError:
    return ValueError("the order is not one of the plan's names")
