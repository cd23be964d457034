"""What simulations and comparisons need of any public prior: draws, a conjugate one like it, evidences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.distributions.conjugate import (
    DirichletDistribution,
    GammaDistribution,
    NormalInverseGammaDistribution,
)
from suffice.pipeline.distributions.conjugate_priors import (
    Beta,
    Dirichlet,
    Gamma,
    InverseGamma,
    Normal,
    NormalInverseGamma,
)
from suffice.pipeline.distributions.natural_parameters import log_normaliser
from suffice.pipeline.distributions.scalar import InverseGammaDistribution, NormalDistribution
from suffice.pipeline.priors.density import Density
from suffice.pipeline.priors.joint_density import Independent, JointDensity
from suffice.pipeline.priors.mixtures import Mixture

if TYPE_CHECKING:
    from suffice.pipeline.distributions.conjugate import Distribution
    from suffice.pipeline.distributions.conjugate_priors import Prior
    from suffice.pipeline.distributions.natural_parameters import ConjugateDistribution
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.priors.mixtures import AnyDensity
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


def draw(
    prior: Prior | Mixture | AnyDensity,
    family: Family,
    parameters: Parameters,
    size: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw parameters of a family from a prior, a row each, as ``Family.truth`` does from conjugate ones."""
    if isinstance(prior, Mixture):
        weight = np.array(prior.weights)
        chosen = rng.choice(len(weight), size, p=weight / np.sum(weight))
        parts = [family.truth(component, parameters, size, rng) for component in prior.components]
        mixed: Floats = np.stack(parts)[chosen, np.arange(size)]
        return mixed
    if isinstance(prior, Density):
        from suffice.pipeline.posterior.any_prior import density_posterior  # noqa: PLC0415 - rarely needed

        distribution = density_posterior(prior, family, parameters)
        return distribution.sample(size, rng)[distribution.name][:, 0]
    if isinstance(prior, Independent | JointDensity):
        from suffice.pipeline.families.normal import interval  # noqa: PLC0415 - rarely needed
        from suffice.pipeline.posterior.any_joint_prior import prior_distribution  # noqa: PLC0415

        drawn = prior_distribution(prior, interval(parameters), ("mean", "variance")).sample(size, rng)
        return np.concatenate([drawn["mean"], drawn["variance"]], axis=1)
    return family.truth(prior, parameters, size, rng)


def conjugate_like(
    prior: Prior | Mixture | AnyDensity, family: Family, parameters: Parameters
) -> Prior | Mixture:
    """Return a conjugate prior about where a density is and as wide; the prior itself if it is conjugate."""
    if isinstance(prior, Density):
        from suffice.pipeline.posterior.any_prior import conjugate_alike  # noqa: PLC0415 - rarely needed

        return conjugate_alike(prior, family, parameters)
    if isinstance(prior, Independent | JointDensity):
        from suffice.pipeline.engines.mean_variance.prior import DensityOnGrid  # noqa: PLC0415
        from suffice.pipeline.families.normal import interval  # noqa: PLC0415 - rarely needed
        from suffice.pipeline.posterior.any_joint_prior import conjugate_alike as alike  # noqa: PLC0415

        unit = interval(parameters)
        return alike(DensityOnGrid.of(prior, *unit), unit)
    return prior


def log_evidence(prior: Prior, distribution: Distribution) -> Floats:
    r"""Log density of exact sums under a conjugate prior, (n_cells,), up to what no prior changes.

    .. math:: \log p(S) = \log Z(\eta_0 + S) - \log Z(\eta_0) + \text{const}

    with Z the normaliser of the family of priors.

    Raises
    ------
    PriorError
        Where the posterior given exact sums, `distribution`, is no plain conjugate one.
    """
    plain = (
        DirichletDistribution
        | GammaDistribution
        | InverseGammaDistribution
        | NormalDistribution
        | NormalInverseGammaDistribution
    )
    start = _distribution_of(prior, distribution)
    if start is None or not isinstance(distribution, plain):
        message = "this family takes no mixture of priors yet: give one of its components"
        raise PriorError(message)
    return log_normaliser(distribution) - log_normaliser(start)


def _distribution_of(prior: Prior, like: Distribution) -> ConjugateDistribution | None:  # noqa: PLR0911 - one for each kind
    """A prior as the distribution of one cell."""
    match prior:
        case Beta():
            both = np.array([[prior.concentration0, prior.concentration1]], dtype=np.float64)
            return DirichletDistribution(concentration=both, shown=None)
        case Dirichlet() if isinstance(like, DirichletDistribution):
            shape = (1, like.concentration.shape[1])
            every = np.broadcast_to(np.array(prior.concentration, dtype=np.float64), shape)
            return DirichletDistribution(concentration=every, shown=None)
        case Gamma():
            return GammaDistribution(concentration=_one(prior.concentration), rate=_one(prior.rate))
        case InverseGamma():
            return InverseGammaDistribution(
                concentration=_one(prior.concentration), scale=_one(prior.scale), name="variance"
            )
        case Normal():
            return NormalDistribution(loc=_one(prior.loc), scale=_one(prior.scale))
        case NormalInverseGamma():
            return NormalInverseGammaDistribution(
                loc=_one(prior.loc),
                precision=_one(prior.precision),
                concentration=_one(prior.concentration),
                scale=_one(prior.scale),
            )
    return None


def _one(value: float) -> Floats:
    return np.array([value], dtype=np.float64)
