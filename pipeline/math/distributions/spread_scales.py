r"""Priors whose scales are spread over eight decades: of a regression, and of several columns.

Density of a scale. In squares of the half range of an outcome's bounds a variance's scale v has, with
:math:`u = \log v` on :math:`-R..0` and :math:`R = 8 \log 10`,

.. math:: f(u) = \frac 1 4 \cdot \frac 1 R + \frac 3 4 \cdot \frac{e^{u / 2}}{2 (1 - e^{-R / 2})}, \qquad (1)

a quarter even over eight decades, the rest flat in the standard deviation. The even part leaves no scale
without weight. The other, a density that is flat in the standard deviation, lets large scales prevail where
noise hides which it is: an upper end is then far out, not too low.

On the line. Chains move over all real x,

.. math:: u = \log \frac{1 + e^{x + R}}{1 + e^x} - R, \qquad
    \frac{du}{dx} = (1 - e^{-R}) \frac{1}{1 + e^x} \cdot \frac{1}{1 + e^{-x - R}}, \qquad (2)

which is x but for a nat at either end.

Families of a single column take fourteen scales instead. With :math:`j = 0, \dots, 13`,

.. math::
    v_j = 10^{-0.6 (13 - j)}, \qquad
    w_j = \frac 1 4 \cdot \frac 1 {14} + \frac 3 4 \cdot \frac{\sqrt{v_j}}{\sum_k \sqrt{v_k}}, \qquad (3)

from :math:`10^{-7.8}` to 1: standard deviations from a 7,900th of the half range to all of it, each about
twice the one before.

Several columns, of half ranges :math:`h_j`, have standard deviations and correlations of
``spread_deviations``: with scales :math:`v_j` in their squares that are flat in their logarithms

.. math:: \Sigma \mid v \sim \mathrm{InverseWishart}(2 a + d - 1,\ \operatorname{diag}(v_j h_j^2)), \qquad
    m_j \sim \mathrm{Normal}(\mu_j, h_j / 2). \qquad (4)

Given n records of average :math:`\bar z` and scatter S about it, a mixing weight w and :math:`A =
\operatorname{diag}(v_j h_j^2) + S`,

.. math:: m \sim \mathrm{Normal}(\mu, H) \text{ times } \mathrm{Normal}(\bar z, A / 2 n w),

    \Sigma \mid m \sim \mathrm{InverseWishart}(2 a + d - 1 + n, \ A + n (\bar z - m)(\bar z - m)^T),
    \qquad (5)

moved as ``spread_deviations`` says, with H the diagonal of the :math:`h_j^2 / 4`.

Symbols:

- v, u: scales and their logarithms, 10^-8..1 and -R..0
- x: the coordinate, any real number
- R: ``RANGE``, in nats
- v_j, w_j: ``VARIANCES`` and ``WEIGHTS``; ``LARGEST`` and ``LARGEST_WEIGHTS`` are the ten largest by the same
  rule
- mu, h: ``loc`` and ``half_range``, (d,), in the columns' units, h > 0
- w: ``weight``, (n_cells,), > 0, of the scale mixture in ``SpreadNormalEvidence``

Method. Formulas, right but for rounding, (5) but for what ``spread_deviations`` says; draws are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions import normal_inverse_wishart, spread_deviations
from suffice.pipeline.math.distributions.distribution import (
    Entries,
    Prior,
    freeze,
    require_positive,
    vector_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats


CONCENTRATION = 3.0
"""Of a variance's inverse gamma about each scale: the least whole number that leaves it a finite variance."""
STEP = 0.6
"""Decades of variance from one scale to the next."""
VARIANCES: tuple[float, ...] = tuple(10.0 ** (-STEP * below) for below in range(13, -1, -1))
"""v_j: the prior mean of the variance about each scale, in squares of the half range."""
EVEN = 0.25
"""The part of the weight that is spread evenly over the scales."""


def _weights(variances: tuple[float, ...]) -> tuple[float, ...]:
    roots = math.fsum(math.sqrt(variance) for variance in variances)
    return tuple(EVEN / len(variances) + (1.0 - EVEN) * math.sqrt(variance) / roots for variance in variances)


WEIGHTS = _weights(VARIANCES)
"""w_j; they sum to 1."""
LARGEST: tuple[float, ...] = VARIANCES[4:]
"""The ten largest, from 10^-5.4 to 1: in units of a bound, of one scale without a mean beside it. One over a
scale has moments that the smallest of these decide wherever noise may hide the scale, so they end sooner."""
LARGEST_WEIGHTS = _weights(LARGEST)
"""Their weights, by the same rule."""
RANGE = 8.0 * math.log(10.0)
"""R: how far below that of the half range the log of a variance's scale may lie."""
_LOWEST = math.exp(-RANGE)
_FAR = 300.0
"""Coordinates beyond which e^x is not taken."""
_LOG_INSIDE = math.log(-math.expm1(-RANGE))
_FLAT = (1.0 - EVEN) / 2.0 / -math.expm1(-RANGE / 2.0)


