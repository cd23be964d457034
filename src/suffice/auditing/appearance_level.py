"""All that a release shows beside its noise: of neighbours every byte is the same, the status first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from suffice.auditing.hostile_rows import DataSet, WrittenPart
from suffice.auditing.result import Flaw
from suffice.auditing.running import patched
from suffice.auditing.scratch_sources import ALL_NULLS_AS_DOUBLE, LEAVES_OUT_EMPTY, LOOSE, kind_tried
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
from suffice.releasing import run as release_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.auditing.hostile_rows import Maker
    from suffice.auditing.running import ObservedRun, Runner
    from suffice.pipeline.terms.declaration.column_types import TypeFamily

    Pair = tuple[str, DataSet, DataSet]

APPEARANCE = "appearance"


def pairs(maker: Maker, n_random: int) -> Iterator[Pair]:
    """Yield pairs of neighbours: any, and those whose files differ in their types or their number."""
    kind, _ = kind_tried(maker.spec)
    modes = tuple({tuple(each) for each in _modes(kind)})
    for chain in maker.chains(n_random, modes):
        yield from ((second.what, first, second) for first, second in itertools.pairwise(chain))
    replaces = maker.spec.privacy.neighboring is NeighboringRelation.REPLACE_ONE
    row = maker.unit_rows(strong=True, place=0)[0]
    if not replaces:
        if kind in {"parquet", "csv"}:
            yield "a folder without files, beside one record", _of([]), _of([[row]])
        yield "no row, beside one record", _of([[]]), _of([[row]])
    if kind in LOOSE:
        yield from _loose(maker, row, replaces=replaces)


def _modes(kind: str) -> tuple[tuple[str, ...], ...]:
    return (("spark", "pandas"), ("pandas",)) if kind in LOOSE else (("spark", "spark"),)


def _loose(maker: Maker, row: dict[str, Any], *, replaces: bool) -> Iterator[Pair]:
    """Yield files in which one record decides what a column is stored as, or which folders there are."""
    hive = getattr(maker.spec.source, "hive", {})
    unit = maker.spec.privacy.column_unit
    seen: set[tuple[TypeFamily, bool]] = set()
    for name, column in maker.schema.items():
        is_unit = unit is not None and name == unit.column
        if name in hive or (column.family, is_unit) in seen:
            continue
        seen.add((column.family, is_unit))
        others = [maker.good_row(1) for _ in range(3)]
        without, with_value = {**row, name: None}, row
        for writer in (ALL_NULLS_AS_DOUBLE, LEAVES_OUT_EMPTY):
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


def _of(files: list[list[dict[str, Any]]], writer: str = "spark") -> DataSet:
    writers = ("spark", *(writer for _ in files[1:]))
    return DataSet(
        parts=tuple(
            WrittenPart(writer=each, rows=tuple(rows)) for each, rows in zip(writers, files, strict=False)
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
    runner: Runner, maker: Maker, n_random: int, *, first_only: bool
) -> tuple[int, list[Flaw], list[ObservedRun]]:
    """Release pairs of neighbours, and compare all that they show."""
    findings: list[Flaw] = []
    seen: list[ObservedRun] = []
    tried = 0
    before: tuple[DataSet, ObservedRun] | None = None
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


def try_again(runner: Runner, data: DataSet) -> list[Flaw]:
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


def try_failure(runner: Runner, data: DataSet) -> list[Flaw]:
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
