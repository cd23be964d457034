r"""Distribution functions of mixtures of betas, many at a time, as tables that quantiles are read off.

Model. A probability p has the density

.. math:: f(p) = \sum_i w_i \, \frac{p^{a_i - 1} (1 - p)^{b_i - 1}}{B(a_i, b_i)}, \qquad
    p = \sin^2 v, \quad z = \log \frac p {1 - p} \qquad (1)

On the line z a beta has the density :math:`p^a q^b / B(a, b)`, q = 1 - p: with a reference r of p,

.. math:: \log f_i(z) = C_i + a_i \log \frac p r + b_i \log \frac q {1 - r}, \quad
    C_i = h(a_i) + h(b_i) - h(a_i + b_i) - n_i \, \mathrm{KL}(a_i / n_i \,\|\, r) \qquad (2)

with n = a + b and h of ``gamma.py``: nothing cancels where n is 1e12, and a table of all parts at all nodes
is one product of matrices and one exponential.

Nodes. Over v a beta's width is :math:`1 / 2 \sqrt n` wherever p is. v is cut into two panels that meet where
the noise has its kink, as nodes are close together at ends; each has ``NODES`` Chebyshev points. Where a
mixture reaches down to p n < ``_FOOT``, or up as near to 1, a panel over z follows, in which the density is
:math:`p^a` times what is smooth, and beyond it the tail

.. math:: F(z) = f(z) / a \qquad (3)

with a the prior's concentration, or the rest's. F at the nodes is the integral of the polynomial through f
(Clenshaw and Curtis); between nodes F is Hermite's cubic.

======= ============== ============================================== =========================
symbol  in the code    meaning                                        shape
======= ============== ============================================== =========================
w, a, b ``Padded``     parts of a mixture                             (n_rows, n_pairs)
v, z    ``Grid.at``    positions of nodes in the panel's coordinate   (n_rows, n_panels, n)
F       ``below``      distribution function                          (n_rows, n_panels, n)
======= ============== ============================================== =========================
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.distributions.distribution import log_height

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.multinomial.count_pairs import Pairs
    from suffice.typing import Floats, Mask, Rows

NODES = 17
"""Chebyshev points of a panel."""
_FOOT, _NOTHING = 2.0, 1e-3
"""Expected records below which a panel is over z, and at which the tail begins."""
_REACH = 3.2
"""How far beyond a beta's centre its nodes go, in 1 / sqrt(n) over v: 6.4 of its standard deviations."""
_NEWTON_STEPS = 4
_LARGE, _LEAST = 12.0, -90.0


@functools.lru_cache(maxsize=8)
def _rule(nodes: int = NODES) -> tuple[Floats, Floats]:
    """Chebyshev points on 0..1, and the matrix that integrates a polynomial through them from 0 to each."""
    from numpy.polynomial import chebyshev

    x = -np.cos(np.pi * np.arange(nodes) / (nodes - 1))
    to_coefficients = np.linalg.inv(chebyshev.chebvander(x, nodes - 1))
    integral: Floats = np.stack(
        [chebyshev.chebval(x, chebyshev.chebint(column, lbnd=-1.0)) for column in to_coefficients.T], axis=1
    )
    points: Floats = (x + 1.0) / 2.0
    integral /= 2.0
    return points, integral


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Where mixtures are evaluated.

    Attributes
    ----------
    start, length : ndarray of shape (n_rows, n_panels), float64
        Of a panel in its coordinate: z of the first and the last where there are four, else v.
    reference : ndarray of shape (n_rows,), float64
        r.
    reaches : ndarray of shape (n_rows, 2), bool
        Whether there is mass beyond the first and the last node.
    """

    start: Floats
    length: Floats
    reference: Floats
    reaches: Mask

    @classmethod
    def of(cls, pairs: Pairs, kink: Floats) -> Self:
        """Lay panels over all that pairs reach, to meet where probabilities (n_rows,) have a kink."""
        rows = len(kink)
        first = np.searchsorted(pairs.row, np.arange(rows))
        n = pairs.a + pairs.b
        v, reach = np.arctan(np.sqrt(pairs.a / pairs.b)), _REACH / np.sqrt(n)
        low = np.minimum.reduceat(v - reach, first)
        # From the other end, so that what is next to it keeps its digits.
        from_high = np.minimum.reduceat(np.arctan(np.sqrt(pairs.b / pairs.a)) - reach, first)
        records = np.bincount(pairs.row, pairs.weight * n, rows)
        reference: Floats = np.bincount(pairs.row, pairs.weight * (pairs.a / n), rows).astype(
            np.float64, copy=False
        )
        foot = np.arcsin(np.sqrt(np.minimum(_FOOT / records, 0.25)))
        reaches = np.stack([low < foot, from_high < foot], axis=1)
        first_node = np.where(reaches[:, 0], foot, low)
        last_node = np.pi / 2.0 - np.where(reaches[:, 1], foot, from_high)
        span = last_node - first_node
        middle = np.arcsin(np.sqrt(kink))
        middle = np.clip(middle, first_node + 0.1 * span, last_node - 0.1 * span)
        tail = np.log(_NOTHING) - np.log(records + 1.0)
        lower, upper = 2.0 * np.log(np.tan(first_node)), -2.0 * np.log(np.tan(np.pi / 2.0 - last_node))
        feet = np.where(reaches, np.stack([lower - tail, -tail - upper], axis=1), 0.0)
        return cls(
            start=np.stack([lower - feet[:, 0], first_node, middle, upper], axis=1),
            length=np.stack([feet[:, 0], middle - first_node, last_node - middle, feet[:, 1]], axis=1),
            reference=reference,
            reaches=reaches,
        )

    def take(self, rows: Rows) -> Self:
        """Some rows; without feet, where none of them has one."""
        panels = slice(None) if np.any(self.reaches[rows]) else slice(1, 3)
        return replace(
            self,
            start=self.start[rows, panels],
            length=self.length[rows, panels],
            reference=self.reference[rows],
            reaches=self.reaches[rows],
        )

    @property
    def has_feet(self) -> bool:
        """Whether there are panels over z."""
        return bool(self.start.shape[1] > 2)

    def at(self) -> Floats:
        """Nodes in the panels' coordinates, (n_rows, n_panels, NODES)."""
        points, _ = _rule()
        return self.start[:, :, None] + self.length[:, :, None] * points

    def line(self, at: Floats) -> tuple[Floats, Floats]:
        """Positions z of nodes, and dz / dv or 1: both shaped as the nodes."""
        bodies = slice(1, 3) if self.has_feet else slice(None)
        z, slope = at.copy(), np.ones_like(at)
        v = at[:, bodies]
        z[:, bodies] = 2.0 * np.log(np.tan(v))
        # dz / dv = 2 / (sin v cos v) = 4 / sin 2 v.
        slope[:, bodies] = 4.0 / np.sin(2.0 * v)
        return z, slope


