r"""The density of a field in many variables, by exact sums along a tree of cliques.

The question, and the symbols, are those of the engine ``field``. With :math:`f_i = Q_i \theta_i` and
:math:`f_{ij} = Q_i \theta_{ij} Q_j^T` of contrasts Q, variables are summed out one by one; margins follow in
the opposite order:

.. math::
    \mu_v(x_{c}) = \sum_{x_v} \prod_{f \ni v} e^{f} \prod_{u} \mu_u, \qquad
    p(x_v \mid x_{c}) = \mu_v^{-1} \prod_{f \ni v} e^{f} \prod_{u} \mu_u, \qquad (3)

over what is left that v stands in, with c the neighbours that v has then, and
:math:`S(\eta) = e^\alpha \prod \mu` of variables without any. The table over v and c, a clique, is as large
as sums become. Effects are sums over margins, and margins of tables are linear in them: t = F^T m and
m = A t. The gradient of any g(m) by zeta is :math:`H A^T \nabla g`, and

.. math:: H u = \lim_{h \to 0} \mathrm{Im} \, t(\zeta + \mathrm i h u) / h, \qquad (4)

is exact to rounding for h = 1e-30 (Squire and Trapp 1998). Where pairs form no circle,

.. math::
    |H(\zeta)| = \text{const} \cdot \prod_{ij} \prod_{x} m_{ij}(x)
    \Big/ \prod_i \prod_{x} m_i(x)^{d_i - 1} \Big/ S^{C - 1}, \qquad (5)

with :math:`d_i` edges at variable i and C trees. For the table of a leaf given its neighbour is a multinomial
one, whose mean is linear in the neighbour's table: the determinant of all is that of the neighbour's tree
times that of a multinomial covariance, :math:`\prod_{x_p} m_p \prod_{x_i} m_{ip} / m_p`, up to a constant. By
induction over leaves follows (5). With a circle all columns of H are worked out by (4), and (5) serves but
for the gradient, which guides chains and decides nothing.

References
----------
Lauritzen. Graphical models. Oxford, 1996. Squire, Trapp. Using complex variables to estimate derivatives of
real functions. SIAM Review 40, 1998.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.elimination import elimination_order
from suffice.pipeline.math.engines.field import LARGEST_EXPONENT, blocks, contrasts, precision_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.typing import Floats

_STEP = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class CliqueTree:
    """Variables and pairs, in which order to sum them out, and how effects and margins follow.

    Attributes
    ----------
    sizes : tuple of int
    order : tuple of (int, tuple of int)
        Variables as they are summed out, each with its neighbours then, in ascending order.
    pairs : tuple of (int, int)
    entries : dict of tuple to slice
        Where the margin of a variable or a pair is in m.
    features : ndarray of shape (n_entries, R - 1), float64
        F: effects of every entry of the tables.
    linear : ndarray of shape (n_entries, R), float64
        A.
    """

    sizes: tuple[int, ...]
    order: tuple[tuple[int, tuple[int, ...]], ...]
    pairs: tuple[tuple[int, int], ...]
    entries: dict[tuple[int, ...], slice]
    features: Floats
    linear: Floats

    @property
    def has_circle(self) -> bool:
        """Whether pairs form a circle: then a variable has two neighbours when it is summed out."""
        return any(len(near) > 1 for _, near in self.order)

    @property
    def largest(self) -> int:
        """The entries of the largest clique."""
        return max(math.prod(self.sizes[each] for each in (variable, *near)) for variable, near in self.order)

    @property
    def n_trees(self) -> int:
        """C, the number of parts that no pair connects."""
        return sum(not near for _, near in self.order)

    def margins(self, eta: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return log S, (n,), and the margins m over S, (n_entries, n); of real or complex eta, (R, n)."""
        f = self.features @ eta[1:]
        left = [
            (names, f[rows].reshape(*(self.sizes[name] for name in names), -1))
            for names, rows in self.entries.items()
        ]
        log_total = eta[0].copy()
        conditional = {}
        for variable, near in self.order:
            clique = (variable, *near)
            joined = np.asarray(
                sum(_placed(names, each, clique) for names, each in left if variable in names)
            )
            left = [(names, table) for names, table in left if variable not in names]
            largest = joined.real.max(axis=0)
            weight = np.exp(joined - largest)
            total = weight.sum(axis=0)
            conditional[variable] = weight / total
            if near:
                left.append((near, largest + np.log(total)))
            else:
                log_total += largest + np.log(total)
        p = np.empty(f.shape, f.dtype)
        cliques: dict[int, tuple[tuple[int, ...], NDArray[Any]]] = {}
        for variable, near in reversed(self.order):
            law = conditional[variable]
            if near:
                # All of them are in the clique of the one that is summed out first.
                law = law * _margin(*cliques[self._first(near)], near)
            cliques[variable] = (variable, *near), law
        for names, rows in self.entries.items():
            p[rows] = _margin(*cliques[self._first(names)], names).reshape(-1, eta.shape[1])
        return log_total, p

    def _first(self, names: tuple[int, ...]) -> int:
        return next(variable for variable, _ in self.order if variable in names)

    def curved(self, zeta: Floats, u: Floats) -> Floats:
        """Return H(zeta) u, (R, n), by (4)."""
        log_total, p = self.margins(zeta + 1j * _STEP * u)
        total = np.exp(log_total)
        product: Floats = np.concatenate([total[None], self.features.T @ (p * total)]).imag / _STEP
        return product


