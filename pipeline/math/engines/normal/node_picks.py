"""A systematic sample of a cell's nodes, for ``node_tables``: of every step of the mass the node it ends in.

Row 0 of ``picked`` has the step, where the next pick is, what has passed, and how many were picked; every
other row has a pick. Nodes come in order, of N, m and log E, so that picks are spread evenly. Nothing is
picked where there is row 0 alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.machine_code import uncounted

if TYPE_CHECKING:
    from suffice.typing import Floats

LOC, WIDTH, DEGREES, LOG_RATIO, LOG_WIDTH = range(5)
"""Columns of a pick: squares of widths; see ``JointComponents``."""
PICK_FIELDS = 5
STEP, NEXT, PASSED, NUMBER = range(4)
"""Columns of row 0."""
SPARE = 1.25
"""Rows beside the picks that are wanted: the mass is known to some hundredths where rules agree."""


@uncounted
def start_picking(known: float, picked: Floats) -> None:
    """Start again, with the mass that is known of a coarser rule."""
    if len(picked) > 1:
        picked[0, STEP] = known * SPARE / (len(picked) - 1)
        picked[0, NEXT], picked[0, PASSED], picked[0, NUMBER] = 0.5 * picked[0, STEP], 0.0, 0.0


@uncounted
def pick(
    w: float, loc: float, square: float, log_ratio: float, log_square: float, after: float, picked: Floats
) -> None:  # fmt: skip
    """Pass a component, and pick it as often as steps end in it."""
    if len(picked) == 1:
        return
    picked[0, PASSED] += w
    while picked[0, NEXT] < picked[0, PASSED]:
        picked[0, NEXT] += picked[0, STEP]
        row = int(picked[0, NUMBER]) + 1
        if row < len(picked):
            picked[row, LOC], picked[row, WIDTH], picked[row, DEGREES] = loc, square, 2.0 * after
            picked[row, LOG_RATIO], picked[row, LOG_WIDTH] = log_ratio, log_square
            picked[0, NUMBER] = row
