r"""The levels of an audit: exact sums, the law of the noise, and what outputs alone say of the loss.

The exact level: the joint loss of neighbours over all statistics, in fractions, beside the declared, in the
measure of the plan.

The noise level: the exact law of the sum of absolute draws, their signs, and draws that are alike. With
:math:`q = e^{-1/b}` a draw's magnitude is 0, or with chance :math:`2q / (1 + q)` one more than a geometric
number. So the sum of N of them is, for a binomial J, J more than a negative binomial number of J successes:
its distribution function is a sum over J of regularised incomplete beta functions, at any scale.

The black box: a bound from below, by outputs of neighbours, with a stated chance to err.
"""

from __future__ import annotations

import dataclasses
import math
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from suffice.auditing import on_cones
from suffice.auditing.audit import Flaw, Level
from suffice.auditing.running import added_to
from suffice.auditing.scratch_sources import rows_as_stored
from suffice.auditing.second_reading import allowed
from suffice.errors import SufficeError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Table, combine, zeros
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.mechanism import mechanism
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from suffice.auditing.hostile_rows import DataSet
    from suffice.auditing.running import ObservedRun, Runner, Totals
    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

BLACK_BOX = "black box"
LEAST_EPSILON = Fraction(1, 10)
RUNS = 2000
"""Of each of two neighbours; half of them choose the event, the others count it."""

BLACK_BOX_FALSE_ALARM = 1e-7


def try_black_box(
    runner: Runner, pair: tuple[DataSet, DataSet] | None, *, runs: int = RUNS
) -> tuple[Level, list[Flaw]]:
    """Bound the loss from below by an event whose chance differs most between two neighbours."""
    plan = runner.plan()
    measure = plan.loss.measure
    least = LEAST_EPSILON if measure is PrivacyMeasure.EPSILON else LEAST_EPSILON**2 / 2
    if plan.loss.amount < least or pair is None:
        said = f"{measure} is below {least}" if pair else "no pair of neighbours differs in its sums"
        return Level(name=BLACK_BOX, trials=0, of="runs", said=said), []
    sums = [runner.sums(data) for data in pair]
    first, second = (added_to(combine([each]), runner.spec, plan) for each in sums)
    scores = [_scores(_drawn(runner, plan, each, runs), first, second, plan, runs) for each in sums]
    bound = max(_bound(scores[0], scores[1], measure), _bound(-scores[1], -scores[0], measure))
    ratio = bound / float(plan.loss.amount)
    level = Level(name=BLACK_BOX, trials=2 * runs, of="runs", largest=f"{max(ratio, 0.0):.3f}")
    if bound > plan.loss.amount:
        what = f"outputs of neighbours show a loss of {ratio:.3g} times the declared {measure}"
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
        if statistic.cone is not None:  # any score will do: an event of it is what counts
            change = (abs(values - t) - abs(values - s)).sum(axis=(1, 2))
            unit = Fraction(statistic.cone.steps) ** 2 / statistic.cone.rate
            scores += np.array([float(Fraction(int(each)) / unit) for each in change])
            continue
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


def _bound(first: NDArray[np.float64], second: NDArray[np.float64], measure: PrivacyMeasure) -> float:
    """Return what is below the loss by the chances of an event, but for a false alarm."""
    half = len(first) // 2
    candidates = np.unique(
        np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0, 0.95, 20))
    )
    best = max(candidates, key=lambda least: _shown(first[:half], second[:half], least, measure))
    return _shown(first[half:], second[half:], best, measure)


def _shown(
    first: NDArray[np.float64], second: NDArray[np.float64], least: float, measure: PrivacyMeasure
) -> float:
    """Clopper and Pearson's bounds, the chance to err divided among both and two directions."""
    alarm = BLACK_BOX_FALSE_ALARM / 4
    n = len(first)
    above_first, above_second = int((first >= least).sum()), int((second >= least).sum())
    low = float(special.betaincinv(above_first, n - above_first + 1, alarm)) if above_first else 0.0
    high = (
        float(special.betaincinv(above_second + 1, n - above_second, 1 - alarm)) if above_second < n else 1.0
    )
    if measure is PrivacyMeasure.RHO:
        return rho_of_event(low, high)
    return math.log(low / high) if low > 0 else -math.inf


_ORDERS = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)


