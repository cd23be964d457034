r"""The law of latent moments behind noisy ones, parameters integrated out: log density and gradient.

Rows z of d columns, in half ranges, are normal, and their parameters have the conjugate prior. Given N, the
moments t and S = Q - t t^T / N have the density of a normal and a Wishart; with the parameters integrated out

.. math::
    p(t, Q \mid N) = \frac{\pi^{(N - 1) d / 2} |S|^{(N - d - 2) / 2}}{N^{d / 2} \Gamma_d((N - 1) / 2)}
        \; e(N, t, Q)

where e is the evidence of any N rows with these moments. The posterior is that times the prior of N and the
density of the noise, :math:`e^{-|y_k - \mu_k| / b}` for each component. No central limit theorem is in this.
Without first moments the factor is :math:`\pi^{N d / 2} |Q|^{(N - d - 1) / 2} / \Gamma_d(N / 2)`.

Discrete Laplace noise is taken for Laplace noise, of scales of thousands of lattice steps, and an N with more
than one likely value for a real number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.joint_moments.evidence import Gradient, State, multivariate_gamma, outer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.joint_moments.evidence import Evidence

    Floats: TypeAlias = NDArray[np.float64]

ROUNDING = 0.25
"""The kinks of Laplace noise are rounded off over this part of its scale where a gradient guides a chain. The
density itself keeps them, and it alone decides what is accepted: the chains' law is exact, only their path is
smoother, and several times as fast."""
_STEEPEST = 60.0
"""Logarithms of standard deviations are kept within this, beyond which nothing is likely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentN:
    """The prior of N on a public interval, as a real number; `fixed` where it is known.

    Attributes
    ----------
    lowest, highest : float
        The interval; its ends stand half a row beyond the whole numbers.
    reciprocal : bool
        Whether the prior is proportional to 1 / (N + 1), not constant.
    """

    lowest: float
    highest: float
    reciprocal: bool
    fixed: bool

    def of(self, free: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return n, dn/dx, the log prior of x, and its derivative by x, of a coordinate x of the line."""
        share = 1.0 / (1.0 + np.exp(-free))
        width = self.highest - self.lowest
        n = self.lowest + width * share
        slope = width * share * (1.0 - share)
        # The log of the slope, also where it underflows.
        value = np.log(width) - np.abs(free) - 2.0 * np.log1p(np.exp(-np.abs(free)))
        derivative = 1.0 - 2.0 * share
        if self.reciprocal:
            value = value - np.log1p(n)
            derivative = derivative - slope / (1.0 + n)
        return n, slope, value, derivative

    def coordinate(self, n: Floats) -> Floats:
        """Return the coordinate of a number of rows within the interval."""
        below, above = n - self.lowest, self.highest - n
        coordinate: Floats = np.log(below) - np.log(above)
        return coordinate


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Coordinates of b chains unpacked: the moments, L, and of N dn/dx, the log prior and its derivative."""

    state: State
    root: Floats
    slope: Floats
    log_prior: Floats
    by_free: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The log density of latent moments in coordinates on the whole space, for many cells at once.

    Coordinates: x of N unless it is fixed; the means, where there are first moments; then by rows the lower
    triangle L of S / n = L L^T (of Q / n without first moments), the logarithm of its diagonal.

    Attributes
    ----------
    size : int
        The number of columns, d.
    linear : bool
        Whether there are first moments.
    evidence : tuple of Evidence
        Whose sum is the log evidence.
    latent_n : LatentN
    components : ndarray of shape (n_components, n_moments), float64
        From moments, in half ranges, to components in noise scales.
    observed : ndarray of shape (n_cells, n_components), float64
        The released values, in noise scales.
    """

    size: int
    linear: bool
    evidence: tuple[Evidence, ...]
    latent_n: LatentN
    components: Floats
    observed: Floats

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        means = self.size if self.linear else 0
        return int(not self.latent_n.fixed) + means + self.size * (self.size + 1) // 2

    def state(self, x: Floats) -> State:
        """Return the moments at coordinates (b, n_coordinates)."""
        return self.unpack(x).state

    def coordinates(self, n: Floats, mean: Floats, spread: Floats) -> Floats:
        """Return the coordinates (b, n_coordinates) of n (b,), means (b, d) and S / n (b, d, d)."""
        root = np.linalg.cholesky(spread)
        diagonal = np.arange(self.size)
        root[:, diagonal, diagonal] = np.log(root[:, diagonal, diagonal])
        rows, columns = np.tril_indices(self.size)
        free = [] if self.latent_n.fixed else [self.latent_n.coordinate(n)[:, None]]
        return np.concatenate([*free, *([mean] if self.linear else []), root[:, rows, columns]], axis=1)

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density (b,), up to a constant, and its gradient (b, k) with kinks rounded off.

        The cells' chains follow one another: b is a multiple of the number of cells.
        """
        position = self.unpack(x)
        return self.complete(position, *self.own(position))

    def own(self, position: Position) -> tuple[Floats, Gradient]:
        """Return the log of noise, evidence and prior of N, and the gradient by moments of the former two."""
        value, gradient = self._noise(position.state)
        value += position.log_prior
        for evidence in self.evidence:
            more, by = evidence(position.state)
            value += more
            gradient.add(by)
        return value, gradient

    def complete(self, position: Position, value: Floats, gradient: Gradient) -> tuple[Floats, Floats]:
        """Add the density of moments given N and the Jacobians; the gradient becomes one by coordinates."""
        state, root, slope, by_free = position.state, position.root, position.slope, position.by_free
        n, d = state.n, self.size
        logs = np.log(np.einsum("bii->bi", root))
        log_n, log_determinant = np.log(n), 2.0 * logs.sum(axis=1)
        loose = d + 2 if self.linear else d + 1
        free_rows = (n - 1.0) / 2.0 if self.linear else n / 2.0
        log_gamma, digamma = multivariate_gamma(free_rows, d)
        # The Jacobians from t, Q to the means and S / n give powers of n, that to L powers of L_ii.
        power = d * (d + 2) / 2.0 if self.linear else d * (d + 1) / 2.0
        rows = d + 1.0 - np.arange(d)
        value += (n - loose) / 2.0 * (d * log_n + log_determinant) + power * log_n - log_gamma + logs @ rows
        by_n = (d * log_n + log_determinant) / 2.0 + ((n - loose) / 2.0 * d + power) / n - digamma / 2.0
        by_n += gradient.n + np.einsum("bij,bij->b", gradient.products, state.second)
        by_root = 2.0 * n[:, None, None] * (gradient.products @ root)
        diagonal = np.arange(d)
        by_root[:, diagonal, diagonal] *= root[:, diagonal, diagonal]
        by_root[:, diagonal, diagonal] += (n - loose)[:, None] + rows
        parts = []
        if self.linear:
            by_n += np.einsum("bi,bi->b", gradient.total, state.mean)
            pulled = 2.0 * np.einsum("bij,bj->bi", gradient.products, state.mean)
            parts.append(n[:, None] * (gradient.total + pulled))
        if not self.latent_n.fixed:
            parts.insert(0, (by_n * slope + by_free)[:, None])
        below = np.tril_indices(d)
        return value, np.concatenate([*parts, by_root[:, below[0], below[1]]], axis=1)

    def unpack(self, x: Floats) -> Position:
        """Unpack coordinates (b, n_coordinates)."""
        start, d = 0, self.size
        nothing = np.zeros(len(x))
        if self.latent_n.fixed:
            n, slope, log_prior, by_free = np.full(len(x), self.latent_n.lowest), nothing, nothing, nothing
        else:
            n, slope, log_prior, by_free = self.latent_n.of(x[:, 0])
            start = 1
        mean = x[:, start : start + d] if self.linear else np.zeros((len(x), d))
        start += d if self.linear else 0
        rows, columns = np.tril_indices(d)
        root = np.zeros((len(x), d, d))
        root[:, rows, columns] = x[:, start:]
        diagonal = np.arange(d)
        root[:, diagonal, diagonal] = np.exp(np.clip(root[:, diagonal, diagonal], -_STEEPEST, _STEEPEST))
        spread = root @ np.swapaxes(root, 1, 2)
        state = State(n=n, mean=mean, spread=spread, second=spread + outer(mean, mean))
        return Position(state=state, root=root, slope=slope, log_prior=log_prior, by_free=by_free)

    def _noise(self, state: State) -> tuple[Floats, Gradient]:
        """Return the log density of the noise, and the slopes that guide a chain."""
        rows, columns = np.triu_indices(self.size)
        ones = np.ones((len(state.n), 1))
        moments = np.concatenate([ones, state.mean, state.second[:, rows, columns]], axis=1)
        expected = (state.n[:, None] * moments) @ self.components.T
        distance = np.repeat(self.observed, len(expected) // len(self.observed), axis=0) - expected
        slope = np.tanh(distance / ROUNDING)
        by = slope @ self.components
        products = np.zeros_like(state.second)
        products[:, rows, columns] = by[:, 1 + self.size :]
        symmetric = (products + np.swapaxes(products, 1, 2)) / 2.0
        gradient = Gradient(n=by[:, 0].copy(), total=by[:, 1 : 1 + self.size].copy(), products=symmetric)
        return -np.abs(distance).sum(axis=1), gradient
