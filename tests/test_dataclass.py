"""Dataclasses whose methods are written late do what the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from suffice.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[type], type]

WAYS = {"late": dataclass, "at once": dataclasses.dataclass}
ASKED = [
    {"slots": True, "kw_only": True},
    {"slots": True},
    {"kw_only": True},
    {},
    {"slots": True, "kw_only": True, "repr": False},
    {"slots": True, "eq": False},
]


class Plain:
    """Fields of every kind."""

    kind: ClassVar[str] = "plain"
    number: int
    text: str = "a"
    entries: list[int] = dataclasses.field(default_factory=list, compare=False, repr=False)
    named: str = dataclasses.field(default="n", kw_only=True)
    double: int = dataclasses.field(init=False)
    fixed: int = dataclasses.field(init=False, default=3)

    def __post_init__(self) -> None:
        object.__setattr__(self, "double", 2 * self.number)


class Written:
    """Methods of its own."""

    number: int

    def __repr__(self) -> str:
        return "mine"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __hash__(self) -> int:
        return 5


class Equal:  # noqa: PLW1641 - its hash is made of its fields
    """An equality of its own, and no hash."""

    number: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))


class Named:
    """Takes words for its constructor."""

    number: int

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "number", int(text))


def fresh(kind: type) -> Any:
    """Return a class with the same body: a decorator without slots changes what it is given."""
    kept = {name: value for name, value in vars(kind).items() if name not in {"__dict__", "__weakref__"}}
    return type(kind.__name__, kind.__bases__, kept)


def told(action: Callable[[], object]) -> object:
    """Return what comes of something: a value, or what is said against it."""
    try:
        return action()
    except (TypeError, AttributeError) as error:
        return type(error).__name__, str(error)


def both(kind: type, asked: dict[str, bool]) -> list[Any]:
    return [way(frozen=True, **asked)(fresh(kind)) for way in WAYS.values()]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_it_is_built_shown_compared_and_hashed_alike(asked: dict[str, bool]) -> None:
    late, at_once = (shown(kind, asked) for kind in both(Plain, asked))
    assert late == at_once


def shown(kind: Any, asked: dict[str, bool]) -> list[object]:
    """Return what a class of `Plain`'s fields does."""
    first, same, other = kind(number=1), kind(number=1, entries=[7]), kind(number=2, named="m")
    return [
        str(inspect.signature(kind)).replace("'", ""),
        repr(first) if asked.get("repr", True) else "",
        dataclasses.asdict(other),
        first == same,
        first == other,
        first == dataclasses.replace(first, text="b"),
        hash(first) == hash(same),
        len({first, same, other}),
        [(each.name, each.init, each.kw_only) for each in dataclasses.fields(kind)],
        kind.__match_args__,
        getattr(kind, "__slots__", None),
        first.entries is kind(number=1).entries,
        told(kind),
        told(lambda: kind(number=1, nothing=2)),
        told(lambda: kind(1, "b").text),
    ]


@pytest.mark.parametrize("kind", [Written, Equal, Named])
def test_what_a_class_states_itself_stands(kind: type) -> None:
    does = []
    for made in both(kind, {"slots": True}):
        first, same = (made("4") if kind is Named else made(4) for _ in range(2))
        does.append([repr(first), first == same, hash(first) == hash(same), hash(first), first.number])
    assert does[0] == does[1]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("slots", [True, False])
def test_nothing_changes(way: Any, *, slots: bool) -> None:
    made = way(frozen=True, slots=slots)(fresh(Plain))(number=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.number = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.number
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        made.other = 2
    assert made.number == 1


def test_a_refusal_names_the_field() -> None:
    made = Kept(number=1)
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"^cannot assign to field 'number'$"):
        made.number = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"^cannot delete field 'number'$"):
        del made.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What can be pickled, as others can find it."""

    number: int
    entries: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Above(Kept):
    """Inherits fields."""

    further: int = 2


@pytest.mark.parametrize("made", [Kept(number=1, entries=(2,)), Above(number=1)])
def test_it_is_pickled_and_copied(made: Kept) -> None:
    pickled = pickle.loads(pickle.dumps(made))  # noqa: S301 - it was made here
    for again in (pickled, copy.copy(made), copy.deepcopy(made)):
        assert again == made
        assert type(again) is type(made)


def test_fields_are_inherited() -> None:
    assert repr(Above(number=1)) == "Above(number=1, entries=(), further=2)"
    assert Above(number=1) != Kept(number=1)


def test_methods_are_written_when_they_are_first_looked_at() -> None:
    @dataclass(frozen=True, slots=True)
    class Asked:
        """Nobody makes one."""

        number: int

    written = [name for name in ("__init__", "__repr__", "__eq__", "__hash__") if callable(vars(Asked)[name])]
    assert written == []
    assert Asked(1).number == 1
    assert callable(vars(Asked)["__init__"])
    assert not callable(vars(Asked)["__repr__"])


def test_what_is_not_frozen_or_has_an_order_is_the_standard_librarys() -> None:
    @dataclass(slots=True)
    class Changing:
        """Not frozen."""

        number: int

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        """In the order of its numbers."""

        number: int

    changing = Changing(1)
    changing.number = 2
    assert changing == Changing(2)
    assert Ordered(1) < Ordered(2)
