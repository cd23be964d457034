"""What is said beside the answers of pooled cells: outliers, sizes, and spreads that are not identified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.judging.conflict import Conflict

if TYPE_CHECKING:
    from suffice.typing import Floats

OUTSIDE = 0.5
"""How probable it has to be that a cell is an outlier for it to be listed."""
NAMED = 6
"""How many cells a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledConflict(Conflict):
    """A ``Conflict``: which cells are outliers of their population.

    Attributes
    ----------
    outside : ndarray of shape (n_cells,), float64
        How probable that is.
    called_cells : tuple of str
        What the cells that are listed are called.
    unidentified : tuple of str
        A sentence for every pool whose spread is not identified, or that is not resolved.
    sizes : Conflict
        Released numbers of records by the prior of N.
    """

    outside: Floats
    called_cells: tuple[str, ...]
    unidentified: tuple[str, ...]
    sizes: Conflict

    @property
    def is_said(self) -> Any:
        """Which cells are outliers, or have a number of records that their prior does not expect."""
        return np.column_stack([self.outside > OUTSIDE, self.sizes.is_said])

    def lines(self) -> list[str]:
        """Return a sentence for sizes, for outliers, and for every spread that is not identified."""
        said = [*self.sizes.lines(), *self.unidentified]
        n = int(np.sum(self.outside > OUTSIDE))
        if n:
            more = f" and {n - NAMED} more" if n > NAMED else ""
            named = "; ".join(self.called_cells[:NAMED])
            said.append(
                f"the population does not fit {n} of {len(self.outside)} cells ({named}{more}): each is more "
                "probably an outlier than not, and its answer is nearly its own"
            )
        return said
