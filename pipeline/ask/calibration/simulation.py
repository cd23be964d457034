"""Simulations of a release: ranks of truths under its model, and coverage in worlds that are not it.

Under the model, truths are drawn from the prior. In a world, the truth is what the family's parameter is of a
whole population, as the public bounds leave its records: the mean of a column, its variance, a share, or the
rate that belongs to a mean. Nothing is drawn from a prior there; N alone is. Which question still gets an
honest answer?
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.calibration import record_worlds
from suffice.pipeline.ask.calibration.simulated_release import require_drawable
from suffice.pipeline.ask.calibration.verdict import (
    LEFT_OUT,
    TOLERANCE,
    Intervals,
    Ranks,
    batch_of,
    level_of,
    ranks_of,
    simulations_needed,
)
from suffice.pipeline.ask.inference.posterior_terms import IGNORED, PLUG_IN
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.terms.declaration.documents import one_of, printed
from suffice.pipeline.terms.declaration.wording import text_table
from suffice.pipeline.terms.statistics.measure import RowCounts, TransitionCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.calibration.verdict import Progress
    from suffice.typing import Counts, Floats, Mask

SIMULATIONS = 5000
"""Or more where several parameters need more, to be called calibrated with chance .99."""
SLOW_SIMULATIONS = 200
"""Where posteriors are slow, by MCMC or quadrature: 20 milliseconds to several seconds, twice if clipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Ranks of the truth over many simulations.

    Attributes
    ----------
    clipped, unclipped : tuple of Ranks
        With clipping as in the release, and of the very same records without.
    ignored : tuple of Ranks
        Of the same noisy sums without clipping, under the plug-in posterior, where it exists; empty unless
        asked for.
    widening : tuple of float
        Of each parameter, the median over all data sets of the width of the central 80 % interval over that
        of the plug-in posterior of the sums without noise, where both exist; empty unless asked for.
    clipped_share : float
        The share of all simulated records that were clipped.
    """

    clipped: tuple[Ranks, ...]
    unclipped: tuple[Ranks, ...]
    ignored: tuple[Ranks, ...]
    widening: tuple[float, ...]
    clipped_share: float


def default_simulations(generative_model: GenerativeModel) -> int:
    """Return how many simulations a verdict takes, or how many slow posteriors are worth by default."""
    if generative_model.is_slow:
        return SLOW_SIMULATIONS
    n_parameters = generative_model.truth(1, np.random.default_rng(0)).size
    return max(SIMULATIONS, simulations_needed(n_parameters))


def simulate(
    generative_model: GenerativeModel,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
    *,
    sees_noise: bool = False,
) -> Simulated:
    """Draw data sets and their noisy sums, and rank each truth among draws of its posterior.

    With `sees_noise` the posteriors that ignore the noise, and those without noise, are worked out as well.
    `progress` is told how many of all simulations are done. More than ``MOST_RECORDS`` records are refused.
    """
    sizes = generative_model.sizes(simulations, rng)
    batch = batch_of(generative_model)
    n_records = sum(sizes.tolist())
    require_drawable(generative_model, n_records)
    conjugate = dataclasses.replace(generative_model, method=PLUG_IN, believed_n_prior=None, clipping=IGNORED)
    names: tuple[tuple[str, str | None], ...] = ()
    parts: list[tuple[NDArray[Any], ...]] = []
    seen: list[tuple[Counts, Floats]] = []
    n_clipped = 0
    for start in range(0, simulations, batch):
        size = sizes[start : start + batch]
        truth = generative_model.truth(len(size), rng)
        sums = generative_model.sums(truth, size, rng)
        noise = generative_model.noise(len(size), rng)
        seed = int(rng.integers(2**63))  # one for all, so that what is compared is all that differs
        judged = generative_model.judged(truth)
        names, clipped, widths = ranks_of(generative_model, judged, sums.clipped, noise, seed)
        unclipped = clipped.copy()
        differs = np.any(sums.clipped != sums.unclipped, axis=1)
        differs |= np.any((judged != truth).reshape(len(truth), -1), axis=1)
        if generative_model.family.models_clipping:
            # Their posteriors differ also where nothing was clipped: that might have been.
            differs |= np.any(differs)
        if np.any(differs):
            free = dataclasses.replace(generative_model, clipping=IGNORED)
            _, unclipped[differs], widths[differs] = ranks_of(
                free,
                truth[differs],
                sums.unclipped[differs],
                noise[differs],
                seed,
                whole_prior=not generative_model.is_of_bounded_records,
            )
        if sees_noise:
            ignored, _, exists = _where_proper(conjugate, truth, sums.unclipped, noise, seed)
            _, without_noise, exact = _where_proper(conjugate, truth, sums.unclipped, 0 * noise, seed)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = widths / without_noise
            # Where both are 0, as of a single point, noise widens nothing.
            ratios = np.where((widths == 0.0) & (without_noise == 0.0), 1.0, ratios)
            seen.append((ignored[exists], np.where(exact[:, None], ratios, np.nan)))
        n_clipped += sums.n_clipped
        parts.append((clipped, unclipped))
        if progress is not None:
            progress(start + len(size), simulations)
    clipped_run, unclipped_run, *ignored_run = (
        tuple(Ranks.of(name, column) for name, column in zip(names, np.concatenate(run).T, strict=True))
        for run in (*zip(*parts, strict=True), *([ranks for ranks, _ in seen],) * sees_noise)
    )
    if sees_noise and not any(len(ranks) for ranks, _ in seen):
        message = (
            f"prior {generative_model.prior}: of none of {simulations} simulated releases is there a "
            "posterior that takes the noisy sums for exact, which calibration compares with: give a prior "
            "that excludes a variance of 0, or an n_prior of more records"
        )
        raise PriorError(message)
    widening = np.nanmedian(np.concatenate([ratios for _, ratios in seen]), axis=0) if sees_noise else ()
    return Simulated(
        clipped=clipped_run,
        unclipped=unclipped_run,
        ignored=ignored_run[0] if ignored_run else (),
        widening=tuple(map(float, widening)),
        clipped_share=n_clipped / max(n_records, 1),
    )


def _where_proper(
    generative_model: GenerativeModel, truth: Floats, sums: NDArray[np.object_], noise: Counts, seed: int
) -> tuple[Counts, Floats, Mask]:
    """Ranks and widths as of ``ranks_of``, and of which data sets there is a proper posterior.

    Sums that are taken for exact may leave no variance, of few records or much noise: then a density that
    allows a variance of 0 has no plug-in posterior.
    """
    try:
        _, ranks, widths = ranks_of(generative_model, truth, sums, noise, seed)
    except PriorError:
        if len(truth) == 1:
            shape = truth.reshape(1, -1).shape
            return np.zeros(shape, dtype=np.int64), np.full(shape, np.nan), np.zeros(1, dtype=np.bool_)
        half = len(truth) // 2
        halves = [
            _where_proper(generative_model, truth[part], sums[part], noise[part], seed)
            for part in (slice(half), slice(half, None))
        ]
        ranks, widths, proper = (np.concatenate(part) for part in zip(*halves, strict=True))
        return ranks, widths, proper
    return ranks, widths, np.ones(len(truth), dtype=np.bool_)


HONEST, NOT_HONEST, CANNOT_TELL = "honest", "too narrow", "cannot tell"
WORLD_SIMULATIONS = 2000
"""Of a world, by default: 95 % intervals that cover 95 are then called honest in nine of ten runs."""
_MANY = 10**9
"""Records beside which a prior of a few says nothing: an estimate from so many is the truth."""
_ONE_BY_ONE = 20_000
"""Records of a data set above which it is drawn as counts of the population's records."""
_MOST_FLOAT = 2.0**62
"""Sums of a data set above which they are asked for with fewer records."""


