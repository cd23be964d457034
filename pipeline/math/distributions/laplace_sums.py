r"""The density of a sum of Laplace numbers; tails of such a sum and a skewed normal number, right far out.

Model. R is the sum of :math:`k_j` Laplace numbers of every scale :math:`b_j`, and of a gamma number less its
mean, with variance v and third central moment t (a normal one where t is 0), all independent. The log of its
moment generating function is

.. math::
    K(s) = -\sum_j k_j \log(1 - b_j^2 s^2) - \tfrac{v}{h^2} (\log(1 - h s) + h s),
    \qquad h = \frac t {2 v}, \qquad (1)

for a Laplace number has :math:`1 / (1 - b^2 s^2)`, and a gamma number of shape :math:`v / h^2` and scale h
the variance v and the third central moment 2 v h. Then

.. math:: P(R \ge x) = \frac 1 {2 \pi i} \int e^{K(s) - s x} \frac{ds} s \qquad (2)

along any line from below to above that crosses the real axis between 0 and where K ends. Through the saddle
point,

.. math:: K'(s_0) - x - 1 / s_0 = 0, \qquad (3)

the integrand is as high as the tail itself: the error is a share of the tail, however small that is. On

.. math:: s = s_0 + \omega \bigl(\tfrac 1 2 (\cosh \tau - 1) + i \sinh \tau\bigr), \qquad
    \omega = (K''(s_0) + s_0^{-2})^{-1/2}, \qquad (4)

which bends to the right, it falls like an exponential of an exponential of :math:`\tau`, and equal steps of
:math:`\tau` converge as fast.

Of k Laplace numbers of scale 1 alone the density is

.. math:: f_k(x) \propto |x|^{k - 1/2} K_{k - 1/2}(|x|) \propto
    e^{-|x|} \sum_{j < k} \frac{(2 k - 2 - j)!}{j! \, (k - 1 - j)!} (2 |x|)^j, \qquad (5)

with the modified Bessel function :math:`K_\nu`.

Symbols:

- x: any real number, in the unit of the scales
- b_j, k_j: ``scales``, (n, n_scales), at least one above 0 in a row, and ``counts``, (n_scales,), > 0
- v, t: ``variance`` >= 0 and ``third``, (n,)
- h: ``_Sum.step``, after division by the largest scale
- s_0, omega: ``saddle`` and ``width``, (n,)

Method. (5) is exact to 12 terms; beyond them its log is right to 1.1e-6, measured at k = 13, and better for
more. Probabilities of discrete Laplace numbers are exact but for rounding. Tails of equal Laplace numbers and
nothing else are exact; others are right to about a part in a thousand of themselves.

References
----------
Daniels. Tail probability approximations. Int. Stat. Rev. 55, 1987. Kotz, Kozubowski, Podgorski. The Laplace
distribution and generalizations. 2001. DLMF 10.41.4 and 10.49.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from suffice.typing import Floats


_EXACT = 12
"""Laplace numbers up to which the density of their sum is a finite sum."""
_HALVINGS = 24
"""Of the interval of logits: the saddle point need not be more exact than 78 / 2^24."""
_LOGITS = (-45.0, 33.0)
_BEND = 0.5
"""How far a step along the line goes to the right: less than up, so that the normal part falls as well."""
_STEPS = np.arange(0.15, 11.0, 0.3)
"""Middles of equal steps: the integrand falls on both sides like an exponential of an exponential."""
_SMALL = 1e-3
_NUMBERS = 1 << 20
_LEAST = 1e-300


def upper_tail(x: Floats, scales: Floats, counts: Floats, variance: Floats, third: Floats) -> Floats:
    """Return the chance that R is x or more, to about a part in a thousand of itself.

    Parameters
    ----------
    x, variance : ndarray of shape (n,), float64
    scales : ndarray of shape (n, n_scales), float64
        At least one of a row is not 0; signs do not matter.
    counts : ndarray of shape (n_scales,), float64
        How many numbers are of each scale.
    third : ndarray of shape (n,), float64
        Third central moments. Negative ones count as 0, by which tails far out are no smaller.
    """
    if len(counts) == 1 and 1.0 <= counts[0] <= _EXACT and not np.any(variance):
        return _tail_of_equals(x / np.maximum(np.abs(scales[:, 0]), _LEAST), round(float(counts[0])))
    size = max(1, _NUMBERS // (len(_STEPS) * len(counts)))
    probability = np.empty(len(x))
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        sign = np.where(x[part] < 0.0, -1.0, 1.0)
        of_part = _Sum(np.abs(scales[part]), counts, variance[part], np.maximum(sign * third[part], 0.0))
        tail = of_part.tail(np.abs(x[part]))
        # P(R >= x) = 1 - P(-R >= -x), and -R has the third moment -t.
        probability[part] = np.where(sign < 0.0, 1.0 - tail, tail)
    return probability


def log_density_of_sum(x: Floats, terms: int) -> Floats:
    """Return the log density of a sum of Laplace numbers of scale 1, up to a constant.

    The finite sum of (5) is taken to ``_EXACT`` terms. Beyond them stands Debye's expansion of the Bessel
    function to its third term, of which the log is right to 1.1e-6.

    Parameters
    ----------
    x : ndarray, float64
    terms : int, > 0
        k, how many numbers are summed.
    """
    distance = np.abs(x)
    if terms <= _EXACT:
        series = np.zeros_like(distance)
        for j in range(terms - 1, -1, -1):
            # (5), by Horner's rule: (2 k - 2 - j)! / j! / (k - 1 - j)! as whole numbers.
            series *= 2.0 * distance
            series += math.comb(2 * terms - 2 - j, j) * math.perm(2 * terms - 2 - 2 * j, terms - 1 - j)
        log_density: Floats = np.log(series) - distance
        return log_density
    order = terms - 0.5
    root = np.sqrt(1.0 + (distance / order) ** 2)
    t = 1.0 / root
    # U_1, U_2 and U_3 of DLMF 10.41.10, at t = (1 + (x / nu)^2)^(-1/2).
    first = t * (3.0 - 5.0 * t**2) / 24.0
    second = t**2 * (81.0 - 462.0 * t**2 + 385.0 * t**4) / 1152.0
    third = t**3 * (30375.0 - 369603.0 * t**2 + 765765.0 * t**4 - 425425.0 * t**6) / 414720.0
    correction = (-first + (second - third / order) / order) / order
    # log(x^nu K_nu(x)) by DLMF 10.41.4: the powers of x cancel against those in its exponent.
    expanded: Floats = order * (np.log1p(root) - root) - 0.5 * np.log(root) + np.log1p(correction)
    return expanded


def log_mass_of_sum(most: int, terms: int, scale: float) -> Floats:
    r"""Return the log probabilities of a sum of discrete Laplace numbers at 0..most, exactly.

    Their generating function is :math:`g(z) = c \, ((1 - q z)(1 - q / z))^{-m}` with :math:`q = e^{-1/b}`.
    From :math:`z g' (1 - q z)(1 - q / z) = m q (z - 1 / z) g` follows, for k > 0,

    .. math:: (1 + q^2) \, k \, p_k = q (k - 1 + m) \, p_{k-1} + q (k + 1 - m) \, p_{k+1}.

    The probabilities are its solution that vanishes far out. Ratios of it are taken from there inwards, where
    they are stable (Miller's algorithm).

    Parameters
    ----------
    most : int, > 0
    terms : int, > 0
        m, how many numbers are summed.
    scale : float, > 0
        b of each.

    Returns
    -------
    ndarray of shape (most + 1,), float64
    """
    q = math.exp(-1.0 / scale)
    # Errors of the first ratio, which is wrong, have died out 64 nats further in.
    start = most + math.ceil(64.0 * scale) + 64 * terms
    ratio, ratios = q, []
    for k in range(start, 0, -1):
        ratio = q * (k - 1 + terms) / ((1.0 + q * q) * k - q * (k + 1 - terms) * ratio)
        ratios.append(ratio)
    log_mass = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(ratios[::-1], _LEAST)))])
    whole = 1.0 + 2.0 * np.sum(np.exp(log_mass[1:]))
    return np.asarray(log_mass[: most + 1] - math.log(whole), dtype=np.float64)


def _tail_of_equals(x: Floats, terms: int) -> Floats:
    """Return the tail of a sum of Laplace numbers of scale 1 and nothing else: its density, integrated."""
    from scipy.special import gammaincc

    distance = np.abs(x)
    tail = np.zeros_like(distance)
    for j in range(terms):
        # (5) term by term: x^j e^-x / j! integrates to Q(j + 1, x), DLMF 8.4.8.
        weight = math.comb(2 * terms - 2 - j, terms - 1) * 2.0 ** (j - 2 * terms + 1)
        tail += weight * gammaincc(j + 1.0, distance)
    return np.where(x < 0.0, 1.0 - tail, tail)


class _Sum:
    """Sums in units in which the largest scale is 1."""

    def __init__(self, scales: Floats, counts: Floats, variance: Floats, third: Floats) -> None:
        self.unit = np.maximum(np.max(scales, axis=1), _LEAST)
        self.scales, self.counts = scales / self.unit[:, None], counts
        self.variance = variance / self.unit**2
        with np.errstate(divide="ignore", invalid="ignore"):
            # h = t / 2 v in units of the largest scale.
            step = np.where(variance > 0.0, third / variance / self.unit / 2.0, 0.0)
        self.step = step
        # Where K ends: at 1 over the largest scale, or at 1 / h.
        self.last = 1.0 / np.maximum(step, 1.0)

    def tail(self, x: Floats) -> Floats:
        """Return the tails at x >= 0."""
        x = x / self.unit
        low, high = (np.full(len(x), end) for end in _LOGITS)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            saddle = self.last / (1.0 + np.exp(-middle))
            # (3), by bisection of the logit of s_0 over where K ends: K' - 1 / s rises with s.
            rises = self._slope(saddle) - x - 1.0 / saddle > 0.0
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        saddle = self.last / (1.0 + np.exp(-(low + high) / 2.0))
        width = 1.0 / np.sqrt(self._curvature(saddle) + 1.0 / saddle**2)
        step = width[:, None]
        # (4) and its derivative by tau.
        line = saddle[:, None] + step * (_BEND * (np.cosh(_STEPS) - 1.0) + 1j * np.sinh(_STEPS))
        along = step * (_BEND * np.sinh(_STEPS) + 1j * np.cosh(_STEPS))
        value = np.exp(self._log_normal(line) - line * x[:, None]) / line * along
        for scale, count in zip(self.scales.T, self.counts.tolist(), strict=True):
            factor = 1.0 - (scale[:, None] * line) ** 2
            value = value / factor if count == 1.0 else value * np.exp(-count * np.log(factor))
        # (2) by the midpoint rule; the lower half is the upper's complex conjugate, so that the imaginary
        # part over pi is both.
        tail: Floats = np.clip(np.sum(value.imag, axis=1) * (_STEPS[1] - _STEPS[0]) / np.pi, 0.0, 1.0)
        return tail

    def _slope(self, s: Floats) -> Floats:
        square = (self.scales * s[:, None]) ** 2
        # K'(s): 2 k b^2 s / (1 - b^2 s^2), and v s / (1 - h s).
        noise = 2.0 * (self.scales**2 * s[:, None] / (1.0 - square)) @ self.counts
        slope: Floats = noise + self.variance * s / (1.0 - self.step * s)
        return slope

    def _curvature(self, s: Floats) -> Floats:
        square = (self.scales * s[:, None]) ** 2
        # K''(s).
        noise = 2.0 * (self.scales**2 * (1.0 + square) / (1.0 - square) ** 2) @ self.counts
        curvature: Floats = noise + self.variance / (1.0 - self.step * s) ** 2
        return curvature

    def _log_normal(self, s: NDArray[Any]) -> NDArray[Any]:
        """Log of the moments of the part that is no noise."""
        log_moments: NDArray[Any] = self.variance[:, None] / 2.0 * s**2
        skewed = np.flatnonzero(self.step > 0.0)
        if skewed.size:
            u = self.step[skewed, None] * s[skewed]
            # -(log(1 - u) + u) / u^2 = 1/2 + u / 3 + u^2 / 4 + u^3 / 5 + ..., with u = h s.
            far = -(np.log(1.0 - u) + u) / u**2
            near = 0.5 + u * (1.0 / 3.0 + u * (0.25 + u * 0.2))
            log_moments[skewed] *= 2.0 * np.where(np.abs(u) < _SMALL, near, far)
        return log_moments
