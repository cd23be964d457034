"""The audit's own process: reads a spec from its standard input, writes its result to a file.

It is started by :func:`suffice.auditing.audit.audit`, with none of the caller's settings. Beside the levels
it compares all that a release shows: of neighbours every byte is the same, the status first.
"""

from __future__ import annotations

import itertools
import json
import pickle
import sys
import time
import warnings
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.auditing import hostile_rows, implied_columns, scratch_sources
from suffice.auditing.audit import LEVELS, AuditRequest, Flaw, Level, MutantResult
from suffice.auditing.levels import BLACK_BOX, DRAWS, EXACT, NOISE, RUNS, try_black_box, try_chains, try_noise
from suffice.auditing.mutants import mutants_of
from suffice.auditing.running import Runner, patched
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.domains import Domain, cell_count, cells_in_words
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
from suffice.releasing import run as release_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from suffice.auditing.mutants import Mutant
    from suffice.auditing.running import ObservedRun
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.column_types import TypeFamily
    from suffice.pipeline.terms.declaration.data_contract import DataContract

    Pair = tuple[str, hostile_rows.DataSet, hostile_rows.DataSet]


APPEARANCE = "appearance"


def pairs(maker: hostile_rows.Maker, n_random: int) -> Iterator[Pair]:
    """Yield pairs of neighbours: any, and those whose files differ in their types or their number."""
    kind, _ = scratch_sources.kind_tried(maker.spec)
    modes = tuple({tuple(each) for each in _modes(kind)})
    for chain in maker.chains(n_random, modes):
        yield from ((second.what, first, second) for first, second in itertools.pairwise(chain))
    replaces = maker.spec.privacy.neighboring is NeighboringRelation.REPLACE_ONE
    row = maker.unit_rows(strong=True, place=0)[0]
    if not replaces:
        if kind in {"parquet", "csv"}:
            yield "a folder without files, beside one record", _of([]), _of([[row]])
        yield "no row, beside one record", _of([[]]), _of([[row]])
    if kind in scratch_sources.LOOSE:
        yield from _loose(maker, row, replaces=replaces)


def _modes(kind: str) -> tuple[tuple[str, ...], ...]:
    return (("spark", "pandas"), ("pandas",)) if kind in scratch_sources.LOOSE else (("spark", "spark"),)


def _loose(maker: hostile_rows.Maker, row: dict[str, Any], *, replaces: bool) -> Iterator[Pair]:
    """Yield files in which one record decides what a column is stored as, or which folders there are."""
    hive = getattr(maker.spec.source, "hive", {})
    seen: set[tuple[TypeFamily, bool]] = set()
    for name, column in maker.schema.items():
        is_unit = name == maker.spec.stored_unit
        if name in hive or (column.family, is_unit) in seen:
            continue
        seen.add((column.family, is_unit))
        others = [maker.good_row(1) for _ in range(3)]
        without, with_value = {**row, name: None}, row
        for writer in (scratch_sources.ALL_NULLS_AS_DOUBLE, scratch_sources.LEAVES_OUT_EMPTY):
            first = [others, [without]]
            second = [others, [with_value] if replaces else [without, with_value]]
            what = f"a {column.family} column without a value ({writer})"
            yield what, _of(first, writer), _of(second, writer)
    if hive and not replaces:
        others = [maker.good_row(1)]
        for name, of in hive.items():
            far = "2013-02-30" if not of.is_made else None
            other = {**row, name: far}
            yield "a folder of one record, that nobody declared", _of([others]), _of([others, [other]])


def _of(files: list[list[dict[str, Any]]], writer: str = "spark") -> hostile_rows.DataSet:
    writers = ("spark", *(writer for _ in files[1:]))
    return hostile_rows.DataSet(
        parts=tuple(
            hostile_rows.WrittenPart(writer=each, rows=tuple(rows))
            for each, rows in zip(writers, files, strict=False)
        )
    )


