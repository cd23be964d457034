"""Sums of a normal statistic, centred and scaled to half ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalSums:
    """Projected sums of a normal statistic, of z = (x - centre) / half_range.

    Attributes
    ----------
    n, total, total_of_squares : ndarray of shape (n_cells,), float64
        Rows, sum of z, sum of z^2; all zero where the noisy n is not positive.
    centre, half_range : float
        In the column's unit.
    """

    n: Floats
    total: Floats
    total_of_squares: Floats
    centre: float
    half_range: float
