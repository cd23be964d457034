r"""One posterior from several releases: of separate data, or of the same data through several noises.

Release r has values :math:`y_r = S_r + Z_r` with exact sums S of N records and discrete Laplace noise Z. The
question is what all of them say of one theta. Of separate data, with parameters in common and an N of each
release's own,

.. math::
    p(\theta \mid y_1, \ldots) \propto p(\theta) \prod_r p(y_r \mid \theta), \qquad
    p(y_r \mid \theta) = \sum_N \pi_r(N) \sum_S p(S \mid N, \theta)\, \mathrm{DLap}_{b_r}(y_r - S)

and of the same data, where S and N are the same numbers,

.. math::
    p(\theta \mid y_1, \ldots) \propto p(\theta) \sum_N \pi(N) \sum_S p(S \mid N, \theta)
    \prod_r \mathrm{DLap}_{b_r}(y_r - S)

The latter is as exact as the posterior of one release. The product of likelihoods is integrated by quadrature
where a family has one parameter, or a mean and a variance, of few cells; by importance sampling of mixtures
of conjugate distributions elsewhere, where ``Posterior.diagnostics`` says how many draws count; by MCMC of
several columns.

Which of the two releases are is told from their manifests alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference import posterior_terms
from suffice.pipeline.ask.inference.bounded_records import cells_to_model, of_bounded_records, refuse_to_model
from suffice.pipeline.ask.inference.chosen_priors import n_prior_for, predictor_prior_for, read_prior
from suffice.pipeline.ask.inference.clipped_cells import pooled_grid_distribution
from suffice.pipeline.ask.inference.within_unit import refuse_within_unit
from suffice.pipeline.ask.pooling.adopted import refuse_adopted
from suffice.pipeline.ask.pooling.release import Release
from suffice.pipeline.ask.posterior import choice_of_engine
from suffice.pipeline.ask.posterior.cells import refuse_shared
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import PiecewiseTables
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.math.engines.combined import factors_of, products
from suffice.pipeline.math.parameters.arguments import generator
from suffice.pipeline.math.parameters.contrasts import matched_cells
from suffice.pipeline.math.priors.coefficients import NonConjugate
from suffice.pipeline.math.priors.mixtures import Mixture, one_component
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.derived_columns import needed, read_derived
from suffice.pipeline.terms.declaration.derived_conditions import condition_inputs, condition_of_plan
from suffice.pipeline.terms.declaration.domains import Domain, Every, next_period, period_start
from suffice.pipeline.terms.declaration.scalars import as_written
from suffice.pipeline.terms.released.noisy_statistic import rows_alone
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from fractions import Fraction
    from typing import Unpack

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Distribution, Prior
    from suffice.pipeline.math.priors.density import Density
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Rows

_OF_NOISE_ALONE = frozenset({"share", "noise", "moment_weight", "count_clipped", "groups"})
"""Keys of a statistic's entry on which the exact sums of a cell do not depend."""


class Relation(StrEnum):
    """``disjoint``: no row is in both. ``same_data``: the exact statistics are the same numbers."""

    DISJOINT = "disjoint"
    SAME_DATA = "same_data"
    OVERLAPPING = "overlapping"
    UNKNOWN = "unknown"


def relation_of(first: Release, second: Release, statistic: str) -> tuple[Relation, str]:
    """Tell how the data behind a statistic of two releases are related, and why.

    Two releases of one dataset are disjoint where their windows of one date column are, and of the same data
    where window, unit, groups and the statistic's entry in the spec are the same. A manifest does not state
    the source: that equal datasets mean equal rows is what a dataset's name promises.
    """
    if first.dataset != second.dataset:
        return Relation.UNKNOWN, f"they are of different datasets, {first.dataset} and {second.dataset}"
    ours, others = (release.manifest["plan"]["window"] for release in (first, second))
    days = ("column", "time_zone")  # a zone's days may begin in the middle of another's
    if ours is not None and others is not None and all(ours[key] == others[key] for key in days):
        (start, end), (other_start, other_end) = (
            _period(release.window, Every(grid["every"]))
            for release, grid in ((first, ours), (second, others))
        )
        if end <= other_start or other_end <= start:
            return Relation.DISJOINT, f"their windows {first.window} and {second.window} do not meet"
    if ours != others or first.window != second.window:
        return Relation.OVERLAPPING, f"their windows {first.window} and {second.window} may share rows"
    for reason, same in (
        ("an amendment read rows that came late", not first.amendment and not second.amendment),
        ("their units differ", _unit(first) == _unit(second)),
        ("their groups differ", _groups(first, statistic) == _groups(second, statistic)),
        ("their entries in the spec differ", entry(first, statistic) == entry(second, statistic)),
        ("every release chooses anew which rows of a unit enter", _unit(first) == "row"),
    ):
        if not same:
            return Relation.OVERLAPPING, f"they are of the same window, and {reason}"
    return Relation.SAME_DATA, f"both are of window {first.window} of {first.dataset}"


