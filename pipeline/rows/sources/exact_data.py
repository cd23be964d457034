"""Exact data stand in memory alone: what holds them prints nothing, and is neither copied nor pickled.

What has to reach a worker travels as bytes that `pack` makes and nothing else does.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Instance = TypeVar("Instance")

_TRAVELLING: set[type] = set()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def exact_data(*, travels: bool) -> Callable[[type[Instance]], type[Instance]]:
    """Make a class of exact data: a frozen dataclass to its users, and to `dataclasses` none.

    It is compared and hashed like one. Its repr is its name, unless it has one of its own; `pickle`, `copy`,
    `dataclasses.asdict` and `vars` refuse it.

    Parameters
    ----------
    travels : bool
        Whether `pack` takes it.
    """

    def make(plain: type[Instance]) -> type[Instance]:
        made: Any = dataclass(frozen=True, slots=True, kw_only=True, repr=False)(plain)
        if "__repr__" not in plain.__dict__:
            made.__repr__ = name_alone
        made.__reduce_ex__ = refuse
        del made.__dataclass_fields__  # `asdict` and `astuple` go by it
        if travels:
            _TRAVELLING.add(made)
        return made  # type: ignore[no-any-return]

    return make


class Kept:
    """What stays in the process that made it, inside of exact data that travel: what arrives is empty.

    All are equal: they add nothing to what the exact data say.

    Parameters
    ----------
    value : object
        Anything; None where there is nothing, or where this has travelled.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Tell whether the other is one."""
        return isinstance(other, Kept)

    def __hash__(self) -> int:
        """Return the same of all."""
        return hash(Kept)

    def __repr__(self) -> str:
        """Show the class alone."""
        return name_alone(self)

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        """Leave the value behind."""
        return Kept, ()


def name_alone(self: object) -> str:
    """Return what is printed of exact data: the name of their class."""
    return f"{type(self).__name__}(...)"


def refuse(self: object, _protocol: object) -> NoReturn:
    """Refuse to be pickled or copied."""
    message = f"a {type(self).__name__} holds exact data and is neither pickled nor copied"
    raise TypeError(message)


def pack(value: object, buffers: Callable[[pickle.PickleBuffer], object] | None = None) -> bytes:
    """Return bytes from which `unpack` makes the value again, on a worker.

    Parameters
    ----------
    value : object
        Exact data that travel, or holds such.
    buffers : callable, optional
        Takes the memory of arrays, which then is not in the bytes.
    """
    packed = io.BytesIO()
    _Packer(packed, protocol=5, buffer_callback=buffers).dump(value)
    return packed.getvalue()


def unpack(packed: bytes | memoryview, buffers: Iterable[Any] = ()) -> Any:
    """Return the value that `pack` took."""
    return pickle.loads(packed, buffers=buffers)  # noqa: S301 - it comes from our own processes


class _Packer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Take travelling exact data apart; all else goes as usual, or refuses."""
        if type(value) not in _TRAVELLING:
            return NotImplemented
        return _rebuilt, (type(value), *(getattr(value, name) for name in value.__slots__))


def _rebuilt(kind: Any, *parts: object) -> Any:
    return kind(**dict(zip(kind.__slots__, parts, strict=True)))
