"""Frozen dataclasses whose methods are written when they are first asked for.

The standard library compiles six methods of each where its module is imported, half a millisecond: more than
two hundred are imported to answer a short question, and few of them are made, compared or shown.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - type checkers know no other
    from typing import TypeAlias

    _Entries: TypeAlias = tuple[dataclasses.Field[Any], ...]
else:

    def dataclass(kind: type | None = None, /, **asked: Any) -> Any:
        """Make a class a dataclass, as :func:`dataclasses.dataclass` does with the same arguments.

        It does so itself where the class is not frozen or has an order.
        """
        if not asked.get("frozen") or "order" in asked:
            return dataclasses.dataclass(kind, **asked)
        return _frozen(asked) if kind is None else _frozen(asked)(kind)


_PARTS = {"init": ("__init__",), "repr": ("__repr__",), "eq": ("__eq__", "__hash__")}


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

    def __init__(self, kind: type, name: str, entries: _Entries) -> None:
        self.kind, self.name, self.entries = kind, name, entries

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = _written(self.kind, self.name, self.entries)
        setattr(self.kind, self.name, method)
        return method.__get__(instance, owner)


def _written(kind: type, name: str, entries: _Entries) -> Any:
    """Write a method; all but the constructor are the standard library's, of a class with the same fields."""
    if name == "__init__":
        return _constructor(kind, entries)
    twin = dataclasses.make_dataclass(
        kind.__qualname__,
        [(entry.name, entry.type, _same(entry)) for entry in entries],
        namespace={"__doc__": kind.__name__},  # else a signature is written there
        init=False,
        repr=name == "__repr__",
        eq=name == "__eq__",
        unsafe_hash=name == "__hash__",
    )
    return twin.__dict__[name]


def _same(entry: dataclasses.Field[Any]) -> Any:
    return dataclasses.field(
        default=entry.default, repr=entry.repr, hash=entry.hash, compare=entry.compare, kw_only=True
    )


def _constructor(kind: type, entries: _Entries) -> Any:
    """Write a constructor: the standard library's comes with two more methods, which take twice its time."""
    values: dict[str, Any] = {"__set": object.__setattr__, "__absent": _Absent()}
    words: dict[bool, list[str]] = {False: [], True: []}
    lines = []
    for entry in entries:
        name, value, default = entry.name, entry.name, ""
        if entry.default_factory is not MISSING:
            values[f"__make_{name}"], default = entry.default_factory, "=__absent"
            value = f"__make_{name}() if {name} is __absent else {name}" if entry.init else f"__make_{name}()"
        elif entry.default is not MISSING:
            values[f"__default_{name}"], default = entry.default, f"=__default_{name}"
            value = name if entry.init else f"__default_{name}"
        if entry.init:
            words[bool(entry.kw_only)].append(name + default)
        if entry.init or default:
            lines.append(f"    __set(self, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        lines.append("    self.__post_init__()")
    named = ["*", *words[True]] if words[True] else []
    head = f"def __init__({', '.join(['self', *words[False], *named])}):\n"
    exec(head + ("\n".join(lines) or "    pass"), values)  # noqa: S102 - of names of fields alone
    constructor = values["__init__"]
    constructor.__qualname__ = f"{kind.__qualname__}.__init__"
    types = {entry.name: entry.type for entry in entries if entry.init}
    constructor.__annotations__ = {**types, "return": None}
    return constructor


class _Absent:
    """Stands for what a field's factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


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
