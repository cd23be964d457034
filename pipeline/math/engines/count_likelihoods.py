r"""The likelihood of a mean, of one noisy count or of several of the same count: one number, one function.

Model. A latent count is Poisson given its mean, and was released with discrete Laplace noise, once or in
several releases l:

.. math::
    A(\mu; y) = \sum_{k \ge 0} \frac{\mu^k e^{-\mu}}{k!} \prod_l \frac{1 - q_l}{1 + q_l} \, q_l^{|y_l - k|},
    \qquad q_l = e^{-1 / b_l}. \qquad (1)

Where a number of records N has a prior that is a mixture of Poisson laws, counts of a cell are independent
given their means, and each released number has such a likelihood. The priors of N that a release has are such
mixtures, but for their upper ends:

.. math::
    \frac{1}{N + 1} = \int_0^\infty \frac{\Lambda^N e^{-\Lambda}}{N!} \, e^\Lambda E_1(\Lambda) \, d\Lambda,
    \qquad
    1 = \int_0^\infty \frac{\Lambda^N e^{-\Lambda}}{N!} \, d\Lambda, \qquad (2)

as multiplying by :math:`z^N` and summing shows: the Laplace transform of :math:`e^\Lambda E_1(\Lambda)` at
s is :math:`\log(s) / (s - 1)` (DLMF 6.7.1). Of counts with probabilities p that add up to 1,

.. math::
    p(y \mid p) = \int_0^\infty g(\Lambda) \prod_j A(\Lambda p_j; y_j) \, d\Lambda. \qquad (3)

Between its kinks :math:`y_l` the noise is :math:`e^{c k}`, and a tilted Poisson law is one again:

.. math::
    \sum_{k \le m} \frac{\mu^k e^{-\mu}}{k!} e^{c k} = e^{\mu (e^c - 1)} \, Q(m + 1, \mu e^c)
    = \frac{\mu^m e^{-\mu}}{m!} e^{c m} \, R(m, \mu e^c), \qquad (4)

with Q the regularised incomplete gamma function and R the ratio of its tail to the last term of it, which is
neither large nor small where Q underflows. Of counts above m the same with P in the place of Q.

Symbols:

- mu: the mean, by its logarithm ``log_mean``
- y, b: ``values`` and ``scales``, of one release or several
- c: ``tilt``; q = e^(-1 / b)
- g: ``log_mixing``, the logarithm of what (2) has

Method. (4) is exact but for rounding, and costs the same whatever y and b are; two recursions over counts,
:math:`f_k = q f_{k - 1} + p_k` forwards and backwards, give the same for all y at once (tests). Ratios R are
continued fractions where Q or P underflow, or SciPy's P is not accurate.

References
----------
NIST Digital Library of Mathematical Functions (DLMF), 6.7, 8.4 and 8.9. Loader. Fast and accurate computation
of binomial probabilities. 2000. Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy
mechanisms. SIAM J. Comput. 41, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats, Rows

_LEAST = 1e-250
"""Tails below it are ratios to their last terms."""
_LARGE, _SPREADS = 1e5, 4.0
"""Counts, and standard deviations below them, from which on tails are ratios as well."""
_MOST_FRACTIONS = 400
_TINY = 1e-300
_LARGEST_LOG = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCount:
    """Noisy numbers of latent counts, one count a row.

    Attributes
    ----------
    values : ndarray of shape (n_counts, n_releases), float64
        Raw: negative ones are normal.
    scales : ndarray of shape (n_releases,), float64
        b, > 0, in counts.
    """

    values: Floats
    scales: Floats

    def take(self, rows: Rows) -> Self:
        """Return the given counts."""
        return type(self)(values=self.values[rows], scales=self.scales)

    def log_likelihood(self, log_mean: Floats) -> Floats:
        """Return log A of (1) at logarithms of means (n_counts, n), minus infinity included."""
        kinks = np.sort(self.values, axis=1)
        order = np.argsort(self.values, axis=1, kind="stable")
        rates = (1.0 / self.scales)[order]
        mean = np.exp(np.minimum(log_mean, _LARGEST_LOG))
        # Above the j-th kink the noise has the slope of those that are still to come less those passed.
        rising = np.sum(rates, axis=1, keepdims=True) - 2.0 * np.concatenate(
            [np.zeros((len(rates), 1)), np.cumsum(rates, axis=1)], axis=1
        )
        # Its height at every kink.
        height = -np.sum(np.abs(kinks[:, :, None] - kinks[:, None, :]) * rates[:, None, :], axis=2)
        last = kinks.shape[1]
        total = log_below(mean, kinks[:, :1], rising[:, :1], height[:, :1], kinks[:, :1])
        for piece in range(1, last):
            total = np.logaddexp(
                total,
                _between(
                    mean,
                    kinks[:, piece - 1 : piece],
                    kinks[:, piece : piece + 1],
                    rising[:, piece : piece + 1],
                    height[:, piece - 1 : piece],
                ),
            )
        end = kinks[:, -1:]
        total = np.logaddexp(total, log_above(mean, end, rising[:, -1:], height[:, -1:], end))
        normaliser: float = float(np.sum(np.log(np.tanh(0.5 / self.scales))))
        return np.asarray(total + normaliser, dtype=np.float64)


def log_mixing(prior: NPrior, mean: Floats) -> Floats | None:
    """Return log g of (2) at means of N, but for a constant that is the prior's own; None where it has none.

    The upper end of the prior is left out: it is for cells that are far below it.
    """
    from scipy.special import exp1, expn

    match prior:
        case Reciprocal():
            # e^x E_1(x) = 1 / x (1 - 1 / x + 2 / x^2 - ...), where e^x would overflow.
            large = mean > 50.0
            small = np.where(large, 1.0, mean)
            far = np.where(large, mean, 50.0)
            series = np.ones_like(far)
            term = np.ones_like(far)
            for order in range(1, 16):
                term = term * (-order / far)
                series = series + term
            with np.errstate(divide="ignore"):
                near = small + np.log(np.where(small > 0.0, exp1(small), expn(1, _TINY)))
            return np.where(large, np.log(series / far), near)
        case Uniform(lower=0):
            return np.zeros_like(mean)
        case Uniform() | Fixed():
            return None


def log_poisson(mean: Floats, count: Floats) -> Floats:
    """Return log probabilities of whole counts by their deviance, so that large numbers do not cancel."""
    from scipy.special import gammaln

    mean, count = np.broadcast_arrays(mean, count)
    large = count > 15.0
    k = np.where(large, count, 16.0)
    safe = np.maximum(mean, _TINY)
    # Stirling's series, and k log(k / mu) - k + mu as k times a function of (mu - k) / k.
    stirling = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * k**2)) / k**2) / k**2) / k
    apart = (safe - k) / k
    far = -k * (apart - _log1p_of(apart, safe / k)) - 0.5 * np.log(2.0 * np.pi * k) - stirling
    small = np.where(large, 1.0, np.maximum(count, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.where(small > 0.0, small * np.log(safe), 0.0) - mean - gammaln(small + 1.0)
        near = np.where((mean == 0.0) & (small > 0.0), -np.inf, near)
    value = np.where(large, np.where(mean == 0.0, -np.inf, far), near)
    return np.where(count < 0.0, -np.inf, value)


def _log1p_of(apart: Floats, ratio: Floats) -> Floats:
    """Return log(1 + apart), of apart next to -1 by the ratio itself."""
    return np.where(np.abs(apart) < 0.5, np.log1p(np.where(np.abs(apart) < 0.5, apart, 0.0)), np.log(ratio))


def log_below(mean: Floats, cut: Floats, tilt: Floats, height: Floats, at: Floats) -> Floats:
    """Return the log of the sum over 0 <= k <= cut of Poisson(k) e^(height + tilt (k - at))."""
    from scipy.special import gammaincc

    mean, cut, tilt, height, at = np.broadcast_arrays(mean, cut, tilt, height, at)
    safe = np.maximum(cut, 0.0)
    tilted = mean * np.exp(tilt)
    tail = gammaincc(safe + 1.0, tilted)
    bulk = tilted <= safe + 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = mean * np.expm1(tilt) - tilt * at + np.log(tail)
        ratio = np.log(tail) - log_poisson(tilted, safe)
    few = (tail < _LEAST) & ~bulk
    if np.any(few):
        ratio = ratio.copy()
        ratio[few] = _log_ratio_below(safe[few], tilted[few])
    with np.errstate(invalid="ignore"):
        edge = log_poisson(mean, safe) + tilt * (safe - at) + ratio
    return np.where(cut < 0.0, -np.inf, height + np.where(bulk, whole, edge))


def log_above(mean: Floats, cut: Floats, tilt: Floats, height: Floats, at: Floats) -> Floats:
    """Return the log of the sum over k > cut, k >= 0, of Poisson(k) e^(height + tilt (k - at))."""
    from scipy.special import gammainc

    mean, cut, tilt, height, at = np.broadcast_arrays(mean, cut, tilt, height, at)
    safe = np.maximum(cut, 0.0)
    tilted = mean * np.exp(tilt)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.where(cut < 0.0, 1.0, gammainc(safe + 1.0, tilted))
        # SciPy's series of P ends too early from 4.5 standard deviations on: at 10^7 it is off by 4 %.
        is_cut_off = (safe > _LARGE) & (tilted < safe - _SPREADS * np.sqrt(safe))
        bulk = (tilted >= safe + 1.0) | (cut < 0.0)
        whole = mean * np.expm1(tilt) - tilt * at + np.log(tail)
        ratio = np.log(tail) - log_poisson(tilted, safe)
    few = ((tail < _LEAST) | is_cut_off) & ~bulk
    if np.any(few):
        ratio = ratio.copy()
        ratio[few] = _log_ratio_above(safe[few], tilted[few])
    with np.errstate(invalid="ignore"):
        edge = log_poisson(mean, safe) + tilt * (safe - at) + ratio
    edge = np.where(mean == 0.0, -np.inf, edge)
    value: Floats = height + np.where(bulk, whole, edge)
    return value


def _between(mean: Floats, low: Floats, high: Floats, tilt: Floats, height: Floats) -> Floats:
    """Return the log of the sum over low < k <= high; the noise's height is that at low."""
    mean, low, high, tilt, height = np.broadcast_arrays(mean, low, high, tilt, height)
    tilted = mean * np.exp(tilt)
    below_high = log_below(mean, high, tilt, height, low)
    above_low = log_above(mean, low, tilt, height, low)
    # Differences on the side on which both are small.
    from_left = log_less(below_high, log_below(mean, low, tilt, height, low))
    from_right = log_less(above_low, log_above(mean, high, tilt, height, low))
    value = np.where(tilted > (low + high) / 2.0, from_left, from_right)
    return np.where(high <= np.maximum(low, -1.0), -np.inf, value)


