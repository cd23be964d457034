"""What the whole numbers of a tree stand for: records, or steps of a total of bounded values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.terms.declaration.exact_numbers import format_number

if TYPE_CHECKING:
    from suffice.typing import Counts, Floats

STEPS_PER_SCALE = 16
"""Steps of a total in the least noisy level's scale, at least.

A total is off by half a step at most, which changes a chance by a factor of exp(1 / 32) at most, and an
interval by half a step on either side.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeUnit:
    """What one whole number of a tree stands for.

    Attributes
    ----------
    steps : int
        Steps of the released lattice in it, an odd number: 1 of counts, and of totals with little noise.
    step : Fraction
        A step of the lattice, in the column's unit; 1 of counts.
    upper : Fraction or None
        Of totals: where values were clipped.
    """

    steps: int = 1
    step: Fraction = Fraction(1)
    upper: Fraction | None = None

    @classmethod
    def of_total(cls, step: Fraction, upper: Fraction, least_scale: float) -> TreeUnit:
        """Return the unit of a total whose least noisy level has this scale, in steps of the lattice."""
        steps = max(1, math.floor(least_scale / STEPS_PER_SCALE))
        return cls(steps=steps - (steps + 1) % 2, step=step, upper=upper)

    @property
    def size(self) -> Fraction:
        """What a whole number of the tree is, in the column's unit."""
        return self.steps * self.step

    @property
    def what(self) -> str:
        """What nodes have, as a heading says it."""
        return "Counts" if self.upper is None else "Totals"

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said of totals."""
        if self.upper is None:
            return ()
        clipped = f"Totals are of values clipped to 0..{format_number(self.upper)}."
        if self.steps == 1:
            return (clipped,)
        size = self.size
        shown = format_number(size) if size.denominator == 1 else f"{float(size):.4g}"
        coarse = (
            f"Totals and released values are rounded to steps of {shown}, at most 1/{STEPS_PER_SCALE} of the "
            "noise's scale; intervals are half a step wider on either side."
        )
        return clipped, coarse

    def wholes(self, released: Counts) -> Counts:
        """Return released values of the lattice in this unit, rounded."""
        return released if self.steps == 1 else np.rint(released / self.steps).astype(np.int64)

    def values(self, wholes: Counts | Floats) -> Counts | Floats:
        """Return whole numbers, or floats between them, in the column's unit."""
        size = self.size
        if size == 1:
            return wholes
        if size.denominator > 1:
            return np.asarray(wholes * float(size), np.float64)
        scaled: Counts | Floats = np.multiply(wholes, int(size))
        return scaled

    def ends(self, lower: Counts, upper: Counts) -> tuple[Counts | Floats, Counts | Floats]:
        """Return the ends of intervals in the column's unit, with all that rounds to them."""
        half = self.steps // 2
        at_step = TreeUnit(step=self.step)
        return (
            at_step.values(np.maximum(self.steps * lower - half, 0)),
            at_step.values(self.steps * upper + half),
        )