def densities(parts: Padded, z: Floats, reference: Floats, work: Floats) -> Floats:
    """Densities on the line at positions z (n_rows, n), by (2); `work` has room for as many."""
    r = reference[:, None]
    with np.errstate(over="ignore"):
        delta = z - (np.log(r) - np.log1p(-r))
        log_p = -np.log1p((1.0 - r) * np.expm1(-delta))
        log_q = -np.log1p(r * np.expm1(delta))
    matrix, positions = parts.matrix(reference), np.stack([log_p, log_q, np.ones_like(z)], axis=1)
    result = np.zeros_like(z)
    step = max(1, work.size // z.size)
    for start in range(0, matrix.shape[1], step):
        part = matrix[:, start : start + step]
        shape = (len(z), part.shape[1], z.shape[1])
        exponent = work[: part.shape[1] * z.size].reshape(shape)
        # (2): of many parts at all positions at once.
        np.matmul(part, positions, out=exponent)
        # Smaller exponentials take several times as long, and are nothing.
        np.maximum(exponent, _LEAST, out=exponent)
        np.exp(exponent, out=exponent)
        result += np.sum(exponent, axis=1)
    return result


def _heights(concentration: Floats) -> Floats:
    """Log of a^a e^-a / Gamma(a); see ``log_height``, which is slower and right below 12 too."""
    if np.min(concentration) < _LARGE:
        small = concentration < _LARGE
        heights = _heights(np.maximum(concentration, _LARGE))
        heights[small] = log_height(concentration[small])
        return heights
    inverse = 1.0 / concentration
    # Stirling's series, DLMF 5.11.1: the next term is below 2e-12 from 12 on.
    series = inverse * (
        1.0 / 12.0 - inverse**2 * (1.0 / 360.0 - inverse**2 * (1.0 / 1260.0 - inverse**2 / 1680.0))
    )
    return 0.5 * np.log(concentration / (2.0 * np.pi)) - series


@dataclass(frozen=True, slots=True, kw_only=True)
class Padded:
    """The parts of some mixtures, all (n_rows, n_parts); those that only fill up have no weight.

    Attributes
    ----------
    a, b, weight : ndarray
    """

    a: Floats
    b: Floats
    weight: Floats

    def matrix(self, reference: Floats) -> Floats:
        """What log p / r, log q / (1 - r) and 1 are multiplied by in (2), (n_rows, n_parts, 3)."""
        r, n = reference[:, None], self.a + self.b
        away = self.a - r * n
        # n KL(a / n || r) = a log(a / r n) + b log(b / (1 - r) n).
        divergence = self.a * np.log1p(away / (r * n)) + self.b * np.log1p(-away / ((1.0 - r) * n))
        heights = _heights(self.a) + _heights(self.b) - _heights(n)
        constant = heights - divergence + np.log(np.maximum(self.weight, 1e-300))
        return np.stack([self.a, self.b, constant], axis=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalTable:
    """Distribution functions at nodes; made by ``MarginalTable.of``.

    Attributes
    ----------
    grid : Grid
    density, below : ndarray of shape (n_rows, n_panels, n), float64
        Densities in the panels' coordinates, and F.
    tails : ndarray of shape (n_rows, 2), float64
        Probability beyond the first node, and beyond the last.
    powers : ndarray of shape (n_rows, 2), float64
        a of (3) at both ends.
    """

    grid: Grid
    density: Floats
    below: Floats
    tails: Floats
    powers: Floats

    @classmethod
    def of(cls, grid: Grid, on_line: Floats, powers: Floats) -> Self:
        """Integrate densities on the line, shaped as the nodes, or as every other one of them."""
        points, integral = _rule(on_line.shape[2])
        _, slope = grid.line(grid.at()[:, :, :: (NODES - 1) // (len(points) - 1)])
        density = on_line * slope
        parts = np.matmul(density, integral.T) * grid.length[:, :, None]
        ends = on_line.reshape(len(on_line), -1)[:, [0, -1]]
        # (3).
        tails = np.where(grid.reaches, ends / powers, 0.0)
        done = np.cumsum(parts[:, :, -1], axis=1)
        below = parts + tails[:, :1, None]
        below[:, 1:] += done[:, :-1, None]
        total = (tails[:, 0] + done[:, -1] + tails[:, 1])[:, None]
        return cls(
            grid=grid,
            density=density / total[:, :, None],
            below=below / total[:, :, None],
            tails=tails / total,
            powers=powers,
        )

    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every row, by the rule of the nodes."""
        _, integral = _rule()
        z, _ = self.grid.line(self.grid.at())
        weight = self.density * integral[-1] * self.grid.length[:, :, None]
        p = 1.0 / (1.0 + np.exp(-z))
        mean = np.sum(weight * p, axis=(1, 2)) + self.tails[:, 1]
        square = np.sum(weight * (p - mean[:, None, None]) ** 2, axis=(1, 2))
        square += self.tails[:, 0] * mean**2 + self.tails[:, 1] * (1.0 - mean) ** 2
        return mean, np.sqrt(square)

    def quantiles(self, q: Sequence[float]) -> Floats:
        """Quantiles (n_rows, n_q)."""
        levels = np.asarray(q, dtype=np.float64)
        rows, shape = len(self.below), (len(self.below), -1)
        below, density = self.below.reshape(shape), self.density.reshape(shape)
        at = self.grid.at()
        length = np.diff(at, axis=2, append=0.0).reshape(shape)
        at = at.reshape(shape)
        # All rows at once: those of the i-th lie between i and i + 1.
        ordered = np.maximum.accumulate(np.clip(below, 0.0, 1.0 - 1e-12), axis=1)
        offset = np.arange(float(rows))[:, None]
        index = np.searchsorted((ordered + offset).ravel(), (levels + offset).ravel(), side="right")
        index = index.reshape(rows, -1) - np.arange(rows)[:, None] * below.shape[1]
        index = np.clip(index - 1, 0, below.shape[1] - 2)
        index -= index % NODES == NODES - 1
        start, first, last = (np.take_along_axis(each, index, axis=1) for each in (at, below, below[:, 1:]))
        width, rise, fall = (
            np.take_along_axis(each, index, axis=1) for each in (length, density, density[:, 1:])
        )
        # Hermite's cubic through F and f at both ends of the interval.
        gap = np.maximum(last - first, 1e-300)
        rise, fall, wanted = rise * width / gap, fall * width / gap, (levels - first) / gap
        t = np.clip(wanted, 0.0, 1.0)
        low, high = np.zeros_like(t), np.ones_like(t)
        for _step in range(_NEWTON_STEPS):
            value = t * (rise + t * ((3.0 - 2.0 * rise - fall) + t * (rise + fall - 2.0))) - wanted
            slope = rise + t * (2.0 * (3.0 - 2.0 * rise - fall) + 3.0 * t * (rise + fall - 2.0))
            low, high = np.where(value < 0.0, t, low), np.where(value < 0.0, high, t)
            with np.errstate(divide="ignore", invalid="ignore"):
                after = t - value / slope
            t = np.where((after >= low) & (after <= high), after, (low + high) / 2.0)
        position = start + t * width
        panel = index // NODES
        over_z = (panel == 0) | (panel == 3) if self.grid.has_feet else np.zeros_like(panel, dtype=np.bool_)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            p = np.where(over_z, 1.0 / (1.0 + np.exp(-position)), np.sin(position) ** 2)
            # (3), solved for z: on the far side of the first node p is q^(1 / a).
            lower = levels / self.tails[:, :1]
            p = np.where(lower < 1.0, _sigmoid(at[:, :1] + np.log(lower) / self.powers[:, :1]), p)
            upper = (1.0 - levels) / self.tails[:, 1:]
            return np.where(upper < 1.0, _sigmoid(at[:, -1:] - np.log(upper) / self.powers[:, 1:]), p)


def _sigmoid(z: Floats) -> Floats:
    return np.where(z < 0.0, np.exp(z) / (1.0 + np.exp(z)), 1.0 / (1.0 + np.exp(-z)))
