r"""The noise level: the exact law of the sum of absolute draws, their signs, and draws that are alike.

With :math:`q = e^{-1/b}` a draw's magnitude is 0, or with chance :math:`2q / (1 + q)` one more than a
geometric number. So the sum of N of them is, for a binomial J, J more than a negative binomial number of J
successes: its distribution function is a sum over J of regularised incomplete beta functions, at any scale.
"""

from __future__ import annotations

import dataclasses
import math
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from suffice.auditing.result import Flaw
from suffice.auditing.running import added_to
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, zeros
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.mechanism import mechanism

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.auditing.running import ObservedRun, Runner
    from suffice.pipeline.spec.plan import Plan

NOISE = "noise"
DRAWS = 2000
FIRST_DRAWS = 250
"""What is looked at first: most of what is wrong shows there."""

LARGE = 1e5
"""Scales from which on a gamma law stands for the negative binomial one."""

FALSE_ALARM = 5e-7
"""Chance that right noise of all statistics fails any of these tests."""

_TESTS = 8
"""Of a statistic: scale on two sides, signs on two, ties within runs and between them, at two sizes each."""


def log_binomial(n: int, k: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """Return the log probabilities of a binomial number."""
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(ways + special.xlogy(k, p) + special.xlog1py(n - k, -p))


def tails(total: int, size: int, scale: float) -> tuple[float, float]:
    """Return P(S <= total) and P(S >= total) of the sum of `size` magnitudes, exactly but for rounding."""
    q = math.exp(-1 / scale)
    j = np.arange(size + 1, dtype=float)
    weight = np.exp(log_binomial(size, j, 2 * q / (1 + q)))
    lower = float((weight * np.where(j == 0, float(total >= 0), _waits(total - j, j, scale)[0])).sum())
    upper = float((weight * np.where(j == 0, float(total <= 0), _waits(total - 1 - j, j, scale)[1])).sum())
    return lower, upper


def _waits(
    most: NDArray[np.float64], j: NDArray[np.float64], scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the chances that a negative binomial number of j successes is at most `most`, and above it.

    At scales from `LARGE` on the incomplete beta function is an incomplete gamma function, but for a share of
    about 1 over the square of the number of trials.
    """
    rest, successes = np.maximum(most, 0), np.maximum(j, 1)
    if scale >= LARGE:
        place = (rest + 1 + (successes - 1) / 2) / scale
        below, above = special.gammainc(successes, place), special.gammaincc(successes, place)
    else:
        success = -math.expm1(-1 / scale)
        below = special.betainc(successes, rest + 1, success)
        above = special.betaincc(successes, rest + 1, success)
    # SciPy 1.17's incomplete beta function is not a number at some places of large arguments.
    below, above = np.where(np.isnan(below), 1 - above, below), np.where(np.isnan(above), 1 - below, above)
    return np.where(most >= 0, below, 0.0), np.where(most >= 0, above, 1.0)


def power(scale: float, size: int, factor: float, alarm: float) -> float:
    """Return the chance that a scale `factor` times too small fails a one-sided test at `alarm`."""
    low, high = 0, int(4 * size * max(scale, 1.0)) + 1
    while high - low > 1:  # the largest total whose lower tail is within `alarm`
        middle = (low + high) // 2
        if tails(middle, size, scale)[0] <= alarm:
            low = middle
        else:
            high = middle
    return tails(low, size, scale / factor)[0] if tails(low, size, scale)[0] <= alarm else 0.0


@dataclass(frozen=True, kw_only=True)
class NoiseLevel:
    """What was seen of noise."""

    draws: int
    findings: tuple[Flaw, ...]
    power: float


def one_run(runner: Runner, plan: Plan, size: int) -> dict[str, NDArray[Any]]:
    """Have the mechanism add noise to sums of no rows, and return it, by statistic, flat.

    Each statistic has as many cells as give it `size` draws: the mechanism takes them one like another.
    """
    job = chunk_job(runner.spec, runner.window)
    drawn: dict[str, NDArray[Any]] = {}
    for statistic in plan.statistics:
        n_cells = max(1, -(-size // statistic.n_values))
        sums = zeros({statistic.name: job.measures[statistic.name]}, n_cells)
        alone = dataclasses.replace(plan, statistics=(statistic,))
        with closing(mechanism.privatize(ExactTotals(sums), runner.spec, alone)) as blocks:
            taken = [np.asarray(block).astype(object).ravel() for _, block in blocks]
        drawn[statistic.name] = np.concatenate(taken)
    return drawn


def try_noise(runner: Runner, released: list[ObservedRun], *, draws: int, first_only: bool) -> NoiseLevel:
    """Draw through the mechanism until every statistic has enough draws, and test them.

    Parameters
    ----------
    runner : Runner
    released : list of Observed
        Whole releases, whose noise is looked at beside.
    draws : int
        Of each statistic.
    first_only : bool
        Stop at the first finding.
    """
    plan = runner.plan()
    job = chunk_job(runner.spec, runner.window)
    base = added_to(zeros(job.measures, 1), runner.spec, plan)
    runs: dict[str, list[NDArray[Any]]] = {statistic.name: [] for statistic in plan.statistics}
    for seen in released:
        for name, noise in _published_noise(seen, plan).items():
            runs[name].append(noise)
    findings: list[Flaw] = []
    alarm = FALSE_ALARM / (_TESTS * max(1, len(plan.statistics)))
    total = 0
    for size in (min(FIRST_DRAWS, draws), draws):
        for _ in range(2):
            for name, noise in one_run(runner, plan, -(-size // 2)).items():
                runs[name].append(noise)
        for statistic in plan.statistics:
            if statistic.sample is None:
                findings += _tested(statistic, runs[statistic.name], alarm)
            else:
                findings += _tested_sample(base[statistic.name][0], statistic, runs[statistic.name], alarm)
        total = sum(sum(map(len, each)) for each in runs.values())
        if findings and first_only:
            break
    scales = [statistic.scale for statistic in plan.statistics if statistic.sample is None]
    least = min((power(scale, draws, 1.25, alarm / 2) for scale in set(scales)), default=0.0)
    return NoiseLevel(draws=total, findings=tuple(findings), power=least)


def _published_noise(seen: ObservedRun, plan: Plan) -> dict[str, NDArray[Any]]:
    """Return what was added to exact totals, of the values that a whole release published."""
    return {
        statistic.name: seen.values[statistic.name] - seen.totals[statistic.name].ravel()
        for statistic in plan.statistics
        if statistic.sample is None and len(seen.values[statistic.name]) == seen.totals[statistic.name].size
    }


def _tested(statistic: Any, runs: list[NDArray[Any]], alarm: float) -> Iterator[Flaw]:
    name, scale = statistic.name, statistic.scale
    noise = np.concatenate(runs)
    magnitudes = int(sum(abs(int(each)) for each in noise))
    below, above = tails(magnitudes, len(noise), scale)
    if 2 * min(below, above) < alarm:
        side = "smaller" if below < above else "larger"
        yield Flaw(level=NOISE, check="sum of absolute draws", what=f"{name}: noise is {side} than declared")
    signs = [int(np.sign(each)) for each in noise if each]
    if signs:
        positive = sum(sign > 0 for sign in signs)
        chance = 2 * float(special.bdtr(min(positive, len(signs) - positive), len(signs), 0.5))
        if chance < alarm:
            yield Flaw(level=NOISE, check="signs of draws", what=f"{name}: one sign is drawn too often")
    q = math.exp(-1 / scale)
    alike = math.tanh(0.5 / scale) ** 2 * (1 + q * q) / max(-math.expm1(-2 / scale), 1e-300)
    within = [(run[i], run[i + 1]) for run in runs for i in range(0, len(run) - 1, 2)]
    between = [pair for i in range(0, len(runs) - 1, 2) for pair in zip(runs[i], runs[i + 1], strict=False)]
    for where, pairs in (("one release", within), ("two releases", between)):
        equal = sum(first == second for first, second in pairs)
        if pairs and equal and float(special.bdtrc(equal - 1, len(pairs), min(alike, 1.0))) < alarm:
            yield Flaw(level=NOISE, check=f"draws of {where}", what=f"{name}: too many are alike")


def _tested_sample(
    scores: NDArray[Any], statistic: Any, runs: list[NDArray[Any]], alarm: float
) -> Iterator[Flaw]:
    """Count draws among the likelier half of a grid: a binomial number, and draws of two releases alike."""
    exponents = scores.astype(float) / statistic.sample.scale
    chances = np.exp(exponents - exponents.max())
    chances /= chances.sum()
    order = np.argsort(-chances)
    likely = order[: max(1, int(np.searchsorted(np.cumsum(chances[order]), 0.5)))]
    mass = float(chances[likely].sum())
    drawn = np.concatenate(runs).astype(int)
    inside = int(np.isin(drawn, likely).sum())
    low = float(special.bdtr(inside, len(drawn), mass))
    high = float(special.bdtrc(inside - 1, len(drawn), mass)) if inside else 1.0
    if 2 * min(low, high) < alarm:
        what = f"{statistic.name}: draws are not those of the exponential mechanism"
        yield Flaw(level=NOISE, check="draws of a sample", what=what)
    alike = float((chances**2).sum())
    pairs = [pair for i in range(0, len(runs) - 1, 2) for pair in zip(runs[i], runs[i + 1], strict=False)]
    within = [(run[i], run[i + 1]) for run in runs for i in range(0, statistic.sample.draws - 1, 2)]
    for where, each in (("two releases", pairs), ("one release", within)):
        equal = sum(int(a) == int(b) for a, b in each)
        if each and equal and float(special.bdtrc(equal - 1, len(each), min(alike, 1.0))) < alarm:
            yield Flaw(level=NOISE, check=f"draws of {where}", what=f"{statistic.name}: too many are alike")
