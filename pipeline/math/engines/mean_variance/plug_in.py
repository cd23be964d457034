"""The product of a prior and of sums that are known, and which moments there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.mean_variance.panels import PANELS, thinned

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.mean_variance.distribution import Exists
    from suffice.pipeline.math.engines.mean_variance.panels import LogDensity
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
        size = np.logaddexp.reduce(value, axis=1) + (degree + 1.0) * logs
    else:
        end = min(prior.last[1], 2.0 * _END)
        logs = np.array([end - 2.0, end])
        mean = np.concatenate([-_OCTAVES[::-1], _OCTAVES])
        mean = np.unique(np.clip(mean, prior.first[0], prior.last[0]))
        value = density(mean[None], logs[None])[0]
        size = np.logaddexp.reduce(value + np.log(np.gradient(mean))[:, None], axis=0) + degree * logs
    return bool(size[1] < size[0] or np.isneginf(size[1]))