def require(releases: Sequence[Release], statistic: str, claimed: Relation, *, vouched: bool) -> None:
    """Refuse releases that are not related as claimed, unless the consumer vouches for it.

    Raises
    ------
    UsageError
        Where there are fewer than two, one stands there twice, their statistics do not agree, or the
        manifests say otherwise or nothing.
    """
    if len(releases) < 2:
        message = f"{claimed}: name at least two releases"
        raise UsageError(message)
    first = releases[0]
    for position, release in enumerate(releases):
        require_agreement(first, release, statistic)
        for other in releases[:position]:
            if release.release_id == other.release_id:
                message = f"release {release.release_id} is given twice: its noise would count as two"
                raise UsageError(message)
            if _are_editions(other, release):
                message = (
                    f"{other.label} ({other.release_id}) and {release.label} ({release.release_id}) are "
                    "editions of one release: one replaces the other, about the same rows; name the newest "
                    "alone"
                )
                raise UsageError(message)
            relation, reason = relation_of(other, release, statistic)
            if relation is claimed:
                continue
            names = f"{other.release_id} and {release.release_id}"
            if relation in {Relation.DISJOINT, Relation.SAME_DATA}:
                message = f"{names} are {relation}, not {claimed}: {reason}"
                raise UsageError(message)
            if not vouched:
                message = (
                    f"{names} are not known to be {claimed}: {reason}. "
                    "If you know better, say so with vouched=True, or --vouched"
                )
                raise UsageError(message)


def require_agreement(first: Release, second: Release, statistic: str) -> None:
    """Refuse statistics that differ in family, column, bounds, lattice, null policy, order or public N.

    Their shares of epsilon, the weights of their moments, whether moved records are counted beside them and
    whether moments have Laplace noise or cone noise may differ: the noise alone depends on these, and every
    release's values are read by its own plan. On another lattice values are rounded otherwise, so that the
    exact sums are others. Components and parameters follow the declared order of columns.
    """
    differing = differences(first, second, statistic)
    if differing:
        message = f"{statistic} differs between the releases in {', '.join(differing)}"
        raise UsageError(message)


def differences(first: Release, second: Release, statistic: str) -> list[str]:
    """Return in what statistics of two releases differ, as ``require_agreement`` refuses it."""
    first_entry, other = entry(first, statistic), entry(second, statistic)
    differing = sorted(key for key in {*first_entry, *other} if first_entry.get(key) != other.get(key))
    differing += sorted(
        f"the order of {key}"
        for key, value in first_entry.items()
        if key not in differing and isinstance(value, dict) and [*value] != [*other[key]]
    )
    designs = [release.statistic(statistic).plan.design for release in (first, second)]
    if len({design is Design.MINIMAL for design in designs}) > 1:
        differing.append("whether the number of records is public")
    return differing


def entry(release: Release, statistic: str) -> dict[str, Any]:
    """Return a statistic's entry in the spec, but for what only its noise depends on.

    With it stand the derived columns that it and its groups rest on: one name may be derived in two ways.
    """
    stated, plan = release.entry(statistic), release.manifest["plan"]
    condition = {"where": plan["where"]} if "where" in plan else {}
    of = release.statistic(statistic).plan
    columns = [*of.groups, *of.columns]
    columns += _condition_columns(condition.get("where"), stated.get("where"))
    derived = _derived(release, columns)
    return {
        **{key: value for key, value in stated.items() if key not in _OF_NOISE_ALONE},
        **({"of rows where": condition["where"]} if condition else {}),
        **({"derived": derived} if derived else {}),
    }


