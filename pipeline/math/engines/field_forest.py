r"""The density of a field whose pairs have no circle, in any number of variables: exact sums of width 1.

The question, and the symbols, are those of the engine ``field``. With :math:`f_i = Q_i \theta_i` and
:math:`f_{ij} = Q_i \theta_{ij} Q_j^T` of contrasts Q, variables are summed out from the leaves of each tree
to its root, and their margins follow from the root down:

.. math::
    \mu_i(x_{p}) = \sum_{x_i} e^{f_i(x_i) + f_{ip}(x_i, x_p)} \prod_{c} \mu_c(x_i), \qquad
    p(x_i \mid x_p) = \frac{e^{f_i(x_i) + f_{ip}(x_i, x_p)} \prod_c \mu_c(x_i)}{\mu_i(x_p)}, \qquad (3)

of a variable i with parent p and children c; :math:`S(\eta) = e^\alpha \prod_{\text{roots}} \mu`. Effects are
sums over margins, and margins are linear in them: t = F^T m and m = A t.

.. math::
    |H(\zeta)| = \text{const} \cdot \prod_{ij} \prod_{x} m_{ij}(x)
    \Big/ \prod_i \prod_{x} m_i(x)^{d_i - 1} \Big/ S^{C - 1}, \qquad (4)

with :math:`d_i` edges at variable i and C trees. For the table of a leaf given its neighbour is a multinomial
one, whose mean is linear in the neighbour's table: the determinant of all is that of the neighbour's tree
times that of a multinomial covariance, :math:`\prod_{x_p} m_p \prod_{x_i} m_{ip} / m_p`, up to a constant. By
induction over leaves follows (4). The gradient of any g(m) by zeta is :math:`H A^T \nabla g`, and

.. math:: H u = \lim_{h \to 0} \mathrm{Im} \, t(\zeta + \mathrm i h u) / h, \qquad (5)

is exact to rounding for h = 1e-30 (Squire and Trapp 1998): no matrix H is needed but once, for a start.

References
----------
Lauritzen. Graphical models. Oxford, 1996. Squire, Trapp. Using complex variables to estimate derivatives of
real functions. SIAM Review 40, 1998.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.field import LARGEST_EXPONENT, blocks, contrasts, precision_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.typing import Floats

_STEP = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Variables and pairs without a circle, and how effects and margins follow from each other.

    Attributes
    ----------
    sizes : tuple of int
    order : tuple of (int, int or None, int or None)
        A variable, its parent, and the number of their pair; parents come before children.
    pairs : tuple of (int, int)
    entries : dict of tuple to slice
        Where the margin of a variable or a pair is in m.
    features : ndarray of shape (n_entries, R - 1), float64
        F: effects of every entry of the tables.
    linear : ndarray of shape (n_entries, R), float64
        A.
    """

    sizes: tuple[int, ...]
    order: tuple[tuple[int, int | None, int | None], ...]
    pairs: tuple[tuple[int, int], ...]
    entries: dict[tuple[int, ...], slice]
    features: Floats
    linear: Floats

    @property
    def n_trees(self) -> int:
        """C, the number of trees."""
        return sum(parent is None for _, parent, _ in self.order)

    def margins(self, eta: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return log S, (n,), and the margins m over S, (n_entries, n); of real or complex eta, (R, n)."""
        f = self.features @ eta[1:]
        count = eta.shape[1]
        collected = [f[self.entries[variable,]].copy() for variable in range(len(self.sizes))]
        conditional: dict[int, NDArray[Any]] = {}
        log_total = eta[0].copy()
        for variable, parent, number in reversed(self.order):
            if parent is None or number is None:
                weight, scale = _scaled(collected[variable])
                total = weight.sum(axis=0)
                conditional[variable] = weight / total
                log_total += scale + np.log(total)
                continue
            i, j = self.pairs[number]
            pair = f[self.entries[i, j]].reshape(self.sizes[i], self.sizes[j], count)
            # (x_i, x_p): variables first, their parents second.
            towards = pair if i == variable else np.swapaxes(pair, 0, 1)
            weight, scale = _scaled(towards + collected[variable][:, None])
            total = weight.sum(axis=0)
            conditional[variable] = weight / total
            collected[parent] += scale + np.log(total)
        p = np.empty(f.shape, f.dtype)
        for variable, parent, number in self.order:
            if parent is None or number is None:
                p[self.entries[variable,]] = conditional[variable]
                continue
            both = conditional[variable] * p[self.entries[parent,]]
            p[self.entries[variable,]] = both.sum(axis=1)
            i, j = self.pairs[number]
            p[self.entries[i, j]] = (both if i == variable else np.swapaxes(both, 0, 1)).reshape(-1, count)
        return log_total, p

    def curved(self, zeta: Floats, u: Floats) -> Floats:
        """Return H(zeta) u, (R, n), by (5)."""
        log_total, p = self.margins(zeta + 1j * _STEP * u)
        total = np.exp(log_total)
        product: Floats = np.concatenate([total[None], self.features.T @ (p * total)]).imag / _STEP
        return product


def _scaled(exponent: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return exponentials along the first axis over the largest, and its logarithm."""
    largest = exponent.real.max(axis=0)
    return np.exp(exponent - largest), largest


def forest_of(sizes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Forest | None:
    """Return variables and pairs as a forest; nothing where pairs form a circle."""
    neighbours: dict[int, list[tuple[int, int]]] = {variable: [] for variable in range(len(sizes))}
    for number, (i, j) in enumerate(pairs):
        neighbours[i].append((j, number))
        neighbours[j].append((i, number))
    order: list[tuple[int, int | None, int | None]] = []
    seen: set[int] = set()
    for root in neighbours:
        if root in seen:
            continue
        waiting: list[tuple[int, int | None, int | None]] = [(root, None, None)]
        while waiting:
            variable, parent, number = waiting.pop()
            if variable in seen:
                return None
            seen.add(variable)
            order.append((variable, parent, number))
            waiting += [(other, variable, edge) for other, edge in neighbours[variable] if edge != number]
    columns, q = blocks(sizes, pairs), [contrasts(size) for size in sizes]
    entries, start = {}, 0
    for names in columns:
        size = int(np.prod([sizes[name] for name in names]))
        entries[names] = slice(start, start + size)
        start += size
    width = max(part.stop for part in columns.values())
    features, linear = np.zeros((start, width - 1)), np.zeros((start, width))
    for names, rows in entries.items():
        own = columns[names]
        block = q[names[0]] if len(names) == 1 else np.kron(q[names[0]], q[names[1]])
        features[rows, own.start - 1 : own.stop - 1] = block
        linear[rows, own], linear[rows, 0] = block, 1.0 / len(block)
        if len(names) > 1:
            i, j = names
            linear[rows, columns[i,]] = np.kron(q[i], np.full((sizes[j], 1), 1.0 / sizes[j]))
            linear[rows, columns[j,]] = np.kron(np.full((sizes[i], 1), 1.0 / sizes[i]), q[j])
    return Forest(
        sizes=tuple(sizes),
        order=tuple(order),
        pairs=tuple(pairs),
        entries=entries,
        features=features,
        linear=linear,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyForest:
    """What is known of a field without a circle, as ``NoisyField`` of any.

    Attributes
    ----------
    forest : Forest
    released : ndarray of shape (K,), int64
        Which margins were released.
    counts, scales : ndarray of shape (K,), float64
    sds : ndarray of shape (R,), float64
    """

    forest: Forest
    released: NDArray[np.int64]
    counts: Floats
    scales: Floats
    sds: Floats

    def tables(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return expected rows, (n,), and expected entries, (K, n), of parameters (R, n)."""
        log_total, p = self.forest.margins(eta)
        total = np.exp(log_total)
        return total, p[self.released] * total

    def log_density(self, eta: Floats, zeta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (2) and its gradients by eta and zeta; arguments (R, n_chains), densities (n_chains,)."""
        forest, n = self.forest, eta.shape[1]
        log_total, p = forest.margins(np.concatenate([eta, zeta], axis=1))
        is_far = ~(np.abs(log_total) < LARGEST_EXPONENT)
        total = np.exp(np.clip(log_total, -LARGEST_EXPONENT, LARGEST_EXPONENT))
        t = np.concatenate([total[None], forest.features.T @ (p * total)])
        s_eta, s_zeta, mean, t = total[:n], total[n:], t[:, :n], t[:, n:]
        m = np.maximum(p[:, n:] * s_zeta, np.exp(-LARGEST_EXPONENT))
        power = self._powers()[:, None]
        # (4).
        log_determinant = np.sum(power * np.log(m), axis=0) - (forest.n_trees - 1.0) * np.log(s_zeta)
        left = self.counts[:, None] - m[self.released]
        distance = np.sum((zeta - eta) * t, axis=0) - s_zeta + s_eta
        value = (
            -0.5 * np.sum((eta / self.sds[:, None]) ** 2, axis=0)
            + np.log(s_eta)
            - distance
            + 0.5 * log_determinant
            - np.sum(np.abs(left) / self.scales[:, None], axis=0)
        )
        by_eta = -eta / self.sds[:, None] ** 2 + mean / s_eta + t - mean
        by_margin = 0.5 * power / m
        np.add.at(by_margin, self.released, np.sign(left) / self.scales[:, None])
        u = eta - zeta + forest.linear.T @ by_margin
        u[0] -= 0.5 * (forest.n_trees - 1.0) / s_zeta
        return np.where(is_far[:n] | is_far[n:], -np.inf, value), by_eta, forest.curved(zeta, u)

    def centre(self) -> tuple[Floats, Floats]:
        """Return an eta near a most probable one, and the precision of (eta, zeta) about it."""
        forest = self.forest
        size = forest.linear.shape[1]
        # Margins that agree, by least squares of t in the released tables.
        a, variance = forest.linear[self.released], 2.0 * self.scales**2
        weight = 1.0 / (variance + np.maximum(self.counts, 1.0))
        t = np.linalg.solve(a.T @ (weight[:, None] * a) + 1e-9 * np.eye(size), a.T @ (weight * self.counts))
        m = np.maximum(forest.linear @ t, np.sqrt(variance.max()) + 0.5)
        # log p(x) is a sum over edges less (d - 1) times that over variables: effects are its contrasts.
        log_m = self._powers() * np.log(m)
        eta = np.zeros(size)
        for names, rows in forest.entries.items():
            shape = [forest.sizes[name] for name in names]
            part = log_m[rows].reshape(shape)
            for axis, name in enumerate(names):
                others = tuple(other for other in range(len(names)) if other != axis)
                spread = part.mean(axis=others) if others else part
                eta[self._columns()[name,]] += contrasts(forest.sizes[name]).T @ spread
            if len(names) > 1:
                i, j = names
                eta[self._columns()[names]] = (
                    contrasts(forest.sizes[i]).T @ part @ contrasts(forest.sizes[j])
                ).ravel()
        log_total, _ = forest.margins(eta[:, None])
        eta[0] = np.log(max(t[0], 1.0)) - log_total[0]
        curvature = forest.curved(np.repeat(eta[:, None], size, axis=1), np.eye(size))
        slope = a @ curvature
        return eta, precision_of(curvature, slope, variance, self.sds)

    def _powers(self) -> Floats:
        """Of every margin in (4)."""
        powers = np.ones(len(self.forest.features))
        for names, rows in self.forest.entries.items():
            if len(names) == 1:
                powers[rows] = 1.0 - sum(names[0] in pair for pair in self.forest.pairs)
        return powers

    def _columns(self) -> dict[tuple[int, ...], slice]:
        return blocks(self.forest.sizes, self.forest.pairs)
