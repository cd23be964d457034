r"""The distribution of latent moments behind noisy ones, parameters integrated out: log density and gradient.

Model: N rows z of d columns, in half ranges, are normal, and their parameters have the conjugate prior.
Released are linear functions of N, the sums t and the products Q, behind Laplace noise. Given N, t and S =
Q - t t^T / N have the density of a normal and a Wishart; with the parameters integrated out

.. math::
    p(t, Q \mid N) = \frac{\pi^{(N - 1) d / 2} |S|^{(N - d - 2) / 2}}{N^{d / 2} \Gamma_d((N - 1) / 2)}
        \; e(N, t, Q) \qquad (1)

    \log p(N, t, Q, y) = \log \pi(N) + \log p(t, Q \mid N) - \sum_k |y_k - \mu_k(N, t, Q)| / b_k \qquad (2)

where e is the evidence of any N rows with these moments (``evidence``). No central limit theorem is in
this. Without first moments the factor of e is :math:`\pi^{N d / 2} |Q|^{(N - d - 1) / 2} / \Gamma_d(N /
2)`.

The question is (2), for chains, in coordinates on the whole space: x of N, the means, and the lower
triangle L of

.. math:: S / N = L L^T, \qquad \Bigl|\frac{\partial (t, Q)}{\partial (\bar z, L)}\Bigr| =
    2^d N^{d (d + 3) / 2} \prod_i L_{ii}^{d + 1 - i}, \quad i = 1..d \qquad (3)

Error: discrete Laplace noise is taken for Laplace noise, of scales of thousands of lattice steps, and an N
with more than one likely value for a real number. The gradient rounds off the kinks of the noise; it only
guides chains.

======== ==================== ===================================== ================= =================
symbol   in the code          meaning                               shape             unit
======== ==================== ===================================== ================= =================
N        ``n``                number of rows                        (b,)              rows
t / N    ``mean``             average                               (d, b)            half ranges
S / N    ``spread``           mean scatter                          (d, d, b)         half ranges^2
Q / N    ``second``           mean products                         (d, d, b)         half ranges^2
L        ``root``, ``logs``   root, log of its diagonal             (d, d, b), (d, b) half ranges
y / b    ``scaled.values``    released components                   (n_cells, n)      noise scales
======== ==================== ===================================== ================= =================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.engines.multivariate.evidence import (
    Gradient,
    MomentState,
    multivariate_gamma,
    outer,
)
from suffice.pipeline.math.engines.multivariate.latent_scales import along, evidence_of, pulled_along

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
    from suffice.pipeline.math.engines.multivariate.evidence import Evidence, OutcomeCoordinates, OutcomeNoise
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.typing import Floats

    Indices: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]

ROUNDING = 0.25
"""The kinks of Laplace noise are rounded off over this part of its scale where a gradient guides a chain. The
density itself keeps them, and it alone decides what is accepted: the chains' distribution is exact, only
their path is smoother, and several times as fast."""
LEFT = 2.5
"""c: where noise hides a scale it may be anywhere in many decades, which this brings closer together."""
_NEWTON = 12
"""Iterations that find a coordinate to the last digits."""
STEEPEST = 60.0
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
        # N = low + width / (1 + e^-x): log dN/dx = log width + log share + log(1 - share).
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
class ChainPosition:
    """Coordinates of b chains unpacked.

    Attributes
    ----------
    state : MomentState
        The moments; n is (1,) where it is fixed.
    root : ndarray of shape (d, d, b), float64
        L.
    logs : ndarray of shape (d, b), float64
        The logarithms of its diagonal.
    slope, log_prior, by_free : ndarray of shape (b,) or (1,), float64
        Of N: dn/dx, the log prior of x, and its derivative.
    latent : ndarray of shape (n_latent, b), float64
        Coordinates of latent scales.
    noise : ndarray of shape (n_of_noise, b), float64
        Coordinates of latent noise.
    log_slopes : tuple
        Of logs by coordinates: the sum of the logarithms of their derivatives (b,), the derivatives (d, b),
        and the derivatives of that sum (d, b).
    outcome : OutcomeCoordinates or None
        Those of the outcome's entries of L and of its average; see ``LatentTarget.outcome``.
    """

    state: MomentState
    root: Floats
    logs: Floats
    slope: Floats
    log_prior: Floats
    by_free: Floats
    latent: Floats
    noise: Floats
    log_slopes: tuple[Floats | float, Floats | float, Floats | float]
    outcome: OutcomeCoordinates | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentTarget:
    r"""The log density of latent moments in coordinates on the whole space, for many cells at once.

    Coordinates: x of N unless it is fixed; the means, where there are first moments; then by rows the lower
    triangle L of S / n = L L^T (of Q / n without first moments), the logarithm of its diagonal, its other
    entries over what ``relative`` says; then those of latent scales.

    Attributes
    ----------
    size : int
        The number of columns, d.
    linear : bool
        Whether there are first moments.
    evidence : tuple of Evidence
        Whose sum is the log evidence.
    latent_n : LatentN
    scaled : NoisyTotals
        What was released of the moments behind Laplace noise, in half ranges, in units of the noise.
    cone : tuple of LatentConeNoise
        What was released of them behind noise on a cone.
    relative : ndarray of shape (3, n_pairs, n_cells), float64, or None
        a, b and c of the entries below the diagonal, by rows: that of row i and column j is its coordinate
        times :math:`\sqrt{(a L_{jj})^2 + (b L_{ii})^2 + c^2}`. Where noise hides a diagonal entry over many
        scales the others then need not change with it. None: coordinates are the entries.
    units : ndarray of shape (d, n_cells), float64, or None
        r: a diagonal entry of coordinate q is :math:`r \log(1 + e^q) / (1 + e^{-q})^{c - 1}`: above r it goes
        straight along with q, below its logarithm does, c times as fast. None: coordinates are logarithms.
    outcome : OutcomeNoise or None
        Of a regression: what coordinates of the last column's entries and average rest
        on, in the place of the above, once squares of likely coefficients are given.
    """

    size: int
    linear: bool
    evidence: tuple[Evidence, ...]
    latent_n: LatentN
    scaled: NoisyTotals
    relative: Floats | None = None
    units: Floats | None = None
    outcome: OutcomeNoise | None = None
    cone: tuple[LatentConeNoise, ...] = ()

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        return self._n_moments + self.n_latent + sum(noise.n_coordinates for noise in self.cone)

    @property
    def n_latent(self) -> int:
        """Number of coordinates of latent scales."""
        return sum(evidence.n_latent for evidence in self.evidence)

    @property
    def _n_moments(self) -> int:
        means = self.size if self.linear else 0
        return int(not self.latent_n.fixed) + means + self.size * (self.size + 1) // 2

    def take(self, cells: NDArray[np.int64]) -> Self:
        """Return the density of some cells."""
        relative = None if self.relative is None else self.relative[:, :, cells]
        units = None if self.units is None else self.units[:, cells]
        outcome = None if self.outcome is None else self.outcome.take(cells)
        return replace(
            self,
            scaled=self.scaled.take(cells),
            relative=relative,
            units=units,
            outcome=outcome,
            cone=tuple(noise.take(cells) for noise in self.cone),
        )

    @property
    def noise_sds(self) -> Floats:
        """About the noise's standard deviations on moments, all releases together; 0 of what none tells."""
        precision = sum((noise.precision_of_moments for noise in self.cone), np.zeros(1))
        if len(self.scaled.scale):
            variance = 2.0 * np.sum(np.linalg.pinv(self.scaled.coefficients) ** 2, axis=1)
            precision = precision + _inverse_or_0(variance)
        sds: Floats = np.sqrt(_inverse_or_0(precision))
        return sds

    def state(self, x: Floats, squares: Floats | None = None) -> MomentState:
        """Return the moments at coordinates (n_coordinates, b)."""
        return self.unpack(x, squares).state

    def coordinates(self, n: Floats, mean: Floats, spread: Floats, squares: Floats | None = None) -> Floats:
        """Return the coordinates of n (b,), means (d, b) and S / n (d, d, b), without latent scales.

        Given squares of likely coefficients (k, b), or none.
        """
        root: Floats = np.moveaxis(np.linalg.cholesky(np.moveaxis(spread, 2, 0)), 0, 2).astype(np.float64)
        diagonal = np.arange(self.size)
        if self.outcome is not None and squares is not None:
            given = self.outcome.given(root, mean if self.linear else None, squares)
            both = np.concatenate([root[-1, :-1], mean[-1:]])[: len(squares)]
            mean, root[-1, :-1] = _outcome_replaced(mean, given.coordinates(both), self.size - 1)
        pairs = self._pairs(given=squares is not None)
        if self.relative is not None:
            root[pairs] /= self.lengths(root[diagonal, diagonal], len(pairs[0]))[0]
        on: Floats = root[diagonal, diagonal]
        if self.units is None:
            root[diagonal, diagonal] = np.log(on)
        else:
            units = np.repeat(self.units, on.shape[1] // self.units.shape[1], axis=1)
            root[diagonal, diagonal] = _diagonal_coordinate(on, units)
        free = [] if self.latent_n.fixed else [self.latent_n.coordinate(n)[None]]
        return np.concatenate([*free, *([mean] if self.linear else []), root[_below(self.size)]])

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density (b,), up to a constant, and its gradient (k, b) with kinks rounded off.

        The cells' chains follow one another: b is a multiple of the number of cells.
        """
        position = self.unpack(x)
        return self.complete(position, *self.log_of_data_set(position))

    def log_of_data_set(self, position: ChainPosition) -> tuple[Floats, Gradient, Floats]:
        """Return the log of noise, evidence and prior of N, and its gradient by moments and latent scales."""
        value, gradient, by_noise = self._noise(position)
        value += position.log_prior
        latent = position.latent + along(self.evidence, position.root)
        more, by_latent = evidence_of(self.evidence, position.state, latent, gradient)
        return value + more, gradient, np.concatenate([by_latent, *by_noise])

    def complete(
        self,
        position: ChainPosition,
        value: Floats,
        gradient: Gradient,
        by_latent: Floats,
        by_shared: Floats | float = 0.0,
    ) -> tuple[Floats, Floats]:
        """Add the density of moments given N and the Jacobians; the gradient becomes one by coordinates.

        `by_shared` (d, d, b) has derivatives by L of what shared scales go along with.
        """
        state, root, logs = position.state, position.root, position.logs
        n, d = state.n, self.size
        log_n, log_determinant = np.log(n), 2.0 * logs.sum(axis=0)
        loose = d + 2 if self.linear else d + 1
        # (1): the argument of Gamma_d; first moments cost one degree of freedom.
        free_rows = (n - 1.0) / 2.0 if self.linear else n / 2.0
        log_gamma, digamma = multivariate_gamma(free_rows, d)
        # The Jacobians from t, Q to the means and S / n give powers of n, that to L powers of L_ii.
        power = d * (d + 2) / 2.0 if self.linear else d * (d + 1) / 2.0
        rows = d + 1.0 - np.arange(d)
        # (1) with S = n L L^T: |S| = n^d prod L_ii^2; then the Jacobian (3).
        logs_of_n = (n - loose) / 2.0 * d * log_n + power * log_n - log_gamma
        value = value + (n - loose) / 2.0 * log_determinant + logs_of_n + rows @ logs
        # d f(Q) = tr(G dQ) and Q = n L L^T + ..., so df/dL = 2 n G L for symmetric G.
        by_root = 2.0 * n * np.einsum("ijb,jkb->ikb", gradient.products, root)
        by_root += pulled_along(self.evidence, by_latent, root) + by_shared
        diagonal = np.arange(d)
        # The coordinate is log L_ii: df / d log L_ii = L_ii df / dL_ii.
        by_root[diagonal, diagonal] *= root[diagonal, diagonal]
        by_root[diagonal, diagonal] += (n - loose) + rows[:, None]
        # t = n m and Q has n m m^T: both depend on the mean.
        by_mean = n * (gradient.total + 2.0 * np.einsum("ijb,jb->ib", gradient.products, state.mean))
        if position.outcome is not None:
            value = value + position.outcome.log_jacobian
            _outcome_pulled(position.outcome, state.mean, root, by_mean, by_root)
        if self.relative is not None:
            pairs = self._pairs(given=position.outcome is not None)
            lengths, of_column, of_row = self.lengths(root[diagonal, diagonal], len(pairs[0]))
            value = value + np.log(lengths).sum(axis=0)
            # L_ij is its coordinate times a length of L_ii and L_jj, whose log is in the Jacobian.
            by_length = by_root[pairs] * root[pairs] + 1.0
            by_root[pairs] *= lengths
            np.add.at(by_root, (pairs[1], pairs[1]), by_length * of_column)
            np.add.at(by_root, (pairs[0], pairs[0]), by_length * of_row)
        value = value + position.log_slopes[0]
        by_root[diagonal, diagonal] = (
            by_root[diagonal, diagonal] * position.log_slopes[1] + position.log_slopes[2]
        )
        parts = [by_root[_below(d)], by_latent]
        if self.linear:
            parts.insert(0, by_mean)
        if not self.latent_n.fixed:
            # The derivative of (1) and (3) by n; digamma is that of log Gamma_d.
            by_n = (d * log_n + log_determinant) / 2.0 + ((n - loose) / 2.0 * d + power) / n - digamma / 2.0
            by_n += gradient.n + np.einsum("ijb,ijb->b", gradient.products, state.second)
            if self.linear:
                by_n += np.einsum("ib,ib->b", gradient.total, state.mean)
            parts.insert(0, (by_n * position.slope + position.by_free)[None])
        return value, np.concatenate(parts)

    def unpack(self, x: Floats, squares: Floats | None = None) -> ChainPosition:
        """Unpack coordinates (n_coordinates, b), given squares of likely coefficients (k, b) or none."""
        start, d = 0, self.size
        if self.latent_n.fixed:
            nothing = np.zeros(1)
            n, slope, log_prior, by_free = np.full(1, self.latent_n.lowest), nothing, nothing, nothing
        else:
            n, slope, log_prior, by_free = self.latent_n.of(x[0])
            start = 1
        mean = x[start : start + d] if self.linear else np.zeros((d, x.shape[1]))
        start += d if self.linear else 0
        root = np.zeros((d, d, x.shape[1]))
        root[_below(d)] = x[start : self._n_moments]
        diagonal = np.arange(d)
        logs = np.clip(root[diagonal, diagonal], -STEEPEST, STEEPEST)
        log_slopes: tuple[Floats | float, Floats | float, Floats | float] = (0.0, 1.0, 0.0)
        if self.units is not None:
            units = np.repeat(self.units, x.shape[1] // self.units.shape[1], axis=1)
            logs, log_slopes = _diagonal(root[diagonal, diagonal], units)
        root[diagonal, diagonal] = np.exp(logs)
        if self.relative is not None:
            pairs = self._pairs(given=squares is not None)
            root[pairs] *= self.lengths(root[diagonal, diagonal], len(pairs[0]))[0]
        outcome = None
        if self.outcome is not None and squares is not None:
            outcome = self.outcome.given(root, mean if self.linear else None, squares)
            both = np.concatenate([root[-1, :-1], mean[-1:]])[: len(squares)]
            mean, root[-1, :-1] = _outcome_replaced(mean, outcome.entries(both), d - 1)
        spread = np.einsum("ikb,jkb->ijb", root, root)
        second = spread + outer(mean, mean) if self.linear else spread
        return ChainPosition(
            state=MomentState(n=n, mean=mean, spread=spread, second=second),
            root=root,
            logs=logs,
            slope=slope,
            log_prior=log_prior,
            by_free=by_free,
            latent=x[self._n_moments : self._n_moments + self.n_latent],
            noise=x[self._n_moments + self.n_latent :],
            log_slopes=log_slopes,
            outcome=outcome,
        )

    def _pairs(self, *, given: bool) -> Indices:
        """Return where the entries stand that ``relative`` is of."""
        return _pairs(self.size - int(given and self.outcome is not None))

    def lengths(self, diagonal: Floats, pairs: int) -> tuple[Floats, Floats, Floats]:
        """Return units of entries below a diagonal (d, b), and their log slopes by log L_jj and log L_ii."""
        rows, columns = (side[:pairs] for side in _pairs(self.size))
        relative = np.zeros((3, pairs, 1)) if self.relative is None else self.relative[:, :pairs]
        repeated = np.repeat(relative, diagonal.shape[1] // relative.shape[2], axis=2)
        # The length of an entry: sqrt((a L_jj)^2 + (b L_ii)^2 + c^2).
        of_column, of_row = (repeated[0] * diagonal[columns]) ** 2, (repeated[1] * diagonal[rows]) ** 2
        square = of_column + of_row + repeated[2] ** 2
        return np.sqrt(square), of_column / square, of_row / square

    def _noise(self, position: ChainPosition) -> tuple[Floats, Gradient, list[Floats]]:
        """Return the log density of the noise, the slopes that guide a chain, and those by latent noise."""
        state, above = position.state, _above(self.size)
        moments = np.concatenate([np.ones_like(state.mean[:1]), state.mean, state.second[above]])
        moments *= state.n
        value, by = np.zeros(moments.shape[1]), np.zeros_like(moments)
        if len(self.scaled.scale):
            n_cells, n_components = self.scaled.values.shape
            components = self.scaled.coefficients
            expected = (components @ moments).reshape(n_components, n_cells, -1)
            distance = (self.scaled.values.T[:, :, None] - expected).reshape(n_components, -1)
            # The slope of |x| is sign(x); tanh rounds it off, in the gradient alone.
            by += components.T @ np.tanh(distance / ROUNDING)
            value -= np.abs(distance).sum(axis=0)
        by_noise, start = [], 0
        for noise in self.cone:
            more, by_moments, slopes = noise(moments, position.noise[start : start + noise.n_coordinates])
            start += noise.n_coordinates
            value, by = value + more, by + by_moments
            by_noise.append(slopes)
        products = np.zeros_like(state.second)
        products[above] = by[1 + self.size :]
        symmetric = (products + np.swapaxes(products, 0, 1)) / 2.0
        return value, Gradient(n=by[0], total=by[1 : 1 + self.size], products=symmetric), by_noise


def _inverse_or_0(values: Floats) -> Floats:
    inverse: Floats = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0.0)
    return inverse


def _diagonal(coordinate: Floats, units: Floats) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Return the logs of diagonal entries, and ``ChainPosition.log_slopes``; see ``LatentTarget.units``."""
    q = np.maximum(coordinate, -STEEPEST / LEFT)
    small = np.exp(-np.abs(q))
    more = np.log1p(small)
    soft = np.maximum(q, 0.0) + more
    share = np.where(q > 0.0, 1.0, small) / (1.0 + small)
    inside = share / soft
    rest = 1.0 - share
    # d log L / dq of L = r log(1 + e^q) / (1 + e^-q)^(c - 1).
    slope = inside + (LEFT - 1.0) * rest
    bent = inside * (rest - inside) - (LEFT - 1.0) * share * rest
    logs = np.log(units * soft) - (LEFT - 1.0) * (np.maximum(-q, 0.0) + more)
    return logs, (np.log(slope).sum(axis=0), slope, bent / slope)


def _diagonal_coordinate(entry: Floats, units: Floats) -> Floats:
    """Return the coordinates of diagonal entries: from below, by Newton's method on a concave function."""
    ratio = entry / units
    # log(1 + e^q) = x has the solution q = x + log(1 - e^-x): where c = 1 it is exact.
    q: Floats = ratio + np.log(-np.expm1(-ratio))
    for _ in range(_NEWTON):
        logs, (_, slope, _) = _diagonal(q, units)
        q = q + (np.log(entry) - logs) / slope
    return q


def _outcome_replaced(mean: Floats, both: Floats, size: int) -> tuple[Floats, Floats]:
    """Return means with another one of the outcome, if `both` has one after its entries, and the entries."""
    return np.concatenate([mean[:size], both[size:], mean[len(both) :]]), both[:size]


def _outcome_pulled(
    outcome: OutcomeCoordinates, mean: Floats, root: Floats, by_mean: Floats, by_root: Floats
) -> None:
    """Turn derivatives by the outcome's entries and average into those by its coordinates, in place.

    Those by what the coordinates depend on are added where they belong.
    """
    k, size = len(outcome.factors), len(root) - 1
    by_entries = np.concatenate([by_root[size, :size], by_mean[size:]])[:k]
    entries = np.concatenate([root[size, :size], mean[size:]])[:k]
    by, by_factors, by_log_root = outcome.pulled(entries, by_entries)
    by_root[size, :size] = by[:size]
    by_root[size, size] += by_log_root
    inside = np.arange(size)
    by_factors[inside, inside] *= root[inside, inside]
    below = _below(size)
    by_root[below] += by_factors[below]
    if k > size:
        by_mean[size] = by[size]
        by_mean[:size] += by_factors[:size, size]


@cache
def _below(size: int) -> Indices:
    """Return where the entries of a lower triangle stand, by rows."""
    rows, columns = np.tril_indices(size)
    return rows, columns


@cache
def _pairs(size: int) -> Indices:
    """Return where the entries below a diagonal stand, by rows."""
    rows, columns = np.tril_indices(size, -1)
    return rows, columns


@cache
def _above(size: int) -> Indices:
    """Return where the entries of an upper triangle stand, by rows."""
    rows, columns = np.triu_indices(size)
    return rows, columns
