"""What holds exact data prints nothing, is not copied, and travels packed or not at all."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.rows.sources.contract import exact_data, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = 987_654_321_987


@exact_data(travels=True)
class Travelling:
    numbers: tuple[int, ...]
    inner: Any = None


@exact_data(travels=False)
class Staying:
    number: int

    def __repr__(self) -> str:
        """Show what is public."""
        return "Staying(here)"


REFUSED: tuple[Callable[[Any], Any], ...] = (pickle.dumps, copy.copy, copy.deepcopy)


@pytest.mark.parametrize("value", [Travelling(numbers=(SECRET,)), Staying(number=SECRET)])
def test_it_is_not_printed_pickled_copied_or_listed(value: Any) -> None:
    assert f"{value} {value!r}" in {"Travelling(...) Travelling(...)", "Staying(here) Staying(here)"}
    for take in REFUSED:
        with pytest.raises(TypeError, match="holds exact data and is neither pickled nor copied"):
            take(value)
    with pytest.raises(TypeError):
        copy.deepcopy([{"a": value}])
    for protocol in range(6):
        with pytest.raises(TypeError):
            pickle.dumps([value], protocol=protocol)
    for show in (dataclasses.asdict, dataclasses.astuple, dataclasses.fields, vars):
        with pytest.raises(TypeError):
            show(value)


def test_it_is_compared_hashed_and_fixed_like_a_dataclass() -> None:
    value = Travelling(numbers=(SECRET,))
    assert value == Travelling(numbers=(SECRET,))
    assert value != Travelling(numbers=(1,))
    assert hash(value) == hash(Travelling(numbers=(SECRET,)))
    with pytest.raises(AttributeError):
        value.numbers = ()  # type: ignore[misc]


def test_what_travels_is_packed_as_deep_as_it_lies() -> None:
    inner = Travelling(numbers=(1, 2), inner=np.arange(3))
    value = Travelling(numbers=(SECRET,), inner=[inner])
    made = unpack(pack(value))
    assert isinstance(made, Travelling)
    assert made.numbers == (SECRET,)
    (again,) = made.inner
    assert again.numbers == (1, 2)
    assert again.inner.tolist() == [0, 1, 2]
    with pytest.raises(TypeError):
        pickle.dumps(made)


def test_what_stays_is_not_packed_wherever_it_lies() -> None:
    for value in (Staying(number=1), [Staying(number=1)], Travelling(numbers=(), inner=Staying(number=1))):
        with pytest.raises(TypeError, match="a Staying holds exact data"):
            pack(value)


def test_the_memory_of_arrays_is_handed_over() -> None:
    array = np.arange(1000)
    buffers: list[pickle.PickleBuffer] = []
    packed = pack(Travelling(numbers=(), inner=array), buffers.append)
    assert len(packed) < 500
    assert unpack(packed, buffers).inner.tolist() == array.tolist()
