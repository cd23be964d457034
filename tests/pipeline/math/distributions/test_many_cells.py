"""Batches of cells on threads: which there are, in which order, and on how many threads."""

from __future__ import annotations

import threading

import pytest

from suffice.pipeline.math.distributions.many_cells import on_threads


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
