"""The black box: what outputs of neighbours alone say of epsilon, from below, with a stated chance to err."""

from __future__ import annotations

import math
from contextlib import closing
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from suffice.auditing.result import Finding, Level
from suffice.pipeline.chunk.exact_sums import combine
from suffice.pipeline.chunk.exact_totals import ExactTotals
from suffice.pipeline.mechanism import mechanism

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.auditing.hostile_rows import DataSet
    from suffice.auditing.running import Runner, Totals
    from suffice.pipeline.chunk.exact_sums import Sums
    from suffice.pipeline.spec.plan import Plan

BLACK_BOX = "black box"
LEAST_EPSILON = Fraction(1, 10)
RUNS = 2000
"""Of each of two neighbours; half of them choose the event, the others count it."""

FALSE_ALARM = 1e-7


def try_black_box(
    runner: Runner, pair: tuple[DataSet, DataSet] | None, *, runs: int = RUNS
) -> tuple[Level, list[Finding]]:
    """Bound epsilon from below by an event whose chance differs most between two neighbours."""
    plan = runner.plan()
    if plan.epsilon < LEAST_EPSILON or pair is None:
        said = f"epsilon is below {LEAST_EPSILON}" if pair else "no pair of neighbours differs in its sums"
        return Level(name=BLACK_BOX, trials=0, of="runs", said=said), []
    first, second = (runner.totals(data) for data in pair)
    scores = [
        np.array([_score(_drawn(runner, plan, sums), first, second, plan) for _ in range(runs)])
        for sums in map(runner.sums, pair)
    ]
    bound = max(_bound(scores[0], scores[1]), _bound(-scores[1], -scores[0]))
    ratio = bound / float(plan.epsilon)
    level = Level(name=BLACK_BOX, trials=2 * runs, of="runs", largest=f"{max(ratio, 0.0):.3f}")
    if bound > plan.epsilon:
        what = f"outputs of neighbours show a loss of {ratio:.3g} times the declared epsilon"
        return level, [Finding(level=BLACK_BOX, check="a bound from below", what=what)]
    return level, []


def _drawn(runner: Runner, plan: Plan, sums: Sums) -> Totals:
    """Have the mechanism draw for a copy of the sums of a data set."""
    drawn: dict[str, list[NDArray[Any]]] = {}
    copied = combine([sums])
    with closing(mechanism.privatize(ExactTotals(copied), runner.spec, plan)) as blocks:
        for name, block in blocks:
            drawn.setdefault(name, []).append(np.asarray(block).astype(object))
    return {name: np.concatenate(blocks) for name, blocks in drawn.items()}


def _score(drawn: Totals, first: Totals, second: Totals, plan: Plan) -> float:
    """Return how much likelier a release is of the first data set than of the second, in nats."""
    score = 0.0
    for statistic in plan.statistics:
        y, s, t = drawn[statistic.name], first[statistic.name], second[statistic.name]
        if statistic.sample is None:
            score += float((abs(y - t) - abs(y - s)).sum() / Fraction(statistic.scale))
            continue
        for cell, chosen in enumerate(y.astype(int)):
            one, two = (each[cell].astype(float) / statistic.sample.scale for each in (s, t))
            score += float((one[chosen] - two[chosen]).sum())
            score -= len(chosen) * float(special.logsumexp(one) - special.logsumexp(two))
    return score


def _bound(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return what is below the logarithm of the ratio of the chances of an event, but for a false alarm."""
    half = len(first) // 2
    candidates = np.unique(
        np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0, 0.95, 20))
    )
    best = max(candidates, key=lambda least: _ratio(first[:half], second[:half], least))
    return _ratio(first[half:], second[half:], best)


def _ratio(first: NDArray[np.float64], second: NDArray[np.float64], least: float) -> float:
    """Clopper and Pearson's bounds, the chance to err divided among both and two directions."""
    alarm = FALSE_ALARM / 4
    n = len(first)
    one, two = int((first >= least).sum()), int((second >= least).sum())
    low = float(special.betaincinv(one, n - one + 1, alarm)) if one else 0.0
    high = float(special.betaincinv(two + 1, n - two, 1 - alarm)) if two < n else 1.0
    return math.log(low / high) if low > 0 else -math.inf
