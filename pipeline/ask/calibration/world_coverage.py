"""Coverage under worlds that are not the model: which question still gets an honest answer.

The truth is what the family's parameter is of a whole population, as the public bounds leave its records:
the mean of a column, its variance, a share, or the rate that belongs to a mean. Nothing is drawn from a
prior; N alone is.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.calibration.record_worlds import (
    CORRELATED,
    UNIT,
    alike_in_units,
    populations,
    python_integers,
    sums_of_each,
    worlds_of,
)
from suffice.pipeline.ask.calibration.verdict import (
    DRAWS,
    LEFT_OUT,
    TOLERANCE,
    Ranks,
    batch_of,
    level_of,
    ranks_of,
)
from suffice.pipeline.ask.posterior.infer import posterior_of
from suffice.pipeline.ask.posterior.posterior import PLUG_IN
from suffice.pipeline.terms.released.text_table import text_table
from suffice.pipeline.terms.statistics.measure import RowCounts, TransitionCounts
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.ask.calibration.record_worlds import World
    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.calibration.verdict import Progress
    from suffice.typing import Counts, Floats

HONEST, NOT_HONEST, CANNOT_TELL = "honest", "too narrow", "cannot tell"
SIMULATIONS = 2000
"""Of a world, by default: 95 % intervals that cover 95 are then called honest in nine of ten runs."""
_MANY = 10**9
"""Records beside which a prior of a few says nothing: an estimate from so many is the truth."""
_ONE_BY_ONE = 20_000
"""Records of a data set above which it is drawn as counts of the population's records."""
_MOST_FLOAT = 2.0**62
"""Sums of a data set above which they are asked for with fewer records."""


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
    def answer(self) -> str:
        """``honest``: no coverage is below nominal by more than the tolerance; wider intervals may be."""
        within = outside = 0
        for mass, tolerance in TOLERANCE.items():
            low, high = self.ranks.coverage_interval(mass, self.level)
            within += low >= mass - tolerance
            outside += high < mass - tolerance
        if outside:
            return NOT_HONEST
        return HONEST if within == len(TOLERANCE) else CANNOT_TELL

    def to_dict(self) -> dict[str, Any]:
        """Return an entry of ``worlds`` of ``suffice calibrate --json``."""
        ranks = self.ranks
        return {
            "world": self.world,
            "records": self.says,
            "parameter": ranks.parameter,
            **({} if ranks.category is None else {"category": ranks.category}),
            "simulations": ranks.simulations,
            **_coverages(ranks),
            "intervals": {_column(mass): ranks.coverage_interval(mass, self.level) for mass in LEFT_OUT},
            "answer": self.answer,
            "without_noise": _coverages(self.without_noise),
        }


def world_coverages(
    generative_model: GenerativeModel,
    chosen: Sequence[str] | bool,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[WorldCoverage, ...]:
    """Measure how often intervals hold the truth of populations that are not the model.

    Parameters
    ----------
    generative_model : GenerativeModel
        Its prior is what posteriors believe; its prior of N is what N is drawn from.
    chosen : sequence of str, or True
        Names of worlds; all that apply otherwise.
    simulations : int, > 0
        Of each world.
    rng : numpy.random.Generator
    progress : callable, optional
        Told how many of all simulations are done.

    Returns
    -------
    tuple of WorldCoverage
        For every world and parameter, with its categories or components.

    Raises
    ------
    UsageError
        Where there is no such world.
    """
    measure = generative_model.family.measure(generative_model.entry)
    worlds = worlds_of(measure, chosen)
    coverages: list[WorldCoverage] = []
    for position, world in enumerate(worlds):
        done = position * simulations
        say = None if progress is None else _Shifted(progress, done, len(worlds) * simulations)
        coverages += _coverage(generative_model, world, simulations, rng, say)
    return tuple(coverages)


@dataclass(frozen=True, slots=True)
class _Shifted:
    """Progress of one world among those of all."""

    progress: Progress
    done: int
    total: int

    def __call__(self, done: int, _total: int) -> None:
        self.progress(self.done + done, self.total)


def _coverage(
    generative_model: GenerativeModel,
    world: World,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> list[WorldCoverage]:
    sums, truth = simulated_sums(generative_model, world, simulations, rng)
    conjugate = dataclasses.replace(generative_model, method=PLUG_IN, believed_n_prior=None)
    batch = batch_of(generative_model)
    runs: list[tuple[Counts, Counts]] = []
    names: tuple[tuple[str, str | None], ...] = ()
    for start in range(0, simulations, batch):
        part = slice(start, min(start + batch, simulations))
        exact = python_integers(sums[part])
        noise = discrete_laplace(
            generative_model.scale,
            (len(exact), len(generative_model.plan.components)),
            rng,
            generative_model.cells_summed,
        )
        seed = int(rng.integers(2**63))
        names, noisy, _ = ranks_of(generative_model, truth[part], exact, noise, seed)
        _, without, _ = ranks_of(conjugate, truth[part], exact, 0 * noise, seed)
        runs.append((noisy, without))
        if progress is not None:
            progress(part.stop, simulations)
    noisy, without = (np.concatenate(each) for each in zip(*runs, strict=True))
    level = level_of(len(names))
    return [
        WorldCoverage(
            world=world.name,
            says=world.says,
            ranks=_ranks(name, noisy[:, column]),
            without_noise=_ranks(name, without[:, column]),
            level=level,
        )
        for column, name in enumerate(names)
    ]


def _ranks(name: tuple[str, str | None], ranks: Counts) -> Ranks:
    parameter, category = name
    counts = tuple(np.bincount(ranks, minlength=DRAWS + 1).tolist())
    return Ranks(parameter=parameter, category=category, counts=counts)


def simulated_sums(
    generative_model: GenerativeModel, world: World, simulations: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw data sets from a world's populations in turn: their exact sums, and the truth of each.

    Returns
    -------
    tuple of ndarray of float64
        (simulations, n_sums) and (simulations, n_parameters).
    """
    entry = generative_model.entry
    measure = generative_model.family.measure(entry)
    sizes = generative_model.sizes(simulations, rng)
    if isinstance(measure, TransitionCounts):
        sizes = np.maximum(sizes // measure.most, 1)  # of units
    pools = populations(world, entry, measure, rng)
    is_correlated = world.name == CORRELATED
    if is_correlated:
        pools = tuple(alike_in_units(pool, rng) for pool in pools)
    each = [sums_of_each(measure, pool) for pool in pools]
    if float(sizes.max()) * max(float(np.abs(row).max()) for row in each) > _MOST_FLOAT:
        message = (
            "data sets of worlds would be too large: ask for a smaller N with n_prior, or fewer lattice_bits"
        )
        raise UsageError(message)
    which = np.arange(simulations) % len(each)
    units = [row.reshape(-1, UNIT, row.shape[1]).sum(axis=1) for row in each] if is_correlated else []
    sums = np.empty((simulations, each[0].shape[1]))
    for position, (chosen, size) in enumerate(zip(which.tolist(), sizes.tolist(), strict=True)):
        if is_correlated:
            sums[position] = _sum_of(units[chosen], size // UNIT, rng) + _sum_of(
                each[chosen], size % UNIT, rng
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
    sums = python_integers(np.stack([_MANY * mean for mean in means]))
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


def _coverages(ranks: Ranks) -> dict[str, float]:
    return {_column(mass): ranks.coverage(mass) for mass in LEFT_OUT}


def _column(mass: float) -> str:
    return f"coverage_{100 * mass:.0f}"