def _groups(release: Release, statistic: str) -> list[tuple[str, Domain]]:
    """Return a statistic's groups, in order."""
    return [*release.statistic(statistic).plan.groups.items()]


def _condition_columns(*conditions: object) -> list[str]:
    """Return the columns of conditions of rows, as the canonical plan states them."""
    stated = (as_written(condition) for condition in conditions if condition is not None)
    read = (condition_of_plan(condition) for condition in stated)
    return [each.column for of in read for each in condition_inputs(of)]


def _derived(release: Release, columns: Sequence[str]) -> dict[str, Any]:
    """Return the derived columns that these columns are or rest on, as the canonical plan states them."""
    stated = release.manifest["plan"]["derived"]
    derived = {name: read_derived(name, as_written(entry), None) for name, entry in stated.items()}
    return {name: stated[name] for name in sorted(needed(columns, derived))}


def _are_editions(first: Release, second: Release) -> bool:
    """Tell whether one of two releases amends the other, or both amend a third."""
    return first.amendment != second.amendment and all(
        before == after
        for before, after in (
            (first.dataset, second.dataset),
            (first.name, second.name),
            (first.window, second.window),
        )
    )


def _unit(release: Release) -> object:
    return release.manifest["plan"]["privacy"]["unit"]


def _period(label: str, every: Every) -> tuple[dt.date, dt.date]:
    if label == ALL:
        message = "a release with a window is of one period"
        raise ValueError(message)
    start = period_start(label, every)
    return start, next_period(start, every)


MOST_BY_QUADRATURE = 128
"""Releases times cells up to which a mean and a variance are integrated by quadrature, in minutes at most."""
LARGEST_R_HAT = 1.1
"""R-hat above which pooled chains have not converged."""


@posterior_terms.lists_terms
def pool(
    statistic: str,
    *unrelated: object,
    disjoint: Sequence[Release] | None = None,
    same_data: Sequence[Release] | None = None,
    vouched: bool = False,
    prior: AnyPrior = None,
    rng: np.random.Generator | int | None = None,
    **terms: Unpack[posterior_terms.SharedTerms],
) -> Posterior:
    """Draw one noise-aware posterior from several releases. Costs no privacy.

    Parameters
    ----------
    statistic : str
        Its name in every release; family, column, bounds and lattice agree, epsilon need not.
    *unrelated
        Refused: releases are stated by how they are related, as `disjoint` or as `same_data`.
    disjoint : sequence of Release, optional
        Separate data with one parameter in common, as the windows of a series: a product of likelihoods. By
        quadrature in families with one parameter, and of normal and lognormal statistics; by importance
        sampling of counts of several categories; by MCMC of several columns and of networks whose tables are
        taken together. ``Posterior.diagnostics`` says by which, and how many of its draws count.
    same_data : sequence of Release, optional
        The same exact statistics through several noises, in every family, as exact as the posterior of one.
    vouched : bool
        The caller knows that the releases are related so, although their manifests do not show it.
    prior : prior object or str, optional
        Of the parameters; it counts once. The family's default otherwise. Mixtures and densities where
        ``Release.posterior`` takes them, but for disjoint data of count tables and of several columns.
    rng : numpy.random.Generator or int, optional
        For importance sampling and MCMC.
    **terms
        See :class:`PosteriorTerms`; the method is noise-aware. A prior of a private number of rows is that
        of each release's own under `disjoint`, of the one under `same_data`; predictors differ from data set
        to data set. Under `same_data` clipped records of families with one sum are never modelled, and are
        warned of where they were to be: the distribution of their sums is worked out behind one noise alone.

    Returns
    -------
    Posterior
        Of the cells that all releases have, in the order of the first.

    Raises
    ------
    UsageError
        Where the releases are not known to be related so, their statistics or cells differ, too few draws
        count or chains disagree, or the family cannot be pooled yet.
    """
    if unrelated or (disjoint is None) == (same_data is None):
        named = next((each for each in (statistic, *unrelated) if isinstance(each, str)), "STATISTIC")
        message = (
            f"state the releases as disjoint=[...], of separate data, or as same_data=[...]: "
            f"pool({named!r}, disjoint=[first, second])"
        )
        raise UsageError(message)
    releases = _listed(disjoint if disjoint is not None else same_data)
    claimed = Relation.DISJOINT if disjoint is not None else Relation.SAME_DATA
    stated = posterior_terms.noise_aware_terms(prior, terms)
    require(releases, statistic, claimed, vouched=vouched)
    parts = aligned([release.chosen(statistic, stated.where) for release in releases])
    refuse_within_unit(parts[0], "pooling")
    last = releases[-1].about
    described: dict[str, Any] = {
        "releases": tuple(release.named for release in releases),
        "about": last,
        "titled": f"{last.label(statistic)}, pooled from {len(releases)} releases",
        "prices": tuple(release.price_of(statistic) for release in releases),
    }
    if claimed is Relation.DISJOINT:
        posterior = pooled(parts, prior=prior, rng=generator(rng), **terms)
        return dataclasses.replace(posterior, **described)
    if len({part.public_n for part in parts}) > 1:
        message = "the releases state different numbers of records, so they are not of the same data"
        raise UsageError(message)
    posterior = choice_of_engine.noise_aware(observed_again(parts), stated)
    return dataclasses.replace(posterior, **described)


