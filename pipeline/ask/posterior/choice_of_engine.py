"""Which engine answers for a released statistic: by its method, its family, its priors and its clipping.

``noise_aware`` and ``plug_in`` choose for one statistic, ``disjoint_posterior`` and
``disjoint_moments_posterior`` for several. A family names the engine of its conjugate priors
(``Family.noise_aware``); other priors, and records that were clipped, have engines of their own.

Cells are independent given the release, so that a block of them is worked out at a time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference import chosen_priors
from suffice.pipeline.ask.inference.bounded_records import cells_to_model, of_bounded_records, refuse_to_model
from suffice.pipeline.ask.inference.posterior_terms import (
    IGNORED,
    MODELLED,
    NOISE_AWARE,
    PLUG_IN,
    FurtherTerms,
    PosteriorTerms,
    lists_terms,
)
from suffice.pipeline.ask.posterior.cells import cells_of, require_whole
from suffice.pipeline.ask.posterior.posterior import Posterior
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import CellBlocks
from suffice.pipeline.math.distributions.distribution import Labelled
from suffice.pipeline.math.distributions.many_cells import side_by_side
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.math.engines.posterior_mixture import mixture_distribution, weighed
from suffice.pipeline.math.priors.coefficients import Coefficients, NonConjugate
from suffice.pipeline.math.priors.composed import OfOneNumber
from suffice.pipeline.math.priors.log_prior import LogPrior
from suffice.pipeline.math.priors.mixtures import Mixture, SpreadScale
from suffice.pipeline.terms.released.noisy_statistic import noisy_products, rows_alone
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from suffice.pipeline.math.distributions.composite import CellProgress
    from suffice.pipeline.math.distributions.distribution import Distribution, Prior
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import AnyJointPrior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Mask

BLOCK_CELLS = 1024
MCMC_CELLS = 256
"""Chains of so many cells take little longer than those of one, and still end within a minute or so."""
BLOCK_ENTRIES = 4096
"""Numbers that a block's parameter has at most: 4000 draws of them take 130 MB."""


