"""The cells of a release that have some keys, as numbers: nothing is listed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.terms.released.where import no_such_key, wanted_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.typing import Cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The cells of a release that have some keys, numbered from 0 in the order of the release.

    Attributes
    ----------
    groups : mapping of str to Domain
        Of the release, in declared order; its cells are their product, the last column running fastest.
    fixed : mapping of str to int
        Group column -> position of the one key that is kept.
    """

    groups: Mapping[str, Domain]
    fixed: Mapping[str, int] = field(default_factory=dict)

    @property
    def lengths(self) -> dict[str, int]:
        """How many keys every column keeps."""
        return {name: 1 if name in self.fixed else len(domain) for name, domain in self.groups.items()}

    def __len__(self) -> int:
        """Return how many cells there are."""
        return math.prod(self.lengths.values())

    def positions(self, start: int, stop: int) -> dict[str, NDArray[np.int64]]:
        """Return the positions of the keys of consecutive cells of the selection, by group column."""
        chosen, inner, found = np.arange(start, stop), len(self), {}
        for name, length in self.lengths.items():
            inner //= length
            found[name] = chosen // inner % length + self.fixed.get(name, 0)
        return found

    def keys(self, start: int, stop: int) -> dict[str, list[str | int]]:
        """Return the keys of consecutive cells of the selection, by group column."""
        return {
            name: [self.groups[name].keys[position] for position in positions.tolist()]
            for name, positions in self.positions(start, stop).items()
        }

    def cells(self, start: int, stop: int) -> Cells:
        """Return the numbers that consecutive cells of the selection have in the release, ascending."""
        numbers = np.zeros(stop - start, np.int64)
        for name, positions in self.positions(start, stop).items():
            numbers = numbers * len(self.groups[name]) + positions
        return numbers


def select(groups: Mapping[str, Domain], where: Mapping[str, object] | None) -> Selection:
    """Return the cells whose keys equal the given ones as text, as :meth:`NoisyStatistic.where` keeps them.

    Raises
    ------
    UsageError
        As there.
    """
    fixed = {}
    for column, wanted in wanted_keys(where or {}, groups).items():
        keys = groups[column]
        found = next((position for position, key in enumerate(keys) if str(key) == wanted), None)
        if found is None:
            raise no_such_key(column, wanted, keys)
        fixed[column] = found
    return Selection(groups=groups, fixed=fixed)
