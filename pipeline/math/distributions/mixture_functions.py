"""Compiled distribution functions of mixtures of betas and gammas; approximations are those of their modules.

Where concentrations are large enough a loop over parts calls nothing, and becomes vector instructions.

Symbols are those of ``mixture_kernel``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.machine_code import inner, merged, vectorised
from suffice.pipeline.math.distributions.vector_functions import exp, log

if TYPE_CHECKING:
    from suffice.typing import Floats

BETA, GAMMA = range(2)
"""Distributions of the parameter: ``update`` has both natural parameters as linear functions of N and S."""
LARGE = 4.0
"""Concentration from which on betas are nearly normal."""
_ROOT_HALF = math.sqrt(0.5)
_NEAR = 1e-3
_FAR = 25.0
"""Half a deviance from which on a part is all on one side."""
_MANY = 1e7
"""Pseudo-counts from which on deviances are no differences of large numbers."""
_ROUNDS, _TINY, _CLOSE = 3000, 1e-300, 1e-13
_ERFC_SCALE, _ERFC_DEGREE = 3.0, 12


def _erfc_series() -> tuple[float, ...]:
    """Coefficients of powers of 2 t - 1: of erfc(u) e^(u^2) / t, t = c / (c + u), right to 1e-9."""
    from scipy.special import erfcx

    # Interpolated at the roots of Chebyshev's polynomial.
    y = np.cos(np.pi * (np.arange(_ERFC_DEGREE + 1) + 0.5) / (_ERFC_DEGREE + 1))
    t = 0.5 * (y + 1.0)
    values = erfcx(_ERFC_SCALE * (1.0 / t - 1.0)) / t
    return tuple(np.linalg.solve(np.vander(y, increasing=True), values).tolist())


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12 = _erfc_series()


@inner
def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x * _ROOT_HALF)


@inner
def _excess(x: float) -> float:
    """As ``distribution.excess``."""
    if abs(x) <= 1e-4:
        return x * x * (0.5 - x / 3.0)
    return x - math.log1p(max(x, -1.0))


@inner
def _incomplete_gamma(a: float, x: float) -> float:
    """P(a, x): DLMF 8.7.1 below a + 1, and the continued fraction 8.9.2 of Q from there on."""
    if x <= 0.0:
        return 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = 1.0 / a
        total, k = term, a
        for _ in range(_ROUNDS):
            k += 1.0
            term *= x / k
            total += term
            if term < total * _CLOSE:
                break
        return front * total
    # Lentz's method.
    b = x + 1.0 - a
    c, d = 1.0 / _TINY, 1.0 / b
    h = d
    for i in range(1, _ROUNDS):
        numerator = -i * (i - a)
        b += 2.0
        d = numerator * d + b
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = b + numerator / c
        c = c if abs(c) > _TINY else _TINY
        h *= d * c
        if abs(d * c - 1.0) < _CLOSE:
            break
    return 1.0 - front * h


@inner
def _root(deviance: float, gap: float, scale: float) -> float:
    """Root of a deviance over the gap that it is of; next to no gap it is not known from a difference."""
    return 1.0 / scale if abs(gap) < _NEAR * scale else math.sqrt(max(deviance, 0.0)) / abs(gap)


@inner
def constant_of(line: int, a: float, b: float, large: float) -> float:
    """What of a distribution function depends on no position; of a beta that is raised, see ``_beta_cdf``."""
    if line == BETA:
        while a < large:
            a += 1.0
        while b < large:
            b += 1.0
        s, t = a - 0.5, b - 0.5
        return s * math.log(s / (s + t)) + t * math.log(t / (s + t))
    s = max(a, LARGE) - 0.5
    return s * (math.log(s) - math.log(b))


@vectorised
def put_constants(line: int, parts: Floats, number: int) -> None:
    """As ``constant_of``, of all parts, as if all concentrations were large."""
    first, second, constant = parts[1], parts[2], parts[3]
    if line == BETA:
        for i in range(number):
            s, t = max(first[i] - 0.5, 0.25), max(second[i] - 0.5, 0.25)
            constant[i] = s * log(s / (s + t))
        for i in range(number):
            s, t = max(first[i] - 0.5, 0.25), max(second[i] - 0.5, 0.25)
            constant[i] += t * log(t / (s + t))
    else:
        for i in range(number):
            s = max(first[i], LARGE) - 0.5
            constant[i] = s * (log(s) - log(second[i]))


@inner
def _beta_cdf(
    a: float, b: float, constant: float, log_beta: float, p: float, q: float, log_p: float, log_q: float,
    large: float,
) -> float:  # fmt: skip
    """As ``dirichlet.beta_cdf``, to 1e-4, where both are large; to there by DLMF 8.17.20 and 8.17.21."""
    added = 0.0
    if a < large or b < large:
        term = math.exp(a * log_p + b * log_q - log_beta) / a
        while a < large:
            added += term
            term *= (a + b) / (a + 1.0) * p
            a += 1.0
        term *= a / b
        while b < large:
            added -= term
            term *= (a + b) / (b + 1.0) * q
            b += 1.0
    n, s, t = a + b - 1.0, a - 0.5, b - 0.5
    gap = s * q - t * p
    half = constant - s * log_p - t * log_q
    if half > _FAR:
        return added if gap > 0.0 else 1.0 + added
    scale = math.sqrt(n * p * q)
    if n >= _MANY:
        half = s * _excess(-gap / s) + t * _excess(gap / t)
    deviance = 2.0 * half / (1.0 + 1.0 / (6.0 * n))
    d = a - 1.0 / 3.0 - (n + 1.0 / 3.0) * p + 0.02 * (q / a - p / b + (q - 0.5) / (n + 1.0))
    return added + _normal(-d * _root(deviance, gap, scale))


@inner
def _gamma_cdf(a: float, constant: float, x: float, position: float) -> float:
    """As ``gamma.gamma_cdf``."""
    if a < LARGE:
        return _incomplete_gamma(a, x)
    s = a - 0.5
    gap = x - s
    half = gap + constant - s * position if s < _MANY else s * _excess(gap / s)
    d = x - a + 1.0 / 3.0 - 0.02 / a
    return _normal(d * _root(2.0 * half, gap, math.sqrt(s)))


@merged
def _normals(x: float) -> float:
    """Normal distribution function, to 1e-9 of either tail, without a branch."""
    u = abs(x) * _ROOT_HALF
    t = _ERFC_SCALE / (_ERFC_SCALE + u)
    y = 2.0 * t - 1.0
    series = ((_C12 * y + _C11) * y + _C10) * y + _C9
    series = (((series * y + _C8) * y + _C7) * y + _C6) * y + _C5
    series = ((((series * y + _C4) * y + _C3) * y + _C2) * y + _C1) * y + _C0
    tail = 0.5 * t * series * exp(-u * u)
    return tail if x < 0.0 else 1.0 - tail


@merged
def _normals_of(deviance: float, gap: float, scale: float, d: float) -> float:
    """As ``_normal`` of d times ``_root``."""
    near = abs(gap) < _NEAR * scale
    by = 1.0 / (scale if near else abs(gap))
    return _normals(d * (by if near else math.sqrt(max(deviance, 0.0)) * by))


@vectorised
def _betas(parts: Floats, number: int, p: float, q: float, log_p: float, log_q: float) -> None:
    """As ``_beta_cdf``, of all parts, where both concentrations are large and not very large."""
    first, second, constant, out = parts[1], parts[2], parts[3], parts[5]
    for i in range(number):
        a, b = first[i], second[i]
        n, s, t = a + b - 1.0, a - 0.5, b - 0.5
        half = constant[i] - s * log_p - t * log_q
        deviance = 2.0 * half / (1.0 + 1.0 / (6.0 * n))
        d = a - 1.0 / 3.0 - (n + 1.0 / 3.0) * p + 0.02 * (q / a - p / b + (q - 0.5) / (n + 1.0))
        out[i] = _normals_of(deviance, s * q - t * p, math.sqrt(n * p * q), -d)


@vectorised
def _gammas(parts: Floats, number: int, factor: float, position: float) -> None:
    """As ``_gamma_cdf``, of all parts, where concentrations are large and not very large."""
    first, rate, constant, out = parts[1], parts[2], parts[3], parts[5]
    for i in range(number):
        a, x = first[i], rate[i] * factor
        s = a - 0.5
        gap = x - s
        half = gap + constant[i] - s * position
        out[i] = _normals_of(2.0 * half, gap, math.sqrt(s), x - a + 1.0 / 3.0 - 0.02 / a)


@inner
def below(line: int, parts: Floats, number: int, position: float, large: float) -> float:
    """Distribution function of a mixture of parts: weight, a, b, ``constant_of``, log B(a, b), their own."""
    total = 0.0
    weight, first, second, out = parts[0], parts[1], parts[2], parts[5]
    if line == BETA:
        odds = math.exp(-abs(position))
        larger, smaller = 1.0 / (1.0 + odds), odds / (1.0 + odds)
        log_larger = -math.log1p(odds)
        log_smaller = log_larger - abs(position)
        p, q = (larger, smaller) if position > 0.0 else (smaller, larger)
        log_p, log_q = (log_larger, log_smaller) if position > 0.0 else (log_smaller, log_larger)
        _betas(parts, number, p, q, log_p, log_q)
        for i in range(number):
            a, b = first[i], second[i]
            if min(a, b) < large or a + b >= _MANY:
                out[i] = _beta_cdf(a, b, parts[3, i], parts[4, i], p, q, log_p, log_q, large)
            total += weight[i] * out[i]
        return total
    factor = math.exp(position)
    _gammas(parts, number, factor, position)
    for i in range(number):
        if first[i] < LARGE or first[i] >= _MANY:
            out[i] = _gamma_cdf(first[i], parts[3, i], second[i] * factor, position)
        total += weight[i] * out[i]
    return total
