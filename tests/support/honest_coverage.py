"""Coverage and width of what every family answers by default, beside an oracle without noise and the plug-in.

``honest_table.py`` measures all settings, keeps what was measured, and writes the table.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.calibration.record_worlds import python_integers, sums_of_each
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE, PLUG_IN
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import blocks_of, from_draws
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.math.distributions.intervals import shortest_of_draws
from suffice.pipeline.math.distributions.within_limits import WithinLimits
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.measure import RowCounts, TransitionCounts
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.entries import entry_of
from support.honest_populations import WORLDS, Populations, populations, worlds_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.statistics.measure import Measure
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Counts, Floats

MASSES = (0.5, 0.8, 0.95)
ROWS = (30, 300, 5000)
EPSILONS = ("0.1", "1")
CELLS, FEW_CELLS = 1000, 200
_BLOCK = 50
"""Cells of a call after which the clock is asked."""
_ENOUGH = 10**9
"""Records beside which a prior of a few records says nothing: the truth is an estimate from so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What cells have in common: N is uniform on half to three halves of `n`, and private."""

    family: str
    world: str
    n: int
    epsilon: str

    def __str__(self) -> str:
        return f"{self.family}-{self.world}-{self.n}-{self.epsilon}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """How often intervals of a parameter held the truth, over cells and its entries.

    Attributes
    ----------
    parameter : str
    cells, entries : int
        Of each cell so many entries, over which coverage and width are means.
    noise_aware, oracle, plug_in : tuple of float
        Coverage at 50, 80 and 95 %: by default; the plug-in posterior of exact sums; that of noisy ones.
    worst : float
        Coverage at 95 % of the entry or population where it is least, by default; a mean over runs.
    below : float
        The share of truths below their 95 % intervals, by default.
    widths : tuple of float
        Medians over cells and entries of the width of 95 % intervals: by default, oracle, plug-in.
    seconds : float
        Processor time of a cell's posterior and intervals, by default.
    """

    family: str
    world: str
    n: int
    epsilon: str
    parameter: str
    cells: int
    entries: int
    noise_aware: tuple[float, ...]
    oracle: tuple[float, ...]
    plug_in: tuple[float, ...]
    worst: float
    below: float
    widths: tuple[float, ...]
    seconds: float


def settings(
    families: Sequence[str] = (),
    worlds: Sequence[str] = WORLDS,
    rows: Sequence[int] = ROWS,
    epsilons: Sequence[str] = EPSILONS,
) -> Iterator[Setting]:
    """All settings, those of one family after the other."""
    for family, world, n, epsilon in product(families or FAMILIES, worlds, rows, epsilons):
        if world in worlds_of(family):
            yield Setting(family=family, world=world, n=n, epsilon=epsilon)


def is_slow(family: str) -> bool:
    """Whether a cell may take more than .05 s."""
    return family in {"normal", "lognormal", "multivariate_normal", "linear_regression"}


# Cells.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Exact sums of cells as components, the truth of each cell, and the plan of their release."""

    plan: StatisticPlan
    totals: NDArray[np.object_]
    truth: dict[str, Floats]
    population: Counts


@cache
def _prepared(family: str, world: str) -> tuple[Populations, Any, Measure, list[Floats]]:
    given = populations(family, world)
    _, entry = planned(family, given, "1")
    measure = FAMILIES[family].measure(entry)
    return given, entry, measure, [sums_of_each(measure, pool) for pool in given.pools]


def planned(family: str, given: Populations, epsilon: str) -> tuple[StatisticPlan, Any]:
    unit = {"column": "who", "max_rows": str(given.max_rows)} if FAMILIES[family].needs_unit else "row"
    spec = load_spec(
        {
            "name": "simulated",
            "dataset": "simulated",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": unit},
            "statistics": {"measured": entry_of(family, dict(given.entry))},
        }
    )
    (plan,) = compile_plan(spec).statistics
    return plan, spec.statistics["measured"]


