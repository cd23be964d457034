"""Mutants: releases that are wrong in one way each, made from outside in the audit's own process.

A test that no mutant fails says nothing. Each is applied by putting something in the place of a function of
the product, for as long as the audit looks at it; the product has no switch for any of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import secrets
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from suffice.auditing import wrong_scales
from suffice.auditing.hostile_rows import MOST_ROWS
from suffice.auditing.running import patched
from suffice.auditing.wrong_scales import has_noise, has_several
from suffice.errors import StageFailedError
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, normalise
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.contribution import bounding, unit_ids
from suffice.pipeline.rows.mechanism import mechanism, noise, sampling
from suffice.pipeline.rows.mechanism.cone.sampler import ConeSampler
from suffice.pipeline.rows.reduce.tree import zero_sums
from suffice.releasing import run as release_run
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.releases.release_store import ReleaseStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.rows.contribution.records import UnitKey
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.declaration.column_unit import ColumnUnit

    Patch = Callable[[], AbstractContextManager[None]]
    Applies = Callable[[Plan], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One way to be wrong.

    Attributes
    ----------
    name : str
    level : str
        Where it is looked for first.
    apply : callable
        Return a context in which the product is wrong.
    applies : callable
        The plan -> whether it makes a difference there.
    of_loose_files : bool
        Whether it shows only where each file has types of its own.
    """

    name: str
    level: str
    apply: Patch
    applies: Applies = lambda _: True
    of_loose_files: bool = False


def mutants_of(plan: Plan, *, loose: bool) -> tuple[Mutant, ...]:
    """Return the mutants that make a difference to a plan, over files with types of their own or others."""
    return tuple(
        mutant for mutant in MUTANTS if mutant.applies(plan) and (loose or not mutant.of_loose_files)
    )


def _has_unit(plan: Plan) -> bool:
    return plan.column_unit is not None


def _keeps_rows(plan: Plan) -> bool:
    """Tell whether some statistic takes the rows that units keep."""
    unit = plan.column_unit
    of_rows = any((statistic.rows_of or "").startswith("of rows kept") for statistic in plan.statistics)
    return unit is not None and unit.max_rows <= MOST_ROWS and of_rows


def _bounds_cells(plan: Plan) -> bool:
    """Tell whether some statistic takes the rows that units keep in a cell."""
    unit = plan.column_unit
    return unit is not None and unit.max_rows_per_cell is not None and _keeps_rows(plan)


def _has_number_units(plan: Plan) -> bool:
    """Tell whether rows without a unit are units of their own, and units may be numbers.

    One row alone makes no transition.
    """
    unit = plan.column_unit
    if (
        unit is None
        or str(unit.nulls) != "own_unit"
        or str(unit.type) == "text"
        or unit.column in plan.derived
    ):
        return False
    return any(statistic.family != "markov_chain" for statistic in plan.statistics)


def _is_in_rho(plan: Plan) -> bool:
    """Tell whether some noise is scaled by rho."""
    return any(statistic.l2_squared is not None for statistic in plan.statistics)


def _has_squares(plan: Plan) -> bool:
    """Tell whether some square of an L2 sensitivity is above the L1 sensitivity."""
    return any((statistic.l2_squared or 0) > statistic.l1_sensitivity for statistic in plan.statistics)


# What is exact


@contextlib.contextmanager
def _bounded(factor: int, factor_in_cell: int) -> Iterator[None]:
    """Let units keep a multiple of what they may, in all and in a cell."""

    def of_more(bound: Any) -> Any:
        def bounded(records: Any, cells: Any, unit: ColumnUnit, key: UnitKey) -> Any:
            in_cell = unit.max_rows_per_cell and factor_in_cell * unit.max_rows_per_cell
            more = {"max_rows": factor * unit.max_rows, "max_rows_per_cell": in_cell}
            return bound(records, cells, unit.model_copy(update=more), key)

        return bounded

    with (
        patched(bounding, "first_rows", of_more(bounding.first_rows)),
        patched(bounding, "unit_rows", of_more(bounding.unit_rows)),
    ):
        yield


_ALL = 2**31
"""Times any bound, more rows than there are."""
_UNCUT, _TWICE, _UNCUT_IN_CELLS = (partial(_bounded, *by) for by in ((_ALL, _ALL), (2, 2), (1, _ALL)))


