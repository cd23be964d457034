"""Priors of one parameter as densities on the line: where they are, and panels to begin with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.one_parameter import coordinate_of
from suffice.pipeline.math.priors.density import Density, DensityOnLine
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.math.priors.record_count import Fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.line import Line
    from suffice.pipeline.math.distributions.prior import Prior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


_NATS = 50.0
"""How far below its highest density the tails of a conjugate prior end."""
_FARTHEST_PLACE = 690.0
"""Beyond it the logarithm of a rate has no exponential."""
_OCTAVES = np.exp2(np.arange(0.0, 40.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorOnLine:
    """A proper prior on the line, but for a constant.

    Attributes
    ----------
    log_density : callable
        Positions (n,) -> log densities.
    edges : ndarray of shape (n_edges,), float64
        Ascending; outside of them nothing matters.
    """

    log_density: Callable[[Floats], Floats]
    edges: Floats


def prior_on_line(statistic: NoisyStatistic, prior: Prior | Mixture | Density, line: Line) -> PriorOnLine:
    """Return a prior's log density on the line, and where it is.

    Raises
    ------
    PriorError
        Where a density is improper or leaves the parameter's domain.
    """
    if isinstance(prior, Density):
        default = FAMILIES[statistic.plan.family].default_prior(statistic.plan.parameters)
        typical = float(coordinate_of(nothing_observed(statistic, default)).centre[0])
        found = DensityOnLine.of(prior, line, typical)
        return PriorOnLine(log_density=found.log_density, edges=found.edges)
    if isinstance(prior, Mixture):
        parts = [_conjugate(statistic, component) for component in prior.components]
        log_weights = np.log(np.array(prior.weights))[:, None]
        return PriorOnLine(
            log_density=lambda position: np.logaddexp.reduce(
                log_weights + np.stack([part.log_density(position) for part in parts])
            ),
            edges=_thinned(parts),
        )
    return _conjugate(statistic, prior)


def _thinned(parts: Sequence[PriorOnLine]) -> Floats:
    """The edges of all, but for those nearer to the last one than any of a single component are."""
    edges = np.unique(np.concatenate([part.edges for part in parts]))
    apart = min(float(np.min(np.diff(part.edges))) for part in parts)
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if edge - kept[-1] >= apart and edges[-1] - edge >= apart / 2.0:
            kept.append(edge)
    return np.array([*kept, edges[-1]])


def _conjugate(statistic: NoisyStatistic, prior: Prior) -> PriorOnLine:
    distribution = coordinate_of(nothing_observed(statistic, prior))
    centre, width = float(distribution.centre[0]), float(distribution.width[0])

    def log_density(position: Floats) -> Floats:
        return distribution.log_density(position[:, None])[:, 0]

    positions = np.concatenate([centre - width * _OCTAVES[::-1], [centre], centre + width * _OCTAVES])
    positions = positions[positions < _FARTHEST_PLACE]
    value = log_density(positions)
    kept = np.flatnonzero(value > np.max(value) - _NATS)
    first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, len(positions) - 1)
    return PriorOnLine(log_density=log_density, edges=positions[first : last + 1])


def nothing_observed(statistic: NoisyStatistic, prior: Prior) -> Any:
    """The prior, as the distribution of one cell."""
    latent: Any = FAMILIES[statistic.plan.family].latent
    return latent(statistic, prior, Fixed(0))[1](np.zeros(1), np.zeros(1))
