"""Compiled loops over many cells: which there are, when they pay, and batches on threads without a lock.

Blocks of cells go side by side, so that what is not in loops, and holds Python's lock, of a block is done
while loops of others run. Within such a block there are no further threads.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from suffice.pipeline.cluster.processors import processors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

FEWEST_CELLS = 50
"""Cells from which on loops may pay that are loaded."""
_LOADED_IN = 0.5
"""Processor seconds that it takes to load what compiles, and machine code that is kept."""


@functools.cache
def is_compiled() -> bool:
    """Whether there is what compiles loops."""
    return importlib.util.find_spec("numba") is not None


def is_kept(module: str) -> bool:
    """Whether machine code of a module's loops is on disk, and no older than the module."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return False
    source = Path(spec.origin)
    index = f"{source.stem}.*.nbi"
    # Where numba keeps it: beside the module, or where the environment says, in a folder for each of ours.
    kept = list((source.parent / "__pycache__").glob(index))
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        kept = list(Path(folder).glob(f"*/{index}"))
    return any(path.stat().st_mtime >= source.stat().st_mtime for path in kept)


_AMONG: ContextVar[int] = ContextVar("_AMONG", default=0)


@contextmanager
def among(cells: int) -> Iterator[None]:
    """Say of how many cells in all those asked for within are a part: loops pay for all of them."""
    token = _AMONG.set(cells)
    try:
        yield
    finally:
        _AMONG.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """A module of compiled loops. Nobody waits longer for them than arrays would take.

    Parameters
    ----------
    module : str
    made_in : float
        Processor seconds that it takes to make the machine code, once for each installation.
    saves : float
        Processor seconds a cell, beside arrays, of cells behind little noise.
    fewest : int
        Cells from which on they are used where they are loaded.
    """

    module: str
    made_in: float
    saves: float
    fewest: int = FEWEST_CELLS

    def pay(self, cells: int) -> bool:
        """Whether the loops take less time than arrays, with what it takes to have them: the one rule."""
        if cells < self.fewest or not is_compiled():
            return False
        if self.module in sys.modules:
            return True
        saved = max(cells, _AMONG.get()) * self.saves
        return saved >= (_LOADED_IN if is_kept(self.module) else self.made_in)


_MATH = "suffice.pipeline.math"
PAIRS = Loops(module=f"{_MATH}.engines.one_sum.pair_kernel", made_in=16.0, saves=0.0005)
"""Successes behind a private N."""
BLOCKS = Loops(module=f"{_MATH}.engines.one_sum.plane_kernel", made_in=50.0, saves=0.0006)
"""Other counts, and positive sums, behind a private N."""
SPREAD = Loops(module=f"{_MATH}.engines.one_sum.spread_kernel", made_in=50.0, saves=0.0015)
"""Positive sums under priors that are spread over scales."""
QUANTILES = Loops(module=f"{_MATH}.distributions.mixture_kernel", made_in=8.0, saves=0.0005)
"""Of merged pairs."""
MOMENT_NODES = Loops(module=f"{_MATH}.engines.normal.node_kernel", made_in=28.0, saves=0.035, fewest=100)
"""Of a normal's mean and variance, under a prior of many parts."""
MOMENT_NODES_OF_FEW = Loops(
    module=MOMENT_NODES.module, made_in=MOMENT_NODES.made_in, saves=0.012, fewest=MOMENT_NODES.fewest
)
"""The same under a prior of fewer than four parts: few boxes, and tables of bounded records, are spared."""
MOMENT_DENSITY = Loops(
    module=f"{_MATH}.engines.multivariate.target_kernel", made_in=40.0, saves=0.5, fewest=1
)
"""Of the moments of several columns; arrays take seconds longer for a cell alone, whose chains are many."""

CLIPPED_MOMENTS = Loops(
    module=f"{_MATH}.engines.mean_variance.slice_kernel", made_in=5.0, saves=0.025, fewest=1
)
"""Of a normal's mean and variance where clipping is modelled; cells that are mostly clipped save seconds."""

TABLE_MOVES = Loops(module=f"{_MATH}.engines.network.table_kernel", made_in=4.0, saves=0.0005, fewest=1)
"""Among latent tables that agree on their margins; what is saved is for each count of each chain."""


_IS_ONE_OF_SEVERAL: ContextVar[bool] = ContextVar("_IS_ONE_OF_SEVERAL", default=False)


def on_threads(
    work: Callable[[slice], Result], cells: int, size: int, threads: int | None = None
) -> list[Result]:
    """Return what is made of each batch of consecutive cells, in order, for any number of threads.

    Parameters
    ----------
    work : callable
        The cells of a batch -> what is made of them.
    cells, size : int
        How many cells there are, and how many a batch has at most.
    threads : int, optional
        By default as many as this process may use processors, and one within `side_by_side`.
    """
    batches = [slice(start, min(start + size, cells)) for start in range(0, cells, size)]
    workers = min(threads or _free_processors(), len(batches))
    if workers < 2:
        return [work(batch) for batch in batches]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, batches))


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], done: Callable[[Result], None], *, together: bool
) -> list[Result]:
    """Return what is made of each item, in order, for any number of processors.

    As many at a time as there are processors; what is left in the end, fewer than these, one after the other,
    each with all of them.

    Parameters
    ----------
    work : callable
        An item -> what is made of it, whatever was made of others.
    items : sequence
        That take about as long as each other.
    done : callable
        Gets what was made of each, in order. Where it raises, no further item is begun.
    together : bool
        Whether more than one may be worked on at a time.
    """
    results: list[Result] = []

    def take(result: Result) -> None:
        results.append(result)
        done(result)

    workers = _free_processors() if together else 1
    even = len(items) // workers * workers if workers > 1 else 0
    if even:

        def alone(item: Item) -> Result:
            _IS_ONE_OF_SEVERAL.set(True)
            return work(item)

        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            try:
                for item in items[:even]:
                    # So that what is done does not run ahead of who takes it.
                    if len(waiting) == 2 * workers:
                        take(waiting.popleft().result())
                    # Each in a context of its own, with all that is said of these cells: no two threads may
                    # enter one.
                    waiting.append(pool.submit(copy_context().run, alone, item))
                while waiting:
                    take(waiting.popleft().result())
            finally:
                for each in waiting:
                    each.cancel()
    for item in items[even:]:
        take(work(item))
    return results


def _free_processors() -> int:
    return 1 if _IS_ONE_OF_SEVERAL.get() else processors()
