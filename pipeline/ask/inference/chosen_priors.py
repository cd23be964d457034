"""Which priors a posterior rests on: those given, read and checked, or the defaults of public constants.

A prior that the family does not take is an error, which names those that it does.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias, cast

from suffice.errors import PriorError, UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from suffice.pipeline.math.priors.by_name import Independent, JointDensity
from suffice.pipeline.math.priors.coefficients import Coefficients, NonConjugate, parse_stated
from suffice.pipeline.math.priors.composed import OfOneNumber, simplest
from suffice.pipeline.math.priors.log_prior import LogPrior, as_density, as_joint_density
from suffice.pipeline.math.priors.mixtures import Mixture, SpreadScale, one_component
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform, parse_n_prior
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.density import Density, ScipyDistribution
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

    AnyPrior: TypeAlias = Prior | Mixture | NonConjugate | ScipyDistribution | str | None


CONCENTRATIONS = (1e-3, 1e9)
RATES = (1e-40, 1e40)
"""Of conjugate priors of one parameter, scales too, within which noise-aware posteriors are resolved."""


def takes_mixtures(family: Family) -> bool:
    """Whether a family's conjugate prior may be a mixture."""
    return family.latent is not None or family.takes_mixtures


def takes_log_priors(family: Family) -> bool:
    """Whether a family's tables or columns may have a joint prior by its log density."""
    return has_columns(family) or (family.prior is Dirichlet and not family.of_release)


def has_columns(family: Family) -> bool:
    """Whether a family is one of several columns."""
    return family.prior in (NormalInverseWishart, NormalInverseGammaRegression)


def accepted_priors(family: Family) -> str:
    """Return the kinds of priors that a family's parameters may have."""
    kind = family.prior.__name__
    if family.latent is not None:
        return (
            f"{kind}, a Mixture of such, any density of one number, by its name, as Uniform(low, high), or "
            "in Python one of scipy.stats or a suffice.Density, or points and sums of all these, as "
            "0.5*Point(0.3) + 0.5*Uniform(0, 1)"
        )
    if family.mean_and_variance is not None:
        return (
            f"{kind}, a Mixture of such, or one of a mean and a variance: Independent(mean=Normal(0, 10), "
            "sd=HalfNormal(5)), or in Python a suffice.JointDensity"
        )
    if takes_mixtures(family):
        return f"{kind}, a Mixture of such, or in Python a suffice.LogPrior"
    if family.default_predictor_prior is not None:
        return f"{kind}, Coefficients of priors of one number, or in Python a suffice.LogPrior"
    return f"{kind}, or in Python a suffice.LogPrior" if takes_log_priors(family) else kind


def refused_prior(plan: StatisticPlan, prior: object) -> PriorError:
    """Return the error of a prior that a statistic's family does not take."""
    accepted = accepted_priors(FAMILIES[plan.family])
    return PriorError(f"{plan.name} is {plan.family}: its prior must be {accepted}; not {prior}")


def default_prior(statistic: NoisyStatistic) -> Prior | Mixture:
    """Return the family's default prior, from public constants only."""
    prior: Prior | Mixture = FAMILIES[statistic.plan.family].default_prior(statistic.plan.parameters)
    return prior


def read_prior(
    prior: Prior | Mixture | NonConjugate | ScipyDistribution | str,
) -> Prior | Mixture | NonConjugate:
    """Read the text of a prior, and take distributions of other libraries for densities or points."""
    return cast("Prior | Mixture | NonConjugate", simplest(prior, parse_stated))


def prior_for(statistic: NoisyStatistic, prior: AnyPrior) -> Prior | Mixture | NonConjugate:
    """Read the prior, the family's default where there is none, and check that the family takes it."""
    family = FAMILIES[statistic.plan.family]
    read = default_prior(statistic) if prior is None else read_prior(prior)
    if isinstance(read, LogPrior):
        read = _log_prior_for(statistic, read)
    match read:
        case Mixture():
            takes = takes_mixtures(family)
        case _ if isinstance(read, OfOneNumber):
            takes = family.latent is not None
        case Coefficients():
            takes = family.default_predictor_prior is not None
        case Independent() | JointDensity():
            takes = family.mean_and_variance is not None
        case LogPrior():
            takes = True
        case _:
            _require_kind(statistic, read)
            return read
    if not takes:
        raise refused_prior(statistic.plan, read)
    if not isinstance(read, Mixture):
        return read
    for component in read.components:
        _require_kind(statistic, component)
    return _as_it_is_answered(statistic, read)


