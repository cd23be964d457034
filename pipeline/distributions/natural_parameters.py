r"""Conjugate distributions by their natural parameters, in which updates add up.

A conjugate distribution has a density :math:`\exp(\eta \cdot T(\theta)) / Z(\eta)`. Updating it with data
adds their statistics to :math:`\eta`, so given several disjoint data sets

.. math:: p(\theta \mid S_1, \dots, S_R) \text{ has } \eta = \eta_1 + \dots + \eta_R - (R - 1) \eta_0,

with :math:`\eta_0` of the prior and :math:`\eta_r` of the posterior given the r-th alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.distributions.conjugate import (
    DirichletDistribution,
    GammaDistribution,
    NormalInverseGammaDistribution,
)
from suffice.pipeline.distributions.dirichlet_blocks import BlockDirichlet
from suffice.pipeline.distributions.scalar import InverseGammaDistribution, NormalDistribution

if TYPE_CHECKING:
    from suffice.typing import Floats


ConjugateDistribution: TypeAlias = (
    BlockDirichlet
    | DirichletDistribution
    | GammaDistribution
    | InverseGammaDistribution
    | NormalDistribution
    | NormalInverseGammaDistribution
)


def natural(distribution: ConjugateDistribution) -> Floats:
    """Return the natural parameters, (n_cells, n_natural)."""
    match distribution:
        case DirichletDistribution() | BlockDirichlet():
            return distribution.concentration
        case GammaDistribution():
            return np.stack([distribution.concentration, distribution.rate], axis=-1)
        case InverseGammaDistribution():
            return np.stack([distribution.concentration, distribution.scale], axis=-1)
        case NormalDistribution():
            precision = distribution.scale**-2.0
            return np.stack([precision, precision * distribution.loc], axis=-1)
        case NormalInverseGammaDistribution():
            first = distribution.precision * distribution.loc
            return np.stack(
                [
                    distribution.precision,
                    first,
                    distribution.concentration,
                    distribution.scale + first * distribution.loc / 2.0,
                ],
                axis=-1,
            )


def with_natural(distribution: ConjugateDistribution, eta: Floats) -> ConjugateDistribution:
    """Return the distribution of the same kind and names with these natural parameters."""
    match distribution:
        case DirichletDistribution():
            return DirichletDistribution(concentration=eta, shown=distribution.shown)
        case BlockDirichlet():
            return BlockDirichlet(concentration=eta, starts=distribution.starts)
        case GammaDistribution():
            return GammaDistribution(concentration=eta[..., 0], rate=eta[..., 1], name=distribution.name)
        case InverseGammaDistribution():
            return InverseGammaDistribution(
                concentration=eta[..., 0], scale=eta[..., 1], name=distribution.name
            )
        case NormalDistribution():
            return NormalDistribution(loc=eta[..., 1] / eta[..., 0], scale=eta[..., 0] ** -0.5)
        case NormalInverseGammaDistribution():
            precision, first, concentration, second = np.moveaxis(eta, -1, 0)
            return NormalInverseGammaDistribution(
                loc=first / precision,
                precision=precision,
                concentration=concentration,
                scale=second - first**2 / (2.0 * precision),
                names=distribution.names,
            )


def log_normaliser(distribution: ConjugateDistribution) -> Floats:
    r"""Return :math:`\log Z(\eta)` up to a constant, of every cell."""
    from scipy.special import gammaln  # noqa: PLC0415 - slow to import

    match distribution:
        case DirichletDistribution():
            total = np.sum(distribution.concentration, axis=-1)
            log_z: Floats = np.sum(gammaln(distribution.concentration), axis=-1) - gammaln(total)
        case BlockDirichlet():
            totals = np.add.reduceat(distribution.concentration, distribution.starts, axis=-1)
            log_z = np.sum(gammaln(distribution.concentration), axis=-1) - np.sum(gammaln(totals), axis=-1)
        case GammaDistribution():
            log_z = gammaln(distribution.concentration) - distribution.concentration * np.log(
                distribution.rate
            )
        case InverseGammaDistribution():
            log_z = gammaln(distribution.concentration) - distribution.concentration * np.log(
                distribution.scale
            )
        case NormalDistribution():
            log_z = np.log(distribution.scale) + (distribution.loc / distribution.scale) ** 2 / 2.0
        case NormalInverseGammaDistribution():
            log_z = gammaln(distribution.concentration) - distribution.concentration * np.log(
                distribution.scale
            )
            log_z = log_z - np.log(distribution.precision) / 2.0
    return log_z
