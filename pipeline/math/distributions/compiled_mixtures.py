"""Quantiles of merged pairs by compiled loops, where there are so many cells that loading these pays."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.many_cells import is_compiled, is_kept, on_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.merged import Components
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]


@dataclass(frozen=True, slots=True, kw_only=True)
class FewestCells:
    """Cells from which on loops pay.

    Attributes
    ----------
    loaded : int
        Where they are loaded.
    kept : int
        Where machine code has to be loaded, about half a second.
    made : int
        Where it has to be made, about half a minute.
    """

    loaded: int
    kept: int
    made: int


OF_MILLISECONDS = FewestCells(loaded=50, kept=500, made=50_000)
"""Where a cell takes a millisecond longer by arrays."""
FEWEST_CELLS = OF_MILLISECONDS.loaded
_KERNEL = "suffice.pipeline.math.distributions.mixture_kernel"
_BATCH = 128


def pays(kernel: str, cells: int, fewest: FewestCells = OF_MILLISECONDS) -> bool:
    """Whether the loops of a module take less time than arrays, with what it takes to have them."""
    if cells < fewest.loaded or not is_compiled():
        return False
    return kernel in sys.modules or cells >= (fewest.kept if is_kept(kernel) else fewest.made)


def linear_update(update: Update) -> tuple[int, Floats] | None:
    """Return a number of the distribution and its natural parameters as linear functions of N and S.

    None of distributions that are no betas and no gammas, and of functions that are not linear. The number
    is that of ``mixture_kernel``; the coefficients (6,) are of 1, N and S, twice.
    """
    given = update(np.array([0.0, 1.0, 0.0, 3.0]), np.array([0.0, 0.0, 1.0, 2.0]))
    if isinstance(given, BetaDistribution):
        line, columns = 0, (given.concentration1, given.concentration0)
    elif isinstance(given, GammaDistribution):
        line, columns = 1, (given.concentration, given.rate)
    else:
        return None
    numbers = []
    for column in columns:
        values = np.broadcast_to(column, 4)
        start, of_n, of_total = values[0], values[1] - values[0], values[2] - values[0]
        if abs(start + 3.0 * of_n + 2.0 * of_total - values[3]) > 1e-9 * abs(values[3]):
            return None
        numbers += [start, of_n, of_total]
    return line, np.array(numbers)


def compiled_quantiles(
    merged: Components, update: Update, levels: Floats, *, near: Floats | None = None, rough: bool = False
) -> Floats | None:
    """Return quantiles at levels (n_cells, n_levels); None of few cells, and where nothing is compiled.

    Parameters
    ----------
    merged : Components
        Of all cells.
    update : callable
        As in ``Components.of``.
    levels : ndarray of shape (n_cells, n_levels)
        Ascending.
    near : ndarray shaped as the levels, optional
        About the quantiles.
    rough : bool
        Whether quantiles of a mixture that is merged much coarser are enough.
    """
    cells = len(levels)
    linear = linear_update(update) if pays(_KERNEL, cells) else None
    if linear is None:
        return None
    kernel: Any = importlib.import_module(_KERNEL)
    line = coordinate_of(update(merged.n[:1], merged.total[:1])).line
    table = np.stack([merged.n, merged.total, merged.weight, merged.scatter], axis=1)
    ends = np.searchsorted(merged.cell, np.arange(cells + 1))
    start = np.empty((cells, 0)) if near is None else line.position(near)
    levels = np.ascontiguousarray(levels, dtype=np.float64)
    out = np.empty(levels.shape)

    def work(batch: slice) -> None:
        of_batch = ends[batch.start : batch.stop + 1]
        kernel.quantiles(
            of_batch, table, linear[0], linear[1], rough, levels[batch], start[batch], out[batch]
        )

    on_threads(work, cells, _BATCH)
    return line.parameter(out)
