"""Frozen dataclasses whose methods are written when they are first asked for.

The standard library compiles six methods of each where its module is imported, half a millisecond: some three
hundred are imported to answer a short question, and few of them are made, compared or shown.
"""

from __future__ import annotations

import dataclasses
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - type checkers know no other
else:

    def dataclass(kind: type | None = None, /, **asked: Any) -> Any:
        """Make a class a dataclass, as :func:`dataclasses.dataclass` does with the same arguments.

        It does so itself where the class is not frozen or has an order.
        """
        if not asked.get("frozen") or "order" in asked:
            return dataclasses.dataclass(kind, **asked)
        return _frozen(asked) if kind is None else _frozen(asked)(kind)


_PARTS = {"init": ("__init__",), "repr": ("__repr__",), "eq": ("__eq__", "__hash__")}
_WRITING: dict[str, dict[str, bool]] = {
    "__init__": {"init": True, "frozen": True},
    "__repr__": {"repr": True},
    "__eq__": {"eq": True},
    "__hash__": {"unsafe_hash": True},
}
"""What writes each method, and as little else as can be."""


def _frozen(asked: dict[str, bool]) -> Callable[[type], type]:
    plain = {name: value for name, value in asked.items() if name not in {*_PARTS, "frozen"}}

    def make(kind: type) -> type:
        stated = set(kind.__dict__)
        if kind.__dict__.get("__hash__") is None and "__eq__" in stated:
            stated.discard("__hash__")  # Python wrote it, as there is an __eq__
        made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, **plain)(kind)
        entries = dataclasses.fields(made)
        for part, names in _PARTS.items():
            for name in names if asked.get(part, True) else ():
                if name not in stated:
                    setattr(made, name, _Late(made, name, entries))
        made.__setattr__ = _refuse_setting
        made.__delattr__ = _refuse_deleting
        if asked.get("slots") and "__getstate__" not in stated:
            made.__getstate__ = _state
            made.__setstate__ = _restore
        return made  # type: ignore[no-any-return]

    return make


class _Late:
    """A method that is written when it is first looked at, and stands in its class from then on."""

    __slots__ = ("entries", "kind", "name")

    def __init__(self, kind: type, name: str, entries: tuple[dataclasses.Field[Any], ...]) -> None:
        self.kind, self.name, self.entries = kind, name, entries

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = _written(self.kind, self.name, self.entries)
        setattr(self.kind, self.name, method)
        return method.__get__(instance, owner)


def _written(kind: type, name: str, entries: tuple[dataclasses.Field[Any], ...]) -> Any:
    """Let the standard library write a method, for another class with the same fields."""
    after = getattr(kind, "__post_init__", None)
    twin = dataclasses.make_dataclass(
        kind.__qualname__,
        [(entry.name, entry.type, _same(entry)) for entry in entries],
        namespace={} if after is None else {"__post_init__": after},
        **{"init": False, "repr": False, "eq": False, **_WRITING[name]},
    )
    return twin.__dict__[name]


def _same(entry: dataclasses.Field[Any]) -> Any:
    names = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
    return dataclasses.field(**{name: getattr(entry, name) for name in names})


def _refuse_setting(_self: object, name: str, _value: object) -> None:
    message = f"cannot assign to field {name!r}"
    raise FrozenInstanceError(message)


def _refuse_deleting(_self: object, name: str) -> None:
    message = f"cannot delete field {name!r}"
    raise FrozenInstanceError(message)


def _state(self: Any) -> list[Any]:
    return [getattr(self, entry.name) for entry in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for entry, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, entry.name, value)
