"""The marginal densities of a posterior's prior, for what shows both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.beta import Beta
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.dirichlet_blocks import BlockDirichlet
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.math.distributions.inverse_gamma import InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.engines.posterior_mixture import PosteriorMixture
from suffice.pipeline.math.parameters.parameter_posterior import points_for
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.joint_density import Independent, JointDensity
from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats


def prior_distribution_of(posterior: Judged) -> Distribution | None:
    """Return the prior of one cell's parameters, in the order of the posterior's; None where it has no form.

    That is the prior of regressions and of several columns, and where the posterior knows no constants.
    """
    prior, constants = posterior.prior, posterior.constants
    if constants is None:
        return None
    family = FAMILIES[posterior.family]
    match prior:
        case Density():
            from suffice.pipeline.ask.inference.any_prior import density_posterior  # rarely needed

            return density_posterior(prior, family, constants)
        case Independent() | JointDensity() if family.mean_and_variance is not None:
            from suffice.pipeline.ask.inference.any_joint_prior import prior_distribution

            mean, variance = posterior.parameters
            return prior_distribution(prior, family.mean_and_variance.interval(constants), (mean, variance))
        case Mixture():
            weights = np.array(prior.weights)
            parts = [_conjugate(component, posterior, constants) for component in prior.components]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            share = (weights / np.sum(weights))[:, None]
            return PosteriorMixture(distributions=known, share=share, log_evidence=np.zeros(1))
    return _conjugate(prior, posterior, constants)


def _conjugate(prior: object, posterior: Judged, constants: Parameters) -> Distribution | None:
    match prior:
        case Beta() | Gamma() | InverseGamma() | Normal() | NormalInverseGamma():
            return prior.distribution()
        case Dirichlet():
            (space,) = FAMILIES[posterior.family].parameter_spaces(constants)
            given = np.array(prior.concentration, dtype=np.float64)
            return BlockDirichlet(
                concentration=np.broadcast_to(given, (1, *space.shape)), starts=np.array(space.starts)
            )
    return None


def prior_density_of(posterior: Judged, parameter: str, points: ArrayLike) -> Floats | None:
    """Return the prior's marginal density; see ``Posterior.prior_density``."""
    shape = posterior.mean(parameter).shape[1:]
    given = points_for(points, shape)
    distribution = prior_distribution_of(posterior)
    if distribution is None:
        return None
    name = distribution.parameters[posterior.parameters.index(parameter)]
    density = distribution.density(name, given[None])
    return None if density is None else density[0]
