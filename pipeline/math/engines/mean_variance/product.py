r"""The product of a prior and of the likelihoods of disjoint data sets that share a mean and a variance.

Model: each data set r has its own latent rows, their number and noise; given the parameters they are
independent,

.. math:: \log p(x, \lambda \mid y) = \log f(x, \lambda) + \sum_r \log p(y_r \mid x, \lambda) + \text{const}
    \qquad (1)

with the prior f (``prior_on_grid``) and the likelihoods (``likelihood``); one data set is a product of one.
Where sums are known without noise,

.. math:: \log p(\text{rows} \mid x, \lambda) = -\frac n 2 \lambda
    - \frac{e^{-\lambda}}{2} \bigl(q - t^2 / n + n (x - t / n)^2\bigr) \qquad (2)

The question is (1) on rectangles, for ``distribution``, and which moments exist: those of which the
integrals

.. math:: \int |x|^k \, p(x, \lambda \mid y) \, d\lambda \, dx, \qquad
    \int e^{k \lambda} \, p(x, \lambda \mid y) \, d\lambda \, dx \qquad (3)

fall towards the ends of the grid. Likelihoods are bounded, but for a variance of 0: what falls under the
prior does under the posterior.

Method and error: log likelihoods are far smoother than posteriors, so they are kept as polynomials on a few
rectangles (``Surface``): their last coefficients times the share of mass of the rectangle are below 1e-4
(1e-2 of clipped records). The many nodes that priors of any form need then cost next to nothing. Where
polynomials differ from (1) by more than 1 % at the heaviest nodes, (1) itself is taken. A data set of which
1e-4 (clipped: 1e-3) of the mass rests on the outermost noise that its grid covers is reported as
unresolved.

======== ================== ================================== ================== =====================
symbol   in the code        meaning                            shape              unit
======== ================== ================================== ================== =====================
x        ``mean``,          means                              (n, p)             half ranges
         ``first``
lambda   ``log_variance``,  log variances                      (n, q)             none
         ``second``
n, t, q  ``n``, ``total``,  rows, sum and sum of squares       scalars            rows, half ranges
         ``squares``
======== ================== ================================== ================== =====================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.mean_variance.distribution import (
    PANELS,
    POINTS,
    Panels,
    around,
    coefficients,
    covering,
    halves,
    highest,
    node_weights,
    overlaps,
    polynomials,
    positions,
    thinned,
)
from suffice.pipeline.math.engines.mean_variance.likelihood import FEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.mean_variance.distribution import Exists, LogDensity
    from suffice.pipeline.math.engines.mean_variance.likelihood import LatentRows
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import DensityOnGrid
    from suffice.typing import Floats


_END = 95.0
_HUGE, _TINY = 1e70, -320.0
_GRID = np.arange(-200.0, 200.5, 0.5)
_OCTAVES = np.exp2(np.arange(-40.0, 140.0, 0.5))


@dataclass(frozen=True, slots=True)
class Exact:
    """The log of likelihood and prior, but for a constant, of sums that are known, in half ranges."""

    prior: DensityOnGrid
    n: float
    total: float
    squares: float

    def __call__(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log densities at positions (n, p) and (n, q): (n, p, q)."""
        product = self.prior.log_density(mean, log_variance)
        if self.n > 0.0:
            average = self.total / self.n
            # (2): q - t^2 / n is the sum of squares about the average.
            within = max(self.squares - self.total * average, 0.0)
            about = within + self.n * (np.clip(mean, -_HUGE, _HUGE) - average) ** 2
            scale = np.exp(-np.maximum(log_variance, _TINY))
            product = product - self.n * log_variance[:, None, :] / 2.0
            product = product - about[:, :, None] * scale[:, None, :] / 2.0
        return product

    @property
    def edges(self) -> tuple[Floats, Floats]:
        """Positions along both sides between which nothing but the product's own peak is narrow."""
        ladders = [[self.prior.edges[0]], [self.prior.edges[1]]]
        if self.n > 0.0:
            average = self.total / self.n
            variance = max(self.squares / self.n - average**2, 1e-12)
            ladders[0].append(average + math.sqrt(variance / self.n) * PANELS)
            # The log of a variance of n rows has about the standard deviation sqrt(2 / n).
            ladders[1].append(math.log(variance) + math.sqrt(2.0 / self.n) * PANELS)
        first, second = (
            thinned(ladder, self.prior.first[side], self.prior.last[side])
            for side, ladder in enumerate(ladders)
        )
        return first, second


