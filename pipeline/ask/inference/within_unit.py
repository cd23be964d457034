r"""Posteriors where rows of a unit are alike, widened by their design effect; and new rows of a cell.

Model of units. The posterior of independent rows is a mixture of conjugate distributions given the latent
sums. Each of these is taken of the likelihood to the power 1 / d: n rows count as n / d. The latent sums stay
as likely as they were, and so does the noise. Mean and variance are both widened by the design effect d of
the mean: rows whose units differ by a normal shift say more of the variance than that, so its intervals are
wide, not narrow.

The design effect, behind noise: a record has a value q in 0..1: 1 where it is true, or where it stands
between its bounds. A unit u keeps :math:`k_u` of them in a cell, with total :math:`s_u`, and the cell has n
of mean m and variance v. With

.. math::
    W = \sum_u k_u^2, \quad G = \sum_u k_u (s_u - m k_u), \quad R = \sum_u (s_u - m k_u)^2,
    \qquad d = \frac{R}{n v} = 1 + \left(\frac W n - 1\right) \rho \qquad (1)

d is the design effect of the cell's mean (Kish), kept in 1..W/n, and :math:`\rho` in 0..1 the correlation of
rows of a unit. The released sums of (f^2, 2 f s, s^2), f = k - s, are linear in (W, G, R):

.. math:: (1-m)^2 W - 2(1-m) G + R, \quad 2 (m(1-m) W + (1 - 2m) G - R), \quad m^2 W + 2 m G + R . \qquad (2)

Their sum is :math:`W = \sum (f + s)^2`. Given n, m and v, the posterior of d is summed over a grid of all
three under a prior that rests on public numbers,

.. math:: W = n + (K - 1) n (1 - x^2), \qquad \rho = y^{5/3}, \qquad x, y \sim \mathrm{Uniform}(0, 1), \qquad
    \frac{G}{W \sqrt v} \sim \mathrm{Cauchy}(0, \tfrac 1 {10}) \text{ within } -1..1. \qquad (3)

A bound K on rows is there for units that reach it; :math:`\rho` is mostly small and reaches 1; G is 0 where
how many rows a unit has says nothing of their values. With 100 units and K = 3 these cover best, whatever the
correlation.

New rows are drawn from the family's model given draws of the parameters, and summed as a release does.

Symbols:

- W, G, R: ``w``, ``g`` and ``squares``; ``size`` and ``cross`` on their grids
- y: ``r``, on the grid ``root``
- d: ``effect``
- n, m, v: rows > 0, mean in 0..1 and variance in 1e-12..1/4, (n_cells,)
- K: ``most``; b = ``scale``, of the noise of each of the three sums

Method. Numerical: grids of 12, 16 and 24 points, within six standard deviations of the noise. Approximate: n,
m and v are those of the posterior's means, and units' products tell nothing of the rows. Five levels of equal
probability stand for the posterior of d.

References
----------
`kish1965survey`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.engines.normal.moment_posterior import MomentsDistribution
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.engines.posterior_mixture import PosteriorMixture

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.terms.released.noisy_statistic import NoisyProducts, NoisyStatistic
    from suffice.typing import Floats

LEVELS = 5
"""Design effects of equal probability that stand for the posterior of one cell."""
_SIZES, _CROSS, _ROOTS = 12, 16, 24
_REACH = 6.0
"""Standard deviations of noise within which sums are looked for."""
_CROSS_SCALE = 0.1
_POWER = 5.0 / 3.0
"""Of a uniform number, which the correlation is."""
_CELLS = 64
_LEAST_VARIANCE = 1e-12


def design_effects(products: NoisyProducts, n: Floats, mean: Floats, variance: Floats) -> Floats:
    """Return ``LEVELS`` design effects of equal posterior probability, (n_cells, LEVELS), ascending.

    Parameters
    ----------
    products : NoisyProducts
    n, mean, variance : ndarray of shape (n_cells,), float64
        Of rows, of their values in 0..1.
    """
    rows = np.maximum(n, 1.0)
    centre = np.clip(mean, 0.0, 1.0)
    spread = np.clip(variance, _LEAST_VARIANCE, 0.25)
    widened = [
        _of_cells(
            products.values[cells],
            products.scale,
            products.max_rows,
            rows[cells],
            centre[cells],
            spread[cells],
        )
        for cells in (slice(start, start + _CELLS) for start in range(0, len(rows), _CELLS))
    ]
    return np.concatenate(widened) if widened else np.empty((0, LEVELS))


def _of_cells(values: Floats, scale: float, most: int, n: Floats, m: Floats, v: Floats) -> Floats:
    """Design effects of some cells; axes are cells, W, G and y."""
    # A Laplace number of scale b has the variance 2 b^2.
    noise_sd = np.sqrt(2.0) * scale
    size, log_size = _sizes(values, noise_sd, most, n)
    cross, log_cross = _crosses(values, noise_sd, size, m, v)
    root, log_root = _roots(values, noise_sd, size, n, m, v)
    w, g, r = size[:, :, None, None], cross[:, :, :, None], root[:, :, None, :]
    n, m, v = (column[:, None, None, None] for column in (n, m, v))
    # (1), d and R = d n v.
    effect = 1.0 + (w / n - 1.0) * r**_POWER
    squares = effect * n * v
    # (2).
    expected = (
        (1.0 - m) ** 2 * w - 2.0 * (1.0 - m) * g + squares,
        2.0 * (m * (1.0 - m) * w + (1.0 - 2.0 * m) * g - squares),
        m**2 * w + 2.0 * m * g + squares,
    )
    log_weight = log_size[:, None, None, None] + log_cross[:, :, None, None] + log_root[:, :, None, None]
    for value, total in zip(values.T, expected, strict=True):
        # Laplace noise on each of the three sums.
        log_weight = log_weight - np.abs(value[:, None, None, None] - total) / scale
    weight = np.exp(log_weight - np.max(log_weight, axis=(1, 2, 3), keepdims=True)).sum(axis=2)
    return _levels(effect[:, :, 0, :].reshape(len(values), -1), weight.reshape(len(values), -1))


def _sizes(values: Floats, noise_sd: float, most: int, n: Floats) -> tuple[Floats, Floats]:
    """W, (n_cells, _SIZES), evenly in x where noise leaves it in n..K n; and the log of that part of x."""
    # The three sums add up to W, and their noise to three times its variance.
    estimate, reach = values.sum(axis=1), _REACH * noise_sd * np.sqrt(3.0)
    low, high = _within(estimate - reach, estimate + reach, n, most * n)
    room = (most - 1.0) * n
    # (3), solved for x.
    first, last = (np.sqrt(np.clip(1.0 - (end - n) / room, 0.0, 1.0)) for end in (high, low))
    x = first[:, None] + (last - first)[:, None] * _middles(_SIZES)
    return n[:, None] + room[:, None] * (1.0 - x**2), np.log(last - first)


def _crosses(values: Floats, noise_sd: float, size: Floats, m: Floats, v: Floats) -> tuple[Floats, Floats]:
    """G, (n_cells, _SIZES, _CROSS), evenly in probability; and the log of its prior probability."""
    # G = -m f^2 + (1/2 - m) (2 f s) + (1 - m) s^2, summed: (2) solved.
    weights = np.stack([-m, 0.5 - m, 1.0 - m], axis=1)
    estimate, reach = (
        np.sum(weights * values, axis=1),
        _REACH * noise_sd * np.sqrt(np.sum(weights**2, axis=1)),
    )
    unit = size * np.sqrt(v)[:, None]
    bound = np.arctan(1.0 / _CROSS_SCALE)

    def share(cross: Floats) -> Floats:
        # The Cauchy distribution function, cut to -1..1.
        angle: Floats = np.arctan(np.clip(cross / unit, -1.0, 1.0) / _CROSS_SCALE) / bound
        return angle

    low, high = _within(
        share((estimate - reach)[:, None]), share((estimate + reach)[:, None]), -np.ones(1), np.ones(1)
    )
    at = low[..., None] + (high - low)[..., None] * _middles(_CROSS)
    return unit[..., None] * _CROSS_SCALE * np.tan(at * bound), np.log(high - low)


def _roots(
    values: Floats, noise_sd: float, size: Floats, n: Floats, m: Floats, v: Floats
) -> tuple[Floats, Floats]:
    """y, (n_cells, _SIZES, _ROOTS), evenly where noise leaves it; and the log of that part of 0..1."""
    # R = m^2 f^2 - m (1 - m) (2 f s) + (1 - m)^2 s^2, summed: (2) solved.
    weights = np.stack([m**2, -m * (1.0 - m), (1.0 - m) ** 2], axis=1)
    estimate, reach = (
        np.sum(weights * values, axis=1),
        _REACH * noise_sd * np.sqrt(np.sum(weights**2, axis=1)),
    )
    room = np.maximum(size / n[:, None] - 1.0, 1e-9)

    def root(squares: Floats) -> Floats:
        effect = (squares / (n * v))[:, None]
        # rho by (1), and y = rho^(3/5).
        share: Floats = np.clip((effect - 1.0) / room, 0.0, 1.0) ** (1.0 / _POWER)
        return share

    low, high = _within(root(estimate - reach), root(estimate + reach), np.zeros(1), np.ones(1))
    return low[..., None] + (high - low)[..., None] * _middles(_ROOTS), np.log(high - low)


def _within(low: Floats, high: Floats, least: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Cut low..high to least..most; where nothing is left, take what is nearest to it."""
    narrow = 1e-3 * (most - least)
    low = np.clip(low, least, most - narrow)
    return low, np.clip(high, low + narrow, most)