def _listed(given: object) -> list[Release]:
    """Return releases as a list, and refuse what is none."""
    refuse_adopted(given)
    items = list(given) if isinstance(given, Iterable) and not isinstance(given, str | Release) else [given]
    refuse_adopted(*items)
    releases = [release for release in items if isinstance(release, Release)]
    if len(releases) < len(items):
        message = "releases are given as a list of what suffice.open_release returns"
        raise UsageError(message)
    return releases


def observed_again(parts: Sequence[NoisyStatistic]) -> NoisyStatistic:
    """Return aligned y_1, y_2, ... of the same S as one statistic, the least noisy first."""

    def noise_of(part: NoisyStatistic) -> Fraction | float:
        cone = part.plan.cone
        return part.plan.scale if cone is None else cone.steps**2 / cone.rate  # both in lattice units

    first, *others = sorted(parts, key=lambda part: (noise_of(part), part.values.tolist()))
    return dataclasses.replace(first, further=tuple(others))


def pooled(
    parts: Sequence[NoisyStatistic],
    *,
    prior: AnyPrior = None,
    rng: np.random.Generator,
    **further: Unpack[posterior_terms.SharedTerms],
) -> Posterior:
    """Return the posterior of parameters that aligned statistics of disjoint data share, cell by cell.

    Raises
    ------
    UsageError
        Where the family cannot be pooled yet, the data barely fit one parameter, or chains disagree.
    """
    terms = posterior_terms.noise_aware_terms(prior, further)
    refuse_within_unit(parts[0], "pooling")
    with_counts, parts = parts, [rows_alone(part) for part in parts]
    refuse_shared(parts[0])
    refuse_to_model(parts[0].plan, terms.clipping)
    family = FAMILIES[parts[0].plan.family]
    predictor_prior_for(parts[0], terms.predictor_prior)
    is_conjugate = terms.prior is not None and not isinstance(read_prior(terms.prior), Mixture | NonConjugate)
    posterior: Posterior | None
    try:
        if family.latent is not None:
            return _of_one_parameter(with_counts, terms)
        if family.mean_and_variance is None:
            posterior = choice_of_engine.disjoint_posterior(parts, terms)
        elif is_conjugate and len(parts) * len(parts[0].values) > MOST_BY_QUADRATURE:
            posterior = None
        else:
            return choice_of_engine.disjoint_moments_posterior(with_counts, terms)
    except PriorError:
        # A proper conjugate prior may have too much of itself at an end to be integrated numerically.
        if not is_conjugate:
            raise
        posterior = None
    if posterior is None:
        return _by_particles(parts, terms, rng)
    r_hat = posterior.diagnostics.get("largest_r_hat", 1.0)
    if r_hat > LARGEST_R_HAT:
        message = (
            f"the chains of the pooled posterior do not agree with each other (R-hat {r_hat}): pool fewer "
            "releases, keep cells with where, or give a stronger prior"
        )
        raise UsageError(message)
    return posterior


