r"""What the log density of latent moments leaves out: constants of priors and of moments.

With them its integral is the density of what was released, p(y), under the priors, but for the constant of
the noise. Of ``log_posterior``, powers of pi in (1) cancel those of the evidence of rows, but for
:math:`\pi^{-d / 2}` where there are first moments; the Jacobian (3) has :math:`2^d`. Constants of an inverse
Wishart of :math:`\nu` degrees of freedom and scale :math:`\Psi`, of means of precision :math:`k_0`, and of a
regression's prior of precision P, concentration a and scale b are

.. math:: \frac{|\Psi|^{\nu / 2} k_0^{p / 2}}{\Gamma_p(\nu / 2)}, \qquad
    \frac{|P|^{1 / 2} (2 b)^a}{\Gamma(a)} \qquad (1)

Method. Formulas. N is a real number, given that it is at least the least number of rows. Priors that are
spread over scales, and noise on a cone, have no estimate (decision 163), and no constant here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multivariate.evidence import (
    NormalEvidence,
    RegressionEvidence,
    multivariate_gamma,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.multivariate.evidence import Evidence
    from suffice.pipeline.math.engines.multivariate.log_posterior import LatentN, LatentTarget
    from suffice.pipeline.math.engines.multivariate.shared_target import SharedTarget
    from suffice.typing import Floats

_LOG_2, _LOG_PI = math.log(2.0), math.log(math.pi)


def log_constant(target: SharedTarget) -> float:
    """Return the logarithm of what a density of latent moments is to be multiplied by."""
    of_data_sets = sum(_of_data_set(each) for each in target.targets)
    return of_data_sets + sum(_of_evidence(each) for each in target.shared)


def _of_data_set(target: LatentTarget) -> float:
    d = target.size
    of_moments = d * _LOG_2 - _of_gamma(d) - (d / 2.0 * _LOG_PI if target.linear else 0.0)
    of_evidence = sum(_of_evidence(each) for each in target.evidence)
    return of_moments + of_evidence - _log_mass(target.latent_n)


def _of_gamma(size: int) -> float:
    """Return the log of Gamma_d over what ``multivariate_gamma`` takes for it, at any number."""
    from scipy.special import multigammaln

    half = size + 1.0
    return float(multigammaln(half, size) - multivariate_gamma(np.full(1, half), size)[0][0])


def _log_mass(of_n: LatentN) -> float:
    """Return the log of the integral of the prior of N."""
    if of_n.fixed:
        return 0.0
    if of_n.reciprocal:
        return math.log(math.log1p(of_n.highest) - math.log1p(of_n.lowest))
    return math.log(of_n.highest - of_n.lowest)


def _of_evidence(evidence: Evidence) -> float:
    """Return the constants of a prior; see (1)."""
    match evidence:
        case NormalEvidence():
            size = len(evidence.loc)
            of_means = size / 2.0 * math.log(evidence.precision) if evidence.linear else 0.0
            scale = evidence.df / 2.0 * _log_determinant(evidence.scale)
            return of_means + scale - _log_gamma(evidence.df / 2.0, size) + _of_gamma(size)
        case RegressionEvidence():
            concentration = evidence.concentration
            of_variance = concentration * math.log(2.0 * evidence.scale) - math.lgamma(concentration)
            return _log_determinant(evidence.precision) / 2.0 + of_variance
    raise TypeError(evidence)


def _log_gamma(half: float, size: int) -> float:
    from scipy.special import multigammaln

    return float(multigammaln(half, size))


def _log_determinant(matrix: Floats) -> float:
    return float(np.linalg.slogdet(matrix)[1])