def _middles(number: int) -> Floats:
    return (np.arange(number) + 0.5) / number


def _levels(effect: Floats, weight: Floats) -> Floats:
    """Means of the effects between quantiles of equal probability, (n_cells, LEVELS)."""
    order = np.argsort(effect, axis=1)
    effect, weight = (np.take_along_axis(column, order, axis=1) for column in (effect, weight))
    share = weight / weight.sum(axis=1, keepdims=True)
    ends = np.cumsum(share, axis=1)
    edges = np.arange(LEVELS + 1) / LEVELS
    levels_by_cell = np.empty((len(effect), LEVELS))
    for level in range(LEVELS):
        low, high = edges[level], edges[level + 1]
        # The part of every point of the grid that lies between two quantiles.
        part = np.clip(np.minimum(ends, high) - np.maximum(ends - share, low), 0.0, None)
        levels_by_cell[:, level] = np.sum(part * effect, axis=1) / np.maximum(part.sum(axis=1), 1e-300)
    return levels_by_cell


def widened(distribution: Distribution, products: NoisyProducts, name: str) -> tuple[Distribution, Floats]:
    """Return a distribution of independent rows as one of rows of units, and mean design effects (n_cells,).

    Raises
    ------
    UsageError
        Where the distribution is not one given latent sums: under a density.
    """
    if isinstance(distribution, PosteriorMixture):
        parts = [widened(part, products, name) for part in distribution.distributions]
        mixed = dataclasses.replace(distribution, distributions=tuple(part for part, _ in parts))
        return mixed, np.sum(distribution.share * np.stack([effects for _, effects in parts]), axis=0)
    if isinstance(distribution, LatentSumPosterior):
        n, total = distribution.latent_means
        # A chance of true rows that is neither 0 nor 1.
        mean = (total + 0.5) / (n + 1.0)
        levels = design_effects(products, n, mean, mean * (1.0 - mean))
        return distribution.tempered(levels), levels.mean(axis=1)
    if isinstance(distribution, MomentsDistribution):
        posterior = distribution.posterior
        mean, variance = (posterior.quantiles(parameter, [0.5])[:, 0] for parameter in (0, 1))
        # From -1..1 to 0..1: the mean halves about 1/2, the variance is a quarter.
        levels = design_effects(products, posterior.n, (1.0 + mean) / 2.0, variance / 4.0)
        tempered = dataclasses.replace(posterior, levels=levels)
        return dataclasses.replace(distribution, posterior=tempered), levels.mean(axis=1)
    message = (
        f"{name}: what rows of one unit have in common widens posteriors under conjugate priors and mixtures "
        "of them only: give such a prior, or take rows for independent, as within_unit='ignored'"
    )
    raise UsageError(message)


def refuse_within_unit(statistic: NoisyStatistic, what: str) -> None:
    """Refuse a statistic that is released with products of its units, where they cannot be made use of.

    Raises
    ------
    UsageError
    """
    if statistic.plan.within_unit is not None:
        message = (
            f"{statistic.plan.name} was released with within_unit: true; {what} would take rows of one unit "
            "for independent, and its intervals would be too narrow: ask for its posterior"
        )
        raise UsageError(message)