@contextlib.contextmanager
def _unit_by_part() -> Iterator[None]:
    """Take a unit for another one in each task that reads."""
    read = unit_ids.UnitReader.read
    salts: dict[int, tuple[object, np.uint64]] = {}

    def salted(reader: Any, batch: Any) -> Any:
        words, kinds = read(reader, batch)
        _, salt = salts.setdefault(id(reader), (reader, np.uint64(secrets.randbits(60) << 2)))
        words = words.copy()
        words[:, 1] ^= salt
        return words, kinds

    with patched(unit_ids.UnitReader, "read", salted):
        yield


@contextlib.contextmanager
def _rounded_units() -> Iterator[None]:
    """Take a unit that a floating-point number cannot hold for a null."""
    of_floats = unit_ids._of_floats  # noqa: SLF001 - wrapped, as all here

    def as_nulls(values: Any) -> Any:
        words, kinds = of_floats(values)
        return words, np.where(kinds == unit_ids.IS_ROUNDED, unit_ids.IS_NULL, kinds)

    with patched(unit_ids, "_of_floats", as_nulls):
        yield


@contextlib.contextmanager
def _at_making(change: Callable[[Sums], None]) -> Iterator[None]:
    """Do something with exact sums when the last addition hands them over."""
    make = ExactTotals.__init__

    def changed(totals: ExactTotals, sums: Sums) -> None:
        make(totals, sums)
        change(sums)

    with patched(ExactTotals, "__init__", changed):
        yield


def _twice() -> AbstractContextManager[None]:
    def change(sums: Sums) -> None:
        for table in sums.values():
            table.low[...] *= 2
            if table.high is not None:
                table.high[...] *= 2
            normalise(table)

    return _at_making(change)


def _next_cell() -> AbstractContextManager[None]:
    def change(sums: Sums) -> None:
        for table in sums.values():
            table.low[...] += np.roll(table.low, 1, axis=0)
            if table.high is not None:
                table.high[...] += np.roll(table.high, 1, axis=0)
            normalise(table)

    return _at_making(change)


# Noise


@contextlib.contextmanager
def _after_draw(
    change: Callable[[Any], None], choose: Callable[[Any, Any], None] | None = None
) -> Iterator[None]:
    """Change noise once it is drawn; and draws of samples, given their scores."""
    draw, select = noise.Sampler.draw_into, sampling.Selector.draw_into
    draw_on_cone = ConeSampler.overwrite

    def changed(sampler: Any, out: Any) -> None:
        draw(sampler, out)
        change(out)

    def changed_on_cone(sampler: Any, out: Any, **path: Any) -> None:
        draw_on_cone(sampler, out, **path)
        change(out)

    def chosen(selector: Any, scores: Any, out: Any) -> None:
        select(selector, scores, out)
        if choose is not None:
            choose(scores, out)

    with (
        patched(noise.Sampler, "draw_into", changed),
        patched(ConeSampler, "overwrite", changed_on_cone),
        patched(sampling.Selector, "draw_into", chosen),
    ):
        yield


def _one_cell_only() -> AbstractContextManager[None]:
    def change(out: Any) -> None:
        out[1:] = 0

    return _after_draw(change)


def _one_draw_for_all() -> AbstractContextManager[None]:
    def change(out: Any) -> None:
        out[:] = out[0]

    return _after_draw(change, lambda _, out: change(out))


def _never_negative() -> AbstractContextManager[None]:
    def change(out: Any) -> None:
        out[:] = abs(out)

    return _after_draw(change)


def _same_noise_always() -> AbstractContextManager[None]:
    first: dict[Any, Any] = {}

    def change(out: Any) -> None:
        out[:] = first.setdefault(("noise", len(out)), out.copy())

    def choose(_: Any, out: Any) -> None:
        out[:] = first.setdefault(("sample", len(out)), out.copy())

    return _after_draw(change, choose)


@contextlib.contextmanager
def _none_on_the_last() -> Iterator[None]:
    """Add no noise to the statistic that comes last; of a sample take the likeliest point."""
    take = mechanism._NoiseBlock.take  # noqa: SLF001
    take_sample = mechanism._SampleBlock.take  # noqa: SLF001

    def taken(block: Any, sums: Any, spec: Any) -> Any:
        block.noise.wait()
        if block.statistic.name == list(spec.statistics)[-1]:
            block.noise.values[...] = 0
        return take(block, sums, spec)

    def likeliest(block: Any, sums: Any, spec: Any) -> Any:
        if block.statistic.name == list(spec.statistics)[-1]:
            best = block.scores.argmax(axis=1)
            chosen = take_sample(block, sums, spec)
            chosen[...] = best[:, None]
            return chosen
        return take_sample(block, sums, spec)

    with (
        patched(mechanism._NoiseBlock, "take", taken),  # noqa: SLF001
        patched(mechanism._SampleBlock, "take", likeliest),  # noqa: SLF001
    ):
        yield


