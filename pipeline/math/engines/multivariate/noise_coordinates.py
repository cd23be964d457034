r"""Coordinates of cone noise alone, for cells whose noise is well below their scatter.

With (2) of ``latent_noise``, one release :math:`y = A m + f (P - Q) + R \xi` of moments m and
:math:`R R^T = h C` gives moments at given noise,

.. math:: m = A^{-1} \bigl(y - f (P - Q) - R \xi\bigr), \qquad \log p(\xi, P, Q, v \mid y) =
    -\tfrac 1 2 |\xi|^2 + \log h(P) + \log h(Q) + \log \pi(N) + \log p(t, Q \mid N, v) \qquad (1)

up to a constant, v latent scales: the same distribution as that of ``log_posterior``, in other coordinates.
Where noise is well below the scatter the last two terms hardly vary, and (1) is almost the product of known
distributions that it starts from: steps are long, and nothing has to be learnt of its shape. Where noise
hides scatter (1) ends at a wall, m of a singular S, and the other coordinates are better: ``is_flat`` tells
cells apart, by how much the last two terms vary over noise that is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.cone.latent_noise import SHARE
from suffice.pipeline.math.engines.multivariate.evidence import (
    Gradient,
    MomentState,
    cholesky,
    inverted,
    multivariate_gamma,
    no_gradient,
    outer,
)
from suffice.pipeline.math.engines.multivariate.latent_scales import along, evidence_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
    from suffice.pipeline.math.engines.multivariate.evidence import Evidence
    from suffice.pipeline.math.engines.multivariate.log_posterior import LatentTarget
    from suffice.typing import Floats

TRIED = 64
"""Draws of noise that say whether coordinates of noise suit a cell."""
FLAT = 1.5
"""The largest standard deviation of the log density of moments over such draws."""


@dataclass(frozen=True, kw_only=True)
class NoiseTarget:
    """The log density (1): coordinates of xi, of latent scales, of P and of Q.

    Attributes
    ----------
    target : LatentTarget
        The same in the other coordinates: of one cone release, N latent.
    evidence : tuple of Evidence
        The data set's and the shared one.
    """

    target: LatentTarget
    evidence: tuple[Evidence, ...]

    @classmethod
    def of(cls, target: LatentTarget, shared: tuple[Evidence, ...]) -> Self:
        """Return the density of one data set, and of what is shared with no other."""
        return cls(target=target, evidence=(*target.evidence, *shared))

    def take(self, cells: NDArray[np.int64]) -> Self:
        """Return the density of some cells."""
        return replace(self, target=self.target.take(cells))

    @property
    def noise(self) -> LatentConeNoise:
        """The release's."""
        return self.target.cone[0]

    @property
    def _released(self) -> NDArray[np.int64]:
        """Moments that are released: without first moments these are 0."""
        d = self.target.size
        every = np.arange(1 + d + d * (d + 1) // 2)
        return every if self.target.linear else np.delete(every, np.arange(1, 1 + d))

    @property
    def _map(self) -> tuple[Floats, Floats]:
        """A^-1 and A^-1 R."""
        inverse: Floats = np.linalg.inv(self.noise.coefficients[:, self._released]).astype(np.float64)
        root: Floats = np.linalg.cholesky(SHARE * self.noise.covariance).astype(np.float64)
        return inverse, inverse @ root

    @property
    def n_latent(self) -> int:
        """Number of coordinates of latent scales."""
        return sum(evidence.n_latent for evidence in self.evidence)

    def moments(self, x: Floats) -> Floats:
        """Return m (n_moments, b) at coordinates (n_coordinates, b)."""
        d, (inverse, root) = len(self.noise.covariance), self._map
        first, second = (self.noise.points.at(part) for part in np.split(x[d + self.n_latent :], 2))
        apart = first.t * first.components - second.t * second.components
        return self._at(x[:d], apart, inverse, root)

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density (b,), up to a constant, and its gradient (n_coordinates, b)."""
        noise, d, (inverse, root) = self.noise, len(self.noise.covariance), self._map
        xi, latent, of_noise = np.split(x, [d, d + self.n_latent])
        half, b = len(of_noise) // 2, x.shape[1]
        # P and Q side by side.
        both = noise.points.at(np.concatenate([of_noise[:half], of_noise[half:]], axis=1))
        matrices = both.t * both.components
        moments = self._at(xi, matrices[:, :b] - matrices[:, b:], inverse, root)
        value, by_moments, by_latent = self.log_of_moments(moments, latent)
        # m = A^-1 (y - f (P - Q) - R xi).
        by = by_moments[self._released]
        by_matrices = -noise.unit * np.sqrt(1.0 - SHARE) * (inverse.T @ by)
        slopes = both.pulled(np.concatenate([by_matrices, -by_matrices], axis=1))
        value = value + both.value[:b] + both.value[b:] - 0.5 * np.einsum("ib,ib->b", xi, xi)
        return value, np.concatenate([-xi - root.T @ by, by_latent, slopes[:, :b], slopes[:, b:]])

    def log_of_moments(self, moments: Floats, latent: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log pi(N) + log p(t, Q | N, v) (b,), and its derivatives by moments and by scales.

        No number where S is not positive definite, or where N is beyond its prior.
        """
        state, d = self.state(moments), self.target.size
        n, of_n = state.n, self.target.latent_n
        gradient = no_gradient(state)
        value, by_latent = evidence_of(self.evidence, state, latent, gradient)
        inverse, log_determinant = inverted(state.spread if self.target.linear else state.second)
        loose = d + 2 if self.target.linear else d + 1
        # (1) of `log_posterior`: S = n times the spread.
        free_rows = (n - 1.0) / 2.0 if self.target.linear else n / 2.0
        log_gamma, digamma = multivariate_gamma(free_rows, d)
        log_n = np.log(n)
        log_s = log_determinant + d * log_n
        value = value + (n - loose) / 2.0 * log_s - log_gamma
        gradient.n[:] += log_s / 2.0 - digamma / 2.0
        by_s = (n - loose) / 2.0 * inverse / n
        gradient.products[:] += by_s
        if self.target.linear:
            value = value - d / 2.0 * log_n
            gradient.n[:] -= d / 2.0 / n
            # S = Q - t t^T / n.
            pulled = np.einsum("ijb,jb->ib", by_s, state.mean)
            gradient.total[:] -= 2.0 * pulled
            gradient.n[:] += np.einsum("ib,ib->b", pulled, state.mean)
        if of_n.reciprocal:
            value = value - np.log1p(n)
            gradient.n[:] -= 1.0 / (1.0 + n)
        value = np.where((n > of_n.lowest) & (n < of_n.highest), value, np.nan)
        return value, self._by_moments(gradient), by_latent

    def state(self, moments: Floats) -> MomentState:
        """Return moments as averages."""
        d = self.target.size
        n, mean = moments[0], moments[1 : 1 + d] / moments[0]
        second = np.empty((d, d, moments.shape[1]))
        rows, columns = np.triu_indices(d)
        second[rows, columns] = second[columns, rows] = moments[1 + d :] / n
        spread = second - outer(mean, mean) if self.target.linear else second
        return MomentState(n=n, mean=mean, spread=spread, second=second)

    def drawn(self, size: int, rng: np.random.Generator) -> Floats:
        """Return coordinates (n_coordinates, size) of noise that is drawn, 0 for those of scales."""
        xi = rng.standard_normal((len(self.noise.covariance), size))
        return np.concatenate([xi, np.zeros((self.n_latent, size)), self.noise.draw(size, rng)])

    def scales(self, moments: Floats) -> tuple[Floats, Floats]:
        """Return coordinates of latent scales that go with moments, and their sds, (n_latent, b)."""
        state = self.state(moments)
        empty = moments[:0]
        starts = [evidence.start(state) for evidence in self.evidence]
        latent, sds = (np.concatenate([empty, *parts]) for parts in zip(*starts, strict=True))
        return latent, sds

    def start(self, n_chains: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return starts (n_coordinates, n_cells, n_chains), and a guess of the spread (.., n_cells)."""
        noise, n_cells = self.noise, len(self.noise.values)
        size = n_cells * n_chains
        # Noise is of its own distribution, which is wider than its posterior; scales go with the moments.
        x = self.drawn(size, rng)
        x = _possible(x.reshape(-1, n_cells, n_chains), self._is_possible(x).reshape(n_cells, n_chains))
        x = x.reshape(-1, size)
        latent, sds = self.scales(self.moments(x))
        jitter = sds * rng.standard_normal(latent.shape)
        x[len(noise.covariance) :][: self.n_latent] = latent + jitter
        start = x.reshape(-1, n_cells, n_chains)
        guess = np.concatenate(
            [
                np.ones((len(noise.covariance), n_cells)),
                sds.reshape(self.n_latent, n_cells, n_chains)[:, :, 0],
                np.repeat(noise.spread()[:, None], n_cells, axis=1),
            ]
        )
        return start, guess

    def in_other_coordinates(self, kept: Floats, squares: Floats | None) -> Floats:
        """Return states (iterations, n_coordinates, n_cells, n_chains) in the coordinates of `target`.

        `squares` are those of likely coefficients (k,) of a regression, or none.
        """
        d, own = len(self.noise.covariance), sum(each.n_latent for each in self.target.evidence)
        changed = []
        for x in kept.reshape(*kept.shape[:2], -1):
            state = self.state(self.moments(x))
            repeated = None if squares is None else np.repeat(squares[:, None], x.shape[1], axis=1)
            of_moments = self.target.coordinates(state.n, state.mean, state.spread, repeated)
            latent = x[d : d + self.n_latent] - along(self.evidence, cholesky(state.spread))
            changed.append(np.concatenate([of_moments, latent[:own], x[d + self.n_latent :], latent[own:]]))
        return np.stack(changed).reshape(len(kept), -1, *kept.shape[2:])

    def _is_possible(self, x: Floats) -> NDArray[np.bool_]:
        """Tell at which coordinates S is positive definite and N within its prior."""
        state, of_n = self.state(self.moments(x)), self.target.latent_n
        with np.errstate(all="ignore"):  # what is beyond the wall has no logarithm
            _, log_determinant = inverted(state.spread)
        inside: NDArray[np.bool_] = (state.n > of_n.lowest) & (state.n < of_n.highest)
        return inside & np.isfinite(log_determinant)

    def _at(self, xi: Floats, apart: Floats, inverse: Floats, root: Floats) -> Floats:
        noise, b = self.noise, xi.shape[1]
        known = np.repeat(noise.values.T, b // len(noise.values), axis=1)
        released = inverse @ (known - noise.unit * np.sqrt(1.0 - SHARE) * apart) - root @ xi
        moments = np.zeros((noise.coefficients.shape[1], b))
        moments[self._released] = released
        return moments

    def _by_moments(self, gradient: Gradient) -> Floats:
        rows, columns = np.triu_indices(self.target.size)
        twice = np.where(rows == columns, 1.0, 2.0)[:, None]
        return np.concatenate([gradient.n[None], gradient.total, twice * gradient.products[rows, columns]])


def _possible(x: Floats, valid: NDArray[np.bool_]) -> Floats:
    """Put chains that are beyond the wall where others of their cell are, if any is not."""
    first = np.argsort(~valid, axis=1, kind="stable")
    count = np.maximum(valid.sum(axis=1), 1)[:, None]
    chains = np.arange(valid.shape[1])[None]
    other = np.take_along_axis(first, chains % count, axis=1)
    source = np.where(valid | ~valid.any(axis=1, keepdims=True), chains, other)
    return x[:, np.arange(len(valid))[:, None], source]


def is_flat(noise: NoiseTarget, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Tell of every cell whether noise is well below its scatter, (n_cells,)."""
    n_cells = len(noise.noise.values)
    with np.errstate(all="ignore"):
        moments = noise.moments(noise.drawn(n_cells * TRIED, rng))
        # Scales as they go with most draws.
        latent = noise.scales(moments)[0].reshape(noise.n_latent, n_cells, TRIED)
        middle = np.broadcast_to(np.median(latent, axis=2, keepdims=True), latent.shape)
        value, _, _ = noise.log_of_moments(moments, middle.reshape(noise.n_latent, n_cells * TRIED))
        spread = value.reshape(n_cells, TRIED).std(axis=1)
    # A draw beyond the wall is no number, and so is the standard deviation.
    flat: NDArray[np.bool_] = spread < FLAT
    return flat
