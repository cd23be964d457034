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
and where populations may be. Likelihoods are worked out once a cell. Where populations turn out to be
elsewhere, ``moved`` interpolates their logarithms by polynomials of degree three through the four nearest
nodes of each side: nodes are closer to each other than likelihoods are wide. Quantiles then differ from those
of nodes laid out where populations are by at most .01 of an interval's width where cells tell it. Records are
as bounds leave them.

Symbols: x, y: ``position`` and ``level``; w: ``weight``, of which the largest of a cell is 1; log L:
``log_likelihood``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.mean_variance.likelihood import Fineness, LatentRows
from suffice.pipeline.math.engines.pooled.cells import nodes_of_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments
    from suffice.pipeline.math.engines.pooled.cells import Focus
    from suffice.typing import Floats

UNIT = 0.5
"""Of means, in half ranges."""
NODES = (48, 42)
"""How many nodes likelihoods are worked out at, on both sides."""
ENDS = (-40.0, 40.0), (-40.0, 20.0)
_DEPTH, _ROOM = 20.0, 5e7
_HIDDEN, _WIDEST = 3.0, 6.0
"""Scales of the noise that rows vary by from which on steps are wider, and by how much at most."""
_NATS = 45.0
"""Below the highest of a cell: what is lower counts as this low."""
_FEWEST, _FEWER = 36, 0.65
_NEGLIGIBLE = 1e-11
_LEAST = 1e-3
_TOGETHER = 64
_LEVELS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentNodes:
    """Nodes and weights of (1) for some cells.

    Attributes
    ----------
    position, level : ndarray of shape (n_cells, n_positions) and (n_cells, n_levels), float64
    spacing, level_spacing : ndarray of the same shapes, float64
        The weights of nodes in integrals over one of them.
    log_likelihood, weight : ndarray of shape (n_cells, n_positions, n_levels), float64
        Of the former the highest of a cell is 0.
    centre, width : ndarray of shape (n_cells, 2), float64
        About where the likelihood of a cell is, and how wide, on both sides.
    """

    position: Floats
    level: Floats
    spacing: Floats
    level_spacing: Floats
    log_likelihood: Floats
    weight: Floats
    centre: Floats
    width: Floats

    @classmethod
    def of(
        cls,
        sides: Sequence[tuple[Floats, Floats]],
        log_likelihood: Floats,
        centre: Floats,
        width: Floats,
    ) -> MomentNodes:
        """Weigh nodes, which are given with the logarithms of their weights in integrals."""
        (x, log_dx), (y, log_dy) = sides
        log_weight = log_likelihood + log_dx[:, :, None] + log_dy[:, None, :]
        weight = np.exp(log_weight - np.max(log_weight, axis=(1, 2), keepdims=True))
        weight[weight < _NEGLIGIBLE] = 0.0
        return cls(
            position=x,
            level=y,
            spacing=np.exp(log_dx),
            level_spacing=np.exp(log_dy),
            log_likelihood=log_likelihood,
            weight=weight,
            centre=centre,
            width=width,
        )

    def moved(self, foci: Sequence[Focus]) -> MomentNodes:
        """Return nodes that are dense where these populations may be."""
        parts = [
            self.take(slice(first, first + _TOGETHER)) for first in range(0, len(self.centre), _TOGETHER)
        ]
        return _together([each._moved(foci) for each in parts])  # noqa: SLF001 - of this class

    def _moved(self, foci: Sequence[Focus]) -> MomentNodes:
        sides = nodes_about(self.centre, self.width, foci, tuple(map(_n, foci)))
        first, second = (
            interpolation(known, wanted)
            for known, (wanted, _) in zip((self.position, self.level), sides, strict=True)
        )
        log_likelihood = first @ self.log_likelihood @ second.swapaxes(1, 2)
        log_likelihood -= np.max(log_likelihood, axis=(1, 2), keepdims=True)
        return MomentNodes.of(sides, log_likelihood, self.centre, self.width)

    @property
    def sides(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Nodes of both sides, and their weights in integrals."""
        return (self.position, self.spacing), (self.level, self.level_spacing)

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

    def nodes(self, foci: Sequence[Focus], n: tuple[int, int] = NODES) -> MomentNodes:
        """Nodes of all cells, so many on each side, dense where populations of means and of levels may be.

        Raises
        ------
        TooManyError
            Where the noise of a cell is so wide that there would be too many sums.
        """
        return _together([self._of_cell(cell, foci, n) for cell in range(self.n_cells)])

    def _of_cell(self, cell: int, foci: Sequence[Focus], n: tuple[int, int]) -> MomentNodes:
        noisy = self.noisy.take(np.array([cell]))
        rows = LatentRows.of(noisy, _DEPTH, _ROOM, fineness=_fineness(noisy))
        centre, width = (np.array([each]) for each in zip(*_where(rows), strict=True))
        sides = nodes_about(centre, width, foci, n)
        log_likelihood = _log_likelihood(rows, UNIT * sides[0][0][0], 2.0 * sides[1][0][0])
        log_likelihood = np.maximum(log_likelihood - np.max(log_likelihood), -_NATS)
        return MomentNodes.of(sides, log_likelihood[None], centre, width)


def _together(parts: Sequence[MomentNodes]) -> MomentNodes:
    return MomentNodes(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in MomentNodes.__slots__}
    )


def nodes_about(
    centre: Floats, width: Floats, foci: Sequence[Focus], n: Sequence[int]
) -> list[tuple[Floats, Floats]]:
    """Return nodes of both sides and the logarithms of their weights in integrals."""
    return [
        nodes_of_positions(centre[:, side], width[:, side], focus, ENDS[side], number)
        for side, (focus, number) in enumerate(zip(foci, n, strict=True))
    ]


def interpolation(known: Floats, wanted: Floats) -> Floats:
    """Return weights of known nodes (n_cells, n) in what is at others (n_cells, m), (n_cells, m, n)."""
    n_cells, n = known.shape
    below = np.empty(wanted.shape, dtype=np.int64)
    for cell in range(n_cells):
        below[cell] = np.searchsorted(known[cell], wanted[cell])
    taps = np.clip(below - 2, 0, n - 4)[:, :, None] + np.arange(4)
    place = np.take_along_axis(known, taps.reshape(n_cells, -1), axis=1).reshape(taps.shape)
    # Beyond the ends values are those at the ends.
    at = np.clip(wanted, known[:, :1], known[:, -1:])[:, :, None]
    weight = np.ones_like(place)
    for tap in range(4):
        for other in {0, 1, 2, 3} - {tap}:
            # Lagrange's polynomials.
            weight[:, :, tap] *= (at[:, :, 0] - place[:, :, other]) / (place[:, :, tap] - place[:, :, other])
    result = np.zeros((*wanted.shape, n))
    np.put_along_axis(result, taps, weight, axis=2)
    return result


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
        square = (mean[:, None] - each.mean).astype(np.float32) ** 2
        scaled = np.exp(along[kept] - highest).astype(np.float32)
        for first in range(0, len(kept), _LEVELS):
            # Few levels at a time: narrow ones reach few positions.
            few, part = kept[first : first + _LEVELS], scaled[first : first + _LEVELS]
            near = np.flatnonzero(0.5 * gap**2 < _NATS * np.max(width[few]))
            kernel = square[near][:, None, :] * (-0.5 / width[few]).astype(np.float32)
            np.exp(kernel, out=kernel)
            of_slice = np.einsum("ijk,jk->ij", kernel, part)
            with np.errstate(divide="ignore"):
                value[np.ix_(near, few)] = np.logaddexp(
                    value[np.ix_(near, few)], highest + np.log(of_slice.astype(np.float64))
                )
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
