r"""Log likelihoods in tables: polynomials on panels of a line, cell by cell, with an error that was checked.

Model. A log likelihood l(x) of a position x is smooth. Its panels are halved until the polynomial of degree
d = ``DEGREE`` through Chebyshev-Lobatto nodes,

.. math:: x_j = m - r \cos(\pi j / d), \quad j = 0, \dots, d, \qquad (1)

with the middle m and the half width r, misses it by at most a tolerance at the d points between neighbours,
where it was not fitted. The largest miss of a cell, in nats, is its ``error``. Panels share their ends, so
that the table is continuous.

Where l is lower than its highest by more than ``DEPTH`` nats, a table has chords: there it is no more than a
guide back to where the likelihood is. A chord lies below a concave function. Outside of the outermost panels
the table goes on along the chord of the outermost one, but never up.

Symbols:

- l, x: values and positions
- d: ``DEGREE``; the panel is -1..1, and coefficients are those of powers of its coordinate

Method. All cells are halved together, round by round.

References
----------
Trefethen. Approximation theory and approximation practice. 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats, Mask, Rows

DEGREE = 8
DEPTH = 40.0
"""Nats: what is left out of any posterior that has its mass where the likelihood is, is e^-40 of it."""
_RISE = 8.0
"""Of a panel: the integral of its exponential is that of 16 nodes."""
_ROUNDS = 60
_FLOOR = -1e14
_NARROWEST = 1e-12
_NODES = -np.cos(np.pi * np.arange(2 * DEGREE + 1) / (2 * DEGREE))
"""Those of (1), and between them those that check."""
_TO_POWERS = np.linalg.inv(np.vander(_NODES[::2], increasing=True))
_BETWEEN = np.vander(_NODES[1::2], DEGREE + 1, increasing=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Tabulated functions of all cells; made by ``tabulate``.

    Attributes
    ----------
    start : ndarray of shape (n_cells + 1,), int64
        The first panel of every cell, and the number of panels.
    left, right : ndarray of shape (n_panels,), float64
        Ends, as positions, ascending in a cell.
    powers : ndarray of shape (n_panels, DEGREE + 1), float64
        Coefficients of powers, constants first, in nats.
    is_fine : ndarray of shape (n_panels,), bool
        Where the table has its error; chords elsewhere.
    top, error : ndarray of shape (n_cells,), float64
        The highest value seen, and the largest miss that was seen, in nats.
    """

    start: Rows
    left: Floats
    right: Floats
    powers: Floats
    is_fine: Mask
    top: Floats
    error: Floats

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.top)

    @property
    def cell(self) -> Rows:
        """The cell of every panel."""
        return np.repeat(np.arange(self.n_cells), np.diff(self.start))

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Where it is lower by ``DEPTH`` than at its highest, or the table ends: (n_cells,) each."""
        fine = np.flatnonzero(self.is_fine)
        cell = self.cell[fine]
        first = fine[np.searchsorted(cell, np.arange(self.n_cells))]
        last = fine[np.searchsorted(cell, np.arange(self.n_cells), side="right") - 1]
        return self.left[first], self.right[last]

    def take(self, cells: Rows) -> Self:
        """Return the given cells, in the given order."""
        lengths = np.diff(self.start)[cells]
        start = np.concatenate([[0], np.cumsum(lengths)])
        panels = np.arange(start[-1]) - np.repeat(start[:-1], lengths) + np.repeat(self.start[cells], lengths)
        return replace(
            self,
            start=start,
            left=self.left[panels],
            right=self.right[panels],
            powers=self.powers[panels],
            is_fine=self.is_fine[panels],
            top=self.top[cells],
            error=self.error[cells],
        )

    def __call__(self, cell: Rows, position: Floats) -> Floats:
        """Return values of cells at positions; both broadcast."""
        cell, position = np.broadcast_arrays(cell, np.asarray(position, dtype=np.float64))
        return self.at_panels(self.panel_of(cell, position), position)

    def panel_of(self, cell: Rows, position: Floats) -> Rows:
        """Return the panels that positions are in, the outermost where they are outside of all."""
        low, high = self.start[cell], self.start[cell + 1] - 1
        # Bisection over the panels of each cell: the last that begins at the position or before it.
        for _ in range(int(np.max(high - low, initial=1)).bit_length()):
            middle = (low + high + 1) // 2
            before = self.left[middle] <= position
            low, high = np.where(before, middle, low), np.where(before, high, middle - 1)
        return np.asarray(low, dtype=np.int64)

    def at_panels(self, panel: Rows, position: Floats) -> Floats:
        """Return values at positions that are in these panels."""
        left, right = self.left[panel], self.right[panel]
        share = (position - (left + right) / 2.0) / ((right - left) / 2.0)
        inside = np.clip(share, -1.0, 1.0)
        powers = self.powers[panel]
        value = powers[..., DEGREE]
        for power in range(DEGREE - 1, -1, -1):
            value = value * inside + powers[..., power]
        if np.any(share != inside):
            # Beyond the outermost panels along its chord, downwards.
            # Odd powers are half of what a panel rises by from left to right.
            rise = np.sum(powers[..., 1::2], axis=-1)
            value = value + np.minimum(rise * (share - inside), 0.0)
        return np.asarray(value, dtype=np.float64)


def tabulate(
    evaluate: Callable[[Rows, Floats], Floats], edges: Floats, *, tolerance: float, depth: float = DEPTH
) -> Table:
    """Tabulate functions of one position, one of every cell.

    Parameters
    ----------
    evaluate : callable
        Cells (n,) and positions (n, n_points) -> values (n, n_points), minus infinity included.
    edges : ndarray of shape (n_cells, n_edges), float64
        Ends of the panels to begin with, ascending.
    tolerance : float, > 0
        Nats that a table may miss at points that were not fitted.
    depth : float, > 0
        As ``DEPTH``.
    """
    n_cells, n_edges = edges.shape
    cell = np.repeat(np.arange(n_cells), n_edges - 1)
    left, right = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    top, error = np.full(n_cells, -np.inf), np.zeros(n_cells)
    rows: list[tuple[Rows, Floats, Floats, Floats, Floats]] = []
    for turn in range(_ROUNDS):
        if not cell.size:
            break
        middle, half = (left + right) / 2.0, (right - left) / 2.0
        value = evaluate(cell, middle[:, None] + half[:, None] * _NODES)
        value = np.maximum(np.nan_to_num(value, nan=_FLOOR, neginf=_FLOOR), _FLOOR)
        powers = value[:, ::2] @ _TO_POWERS.T
        miss = np.max(np.abs(powers @ _BETWEEN.T - value[:, 1::2]), axis=1)
        highest = np.max(value, axis=1)
        np.maximum.at(top, cell, highest)
        # Between nodes a function may be higher by what it moves by between them.
        peak = np.argmax(value, axis=1)[:, None]
        beside = np.clip(peak + np.array([-1, 1]), 0, 2 * DEGREE)
        hidden = np.max(np.abs(np.take_along_axis(value, beside, axis=1) - highest[:, None]), axis=1)
        near = highest + miss + hidden > top[cell] - depth
        fits = (miss <= tolerance) & (np.ptp(value, axis=1) <= _RISE)
        # Positions that numbers no longer tell apart, and rounding of values that are large.
        spent = half <= _NARROWEST * np.abs(middle) + 1e-300
        spent |= (miss <= 8.0 * np.finfo(np.float64).eps * np.max(np.abs(value), axis=1)) & (turn > 30)
        done = ~near | fits | spent | (turn == _ROUNDS - 1)
        rows.append((cell[done], left[done], right[done], powers[done], np.stack([miss, highest])[:, done]))
        open_ = ~done
        cell = np.repeat(cell[open_], 2)
        left, right = (
            np.stack([left[open_], middle[open_]], axis=1).ravel(),
            np.stack([middle[open_], right[open_]], axis=1).ravel(),
        )
    of_cell, left, right, powers = (np.concatenate([row[part] for row in rows]) for part in range(4))
    miss, highest = np.concatenate([row[4] for row in rows], axis=1)
    order = np.lexsort([left, of_cell])
    of_cell, left, right, powers = of_cell[order], left[order], right[order], powers[order]
    is_fine = highest[order] + np.minimum(miss[order], 1.0) > top[of_cell] - depth
    np.maximum.at(error, of_cell[is_fine], miss[order][is_fine])
    # Chords where it is low.
    low = ~is_fine
    even, odd = np.sum(powers[low, 0::2], axis=1), np.sum(powers[low, 1::2], axis=1)
    powers[low] = 0.0
    powers[low, 0], powers[low, 1] = even, odd
    return Table(
        start=np.searchsorted(of_cell, np.arange(n_cells + 1)),
        left=left,
        right=right,
        powers=powers,
        is_fine=is_fine,
        top=top,
        error=error,
    )


def joined(tables: list[Table]) -> Table:
    """Return the tables of consecutive cells as one."""
    lengths = np.concatenate([np.diff(table.start) for table in tables])
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables])
        for name in ("left", "right", "powers", "is_fine", "top", "error")
    }
    return Table(start=np.concatenate([[0], np.cumsum(lengths)]), **arrays)
