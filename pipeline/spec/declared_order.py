"""The order in which a spec declares what its canonical plan sorts: groups, statistics, their variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.spec.terms import Terms


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
