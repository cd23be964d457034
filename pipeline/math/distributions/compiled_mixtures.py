"""Quantiles of merged pairs by compiled loops, where there are so many cells that loading these pays."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.many_cells import QUANTILES, on_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.merged import Components
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]

_BATCH = 128


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
    if isinstance(update(np.zeros(1), np.zeros(1)), InverseGammaDistribution):
        # Those of one over it, which is a gamma, from the other end.
        other = None if near is None else 1.0 / near[:, ::-1]
        quantiles = compiled_quantiles(
            merged, _reciprocal(update), 1.0 - levels[:, ::-1], near=other, rough=rough
        )
        return None if quantiles is None else 1.0 / quantiles[:, ::-1]
    linear = linear_update(update) if QUANTILES.pay(cells) else None
    if linear is None:
        return None
    kernel: Any = importlib.import_module(QUANTILES.module)
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


def _reciprocal(update: Update) -> Update:
    """N and S -> the distribution of one over a parameter that is inverse gamma."""

    def of_reciprocal(n: Floats, total: Floats) -> Distribution:
        given = cast("InverseGammaDistribution", update(n, total))
        return GammaDistribution(concentration=given.concentration, rate=given.scale, name=given.name)

    return of_reciprocal
