"""A graph of tasks on threads of this process: Dask's results, and nothing kept that nobody takes."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask.threaded
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.cluster import threaded


class Number:
    """A result that can be watched."""

    def __init__(self, value: int) -> None:
        self.value = value


def ignore(_key: str) -> None:
    pass


def added(parts: list[Any], *more: Any) -> Any:
    return sum(parts) + sum(more)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    """Graphs whose tasks take numbers, earlier results, and lists of both."""
    graph: dict[str, Any] = {"literal": 7}
    for number in range(draw(st.integers(1, 12))):
        entries = st.one_of(st.integers(-5, 5), st.sampled_from(list(graph)))
        graph[f"task-{number}"] = (added, draw(st.lists(entries, max_size=4)), draw(entries))
    return graph, draw(st.lists(st.sampled_from(list(graph)), min_size=1, max_size=4, unique=True))


@pytest.mark.slow
@given(graphs(), st.integers(1, 3))
def test_results_are_those_of_dask(drawn: tuple[dict[str, Any], list[str]], n_threads: int) -> None:
    graph, keys = drawn
    done: list[str] = []
    with ThreadPoolExecutor(n_threads) as pool:
        results = threaded.compute(graph, keys, pool, n_threads, done.append)
    assert results == list(dask.threaded.get(graph, keys))
    assert sorted(done) == sorted(set(graph) - {"literal"})


@pytest.mark.slow
def test_a_result_is_dropped_once_its_last_task_is_done() -> None:
    alive: weakref.WeakSet[Number] = weakref.WeakSet()
    most = 0

    def made(value: int) -> Number:
        number = Number(value)
        alive.add(number)
        return number

    def total(parts: list[Number]) -> Number:
        return made(sum(part.value for part in parts))

    def look(_key: str) -> None:
        nonlocal most
        most = max(most, len(alive))

    graph: dict[str, Any] = {f"read-{number}": (made, number) for number in range(32)}
    for number in range(8):
        graph[f"add-{number}"] = (total, [f"read-{4 * number + part}" for part in range(4)])
    graph["all"] = (total, [f"add-{number}" for number in range(8)])
    with ThreadPoolExecutor(1) as pool:
        (result,) = threaded.compute(graph, ["all"], pool, 1, look)
    assert result.value == sum(range(32))
    # Seven sums, and the four numbers of the eighth; none was read before there was room for it.
    assert most <= 12


def test_no_more_tasks_run_than_there_are_threads() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def counted(_number: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1

    with ThreadPoolExecutor(8) as pool:
        threaded.compute({str(number): (counted, number) for number in range(50)}, ["1"], pool, 2, ignore)
    assert 1 <= most <= 2


def test_what_a_task_raises_is_raised_and_its_frames_hold_no_result() -> None:
    def failing(_part: int) -> None:
        raise ArithmeticError

    graph = {"secret": (int, 4711), "fails": (failing, "secret")}
    with ThreadPoolExecutor(1) as pool, pytest.raises(ArithmeticError) as caught:
        threaded.compute(graph, ["fails"], pool, 1, ignore)
    frames, frame = [], caught.tb
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == threaded.__file__:
            frames.append(frame.tb_frame.f_locals)
        frame = frame.tb_next  # type: ignore[assignment]
    assert frames
    assert not any(4711 in (held.get("results") or {}).values() for held in frames)
