r"""Posteriors of the number, the mean and the variance of one merged cell's records.

With z in -1..1 over the public bounds, N records of mean m and variance V have the quadratic Bernstein sums

.. math::
    N ((1 - m)^2 + V) / 4, \quad N (1 - m^2 - V) / 2, \quad N ((1 + m)^2 + V) / 4,

each released behind a sum of noises. The prior is proportional to 1 / (N + 1), uniform in m, and uniform in
the standard deviation up to :math:`\sqrt{1 - m^2}`, the largest that records in the bounds can have.

Points of (N, N m) are proposed by a multivariate t distribution that is fitted to the posterior in rounds;
given these, the variance is integrated over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.laplace_sums import log_density_of_sum
from suffice.pipeline.math.distributions.quadrature import integral_rule

if TYPE_CHECKING:
    from suffice.typing import Floats

_DEGREES = 5.0
_ROUNDS = (512, 512, 1024)
"""Points by which the proposal is fitted, before those that count."""
_WIDER = 1.5
_AWAY = 8.0
"""Standard deviations of the noise about the estimated variance that are integrated over."""
_PANELS = np.linspace(0.0, 1.0, 4)
POINTS = 1 << 12
"""Points that count: the ends of intervals are right to about 0.04 standard deviations."""
_KNOTS_PER_SCALE = 64.0
"""Steps of the table of the noise's log density, in which it is a polyline: right to about 1e-4 nats."""
_FARTHEST = 2000.0
"""Scales beyond which the log density is a straight line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsOfCell:
    """Weighted points of the moments of one merged cell.

    Attributes
    ----------
    values : ndarray of shape (3,), float64
        Sums of released values, in records.
    scale : float
        b of one Laplace number, in records.
    terms : int
        How many are added.
    """

    values: Floats
    scale: float
    terms: int

    def points(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return weights (n_points,) that add up to 1, and N, m and V, (3, n_points).

        Parameters
        ----------
        shares : ndarray of shape (4, n_points), float64
            Evenly spread over 0..1 in each row; the first ``POINTS`` count.
        """
        sd = np.sqrt(2.0 * self.terms) * self.scale
        n = float(np.sum(self.values))
        centre = np.array([max(n, sd), float(self.values[2] - self.values[0])])
        covariance = sd**2 * np.array([[3.0, 0.0], [0.0, 2.0]])
        start = 0
        for size in _ROUNDS:
            weight, moments = self._weighted(shares[:, start : start + size], centre, covariance)
            latent = np.stack([moments[0], moments[0] * moments[1]])
            centre = latent @ weight
            away = latent - centre[:, None]
            covariance = _WIDER * (weight * away) @ away.T + 1e-6 * sd**2 * np.eye(2)
            start += size
        return self._weighted(shares[:, :POINTS], centre, covariance)

    def _weighted(self, shares: Floats, centre: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        from scipy.special import gammaincinv, ndtri

        root = np.linalg.cholesky(covariance)
        mixing = _DEGREES / (2.0 * gammaincinv(_DEGREES / 2.0, shares[2]))
        latent = centre[:, None] + np.sqrt(mixing) * (root @ ndtri(shares[:2]))
        square = np.sum(np.linalg.solve(root, latent - centre[:, None]) ** 2, axis=0)
        log_proposal = -(_DEGREES + 2.0) / 2.0 * np.log1p(square / _DEGREES)
        possible = (latent[0] > 0.0) & (np.abs(latent[1]) < latent[0])
        n = np.where(possible, latent[0], 1.0)
        m = np.where(possible, latent[1] / n, 0.0)
        log_mass, variance = self._variances(n, m, shares[3])
        # Uniform in the mean is 1 / N in N m.
        log_weight = np.where(possible, log_mass - np.log1p(n) - np.log(n) - log_proposal, -np.inf)
        weight = np.exp(log_weight - np.max(log_weight))
        return weight / np.sum(weight), np.stack([n, m, variance])

    def _variances(self, n: Floats, m: Floats, share: Floats) -> tuple[Floats, Floats]:
        """Log of the integral over V, and a draw of V, each (n_points,)."""
        sd = np.sqrt(6.0 * self.terms) * self.scale / n
        near = (self.values[0] + self.values[2] - self.values[1]) / n - m**2
        most = 1.0 - m**2
        low = np.sqrt(np.clip(near - _AWAY * sd, 0.0, most))
        high = np.sqrt(np.clip(np.maximum(near, 0.0) + _AWAY * sd, 0.0, most))
        low = np.minimum(low, 0.9 * high)
        edges = low[:, None] + (high - low)[:, None] * _PANELS
        nodes, weights = integral_rule(edges[:, :-1].ravel(), edges[:, 1:].ravel(), 8)
        root, width = nodes.reshape(len(n), -1), weights.reshape(len(n), -1)
        variance = root**2
        n, m = n[:, None], m[:, None]
        expected = (
            n * ((1.0 - m) ** 2 + variance) / 4.0,
            n * (1.0 - m**2 - variance) / 2.0,
            n * ((1.0 + m) ** 2 + variance) / 4.0,
        )
        log_value = np.zeros_like(variance)
        for value, each in zip(self.values.tolist(), expected, strict=True):
            log_value += _log_density((value - each) / self.scale, self.terms)
        top = np.max(log_value, axis=1, keepdims=True)
        # Uniform in the root of V over 0..sqrt(1 - m^2).
        mass = np.exp(log_value - top) * width
        cumulative = np.cumsum(mass, axis=1)
        total = cumulative[:, -1:]
        # Half of a node's mass lies on either side of it.
        middle = (cumulative - mass / 2.0) / total
        place = np.clip(np.sum(middle < share[:, None], axis=1), 1, middle.shape[1] - 1)[:, None]
        before, after = (np.take_along_axis(middle, place - back, 1)[:, 0] for back in (1, 0))
        first, last = (np.take_along_axis(root, place - back, 1)[:, 0] for back in (1, 0))
        part = np.clip((share - before) / np.maximum(after - before, 1e-300), -1.0, 2.0)
        drawn = np.clip(first + (last - first) * part, 0.0, None)
        return (np.log(total) + top)[:, 0] - np.log(np.maximum(most, 1e-300)) / 2.0, drawn**2


def _log_density(distance: Floats, terms: int) -> Floats:
    """Log density of the noise at distances in scales, looked up: a table is many times as fast."""
    table = _table(terms)
    place = np.minimum(np.abs(distance) * _KNOTS_PER_SCALE, len(table) - 2.0)
    knot = place.astype(np.int64)
    beyond = np.maximum(np.abs(distance) - _FARTHEST, 0.0)
    before = table[knot]
    looked_up: Floats = before + (table[knot + 1] - before) * (place - knot) - beyond
    return looked_up


@cache
def _table(terms: int) -> Floats:
    knots = np.arange(_FARTHEST * _KNOTS_PER_SCALE + 2.0) / _KNOTS_PER_SCALE
    return log_density_of_sum(knots, terms)
