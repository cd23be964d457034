"""Ranks of truths among posterior draws, and the three verdicts on them, each with a stated chance of error.

*Calibrated* is a statement about the posterior: simultaneous 99 % intervals of all coverages lie within
``TOLERANCE`` of nominal. Where a coverage is outside, it is made with a chance of at most ``MISS``. *Not
calibrated* is the outcome of a test: a calibrated posterior fails it with a chance of at most
``FALSE_ALARM``. *Cannot tell* is everything else. A difference that the test sees, but that is within the
tolerance, leaves a posterior calibrated.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.terms.declaration.documents import Count, each_of
from suffice.pipeline.terms.statistics.measure import MomentSums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Counts, Floats

    Progress: TypeAlias = Callable[[int, int], None]


_BATCH = 250
_SLOW_BATCH = 20
_CHAINS_BATCH = 500
"""Where the chains of all data sets run side by side: the more of them, the less each costs."""


def batch_of(generative_model: GenerativeModel) -> int:
    """Return how many posteriors are worked out at once."""
    if not generative_model.is_slow:
        return _BATCH
    side_by_side = isinstance(generative_model.family.measure(generative_model.entry), MomentSums)
    return _CHAINS_BATCH if side_by_side else _SLOW_BATCH


def _names(posterior: Posterior) -> tuple[tuple[str, str | None], ...]:
    """Name the entries of all parameters: with their component, ``mean[x]``, or beside their category."""
    if not posterior.components:
        return tuple(product(posterior.parameters, posterior.categories or (None,)))
    return tuple(
        (parameter if component is None else f"{parameter}[{component}]", None)
        for parameter in posterior.parameters
        for component in posterior.components.get(parameter, (None,))
    )


def ranks_of(
    generative_model: GenerativeModel,
    truth: Floats,
    sums: NDArray[np.object_],
    noise: Counts,
    seed: int,
    *,
    whole_prior: bool = False,
) -> tuple[tuple[tuple[str, str | None], ...], Counts, Floats]:
    """Names of the parameters; the truths' ranks among posterior draws, and how wide these are.

    Ranks and widths of the central 80 % have the shape (n_simulations, n_parameters). With `whole_prior` the
    posterior is not restricted to what records within the bounds can have.
    """
    rng = np.random.default_rng(seed)
    posterior = generative_model.posterior(sums, noise)
    if whole_prior:
        posterior = dataclasses.replace(posterior, distribution=unrestricted(posterior.distribution))
    drawn = posterior.sample(DRAWS, rng)
    names = _names(posterior)
    draws = np.concatenate(
        [drawn[parameter].reshape(DRAWS, len(truth), -1) for parameter in posterior.parameters], axis=2
    )
    true = truth.reshape(len(truth), -1)
    # Where float64 cannot tell truth and draws apart, their order is a matter of chance.
    ties = np.sum(draws == true, axis=0)
    ranks = np.sum(draws < true, axis=0) + rng.integers(0, ties, endpoint=True)
    out = LEFT_OUT[0.8] - 1
    ordered = np.partition(draws, (out, DRAWS - 1 - out), axis=0)
    return names, ranks, ordered[DRAWS - 1 - out] - ordered[out]


DRAWS = 199
"""Posterior draws that a truth is ranked among: 200 ranks, so that the intervals below are exact."""
LEFT_OUT = {0.5: 50, 0.8: 20, 0.95: 5}
"""By mass of a central interval, how many ranks it leaves out on either side."""
BINS = 20
"""Of the histogram: 10 ranks each."""


def coverage_column(mass: float) -> str:
    """Name the column that holds coverages of intervals of this mass, as ``coverage_95``."""
    return f"coverage_{100 * mass:.0f}"


_COLUMNS = [coverage_column(mass) for mass in LEFT_OUT]
_BETWEEN = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
Coverages = Annotated[dict[str, float], each_of(_COLUMNS, {"type": "number"})]
Intervals = Annotated[dict[str, tuple[float, float]], each_of(_COLUMNS, _BETWEEN)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """How often the truth had each rank among the draws of its posterior.

    Attributes
    ----------
    parameter : str
    category : str or None
        The category, where the parameter has one value for each.
    counts : tuple of int
        By rank, ``0..DRAWS``.
    """

    parameter: str
    category: str | None
    counts: tuple[int, ...] = field(repr=False)

    @classmethod
    def of(cls, name: tuple[str, str | None], ranks: Counts) -> Ranks:
        """Count the ranks of the truths of one parameter."""
        counts = tuple(np.bincount(ranks, minlength=DRAWS + 1).tolist())
        return cls(parameter=name[0], category=name[1], counts=counts)

    @property
    def name(self) -> str:
        """The parameter, with its category."""
        return self.parameter if self.category is None else f"{self.parameter} of {self.category}"

    @property
    def simulations(self) -> Count:
        """How many truths were ranked."""
        return int(sum(self.counts))

    @property
    def histogram(self) -> tuple[Count, ...]:
        """Counts in ``BINS`` bins of equally many ranks."""
        return tuple(int(count) for count in np.reshape(self.counts, (BINS, -1)).sum(axis=1))

    def covered(self, mass: float) -> int:
        """How many central intervals of this mass held the truth."""
        out = LEFT_OUT[mass]
        return int(sum(self.counts[out : DRAWS + 1 - out]))

    def coverage(self, mass: float) -> float:
        """The share of central intervals of this mass that held the truth."""
        return self.covered(mass) / self.simulations

    @property
    def coverages(self) -> Coverages:
        """The coverage of every mass, by its column in tables."""
        return {coverage_column(mass): self.coverage(mass) for mass in LEFT_OUT}

    def beyond(self, mass: float) -> tuple[int, int]:
        """How many truths lay below and above their central intervals of this mass."""
        out = LEFT_OUT[mass]
        return int(sum(self.counts[:out])), int(sum(self.counts[DRAWS + 1 - out :]))

    def intervals(self, level: float) -> Intervals:
        """The interval of the coverage of every mass, by its column in tables."""
        return {coverage_column(mass): self.coverage_interval(mass, level) for mass in LEFT_OUT}

    def coverage_interval(self, mass: float, level: float) -> tuple[float, float]:
        """The Clopper-Pearson interval of the coverage; it misses it with a chance of at most `level`."""
        from scipy.special import betaincinv

        covered, missed = self.covered(mass), self.simulations - self.covered(mass)
        low = betaincinv(covered, missed + 1, level / 2) if covered else 0.0
        high = betaincinv(covered + 1, missed, 1.0 - level / 2) if missed else 1.0
        return float(low), float(high)

    def coverage_p_value(self, mass: float) -> float:
        """Chance that a calibrated posterior's coverage lies as far out on its side, twice; at most 1."""
        covered = np.array(self.covered(mass))
        tail = min(at_most(covered, self.simulations, mass), at_least(covered, self.simulations, mass))
        return min(1.0, 2.0 * float(tail))

    @property
    def chi_square(self) -> float:
        """Pearson's statistic of the histogram; ``BINS - 1`` degrees of freedom."""
        expected = self.simulations / BINS
        return sum((count - expected) ** 2 for count in self.histogram) / expected

    @property
    def rank_p_value(self) -> float:
        """Chance of a histogram at least as uneven, by its chi-square distribution in the limit."""
        from scipy.special import chdtrc

        return float(chdtrc(BINS - 1, self.chi_square))

    def p_values(self) -> list[float]:
        """The chances under a calibrated posterior: one of each coverage, one of the ranks."""
        return [*(self.coverage_p_value(mass) for mass in LEFT_OUT), self.rank_p_value]


