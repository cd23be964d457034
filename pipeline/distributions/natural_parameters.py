r"""Conjugate laws by their natural parameters, in which updates add up.

A conjugate law has a density :math:`\exp(\eta \cdot T(\theta)) / Z(\eta)`. Updating it with data adds their
statistics to :math:`\eta`, so given several disjoint data sets

.. math:: p(\theta \mid S_1, \dots, S_R) \text{ has } \eta = \eta_1 + \dots + \eta_R - (R - 1) \eta_0,

with :math:`\eta_0` of the prior and :math:`\eta_r` of the posterior given the r-th alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.distributions.dirichlet_blocks import BlockDirichletLaw
from suffice.pipeline.distributions.laws import DirichletLaw, GammaLaw, NormalInverseGammaLaw
from suffice.pipeline.distributions.scalar import InverseGammaLaw, NormalLaw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

ConjugateLaw: TypeAlias = (
    BlockDirichletLaw | DirichletLaw | GammaLaw | InverseGammaLaw | NormalLaw | NormalInverseGammaLaw
)


def natural(law: ConjugateLaw) -> Floats:
    """Return the natural parameters, (n_cells, n_natural)."""
    match law:
        case DirichletLaw() | BlockDirichletLaw():
            return law.concentration
        case GammaLaw():
            return np.stack([law.concentration, law.rate], axis=-1)
        case InverseGammaLaw():
            return np.stack([law.concentration, law.scale], axis=-1)
        case NormalLaw():
            precision = law.scale**-2.0
            return np.stack([precision, precision * law.loc], axis=-1)
        case NormalInverseGammaLaw():
            first = law.precision * law.loc
            return np.stack(
                [law.precision, first, law.concentration, law.scale + first * law.loc / 2.0], axis=-1
            )


def with_natural(law: ConjugateLaw, eta: Floats) -> ConjugateLaw:
    """Return the law of the same kind and names with these natural parameters."""
    match law:
        case DirichletLaw():
            return DirichletLaw(concentration=eta, shown=law.shown)
        case BlockDirichletLaw():
            return BlockDirichletLaw(concentration=eta, starts=law.starts)
        case GammaLaw():
            return GammaLaw(concentration=eta[..., 0], rate=eta[..., 1], name=law.name)
        case InverseGammaLaw():
            return InverseGammaLaw(concentration=eta[..., 0], scale=eta[..., 1], name=law.name)
        case NormalLaw():
            return NormalLaw(loc=eta[..., 1] / eta[..., 0], scale=eta[..., 0] ** -0.5)
        case NormalInverseGammaLaw():
            precision, first, concentration, second = np.moveaxis(eta, -1, 0)
            return NormalInverseGammaLaw(
                loc=first / precision,
                precision=precision,
                concentration=concentration,
                scale=second - first**2 / (2.0 * precision),
                names=law.names,
            )


def log_normaliser(law: ConjugateLaw) -> Floats:
    r"""Return :math:`\log Z(\eta)` up to a constant, of every cell."""
    from scipy.special import gammaln  # noqa: PLC0415 - slow to import

    match law:
        case DirichletLaw():
            total = np.sum(law.concentration, axis=-1)
            log_z: Floats = np.sum(gammaln(law.concentration), axis=-1) - gammaln(total)
        case BlockDirichletLaw():
            totals = np.add.reduceat(law.concentration, law.starts, axis=-1)
            log_z = np.sum(gammaln(law.concentration), axis=-1) - np.sum(gammaln(totals), axis=-1)
        case GammaLaw():
            log_z = gammaln(law.concentration) - law.concentration * np.log(law.rate)
        case InverseGammaLaw():
            log_z = gammaln(law.concentration) - law.concentration * np.log(law.scale)
        case NormalLaw():
            log_z = np.log(law.scale) + (law.loc / law.scale) ** 2 / 2.0
        case NormalInverseGammaLaw():
            log_z = gammaln(law.concentration) - law.concentration * np.log(law.scale)
            log_z = log_z - np.log(law.precision) / 2.0
    return log_z