def exists(prior: DensityOnGrid, product: LogDensity) -> Exists:
    """Which moments exist: those of which the integrals fall towards the ends of the grid.

    Likelihoods are bounded, but for a variance of 0: what falls under the prior does under the posterior.
    """
    ends = [
        [sign for sign, is_open in zip((-1.0, 1.0), prior.is_open[0], strict=True) if is_open],
        [1.0] if prior.is_open[1][1] else [],
    ]
    of_mean, of_variance = (
        [
            all(
                _falls(prior, prior.log_density, side, sign, degree)
                or _falls(prior, product, side, sign, degree)
                for sign in ends[side]
            )
            for degree in (1.0, 2.0)
        ]
        for side in (0, 1)
    )
    return (of_mean[0], of_mean[1]), (of_variance[0], of_variance[1])


def _falls(prior: DensityOnGrid, density: LogDensity, side: int, sign: float, degree: float) -> bool:
    """Whether the integral of a power of a parameter falls towards an end of the grid."""
    if side == 0:
        logs = np.array([_END - 1.0, _END])
        across = np.unique(np.clip(_GRID, prior.lowest, prior.last[1]))
        value = density(sign * np.exp(logs)[None], across[None])[0]
        # (3): x^k dx = x^(k + 1) d log x.
        size = np.logaddexp.reduce(value, axis=1) + (degree + 1.0) * logs
    else:
        end = min(prior.last[1], 2.0 * _END)
        logs = np.array([end - 2.0, end])
        mean = np.concatenate([-_OCTAVES[::-1], _OCTAVES])
        mean = np.unique(np.clip(mean, prior.first[0], prior.last[0]))
        value = density(mean[None], logs[None])[0]
        size = np.logaddexp.reduce(value + np.log(np.gradient(mean))[:, None], axis=0) + degree * logs
    return bool(size[1] < size[0] or np.isneginf(size[1]))


