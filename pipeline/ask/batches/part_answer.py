"""Answers in parts: which cells a part has, and its summaries and draws as columns, in the order of rows.

Parts are consecutive cells in the order of the release, so of the first group column: a part holds whole keys
of it, or some cells of one key where that has more than a part. Readers that want one key need few parts.
They are a function of what is asked, never of the machine.

Under one prior, a cell's posterior is a function of its released integers alone. Of a million cells with few
records, most have the values of others: their posterior is worked out once. Each cell has its own draws.

Freed memory goes back to the machine after each part. The C library would keep it in pieces, which grow with
the number of parts although what is used does not.
"""

from __future__ import annotations

import ctypes
import dataclasses
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.choice_of_engine import block_cells, inferred
from suffice.pipeline.ask.posterior.summaries import summaries
from suffice.pipeline.ask.publication.answer import Streams, draw_columns, notes_of, quantile_draws
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import RepeatedCells
from suffice.pipeline.math.distributions.many_cells import among
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Cells


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
    """Return how many cells of a statistic a part has at most, with so many published draws of each."""
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


MOST_DRAWN = 256
"""Draws of a cell up to which drawing for others too costs less than working out their posterior."""


def posterior_of_alike(
    statistic: NoisyStatistic, posterior_of: Callable[[NoisyStatistic], Posterior], draws: int
) -> Posterior:
    """Return the posterior of every cell, worked out once for cells that are alike.

    `posterior_of` returns that of some cells, and so many draws will be taken of every cell.
    """
    if draws > MOST_DRAWN // 2 or (draws and FAMILIES[statistic.plan.family].latent is None):
        return posterior_of(statistic)  # draws cost more than the posterior, or are of the same chains
    first, of_cell, turn = _different(statistic, MOST_DRAWN // draws if draws else len(statistic.values))
    if len(first) == len(of_cell):
        return posterior_of(statistic)
    distinct_posterior = posterior_of(statistic.take(first))
    observed = distinct_posterior.observed[0]

    def spread(values: Any) -> Any:
        return None if values is None else values[of_cell]

    return dataclasses.replace(
        distinct_posterior,
        groups=statistic.groups,
        distribution=RepeatedCells(distribution=distinct_posterior.distribution, of_cell=of_cell, turn=turn),
        observed=(dataclasses.replace(observed, values=observed.values[of_cell], groups=statistic.groups),),
        models_clipping=spread(distinct_posterior.models_clipping),
        design_effect=spread(distinct_posterior.design_effect),
    )


def _different(statistic: NoisyStatistic, most: int) -> tuple[Cells, Cells, Cells]:
    """Return cells that stand for at most so many; for each cell, which stands for it, and its turn."""
    seen: dict[tuple[int, ...], int] = {}
    first: list[int] = []
    of_cell, turn = np.empty((2, len(statistic.values)), dtype=np.int64)
    standing: dict[tuple[int, ...], int] = {}
    for cell, values in enumerate(map(tuple, statistic.values.tolist())):
        turn[cell] = seen.get(values, 0) % most
        seen[values] = seen.get(values, 0) + 1
        if turn[cell] == 0:
            standing[values] = len(first)
            first.append(cell)
        of_cell[cell] = standing[values]
    return np.array(first, dtype=np.int64), of_cell, turn


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTerms:
    """What is asked of every part alike.

    Attributes
    ----------
    terms : PosteriorTerms
        Text, so that they travel; cells are chosen already.
    mass : float
        Of the credible intervals.
    interval : str
        Their kind.
    draws : int
        Of each cell; 0 for summaries alone.
    seed : int
        The request's.
    place : int
        The statistic's position in the request.
    n_cells : int
        Of all parts.
    """

    terms: PosteriorTerms
    mass: float
    interval: str
    draws: int
    seed: int
    place: int
    n_cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartAnswer:
    """Summaries and draws of the cells of one part.

    Attributes
    ----------
    summaries, draws : dict of str to array
        Columns; no draws where none are asked for.
    diagnostics : dict
        What chains rest on; empty where draws are independent.
    notes : tuple of str
        What there is to say beside the numbers, a sentence each.
    """

    summaries: Mapping[str, Any] = field(repr=False)
    draws: Mapping[str, Any] | None = field(repr=False)
    diagnostics: Mapping[str, Any]
    notes: tuple[str, ...]


def answer_part(asked: PartTerms, number: int, cells: NoisyStatistic) -> PartAnswer:
    """Compute one part by its number: a function of its arguments, whichever machine has it."""
    from suffice.pipeline.ask.batches.part_columns import summary_columns  # answers in memory need no Arrow

    streams = Streams(seed=asked.seed, place=(asked.place, number))

    def posterior(statistic: NoisyStatistic) -> Posterior:
        return inferred(statistic, asked.terms)

    with among(asked.n_cells):
        alike = posterior_of_alike(cells, posterior, asked.draws)
        draws, rng = quantile_draws(asked.draws), streams.summaries()
        numbers = summaries(alike, asked.mass, draws, rng, interval=asked.interval)
        return PartAnswer(
            summaries=summary_columns(alike, numbers),
            draws=draw_columns(alike, asked.draws, streams.draws()) if asked.draws else None,
            diagnostics=alike.diagnostics,
            notes=notes_of(alike, of_cells=asked.n_cells),
        )