def rho_of_event(low: float, high: float) -> float:
    r"""Return what rho is at least, where an event has chances of at least `low` and of at most `high`.

    .. math:: \max_\alpha \frac{\log(p^\alpha q^{1 - \alpha} + (1 - p)^\alpha (1 - q)^{1 - \alpha})}
              {\alpha (\alpha - 1)}

    the Renyi divergence of the event, which is no more than that of the releases, and which grows in p and
    falls in q where p is above q.
    """
    if not low > 0 or high >= low:
        return 0.0
    return max(
        math.log(low**order * high ** (1 - order) + (1 - low) ** order * (1 - high) ** (1 - order))
        / (order * (order - 1))
        for order in _ORDERS
    )


EXACT = "exact"


@dataclass(kw_only=True)
class ExactLevel:
    """What was seen so far.

    Attributes
    ----------
    pairs : int
    largest : Fraction
        The largest joint loss over the declared one.
    findings : list of Finding
    strongest : tuple of two data sets or None
        The pair that has it.
    spread : int
        In how many totals that pair differs: in few, outputs tell most.
    refused : str
        How the last pair ended of which neither was read; it is no trial.
    """

    pairs: int
    largest: Fraction
    findings: list[Flaw]
    strongest: tuple[DataSet, DataSet] | None
    spread: int = 0
    refused: str = ""


def joint_loss(first: Totals, second: Totals, plan: Plan) -> Fraction:
    r"""Return the joint loss of two data sets, exactly.

    .. math:: \sum_j \lVert S_j - S'_j \rVert_1 / b_j, \qquad \sum_j \lVert S_j - S'_j \rVert_2^2 / 2 b_j^2

    in epsilon or in rho; and of samples, for each draw in each cell, the range of the change of scores over
    their scale, or an eighth of its square. On a cone it is what the change costs at least.
    """
    in_rho = plan.loss.measure is PrivacyMeasure.RHO
    loss = Fraction(0)
    for statistic in plan.statistics:
        change = second[statistic.name] - first[statistic.name]
        if statistic.sample is not None:
            draws, scale = statistic.sample.draws, statistic.sample.scale
            ranges = [int(cell.max()) - int(cell.min()) for cell in change]
            squares = sum(each**2 for each in ranges)
            loss += (
                Fraction(draws * squares, 8 * scale**2) if in_rho else Fraction(draws * sum(ranges), scale)
            )
        elif statistic.cone is not None:
            loss += on_cones.least_loss(change, statistic.cone)
        elif in_rho:
            loss += Fraction(int((change.astype(object) ** 2).sum())) / (2 * Fraction(statistic.scale) ** 2)
        else:
            loss += Fraction(int(abs(change).sum())) / Fraction(statistic.scale)
    return loss


def try_chains(runner: Runner, chains: Iterable[list[DataSet]], *, first_only: bool) -> ExactLevel:
    """Sum chains of neighbours, and compare each with the next.

    Parameters
    ----------
    runner : Runner
    chains : iterable of list of DataSet
    first_only : bool
        Stop at the first finding.
    """
    plan = runner.plan()
    seen = ExactLevel(pairs=0, largest=Fraction(0), findings=[], strongest=None)
    for chain in chains:
        before: tuple[DataSet, Totals | str] | None = None
        for data in chain:
            now: Totals | str
            try:
                now = runner.totals(data)
            except SufficeError as error:
                now = f"exit {error.exit_status}, {type(error).__name__}"
            except Exception as error:  # noqa: BLE001 - a mutant may raise anything
                now = f"exit 1, {type(error).__name__}"
            if not isinstance(now, str):
                _check_cells(runner, data, now, plan, seen)
            if before is not None:
                _compare(before, (data, now), plan, seen)
            if seen.findings and first_only:
                return seen
            before = data, now
    if not seen.pairs and seen.refused:
        seen.findings.append(Flaw(level=EXACT, check="reading", what=f"no data set: {seen.refused}"))
    return seen


