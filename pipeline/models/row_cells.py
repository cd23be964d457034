"""In which cell of a release each row of a caller lies, by its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.pipeline.models.row_columns import require_columns, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.typing import Cells

NO_CELL = -1
"""Of a row whose keys are those of no selected cell, or missing."""


def key_columns(groups: Mapping[str, list[str | int]]) -> list[str]:
    """Return the group columns that rows need, to tell cells apart."""
    return [column for column, keys in groups.items() if len(set(keys)) > 1]


def cells_of_rows(
    groups: Mapping[str, list[str | int]], columns: Mapping[str, pa.Array], n_rows: int
) -> Cells:
    """Return the cell of each row, (n_rows,): its position among the selected ones, or ``NO_CELL``.

    Keys are compared as texts, as the release states them. A group column in which all cells have the same
    key may be absent from rows, which are then taken to have that key.

    Parameters
    ----------
    groups : mapping of str to list
        The key of every cell, by group column.
    columns : mapping of str to pyarrow.Array
        Those group columns that rows have.
    n_rows : int
        How many rows there are.

    Raises
    ------
    UsageError
        Where rows lack a column that tells cells apart.
    """
    require_columns(columns, key_columns(groups), "tells the cells of the release apart")
    n_cells = len(next(iter(groups.values()))) if groups else 1
    row_place, cell_place = np.zeros(n_rows, dtype=np.int64), np.zeros(n_cells, dtype=np.int64)
    is_known = np.ones(n_rows, dtype=bool)
    for column, keys in groups.items():
        if column not in columns:
            continue
        texts = [str(key) for key in keys]
        distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        codes = pc.index_in(texts_of(columns[column]), value_set=pa.array(list(distinct), pa.string()))
        found = pc.fill_null(codes, NO_CELL).to_numpy(zero_copy_only=False).astype(np.int64)
        is_known &= found >= 0
        row_place = row_place * len(distinct) + found
        cell_place = cell_place * len(distinct) + np.array([distinct[text] for text in texts])
    order = np.argsort(cell_place)
    nearest = order[np.minimum(np.searchsorted(cell_place[order], row_place), n_cells - 1)]
    return np.where(is_known & (cell_place[nearest] == row_place), nearest, NO_CELL).astype(np.int64)