def at_most(count: np.ndarray, trials: int, probability: float) -> Floats:
    """Return the chance of so many successes or fewer."""
    from scipy.special import bdtr

    chance: Floats = bdtr(count, trials, probability)
    return chance


def at_least(count: np.ndarray, trials: int, probability: float) -> Floats:
    """Return the chance of so many successes or more."""
    from scipy.special import bdtrc

    chance: Floats = np.where(count == 0, 1.0, bdtrc(np.maximum(count - 1, 0), trials, probability))
    return chance


CALIBRATED = "calibrated"
NOT_CALIBRATED = "not calibrated"
CANNOT_TELL = "cannot tell"

TOLERANCE = {0.5: 0.042, 0.8: 0.034, 0.95: 0.0184}
"""How far from their mass the coverage of intervals may be that are called calibrated.

5.3 to 5.4 standard errors of 4,000 simulations, which a calibrated parameter leaves with chance 4e-7.
"""
MISS = 0.01
"""Chance that any of the simultaneous intervals misses its coverage."""
FALSE_ALARM = 1e-3
"""Chance that a calibrated posterior is called not calibrated."""
PASSING = 0.99
"""Chance with which a calibrated posterior is called so, at the number of simulations that it needs."""
LEAST_FOR_RANKS = 200
"""Simulations from which on the histogram decides: 10 in every bin."""
_TESTS = len(LEFT_OUT) + 2
"""Of a parameter, among which false alarms are shared out: one of each coverage, and the histogram as two.

The chi-square distribution of a histogram is right in the limit alone: of 200 calibrated ranks p-values below
2.5e-4 are 1.2 times, below 2.5e-5 1.5 times as frequent (1.6 million draws).
"""
_LEAST_ROOM = 5e-4
"""Of a coverage beside the edge of its tolerance: to resolve less takes millions of simulations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a run of simulations says about a posterior.

    Attributes
    ----------
    conclusion : {"calibrated", "not calibrated", "cannot tell"}
    reason : str
        What it rests on, in words.
    simulations_needed : int
        The number of simulations with which a calibrated posterior is called so with chance ``PASSING``. Of
        more simulations that cannot tell: about how many would, if the coverages stay where they are.
    """

    conclusion: str
    reason: str
    simulations_needed: int


