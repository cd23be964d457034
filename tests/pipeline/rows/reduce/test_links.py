"""What moves between tasks: by Dask's own links on a cluster, by nobody else."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import distributed.protocol
import numpy as np
import pytest
from distributed.protocol.serialize import deserialize, serialize

from suffice.pipeline.rows.chunk.exact_sums import Table
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.reduce.shuffle import Divided, Seen
from suffice.pipeline.rows.reduce.tree import Packed, Partial, PartialSums, for_tasks, in_task
from suffice.pipeline.rows.sources.contract import Split

SECRET = 987_654_321_987


def sums() -> PartialSums:
    return PartialSums({"s": Table(low=np.full((50, 2), SECRET), high=np.full((50, 2), 3))})


def partials() -> list[Partial[Any]]:
    seen = Seen(once=np.arange(200, dtype=np.uint8), twice=np.arange(200, dtype=np.uint8))
    rows = [[np.full((40, 2), SECRET, np.uint64)]]
    return [sums(), Partial(seen), Partial(Divided(buckets=rows, sums=sums().content)), Partial(rows[0])]


@pytest.mark.parametrize("number", range(4))
def test_results_of_tasks_say_nothing_and_are_not_pickled(number: int) -> None:
    partial = partials()[number]
    assert str(SECRET) not in f"{partial} {partial!r} {[partial]}"
    for take in (pickle.dumps, copy.copy, copy.deepcopy, distributed.protocol.pickle.dumps):
        with pytest.raises(TypeError, match="holds exact data"):
            take(partial)
    with pytest.raises(TypeError):
        vars(partial)


@pytest.mark.parametrize("number", range(4))
def test_links_of_dask_move_them(number: int) -> None:
    tree.move_partial_results()
    partial = partials()[number]
    header, frames = serialize(partial)
    assert header["serializer"] == "dask"
    moved: Any = deserialize(header, [bytes(frame) for frame in frames])  # type: ignore[no-untyped-call]
    assert type(moved) is type(partial)
    assert type(moved.content) is type(partial.content)
    if isinstance(partial, PartialSums) and isinstance(moved, PartialSums):
        assert moved.content["s"].low.tolist() == partial.content["s"].low.tolist()
        table = moved.content["s"]
        moved.wipe()
        assert not table.low.any(), "what came by a link can be overwritten"
        assert table.high is not None
        assert not table.high.any()


def test_a_wiped_part_holds_nothing() -> None:
    part = sums()
    table = part.content["s"]
    assert part.__sizeof__() == 1600
    part.wipe()
    assert not table.low.any()
    assert table.high is not None
    assert not table.high.any()
    assert part.content == {}


def test_splits_are_packed_for_other_processes_alone() -> None:
    split = Split(kind="parquet", pieces=(), n_rows=SECRET)
    assert for_tasks(split, is_distributed=False) is split
    assert in_task(split) is split
    packed = for_tasks(split, is_distributed=True)
    assert isinstance(packed, Packed)
    assert str(SECRET) not in repr(packed)
    assert in_task(pickle.loads(pickle.dumps(packed))) == split  # noqa: S301 - as Dask sends it
