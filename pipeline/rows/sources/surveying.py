"""Who reads metadata while a source is pinned: threads of this process, or the workers of a cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Survey: TypeAlias = Callable[[Callable[[Sequence[Any]], list[Any]], list[Sequence[Any]]], list[list[Any]]]
    """Calls a function of a module with each of several sequences, and returns what it returned."""

Item = TypeVar("Item")
Found = TypeVar("Found")

_READERS = 8
_BATCH = 16
_LARGE_BATCH = 256
"""Files of which a worker reads the footers in a task: a second of an object store's round trips."""


def _by_threads(look: Callable[[Sequence[Any]], list[Any]], parts: list[Sequence[Any]]) -> list[list[Any]]:
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(look, parts))


_by: ContextVar[Survey | None] = ContextVar("_by", default=None)


@contextmanager
def surveys_by(survey: Survey) -> Iterator[None]:
    """Let others than this process's threads read the metadata of sources that are pinned in the block."""
    token = _by.set(survey)
    try:
        yield
    finally:
        _by.reset(token)


def surveyed(look: Callable[[Sequence[Item]], list[Found]], items: Sequence[Item]) -> list[Found]:
    """Look at many things, each independently of the others, and return what was found, in their order.

    Parameters
    ----------
    look : callable
        Takes some of them and returns as many results: a function of a module, which raises nothing.
    items : sequence
        Exact data that travel, or public; so are the results.
    """
    survey = _by.get()
    is_here = survey is None or len(items) <= _LARGE_BATCH
    size = _BATCH if is_here else _LARGE_BATCH
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    found = _by_threads(look, parts) if is_here or survey is None else survey(look, parts)
    return [each for part in found for each in part]
