"""What a pass over the data computes for one statistic: category counts, or sums of powers.

A family states one of these; the engine knows nothing else about families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction

    from suffice.pipeline.domains import Domain
    from suffice.pipeline.lattice import Quantiser
    from suffice.pipeline.transforms import Transform


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
    transform : Transform or None
        What is taken of a value before the lattice; None: the value itself.
    """

    column: str
    quantiser: Quantiser
    degree: int
    fallback: int | None
    transform: Transform | None = None

    @classmethod
    def of(
        cls,
        column: str,
        quantiser: Quantiser,
        *,
        degree: int,
        nulls: Fraction | None,
        transform: Transform | None = None,
    ) -> Self:
        """Return the sums where null and NaN count as the column's value `nulls`, or do not enter."""
        fallback = None
        if nulls is not None:
            value = np.array([float(nulls)])
            fallback = int(quantiser.quantise(transform.apply(value) if transform else value)[0])
        return cls(column=column, quantiser=quantiser, degree=degree, fallback=fallback, transform=transform)


Measure = CodeCounts | PowerSums
