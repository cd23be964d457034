r"""Nodes of the likelihoods of a normal's mean and variance, of cells with noisy sums.

Model. N normal rows of a cell have the mean :math:`\mu` and the standard deviation :math:`\sigma`, in half
ranges; number, sum and sum of squares are latent behind Laplace noise, and integrated out
(``mean_variance.likelihood``). All that populations f of means and g of standard deviations need of it are

.. math::
    \int \int L(\mu, \sigma) f(x) g(y) \, dx \, dy \approx \sum_{ij} w_{ij} f(x_i) g(y_j), \qquad
    x = \mu / u, \quad y = \log \sigma, \qquad (1)

with the unit u = 1/2 of means, a quarter of the width of the bounds: in it hyperpriors are those of
``hyperparameters``.

Method. Nodes are evenly spaced in (2) of ``cells`` on both sides, about where the grids of latent sums are,
and where populations may be. Records are as bounds leave them.

Symbols: x, y: ``position`` and ``level``; w: ``weight``, of which the largest of a cell is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.mean_variance.likelihood import Fineness, LatentRows
from suffice.pipeline.math.engines.pooled.cells import nodes_of_positions

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments
    from suffice.pipeline.math.engines.pooled.cells import Focus
    from suffice.typing import Cells, Floats

UNIT = 0.5
"""Of means, in half ranges."""
ENDS = (-40.0, 40.0), (-40.0, 20.0)
_DEPTH, _ROOM = 20.0, 5e7
_HIDDEN, _WIDEST = 3.0, 6.0
"""Scales of the noise that rows vary by from which on steps are wider, and by how much at most."""
_NATS = 34.0
_FEWEST, _FEWER = 36, 0.65
_NEGLIGIBLE = 1e-11
_LEAST = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentNodes:
    """Nodes and weights of (1) for some cells.

    Attributes
    ----------
    position, level : ndarray of shape (n_cells, n_positions) and (n_cells, n_levels), float64
    spacing, level_spacing : ndarray of the same shapes, float64
        The weights of nodes in integrals over one of them.
    weight : ndarray of shape (n_cells, n_positions, n_levels), float64
    """

    position: Floats
    level: Floats
    spacing: Floats
    level_spacing: Floats
    weight: Floats

    def take(self, part: slice) -> MomentNodes:
        """Return those of some cells."""
        return MomentNodes(**{name: getattr(self, name)[part] for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentCells:
    """Cells with noisy numbers of rows, sums and sums of squares.

    Attributes
    ----------
    noisy : NoisyMoments
    """

    noisy: NoisyMoments

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self.noisy.totals.n_cells

    @property
    def middle(self) -> tuple[float, float]:
        """About where means and log standard deviations of all cells are."""
        n, total, squares = np.sum(self.noisy.estimates(), axis=0)
        n = max(n, 1.0)
        mean = float(np.clip(total / n, -1.0, 1.0))
        return mean / UNIT, 0.5 * float(np.log(np.clip(squares / n - mean**2, 1e-6, 1.0)))

    def nodes(self, cells: Cells, of_means: Focus, of_levels: Focus) -> MomentNodes:
        """Nodes of some cells.

        Raises
        ------
        TooManyError
            Where the noise of a cell is so wide that there would be too many sums.
        """
        parts = [self._of_cell(cell, of_means, of_levels) for cell in cells.tolist()]
        return MomentNodes(
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in MomentNodes.__slots__
            }
        )

    def _of_cell(self, cell: int, of_means: Focus, of_levels: Focus) -> MomentNodes:
        noisy = self.noisy.take(np.array([cell]))
        rows = LatentRows.of(noisy, _DEPTH, _ROOM, fineness=_fineness(noisy))
        (centre, width), (middle, of_middle) = _where(rows)
        x, log_dx = nodes_of_positions(np.array([centre]), np.array([width]), of_means, ENDS[0], _n(of_means))
        y, log_dy = nodes_of_positions(
            np.array([middle]), np.array([of_middle]), of_levels, ENDS[1], _n(of_levels)
        )
        log_weight = _log_likelihood(rows, UNIT * x[0], 2.0 * y[0]) + log_dx[:, :, None] + log_dy[:, None, :]
        weight = np.exp(log_weight - np.max(log_weight))
        weight[weight < _NEGLIGIBLE] = 0.0
        return MomentNodes(
            position=x, level=y, spacing=np.exp(log_dx), level_spacing=np.exp(log_dy), weight=weight
        )


def _n(focus: Focus) -> int:
    """Return how many nodes a side has: normal laws are one unit of (2) of ``cells`` wide, and more."""
    return max(_FEWEST, int(np.ceil(focus.n_positions * _FEWER)))


def _fineness(noisy: NoisyMoments) -> Fineness:
    """Return steps of a grid of sums: wider where what rows vary by hides more than the noise does."""
    n, total, squares = noisy.estimates()[0]
    n = max(n, 1.0)
    of_total = 1.0 / float(np.abs(noisy.totals.coefficients[:, 1]) @ noisy.totals.rate)
    varies = np.sqrt(max(squares - total * (total / n), 0.0))
    wider = float(np.clip(varies / of_total / _HIDDEN, 1.0, _WIDEST))
    return Fineness(
        finest=0.3 * wider,
        growth=0.12 * wider,
        coarsest=1.6 * wider,
        of_rows=24.0,
        of_few=5.0,
        wider=3.0,
        beside=0.8,
    )


def _log_likelihood(rows: LatentRows, mean: Floats, log_variance: Floats) -> Floats:
    """Return log likelihoods at pairs of nodes, (n_positions, n_levels); minus infinity far down."""
    value = np.full((len(mean), len(log_variance)), rows.log_empty)
    levels = []
    for each in rows.slices:
        along = each.of_deviations(log_variance[None])[0]
        width = each.blur + np.exp(log_variance)[:, None] / each.n
        along -= 0.5 * np.log(2.0 * np.pi * width)
        levels.append((along, width, np.max(along, axis=1)))
    highest = max([rows.log_empty, *(float(np.max(top)) for *_, top in levels)])
    for each, (along, width, top) in zip(rows.slices, levels, strict=True):
        # A bound of what a level may add, and then of what a position may.
        kept = np.flatnonzero(top > highest - _NATS)
        if not kept.size:
            continue
        gap = np.maximum(np.maximum(each.mean[0] - mean, mean - each.mean[-1]), 0.0)
        near = np.flatnonzero(0.5 * gap**2 < _NATS * np.max(width[kept]))
        scaled = np.exp(along[kept] - highest).astype(np.float32)
        parts = (mean[near, None] - each.mean).astype(np.float32) ** 2
        kernel = parts[:, None, :] * (-0.5 / width[kept]).astype(np.float32)
        np.exp(kernel, out=kernel)
        kernel *= scaled
        with np.errstate(divide="ignore"):
            of_slice = highest + np.log(np.sum(kernel, axis=2, dtype=np.float64))
        at = np.ix_(near, kept)
        value[at] = np.logaddexp(value[at], of_slice)
    return value


def _where(rows: LatentRows) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return about where a cell's mean and log standard deviation are, and how wide its likelihood is."""
    parts = [each for each in rows.slices if each.n >= 2.0] or rows.slices
    if not parts:
        return (0.0, 2.0), (0.0, 2.0)
    share = np.array([max(float(np.sum(each.weight)), 1e-300) for each in parts])
    share /= np.sum(share)
    n = float(share @ [each.n for each in parts])
    first, second = np.zeros(2), np.zeros(2)
    for each, part in zip(parts, share, strict=True):
        weight = np.maximum(each.weight, 0.0) / max(float(np.sum(each.weight)), 1e-300)
        level = 0.5 * np.maximum(each.log_e, -14.0)
        for side, (axis, place) in enumerate(((0, each.mean / UNIT), (1, level))):
            of_place = np.sum(weight, axis=axis)
            first[side] += part * float(of_place @ place)
            second[side] += part * float(of_place @ place**2)
    spread = np.sqrt(np.maximum(second - first**2, 0.0))
    sampling = np.exp(first[1]) / UNIT / np.sqrt(n)
    return (
        (float(first[0]), float(max(np.hypot(spread[0], sampling), _LEAST))),
        (float(first[1]), float(np.hypot(spread[1], np.sqrt(0.5 / max(n - 1.0, 1.0))))),
    )