def judge(run: tuple[Ranks, ...]) -> Verdict:
    """Judge the ranks of all parameters and categories of a posterior, from the same simulations."""
    simulations, needed = run[0].simulations, simulations_needed(len(run))
    tolerance = f"{in_points(TOLERANCE.values())} points of nominal"
    rejected = min(p_value for p_value, *_ in _adjusted(run)) <= FALSE_ALARM
    if _is_within(run) and not _is_lopsided(run):
        conclusion = CALIBRATED
        seen = "; smaller differences are seen" if rejected else ""
        reason = f"50, 80 and 95 % intervals cover within {tolerance}{seen}"
    elif rejected:
        conclusion, reason = NOT_CALIBRATED, _worst(run)
        if not _is_outside(run):
            needed = max(needed, _settling(run))
            reason += (
                "; truths are too often on one side"
                if _is_lopsided(run)
                else f"; whether that is within {tolerance}, about {needed} simulations would tell"
            )
    elif simulations < needed:
        conclusion = CANNOT_TELL
        reason = (
            f"too few simulations; with {needed} a calibrated posterior is seen to cover within {tolerance} "
            f"with chance {PASSING:g}"
        )
    else:
        conclusion = CANNOT_TELL
        needed = _settling(run)
        reason = f"a coverage is too near the edge of {tolerance}; about {needed} simulations would tell"
    return Verdict(conclusion=conclusion, reason=reason, simulations_needed=needed)


def level_of(n_parameters: int) -> float:
    """Return the chance with which each interval of a coverage may miss it, so that all hold together."""
    return MISS / (n_parameters * len(LEFT_OUT))


@cache
def simulations_needed(n_parameters: int) -> int:
    """Return with how many simulations a calibrated posterior is called so with chance ``PASSING``.

    To the nearest hundred. Exact for one parameter; for several by the sum of their chances to fail.
    """
    few, many = 0, 5000
    while _failing(many, n_parameters) > 1.0 - PASSING:
        few, many = many, 2 * many
    while many - few > 10:
        middle = (few + many) // 2
        few, many = (middle, many) if _failing(middle, n_parameters) > 1.0 - PASSING else (few, middle)
    return round(many, -2)


def passing_chance(
    simulations: int, n_parameters: int = 1, coverage: Mapping[float, float] | None = None
) -> float:
    """Return the chance that all coverages of one parameter are found within the tolerance, exactly.

    So many parameters are judged together, and the true coverage by mass is that of a calibrated posterior
    unless stated. An interval holds all narrower ones, so what each covers is binomial given what the next
    wider one does.
    """
    true = coverage or {mass: mass for mass in LEFT_OUT}
    wider, chance = None, np.ones(1)
    within = np.array([simulations])
    for mass in sorted(LEFT_OUT, reverse=True):
        # Numbers of covered truths whose Clopper-Pearson interval is within the tolerance.
        passing = np.flatnonzero(
            _has_passed(np.arange(simulations + 1), simulations, mass, level_of(n_parameters))
        )
        share = true[mass] / (1.0 if wider is None else true[wider])
        chance = chance @ _binomial(passing, within[:, None], share)
        wider, within = mass, passing
    return float(chance.sum())


def in_points(values: Iterable[float]) -> str:
    """Write shares in points or percent, as ``4.2, 3.4 and 1.84``."""
    *first, last = (f"{100 * value:.3g}" for value in values)
    return f"{', '.join(first)} and {last}"


