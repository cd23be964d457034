r"""Posteriors of a normal's mean and variance under any prior, by quadrature: free of draws and of MCMC.

Under a conjugate prior :math:`\pi_k` the noise-aware posterior :math:`p_k(\theta \mid y)` is a mixture of
conjugate laws and has an evidence :math:`Z_k`, so that the likelihood of the noisy statistics is

.. math::
    p(y \mid \theta) = \frac{\sum_k c_k Z_k \, p_k(\theta \mid y)}{\sum_k c_k \pi_k(\theta)}

for any :math:`c_k > 0`, as in ``any_prior``; :math:`c_k = 1 / Z_k`. One conjugate prior that is taken is
somewhat wider than the given prior p and where that is, others have smaller variances, where p has. Where
the product with p lies so far out that no posterior is resolved, another one is taken whose prior has the
slope of p there; and so on. What is left where no posterior is resolved is hardly anything, and dropped:
there the mixtures are inaccurate, and p may be many times the conjugate priors. Of the plug-in posterior the
likelihood is a formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.normal import interval, noisy_moments, project
from suffice.pipeline.planes.densities import DensityOnPlane, Independent, JointDensity
from suffice.pipeline.planes.law import PlaneLaw
from suffice.pipeline.planes.panels import (
    PANELS,
    POINTS,
    Panels,
    around,
    covering,
    node_weights,
    overlaps,
    places,
    thinned,
)
from suffice.pipeline.planes.rows import FEW, LatentRows
from suffice.pipeline.planes.surface import Surface
from suffice.pipeline.priors import NormalInverseGamma

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.n_prior import NPrior
    from suffice.pipeline.planes.law import Exists
    from suffice.pipeline.planes.panels import LogDensity
    from suffice.pipeline.release import NoisyStatistic

    Floats: TypeAlias = NDArray[np.float64]

_TOLERABLE = 1e-4
_NEGLIGIBLE = 1e-9
_IMPOSSIBLE = 1e-11
"""Posterior probability below which a number of rows counts as impossible."""
_COMPARED, _DISAGREES = 200, 0.01
_DEPTHS = (28.0, 70.0, 250.0, 1000.0)
"""Nats of noise that grids cover, until it is enough."""
_SMALLEST, _LARGEST, _FARTHEST = 1e-12, 1e11, 9e5
_END = 95.0
_SOME = [0, 2, 4, 6, 8]
_HUGE, _TINY, _NOTHING = 1e70, -320.0, -26.0
_GRID = np.arange(-200.0, 200.5, 0.5)
_OCTAVES = np.exp2(np.arange(-40.0, 140.0, 0.5))


def any_joint_law(
    statistic: NoisyStatistic, prior: Independent | JointDensity, n_prior: NPrior | None
) -> PlaneLaw:
    """Return the law of a normal family's mean and variance; plug-in where there is no prior of N.

    Raises
    ------
    PriorError
        Where the family is another, the prior is improper or leaves the parameters' domain, or prior and
        released values are so far apart that the posterior cannot be resolved.
    """
    family, constants = FAMILIES[statistic.plan.family], statistic.plan.parameters
    if family.prior is not NormalInverseGamma:
        message = (
            f"{statistic.plan.name} is {family.name}: {type(prior).__name__} is a prior of a mean and a "
            f"variance, of normal and lognormal statistics. Its prior must be {family.prior.__name__}"
        )
        raise PriorError(message)
    centre, half_range = interval(constants)
    plane = DensityOnPlane.of(prior, centre, half_range)
    default: Any = family.default_prior(constants)
    names = family.plug_in(statistic, default).parameters
    cells = _plug_in(statistic, plane) if n_prior is None else _noise_aware(statistic, plane, n_prior)
    return PlaneLaw.of((names[0], names[1]), (centre, half_range), cells)


def prior_law(
    prior: Independent | JointDensity, unit: tuple[float, float], names: tuple[str, str]
) -> PlaneLaw:
    """Return the law of a prior itself; `unit` is the centre and the half range."""
    plane = DensityOnPlane.of(prior, *unit)
    alone = _Exact(plane, 0.0, 0.0, 0.0)
    return PlaneLaw.of(names, unit, [(Panels.of(alone, *around(alone, alone.edges)), exists(plane, alone))])


def _low(plane: DensityOnPlane) -> float:
    """A log variance towards the lower end of where the prior is."""
    return plane.centre[1] - max(0.0, 2.0 * plane.width[1] - 1.0)


def conjugate_alike(plane: DensityOnPlane, unit: tuple[float, float]) -> NormalInverseGamma:
    """Return a conjugate prior somewhat wider than another and where that is, in the column's unit."""
    loc, (of_mean, of_variance) = plane.centre[0], plane.width
    concentration = max(1.0, 0.25 / max(of_variance, 1e-5) ** 2)
    low = _low(plane)
    precision = math.exp(_bounded(low - 2.0 * math.log(max(2.0 * of_mean, 1e-6))))
    return _conjugate(unit, loc, precision, concentration, concentration * math.exp(_bounded(low)))