# What a release shows


@dataclass(kw_only=True)
class _Data:
    """A number that follows from exact sums, and the first one that was seen."""

    first: int | None = None
    now: int = 0

    def look(self, sums: Sums) -> None:
        limbs = [each for table in sums.values() for each in (table.low, table.high) if each is not None]
        self.now = sum(int(each) * (place + 1) for limb in limbs for place, each in enumerate(limb.ravel()))
        self.first = self.now if self.first is None else self.first

    @property
    def differ(self) -> bool:
        return self.now != self.first


@contextlib.contextmanager
def _status() -> Iterator[None]:
    data = _Data()

    def change(sums: Sums) -> None:
        data.look(sums)
        if data.differ:
            raise StageFailedError("reading", "a task failed while it read the data")

    with _at_making(change):
        yield


@contextlib.contextmanager
def _at_putting(act: Callable[[_Data, Any, str], None]) -> Iterator[None]:
    """Do something, knowing the data, when the manifest is put."""
    data = _Data()
    put = ReleaseStore.put_manifest

    def acting(store: Any, name: str, edition: str, release_id: str, manifest: bytes) -> None:
        act(data, store, f"{name}/{edition}/{release_id}")
        put(store, name, edition, release_id, manifest)

    with _at_making(data.look), patched(ReleaseStore, "put_manifest", acting):
        yield


def _names() -> AbstractContextManager[None]:
    def act(data: _Data, store: Any, place: str) -> None:
        store.objects.put_new(f"{place}/rows-{data.now}", b"")

    return _at_putting(act)


def _sizes() -> AbstractContextManager[None]:
    def act(data: _Data, store: Any, place: str) -> None:
        store.objects.put_new(f"{place}/notes", b"." * (1 + data.differ))

    return _at_putting(act)


@contextlib.contextmanager
def _manifest() -> Iterator[None]:
    """State exact sums among the versions of the software."""
    data = _Data()
    from suffice.storage.releases import manifest as of_manifests

    versions = of_manifests.software_versions

    def stating(packages: Any) -> dict[str, str]:
        return {**versions(packages), "suffice": str(data.now)}

    with _at_making(data.look), patched(of_manifests, "software_versions", stating):
        yield


@contextlib.contextmanager
def _text() -> Iterator[None]:
    """Warn of how much was read."""
    import warnings

    data = _Data()

    def change(sums: Sums) -> None:
        data.look(sums)
        warnings.warn(f"{data.now} in all", UserWarning, stacklevel=2)

    with _at_making(change):
        yield


@contextlib.contextmanager
def _ledger_entry() -> Iterator[None]:
    data = _Data()
    stage = SqlLedger.stage

    def staged(ledger: Any, charge: Any, manifest: bytes) -> Any:
        if data.differ:
            ledger.add_checkpoint()
        return stage(ledger, charge, manifest)

    with _at_making(data.look), patched(SqlLedger, "stage", staged):
        yield


# Charge and draw


@contextlib.contextmanager
def _draw_before_charge() -> Iterator[None]:
    preflight = release_run.ReleaseRun._preflight  # noqa: SLF001

    def early(run: Any, charge: Any) -> None:
        totals = ExactTotals(zero_sums(chunk_job(run.spec, run.window)))
        mechanism.privatize(totals, run.spec, run.plan).close()
        preflight(run, charge)

    with patched(release_run.ReleaseRun, "_preflight", early):
        yield


@contextlib.contextmanager
def _redraw() -> Iterator[None]:
    """Have the same release, run again, put other draws in the place of those that stand there."""
    carry_out = release_run.ReleaseRun.carry_out

    def redrawn(run: Any, *arguments: Any) -> Any:
        charge, status = carry_out(run, *arguments)
        if status == release_run.ALREADY_PUBLISHED:
            from pathlib import Path

            for path in sorted(Path(run.store.uri).rglob("*.parquet")):
                table = pq.read_table(path)
                path.unlink()
                index = table.column_names.index("value") if "value" in table.column_names else None
                if index is not None:
                    values = [int(value) + 1 for value in table["value"].to_pylist()]
                    table = table.set_column(index, table.field(index), [values])
                pq.write_table(table, path)
        return charge, status

    with patched(release_run.ReleaseRun, "carry_out", redrawn):
        yield