def block_cells(plan: StatisticPlan) -> int:
    """Return how many cells of a statistic are worked on together."""
    family = FAMILIES[plan.family]
    entries = max(1, len(entry_names(family.labels(plan.parameters))))
    most = MCMC_CELLS if family.by_mcmc(plan.parameters) else BLOCK_CELLS
    return max(1, min(most, BLOCK_ENTRIES // entries))


def in_blocks(
    statistic: NoisyStatistic,
    posterior: Callable[[NoisyStatistic], Posterior],
    progress: CellProgress | None = None,
) -> Posterior:
    """Work out a posterior block by block.

    Parameters
    ----------
    statistic : NoisyStatistic
        All cells.
    posterior : callable
        Some of its cells -> their posterior.
    progress : callable, optional
        Gets the number of cells that are done, and of all, after each block.
    """
    n_cells = len(statistic.values)
    n_blocks = -(-n_cells // block_cells(statistic.plan))
    if n_blocks <= 1:
        result = posterior(statistic)
        if progress is not None:
            progress(n_cells, n_cells)
        return result
    done = 0

    def count(part: Posterior) -> None:
        nonlocal done
        done += part.n_groups
        if progress is not None:
            progress(done, n_cells)

    blocks = np.array_split(np.arange(n_cells), n_blocks)
    # Others have chains, which use all processors, or arrays of which memory holds those of a block alone.
    are_apart = FAMILIES[statistic.plan.family].latent is not None
    parts = side_by_side(lambda cells: posterior(statistic.take(cells)), blocks, count, together=are_apart)
    return dataclasses.replace(
        parts[0],
        groups=statistic.groups,
        distribution=CellBlocks(blocks=tuple(part.distribution for part in parts), are_apart=are_apart),
        observed=(rows_alone(statistic),),
        models_clipping=_of_cells([part.models_clipping for part in parts]),
        design_effect=_of_cells([part.design_effect for part in parts]),
    )


def _of_cells(parts: Sequence[Any]) -> Any:
    """Join what is known of every cell, or of none."""
    return None if parts[0] is None else np.concatenate(parts)


@lists_terms
def posterior_of(
    statistic: NoisyStatistic,
    *,
    prior: chosen_priors.AnyPrior = None,
    progress: CellProgress | None = None,
    **terms: Unpack[FurtherTerms],
) -> Posterior:
    """Compute the posterior of a released statistic's parameters, a block of cells at a time.

    Parameters
    ----------
    statistic : NoisyStatistic
    prior : Prior, Mixture, another of priors' kinds, distribution of scipy.stats or str, optional
        Of the parameters; the family's default otherwise. Densities, points, and sums and truncations of
        any of one number are for families with one parameter, ``Independent`` and ``JointDensity`` for a
        mean and a variance, ``LogPrior`` for probabilities of tables and parameters of several columns
        as well, ``Coefficients`` for a regression.
    progress : callable, optional
        Gets the number of cells that are done, and of all, after each block of them.
    **terms
        See :class:`PosteriorTerms`.

    Raises
    ------
    UsageError
        Where the method or the way of clipping does not exist, for this family or at all, or a prior of N
        or of predictors has no use.
    PriorError
        Where the prior is not of the family's conjugate kind, or is an improper density.
    """
    stated = PosteriorTerms(prior=prior, **terms)
    return inferred(
        statistic if stated.where is None else cells_of(statistic, stated.where), stated, progress
    )


def inferred(
    statistic: NoisyStatistic, terms: PosteriorTerms, progress: CellProgress | None = None
) -> Posterior:
    """Compute the posterior of cells that are chosen already, by the method of the terms.

    Raises
    ------
    UsageError
        Where a term changes nothing, or as `posterior_of`.
    """
    if terms.within_unit == IGNORED and statistic.plan.within_unit is None:
        message = (
            f"{statistic.plan.name} was released without within_unit: its rows are taken for independent in "
            "any case; leave within_unit out"
        )
        raise UsageError(message)
    of_cells = noise_aware if terms.method == NOISE_AWARE else plug_in
    return in_blocks(statistic, lambda cells: of_cells(cells, terms), progress)


def noise_aware(statistic: NoisyStatistic, terms: PosteriorTerms) -> Posterior:
    """Compute the exact posterior given the noisy counts and their noise."""
    refuse_to_model(statistic.plan, terms.clipping)
    if statistic.plan.within_unit is not None:
        rows = rows_alone(statistic)
        if terms.within_unit == IGNORED:
            return noise_aware(rows, terms)
        return _of_units(noise_aware(rows, dataclasses.replace(terms, clipping=IGNORED)), statistic)
    where = cells_to_model([statistic], terms.clipping)
    statistic = rows_alone(statistic)  # without counts of moved records, where there are any
    require_whole(statistic)
    family = FAMILIES[statistic.plan.family]
    if family.noise_aware is None:
        message = (
            f"{statistic.plan.name} is {family.name}, which has no {NOISE_AWARE} posterior yet: only method "
            f"{PLUG_IN}, which ignores the noise and is not calibrated, is available"
        )
        raise UsageError(message)
    latent_n = chosen_priors.n_prior_for(statistic, terms.n_prior)
    chosen = chosen_priors.prior_for(statistic, terms.prior)
    predictors = chosen_priors.predictor_prior_for(statistic, terms.predictor_prior)
    if family.latent is not None:
        for component in chosen.components if isinstance(chosen, Mixture) else (chosen,):
            chosen_priors.require_range(statistic, component)
    distribution: Distribution
    if family.clipped_record is not None and where.any():
        from suffice.pipeline.ask.inference.clipped_cells import distribution_with_clipping

        distribution, modelled = distribution_with_clipping(
            statistic, cast("Prior | Mixture | OfOneNumber", chosen), latent_n, where
        )
        plain = _posterior(statistic, NOISE_AWARE, chosen, distribution, latent_n)
        plain = dataclasses.replace(plain, models_clipping=modelled)
        return _of_records(plain, [statistic], terms.clipping)
    if isinstance(chosen, NonConjugate):
        distribution = _any_prior_distribution(statistic, chosen, latent_n, predictors)
    elif isinstance(chosen, Mixture) and not (family.mean_and_variance or isinstance(chosen, SpreadScale)):
        distributions = [
            family.noise_aware(statistic, component, latent_n) for component in chosen.components
        ]
        distribution = mixture_distribution(chosen, distributions)
    elif predictors is not None and family.disjoint is not None:
        distribution = family.disjoint((statistic,), chosen, (latent_n,), predictors)
    else:
        distribution = family.noise_aware(statistic, chosen, latent_n)
    plain = _posterior(statistic, NOISE_AWARE, chosen, distribution, latent_n, predictors)
    return _of_records(
        _with_clipped_moments(plain, [statistic], [latent_n], where), [statistic], terms.clipping
    )


def of_distribution(
    statistic: NoisyStatistic, prior: Prior | NonConjugate, distribution: Distribution, n_prior: NPrior
) -> Posterior:
    """Return the posterior of records as bounds leave them, of a distribution that is worked out already."""
    plain = _posterior(statistic, NOISE_AWARE, prior, distribution, n_prior)
    return _of_records(plain, [statistic], IGNORED)


def _of_records(posterior: Posterior, statistics: Sequence[NoisyStatistic], clipping: str) -> Posterior:
    """Say what parameters are of, and restrict them to it: records as bounds leave them, or before that."""
    posterior = dataclasses.replace(posterior, before_clipping=clipping == MODELLED)
    modelled = posterior.models_clipping
    if modelled is None and FAMILIES[posterior.family].models_clipping:
        posterior = dataclasses.replace(posterior, models_clipping=np.zeros(posterior.n_groups, dtype=bool))
    can_be = FAMILIES[posterior.family].models_clipping and clipping == MODELLED
    if can_be or (modelled is not None and modelled.all()):
        return posterior
    return dataclasses.replace(
        posterior, distribution=of_bounded_records(posterior.distribution, statistics[0].plan)
    )


def _of_units(independent: Posterior, statistic: NoisyStatistic) -> Posterior:
    """Widen the posterior of independent rows by what rows of one unit have in common."""
    from suffice.pipeline.ask.inference.within_unit import widened  # few statistics have units

    products = noisy_products(statistic)
    distribution, effects = widened(unrestricted(independent.distribution), products, statistic.plan.name)
    bounded = of_bounded_records(distribution, statistic.plan)
    return dataclasses.replace(independent, distribution=bounded, design_effect=effects)


def disjoint_posterior(statistics: Sequence[NoisyStatistic], terms: PosteriorTerms) -> Posterior | None:
    """Compute the posterior of parameters that data sets share, in families that have an update for it.

    None where there is none, or where posteriors of one data set take no MCMC: those are multiplied.
    """
    first = statistics[0]
    family = FAMILIES[first.plan.family]
    update = family.disjoint
    predictors = chosen_priors.predictor_prior_for(first, terms.predictor_prior)
    if update is None or not (family.adds_up or family.by_mcmc(first.plan.parameters)):
        return None
    chosen = chosen_priors.conjugate_prior_for(first, terms.prior)
    n_priors = [chosen_priors.n_prior_for(statistic, terms.n_prior) for statistic in statistics]
    further = () if predictors is None else (predictors,)
    distribution = update(statistics, chosen, n_priors, *further)
    bounded = of_bounded_records(distribution, first.plan)
    shared = _posterior(first, NOISE_AWARE, chosen, bounded, n_priors[0], predictors)
    return dataclasses.replace(shared, observed=tuple(statistics))


def disjoint_moments_posterior(statistics: Sequence[NoisyStatistic], terms: PosteriorTerms) -> Posterior:
    """Compute the posterior of a mean and a variance that data sets share, under any prior of both."""
    from suffice.pipeline.ask.inference.any_joint_prior import (
        pooled_joint_distribution,  # scipy is slow to import
    )

    where = cells_to_model(statistics, terms.clipping)
    statistics = [rows_alone(statistic) for statistic in statistics]
    first = statistics[0]
    chosen = cast("AnyJointPrior", chosen_priors.prior_for(first, terms.prior))
    n_priors = [chosen_priors.n_prior_for(statistic, terms.n_prior) for statistic in statistics]
    distribution = pooled_joint_distribution(statistics, chosen, n_priors)
    plain = dataclasses.replace(
        _posterior(first, NOISE_AWARE, chosen, distribution, n_priors[0]), observed=tuple(statistics)
    )
    return _of_records(_with_clipped_moments(plain, statistics, n_priors, where), statistics, terms.clipping)


def _with_clipped_moments(
    plain: Posterior, statistics: Sequence[NoisyStatistic], n_priors: Sequence[NPrior], where: Mask
) -> Posterior:
    """Model the clipping of records with a mean and a variance, where it may be and matters."""
    if FAMILIES[plain.family].mean_and_variance is None or not where.any():
        return plain
    from suffice.pipeline.ask.inference.clipped_cells import moments_with_clipping  # rarely needed

    prior = cast("AnyJointPrior", plain.prior)
    distribution, modelled = moments_with_clipping(plain.distribution, statistics, prior, n_priors, where)
    return dataclasses.replace(plain, distribution=distribution, models_clipping=modelled)


def plug_in(statistic: NoisyStatistic, terms: PosteriorTerms) -> Posterior:
    """Compute the conjugate posterior that takes projected noisy statistics for exact.

    It ignores the noise, so its intervals are too narrow: it is not calibrated.
    """
    statistic = rows_alone(statistic)
    require_whole(statistic)
    chosen = chosen_priors.prior_for(statistic, terms.prior)
    if isinstance(chosen, NonConjugate):
        return _posterior(statistic, PLUG_IN, chosen, _any_prior_distribution(statistic, chosen, None), None)
    family = FAMILIES[statistic.plan.family]
    if isinstance(chosen, Mixture):
        from suffice.pipeline.ask.inference.any_joint_prior import log_evidence  # rarely needed

        distributions = [family.plug_in(statistic, component) for component in chosen.components]
        parts = zip(chosen.components, distributions, strict=True)
        evidence = [log_evidence(component, distribution) for component, distribution in parts]
        return _posterior(statistic, PLUG_IN, chosen, weighed(chosen, distributions, evidence), None)
    return _posterior(statistic, PLUG_IN, chosen, family.plug_in(statistic, chosen), None)


def _any_prior_distribution(
    statistic: NoisyStatistic,
    density: NonConjugate,
    n_prior: NPrior | None,
    predictors: Prior | None = None,
) -> Distribution:
    if isinstance(density, Coefficients) or (
        isinstance(density, LogPrior) and chosen_priors.has_columns(FAMILIES[statistic.plan.family])
    ):
        from suffice.pipeline.ask.inference.any_column_prior import column_posterior  # rarely needed

        return column_posterior(statistic, density, n_prior, predictors)
    if isinstance(density, LogPrior):
        from suffice.pipeline.ask.inference.any_table_prior import table_posterior  # rarely needed

        return table_posterior(statistic, density, n_prior)
    if not isinstance(density, OfOneNumber):
        from suffice.pipeline.ask.inference.any_joint_prior import any_joint_posterior  # rarely needed

        return any_joint_posterior(statistic, density, n_prior)
    from suffice.pipeline.ask.inference.any_prior import any_prior_posterior

    return any_prior_posterior(statistic, density, n_prior)


def _posterior(
    statistic: NoisyStatistic,
    method: str,
    prior: Prior | Mixture | NonConjugate,
    distribution: Distribution,
    n_prior: NPrior | None,
    predictor_prior: Prior | None = None,
) -> Posterior:
    plan = statistic.plan
    return Posterior(
        statistic=plan.name,
        family=plan.family,
        method=method,
        prior=prior,
        n_prior=n_prior,
        predictor_prior=None if predictor_prior is None else str(predictor_prior),
        groups=statistic.groups,
        label_columns=FAMILIES[plan.family].labels(plan.parameters),
        distribution=distribution,
        components=distribution.components if isinstance(distribution, Labelled) else {},
        constants=plan.parameters,
        rows_of=plan.rows_of,
        observed=(statistic,),
    )