def _failing(simulations: int, n_parameters: int) -> float:
    return n_parameters * (1.0 - passing_chance(simulations, n_parameters))


def _has_passed(covered: np.ndarray, simulations: int, mass: float, level: float) -> np.ndarray:
    low, high = mass - TOLERANCE[mass], mass + TOLERANCE[mass]
    passed: np.ndarray = (at_least(covered, simulations, low) <= level / 2) & (
        at_most(covered, simulations, high) <= level / 2
    )
    return passed


def _binomial(count: np.ndarray, trials: np.ndarray, probability: float) -> Floats:
    from scipy.special import gammaln, xlog1py, xlogy

    possible = count <= trials
    missed = np.where(possible, trials - count, 0)
    ways = gammaln(trials + 1) - gammaln(count + 1) - gammaln(missed + 1)
    chance: Floats = np.where(
        possible, np.exp(ways + xlogy(count, probability) + xlog1py(missed, -probability)), 0.0
    )
    return chance


def _is_within(run: tuple[Ranks, ...]) -> bool:
    level = level_of(len(run))
    return all(
        bool(_has_passed(np.array(ranks.covered(mass)), ranks.simulations, mass, level))
        for ranks in run
        for mass in LEFT_OUT
    )


def _is_outside(run: tuple[Ranks, ...]) -> bool:
    """Tell whether a coverage is outside of its tolerance for sure."""
    level = level_of(len(run))
    return any(
        low > mass + TOLERANCE[mass] or high < mass - TOLERANCE[mass]
        for ranks in run
        for mass in LEFT_OUT
        for low, high in (ranks.coverage_interval(mass, level),)
    )


def _is_lopsided(run: tuple[Ranks, ...]) -> bool:
    """Tell whether more truths are seen on one side of an interval than its tolerance allows for.

    A posterior that is shifted can cover well and still be wrong on either side.
    """
    level = FALSE_ALARM / (2 * len(run) * len(LEFT_OUT))
    return any(
        at_least(np.array(beyond), ranks.simulations, (1.0 - mass) / 2 + TOLERANCE[mass]) <= level
        for ranks in run
        for mass in LEFT_OUT
        for beyond in ranks.beyond(mass)
    )


def _adjusted(run: tuple[Ranks, ...]) -> list[tuple[float, Ranks, float | None]]:
    """Return p-values that hold for all tests together, with their parameter, and mass if of a coverage."""
    tests = _TESTS * len(run)
    coverages = [(tests * ranks.coverage_p_value(mass), ranks, mass) for ranks in run for mass in LEFT_OUT]
    if run[0].simulations < LEAST_FOR_RANKS:
        return [*coverages]
    return [*coverages, *((tests * ranks.rank_p_value, ranks, None) for ranks in run)]


def _order(test: tuple[float, Ranks, float | None]) -> tuple[bool, float, float, float]:
    """Coverages first, then the least p-value; where several are 0, the widest and worst interval."""
    p_value, ranks, mass = test
    return mass is None, p_value, -(mass or 0.0), ranks.coverage(mass) if mass else 0.0


def _worst(run: tuple[Ranks, ...]) -> str:
    """Say which coverage is furthest off, or whose ranks are uneven where no coverage is rejected."""
    rejected = [test for test in _adjusted(run) if test[0] <= FALSE_ALARM]
    _, ranks, mass = min(rejected, key=_order)
    if mass is None:
        return f"the ranks of {ranks.name} are uneven"
    low, high = ranks.coverage_interval(mass, level_of(len(run)))
    return (
        f"{100 * mass:.0f} % intervals of {ranks.name} cover {100 * ranks.coverage(mass):.1f} % "
        f"({100 * low:.1f} to {100 * high:.1f})"
    )


def _settling(run: tuple[Ranks, ...]) -> int:
    """Return about how many simulations put every coverage on one side of its tolerance's edge for sure."""
    from scipy.special import ndtri

    errors = float(ndtri(1.0 - level_of(len(run)) / 2))
    needed = run[0].simulations + 1.0
    for ranks in run:
        for mass, tolerance in TOLERANCE.items():
            coverage = ranks.coverage(mass)
            room = max(abs(tolerance - abs(coverage - mass)), _LEAST_ROOM)
            needed = max(needed, coverage * (1.0 - coverage) * (errors / room) ** 2)
    return int(np.ceil(needed / 100)) * 100
