"""The public lattice: every value of a bounded column becomes an integer before anything is summed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

DEFAULT_BITS = 16


def require_interval(lower: Fraction, upper: Fraction) -> None:
    """Refuse bounds that are no interval, or between which float64 has too few numbers.

    Raises
    ------
    ValueError
        Naming the rule.
    """
    if lower >= upper:
        message = "lower must be below upper"
        raise ValueError(message)
    if float(upper - lower) / 2 < float(max(abs(lower), abs(upper))) * 2.0**-40:
        message = "the interval from lower to upper is too narrow for float64 beside its distance from 0"
        raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiser:
    r"""Clip a value to public bounds and round it to a public lattice.

    .. math:: X = \mathrm{clip}\bigl(\mathrm{rint}(((x - c) / h) \cdot s), \text{lowest}, \text{highest}\bigr)

    in float64, in this order, ties to even. Any rounding here is part of a public, deterministic
    function of one record: it costs no privacy.

    Parameters
    ----------
    centre, half_range : float
        ``c`` and ``h``, in the column's unit.
    steps : int
        ``s``: lattice steps per half range.
    lowest, highest : int
        Bounds of the result, in lattice steps.
    """

    centre: float
    half_range: float
    steps: int
    lowest: int
    highest: int

    @classmethod
    def centred(cls, lower: Fraction, upper: Fraction, bits: int) -> Quantiser:
        """Return the lattice of a bounded column: ``2**bits`` steps on either side of the centre."""
        steps = 1 << bits
        return cls(
            centre=float((lower + upper) / 2),
            half_range=float((upper - lower) / 2),
            steps=steps,
            lowest=-steps,
            highest=steps,
        )

    @classmethod
    def counting(cls, upper: int) -> Quantiser:
        """Return the lattice of a count clipped to ``0..upper``: the integers themselves."""
        return cls(centre=0.0, half_range=1.0, steps=1, lowest=0, highest=upper)

    @classmethod
    def from_zero(cls, largest: Fraction, bits: int) -> Quantiser:
        """Return the lattice of ``0..largest``: ``2**bits`` steps."""
        steps = 1 << bits
        return cls(centre=0.0, half_range=float(largest), steps=steps, lowest=0, highest=steps)

    @property
    def largest_magnitude(self) -> int:
        """Largest absolute lattice value."""
        return max(-self.lowest, self.highest)

    def quantise(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Map values to the lattice; the reference that the compiled kernels are tested against.

        Parameters
        ----------
        values : ndarray of float64, in the column's unit
            Infinities clip; NaN must have been dealt with.

        Returns
        -------
        ndarray of int64, same shape, in lattice steps
        """
        with np.errstate(over="ignore"):
            scaled = np.rint(((values - self.centre) / self.half_range) * self.steps)
        return np.clip(scaled, self.lowest, self.highest).astype(np.int64)