@printed(
    "world records=says parameter=ranks.parameter category?=ranks.category simulations=ranks.simulations "
    "*coverages=ranks.coverages intervals answer without_noise=without_noise.coverages"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class WorldCoverage:
    """Coverage of one question in one world.

    Attributes
    ----------
    world, says : str
        What records are like.
    ranks, without_noise : Ranks
        Of the posterior that users get, and of the plug-in posterior of the exact sums: what the model
        itself, without privacy, says of such records.
    level : float
        With which each of the simultaneous intervals of coverages may miss.
    """

    world: str
    says: str
    ranks: Ranks = field(repr=False)
    without_noise: Ranks = field(repr=False)
    level: float

    @property
    def answer(self) -> Annotated[str, one_of(HONEST, NOT_HONEST, CANNOT_TELL)]:
        """``honest``: no coverage is below nominal by more than the tolerance; wider intervals may be."""
        within = outside = 0
        for mass, tolerance in TOLERANCE.items():
            low, high = self.ranks.coverage_interval(mass, self.level)
            within += low >= mass - tolerance
            outside += high < mass - tolerance
        if outside:
            return NOT_HONEST
        return HONEST if within == len(TOLERANCE) else CANNOT_TELL

    @property
    def intervals(self) -> Intervals:
        """Of coverages, with the chance to miss that is stated."""
        return self.ranks.intervals(self.level)


def world_coverages(
    generative_model: GenerativeModel,
    chosen: Sequence[str] | bool,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[WorldCoverage, ...]:
    """Measure how often intervals hold the truth of populations that are not the model.

    The generative model's prior is what posteriors believe; its prior of N is what N is drawn from. So many
    simulations are done of each chosen world, or of all that apply, and `progress` is told how many of all
    are done. There is a coverage for every world and parameter, with its categories or components.
    """
    measure = generative_model.family.measure(generative_model.entry)
    worlds = record_worlds.worlds_of(measure, chosen)
    coverages: list[WorldCoverage] = []
    for position, world in enumerate(worlds):
        before, total = position * simulations, len(worlds) * simulations

        def say(done: int, _total: int, before: int = before, total: int = total) -> None:
            if progress is not None:
                progress(before + done, total)

        coverages += _coverage(generative_model, world, simulations, rng, say)
    return tuple(coverages)


def _coverage(
    generative_model: GenerativeModel,
    world: record_worlds.World,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress,
) -> list[WorldCoverage]:
    sums, truth = simulated_sums(generative_model, world, simulations, rng)
    conjugate = dataclasses.replace(generative_model, method=PLUG_IN, believed_n_prior=None)
    batch = batch_of(generative_model)
    runs: list[tuple[Counts, Counts]] = []
    names: tuple[tuple[str, str | None], ...] = ()
    for start in range(0, simulations, batch):
        part = slice(start, min(start + batch, simulations))
        exact = record_worlds.python_integers(sums[part])
        noise = generative_model.noise(len(exact), rng)
        seed = int(rng.integers(2**63))
        names, noisy, _ = ranks_of(generative_model, truth[part], exact, noise, seed)
        _, without, _ = ranks_of(conjugate, truth[part], exact, 0 * noise, seed)
        runs.append((noisy, without))
        progress(part.stop, simulations)
    noisy, without = (np.concatenate(each) for each in zip(*runs, strict=True))
    level = level_of(len(names))
    return [
        WorldCoverage(
            world=world.name,
            says=world.says,
            ranks=Ranks.of(name, noisy[:, column]),
            without_noise=Ranks.of(name, without[:, column]),
            level=level,
        )
        for column, name in enumerate(names)
    ]


def simulated_sums(
    generative_model: GenerativeModel, world: record_worlds.World, simulations: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw data sets from a world's populations in turn: their exact sums, and the truth of each.

    They are (simulations, n_sums) and (simulations, n_parameters).
    """
    entry = generative_model.entry
    measure = generative_model.family.measure(entry)
    sizes = generative_model.sizes(simulations, rng)
    if isinstance(measure, TransitionCounts):
        sizes = np.maximum(sizes // measure.most, 1)  # of units
    pools = record_worlds.populations(world, entry, measure, rng)
    is_correlated = world.name == record_worlds.CORRELATED
    if is_correlated:
        pools = tuple(record_worlds.alike_in_units(pool, rng) for pool in pools)
    each = [record_worlds.sums_of_each(measure, pool) for pool in pools]
    if float(sizes.max()) * max(float(np.abs(row).max()) for row in each) > _MOST_FLOAT:
        message = (
            "data sets of worlds would be too large: ask for a smaller N with n_prior, or fewer lattice_bits"
        )
        raise UsageError(message)
    which = np.arange(simulations) % len(each)
    units = (
        [row.reshape(-1, record_worlds.UNIT, row.shape[1]).sum(axis=1) for row in each]
        if is_correlated
        else []
    )
    sums = np.empty((simulations, each[0].shape[1]))
    for position, (chosen, size) in enumerate(zip(which.tolist(), sizes.tolist(), strict=True)):
        if is_correlated:
            sums[position] = _sum_of(units[chosen], size // record_worlds.UNIT, rng) + _sum_of(
                each[chosen], size % record_worlds.UNIT, rng
            )
        else:
            sums[position] = _sum_of(each[chosen], size, rng)
    if isinstance(measure, RowCounts) and not measure.counts_each:
        rows = sums[:, :2].sum(axis=1, keepdims=True)  # shares of the very rows that there are
        return sums, sums[:, :2] / np.maximum(rows, 1.0)
    return sums, true_parameters(generative_model, [row.mean(axis=0) for row in each])[which]


def _sum_of(each: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Return the sums of so many records, drawn from a population with replacement."""
    if size <= _ONE_BY_ONE:
        sums: Floats = each[rng.integers(0, len(each), size)].sum(axis=0)
        return sums
    return rng.multinomial(size, np.full(len(each), 1.0 / len(each))) @ each


def true_parameters(generative_model: GenerativeModel, means: Sequence[Floats]) -> Floats:
    """Return the parameters of populations, given the mean of what their records add to each sum.

    They are the family's conjugate estimates from 10^9 records.
    """
    family, design = generative_model.family, generative_model.plan.design
    conjugate = dataclasses.replace(
        generative_model, public_n=None if generative_model.public_n is None else _MANY
    )
    sums = record_worlds.python_integers(np.stack([_MANY * mean for mean in means]))
    components = len(family.totals(generative_model.entry, design, sums)[0])
    exact = conjugate.noisy(sums, np.zeros((len(sums), components), dtype=np.int64))
    estimate = posterior_of(exact, method=PLUG_IN)
    return np.concatenate(
        [estimate.mean(name).reshape(len(sums), -1) for name in estimate.parameters], axis=1
    )


def worlds_table(coverages: Sequence[WorldCoverage]) -> str:
    """Return a line for every world and parameter: of several entries the one that is covered least."""
    worst: dict[tuple[str, str], WorldCoverage] = {}
    for each in coverages:
        key = each.world, each.ranks.parameter
        if key not in worst or each.ranks.coverage(0.95) < worst[key].ranks.coverage(0.95):
            worst[key] = each
    columns = ["world", "records", "parameter", "coverage 50/80/95", "answer", "without noise"]
    rows = [
        [
            each.world,
            each.says,
            each.ranks.name,
            _percent(each.ranks),
            each.answer,
            _percent(each.without_noise),
        ]
        for each in worst.values()
    ]
    return text_table(columns, rows)


def _percent(ranks: Ranks) -> str:
    return "/".join(f"{100 * ranks.coverage(mass):.1f}" for mass in LEFT_OUT)