def _placed(names: tuple[int, ...], table: NDArray[Any], clique: tuple[int, ...]) -> NDArray[Any]:
    """Return a table as one over a clique, with axes of size 1; the last axis stays."""
    kept = [name for name in clique if name in names]
    moved = table.transpose(*(names.index(name) for name in kept), len(names))
    shape = [moved.shape[kept.index(name)] if name in names else 1 for name in clique]
    return moved.reshape(*shape, table.shape[-1])


def _margin(clique: tuple[int, ...], law: NDArray[Any], names: tuple[int, ...]) -> NDArray[Any]:
    """Sum a clique's table to one over some of its variables, in their order; the last axis stays."""
    kept = [name for name in clique if name in names]
    summed: NDArray[Any] = law.sum(axis=tuple(axis for axis, name in enumerate(clique) if name not in names))
    return summed.transpose(*(kept.index(name) for name in names), len(names))


def tree_of(sizes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> CliqueTree:
    """Return the tree of cliques that variables and pairs make, summed out by minimum fill."""
    labels = {str(variable): size for variable, size in enumerate(sizes)}
    scopes = [(str(i), str(j)) for i, j in pairs]
    neighbours = {
        variable: {j for pair in pairs for j in pair if variable in pair} - {variable}
        for variable in range(len(sizes))
    }
    order = []
    for label in elimination_order(scopes, labels, ())[0]:
        variable = int(label)
        near = neighbours.pop(variable)
        order.append((variable, tuple(sorted(near))))
        for other in near:
            neighbours[other] = (neighbours[other] | near) - {variable, other}
    columns, q = blocks(sizes, pairs), [contrasts(size) for size in sizes]
    entries, start = {}, 0
    for names in columns:
        size = int(np.prod([sizes[name] for name in names]))
        entries[names] = slice(start, start + size)
        start += size
    width = max(part.stop for part in columns.values())
    features, linear = np.zeros((start, width - 1)), np.zeros((start, width))
    for names, rows in entries.items():
        place = columns[names]
        block = q[names[0]] if len(names) == 1 else np.kron(q[names[0]], q[names[1]])
        features[rows, place.start - 1 : place.stop - 1] = block
        linear[rows, place], linear[rows, 0] = block, 1.0 / len(block)
        if len(names) > 1:
            i, j = names
            linear[rows, columns[i,]] = np.kron(q[i], np.full((sizes[j], 1), 1.0 / sizes[j]))
            linear[rows, columns[j,]] = np.kron(np.full((sizes[i], 1), 1.0 / sizes[i]), q[j])
    return CliqueTree(
        sizes=tuple(sizes),
        order=tuple(order),
        pairs=tuple(pairs),
        entries=entries,
        features=features,
        linear=linear,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTree:
    """What is known of a field in many variables, as ``NoisyField`` of one in few.

    Attributes
    ----------
    tree : CliqueTree
    released : ndarray of shape (K,), int64
        Which margins were released.
    counts, scales : ndarray of shape (K,), float64
    sds : ndarray of shape (R,), float64
    """

    tree: CliqueTree
    released: NDArray[np.int64]
    counts: Floats
    scales: Floats
    sds: Floats

    def tables(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return expected rows, (n,), and expected entries, (K, n), of parameters (R, n)."""
        log_total, p = self.tree.margins(eta)
        total = np.exp(log_total)
        return total, p[self.released] * total

    def log_density(self, eta: Floats, zeta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (2) and its gradients by eta and zeta; arguments (R, n_chains), densities (n_chains,)."""
        tree, n = self.tree, eta.shape[1]
        log_total, p = tree.margins(np.concatenate([eta, zeta], axis=1))
        is_far = ~(np.abs(log_total) < LARGEST_EXPONENT)
        total = np.exp(np.clip(log_total, -LARGEST_EXPONENT, LARGEST_EXPONENT))
        t = np.concatenate([total[None], tree.features.T @ (p * total)])
        s_eta, s_zeta, mean, t = total[:n], total[n:], t[:, :n], t[:, n:]
        m = np.maximum(p[:, n:] * s_zeta, np.exp(-LARGEST_EXPONENT))
        power = self._powers()[:, None]
        log_determinant = self._log_determinant(zeta, m, s_zeta)
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
        u = eta - zeta + tree.linear.T @ by_margin
        u[0] -= 0.5 * (tree.n_trees - 1.0) / s_zeta
        return np.where(is_far[:n] | is_far[n:], -np.inf, value), by_eta, tree.curved(zeta, u)

    def centre(self) -> tuple[Floats, Floats]:
        """Return an eta near a most probable one, and the precision of (eta, zeta) about it."""
        tree = self.tree
        size = tree.linear.shape[1]
        # Margins that agree, by least squares of t in the released tables.
        a, variance = tree.linear[self.released], 2.0 * self.scales**2
        weight = 1.0 / (variance + np.maximum(self.counts, 1.0))
        t = np.linalg.solve(a.T @ (weight[:, None] * a) + 1e-9 * np.eye(size), a.T @ (weight * self.counts))
        m = np.maximum(tree.linear @ t, np.sqrt(variance.max()) + 0.5)
        # log p(x) is a sum over edges less (d - 1) times that over variables: effects are its contrasts.
        log_m = self._powers() * np.log(m)
        eta = np.zeros(size)
        for names, rows in tree.entries.items():
            shape = [tree.sizes[name] for name in names]
            part = log_m[rows].reshape(shape)
            for axis, name in enumerate(names):
                others = tuple(other for other in range(len(names)) if other != axis)
                spread = part.mean(axis=others) if others else part
                eta[self._columns()[name,]] += contrasts(tree.sizes[name]).T @ spread
            if len(names) > 1:
                i, j = names
                eta[self._columns()[names]] = (
                    contrasts(tree.sizes[i]).T @ part @ contrasts(tree.sizes[j])
                ).ravel()
        log_total, _ = tree.margins(eta[:, None])
        eta[0] = np.log(max(t[0], 1.0)) - log_total[0]
        curvature = tree.curved(np.repeat(eta[:, None], size, axis=1), np.eye(size))
        slope = a @ curvature
        return eta, precision_of(curvature, slope, variance, self.sds)

    def _log_determinant(self, zeta: Floats, m: Floats, total: Floats) -> Floats:
        if not self.tree.has_circle:
            # (5).
            forest: Floats = self._powers() @ np.log(m) - (self.tree.n_trees - 1.0) * np.log(total)
            return forest
        size, n = zeta.shape
        every = self.tree.curved(np.repeat(zeta, size, axis=1), np.tile(np.eye(size), n))
        return np.asarray(np.linalg.slogdet(every.reshape(size, n, size).transpose(1, 0, 2))[1])

    def _powers(self) -> Floats:
        """Of every margin in (5)."""
        powers = np.ones(len(self.tree.features))
        for names, rows in self.tree.entries.items():
            if len(names) == 1:
                powers[rows] = 1.0 - sum(names[0] in pair for pair in self.tree.pairs)
        return powers

    def _columns(self) -> dict[tuple[int, ...], slice]:
        return blocks(self.tree.sizes, self.tree.pairs)
