"""What keeps an unfit worker out that joins while a run lasts; imported where Dask's scheduler runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributed import WorkerPlugin

from suffice.pipeline.cluster.workers import objection

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Worker


class Admission(WorkerPlugin):
    """Closes a worker that could not have been there when the run began; readies all others.

    Dask sets plugins up before a worker hears of its first task, so it gets no data. A worker that lacks
    suffice cannot read this plugin, and does not start either.

    Parameters
    ----------
    caller : str
        The version of suffice that the run has.
    prepare : callable or None
        Called on every worker that is let in: a function that can be imported there.
    """

    def __init__(self, caller: str, prepare: Callable[[], None] | None = None) -> None:
        self._caller = caller
        self._prepare = prepare

    async def setup(self, worker: Worker) -> None:
        """Close the worker unless it is fit, and its log says why; else prepare it.

        It may get results of others before it runs a task.
        """
        reason = objection(worker, self._caller)
        if reason is not None:
            await worker.close(executor_wait=False, reason=f"refused by a run of suffice: {reason}")
            return
        if self._prepare is not None:
            self._prepare()
