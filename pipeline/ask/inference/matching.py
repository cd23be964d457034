"""What simulations and comparisons need of any public prior: draws, a conjugate one like it, evidences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet, DirichletDistribution
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.joint_density import Independent, JointDensity
from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import ConjugateDistribution, Distribution, Prior
    from suffice.pipeline.math.priors.mixtures import AnyDensity
    from suffice.pipeline.terms.statistics.block import Parameters
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
        from suffice.pipeline.ask.inference.any_prior import density_posterior  # rarely needed

        distribution = density_posterior(prior, family, parameters)
        return distribution.sample(size, rng)[distribution.name][:, 0]
    if isinstance(prior, Independent | JointDensity):
        from suffice.pipeline.ask.inference.any_joint_prior import prior_distribution

        unit = _interval(family, parameters)
        drawn = prior_distribution(prior, unit, ("mean", "variance")).sample(size, rng)
        return np.concatenate([drawn["mean"], drawn["variance"]], axis=1)
    return family.truth(prior, parameters, size, rng)


def conjugate_like(
    prior: Prior | Mixture | AnyDensity, family: Family, parameters: Parameters
) -> Prior | Mixture:
    """Return a conjugate prior about where a density is and as wide; the prior itself if it is conjugate."""
    if isinstance(prior, Density):
        from suffice.pipeline.ask.inference.any_prior import conjugate_alike  # rarely needed

        return conjugate_alike(prior, family, parameters)
    if isinstance(prior, Independent | JointDensity):
        from suffice.pipeline.ask.inference.any_joint_prior import conjugate_alike as alike
        from suffice.pipeline.math.engines.mean_variance.prior_on_grid import DensityOnGrid

        unit = _interval(family, parameters)
        return alike(DensityOnGrid.of(prior, *unit), unit)
    return prior


def _interval(family: Family, parameters: Parameters) -> tuple[float, float]:
    if family.mean_and_variance is None:
        raise TypeError(family.name)
    return family.mean_and_variance.interval(parameters)


def log_evidence(prior: Prior, distribution: Distribution) -> Floats:
    r"""Log density of exact sums under a conjugate prior, (n_cells,), up to what no prior changes.

    .. math:: \log p(S) = \log Z(\eta_0 + S) - \log Z(\eta_0) + \text{const}

    with Z the normaliser of the family of priors.

    Raises
    ------
    PriorError
        Where the posterior given exact sums, `distribution`, is no plain conjugate one.
    """
    start: ConjugateDistribution | None = None
    match prior:
        case Beta() | Gamma() | InverseGamma() | Normal() | NormalInverseGamma():
            start = prior.distribution()
        case Dirichlet() if type(distribution) is DirichletDistribution:
            start = prior.distribution(distribution.concentration.shape[1])
    if start is None or not isinstance(distribution, type(start)):
        message = "this family takes no mixture of priors yet: give one of its components"
        raise PriorError(message)
    return distribution.log_normaliser() - start.log_normaliser()
