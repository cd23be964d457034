"""A prior of means and a covariance whose scales are spread over eight decades, one for each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions import spread
from suffice.pipeline.math.distributions.distribution import Entries, Prior, freeze, vector_of
from suffice.pipeline.math.distributions.normal_inverse_wishart import (
    NormalInverseWishartDistribution,
    sample_normal_inverse_wishart,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.moment_projection import Moments
    from suffice.typing import Floats

CONCENTRATION = 1.0
"""Of a column's variance about its scale: the one under which every correlation is even on -1..1."""


@dataclass(frozen=True, slots=True)
class SpreadNormalInverseWishart(Prior):
    r"""Joint prior of the mean and the covariance of d columns, of which little is known but their bounds.

    .. math::
        \log v_j \sim f, \qquad
        \Sigma \mid v \sim \mathrm{InverseWishart}(d + 1,\ \operatorname{diag}(v_j h_j^2)), \qquad
        m_j \sim \mathrm{Normal}(\mu_j, h_j / 2)

    with f the density of ``spread.py``, of scales between :math:`10^{-8}` and 1: given its scale, the
    variance of column j has an inverse gamma of concentration 1, of median :math:`.72\, v_j h_j^2`, and every
    correlation is even on -1..1. Scales are latent, and every column has its own.

    Parameters
    ----------
    loc : float or list of float
        mu: the prior mean of the means, in the columns' units: one for all, or one per column.
    half_range : float or list of float, > 0
        h: half the width of the columns' bounds, in their units: one for all, or one per column.
    """

    loc: Entries
    half_range: Entries

    def __post_init__(self) -> None:
        freeze(self)
        require_half_ranges(self, self.half_range)

    def of(self, size: int) -> tuple[Floats, Floats]:
        """Return loc and half ranges, (size,) each.

        Raises
        ------
        PriorError
            Where the prior is not one of so many columns.
        """
        return vector_of(self, "loc", size), vector_of(self, "half_range", size)

    def sample(self, size: int, rng: np.random.Generator, columns: int) -> tuple[Floats, Floats]:
        """Return independent draws of means (size, columns) and covariances (size, columns, columns)."""
        loc, half_range = self.of(columns)
        scale = scale_matrix(spread.sample((size, columns), rng) * half_range**2)
        _, covariance = sample_normal_inverse_wishart(
            np.zeros((size, columns)), np.ones(size), np.full(size, freedom(columns)), scale, 1, rng
        )
        return loc + half_range / 2.0 * rng.standard_normal((size, columns)), covariance[0]


def freedom(columns: int) -> float:
    """Return the degrees of freedom that leave every variance an inverse gamma of ``CONCENTRATION``."""
    return 2.0 * CONCENTRATION + columns - 1.0


def scale_matrix(variance: Floats) -> Floats:
    """Return inverse Wishart scales (..., d, d) of columns with these scales (..., d) of their variances."""
    matrix: Floats = variance[..., None] * np.eye(variance.shape[-1])
    return matrix


def require_half_ranges(prior: Prior, value: Entries) -> None:
    """Refuse half ranges that are no numbers above 0.

    Raises
    ------
    PriorError
    """
    entries = value if isinstance(value, tuple) else (value,)
    if not entries or any(isinstance(entry, tuple) or entry <= 0 for entry in entries):
        message = f"{type(prior).__name__}: half_range must be numbers above 0 (the prior must be proper)"
        raise PriorError(message)


def updated_given_scales(
    prior: SpreadNormalInverseWishart,
    sums: Moments,
    names: tuple[str, ...],
    variance: Floats,
    weight: Floats,
    rng: np.random.Generator,
) -> NormalInverseWishartDistribution:
    r"""Return the distribution given moments, scales, and means that are drawn; see ``SpreadNormalEvidence``.

    Given w the means are normal; given them the covariance is inverse Wishart, whatever w is. Means that are
    given are those of an infinite precision.

    Parameters
    ----------
    prior : SpreadNormalInverseWishart
    sums : Moments
        In half ranges.
    names : tuple of str
        The columns'.
    variance : ndarray of shape (n_cells, d), float64
        The scales v, in squares of the prior's half ranges.
    weight : ndarray of shape (n_cells,), float64
        w.
    rng : numpy.random.Generator
    """
    loc, half_range = prior.of(len(names))
    unit = half_range / sums.half_range
    centre, prior_sd = (loc - sums.centre) / sums.half_range, unit / 2.0
    n = sums.n[:, None]
    average = np.divide(sums.total, n, out=np.zeros_like(sums.total), where=n > 0.0)
    scale = scale_matrix(variance * unit**2) + sums.scatter
    # N(centre, H) times N(average, A / (2 n w)), from A and K = A + 2 n w H alone: n may be 0.
    doubled = (2.0 * sums.n * weight)[:, None]
    inner = scale + doubled[:, :, None] * np.diag(prior_sd**2)
    spread = prior_sd[:, None] ** 2 * np.linalg.solve(inner, scale)
    pulled = np.linalg.solve(inner, (average - centre)[:, :, None])[:, :, 0]
    mean = centre + doubled * prior_sd**2 * pulled
    root = np.linalg.cholesky((spread + np.swapaxes(spread, 1, 2)) / 2.0)
    mean = mean + np.einsum("cij,cj->ci", root, rng.standard_normal(mean.shape))
    apart = average - mean
    scale = scale + sums.n[:, None, None] * apart[:, :, None] * apart[:, None, :]
    return NormalInverseWishartDistribution(
        loc=sums.centre + sums.half_range * mean,
        precision=np.full(len(n), np.inf),
        df=freedom(len(names)) + sums.n,
        scale=sums.half_range[:, None] * sums.half_range * scale,
        names=names,
    )
