"""The log density of the latent moments of several data sets with parameters in common.

It is (1) of ``column_posterior``, where (3) stands too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.multivariate.evidence import (
    MomentState,
    RegressionEvidence,
    no_gradient,
    outer,
)
from suffice.pipeline.math.engines.multivariate.exact_moments import SpreadRegressionEvidence
from suffice.pipeline.math.engines.multivariate.latent_scales import along, evidence_of, pulled_along

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.multivariate.evidence import Evidence
    from suffice.pipeline.math.engines.multivariate.log_posterior import ChainPosition, LatentTarget
    from suffice.typing import Floats

TOLD = 1e-13
"""Times n: below so much of its scatter what a column has for itself is lost in rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTarget:
    """The log density of the latent moments of data sets, their coordinates one after the other.

    The coordinates of shared latent scales stand last.

    Attributes
    ----------
    targets : tuple of LatentTarget
        Of every data set, with the evidence of what is its own.
    shared : tuple of Evidence
        Of the parameters that all have in common.
    """

    targets: tuple[LatentTarget, ...]
    shared: tuple[Evidence, ...]

    def take(self, cells: NDArray[np.int64]) -> Self:
        """Return the density of some cells."""
        return replace(self, targets=tuple(target.take(cells) for target in self.targets))

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        of_data_sets = sum(target.n_coordinates for target in self.targets)
        return of_data_sets + sum(evidence.n_latent for evidence in self.shared)

    def total(self, x: Floats) -> MomentState:
        """Return the added moments at coordinates (n_coordinates, b)."""
        *parts, _ = self._parts(x)
        squares = self.likely_squares(x.shape[1])
        return _added([target.state(part, squares) for target, part in zip(self.targets, parts, strict=True)])

    def likely_squares(self, n: int) -> Floats | None:
        """Return the squares of likely coefficients (k, n) of a regression, or none."""
        for evidence in self.shared:
            if isinstance(evidence, RegressionEvidence | SpreadRegressionEvidence):
                return np.repeat(evidence.squares()[:, None], n, axis=1)
        return None

    def latent(self, x: Floats) -> Floats:
        """Return the coordinates of the shared evidence's latent scales, relative to nothing."""
        first, *_, latent = self._parts(x)
        return latent + along(self.shared, self.targets[0].unpack(first).root)

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density (b,), up to a constant, and its gradient (k, b); see ``LatentTarget``."""
        *parts, latent = self._parts(x)
        squares = self.likely_squares(x.shape[1])
        positions = [target.unpack(part, squares) for target, part in zip(self.targets, parts, strict=True)]
        total = _added([position.state for position in positions])
        shared = no_gradient(total)
        # Shared scales go along with the first data set's moments.
        latent = latent + along(self.shared, positions[0].root)
        # (1): the shared evidence of the added moments; its gradient is the same for every data set.
        value, by_latent = evidence_of(self.shared, total, latent, shared)
        by_shared: Floats | float = pulled_along(self.shared, by_latent, positions[0].root)
        slopes = []
        for target, position in zip(self.targets, positions, strict=True):
            log_density, gradient, by_moments = target.log_of_data_set(position)
            # d/dt_r of e(sum t) is d/dt of e.
            gradient.add(shared)
            log_density, slope = target.complete(position, log_density, gradient, by_moments, by_shared)
            by_shared = 0.0
            value = np.where(_is_told(position), value + log_density, -np.inf)
            slopes.append(slope)
        return value, np.concatenate([*slopes, by_latent])

    def _parts(self, x: Floats) -> list[Floats]:
        """Split coordinates into those of every data set, and of the shared scales."""
        return np.split(x, np.cumsum([target.n_coordinates for target in self.targets]))


def _is_told(position: ChainPosition) -> NDArray[np.bool_]:
    """Tell which scatters differ from singular ones by more than rounding: others have no density."""
    state, variance = position.state, np.einsum("iib->ib", position.state.spread)
    told: NDArray[np.bool_] = (np.exp(2.0 * position.logs) > TOLD * state.n * variance).all(axis=0)
    return told


def _added(states: Sequence[MomentState]) -> MomentState:
    """Return the moments of the rows of all."""
    if len(states) == 1:
        return states[0]
    n: Floats = np.sum([state.n for state in states], axis=0)
    shares = [state.n / n for state in states]
    mean = sum((share * state.mean for share, state in zip(shares, states, strict=True)), np.zeros(1))
    second, spread = np.zeros_like(states[0].second), np.zeros_like(states[0].spread)
    for share, state in zip(shares, states, strict=True):
        apart = state.mean - mean
        second += share * state.second
        # (3).
        spread += share * (state.spread + outer(apart, apart))
    return MomentState(n=n, mean=mean, spread=spread, second=second)
