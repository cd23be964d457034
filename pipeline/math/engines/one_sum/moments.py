r"""Means and standard deviations under priors that are spread over scales, from pairs chosen for them.

Pairs that are next to impossible may hold most of a moment: of a rate spread over five decades, one that is
e^-22 times as probable as others may have a square that is 10^10 times theirs. Such pairs are resolved by

.. math::
    W(N, S) \, E[\theta^2 \mid N, S],

which is what W is under the prior times :math:`\theta^2`: one of the same kind, tilted. They then are weighed
by what their second moment about c, the mean of near pairs, is of that about 0. They are resolved evenly:
pairs that hold the mass, and with it the first moment about c, may be next to nothing beside squares. It
takes longer than all else, and is done when a mean or a standard deviation is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.intervals import moments_about
from suffice.pipeline.math.engines.one_sum.nodes import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.marginals import SpreadGammaGamma
    from suffice.pipeline.math.engines.one_sum.nodes import Nodes
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats

    Update: TypeAlias = Callable[[Floats, Floats], Distribution]

_NEGLIGIBLE = -16.0
"""Log of the share of a variance that may be left out: 1e-7."""
_DEEP = 40.0
"""Nats within which pairs are resolved by squares: of these the pairs that hold the mass may be e^-25."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMoments:
    """Moments of the pairs that hold the posterior's mass, whatever far tails add to them.

    Attributes
    ----------
    means, sds : ndarray of shape (n_cells,), float64
    log_evidence : ndarray of shape (n_cells,), float64
        As in ``Nodes``.
    most : ndarray of shape (n_cells,), float64
        The largest N of a cell's pairs.
    """

    means: Floats
    sds: Floats
    log_evidence: Floats
    most: Floats

    @classmethod
    def of(cls, pairs: Nodes, moments: tuple[Floats, Floats]) -> Self:
        """Put moments of pairs beside what else is asked of these."""
        means, sds = moments
        most = np.zeros(len(means))
        np.maximum.at(most, pairs.cell, pairs.n)
        return cls(means=means, sds=sds, log_evidence=pairs.log_evidence, most=most)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Those of consecutive cells."""
        return cls(
            means=np.concatenate([part.means for part in parts]),
            sds=np.concatenate([part.sds for part in parts]),
            log_evidence=np.concatenate([part.log_evidence for part in parts]),
            most=np.concatenate([part.most for part in parts]),
        )

    def take(self, cells: Cells) -> Self:
        """Those of the given cells."""
        return replace(
            self,
            means=self.means[cells],
            sds=self.sds[cells],
            log_evidence=self.log_evidence[cells],
            most=self.most[cells],
        )


def near_moments(
    pairs: Nodes, update: Update, marginal: SpreadGammaGamma, centre: Floats
) -> tuple[Floats, Floats]:
    """Return means and standard deviations of pairs, each (n_cells,), by numbers near the means."""
    first, second = _about(pairs, update, marginal, centre[pairs.cell])
    return _summed(pairs, centre, pairs.weight * first, pairs.weight * second)


def whole_moments(
    sums: NoisySums, update: Update, marginal: SpreadGammaGamma, near: NearMoments
) -> tuple[Floats, Floats]:
    """Return means and standard deviations, each (n_cells,), with far tails where those may matter."""
    means, sds = near.means.copy(), near.sds.copy()
    far = np.flatnonzero(_left_out(sums, update, near) > _NEGLIGIBLE)
    if far.size:
        means[far], sds[far] = _far_moments(sums.take(far), update, marginal, near.take(far))
    return means, sds


def _far_moments(
    sums: NoisySums, update: Update, marginal: SpreadGammaGamma, near: NearMoments
) -> tuple[Floats, Floats]:
    power = 2 if isinstance(update(np.zeros(1), np.zeros(1)), GammaDistribution) else -2
    pairs = resolve(
        replace(sums, marginal=marginal.tilted(power), from_nothing=True), evenly=True, nats=_DEEP
    )
    none = np.zeros(1)
    _, prior = _about(_Pairs(n=none, total=none), update, marginal, none)
    weight = pairs.weight * (prior * np.exp(pairs.log_evidence - near.log_evidence))[pairs.cell]
    _, square = _about(pairs, update, marginal, np.zeros(len(pairs.n)))
    first, second = _about(pairs, update, marginal, near.means[pairs.cell])
    return _summed(pairs, near.means, weight * (first / square), weight * (second / square))


def _summed(pairs: Nodes, centre: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return means and standard deviations from pairs' parts of moments about centres."""
    cells = len(centre)
    shift = np.bincount(pairs.cell, first, cells)
    spread = np.bincount(pairs.cell, second, cells)
    return centre + shift, np.sqrt(np.maximum(spread - shift**2, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    n: Floats
    total: Floats


def _about(
    pairs: Nodes | _Pairs, update: Update, marginal: SpreadGammaGamma, centre: Floats
) -> tuple[Floats, Floats]:
    """Return the first two moments about centres given pairs, each (n_pairs,)."""
    first, second = np.zeros((2, len(pairs.n)))
    for share, shift in zip(marginal.shares(pairs.total, pairs.n), marginal.shifts, strict=True):
        parts = moments_about(update(pairs.n, pairs.total + shift), centre)
        first += share * parts[0]
        second += share * parts[1]
    return first, second


def _left_out(sums: NoisySums, update: Update, near: NearMoments) -> Floats:
    """Return logs of bounds on what of variances, over themselves, is where sums are next to 0."""
    none = np.zeros(sums.n_cells)
    _, second = moments_about(update(near.most, none), none)
    # Of no N is the noise of a sum of 0 likelier than that of the sums alone.
    is_sum = sums.totals.coefficients[:, 0] == 0.0
    log_noise = -np.abs(sums.totals.values[:, is_sum]) @ sums.totals.rate[is_sum]
    bound: Floats = log_noise + np.log(second) - near.log_evidence - 2.0 * np.log(near.sds)
    return bound
