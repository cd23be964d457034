"""Nodes of cells, kept between rounds that look at the same place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.pooled.cells import CellsSource, Focus, Nodes
    from suffice.typing import Cells

BLOCK = 256
KEPT_NODES = 12_000
"""Cells whose nodes are kept between rounds: 5 kB each."""


class KeptNodes:
    """Nodes of a source, a block at a time, kept where there are few cells."""

    def __init__(self, source: CellsSource, cells: Cells) -> None:
        self.source, self.cells = source, cells
        self._focus: Focus | None = None
        self._kept: list[Nodes] = []

    @property
    def are_kept(self) -> bool:
        """Whether nodes of all cells are kept; else every round makes them again, a block at a time."""
        return len(self.cells) <= KEPT_NODES

    def __call__(self, focus: Focus) -> Iterator[tuple[Cells, Nodes]]:
        """Give places of cells among these, and their nodes."""
        if self._focus != focus:
            self._focus, self._kept = focus, []
        places = np.arange(len(self.cells))
        for number, start in enumerate(range(0, len(places), BLOCK)):
            block = places[start : start + BLOCK]
            if number < len(self._kept):
                yield block, self._kept[number]
                continue
            nodes = self.source.nodes(self.cells[block], focus)
            if self.are_kept:
                self._kept.append(nodes)
            yield block, nodes


def blocks_focus(blocks: KeptNodes, focus: Focus) -> Focus:
    """Return the focus whose nodes are kept, where it is near enough to the one that is wanted."""
    known = blocks._focus  # noqa: SLF001 - of this file
    if (
        known is not None
        and 0.4 * focus.width <= known.width <= focus.width
        and float(np.max(np.abs(known.centre - focus.centre))) + focus.reach < known.width + known.reach
    ):
        return known
    return focus