SMOOTH, ROUGH = 1e-4, 1e-2
"""Bounds of the last coefficients of log densities, times the share of mass of a rectangle."""
_MOST_ROUNDS = 20
_MOST_RECTANGLES = 1500
_EDGE = 0.3
"""By how much of the last step between nodes a density may rise up to the edge."""
_LARGEST, _LEAST = 700.0, -1e12
_NATS, _DEEP = 60.0, 1000.0
"""Nats below the highest product that may matter; and below all of those that do not, in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Polynomials on rectangles that do not overlap.

    Attributes
    ----------
    left, right : ndarray of shape (n, 2), float64
        Lower and upper corners.
    coefficients : ndarray of shape (n, POINTS, POINTS), float64
        Of the products of Legendre polynomials along both sides.
    highest : ndarray of shape (n,), float64
        What the values do not exceed.
    """

    left: Floats
    right: Floats
    coefficients: Floats
    highest: Floats

    @classmethod
    def of(
        cls,
        log_likelihood: LogDensity,
        log_prior: LogDensity,
        left: Floats,
        right: Floats,
        tolerance: float = SMOOTH,
    ) -> Self:
        """Cut rectangles until the log likelihood is a polynomial wherever both together matter."""
        nodes = positions(left, right)
        value, prior = np.maximum(log_likelihood(*nodes), _LEAST), log_prior(*nodes)
        # Where nothing is, the depth of it does not matter, but polynomials of it would overshoot.
        product = value + prior
        least = float(np.min(value[product >= np.max(product) - _NATS])) - _DEEP
        value = np.maximum(value, least)
        for _ in range(_MOST_ROUNDS):
            # An error e of a log density changes the mass of its rectangle by the factor e^e.
            rough = _roughness(value) * _importance(left, right, value, prior)[:, None]
            cut = np.any(rough > tolerance, axis=1)
            if not np.any(cut) or len(left) > _MOST_RECTANGLES:
                break
            lower, upper = halves(left[cut], right[cut], np.argmax(rough[cut], axis=1))
            nodes = positions(lower, upper)
            left, right = np.concatenate([left[~cut], lower]), np.concatenate([right[~cut], upper])
            value = np.concatenate([value[~cut], np.maximum(log_likelihood(*nodes), least)])
            prior = np.concatenate([prior[~cut], log_prior(*nodes)])
        return cls(
            left=left,
            right=right,
            coefficients=coefficients(value),
            highest=np.max(value, axis=(1, 2)) + _rise(value),
        )

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """Values at positions (n, p) and (n, q), of which each n lie in one rectangle: (n, p, q)."""
        middle = np.stack([np.mean(first, axis=1), np.mean(second, axis=1)], axis=1)
        # Rectangles do not overlap: the middle of the positions says which one they are in.
        inside = np.ones((len(middle), len(self.left)), dtype=np.bool_)
        for side in (0, 1):
            inside &= middle[:, side, None] >= self.left[:, side]
            inside &= middle[:, side, None] <= self.right[:, side]
        rectangle = np.argmax(inside, axis=1)
        low, high = self.left[rectangle], self.right[rectangle]
        along_first, along_second = (
            polynomials((position - low[:, side, None]) / (high - low)[:, side, None])
            for side, position in enumerate((first, second))
        )
        value = along_first @ self.coefficients[rectangle] @ along_second.transpose(0, 2, 1)
        # A polynomial that overshoots at an edge would add mass from nowhere.
        bounded: Floats = np.minimum(value, self.highest[rectangle, None, None])
        return bounded


def _roughness(value: Floats) -> Floats:
    """The size of the last coefficients along either side: (n, 2)."""
    size = np.abs(coefficients(value))
    return np.stack([np.max(size[:, -2:, :], axis=(1, 2)), np.max(size[:, :, -2:], axis=(1, 2))], axis=1)


def _rise(value: Floats) -> Floats:
    """How far a value may lie above those of all nodes, at the edges: (n,)."""
    along = np.abs(value[:, [0, -1], :] - value[:, [1, -2], :])
    across = np.abs(value[:, :, [0, -1]] - value[:, :, [1, -2]])
    return np.asarray(_EDGE * (np.max(along, axis=(1, 2)) + np.max(across, axis=(1, 2))), dtype=np.float64)


def _importance(left: Floats, right: Floats, value: Floats, prior: Floats) -> Floats:
    """About the largest share of all mass that a rectangle may have: (n,)."""
    area = np.sum(np.log(right - left), axis=1)
    with np.errstate(invalid="ignore"):
        product = value + prior + area[:, None, None]
    product = np.where(np.isnan(product), -np.inf, product)
    top = float(np.max(product))
    total = top + float(np.log(np.sum(node_weights() * np.exp(product - top))))
    # The largest value of a polynomial may lie between its outermost nodes and the edge.
    highest = np.max(product, axis=(1, 2)) + np.minimum(_rise(value), _LARGEST)
    importance: Floats = np.exp(np.minimum(highest - total, 0.0))
    return importance


_TOLERABLE, _TOLERABLE_CLIPPED = 1e-4, 1e-3
"""Mass that may rest on the outermost noise; what is beyond it has far less."""
_NEGLIGIBLE = 1e-9
_IMPOSSIBLE = 1e-11
"""Posterior probability below which a number of rows counts as impossible."""
_COMPARED, _DISAGREES = 200, 0.01
_OUTLINE = 16
_CONTRADICTION = 250.0
"""Nats that the likelihood of clipped records may lose where its product with the prior is highest."""
_SOME = [0, 2, 4, 6, 8]


class ContradictionError(Exception):
    """A prior leaves of a likelihood of clipped records next to nothing."""


