"""When loops pay, and batches of cells on threads: in which order, and on how many threads."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from suffice.pipeline.math.distributions import many_cells
from suffice.pipeline.math.distributions.many_cells import (
    BLOCKS,
    CLIPPED_MOMENTS,
    MOMENT_DENSITY,
    MOMENT_NODES,
    PAIRS,
    QUANTILES,
    SPREAD,
    Loops,
    among,
    on_threads,
    side_by_side,
)


@pytest.mark.parametrize("threads", [None, 1, 3])
@pytest.mark.parametrize("cells", [1, 4, 5, 11])
def test_every_cell_is_in_one_batch_and_batches_come_back_in_order(threads: int | None, cells: int) -> None:
    batches = on_threads(lambda batch: range(batch.start, batch.stop), cells, 4, threads)
    assert [cell for batch in batches for cell in batch] == list(range(cells))
    assert max(map(len, batches)) <= 4
    assert len(batches) == -(-cells // 4)


def test_as_many_threads_as_are_asked_for_work_at_a_time() -> None:
    """Batches that wait for each other end with two threads; one thread would wait in vain."""
    together = threading.Barrier(2, timeout=20)
    assert len(on_threads(lambda _: together.wait(), 2, 1, 2)) == 2
    here = on_threads(lambda _: threading.get_ident(), 3, 1, 1)
    assert here == [threading.get_ident()] * 3


@pytest.mark.parametrize("processors", [1, 2, 3])
@pytest.mark.parametrize("together", [False, True])
def test_what_is_made_side_by_side_comes_back_in_order(
    processors: int, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_cells, "processors", lambda: processors)
    seen: list[int] = []
    assert side_by_side(lambda item: item * item, range(7), seen.append, together=together) == seen
    assert seen == [item * item for item in range(7)]


def test_a_block_has_one_thread_beside_others_and_all_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks at a time wait for each other; of the third, which is left, so do two batches."""
    monkeypatch.setattr(many_cells, "processors", lambda: 2)
    together = threading.Barrier(2, timeout=20)

    def threads_of(block: int) -> int:
        together_within = threading.Barrier(2, timeout=20)
        if block < 2:
            together.wait()
            return len(set(on_threads(lambda _: threading.get_ident(), 4, 1)))
        on_threads(lambda _: together_within.wait(), 2, 1)
        return 2

    with among(40_000):
        assert side_by_side(threads_of, range(3), lambda _: None, together=True) == [1, 1, 2]
        loops = Loops(module="loops_that_are_not_kept", made_in=40.0, saves=0.001)
        paid = side_by_side(lambda _: loops.pay(50), range(2), lambda _: None, together=True)
    assert paid == [True, True]


def test_no_block_is_begun_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_cells, "processors", lambda: 2)
    begun: list[int] = []
    interrupted = threading.Event()

    def block(number: int) -> None:
        begun.append(number)
        if number > 0:
            interrupted.wait(0.2)

    def interrupt(_: None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(block, range(100), interrupt, together=True)
    assert len(begun) < 10


def test_blocks_run_no_further_ahead_than_two_for_each_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_cells, "processors", lambda: 2)
    begun: list[int] = []
    ahead: list[int] = []

    def take(number: int) -> None:
        time.sleep(0.002)
        ahead.append(len(begun) - number)

    def block(number: int) -> int:
        begun.append(number)
        return number

    assert side_by_side(block, range(50), take, together=True) == list(range(50))
    assert max(ahead) <= 4


def test_loops_pay_later_where_they_are_not_loaded_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a second or forty, at a millisecond a cell; a source that is newer has no machine code."""
    name = "loops_that_are_not_kept"
    loops = Loops(module=name, made_in=40.0, saves=0.001)

    def paying(loops: Loops = loops) -> list[int]:
        return [cells for cells in (49, 50, 499, 500, 39_999, 40_000) if loops.pay(cells)]

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    source, kept = tmp_path / f"{name}.py", tmp_path / "__pycache__" / f"{name}.resolve-1.py311.nbi"
    source.touch()
    assert paying() == [40_000]
    with among(40_000):
        assert paying() == [50, 499, 500, 39_999, 40_000]
    assert paying() == [40_000]
    kept.parent.mkdir(exist_ok=True)
    kept.touch()
    assert paying() == [500, 39_999, 40_000]
    os.utime(kept, (0.0, 0.0))
    assert paying() == [40_000]
    monkeypatch.setitem(sys.modules, name, sys)
    assert paying() == [50, 499, 500, 39_999, 40_000]
    assert paying(replace(loops, fewest=499)) == [499, 500, 39_999, 40_000]


@pytest.mark.parametrize(
    "loops",
    [PAIRS, BLOCKS, SPREAD, QUANTILES, MOMENT_NODES, MOMENT_DENSITY, CLIPPED_MOMENTS],
    ids=lambda loops: loops.module,
)
def test_every_module_of_loops_is_one_that_is_compiled(loops: Loops) -> None:
    spec = importlib.util.find_spec(loops.module)
    assert spec is not None
    assert spec.origin is not None
    assert "compiled(" in Path(spec.origin).read_text("utf-8")