@contextlib.contextmanager
def _charged_twice() -> Iterator[None]:
    """Forget what was published: the same release, run again, is drawn again for another charge."""
    carry_out = release_run.ReleaseRun.carry_out

    def again(run: Any, *arguments: Any) -> Any:
        charge, status = carry_out(run, *arguments)
        if status == release_run.ALREADY_PUBLISHED:
            run.request = dataclasses.replace(run.request, name=f"{run.request.name}.2")
            return run._fresh(*arguments)  # noqa: SLF001
        return charge, status

    with patched(release_run.ReleaseRun, "carry_out", again):
        yield


@contextlib.contextmanager
def _given_back() -> Iterator[None]:
    """Leave a draw that failed as it is, as if it had not been drawn."""

    def left(ledger: Any, store: Any, spool: Any, charge: Any, stage: str, error: Any) -> Any:  # noqa: ARG001
        return StageFailedError(stage, "the run failed")

    with patched(release_run, "spend", left):
        yield


MUTANTS: tuple[Mutant, ...] = (
    Mutant(name="rows of a unit are not cut", level="exact", apply=_UNCUT, applies=_keeps_rows),
    Mutant(name="a unit keeps twice its rows", level="exact", apply=_TWICE, applies=_keeps_rows),
    Mutant(name="units are not cut in cells", level="exact", apply=_UNCUT_IN_CELLS, applies=_bounds_cells),
    Mutant(
        name="units are bounded in each part alone", level="exact", apply=_unit_by_part, applies=_has_unit
    ),
    Mutant(
        name="a unit that was rounded is a unit in each row",
        level="exact",
        apply=_rounded_units,
        applies=_has_number_units,
        of_loose_files=True,
    ),
    Mutant(name="half of the sensitivity", level="exact", apply=wrong_scales.half_sensitivity),
    Mutant(
        name="the L1 sensitivity in the place of the square of the L2 sensitivity",
        level="exact",
        apply=wrong_scales.root_of_l1,
        applies=_has_squares,
    ),
    Mutant(
        name="rho without its half",
        level="exact",
        apply=partial(wrong_scales.planned, math.sqrt(2)),
        applies=_is_in_rho,
    ),
    Mutant(
        name="a scale times 0.9",
        level="exact",
        apply=partial(wrong_scales.planned, 1 / 0.9),
        applies=_is_in_rho,
    ),
    Mutant(name="every record counts twice", level="exact", apply=_twice),
    Mutant(
        name="a record counts in the next cell, too",
        level="exact",
        apply=_next_cell,
        applies=lambda plan: any(statistic.n_cells > 1 for statistic in plan.statistics),
    ),
    Mutant(
        name="noise of a scale / 1.25",
        level="noise",
        apply=partial(wrong_scales.drawn, 1.25),
        applies=has_noise,
    ),
    Mutant(name="no noise on the last statistic", level="noise", apply=_none_on_the_last),
    Mutant(name="noise on one cell only", level="noise", apply=_one_cell_only, applies=has_several),
    Mutant(name="one draw for all cells", level="noise", apply=_one_draw_for_all, applies=has_several),
    Mutant(name="noise is never negative", level="noise", apply=_never_negative, applies=has_noise),
    Mutant(
        name="the same noise in every release",
        level="noise",
        apply=_same_noise_always,
        applies=has_noise,
    ),
    Mutant(name="the status depends on data", level="appearance", apply=_status),
    Mutant(name="a text depends on data", level="appearance", apply=_text),
    Mutant(name="a file's name depends on data", level="appearance", apply=_names),
    Mutant(name="a file's size depends on data", level="appearance", apply=_sizes),
    Mutant(name="the manifest depends on data", level="appearance", apply=_manifest),
    Mutant(name="the ledger depends on data", level="appearance", apply=_ledger_entry),
    Mutant(name="the charge comes after the draw", level="appearance", apply=_draw_before_charge),
    Mutant(name="a rerun puts other values in the store", level="again", apply=_redraw),
    Mutant(name="a rerun is drawn again", level="again", apply=_charged_twice),
    Mutant(name="a draw that failed is not spent", level="again", apply=_given_back),
)
"""All of them, in the order in which they are tried."""