@dataclass(frozen=True, slots=True)
class Product:
    """The log of prior and likelihoods of one cell, but for a constant.

    Attributes
    ----------
    prior : DensityOnGrid
    data_sets : sequence of LatentRows
        What the rows of each may have been.
    """

    prior: DensityOnGrid
    data_sets: Sequence[LatentRows]

    @property
    def is_clipped(self) -> bool:
        """Whether records are taken for clipped."""
        return any(rows.clipped is not None for rows in self.data_sets)

    def __call__(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log densities at positions (n, p) and (n, q): (n, p, q)."""
        product = self.log_likelihood(mean, log_variance)
        product += self.prior.log_density(mean, log_variance)
        return product

    def log_likelihood(self, mean: Floats, log_variance: Floats) -> Floats:
        """Logs of the product of likelihoods alone: (n, p, q)."""
        # (1).
        first, *others = self.data_sets
        log_likelihood: Floats = first.log_likelihood(mean, log_variance)
        for rows in others:
            log_likelihood += rows.log_likelihood(mean, log_variance)
        return log_likelihood

    def surface(self, left: Floats, right: Floats) -> Surface:
        """The log likelihood wherever the product matters: on rectangles that cover those given."""
        edges = [
            thinned(
                [rows.ladders[side][0][_SOME] for rows in self.data_sets],
                float(np.min(left[:, side])),
                float(np.max(right[:, side])),
            )
            for side in (0, 1)
        ]
        corners = [
            np.stack([grid.ravel() for grid in np.meshgrid(*part, indexing="ij")], axis=1)
            for part in ([edge[:-1] for edge in edges], [edge[1:] for edge in edges])
        ]
        coarse = covering((corners[0], corners[1]), (left, right))
        return Surface.of(
            self.log_likelihood, self.prior.log_density, *coarse, ROUGH if self.is_clipped else SMOOTH
        )

    def fine(self) -> tuple[Floats, Floats]:
        """Rectangles, as the prior divides the grid, in which the product may matter."""
        edges = [
            thinned(
                [
                    self.prior.edges[side],
                    *(ladder for rows in self.data_sets for ladder in rows.ladders[side]),
                ],
                self.prior.first[side],
                self.prior.last[side],
            )
            for side in (0, 1)
        ]
        if self.is_clipped:
            return around(*self._outlined(edges))
        return around(self, (edges[0], edges[1]))

    def _outlined(self, edges: list[Floats]) -> tuple[LogDensity, tuple[Floats, Floats]]:
        """The product, its likelihood interpolated between few positions as it takes long to work out.

        Raises
        ------
        ContradictionError
        """
        from scipy.interpolate import RegularGridInterpolator

        few = []
        for side, edge in enumerate(edges):
            ladders = [ladder for rows in self.data_sets for ladder in rows.ladders[side]]
            inner = np.concatenate([edge[:: max(1, len(edge) // _OUTLINE)], edge[-1:], *ladders])
            few.append(np.unique(np.clip(inner, edge[0], edge[-1])))
        peak, scale = highest(self, (few[0], few[1]))
        first, second = (
            np.unique(np.clip(np.append(given, peak[side] + scale[side] * PANELS), given[0], given[-1]))
            for side, given in enumerate(few)
        )
        value = np.maximum(self.log_likelihood(first[None], second[None])[0], _LEAST)
        # The likelihood at the peak of the product: far below its own peak, the prior contradicts it.
        at_peak = float(self.log_likelihood(peak[:1][None], peak[1:][None])[0, 0, 0])
        if not at_peak > np.max(value) - _CONTRADICTION:
            raise ContradictionError
        outline = RegularGridInterpolator((first, second), value)

        def density(mean: Floats, log_variance: Floats) -> Floats:
            both = np.broadcast_arrays(mean[:, :, None], log_variance[:, None, :])
            log_density: Floats = outline(np.stack(both, axis=-1)) + self.prior.log_density(
                mean, log_variance
            )
            return log_density

        return density, (np.union1d(edges[0], first), np.union1d(edges[1], second))

    def unresolved(self, surface: Surface) -> list[int]:
        """Data sets of which more than next to nothing rests on the outermost noise that the grid covers."""
        first, second, share = self._heaviest(surface)
        tolerable = _TOLERABLE_CLIPPED if self.is_clipped else _TOLERABLE
        surfaces = []
        for number, rows in enumerate(self.data_sets):
            with np.errstate(invalid="ignore"):
                # What share of the likelihood rests on the outermost noise, at the heaviest place of each
                # rectangle.
                outer = rows.outer(first, second) - rows.log_likelihood(first, second)
            # Not a number where the data set's likelihood is 0 to all digits.
            if not np.sum(share * np.exp(np.minimum(outer[:, 0, 0], 0.0))) < tolerable:
                surfaces.append(number)
        return surfaces

    def _heaviest(self, surface: Surface) -> tuple[Floats, Floats, Floats]:
        """Of every rectangle: the place (n, 1) of most of its mass, and that mass."""
        first, second = positions(surface.left, surface.right)
        value = surface(first, second) + self.prior.log_density(first, second)
        # Mass is density times area.
        value += np.sum(np.log(surface.right - surface.left), axis=1)[:, None, None]
        share = (node_weights() * np.exp(value - np.max(value))).reshape(len(first), -1)
        share /= np.sum(share)
        kept = np.flatnonzero(np.sum(share, axis=1) > _NEGLIGIBLE)
        most = np.argmax(share[kept], axis=1)
        return (
            first[kept, most // POINTS][:, None],
            second[kept, most % POINTS][:, None],
            np.sum(share[kept], axis=1),
        )

    def panels(self, surface: Surface, fine: tuple[Floats, Floats]) -> tuple[Panels, Exists]:
        """Divide the grid, and tell which moments there are."""
        which_exist = exists(self.prior, Exact(self.prior, float(self._least_rows(surface)), 0.0, 1.0))
        left, right = overlaps(fine, (surface.left, surface.right))

        def product(first: Floats, second: Floats) -> Floats:
            value: Floats = surface(first, second) + self.prior.log_density(first, second)
            return value

        divided = Panels.of(product, left, right)
        # Polynomials may overshoot between the positions that they were made from: then nothing is saved.
        if not self._agrees(divided):
            divided = Panels.of(self, left, right)
        return divided, which_exist

    def _agrees(self, panels: Panels) -> bool:
        """Whether the densities of rectangles are those of the product itself, in about all of the mass."""
        share = (node_weights() * panels.shares()[0]).reshape(len(panels.left), -1)
        mass = np.sum(share, axis=1)
        kept = np.argsort(-mass)[:_COMPARED]
        most = np.argmax(share[kept], axis=1)
        first, second = positions(panels.left[kept], panels.right[kept])
        rows = np.arange(len(kept))
        exact = self(first[rows, most // POINTS][:, None], second[rows, most % POINTS][:, None])[:, 0, 0]
        off = np.abs(exact - panels.log_value.reshape(len(share), -1)[kept, most])
        return bool(mass[kept] @ np.minimum(off, 1.0) < _DISAGREES)

    def _least_rows(self, surface: Surface) -> int:
        """The fewest rows, of all data sets together, that are not all but impossible."""
        first, second, share = self._heaviest(surface)
        # The probability of so many rows in all, given the parameters: sums of independent numbers.
        in_all = np.zeros((FEW + 1, len(share)))
        in_all[0] = 1.0
        for rows in self.data_sets:
            whole = rows.log_likelihood(first, second)
            in_this = np.zeros_like(in_all)
            for n, of_n in rows.few(first, second):
                in_this[n] = np.exp(np.minimum(of_n - whole, 0.0))[:, 0, 0]
            # P(sum = n) = sum_k P(all before = n - k) P(this = k).
            in_all = np.stack([np.sum(in_all[: n + 1] * in_this[n::-1], axis=0) for n in range(FEW + 1)])
        possible = np.flatnonzero(np.cumsum(in_all @ share) > _IMPOSSIBLE)
        return int(possible[0]) if len(possible) else FEW + 1
