"""A mapping whose values load when they are looked up: registries of modules of which a run needs few."""

from __future__ import annotations

from collections.abc import MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Value = TypeVar("Value")


class LateMapping(MutableMapping[str, Value]):
    """What modules hold, or modules themselves, by name, in the order in which they are stated.

    Parameters
    ----------
    places : mapping of str to str
        Where each is: ``module``, or ``module:attribute``.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._loaded: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._loaded:
            self._loaded[name] = _at(self._places[name])
        return self._loaded[name]

    def __setitem__(self, name: str, value: Value) -> None:
        self._places.setdefault(name, "")
        self._loaded[name] = value

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _at(place: str) -> Any:
    module, _, attribute = place.partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded
