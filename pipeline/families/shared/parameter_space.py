"""What the parameters of a family may be: their names, their shapes and their ranges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Support(StrEnum):
    """Where a parameter's numbers may lie."""

    REAL = "real"
    POSITIVE = "positive"
    PROBABILITY = "probability"

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the range; infinite where there is none."""
        low = -math.inf if self is Support.REAL else 0.0
        return low, 1.0 if self is Support.PROBABILITY else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterSpace:
    """One parameter of a cell.

    Parameters
    ----------
    name : str
    support : Support
        Of each of its numbers.
    shape : tuple of int
        Of its numbers in one cell; empty for a single one.
    starts : tuple of int
        Where the distributions begin that the last axis is made up of, each with the sum 1; empty where its
        numbers are no distributions.
    """

    name: str
    support: Support = Support.REAL
    shape: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


def probabilities(size: int, starts: tuple[int, ...] = (0,)) -> tuple[ParameterSpace]:
    """Return the space of the ``probability`` of a family of counts: distributions one after the other."""
    return (ParameterSpace(name="probability", support=Support.PROBABILITY, shape=(size,), starts=starts),)
