"""A graph of tasks on threads of this process: nothing to import, and nothing kept that nobody takes."""

from __future__ import annotations

from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor, Future


def compute(
    graph: Mapping[str, Any],
    keys: Sequence[str],
    pool: Executor,
    n_threads: int,
    finished: Callable[[str], None],
) -> list[Any]:
    """Return the results of some keys of a graph, in their order.

    What a finished task makes possible runs before what has waited longer: sums are added as soon as
    they are there, and a result is dropped when the last task that takes it is done.

    Parameters
    ----------
    graph : mapping
        As Dask has it: a task is a tuple of a function and its arguments. An argument, or an entry of a list
        of arguments, that is a key stands for the result of that key. What is no task is its own result.
    keys : sequence of str
    pool : Executor
        Runs tasks; what one raises is raised here.
    n_threads : int
        How many tasks the pool gets at a time.
    finished : callable
        Called with the key of every task that is done, in the thread that called this.
    """
    results = {key: task for key, task in graph.items() if not _is_task(task)}
    needs = {key: set(_keys_of(task, graph)) for key, task in graph.items() if key not in results}
    users: dict[str, set[str]] = {}
    for user, of in needs.items():
        for key in of:
            users.setdefault(key, set()).add(user)
    missing = {key: of - results.keys() for key, of in needs.items()}
    ready = deque(key for key, of in missing.items() if not of)
    done: SimpleQueue[tuple[str, Future[Any]]] = SimpleQueue()
    asked, n_running = set(keys), 0
    try:
        while ready or n_running:
            while ready and n_running < n_threads:
                _submit(ready.popleft(), graph, results, pool, done)
                n_running += 1
            key, future = done.get()
            n_running -= 1
            results[key] = future.result()
            del future  # it holds the result
            for needed in needs[key]:
                users[needed].discard(key)
                if not users[needed] and needed not in asked:
                    del results[needed]
            for user in users.get(key, ()):
                missing[user].discard(key)
                if not missing[user]:
                    ready.appendleft(user)
            finished(key)
        return [results[key] for key in keys]
    finally:
        results.clear()  # the frames of an error hold nothing exact


def _is_task(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and callable(value[0])


def _keys_of(task: tuple[Any, ...], graph: Mapping[str, Any]) -> Iterator[str]:
    for argument in task[1:]:
        for entry in argument if isinstance(argument, list) else [argument]:
            if isinstance(entry, str) and entry in graph:
                yield entry


def _submit(
    key: str,
    graph: Mapping[str, Any],
    results: Mapping[str, Any],
    pool: Executor,
    done: SimpleQueue[tuple[str, Future[Any]]],
) -> None:
    """Give a task to the pool, which says when it is done."""

    def of(argument: Any) -> Any:
        if isinstance(argument, list):
            return [of(entry) for entry in argument]
        return results[argument] if isinstance(argument, str) and argument in graph else argument

    function, *arguments = graph[key]
    future = pool.submit(function, *map(of, arguments))
    future.add_done_callback(lambda ended: done.put((key, ended)))