def compared(what: str, first: ObservedRun, second: ObservedRun) -> Iterator[Flaw]:
    """Compare what two releases of neighbours showed."""
    if first.status != second.status:
        yield Flaw(level=APPEARANCE, check="status", what=f"{what}: exit {first.status} and {second.status}")
        return
    for name, of in (("text", "text"), ("names, sizes and manifest", "shape"), ("ledger", "ledger")):
        if getattr(first, of) != getattr(second, of):
            yield Flaw(level=APPEARANCE, check=name, what=what)
    for seen in (first, second):
        for fault in seen.faults:
            yield Flaw(level=APPEARANCE, check="order of charge and draw", what=fault)


def try_pairs(
    runner: Runner, maker: hostile_rows.Maker, n_random: int, *, first_only: bool
) -> tuple[int, list[Flaw], list[ObservedRun]]:
    """Release pairs of neighbours, and compare all that they show."""
    findings: list[Flaw] = []
    seen: list[ObservedRun] = []
    tried = 0
    before: tuple[hostile_rows.DataSet, ObservedRun] | None = None
    for what, first, second in pairs(maker, n_random):
        known = before[1] if before is not None and before[0] is first else None
        first_release = known or runner.release(first)
        second_release = runner.release(second)
        before = second, second_release
        tried += 1
        findings += compared(what, first_release, second_release)
        if tried == 1 and first_release.status != "0":
            said = first_release.text.strip().splitlines()
            text = said[-1] if said else ""
            findings.append(
                Flaw(level=APPEARANCE, check="a release", what=f"exit {first_release.status}: {text}")
            )
        seen += [each for each in (first_release, second_release) if each.status == "0"]
        if findings and first_only:
            break
    return tried, findings, seen


def try_again(runner: Runner, data: hostile_rows.DataSet) -> list[Flaw]:
    """Release twice: the second time nothing is read, drawn or charged, and nothing stands there anew."""
    first, second = runner.release_twice(data)
    check = "the same release again"
    findings = []
    if first.status != "0" or second.status != "0":
        what = f"exit {first.status} and then {second.status}"
        return [Flaw(level=APPEARANCE, check=check, what=what)]
    same = first.shape == second.shape and all(
        (first.values[name] == second.values[name]).all() for name in first.values
    )
    if not same:
        findings.append(Flaw(level=APPEARANCE, check=check, what="other values stand in the store"))
    if first.ledger != second.ledger:
        findings.append(Flaw(level=APPEARANCE, check=check, what="the ledger has another entry"))
    if second.totals:
        findings.append(Flaw(level=APPEARANCE, check=check, what="noise was drawn again"))
    return findings


def try_failure(runner: Runner, data: hostile_rows.DataSet) -> list[Flaw]:
    """Let a release fail after its draw: its epsilon stays spent."""

    def fail(*_: object) -> None:
        message = "an audit ends this run after its draw"
        raise OSError(message)

    spool_files = vars(release_run)["spool_files"]

    def spooled_and_failed(entry: Any, plan: Any, blocks: Any) -> Any:
        spool_files(entry, plan, blocks)
        fail()

    with patched(release_run, "spool_files", spooled_and_failed):
        seen = runner.release(data)
    if '"abandoned"' not in seen.ledger or '"drawing"' not in seen.ledger or seen.status == "0":
        what = f"exit {seen.status}, and no draw that was spent"
        return [Flaw(level=APPEARANCE, check="a failure after the draw", what=what)]
    return []


MOST_VALUES = 400
"""Values of a release that is audited: domains of groups are cut to that."""

_SAME = (("spark", "spark"),)
_MUTANT_PAIRS = 24
_ALL_PAIRS = 8
"""Pairs of any kind that are released whole; others beside them follow from the spec."""


