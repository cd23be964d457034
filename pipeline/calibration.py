"""Simulation-based calibration: whether 95 % intervals of a release's posteriors hold 95 % of the truths.

For every simulation the parameters are drawn from their prior and a private N from its own, a data set from
the model, its sums are clipped and rounded as the release's were, and noise of the release's law is added.
The posterior of these is then sampled as a user samples it. Where model and posterior fit, the rank of the
truth among ``DRAWS`` independent draws is uniform on ``0..DRAWS``, whatever the problem.

References
----------
`talts2018validating`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.inference import posterior_of
from suffice.pipeline.n_prior import Fixed, NPrior, Reciprocal, Uniform, parse_n_prior
from suffice.pipeline.posterior import NOISE_AWARE, generator
from suffice.pipeline.priors import Dirichlet
from suffice.pipeline.release import NoisyStatistic
from suffice.pipeline.sensitivity import Design
from suffice.pipeline.simulation import discrete_laplace
from suffice.pipeline.sums import CodeCounts
from suffice.pipeline.verdict import DRAWS, Calibration, Ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.families.contract import Family
    from suffice.pipeline.fields import StatisticSpec
    from suffice.pipeline.plan import StatisticPlan
    from suffice.pipeline.priors import Prior
    from suffice.pipeline.release import Release
    from suffice.pipeline.simulation import SimulatedSums

    Floats: TypeAlias = NDArray[np.float64]
    Counts: TypeAlias = NDArray[np.int64]
    Progress: TypeAlias = Callable[[int, int], None]

SIMULATIONS = 1000
FALSE_ALARM = 1e-3
MOST_RECORDS = 10**10
"""Records that a calibration may have to draw one by one."""
_BATCH = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How data sets and their noisy sums come about, and how their posteriors are computed.

    Attributes
    ----------
    entry : StatisticSpec
        The statistic's entry in the spec.
    plan : StatisticPlan
        What the posterior believes of the components and their noise.
    scale : float
        Of the noise that is simulated; that of the plan but for experiments.
    public_n : int or None
        The number of records, where it is public.
    max_total_rows : int
        As in ``NoisyStatistic``.
    method : str
        Of the posterior.
    prior : Prior
        The truth is drawn from it, and the posterior starts from it.
    n_prior : NPrior
        The number of records is drawn from it.
    believed_n_prior : NPrior or None
        What the posterior believes of N; None where it has no use for a prior of N.
    """

    entry: StatisticSpec
    plan: StatisticPlan
    scale: float
    public_n: int | None
    max_total_rows: int
    method: str
    prior: Prior
    n_prior: NPrior
    believed_n_prior: NPrior | None

    @property
    def family(self) -> Family:
        """The statistic's family."""
        return FAMILIES[self.plan.family]

    def truth(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw parameters from the prior, a row a data set."""
        if isinstance(self.prior, Dirichlet):
            return self.prior.sample(size, rng, len(self.plan.parameters.categories))
        return self.prior.sample(size, rng)

    def sums(self, truth: Floats, sizes: Counts, rng: np.random.Generator) -> SimulatedSums:
        """Draw data sets with these parameters and numbers of records, and sum them.

        Raises
        ------
        UsageError
            Where no data of the family can be simulated.
        """
        if self.family.simulate is None:
            message = f"{self.plan.name} is {self.plan.family}, of which no data can be simulated yet"
            raise UsageError(message)
        return self.family.simulate(self.entry, truth, sizes, rng)

    def noisy(self, sums: NDArray[np.object_], noise: Counts) -> NoisyStatistic:
        """Return exact sums with noise on their components, as a release states them."""
        totals = self.family.totals(self.entry, self.plan.design, sums)
        return NoisyStatistic(
            plan=self.plan,
            values=np.clip(totals + noise.astype(object), *self.plan.value_limits),
            groups={},
            public_n=self.public_n,
            max_total_rows=self.max_total_rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Ranks of the truth over many simulations.

    Attributes
    ----------
    clipped, unclipped : tuple of Ranks
        With clipping as in the release, and of the very same records without.
    clipped_share : float
        The share of all simulated records that were clipped.
    """

    clipped: tuple[Ranks, ...]
    unclipped: tuple[Ranks, ...]
    clipped_share: float


def calibrate(
    release: Release,
    statistic: str,
    *,
    where: Mapping[str, object] | None = None,
    method: str = NOISE_AWARE,
    prior: Prior | str | None = None,
    n_prior: NPrior | int | str | None = None,
    simulations: int = SIMULATIONS,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Measure whether posteriors of a release's statistic are calibrated, clipping and noise included.

    Everything is simulated from public numbers; it costs no privacy.

    Parameters
    ----------
    release : Release
    statistic : str
        Its name in the release.
    where : mapping, optional
        The cells whose noisy numbers of records the default prior of N rests on; all otherwise.
    method : {"noise-aware", "plug-in"}
        As in ``Release.posterior``. The plug-in method is no calibrated one, and this shows by how much.
    prior : prior object or str, optional
        The truth is drawn from it; the family's default otherwise.
    n_prior : optional
        A private N is drawn from it, and the posterior is computed under it. By default uniform on
        ``0..2 N0`` with ``N0`` the median of the cells' noisy numbers of records, at least 1.
    simulations : int, > 0
        The more, the smaller the failure that is seen.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.
    progress : callable, optional
        Told how many of all simulations are done.

    Returns
    -------
    Calibration

    Raises
    ------
    UsageError, PriorError
        Where the statistic, the method or a prior does not fit, or too many records would have to be drawn.
    """
    _require_positive("simulations", simulations)
    chosen = release.statistic(statistic).where(where)
    world = world_of(chosen, release.manifest["plan"]["statistics"][statistic], method, prior, n_prior)
    simulated = simulate(world, simulations, generator(rng), progress)
    return Calibration(
        statistic=statistic,
        family=world.plan.family,
        method=method,
        prior=str(world.prior),
        n_prior=str(world.n_prior),
        epsilon=world.plan.epsilon,
        simulations=simulations,
        false_alarm=FALSE_ALARM,
        clipped_share=simulated.clipped_share,
        clipped=simulated.clipped,
        unclipped=simulated.unclipped,
    )


def world_of(
    statistic: NoisyStatistic,
    entry: Mapping[str, Any],
    method: str = NOISE_AWARE,
    prior: Prior | str | None = None,
    n_prior: NPrior | int | str | None = None,
) -> World:
    """Return the world of a released statistic, from its plan and its entry in the canonical plan.

    Raises
    ------
    UsageError, PriorError
        Where no data of the family can be simulated, or the method or a prior does not fit.
    """
    plan = statistic.plan
    family = FAMILIES[plan.family]
    spec = family.spec.model_validate(
        {name: str(value).lower() if isinstance(value, bool) else value for name, value in entry.items()}
    )
    if family.block(spec, plan.design is Design.MINIMAL).components != plan.components:
        message = (
            f"{plan.name} was released by a suffice whose components were others: it cannot be simulated"
        )
        raise UsageError(message)
    drawn_from = _n_prior(statistic, n_prior)
    believed = None if plan.design is Design.MINIMAL or method != NOISE_AWARE else drawn_from
    cell = dataclasses.replace(
        statistic,
        values=statistic.values[:1],
        groups={column: keys[:1] for column, keys in statistic.groups.items()},
    )
    # The posterior of a real cell: what is wrong with the method or the prior is said before any simulation.
    posterior = posterior_of(cell, method=method, prior=prior, n_prior=believed)
    return World(
        entry=spec,
        plan=plan,
        scale=plan.scale,
        public_n=statistic.public_n,
        max_total_rows=statistic.max_total_rows,
        method=method,
        prior=posterior.prior,
        n_prior=drawn_from,
        believed_n_prior=believed,
    )


def simulate(
    world: World, simulations: int, rng: np.random.Generator, progress: Progress | None = None
) -> Simulated:
    """Draw data sets and their noisy sums, and rank each truth among draws of its posterior.

    Parameters
    ----------
    world : World
    simulations : int, > 0
    rng : numpy.random.Generator
    progress : callable, optional
        Told how many of all simulations are done.

    Raises
    ------
    UsageError
        Where more than ``MOST_RECORDS`` records would have to be drawn.
    """
    sizes = world.n_prior.sample(simulations, rng)
    n_records = sum(sizes.tolist())
    if n_records > MOST_RECORDS and not isinstance(world.family.measure(world.entry), CodeCounts):
        message = (
            f"{n_records} records would have to be drawn, more than {MOST_RECORDS}: ask for fewer "
            "simulations, or for a prior of N that reaches less far"
        )
        raise UsageError(message)
    names: tuple[tuple[str, str | None], ...] = ()
    parts: list[tuple[Counts, Counts]] = []
    n_clipped = 0
    for start in range(0, simulations, _BATCH):
        size = sizes[start : start + _BATCH]
        truth = world.truth(len(size), rng)
        sums = world.sums(truth, size, rng)
        noise = discrete_laplace(world.scale, (len(size), len(world.plan.components)), rng)
        seed = int(rng.integers(2**63))  # one for both, so that clipping is all that differs
        names, clipped = _ranks(world, truth, sums.clipped, noise, np.random.default_rng(seed))
        unclipped = clipped
        if sums.n_clipped:
            _, unclipped = _ranks(world, truth, sums.unclipped, noise, np.random.default_rng(seed))
        n_clipped += sums.n_clipped
        parts.append((clipped, unclipped))
        if progress is not None:
            progress(start + len(size), simulations)
    runs = [np.concatenate(part) for part in zip(*parts, strict=True)]
    with_clipping, without = (
        tuple(
            Ranks(
                parameter=parameter, category=category, counts=tuple(np.bincount(column, minlength=DRAWS + 1))
            )
            for (parameter, category), column in zip(names, run.T, strict=True)
        )
        for run in runs
    )
    return Simulated(clipped=with_clipping, unclipped=without, clipped_share=n_clipped / max(n_records, 1))


def _require_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        message = f"{name} must be an integer above 0, not {value!r}"
        raise UsageError(message)


def _tally(ranks: Counts) -> tuple[int, ...]:
    return tuple(np.bincount(ranks, minlength=DRAWS + 1).tolist())


def default_n_prior(statistic: NoisyStatistic) -> Uniform:
    """Return the uniform prior on ``0..2 N0``, N0 the median noisy number of records, at least 1.

    Raises
    ------
    UsageError
        Where the statistic does not tell the number of records.
    """
    plan = statistic.plan
    maps = [quantity for quantity in plan.quantities if quantity.name == "n"]
    if maps:
        rows = statistic.estimates(maps[0])
    elif plan.partition_total is not None:
        rows = np.sum(statistic.values, axis=1).astype(np.float64) / plan.partition_total
    else:
        message = f"{plan.name} does not tell the number of records: give a prior of N"
        raise UsageError(message)
    n = float(np.median(rows))
    return Uniform(0, 2 * max(1, round(n)))


def _n_prior(statistic: NoisyStatistic, n_prior: NPrior | int | str | None) -> NPrior:
    if statistic.plan.design is Design.MINIMAL:
        if n_prior is not None:
            message = f"N is public in this release ({statistic.public_n}): leave the prior of N out"
            raise UsageError(message)
        return Fixed(statistic.known_n)
    if n_prior is None:
        return default_n_prior(statistic)
    if isinstance(n_prior, str):
        return parse_n_prior(n_prior)
    return n_prior if isinstance(n_prior, Reciprocal | Uniform | Fixed) else Fixed(n_prior)


def _ranks(
    world: World,
    truth: Floats,
    sums: NDArray[np.object_],
    noise: Counts,
    rng: np.random.Generator,
) -> tuple[tuple[tuple[str, str | None], ...], Counts]:
    """Names of the parameters, and the truths' ranks among posterior draws, (n_simulations, n_parameters)."""
    posterior = posterior_of(
        world.noisy(sums, noise), method=world.method, prior=world.prior, n_prior=world.believed_n_prior
    )
    drawn = posterior.sample(DRAWS, rng)
    names = tuple(
        (parameter, category)
        for parameter in posterior.parameters
        for category in (posterior.categories or (None,))
    )
    draws = np.concatenate(
        [drawn[parameter].reshape(DRAWS, len(truth), -1) for parameter in posterior.parameters], axis=2
    )
    true = truth.reshape(len(truth), -1)
    # Where float64 cannot tell truth and draws apart, their order is a matter of chance.
    ties = np.sum(draws == true, axis=0)
    return names, np.sum(draws < true, axis=0) + rng.integers(0, ties, endpoint=True)