def density(u: Any, exp: Callable[[Any], Any]) -> Any:
    """Return f(u) of logs of scales, by NumPy's or JAX's exponential."""
    # (1).
    return EVEN / RANGE + _FLAT * exp(u / 2.0)


def log_scale(x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return u, du/dx, the log density of x, and its derivative by x, of coordinates on the line."""
    # One exponential, of what does not overflow: chains spend much of their time here.
    near = np.clip(x, -_FAR, _FAR)
    e = np.exp(near)
    # 1 + e^x and e^-R + e^x, whose ratio is e^u.
    above, below = 1.0 + e, _LOWEST + e
    log_above, log_below = np.log(above), np.log(below)
    # (2); |x - near| continues the slope's decay beyond what is exponentiated.
    log_slope = _LOG_INSIDE + near - np.abs(x - near) - log_above - log_below
    slope = (1.0 - _LOWEST) * e / above / below
    # e^(u / 2) = sqrt(below / above).
    tilted = _FLAT * np.sqrt(below / above)
    chance = EVEN / RANGE + tilted
    # d log f / dx = f'(u) / f(u) du/dx, and d log(du/dx) / dx = e^-R / below - e^x / above.
    by_x = tilted / 2.0 / chance * slope - e / above + _LOWEST / below
    return log_below - log_above, slope, np.log(chance) + log_slope, by_x


def coordinate(u: Floats) -> Floats:
    """Return the coordinate of a log scale; what is not inside of its interval is moved there."""
    # (2), solved for x.
    inside = np.clip(u, 0.1 - RANGE, -0.1)
    x: Floats = np.log(np.expm1(inside + RANGE)) - np.log(-np.expm1(inside)) - RANGE
    return x


def sample(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw scales v, in squares of half ranges."""
    share, is_even = rng.uniform(size=shape), rng.uniform(size=shape) < EVEN
    lowest = math.exp(-RANGE / 2.0)
    # Flat in sqrt(v) on e^(-R/2)..1, or flat in log v: the two parts of (1).
    deviation = lowest + (1.0 - lowest) * share
    drawn: Floats = np.where(is_even, np.exp(-RANGE * share), deviation**2)
    return drawn


_LEAST_APART = 1e-12
"""How far correlations that are drawn are from 1 at least."""
_LEAST_PART = 1e-13
"""The least variance along any direction that double precision tells from 0, beside the largest."""


@dataclass(frozen=True, slots=True)
class SpreadNormalInverseWishart(Prior):
    r"""Joint prior of the mean and the covariance of d columns, of which little is known but their bounds.

    .. math::
        \log (s_j / h_j) \sim q, \qquad
        R \sim \text{correlations of } \mathrm{InverseWishart}(2 a + d - 1,\ I), \qquad
        m_j \sim \mathrm{Normal}(\mu_j, h_j / 2)

    with q the density of ``spread_deviations``, of standard deviations from a 10,000th of the half range to
    all of it. Standard deviations and correlations are independent; of every correlation :math:`(1 + R_{ij})
    / 2` is Beta(a, a), whatever d is.

    Parameters
    ----------
    loc : float or list of float
        mu: the prior mean of the means, in the columns' units: one for all, or one per column.
    half_range : float or list of float, > 0
        h: half the width of the columns' bounds, in their units: one for all, or one per column.
    concentration : float, > 0
        a: 1 makes every correlation even on -1..1, less lets large ones prevail; 1/2, the arcsine law, by
        default.
    """

    loc: Entries
    half_range: Entries
    concentration: float = spread_deviations.CONCENTRATION

    def __post_init__(self) -> None:
        freeze(self)
        require_half_ranges(self, self.half_range)
        require_positive(self, "concentration")

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
        freedom = spread_deviations.freedom(self.concentration, columns)
        identity = np.broadcast_to(np.eye(columns), (size, columns, columns))
        _, covariance = normal_inverse_wishart.sample_normal_inverse_wishart(
            np.zeros((size, columns)), np.ones(size), np.full(size, freedom), identity, 1, rng
        )
        # What the inverse Wishart has for standard deviations is exchanged for those of the prior.
        sd = spread_deviations.sample((size, columns), rng) * half_range
        unit = 1.0 / np.sqrt(np.einsum("nii->ni", covariance[0]))
        correlation = covariance[0] * unit[:, :, None] * unit[:, None, :]
        # Correlations of 1 but for rounding would leave no root.
        correlation += _LEAST_APART * (np.eye(columns) - correlation)
        mean = loc + half_range / 2.0 * rng.standard_normal((size, columns))
        return mean, correlation * sd[:, :, None] * sd[:, None, :]


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
    sums: normal_inverse_wishart.Moments,
    names: tuple[str, ...],
    variance: Floats,
    weight: Floats,
    rng: np.random.Generator,
) -> normal_inverse_wishart.NormalInverseWishartDistribution:
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
    # A of (5), in half ranges of the moments.
    scale = scale_matrix(variance * unit**2) + sums.scatter
    # H^-1/2 A H^-1/2 = Q diag(a) Q^T. Where columns are all but multiples of each other, rounded sums leave
    # a scatter that is not positive; then the least a of a positive matrix stand in its place.
    a, vectors = np.linalg.eigh(scale / prior_sd / prior_sd[:, None])
    a = np.maximum(a, _LEAST_PART * a[:, -1:])
    scale = prior_sd[:, None] * ((vectors * a[:, None]) @ np.swapaxes(vectors, 1, 2)) * prior_sd
    doubled = (2.0 * sums.n * weight)[:, None]
    # (5): (H^-1 + 2 n w A^-1)^-1 = H^1/2 Q diag(a / (a + 2 n w)) Q^T H^1/2, the precisions' product.
    free = a / (a + doubled)
    # The mean of the product: centre + H^1/2 Q diag(1 - free) Q^T H^-1/2 (average - centre).
    pulled = (1.0 - free) * np.einsum("cij,ci->cj", vectors, (average - centre) / prior_sd)
    drawn = pulled + np.sqrt(free) * rng.standard_normal(pulled.shape)
    mean = centre + prior_sd * np.einsum("cij,cj->ci", vectors, drawn)
    # Sigma given the means: their distance from the average adds to the scatter.
    apart = average - mean
    scale = spread_deviations.moved(scale, sums.n, unit, prior.concentration, linear=True)
    scale = scale + sums.n[:, None, None] * apart[:, :, None] * apart[:, None, :]
    return normal_inverse_wishart.NormalInverseWishartDistribution(
        loc=sums.centre + sums.half_range * mean,
        precision=np.full(len(n), np.inf),
        df=spread_deviations.freedom(prior.concentration, len(names)) + sums.n,
        scale=sums.half_range[:, None] * sums.half_range * scale,
        names=names,
    )


