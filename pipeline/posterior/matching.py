"""What simulations and comparisons need of any public prior: draws, a conjugate one like it, evidences."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.distributions.conjugate_priors import (
    Beta,
    Dirichlet,
    Gamma,
    InverseGamma,
    Normal,
    NormalInverseGamma,
)
from suffice.pipeline.distributions.laws import DirichletLaw, GammaLaw, NormalInverseGammaLaw
from suffice.pipeline.distributions.natural_parameters import log_normaliser
from suffice.pipeline.distributions.scalar import InverseGammaLaw, NormalLaw
from suffice.pipeline.priors.density import Density
from suffice.pipeline.priors.joint_density import Independent, JointDensity
from suffice.pipeline.priors.mixtures import Mixture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.distributions.conjugate_priors import Prior
    from suffice.pipeline.distributions.laws import Law
    from suffice.pipeline.distributions.natural_parameters import ConjugateLaw
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.priors.mixtures import AnyDensity
    from suffice.pipeline.statistics.block import Parameters

    Floats: TypeAlias = NDArray[np.float64]


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
        from suffice.pipeline.posterior.any_prior import density_law  # noqa: PLC0415 - rarely needed

        law = density_law(prior, family, parameters)
        return law.sample(size, rng)[law.name][:, 0]
    if isinstance(prior, Independent | JointDensity):
        from suffice.pipeline.families.normal import interval  # noqa: PLC0415 - rarely needed
        from suffice.pipeline.posterior.any_joint_prior import prior_law  # noqa: PLC0415

        drawn = prior_law(prior, interval(parameters), ("mean", "variance")).sample(size, rng)
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
        from suffice.pipeline.engines.normal_plane.prior import DensityOnPlane  # noqa: PLC0415
        from suffice.pipeline.families.normal import interval  # noqa: PLC0415 - rarely needed
        from suffice.pipeline.posterior.any_joint_prior import conjugate_alike as alike  # noqa: PLC0415

        unit = interval(parameters)
        return alike(DensityOnPlane.of(prior, *unit), unit)
    return prior


def log_evidence(prior: Prior, law: Law) -> Floats:
    r"""Log density of exact sums under a conjugate prior, (n_cells,), up to what no prior changes.

    .. math:: \log p(S) = \log Z(\eta_0 + S) - \log Z(\eta_0) + \text{const}

    with Z the normaliser of the family of priors.

    Raises
    ------
    PriorError
        Where the posterior given exact sums, `law`, is no plain conjugate one.
    """
    plain = DirichletLaw | GammaLaw | InverseGammaLaw | NormalLaw | NormalInverseGammaLaw
    start = _law_of(prior, law)
    if start is None or not isinstance(law, plain):
        message = "this family takes no mixture of priors yet: give one of its components"
        raise PriorError(message)
    return log_normaliser(law) - log_normaliser(start)


def _law_of(prior: Prior, like: Law) -> ConjugateLaw | None:  # noqa: PLR0911 - one for each kind
    """A prior as the law of one cell."""
    match prior:
        case Beta():
            both = np.array([[prior.concentration0, prior.concentration1]], dtype=np.float64)
            return DirichletLaw(concentration=both, shown=None)
        case Dirichlet() if isinstance(like, DirichletLaw):
            shape = (1, like.concentration.shape[1])
            every = np.broadcast_to(np.array(prior.concentration, dtype=np.float64), shape)
            return DirichletLaw(concentration=every, shown=None)
        case Gamma():
            return GammaLaw(concentration=_one(prior.concentration), rate=_one(prior.rate))
        case InverseGamma():
            return InverseGammaLaw(
                concentration=_one(prior.concentration), scale=_one(prior.scale), name="variance"
            )
        case Normal():
            return NormalLaw(loc=_one(prior.loc), scale=_one(prior.scale))
        case NormalInverseGamma():
            return NormalInverseGammaLaw(
                loc=_one(prior.loc),
                precision=_one(prior.precision),
                concentration=_one(prior.concentration),
                scale=_one(prior.scale),
            )
    return None


def _one(value: float) -> Floats:
    return np.array([value], dtype=np.float64)
