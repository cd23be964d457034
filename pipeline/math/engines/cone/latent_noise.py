r"""The law of noise on a cone of moments, its two matrices latent: log density and gradient.

Released are :math:`y = m + (P - Q) / \lambda` of moments m, with P and Q independent, of density
:math:`e^{-P_{00}}` on the cone (``cone_noise``). The density of P - Q has no closed form: both are latent.
With points :math:`x_i` of the unit ball of :math:`\mathbb{R}^m`, P is :math:`t\, x_i^T x_j`, and by rotation
the points are rows of a lower triangle. A point of the ball is the first m coordinates of one of the sphere
of :math:`\mathbb{R}^{m + 2}`, so that with standard normal g, chi and exponential numbers

.. math:: x_k = (g_{k1}, \dots, \chi_k, 0, \dots) / \sqrt{|g_k|^2 + \chi_k^2 + 2 E_k}, \quad
    t \sim \mathrm{Gamma}(D), \quad \chi_k \sim \chi_{d + 1 - k}, \quad E_k \sim \mathrm{Exp}(1), \quad
    k = 0..d - 1 \qquad (1)

whose coordinates, g and the logarithms of the others, have no walls.

**Approximation.** Given P and Q the moments would be known, and where noise hides their scatter chains would
be held to a thin set. So a share h of the variance is taken for normal noise with the covariance C of P - Q:

.. math:: y = m + \bigl(\sqrt{1 - h}\, (P - Q) + \sqrt h\, C^{1/2} \xi\bigr) / \lambda,
    \quad \xi \sim \mathrm{Normal}(0, I) \qquad (2)

Means and covariances are exact, as are third moments, which are 0; excess kurtosis is :math:`(1 - h)^2` of
what it is. Of a variable with excess kurtosis k the divergence is about :math:`(2 h k)^2 / 48` nats. By
the chain rule of divergences, that of (2) from the law is what posteriors differ by at most, on average
over releases.

====== ============== ================================= =================
symbol in the code    meaning                           shape
====== ============== ================================= =================
y      ``values``     released moments                  (n_cells, D)
C      ``covariance`` of the noise                      (D, D)
x_k    ``points``     rows of the triangle              (d, size, b)
====== ============== ================================= =================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
    from suffice.typing import Floats

SHARE = 0.2
"""h: the part of the noise's variance that is taken for normal."""
SQUARES_OF_ROUNDING = 12.0
"""Sheppard: the rounding of a value to whole steps adds 1 / 12 to its expected square."""


