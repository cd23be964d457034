"""The exact level: the joint loss of neighbours over all statistics, in fractions, beside the declared."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.auditing.result import Flaw
from suffice.auditing.scratch_sources import rows_as_stored
from suffice.auditing.second_reading import allowed
from suffice.errors import SufficeError
from suffice.pipeline.families import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suffice.auditing.hostile_rows import DataSet
    from suffice.auditing.running import Runner, Totals
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

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

    .. math:: \sum_j \lVert S_j - S'_j \rVert_1 / b_j

    and of samples the range of the change of scores over their scale, for each draw in each cell.
    """
    loss = Fraction(0)
    for statistic in plan.statistics:
        change = second[statistic.name] - first[statistic.name]
        if statistic.sample is None:
            loss += Fraction(int(abs(change).sum())) / Fraction(statistic.scale)
        else:
            ranges = sum(int(cell.max()) - int(cell.min()) for cell in change)
            loss += Fraction(ranges * statistic.sample.draws, statistic.sample.scale)
    return loss


def try_chains(
    runner: Runner, chains: Iterable[list[DataSet]], *, first_only: bool, level: ExactLevel | None = None
) -> ExactLevel:
    """Sum chains of neighbours, and compare each with the next.

    Parameters
    ----------
    runner : Runner
    chains : iterable of list of DataSet
    first_only : bool
        Stop at the first finding.
    level : ExactLevel, optional
        What was seen before.
    """
    plan = runner.plan()
    seen = level or ExactLevel(pairs=0, largest=Fraction(0), findings=[], strongest=None)
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
    ratio = joint_loss(first[1], second[1], plan) / plan.epsilon
    spread = sum(int((second[1][name] != first[1][name]).sum()) for name in first[1])
    if (ratio, -spread) > (seen.largest, -seen.spread):
        seen.largest, seen.spread, seen.strongest = ratio, spread, (first[0], second[0])
    if ratio > 1:
        writers = ", ".join(part.writer for part in second[0].parts)
        what = f"{second[0].what}, files by {writers}: {float(ratio):.4g} times the declared epsilon"
        seen.findings.append(Flaw(level=EXACT, check="joint loss of neighbours", what=what))


def _check_cells(runner: Runner, data: DataSet, totals: Totals, plan: Plan, seen: ExactLevel) -> None:
    """Compare totals with the rows that a second reading of units and cells lets in."""
    rows = rows_as_stored(runner.spec, runner.schema, data)
    expected = allowed(runner.spec, rows, runner.window)
    for statistic in plan.statistics:
        if statistic.sample is not None or plan.n_is_public:
            continue
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
