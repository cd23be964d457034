"""Metadata of a source, read by the workers of a cluster: many files in a task."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice.pipeline.rows.reduce.tree import Failure, Packed, Partial, for_tasks, guarded, in_task, succeeded
from suffice.pipeline.rows.sources.parquet_files import surveys_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.cluster.connection import Cluster

SURVEY_FAILED = "a task failed while it looked at the data files; the reason might quote them and is withheld"


@contextmanager
def surveyed_on(cluster: Cluster) -> Iterator[None]:
    """Let the workers of a cluster read the metadata of sources that are pinned in the block.

    Threads of this process do it by themselves.
    """
    if not cluster.is_distributed:
        yield
        return
    with surveys_by(partial(_survey, cluster)):
        yield


def _survey(
    cluster: Cluster, look: Callable[[Sequence[Any]], list[Any]], parts: list[Sequence[Any]]
) -> list[list[Any]]:
    """Look at parts, each in a task.

    Raises
    ------
    StageFailedError, ClusterError
        As `succeeded` and the cluster do.
    """
    run = f"survey-{uuid.uuid4().hex}"
    keys = [f"{run}-{number}" for number in range(len(parts))]
    graph = {
        key: (_look, look, for_tasks(tuple(part), is_distributed=True), run)
        for key, part in zip(keys, parts, strict=True)
    }
    return [partial_result.content for partial_result in succeeded(cluster.compute(graph, keys))]


def _look(
    look: Callable[[Sequence[Any]], list[Any]], part: Sequence[Any] | Packed, topic: str
) -> Partial[list[Any]] | Failure:
    return guarded(lambda: Partial(look(in_task(part))), topic, SURVEY_FAILED)