def _compare(
    first: tuple[DataSet, Totals | str], second: tuple[DataSet, Totals | str], plan: Plan, seen: ExactLevel
) -> None:
    if isinstance(first[1], str) and first[1] == second[1]:
        seen.refused = first[1]
        return
    seen.pairs += 1
    if isinstance(first[1], str) or isinstance(second[1], str):
        ends = [each[1] if isinstance(each[1], str) else "exit 0" for each in (first, second)]
        what = f"{second[0].what}: {' beside '.join(ends)}"
        seen.findings.append(Flaw(level=EXACT, check="status of neighbours", what=what))
        return
    ratio = joint_loss(first[1], second[1], plan) / plan.loss.amount
    spread = sum(int((second[1][name] != first[1][name]).sum()) for name in first[1])
    if (ratio, -spread) > (seen.largest, -seen.spread):
        seen.largest, seen.spread, seen.strongest = ratio, spread, (first[0], second[0])
    if ratio > 1:
        writers = ", ".join(part.writer for part in second[0].parts)
        what = (
            f"{second[0].what}, files by {writers}: {float(ratio):.4g} times the declared {plan.loss.measure}"
        )
        seen.findings.append(Flaw(level=EXACT, check="joint loss of neighbours", what=what))


def _check_cells(runner: Runner, data: DataSet, totals: Totals, plan: Plan, seen: ExactLevel) -> None:
    """Compare totals with the rows that a second reading of units and cells lets in."""
    rows = rows_as_stored(runner.spec, runner.schema, data)
    for statistic in plan.statistics:
        if statistic.sample is not None or plan.n_is_public:
            continue
        expected = allowed(runner.spec, statistic.groups, rows, runner.window)
        sums: Any = totals[statistic.name]
        for cell in range(len(sums)):
            if cell not in expected.cells and any(sums[cell]):
                what = f"{statistic.name} has records in a cell without any"
                seen.findings.append(Flaw(level=EXACT, check="cells read a second time", what=what))
                return
        total = statistic.partition_total
        if total is None or not _counts_rows(statistic):
            continue
        for cell, most in expected.cells.items():
            if int(sums[cell].sum()) > total * most:
                what = f"{statistic.name} has more than the {most} records that may enter a cell"
                seen.findings.append(Flaw(level=EXACT, check="cells read a second time", what=what))
                return
        if int(sums.sum()) > total * expected.whole:
            what = f"{statistic.name} has more than the {expected.whole} records that units may keep"
            seen.findings.append(Flaw(level=EXACT, check="units read a second time", what=what))
            return


def _counts_rows(statistic: StatisticPlan) -> bool:
    """Tell whether what a record adds over all components is the same for every one that enters."""
    return (
        statistic.within_unit is None
        and statistic.counted is None
        and FAMILIES[statistic.family].of_whole_units is None
    )


NOISE = "noise"
DRAWS = 2000
FIRST_DRAWS = 250
"""What is looked at first: most of what is wrong shows there."""

LARGE = 1e5
"""Scales from which on a gamma law stands for the negative binomial one."""

NOISE_FALSE_ALARM = 5e-7
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
        # On a cone those of a cell depend on each other, so that cells are counted.
        n_cells = size if statistic.cone is not None else max(1, -(-size // statistic.n_values))
        sums = zeros({statistic.name: job.measures[statistic.name]}, {statistic.name: n_cells})
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
    base = added_to(zeros(job.measures, dict.fromkeys(job.measures, 1)), runner.spec, plan)
    runs: dict[str, list[NDArray[Any]]] = {statistic.name: [] for statistic in plan.statistics}
    for seen in released:
        for name, noise in _published_noise(seen, plan).items():
            runs[name].append(noise)
    findings: list[Flaw] = []
    alarm = NOISE_FALSE_ALARM / (_TESTS * max(1, len(plan.statistics)))
    total = 0
    for size in (min(FIRST_DRAWS, draws), draws):
        for _ in range(2):
            for name, noise in one_run(runner, plan, -(-size // 2)).items():
                runs[name].append(noise)
        for statistic in plan.statistics:
            if statistic.cone is not None:
                findings += [
                    Flaw(level=NOISE, check="draws on a cone", what=f"{statistic.name}: {what}")
                    for what in on_cones.flaws_of(statistic, runs[statistic.name], alarm)
                ]
            elif statistic.sample is None:
                findings += _tested(statistic, runs[statistic.name], alarm)
            else:
                findings += _tested_sample(base[statistic.name][0], statistic, runs[statistic.name], alarm)
        total = sum(sum(map(len, each)) for each in runs.values())
        if findings and first_only:
            break
    noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
    scales = {statistic.scale for statistic in noisy if statistic.cone is None}
    powers = [power(scale, draws, 1.25, alarm / 2) for scale in scales]
    powers += [on_cones.power(each.cone, draws, 1.25, alarm) for each in noisy if each.cone is not None]
    least = min(powers, default=0.0)
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