def reduced(spec: Spec) -> tuple[Spec, str | None]:
    """Return a spec whose release has few values: domains of groups are cut, and nothing else is."""
    plan = compile_plan(spec)
    of_cell = sum(statistic.n_values for statistic in plan.statistics)
    most = max(2, MOST_VALUES // of_cell)
    cut = spec.model_copy(update={"groups": _cut(spec.groups, most)})
    statistics = {
        name: cut.bound(statistic.model_copy(update={"groups": _cut(spec.groups_of(statistic), most)}))
        for name, statistic in spec.statistics.items()
    }
    cut = cut.model_copy(update={"statistics": statistics})
    if cut.all_groups == spec.all_groups:
        return spec, None
    left, before = (cells_in_words(each.all_groups) for each in (cut, spec))
    return cut, f"{left} instead of {before}, the first keys of each group; one code serves all"


def _cut(groups: Mapping[str, Domain], most: int) -> dict[str, Domain]:
    """Return the first keys of groups, so many that there are about as few cells as stated."""
    groups = dict(groups)
    cells = cell_count(groups)
    while cells > most and any(len(domain) > 1 for domain in groups.values()):
        name = max(groups, key=lambda each: len(groups[each]))
        domain = groups[name]
        kept = max(1, min(len(domain) - 1, len(domain) * most // cells))
        groups[name] = Domain(
            kind=domain.kind, keys=domain.keys[:kept], every=domain.every, time_zone=domain.time_zone
        )
        cells = cells // len(domain) * kept
    return groups


class Auditor:
    """Carries one request out."""

    def __init__(self, request: AuditRequest, runner: Runner) -> None:
        self._request = request
        self._runner = runner
        self._kind, _ = scratch_sources.kind_tried(request.spec)
        self._modes = hostile_rows.MODES if self._kind in scratch_sources.LOOSE else _SAME
        self._tried = LEVELS[: LEVELS.index(request.level) + 1]

    def _maker(self) -> hostile_rows.Maker:
        """Return what makes the rows; the same rows each time, so that only the mutant differs."""
        rng = np.random.default_rng(self._request.seed)
        return hostile_rows.Maker(spec=self._runner.spec, schema=self._runner.schema, rng=rng)

    def levels(self) -> tuple[list[Level], list[Flaw]]:
        """Try every level on the product as it is."""
        runner, request = self._runner, self._request
        exact = try_chains(runner, self._maker().chains(request.pairs, self._modes), first_only=False)
        levels = [
            Level(
                name=EXACT,
                trials=exact.pairs,
                of="pairs of neighbours",
                largest=f"{float(exact.largest):.6g}",
            )
        ]
        findings = list(exact.findings)
        self.strongest = exact.strongest
        tried, violations, released = try_pairs(runner, self._maker(), _ALL_PAIRS, first_only=False)
        findings += violations
        findings += self._account()
        levels.append(Level(name=APPEARANCE, trials=tried, of="pairs of whole releases"))
        if "noise" in self._tried:
            noise = try_noise(runner, released, draws=DRAWS, first_only=False)
            levels.append(Level(name=NOISE, trials=noise.draws, of="draws", power=noise.power))
            findings += noise.findings
        else:
            levels.append(Level(name=NOISE, trials=0, of="draws", said="not asked for"))
        if "black-box" in self._tried:
            level, violations = try_black_box(runner, exact.strongest, runs=RUNS)
            levels.append(level)
            findings += violations
        else:
            levels.append(Level(name=BLACK_BOX, trials=0, of="runs", said="not asked for"))
        return levels, list(dict.fromkeys(findings))

    def _all_mutants(self) -> list[Mutant]:
        return list(mutants_of(self._runner.plan(), loose=self._kind in scratch_sources.LOOSE))

    def _is_reached(self, mutant: Mutant) -> bool:
        return mutant.level in {EXACT, APPEARANCE, "again", *self._tried}

    def left_out(self, n_tried: int, seconds: float) -> Iterator[str]:
        """Say which mutants were not tried, where only so many were, and why."""
        reached = [self._is_reached(mutant) for mutant in self._all_mutants()]
        if late := sum(reached) - n_tried:
            yield f"{late} further mutants: none is begun after {seconds:g} seconds (--seconds)"
        if beyond := len(reached) - sum(reached):
            yield f"{beyond} further mutants: the levels that were tried do not look for them (--level)"

    def mutants(self, known: list[Flaw], deadline: float) -> Iterator[MutantResult]:
        """Apply every mutant that makes a difference, until time is up, and see what catches it."""
        for mutant in self._all_mutants():
            if not self._is_reached(mutant):
                continue
            if time.monotonic() > deadline:
                return
            with mutant.apply():
                caught = next((each for each in self._looked(mutant) if each not in known), None)
            yield MutantResult(
                name=mutant.name, caught_by=None if caught is None else f"{caught.level}: {caught.check}"
            )

    def _looked(self, mutant: Mutant) -> Iterator[Flaw]:
        """Try the same levels with fewer trials, first the one that should see it."""
        levels = {
            EXACT: self._exact_again,
            NOISE: self._noise_again,
            APPEARANCE: self._pairs_again,
            "again": self._account,
        }
        for level in (mutant.level, *(each for each in levels if each != mutant.level)):
            if level == NOISE and "noise" not in self._tried:
                continue
            yield from levels[level]()

    def _exact_again(self) -> list[Flaw]:
        chains = self._maker().chains(_MUTANT_PAIRS, self._modes)
        return try_chains(self._runner, chains, first_only=True).findings

    def _noise_again(self) -> list[Flaw]:
        return list(try_noise(self._runner, [], draws=DRAWS, first_only=True).findings)

    def _pairs_again(self) -> list[Flaw]:
        return try_pairs(self._runner, self._maker(), _ALL_PAIRS, first_only=True)[1]

    def _account(self) -> list[Flaw]:
        data = next(self._maker().chains(1, self._modes))[0]
        return [*try_again(self._runner, data), *try_failure(self._runner, data)]


def carry_out(request: AuditRequest, directory: Path) -> dict[str, Any]:
    """Audit in an empty directory, and return the result's parts."""
    start = time.monotonic()
    _, said = scratch_sources.kind_tried(request.spec)
    spec, cut = reduced(request.spec)
    contract: DataContract | None = request.contract
    not_tried = [
        each for each in (said, scratch_sources.bucket_not_tried(request.spec), cut) if each is not None
    ]
    if spec.expect is not None:
        spec = spec.model_copy(update={"expect": None})
        not_tried.append("the count before a window (expect), which is a release of its own like any other")
    unit = spec.privacy.column_unit
    if unit is not None and unit.max_rows > hostile_rows.MOST_ROWS:
        not_tried.append(
            f"units of more than {hostile_rows.MOST_ROWS} rows: whether {unit.max_rows} are cut was not tried"
        )
    with ExitStack() as stack:
        stack.enter_context(scratch_sources.ScratchDatabase())
        cluster = stack.enter_context(open_cluster_for_sums(request.cluster))
        runner = Runner(
            spec=spec,
            window=hostile_rows.window_of(spec),
            schema=implied_columns.implied_schema(spec, contract),
            directory=directory,
            cluster=cluster,
            address=request.cluster,
            contract=None if contract is None else scratch_sources.contract_as_tried(contract, spec),
        )
        stack.enter_context(runner.watching())
        runner.prepare()
        auditor = Auditor(request, runner)
        levels, findings = auditor.levels()
        mutants = list(auditor.mutants(findings, start + request.seconds)) if request.mutants else []
        if request.mutants:
            not_tried += auditor.left_out(len(mutants), request.seconds)
    return {
        "window": runner.window,
        "source": scratch_sources.kind_tried(request.spec)[0],
        "levels": [asdict(level) for level in levels],
        "findings": [asdict(each) for each in findings],
        "mutants": [asdict(each) for each in mutants],
        "not_tried": not_tried,
        "seconds": time.monotonic() - start,
        "passes": runner.passes,
        "releases": runner.releases,
        "cpu": time.process_time(),
    }


def main() -> None:
    """Read a request, carry it out, write the result where the caller said."""
    warnings.simplefilter("ignore")  # of exact passes; what releases say is heard
    request = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    place = Path(sys.argv[1])
    (place.parent / "runs").mkdir()
    result = carry_out(request, place.parent / "runs")
    place.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
