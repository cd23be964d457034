"""Summaries of a part's cells as columns of Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.arrays import masked_array, number_array, text_array
from suffice.pipeline.terms.statistics.count_table import label_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats, Rows


def summary_columns(posterior: Posterior, summaries: Mapping[str, Mapping[str, Floats]]) -> dict[str, Any]:
    """Return the rows of ``summarise`` as columns, from ``summaries``; null where a number does not exist."""
    entries = [entry for parameter in summaries for entry in _entries(posterior, parameter)]
    n_cells = posterior.n_groups
    cell = np.repeat(np.arange(n_cells), len(entries))
    columns = {name: _keys(keys, cell) for name, keys in posterior.groups.items()}
    for name in entries[0]:
        columns[name] = _tiled([entry[name] for entry in entries], n_cells)
    for name in next(iter(summaries.values())):
        numbers = np.concatenate(
            [summaries[parameter][name].reshape(n_cells, -1) for parameter in summaries], axis=1
        ).ravel()
        columns[name] = masked_array(numbers, ~np.isfinite(numbers))
    return columns


def _entries(posterior: Posterior, parameter: str) -> list[dict[str, str | None]]:
    """Return the labels of a parameter's entries, its name first, as ``tidy_rows`` has them."""
    if posterior.components:
        names = posterior.components.get(parameter, ("",))
        return [{"parameter": parameter, "component": name} for name in names]
    labels: Sequence[Mapping[str, str | None]] = label_rows(posterior.label_columns) or [{}]
    return [{"parameter": parameter, **label} for label in labels]


def _keys(keys: Sequence[str | int], cell: Rows) -> pa.Array | np.ndarray:
    if isinstance(keys[0], str):
        return text_array([str(key) for key in keys]).take(number_array(cell))
    return np.array(keys, dtype=np.int64)[cell]


def _tiled(texts: Sequence[str | None], times: int) -> pa.Array:
    different = list(dict.fromkeys(text for text in texts if text is not None))
    positions = np.array([-1 if text is None else different.index(text) for text in texts], dtype=np.int64)
    tiled = np.tile(positions, times)
    return text_array(different).take(masked_array(tiled, tiled < 0))