def _conjugate(
    unit: tuple[float, float], loc: float, precision: float, concentration: float, scale: float
) -> NormalInverseGamma:
    """Return a conjugate prior, stated in half ranges, within what noise-aware posteriors take."""
    centre, half_range = unit
    precision, concentration, scale = (
        float(np.clip(value, _SMALLEST, _LARGEST)) for value in (precision, concentration, scale)
    )
    loc = float(np.clip(loc, -_FARTHEST, _FARTHEST))
    return NormalInverseGamma(centre + half_range * loc, precision, concentration, half_range**2 * scale)


def _bounded(exponent: float) -> float:
    return min(max(exponent, -60.0), 60.0)


def _plug_in(statistic: NoisyStatistic, plane: DensityOnPlane) -> Iterator[tuple[Panels, Exists]]:
    """Panels of every cell, whose projected sums are taken for exact."""
    sums = project(statistic)
    for n, total, squares in zip(sums.n, sums.total, sums.total_of_squares, strict=True):
        product = _Exact(plane, float(n), float(total), float(squares))
        found = Panels.of(product, *around(product, product.edges))
        share, _ = found.shares()
        lowest = found.left[:, 1] < _NOTHING
        if plane.is_open[1][0] and np.sum((node_weights() * share)[lowest]) > _TOLERABLE:
            message = (
                f"prior {plane.prior}: the released values of {statistic.plan.name}, taken for exact, "
                "leave no variance, and the plug-in posterior is improper: give a prior that excludes a "
                "variance of 0, or take the noise into account"
            )
            raise PriorError(message)
        yield found, exists(plane, product)


def _noise_aware(
    statistic: NoisyStatistic, plane: DensityOnPlane, n_prior: NPrior
) -> Iterator[tuple[Panels, Exists]]:
    """Panels of every cell, from grids of latent rows that cover as much of the noise as it takes."""
    noisy = noisy_moments(statistic, conjugate_alike(plane, interval(statistic.plan.parameters)), n_prior)
    for cell in range(len(noisy.values)):
        for depth in _DEPTHS:
            rows = LatentRows.of(noisy.take(np.array([cell])), depth)
            product = _Product(plane, rows)
            fine = product.fine()
            surface = product.surface(*fine)
            if product.is_resolved(surface):
                break
        else:
            message = (
                f"prior {plane.prior} and the released values of {statistic.plan.name} are so far apart that "
                "the posterior cannot be resolved: give a prior closer to what is possible, or a narrower "
                "support"
            )
            raise PriorError(message)
        yield product.panels(surface, fine)


