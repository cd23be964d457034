"""One record as the public bounds leave it, on a lattice on which sums of records can be worked out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


LARGEST_REACH = 1024
"""Above it one record has too many values to be quick: clipping is not modelled but warned of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedRecord:
    """The chances of one record's T between its bounds, in equal steps.

    Parameters
    ----------
    reach : callable
        The constants -> R: T's bounds are 0 and R steps.
    chances : callable
        The parameter, (n,), the constants, R -> chances of 0, 1, ... R steps, (n, R + 1).
    is_exact : bool
        Whether T has these values, as counts have; else each T stands as the two about it, by shares that
        keep its mean, and fewer steps do where the noise is wide.
    """

    reach: Callable[[Constants], int]
    chances: Callable[[Floats, Constants, int], Floats]
    is_exact: bool

    def can_be_modelled(self, constants: Constants) -> bool:
        """Whether its lattice is short enough."""
        return self.reach(constants) <= LARGEST_REACH


def counting(chances: Callable[[Floats, Constants], Floats]) -> ClippedRecord:
    """Return that of a count clipped to ``0..upper``: its own values."""
    return ClippedRecord(
        reach=lambda constants: int(constants.upper or 0),
        chances=lambda parameter, constants, _reach: chances(parameter, constants),
        is_exact=True,
    )
