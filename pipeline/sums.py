"""What a pass over the data computes for one statistic: category counts, or sums of powers.

A family states one of these; the engine knows nothing else about families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.pipeline.domains import Domain
    from suffice.pipeline.lattice import Quantiser


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeCounts:
    """Count the rows of each category in each cell.

    Parameters
    ----------
    column : str
        The column read.
    domain : Domain
        The declared categories, in order: codes ``0..len(domain)-1``.
    fallback : int or None
        The code that null and unlisted values are counted under, ``len(domain)`` being a code of its
        own; None: the row does not enter.
    """

    column: str
    domain: Domain
    fallback: int | None

    @property
    def n_codes(self) -> int:
        """Number of counts in a cell."""
        return len(self.domain) + (self.fallback == len(self.domain))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSums:
    """Sum the powers 0 to `degree` of the lattice value in each cell: n, sum X, and sum X^2.

    Parameters
    ----------
    column : str
        The column read; numeric.
    quantiser : Quantiser
        The public lattice.
    degree : int
        1 or 2.
    fallback : int or None
        The lattice value that stands for null and NaN; None: the row does not enter.
    """

    column: str
    quantiser: Quantiser
    degree: int
    fallback: int | None


Measure = CodeCounts | PowerSums