def _of_one_parameter(parts: Sequence[NoisyStatistic], terms: posterior_terms.PosteriorTerms) -> Posterior:
    """Multiply p(y_r | theta) of one parameter on a grid of theta, by quadrature."""
    where = cells_to_model(parts, terms.clipping)
    parts = [rows_alone(part) for part in parts]
    first = choice_of_engine.noise_aware(parts[0].take(np.arange(1)), _of_bounded(terms))
    n_priors = [n_prior_for(part, terms.n_prior) for part in parts]
    given = cast("Prior | Mixture | Density", first.prior)
    distribution: Distribution
    modelled = np.zeros(len(where), dtype=bool)
    if where.any() and FAMILIES[first.family].clipped_record is not None:
        from suffice.pipeline.ask.inference.clipped_cells import pooled_with_clipping

        distribution, modelled = pooled_with_clipping(parts, given, n_priors, where)
    else:
        distribution = pooled_grid_distribution(parts, given, n_priors)
    can_be = terms.clipping == posterior_terms.MODELLED and FAMILIES[first.family].models_clipping
    return dataclasses.replace(
        first,
        groups=parts[0].groups,
        distribution=distribution
        if can_be or modelled.all()
        else of_bounded_records(distribution, parts[0].plan),
        observed=tuple(parts),
        models_clipping=None if first.models_clipping is None else modelled,
        before_clipping=terms.clipping == posterior_terms.MODELLED,
    )


def _of_bounded(terms: posterior_terms.PosteriorTerms) -> posterior_terms.PosteriorTerms:
    """Return the terms of factors: clipping is judged of the product, and predictors are of no factor."""
    return dataclasses.replace(terms, clipping=posterior_terms.IGNORED, predictor_prior=None)


def _by_particles(
    parts: Sequence[NoisyStatistic], terms: posterior_terms.PosteriorTerms, rng: np.random.Generator
) -> Posterior:
    """Multiply p(y_r | theta) by importance sampling of mixtures of conjugate distributions, by factor."""

    def posterior(part: NoisyStatistic, rows: Rows) -> Posterior:
        return choice_of_engine.noise_aware(part.take(rows), _of_bounded(terms))

    def factors(rows: Rows) -> list[tuple[Any, ...]]:
        return list(zip(*(_factors(posterior(part, rows)) for part in parts), strict=True))

    first = posterior(parts[0], np.arange(1))
    first = dataclasses.replace(first, distribution=unrestricted(first.distribution))
    distributions = products(factors, len(parts[0].values), len(parts[0].plan.components), rng)
    distribution: Distribution = distributions[0]
    if isinstance(first.distribution, PiecewiseTables):
        positions = (positions for _, _, positions in first.distribution.pieces)
        pieces = (
            (product, slice(None), where) for product, where in zip(distributions, positions, strict=True)
        )
        distribution = PiecewiseTables(pieces=tuple(pieces), apart=first.distribution.apart)
    if terms.clipping != posterior_terms.MODELLED:
        distribution = of_bounded_records(distribution, parts[0].plan)
    return dataclasses.replace(
        first,
        groups=parts[0].groups,
        distribution=distribution,
        observed=tuple(parts),
        models_clipping=None if first.models_clipping is None else np.zeros(len(parts[0].values), dtype=bool),
        before_clipping=terms.clipping == posterior_terms.MODELLED,
    )


def aligned(statistics: Sequence[NoisyStatistic]) -> list[NoisyStatistic]:
    """Bring the cells of every statistic into the order of the first's; refuse other columns and keys."""
    first = statistics[0]
    result = []
    for statistic in statistics:
        _, rows, _ = matched_cells(
            (first.groups, range(len(first.values))),
            (statistic.groups, range(len(statistic.values))),
            apart_from=(),
        )
        result.append(statistic.take(rows))
    return result


def _factors(posterior: Posterior) -> list[Any]:
    one_component(posterior.prior, f"a pooled posterior of {posterior.family} statistics")
    factors = factors_of(unrestricted(posterior.distribution))
    if factors is None:
        message = f"{posterior.statistic} is {posterior.family}, of which disjoint data cannot be pooled yet"
        raise UsageError(message)
    return factors