def log_less(more: Floats, less: Floats) -> Floats:
    """Return the log of e^more - e^less, minus infinity where rounding has it negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(less == -np.inf, -np.inf, np.minimum(less - more, 0.0))
        return np.where(more == -np.inf, -np.inf, more + np.log(-np.expm1(gap)))


def _log_ratio_below(cut: Floats, mean: Floats) -> Floats:
    """Return log of P(X <= cut) / P(X = cut) where the mean is far above the cut."""
    # Q(m + 1, x) is x^(m + 1) e^-x / m! over the fraction x + 1 - a - 1 (1 - a) / (x + 3 - a - ...) with
    # a = m + 1 (DLMF 8.9.2).
    a = cut + 1.0
    b = mean + 1.0 - a
    c = np.full_like(b, 1.0 / _TINY)
    d = 1.0 / b
    h = d.copy()
    for step in range(1, _MOST_FRACTIONS):
        numerator = -step * (step - a)
        b = b + 2.0
        d = 1.0 / _away(numerator * d + b)
        c = _away(b + numerator / c)
        h = h * d * c
        if np.all(np.abs(d * c - 1.0) < 1e-15):
            break
    ratio: Floats = np.log(mean) + np.log(h)
    return ratio


def _log_ratio_above(cut: Floats, mean: Floats) -> Floats:
    """Return log of P(X > cut) / P(X = cut) where the mean is far below the cut."""
    # P(a, x) is x^a e^-x / Gamma(a) over a - a x / (a + 1 + x / (a + 2 - (a + 1) x / ...)) with a = m + 1
    # (DLMF 8.9.1).
    a = cut + 1.0
    f = a.copy()
    c, d = a.copy(), np.zeros_like(a)
    for step in range(1, _MOST_FRACTIONS):
        half = (step + 1) // 2
        numerator = -(a + half - 1.0) * mean if step % 2 else half * mean
        b = a + step
        d = 1.0 / _away(b + numerator * d)
        c = _away(b + numerator / c)
        f = f * c * d
        if np.all(np.abs(c * d - 1.0) < 1e-15):
            break
    with np.errstate(divide="ignore"):
        ratio: Floats = np.log(mean) - np.log(f)
    return ratio


def _away(value: Floats) -> Floats:
    return np.where(np.abs(value) < _TINY, _TINY, value)