def _as_it_is_answered(statistic: NoisyStatistic, mixture: Mixture) -> Mixture:
    """Return a mixture; one that is spread over scales as its components where sums do not take it whole."""
    if not isinstance(mixture, SpreadScale) or isinstance(default_prior(statistic), SpreadScale):
        return mixture
    return Mixture(*(part for pair in zip(mixture.weights, mixture.components, strict=True) for part in pair))


def _log_prior_for(statistic: NoisyStatistic, prior: LogPrior) -> LogPrior | Density | JointDensity:
    """Return a joint prior as the engine of a statistic's family takes it."""
    family, constants = FAMILIES[statistic.plan.family], statistic.plan.parameters
    if family.latent is not None:
        (space,) = family.parameter_spaces(constants)
        return as_density(prior, space.name, space.support.ends)
    if family.mean_and_variance is not None:
        return as_joint_density(prior)
    if not takes_log_priors(family):
        raise refused_prior(statistic.plan, prior)
    return prior


def conjugate_prior_for(statistic: NoisyStatistic, prior: AnyPrior) -> Prior:
    """Read the prior, and check that it is of the family's conjugate kind."""
    return one_component(prior_for(statistic, prior), f"this posterior of {statistic.plan.name}")


def _require_kind(statistic: NoisyStatistic, chosen: Prior) -> None:
    """Refuse a conjugate prior of another family's, or of another number of categories."""
    plan = statistic.plan
    family = FAMILIES[plan.family]
    if not isinstance(chosen, (family.prior, family.spread_prior or family.prior)):
        raise refused_prior(plan, chosen)
    if isinstance(chosen, Dirichlet):
        columns = FAMILIES[plan.family].labels(plan.parameters)
        given, needed = len(chosen.concentration), max(map(len, columns.values()), default=1)
        if given not in {1, needed}:
            message = (
                f"{plan.name} has {needed} categories: Dirichlet needs 1 or {needed} numbers, not {given}"
            )
            raise PriorError(message)


def require_range(statistic: NoisyStatistic, chosen: Prior | NonConjugate) -> None:
    """Refuse a conjugate prior of one parameter whose numbers are so extreme that no quadrature resolves it.

    Raises
    ------
    PriorError
    """
    if not isinstance(chosen, Beta | Gamma | InverseGamma):
        return
    for field in dataclasses.fields(chosen):
        value = getattr(chosen, field.name)
        low, high = CONCENTRATIONS if field.name.startswith("concentration") else RATES
        if not low <= value <= high:
            message = (
                f"{statistic.plan.name}: noise-aware posteriors need a {field.name} in {low:g}..{high:g}, "
                f"and the prior is {chosen}: choose another prior"
            )
            raise PriorError(message)


def n_prior_for(statistic: NoisyStatistic, n_prior: NPrior | int | str | None) -> NPrior:
    """Take the public N where the statistic rests on it, else the given or the default prior."""
    if statistic.plan.design is Design.MINIMAL:
        if statistic.public_n is None:
            message = f"{statistic.plan.name} needs a public N, which this release does not state"
            raise UsageError(message)
        if n_prior is not None:
            message = f"N is public in this release ({statistic.public_n}): leave the prior of N out"
            raise UsageError(message)
        return Fixed(statistic.public_n)
    if n_prior is None:
        return Reciprocal(statistic.max_total_rows)
    if isinstance(n_prior, str):
        return parse_n_prior(n_prior)
    if isinstance(n_prior, Reciprocal | Uniform | Fixed):
        return n_prior
    return Fixed(n_prior)


def predictor_prior_for(statistic: NoisyStatistic, given: Prior | str | None) -> Prior | None:
    """Read the prior of a regression's predictors, its default where there is none; None of other families.

    Raises
    ------
    UsageError
        Where the family has no predictors.
    PriorError
        Where the prior is not one of so many columns.
    """
    plan = statistic.plan
    default = FAMILIES[plan.family].default_predictor_prior
    if default is None:
        if given is not None:
            message = (
                f"{plan.name} is {plan.family}, which has no predictors: leave the prior of predictors out"
            )
            raise UsageError(message)
        return None
    if given is None:
        return default(plan.parameters)
    read = read_prior(given)
    if not isinstance(read, NormalInverseWishart | SpreadNormalInverseWishart):
        message = (
            f"{plan.name}: the prior of predictors must be NormalInverseWishart or "
            f"SpreadNormalInverseWishart, of their mean and covariance; not {read}"
        )
        raise PriorError(message)
    read.of(len(plan.parameters.columns) - 1)
    return read