@dataclass(frozen=True, slots=True)
class _Product:
    """The log of likelihood and prior of one cell, but for a constant."""

    prior: DensityOnPlane
    rows: LatentRows

    def __call__(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log densities at places (n, p) and (n, q): (n, p, q)."""
        product: Floats = self.rows.log_likelihood(mean, log_variance)
        product += self.prior.log_density(mean, log_variance)
        return product

    def surface(self, left: Floats, right: Floats) -> Surface:
        """The log likelihood wherever the product matters: on rectangles that cover those given."""
        edges = [
            thinned([wide[_SOME]], float(np.min(left[:, side])), float(np.max(right[:, side])))
            for side, (wide, _) in enumerate(self.rows.ladders)
        ]
        corners = [
            np.stack([grid.ravel() for grid in np.meshgrid(*part, indexing="ij")], axis=1)
            for part in ([edge[:-1] for edge in edges], [edge[1:] for edge in edges])
        ]
        coarse = covering((corners[0], corners[1]), (left, right))
        return Surface.of(self.rows.log_likelihood, self.prior.log_density, *coarse)

    def fine(self) -> tuple[Floats, Floats]:
        """Rectangles, as the prior divides the plane, in which the product may matter."""
        edges = [
            thinned(
                [self.prior.edges[side], *self.rows.ladders[side]],
                self.prior.first[side],
                self.prior.last[side],
            )
            for side in (0, 1)
        ]
        return around(self, (edges[0], edges[1]))

    def is_resolved(self, surface: Surface) -> bool:
        """Whether next to nothing rests on the outermost noise that the grid covers."""
        first, second, share, log_likelihood = self._heaviest(surface)
        outer = self.rows.outer(first, second)[:, 0, 0] - log_likelihood
        return bool(np.sum(share * np.exp(np.minimum(outer, 0.0))) < _TOLERABLE)

    def _heaviest(self, surface: Surface) -> tuple[Floats, Floats, Floats, Floats]:
        """Of every rectangle: the place (n, 1) of most of its mass, that mass, and the likelihood there."""
        first, second = places(surface.left, surface.right)
        log_likelihood = surface(first, second)
        value = log_likelihood + self.prior.log_density(first, second)
        value += np.sum(np.log(surface.right - surface.left), axis=1)[:, None, None]
        share = (node_weights() * np.exp(value - np.max(value))).reshape(len(first), -1)
        share /= np.sum(share)
        kept = np.flatnonzero(np.sum(share, axis=1) > _NEGLIGIBLE)
        most = np.argmax(share[kept], axis=1)
        return (
            first[kept, most // POINTS][:, None],
            second[kept, most % POINTS][:, None],
            np.sum(share[kept], axis=1),
            log_likelihood.reshape(len(first), -1)[kept, most],
        )

    def panels(self, surface: Surface, fine: tuple[Floats, Floats]) -> tuple[Panels, Exists]:
        """Divide the plane, and tell which moments there are."""
        found = exists(self.prior, _Exact(self.prior, self._least_rows(surface), 0.0, 1.0))
        left, right = overlaps(fine, (surface.left, surface.right))

        def product(first: Floats, second: Floats) -> Floats:
            value: Floats = surface(first, second) + self.prior.log_density(first, second)
            return value

        divided = Panels.of(product, left, right)
        # Polynomials may overshoot between the places that they were made from: then nothing is saved.
        if not self._agrees(divided):
            divided = Panels.of(self, left, right)
        return divided, found

    def _agrees(self, found: Panels) -> bool:
        """Whether the densities of rectangles are those of the product itself, in about all of the mass."""
        share = (node_weights() * found.shares()[0]).reshape(len(found.left), -1)
        mass = np.sum(share, axis=1)
        kept = np.argsort(-mass)[:_COMPARED]
        most = np.argmax(share[kept], axis=1)
        first, second = places(found.left[kept], found.right[kept])
        rows = np.arange(len(kept))
        exact = self(first[rows, most // POINTS][:, None], second[rows, most % POINTS][:, None])[:, 0, 0]
        off = np.abs(exact - found.log_value.reshape(len(share), -1)[kept, most])
        return bool(mass[kept] @ np.minimum(off, 1.0) < _DISAGREES)

    def _least_rows(self, surface: Surface) -> float:
        """The fewest rows that are not all but impossible."""
        first, second, share, log_likelihood = self._heaviest(surface)
        below = 0.0
        for n, of_n in self.rows.few(first, second):
            below += float(np.sum(share * np.exp(np.minimum(of_n[:, 0, 0] - log_likelihood, 0.0))))
            if below > _IMPOSSIBLE:
                return n
        return FEW + 1.0


@dataclass(frozen=True, slots=True)
class _Exact:
    """The log of likelihood and prior, but for a constant, of sums that are known, in half ranges."""

    prior: DensityOnPlane
    n: float
    total: float
    squares: float

    def __call__(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log densities at places (n, p) and (n, q): (n, p, q)."""
        product = self.prior.log_density(mean, log_variance)
        if self.n > 0.0:
            average = self.total / self.n
            within = max(self.squares - self.total * average, 0.0)
            about = within + self.n * (np.clip(mean, -_HUGE, _HUGE) - average) ** 2
            scale = np.exp(-np.maximum(log_variance, _TINY))
            product = product - self.n * log_variance[:, None, :] / 2.0
            product = product - about[:, :, None] * scale[:, None, :] / 2.0
        return product

    @property
    def edges(self) -> tuple[Floats, Floats]:
        """Places along both sides between which nothing but the product's own peak is narrow."""
        ladders = [[self.prior.edges[0]], [self.prior.edges[1]]]
        if self.n > 0.0:
            average = self.total / self.n
            variance = max(self.squares / self.n - average**2, 1e-12)
            ladders[0].append(average + math.sqrt(variance / self.n) * PANELS)
            ladders[1].append(math.log(variance) + math.sqrt(2.0 / self.n) * PANELS)
        first, second = (
            thinned(ladder, self.prior.first[side], self.prior.last[side])
            for side, ladder in enumerate(ladders)
        )
        return first, second


def exists(prior: DensityOnPlane, product: LogDensity) -> Exists:
    """Which moments exist: those of which the integrals fall towards the ends of the plane.

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


def _falls(prior: DensityOnPlane, density: LogDensity, side: int, sign: float, degree: float) -> bool:
    """Whether the integral of a power of a parameter falls towards an end of the plane."""
    if side == 0:
        logs = np.array([_END - 1.0, _END])
        across = np.unique(np.clip(_GRID, prior.lowest, prior.last[1]))
        value = density(sign * np.exp(logs)[None], across[None])[0]
        size = np.logaddexp.reduce(value, axis=1) + (degree + 1.0) * logs
    else:
        end = min(prior.last[1], 2.0 * _END)
        logs = np.array([end - 2.0, end])
        mean = np.concatenate([-_OCTAVES[::-1], _OCTAVES])
        mean = np.unique(np.clip(mean, prior.first[0], prior.last[0]))
        value = density(mean[None], logs[None])[0]
        size = np.logaddexp.reduce(value + np.log(np.gradient(mean))[:, None], axis=0) + degree * logs
    return bool(size[1] < size[0] or np.isneginf(size[1]))
