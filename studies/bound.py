"""A bound that says what it bounds and whether it is a guarantee; only some turn into a privacy parameter."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Quantity(enum.StrEnum):
    """What a number bounds."""

    LIPSCHITZ = "L of Assumption 1"
    CONCENTRATION = "c of Assumption 2"
    KL = "a KL divergence"
    VARIATION = "a total variation"
    EPSILON = "epsilon"
    DISTANCE = "a distance of data sets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A number of Dimitrakakis et al., and what it rests on.

    Attributes
    ----------
    value : float
    quantity : Quantity
    is_guarantee : bool
        False for everything that rests on Assumption 2: Theorems 1(ii) and 2(ii) are false as stated.
    rests_on : str
    """

    value: float
    quantity: Quantity
    is_guarantee: bool
    rests_on: str

    def guaranteed(self) -> float:
        """Return the value of a guarantee.

        Raises
        ------
        UsageError
            Where the bound is no guarantee.
        """
        if not self.is_guarantee:
            message = f"{self.rests_on}: not a guarantee, so it gives no privacy parameter; use Assumption 1"
            raise UsageError(message)
        return self.value


def smoothness_of(bound: object) -> Bound:
    """Return a bound that is an L or a c; nothing else follows from other bounds.

    A number is L of Assumption 1, for which the caller vouches.

    Raises
    ------
    UsageError
        Where it bounds something else, or is none.
    """
    if isinstance(bound, (int, float)) and not isinstance(bound, bool):
        return Bound(
            value=number_of("L", bound, least=0.0),
            quantity=Quantity.LIPSCHITZ,
            is_guarantee=True,
            rests_on="Assumption 1, with an L that was stated",
        )
    if not isinstance(bound, Bound) or bound.quantity not in {Quantity.LIPSCHITZ, Quantity.CONCENTRATION}:
        quantity = bound.quantity.value if isinstance(bound, Bound) else type(bound).__name__
        message = f"smoothness: what lipschitz() or concentration() returns is needed, not {quantity}"
        raise UsageError(message)
    return bound


def number_of(name: str, value: object, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """Return a finite number that is above one limit, and at least another.

    Raises
    ------
    UsageError
        Where it is not.
    """
    number = float(value) if isinstance(value, (int, float, np.number)) else math.nan
    if not math.isfinite(number) or not number > above or not number >= least:
        limits = f" above {above:g}" if above > -math.inf else ""
        limits += f" of at least {least:g}" if least > -math.inf else ""
        message = f"{name}: a finite number{limits} is needed"
        raise UsageError(message)
    return number


def whole_number_of(name: str, value: object, *, least: int = 1) -> int:
    """Return a whole number that is at least a limit.

    Raises
    ------
    UsageError
        Where it is not.
    """
    number = number_of(name, value, least=least)
    if number != int(number):
        message = f"{name}: a whole number is needed"
        raise UsageError(message)
    return int(number)


def numbers_of(name: str, values: object) -> tuple[float, ...]:
    """Return finite numbers.

    Raises
    ------
    UsageError
        Where they are not.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        message = f"{name}: a sequence of numbers is needed"
        raise UsageError(message)
    return tuple(number_of(name, each) for each in values)


def interval_of(
    parameters: Mapping[str, tuple[float, float]], name: str, low: float = 0.0, high: float = math.inf
) -> tuple[float, float]:
    """Return the declared interval of a parameter.

    Raises
    ------
    UsageError
        Where it is missing, empty or reaches beyond `low` or `high`.
    """
    interval = parameters.get(name)
    ends = tuple(interval) if isinstance(interval, Sequence) and not isinstance(interval, str) else ()
    is_pair = len(ends) == 2 and all(isinstance(end, (int, float)) for end in ends)
    if not is_pair or not low <= ends[0] <= ends[1] <= high:
        message = f"parameter {name}: a declared interval (low, high) within [{low:g}, {high:g}] is needed"
        raise UsageError(message)
    return float(ends[0]), float(ends[1])
