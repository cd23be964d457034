"""In which cell of a release each row of a caller lies, by its keys."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.models.row_codes import UNLISTED, codes_of
from suffice.pipeline.terms.declaration.domain_entries import parse_domain

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.typing import Cells

NO_CELL = -1
"""Of a row whose keys are those of no selected cell, or missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCells:
    """Where rows lie among the selected cells of a release; made by ``row_cells``.

    Attributes
    ----------
    keys : dict of str to Domain
        The group columns.
    shared : dict of str to int
        Of those in which all selected cells have one key, its place in the domain.
    numbers : ndarray, int64
        The number of the cell of each combination of declared keys, ``NO_CELL`` where none is selected.
    """

    keys: Mapping[str, Domain]
    shared: Mapping[str, int]
    numbers: Cells = field(repr=False)

    @property
    def needed(self) -> tuple[str, ...]:
        """The group columns that tell selected cells apart, which rows must have."""
        return tuple(name for name in self.keys if name not in self.shared)

    def of(self, columns: Mapping[str, pa.Array], n_rows: int) -> Cells:
        """Return the cell of each row, (n_rows,), ``NO_CELL`` where it lies in none.

        Keys are compared as a release does. Rows without a column in which all selected cells have the same
        key are taken to have it; rows with one, by what stands there.

        Raises
        ------
        UsageError
            Where rows lack a column that tells cells apart.
        """
        places = np.zeros(n_rows, np.int64)
        for name, domain in self.keys.items():
            if name in columns:
                found = codes_of(columns[name], domain).astype(np.int64)
            elif name in self.shared:
                found = np.full(n_rows, self.shared[name], np.int64)
            else:
                message = (
                    f"rows need a column {name!r}: the release has a cell for each {', '.join(self.keys)}; "
                    "or keep one cell with where"
                )
                raise UsageError(message)
            is_known = (places >= 0) & (found != UNLISTED)
            places = np.where(is_known, places * len(domain) + found, -1)
        return np.where(places < 0, NO_CELL, self.numbers[places])


def row_cells(release: Release, posterior: Posterior) -> RowCells:
    """Return where rows lie among the cells of a posterior."""
    groups = posterior.groups
    if not groups:
        return RowCells(keys={}, shared={}, numbers=np.zeros(1, np.int64))
    declared = release.manifest["plan"]["groups"]
    keys = {name: parse_domain(declared[name], directory=None, column=name) for name in groups}
    places = {}
    for name, domain in keys.items():
        place = {str(key): number for number, key in enumerate(domain)}
        places[name] = np.array([place[str(key)] for key in groups[name]])
    sizes = tuple(map(len, keys.values()))
    numbers = np.full(math.prod(sizes), NO_CELL, np.int64)
    numbers[np.ravel_multi_index(tuple(places.values()), sizes)] = np.arange(posterior.n_groups)
    shared = {name: int(found[0]) for name, found in places.items() if np.ptp(found) == 0}
    return RowCells(keys=keys, shared=shared, numbers=numbers)