@dataclass(frozen=True, kw_only=True)
class ConePoints:
    """The coordinates (1) of one matrix of the cone.

    Attributes
    ----------
    columns : int
        d.
    linear : bool
        Whether there are first moments: then row 0 is a fixed point of the sphere.
    """

    columns: int
    linear: bool

    @property
    def size(self) -> int:
        """Columns of the triangle."""
        return self.columns + int(self.linear)

    @property
    def n_components(self) -> int:
        """D."""
        return self.size * (self.size + 1) // 2 + int(not self.linear)

    @property
    def n_coordinates(self) -> int:
        """Of t, the entries below the diagonal, chi and E."""
        return 1 + len(self.off[0]) + 2 * self.columns

    @property
    def freedom(self) -> Floats:
        """Degrees of freedom of chi, (d,)."""
        return np.arange(self.columns + 1.0, 1.0, -1.0, dtype=np.float64)

    @cached_property
    def off(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where entries beside the last one of a row stand."""
        rows, entries = np.tril_indices(self.columns, int(self.linear) - 1, self.size)
        return rows, entries

    @cached_property
    def last(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the last entries of rows stand."""
        rows = np.arange(self.columns)
        return rows, rows + int(self.linear)

    @cached_property
    def above(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where entries on and above the diagonal of the Gram matrix stand."""
        rows, columns = np.triu_indices(self.columns)
        return rows, columns

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw coordinates (n_coordinates, n)."""
        t = rng.standard_gamma(self.n_components, n)
        off = rng.standard_normal((len(self.off[0]), n))
        chi = np.sqrt(rng.chisquare(np.repeat(self.freedom[:, None], n, axis=1)))
        exponential = rng.standard_exponential((self.columns, n))
        return np.concatenate([np.log(t)[None], off, np.log(chi), np.log(exponential)])

    def centre(self) -> Floats:
        """Return about the means of coordinates, (n_coordinates,)."""
        t, off = np.log(self.n_components), np.zeros(len(self.off[0]))
        return np.concatenate([[t], off, 0.5 * np.log(self.freedom), np.full(self.columns, -np.euler_gamma)])

    def spread(self) -> Floats:
        """Return about the standard deviations of coordinates, (n_coordinates,)."""
        t, off = self.n_components**-0.5, np.ones(len(self.off[0]))
        return np.concatenate([[t], off, (2.0 * self.freedom) ** -0.5, np.ones(self.columns)])

    def at(self, x: Floats) -> PointsOfCone:
        """Return the matrices at coordinates (n_coordinates, b), with their log densities."""
        d, off = self.columns, len(self.off[0])
        t, chi, twice = np.exp(x[0]), np.exp(x[1 + off : 1 + off + d]), 2.0 * np.exp(x[1 + off + d :])
        raw = np.zeros((d, self.size, x.shape[1]))
        raw[self.off], raw[self.last] = x[1 : 1 + off], chi
        length = np.sqrt(np.einsum("kib,kib->kb", raw, raw) + twice)
        points = raw / length[:, None]
        gram = np.einsum("kib,lib->klb", points, points)
        parts = [np.ones((1, x.shape[1])), *([points[:, 0]] if self.linear else []), gram[self.above]]
        components = np.concatenate(parts)
        # Gamma(D) of t, and of chi and E, each times what the logarithm stretches.
        value = self.n_components * x[0] - t - 0.5 * np.einsum("ib,ib->b", x[1 : 1 + off], x[1 : 1 + off])
        value += self.freedom @ x[1 + off : 1 + off + d] - 0.5 * np.einsum("kb,kb->b", chi, chi)
        value += x[1 + off + d :].sum(axis=0) - 0.5 * twice.sum(axis=0)
        return PointsOfCone(
            of=self,
            t=t,
            chi=chi,
            twice=twice,
            length=length,
            points=points,
            components=components,
            value=value,
            off=x[1 : 1 + off],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsOfCone:
    """Matrices of the cone: t, components over t (D, b), log densities (b,), and how they came."""

    of: ConePoints
    t: Floats
    chi: Floats
    twice: Floats
    length: Floats
    points: Floats
    components: Floats
    value: Floats
    off: Floats

    def pulled(self, by: Floats) -> Floats:
        """Return the gradient by coordinates, from that by components (D, b), and of `value`."""
        of, points = self.of, self.points
        d, first = of.columns, 1 + (of.columns if of.linear else 0)
        weights = np.zeros((d, d, by.shape[1]))
        weights[of.above] = by[first:]
        weights = weights + np.swapaxes(weights, 0, 1)
        # d <W, X X^T> = 2 W X dX; `weights` has the diagonal twice, and halves of the others on both sides.
        by_points = np.einsum("klb,lib->kib", weights, points)
        if of.linear:
            by_points[:, 0] += by[1:first]
        by_points *= self.t
        # x = r / |r|: what goes along x changes nothing.
        along = np.einsum("kib,kib->kb", by_points, points)
        by_raw = (by_points - along[:, None] * points) / self.length[:, None]
        by_t = self.t * np.einsum("ib,ib->b", by, self.components) + of.n_components - self.t
        by_chi = by_raw[of.last] * self.chi + of.freedom[:, None] - self.chi**2
        # |r|^2 has 2 E, of which the logarithm is the coordinate.
        by_exponential = -along / self.length**2 * self.twice / 2.0 + 1.0 - self.twice / 2.0
        return np.concatenate([by_t[None], by_raw[of.off] - self.off, by_chi, by_exponential])


@dataclass(frozen=True, kw_only=True)
class LatentConeNoise:
    """What one release of moments says of them, given coordinates of P and Q.

    Attributes
    ----------
    points : ConePoints
    values : ndarray of shape (n_cells, D), float64
        Released components as moments in half ranges.
    coefficients : ndarray of shape (D, n_moments), float64
        The map from N, sums and products to these: the identity, but for what rounding adds to squares, and
        without first moments where none are released.
    covariance : ndarray of shape (D, D), float64
        Of the noise on them.
    unit : float
        1 / rate.
    """

    points: ConePoints
    values: Floats
    coefficients: Floats
    covariance: Floats
    unit: float

    @classmethod
    def of(cls, noise: ConeNoise, values: NDArray[np.object_]) -> Self:
        """Return what released whole numbers (n_cells, D) say."""
        # In units of squared half ranges every component is a moment.
        steps = float(noise.steps) ** 2
        every = list(combinations_with_replacement(range(noise.columns + 1), 2))
        coefficients = np.zeros((noise.n_components, len(every)))
        for place, (i, j) in enumerate(noise.pairs):
            coefficients[place, every.index((i, j))] = 1.0
            if i == j > 0:
                coefficients[place, 0] = 1.0 / SQUARES_OF_ROUNDING / steps
        return cls(
            points=ConePoints(columns=noise.columns, linear=noise.linear),
            values=values.astype(np.float64) / steps,
            coefficients=coefficients,
            covariance=noise.covariance / steps**2,
            unit=1.0 / float(noise.rate),
        )

    def take(self, cells: NDArray[np.int64]) -> Self:
        """Return that of some cells."""
        return replace(self, values=self.values[cells])

    @property
    def n_coordinates(self) -> int:
        """Of P, then Q."""
        return 2 * self.points.n_coordinates

    @property
    def precision_of_moments(self) -> Floats:
        """One over the variances of the noise on moments, (n_moments,); 0 of what is not released."""
        released = self.coefficients.round() != 0.0
        precision: Floats = (released / np.diag(self.covariance)[:, None]).sum(axis=0)
        return precision

    @cached_property
    def precision(self) -> Floats:
        """W: the inverse of h C."""
        return np.linalg.inv(SHARE * self.covariance).astype(np.float64)

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw coordinates (n_coordinates, n)."""
        return np.concatenate([self.points.draw(n, rng), self.points.draw(n, rng)])

    def centre(self) -> Floats:
        """Return about their means, (n_coordinates,)."""
        return np.tile(self.points.centre(), 2)

    def spread(self) -> Floats:
        """Return about their standard deviations, (n_coordinates,)."""
        return np.tile(self.points.spread(), 2)

    def __call__(self, moments: Floats, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log density of (2), up to a constant, and its gradients.

        Parameters
        ----------
        moments : ndarray of shape (n_moments, b), float64
            The chains of a cell follow one another.
        x : ndarray of shape (n_coordinates, b), float64

        Returns
        -------
        value : ndarray of shape (b,), float64
        by_moments : ndarray of shape (n_moments, b), float64
        by_coordinates : ndarray of shape (n_coordinates, b), float64
        """
        half, b = len(x) // 2, x.shape[1]
        # P and Q side by side.
        both = self.points.at(np.concatenate([x[:half], x[half:]], axis=1))
        matrices = both.t * both.components
        factor = self.unit * np.sqrt(1.0 - SHARE)
        apart = np.repeat(self.values.T, b // len(self.values), axis=1) - self.coefficients @ moments
        apart -= factor * (matrices[:, :b] - matrices[:, b:])
        weighted = self.precision @ apart
        value = both.value[:b] + both.value[b:] - 0.5 * np.einsum("ib,ib->b", apart, weighted)
        by = factor * weighted
        slopes = both.pulled(np.concatenate([by, -by], axis=1))
        return value, self.coefficients.T @ weighted, np.concatenate([slopes[:, :b], slopes[:, b:]])
