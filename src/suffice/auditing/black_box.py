"""The black box: what outputs of neighbours alone say of epsilon, from below, with a stated chance to err."""

from __future__ import annotations

import math
from contextlib import closing
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from suffice.auditing.result import Flaw, Level
from suffice.auditing.running import added_to
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Table, combine
from suffice.pipeline.rows.mechanism import mechanism

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.auditing.hostile_rows import DataSet
    from suffice.auditing.running import Runner, Totals
    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.spec.plan import Plan

BLACK_BOX = "black box"
LEAST_EPSILON = Fraction(1, 10)
RUNS = 2000
"""Of each of two neighbours; half of them choose the event, the others count it."""

FALSE_ALARM = 1e-7


def try_black_box(
    runner: Runner, pair: tuple[DataSet, DataSet] | None, *, runs: int = RUNS
) -> tuple[Level, list[Flaw]]:
    """Bound epsilon from below by an event whose chance differs most between two neighbours."""
    plan = runner.plan()
    if plan.epsilon < LEAST_EPSILON or pair is None:
        said = f"epsilon is below {LEAST_EPSILON}" if pair else "no pair of neighbours differs in its sums"
        return Level(name=BLACK_BOX, trials=0, of="runs", said=said), []
    sums = [runner.sums(data) for data in pair]
    first, second = (added_to(combine([each]), runner.spec, plan) for each in sums)
    scores = [_scores(_drawn(runner, plan, each, runs), first, second, plan, runs) for each in sums]
    bound = max(_bound(scores[0], scores[1]), _bound(-scores[1], -scores[0]))
    ratio = bound / float(plan.epsilon)
    level = Level(name=BLACK_BOX, trials=2 * runs, of="runs", largest=f"{max(ratio, 0.0):.3f}")
    if bound > plan.epsilon:
        what = f"outputs of neighbours show a loss of {ratio:.3g} times the declared epsilon"
        return level, [Flaw(level=BLACK_BOX, check="a bound from below", what=what)]
    return level, []


def _drawn(runner: Runner, plan: Plan, sums: Sums, runs: int) -> Totals:
    """Have the mechanism draw for so many copies of the sums of a data set, side by side."""
    copies = {
        name: Table(
            low=np.tile(table.low, (runs, 1)),
            high=None if table.high is None else np.tile(table.high, (runs, 1)),
        )
        for name, table in sums.items()
    }
    drawn: dict[str, list[NDArray[Any]]] = {}
    with closing(mechanism.privatize(ExactTotals(copies), runner.spec, plan)) as blocks:
        for name, block in blocks:
            drawn.setdefault(name, []).append(np.asarray(block).astype(object))
    return {name: np.concatenate(blocks) for name, blocks in drawn.items()}


def _scores(drawn: Totals, first: Totals, second: Totals, plan: Plan, runs: int) -> NDArray[np.float64]:
    """Return how much likelier each release is of the first data set than of the second, in nats."""
    scores = np.zeros(runs)
    for statistic in plan.statistics:
        s, t = first[statistic.name], second[statistic.name]
        values = drawn[statistic.name].reshape(runs, len(s), -1)
        if statistic.sample is None:
            change = (abs(values - t) - abs(values - s)).sum(axis=(1, 2))
            scores += np.array([float(Fraction(int(each)) / Fraction(statistic.scale)) for each in change])
            continue
        for cell in range(len(s)):
            first_logits, second_logits = (
                each[cell].astype(float) / statistic.sample.scale for each in (s, t)
            )
            ratios = (first_logits - special.logsumexp(first_logits)) - (
                second_logits - special.logsumexp(second_logits)
            )
            scores += ratios[values[:, cell].astype(int)].sum(axis=1)
    return scores


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
    above_first, above_second = int((first >= least).sum()), int((second >= least).sum())
    low = float(special.betaincinv(above_first, n - above_first + 1, alarm)) if above_first else 0.0
    high = (
        float(special.betaincinv(above_second + 1, n - above_second, 1 - alarm)) if above_second < n else 1.0
    )
    return math.log(low / high) if low > 0 else -math.inf