def cells_of(setting: Setting, cells: int, rng: np.random.Generator) -> Cells:
    """Draw records of each cell from one of the populations, with replacement, and sum them."""
    given, entry, measure, each = _prepared(setting.family, setting.world)
    family = FAMILIES[setting.family]
    plan, _ = planned(setting.family, given, setting.epsilon)
    # So many records: units add several transitions each.
    per_unit = given.pools[0].shape[1] - 1 if isinstance(measure, TransitionCounts) else 1
    sizes = np.maximum(rng.integers(setting.n // 2, setting.n + setting.n // 2 + 1, cells) // per_unit, 1)
    population = np.arange(cells) % len(each)
    sums = np.stack(
        [
            each[chosen][rng.integers(0, len(each[chosen]), size)].sum(axis=0)
            for chosen, size in zip(population, sizes, strict=True)
        ]
    )
    of_data = isinstance(measure, RowCounts)  # its parameters are shares of the rows there are
    true_sums = sums if of_data else np.stack([row.mean(axis=0) * _ENOUGH for row in each])
    estimate = posterior_of(
        noisy_statistic(
            plan,
            family.totals(entry, plan.design, python_integers(true_sums)),
            groups=groups_of(setting.family),
        ),
        method=PLUG_IN,
        prior=_weak_prior(setting.family),
    )
    truth = {
        name: estimate.mean(name)[slice(None) if of_data else population] for name in estimate.parameters
    }
    if of_data:
        truth = {"probability": sums[:, :2] / np.maximum(sums[:, :2].sum(axis=1, keepdims=True), 1)}
    return Cells(
        plan=plan,
        totals=family.totals(entry, plan.design, python_integers(sums)),
        truth=truth,
        population=population,
    )


def groups_of(family: str) -> dict[str, list[str | int]] | None:
    """No cells where the parameters are of a release: each row is one then."""
    return {} if FAMILIES[family].of_release else None


def _weak_prior(family: str) -> str | None:
    """A conjugate prior of a few records: beside 10^9 records any will do."""
    return FAMILIES[family].generative_case.prior


# Coverage.


def measure(
    setting: Setting, cells: int, rng: np.random.Generator, seconds: float = np.inf, seed: int | None = None
) -> list[Covered]:
    """Measure a setting: one row a parameter. After so many seconds no further cells are begun.

    The noise-aware posterior is asked as a user asks it, with default options, and so is the plug-in one.
    """
    drawn = cells_of(setting, cells, rng)
    noise = discrete_laplace(float(drawn.plan.scale), drawn.totals.shape, rng)
    noisy = np.clip(drawn.totals + noise.astype(object), *drawn.plan.value_limits)
    held: dict[str, list[list[NDArray[np.bool_]]]] = {}
    wide: dict[str, list[list[Floats]]] = {}
    below: dict[str, list[NDArray[np.bool_]]] = {}
    started, spent, done = time.monotonic(), 0.0, 0
    block = _BLOCK if is_slow(setting.family) or seconds < np.inf else cells
    while done < cells and (done == 0 or time.monotonic() - started < seconds):
        part = slice(done, min(done + block, cells))
        asked = ((noisy, NOISE_AWARE), (drawn.totals, PLUG_IN), (noisy, PLUG_IN))
        for position, (totals, method) in enumerate(asked):
            begun = time.process_time()
            cells_here = noisy_statistic(drawn.plan, totals[part], groups=groups_of(setting.family))
            posterior = posterior_of(cells_here, method=method)
            intervals = {name: intervals_of(posterior, name, seed) for name in posterior.parameters}
            spent += (time.process_time() - begun) * (position == 0)
            for name, ends in intervals.items():
                inside = held.setdefault(name, [[], [], []])
                truth = drawn.truth[name][part]
                each = [(end[..., 0] <= truth) & (truth <= end[..., 1]) for end in ends]
                inside[position].append(np.stack(each, axis=-1).astype(bool))
                widths = wide.setdefault(name, [[], [], []])
                widths[position].append(ends[-1][..., 1] - ends[-1][..., 0])
                if position == 0:
                    below.setdefault(name, []).append(truth < ends[-1][..., 0])
        done = part.stop
    return [
        _covered(
            setting,
            name,
            [np.concatenate(each) for each in held[name]],
            [np.concatenate(each) for each in wide[name]],
            np.concatenate(below[name]),
            drawn.population[:done],
            spent / done,
        )
        for name in held
    ]


def intervals_of(posterior: Posterior, name: str, seed: int | None) -> list[Floats]:
    """Return the intervals of every mass, as ``credible_interval`` does, of draws made once."""
    distribution = posterior.distribution
    if posterior.default_interval == CENTRAL:
        levels = [level for mass in MASSES for level in ((1.0 - mass) / 2.0, (1.0 + mass) / 2.0)]
        ends = distribution.quantiles(name, levels, DRAWS, np.random.default_rng(seed))
        return [ends[..., [2 * number, 2 * number + 1]] for number in range(len(MASSES))]
    blocks = blocks_of(distribution)
    if isinstance(distribution, WithinLimits) or not all(from_draws(block) for block in blocks):
        return [posterior.credible_interval(name, mass, rng=seed) for mass in MASSES]
    rng, ends_of = np.random.default_rng(seed), posterior.ends_of(name)
    drawn = [block.sample(DRAWS, rng)[name] for block in blocks]
    return [np.concatenate([shortest_of_draws(draws, mass, ends_of) for draws in drawn]) for mass in MASSES]


def _covered(
    setting: Setting,
    name: str,
    held: list[NDArray[np.bool_]],
    wide: list[Floats],
    below: NDArray[np.bool_],
    population: Counts,
    seconds: float,
) -> Covered:
    cells = len(population)
    shares = [tuple(float(share) for share in each.reshape(-1, len(MASSES)).mean(axis=0)) for each in held]
    entries = held[0].reshape(cells, -1, len(MASSES))[..., -1]
    return Covered(
        **asdict(setting),
        parameter=name,
        cells=cells,
        entries=entries.shape[1],
        noise_aware=shares[0],
        oracle=shares[1],
        plug_in=shares[2],
        worst=float(min(entries[population == each].mean(axis=0).min() for each in np.unique(population))),
        below=float(below.mean()),
        widths=tuple(float(np.median(each)) for each in wide),
        seconds=seconds,
    )


def generator_of(setting: Setting, seed: int, after: int = 0) -> np.random.Generator:
    """Return the same generator for a setting whatever code is measured: what is compared is paired.

    After so many cells that were measured before it is another one.
    """
    return np.random.default_rng([seed, zlib.crc32(str(setting).encode()), after])


def together(parts: Sequence[Covered]) -> Covered:
    """Return what runs of one setting and parameter say together: means by their numbers of cells.

    So are the widths, of which each run has medians.
    """
    weights = np.array([part.cells for part in parts], dtype=float)

    def mean(values: list[Any]) -> Floats:
        return np.average(np.array(values, dtype=float), axis=0, weights=weights)

    return replace(
        parts[0],
        cells=int(weights.sum()),
        noise_aware=tuple(mean([part.noise_aware for part in parts]).tolist()),
        oracle=tuple(mean([part.oracle for part in parts]).tolist()),
        plug_in=tuple(mean([part.plug_in for part in parts]).tolist()),
        worst=float(mean([part.worst for part in parts])),
        below=float(mean([part.below for part in parts])),
        widths=tuple(mean([part.widths for part in parts]).tolist()),
        seconds=float(mean([part.seconds for part in parts])),
    )
