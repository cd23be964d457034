"""Which cells a part has: a function of what is asked, never of the machine.

Parts are consecutive cells in the order of the release, so of the first group column: a part holds whole keys
of it, or some cells of one key where that has more than a part. Readers that want one key need few parts.

Freed memory goes back to the machine after each part. The C library would keep it in pieces, which grow
with the number of parts although what is used does not.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.infer import block_cells
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def return_freed_memory() -> None:
    """Give back what the C library holds of freed memory, where it is one that can (glibc)."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # of another C library, or system
        return None


BLOCKS = 4
"""Blocks of cells, as posteriors are worked out, in a part: about a minute of one processor."""
ONE_SUM_BLOCKS = 32
"""Likewise in families with one sum, whose cells take a tenth of that."""
DRAWN_VALUES = 2**20
"""Draws of a part: of all its cells and parameters together; a file of them has some 60 MB."""
MOST_PARTS = 4000
"""Of one publication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPart:
    """Consecutive cells that are computed and written together.

    Attributes
    ----------
    number : int
        From 0.
    start, stop : int
        The first cell of those asked for, and the first that is not in it any more.
    """

    number: int
    start: int
    stop: int


def cells_per_part(plan: StatisticPlan, draws: int) -> int:
    """Return how many cells of a statistic a part has at most.

    Parameters
    ----------
    plan : StatisticPlan
    draws : int, >= 0
        Of each cell, that are published.
    """
    family = FAMILIES[plan.family]
    entries = max(1, len(entry_names(family.labels(plan.parameters))))
    blocks = ONE_SUM_BLOCKS if family.latent is not None else BLOCKS
    most = blocks * block_cells(plan)
    return most if draws == 0 else max(1, min(most, DRAWN_VALUES // (draws * entries * _PARAMETERS)))


_PARAMETERS = 2
"""Parameters that most families have, or more than they have: a part may only be smaller for it."""


def parts_of(n_cells: int, n_keys: int, most: int) -> list[AnswerPart]:
    """Divide cells into parts.

    Parameters
    ----------
    n_cells : int
        All cells that are asked for.
    n_keys : int
        Keys of the first group column among them: each has as many cells.
    most : int
        Cells that a part has at most.

    Raises
    ------
    UsageError
        Where there would be too many parts.

    Examples
    --------
    >>> [(part.start, part.stop) for part in parts_of(12, 4, 7)]
    [(0, 6), (6, 12)]
    >>> [(part.start, part.stop) for part in parts_of(12, 2, 4)]
    [(0, 3), (3, 6), (6, 9), (9, 12)]
    """
    of_key = n_cells // n_keys
    if of_key <= most:
        step = most // of_key * of_key
        ends = [*range(0, n_cells, step), n_cells]
    else:
        within = -(-of_key // most)
        ends = [key * of_key + part * of_key // within for key in range(n_keys) for part in range(within)]
        ends.append(n_cells)
    if len(ends) > MOST_PARTS + 1:
        message = (
            f"{n_cells} cells make {len(ends) - 1} parts, and a publication has at most {MOST_PARTS}: ask "
            "for fewer draws, or for fewer cells with --where"
        )
        raise UsageError(message)
    return [
        AnswerPart(number=number, start=start, stop=stop)
        for number, (start, stop) in enumerate(pairwise(ends))
    ]