@dataclass(frozen=True, slots=True)
class SpreadNormalInverseGammaRegression(Prior):
    r"""Joint prior of a regression of which little is known but the bounds of its columns.

    With x, y about the middle of their bounds, :math:`\mu`, in half ranges h, the intercept being the
    coefficient of a column of ones,

    .. math::
        \log v \sim f, \qquad s \mid v \sim \mathrm{InverseGamma}(3, 2 v), \qquad
        \beta_k \mid s, v \sim \mathrm{Normal}(0, \sqrt{s / v})

    with f the density of ``spread_scales.py``, of scales between :math:`10^{-8}` and 1. The residuals'
    variance s is v on average, given its scale v, which is latent. With both integrated out a coefficient is
    Student's t of 6 degrees of freedom and scale :math:`\sqrt{2 / 3}`; one of 1 takes the outcome through
    half its range while the predictor goes through half of its own. No coefficient has a spread scale: where
    noise hides the difference of two predictors, such a prior decides that one of them does nothing.

    Parameters
    ----------
    loc : list of float
        mu: the middle of the columns' bounds, in their units, the outcome's last; 0 without an intercept.
    half_range : list of float, > 0
        h: half the width of the columns' bounds, in their units, the outcome's last.
    """

    loc: Entries
    half_range: Entries

    def __post_init__(self) -> None:
        freeze(self)
        require_half_ranges(self, self.half_range)

    def of(self, columns: int, *, linear: bool) -> tuple[Floats, Floats]:
        """Return loc and half ranges, (columns,) each.

        Raises
        ------
        PriorError
            Where the prior is not one of so many columns, or tells of an intercept where there is none.
        """
        loc, half_range = vector_of(self, "loc", columns), vector_of(self, "half_range", columns)
        if not linear and loc.any():
            message = f"{type(self).__name__}: loc must be 0 where there is no intercept"
            raise PriorError(message)
        return loc, half_range

    def map_to_half_ranges(self, columns: int, *, linear: bool) -> tuple[Floats, Floats]:
        """Return B (k, k) and b (k,): coefficients in the columns' units are B beta + b."""
        loc, half_range = self.of(columns, linear=linear)
        # (5) of normal_inverse_gamma.py, from this prior's numbers.
        slopes = half_range[-1] / half_range[:-1]
        if not linear:
            return np.diag(slopes), np.zeros(len(slopes))
        matrix = np.diag([*slopes, half_range[-1]])
        matrix[-1, :-1] = -slopes * loc[:-1]
        return matrix, np.array([*np.zeros(len(slopes)), loc[-1]])

    def sample(
        self, size: int, rng: np.random.Generator, columns: int, *, linear: bool
    ) -> tuple[Floats, Floats]:
        """Return independent draws of coefficients (size, k) and variances (size,), in the columns' units."""
        matrix, shift = self.map_to_half_ranges(columns, linear=linear)
        v = sample((size,), rng)
        # s given v is 2 v over a gamma number of concentration 3: v on average.
        variance = 2.0 * v / rng.standard_gamma(CONCENTRATION, size)
        beta = np.sqrt(variance / v)[:, None] * rng.standard_normal((size, len(shift)))
        unit = self.of(columns, linear=linear)[1][-1] ** 2
        return beta @ matrix.T + shift, variance * unit
