"""Which priors a family takes, in words, and the error of one that it does not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import PriorError
from suffice.pipeline.families import FAMILIES

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def takes_mixtures(family: Family) -> bool:
    """Whether a family's conjugate prior may be a mixture."""
    return family.latent is not None or family.takes_mixtures


def accepted_priors(family: Family) -> str:
    """Return the kinds of priors that a family's parameters may have."""
    kind = family.prior.__name__
    if family.latent is not None:
        return (
            f"{kind}, a Mixture of such, or any density of one number: by its name, as Uniform(low, high), "
            "or in Python one of scipy.stats or a suffice.Density"
        )
    if family.mean_and_variance is not None:
        return (
            f"{kind}, a Mixture of such, or one of a mean and a variance: Independent(mean=Normal(0, 10), "
            "sd=HalfNormal(5)), or in Python a suffice.JointDensity"
        )
    return f"{kind}, or a Mixture of such" if takes_mixtures(family) else kind


def refused_prior(plan: StatisticPlan, prior: object) -> PriorError:
    """Return the error of a prior that a statistic's family does not take."""
    accepted = accepted_priors(FAMILIES[plan.family])
    return PriorError(f"{plan.name} is {plan.family}: its prior must be {accepted}; not {prior}")
