"""Exact and noisy numbers as tests compare them: whole, by statistic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.rows.mechanism.mechanism import Blocks


def collected(blocks: Blocks) -> dict[str, NDArray[Any]]:
    """Return what the mechanism yields, shape (n_cells, n_components) by statistic."""
    noisy: dict[str, list[NDArray[Any]]] = {}
    for name, block in blocks:
        noisy.setdefault(name, []).append(block)
    return {name: np.concatenate(parts) for name, parts in noisy.items()}
