r"""Nodes of the likelihoods of cells, over the position of a parameter and the log size of a cell.

Model. A cell's parameter has the position x on its line, and the cell a latent size N with a public prior
g; what was released has the likelihood L(x, N). All that a population needs of it are integrals

.. math::
    \int \int L(x, N) \, g(N) \, f(x, \log (1 + N)) \, dx \, dN \approx \sum_{ij} w_{ij} f(x_i, v_{ij})
    \qquad (1)

of smooth f, with positive weights w.

Method. Positions are evenly spaced in

.. math::
    u(x) = g\Bigl(\frac{x - c}{d}, \frac r d\Bigr) + \operatorname{asinh}\frac{x - \hat x}{\sigma}, \qquad (2)

    g(y, a) = \operatorname{sign}(y) \bigl(\min(|y|, a) + \operatorname{asinh} \max(|y| - a, 0)\bigr)

so that nodes are dense where the population may be narrow, up to r from c by d, and where the likelihood is,
about :math:`\hat x` by :math:`\sigma`, about ``_STEP`` apart in u; the trapezoidal rule in u is
accurate beyond all powers of its step for functions that are smooth in u and fall at both ends (Trefethen,
Weideman 2014). Far out x grows as an exponential of u, so that few nodes reach far.

Symbols: x: ``position``, (n_cells, n_positions); v: ``log_size``, (n_cells, n_sizes); w: ``weight``, of which
the largest of a cell is 1, and the logarithm of what they were divided by: ``log_scale``.

References
----------
Trefethen, Weideman. The exponentially convergent trapezoidal rule. SIAM Review 56, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Cells, Floats, Rows

REACH = 16.0
"""How far nodes go beyond where a population may be centred, in units of the line."""
POSITIONS = 48
_BISECTIONS, _STEPS = (7, 30), 4
_STEP, _MOST = 0.55, 256
_OF_CELLS = 12.0
"""What the second term of (2) takes of u, of a likelihood that is some tenths wide."""
_NEGLIGIBLE = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """Where populations are expected: nodes are dense there.

    Attributes
    ----------
    centre : float, or ndarray of shape (n_cells, 1)
        c of (2): of all cells, or of each where populations differ in their location.
    width : float
        d of (2), > 0: the least spread that matters.
    reach : float
        r of (2): how far from the centre so narrow a population may be.
    """

    centre: float | Floats
    width: float
    reach: float = 0.0

    @property
    def apart(self) -> float:
        """How far apart nodes are where they are dense."""
        return _STEP * self.width

    @property
    def n_positions(self) -> int:
        """How many nodes cells have: the same of all."""
        far = replace(self, centre=0.0).coordinate(np.array([self.reach + REACH]))
        return int(np.clip(np.ceil((2.0 * far[0] + _OF_CELLS) / _STEP), POSITIONS, _MOST))

    def coordinate(self, x: Floats) -> Floats:
        """The first term of (2)."""
        y, a = np.abs(x - self.centre) / self.width, self.reach / self.width
        return np.asarray(np.copysign(np.minimum(y, a) + np.arcsinh(np.maximum(y - a, 0.0)), x - self.centre))

    def slope(self, x: Floats) -> Floats:
        """Its derivative."""
        beyond = np.maximum(np.abs(x - self.centre) - self.reach, 0.0)
        return np.asarray(1.0 / np.hypot(beyond, self.width))

    def position(self, u: Floats) -> Floats:
        """Its inverse."""
        a = self.reach / self.width
        y = np.minimum(np.abs(u), a) + np.sinh(np.maximum(np.abs(u) - a, 0.0))
        return np.asarray(self.centre + np.copysign(y * self.width, u))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Nodes and weights of (1) for some cells.

    Attributes
    ----------
    position : ndarray of shape (n_cells, n_positions), float64
    log_size : ndarray of shape (n_cells, n_sizes), float64
        log(1 + size); zeros where sizes are not told apart.
    weight : ndarray of shape (n_cells, n_positions, n_sizes), float64
    log_scale : ndarray of shape (n_cells,), float64
    spacing : ndarray of shape (n_cells, n_positions), float64
        Of positions: the weight of a node in an integral over them.
    kept, row : ndarray of shape (n_kept,)
        Which weights, of all in C order, are above 0, and of which cell they are.
    of_kept : ndarray of shape (n_kept,), float64
    """

    position: Floats
    log_size: Floats
    weight: Floats
    log_scale: Floats
    spacing: Floats
    kept: Rows
    row: NDArray[np.int32]
    of_kept: Floats

    @classmethod
    def of(cls, position: Floats, log_dx: Floats, log_size: Floats, log_weight: Floats) -> Nodes:
        """Scale weights by the largest of each cell; logarithms are given, those of positions apart."""
        log_weight = log_weight + log_dx[:, :, None]
        log_scale = np.max(log_weight, axis=(1, 2))
        weight = np.exp(log_weight - log_scale[:, None, None])
        weight[weight < _NEGLIGIBLE] = 0.0
        kept = np.flatnonzero(weight)
        return cls(
            position=position,
            log_size=log_size,
            weight=weight,
            log_scale=log_scale,
            spacing=np.exp(log_dx),
            kept=kept,
            row=(kept // weight[0].size).astype(np.int32),
            of_kept=weight.ravel()[kept],
        )

    def with_sizes(self, log_factor: Floats) -> Nodes:
        """Return nodes whose weights are times a factor of their sizes, (n_cells, n_sizes)."""
        highest = np.max(log_factor, axis=1)
        weight = self.weight * np.exp(log_factor - highest[:, None])[:, None, :]
        largest = np.max(weight, axis=(1, 2))
        weight /= largest[:, None, None]
        weight[weight < _NEGLIGIBLE] = 0.0
        kept = np.flatnonzero(weight)
        return replace(
            self,
            weight=weight,
            log_scale=self.log_scale + highest + np.log(largest),
            kept=kept,
            row=(kept // weight[0].size).astype(np.int32),
            of_kept=weight.ravel()[kept],
        )


class CellsSource(Protocol):
    """Cells whose nodes can be asked for, some at a time."""

    @property
    def n_cells(self) -> int:
        """How many cells there are."""

    @property
    def has_sizes(self) -> bool:
        """Whether nodes differ in the size of the cell."""

    @property
    def middle(self) -> float:
        """About where parameters of all cells are, on the line."""

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some cells."""


@runtime_checkable
class TellsRecords(CellsSource, Protocol):
    """Cells whose numbers of records can be drawn."""

    def records(self, position: Floats, log_size: Floats, rng: np.random.Generator) -> Floats:
        """Draw numbers of records at positions and log sizes, (n_draws, n_cells)."""


def dense_nodes(
    low: Floats, high: Floats, centre: Floats, width: Floats, *, n: int, focus: Focus | None = None
) -> tuple[Floats, Floats]:
    """Return nodes (n_rows, n) between ends that are dense as (2) says, and the logs of their weights.

    Parameters
    ----------
    low, high : ndarray of shape (n_rows,), float64
    centre, width : ndarray of shape (n_rows,), float64
        Of the second term of (2).
    n : int
    focus : Focus, optional
        Of the first term; there is none otherwise.
    """

    def coordinate(x: Floats) -> Floats:
        of_rows: Floats = np.arcsinh((x - centre[:, None]) / width[:, None])
        return of_rows if focus is None else of_rows + focus.coordinate(x)

    def slope(x: Floats) -> Floats:
        of_rows: Floats = 1.0 / np.hypot(x - centre[:, None], width[:, None])
        return of_rows if focus is None else of_rows + focus.slope(x)

    first, last = coordinate(low[:, None]), coordinate(high[:, None])
    step = (last - first) / n
    wanted = first + step * (np.arange(n) + 0.5)
    left, right = (np.repeat(end[:, None], n, axis=1) for end in (low, high))
    # Newton's method needs a bracket no wider than the likelihood is, nor than either term of (2).
    least = width if focus is None else np.minimum(width, focus.width)
    narrowest = float(np.min(least / (high - low)))
    for _ in range(int(np.clip(np.ceil(-np.log2(narrowest)), *_BISECTIONS))):
        middle = (left + right) / 2.0
        is_low = coordinate(middle) < wanted
        left, right = np.where(is_low, middle, left), np.where(is_low, right, middle)
    x = (left + right) / 2.0
    for _ in range(_STEPS):
        # Newton's method between ends that are known.
        x = np.clip(x + (wanted - coordinate(x)) / slope(x), left, right)
    return x, np.log(step / slope(x))


def nodes_of_positions(
    centre: Floats, width: Floats, focus: Focus, ends: tuple[float, float], n: int | None = None
) -> tuple[Floats, Floats]:
    """Return positions of cells (n_cells, n_positions) and the logs of their weights, as (2) says.

    There are `n` of them, and else as many as the focus has.
    """
    middle = np.ravel(focus.centre)
    return dense_nodes(
        np.maximum(np.minimum(centre, middle) - focus.reach - REACH, ends[0]),
        np.minimum(np.maximum(centre, middle) + focus.reach + REACH, ends[1]),
        centre,
        np.minimum(width, 2.0),
        n=n or focus.n_positions,
        focus=focus,
    )


def cubic(share: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return Lagrange's weights of four points 0, 1, 2 and 3 at places among them."""
    a, b, c, d = share, share - 1.0, share - 2.0, share - 3.0
    return -b * c * d / 6.0, a * c * d / 2.0, -a * b * d / 2.0, a * b * c / 6.0
