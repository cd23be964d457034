"""All data sets of n records in m categories, and which of them are neighbours."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.typing import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CountSimplex:
    """Counts of all data sets, and pairs of neighbours: one record moves from a category to another.

    Attributes
    ----------
    counts : ndarray of shape (n_counts, m), int64
        In ascending order.
    neighbours : tuple of pairs of ndarrays of int64
        Rows, and rows of their neighbours. Each pair of neighbours is there once.
    """

    counts: NDArray[np.int64]
    neighbours: tuple[tuple[Rows, Rows], ...]

    def row_of(self, counts: Sequence[int]) -> Rows:
        """Return the row of one data set's counts, as an array of one."""
        matching = np.flatnonzero((self.counts == np.asarray(counts)).all(axis=1))
        if matching.size != 1:
            raise UsageError("counts must be those of a data set of this size and number of categories")
        return matching


def count_simplex(n_records: int, n_categories: int) -> CountSimplex:
    """Return all counts of `n_records` in `n_categories`, at least 1 and at least 2."""
    if n_records < 1 or n_categories < 2:
        raise UsageError("candidates need at least one record and two categories")
    bars = itertools.combinations(range(n_records + n_categories - 1), n_categories - 1)
    places = np.array(list(bars), dtype=np.int64)
    ends = np.full((len(places), 1), n_records + n_categories - 1)
    counts = np.diff(np.concatenate([np.full((len(places), 1), -1), places, ends], axis=1)) - 1
    radix = (n_records + 1) ** np.arange(n_categories - 1, -1, -1)
    keys = counts @ radix  # ascending, as counts are
    neighbours = []
    for source, target in itertools.combinations(range(n_categories), 2):
        rows = np.flatnonzero(counts[:, source] > 0)
        moved = keys[rows] - radix[source] + radix[target]
        neighbours.append((rows, np.searchsorted(keys, moved)))
    return CountSimplex(counts=counts, neighbours=tuple(neighbours))
