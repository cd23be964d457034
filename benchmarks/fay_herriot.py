r"""Fay and Herriot's estimator on noisy direct estimates, as an office would do without exact likelihoods.

.. math:: y_i = \theta_i + e_i, \quad e_i \sim \mathrm{Normal}(0, \psi_i), \qquad
    \theta_i = x_i^\top \beta + u_i, \quad u_i \sim \mathrm{Normal}(0, A)

with the direct estimate :math:`y_i = S_i / n_i` of noisy sums, x of 1 and the logarithm of the noisy size,
and :math:`\psi_i` of sampling and noise, to first order, at the mean of all cells. A by restricted maximum
likelihood; intervals are normal with the mean squared error g_1 + g_2 + 2 g_3 of Prasad and Rao.

References
----------
Fay, Herriot. Estimates of income for small places. J. Amer. Statist. Assoc. 74, 1979. Prasad, Rao. The
estimation of the mean squared error of small-area estimators. J. Amer. Statist. Assoc. 85, 1990.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

_ITERATIONS, _NORMAL_975 = 100, 1.959964


def direct_estimates(statistic: NoisyStatistic, bound: float) -> tuple[Floats, Floats, Floats]:
    """Return y, psi and noisy sizes of cells with the noisy sums of S and of what the bound leaves of N."""
    values = statistic.values.astype(np.float64)
    # A bernoulli cell counts what is false first, a poisson cell the sum.
    rest, total = values.T if bound == 1.0 else values[:, ::-1].T
    size = np.maximum((total + rest) / bound, 1.0)
    y = total / size  # not within 0..bound: what is cut off would be bias
    mean = max(float(np.sum(total) / np.sum(size)), 0.01)
    q = np.exp(-1.0 / statistic.plan.scale)
    noise = 2.0 * q / (1.0 - q) ** 2
    sampling = mean * (1.0 - mean) if bound == 1.0 else mean
    # Derivatives of S / n by both sums.
    share = mean / bound
    psi = sampling / size + noise * ((1.0 - share) ** 2 + share**2) / size**2
    return y, psi, size


def fay_herriot(y: Floats, psi: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Return estimates and the roots of their mean squared errors."""
    x = np.log1p(size)
    design = np.stack([np.ones_like(x), (x - np.mean(x)) / max(float(np.std(x)), 1e-9)], axis=1)
    a = max(float(np.var(y) - np.mean(psi)), 0.01 * float(np.var(y)))
    for _ in range(_ITERATIONS):
        # Fisher's scoring of the restricted likelihood: P = V^-1 - V^-1 X (X' V^-1 X)^-1 X' V^-1.
        w = 1.0 / (a + psi)
        inverse = np.linalg.inv(design.T @ (w[:, None] * design))
        beta = inverse @ design.T @ (w * y)
        second = inverse @ (design.T @ (w[:, None] ** 2 * design))
        third = inverse @ (design.T @ (w[:, None] ** 3 * design))
        of_p = np.sum(w) - np.trace(second)
        of_pp = np.sum(w**2) - 2.0 * np.trace(third) + np.trace(second @ second)
        step = (np.sum((w * (y - design @ beta)) ** 2) - of_p) / of_pp
        new = max(a + step, 0.0)
        if abs(new - a) < 1e-9 * (a + 1e-9):
            break
        a = new
    w = 1.0 / (a + psi)
    inverse = np.linalg.inv(design.T @ (w[:, None] * design))
    beta = inverse @ design.T @ (w * y)
    shrinkage = psi * w
    synthetic = design @ beta
    g1 = a * shrinkage
    g2 = shrinkage**2 * np.sum((design @ inverse) * design, axis=1)
    g3 = psi**2 * w**3 * 2.0 / np.sum(w**2)
    return y + shrinkage * (synthetic - y), np.sqrt(g1 + g2 + 2.0 * g3)


def intervals(statistic: NoisyStatistic, bound: float) -> tuple[Floats, Floats, Floats]:
    """Return estimates, and the ends of 95 % intervals, within what the parameter can be."""
    estimate, error = fay_herriot(*direct_estimates(statistic, bound))
    low, high = (np.clip(estimate + side * _NORMAL_975 * error, 0.0, bound) for side in (-1.0, 1.0))
    return np.clip(estimate, 0.0, bound), low, high
