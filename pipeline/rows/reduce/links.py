"""What travels on a cluster's links, and how: the results of tasks between workers, splits to them.

Nothing here is pickled by anybody else. The threads of this process hand over the objects themselves.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from suffice.pipeline.cluster.connection import open_cluster, require_dask
from suffice.pipeline.cluster.stalls import STALL_SECONDS
from suffice.pipeline.rows.chunk.exact_sums import Sums, sums_nbytes, wipe_sums
from suffice.pipeline.rows.sources.exact_data import name_alone, pack, refuse, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.cluster.connection import Cluster, Notice

Content = TypeVar("Content")


class Partial(Generic[Content]):
    """What one task hands to the next: exact data that only Dask's own links move.

    Parameters
    ----------
    content : object
        Rows or what was seen of them, for the task that takes it.
    """

    __slots__ = ("content",)

    def __init__(self, content: Content) -> None:
        self.content = content

    __repr__ = name_alone
    __reduce_ex__ = refuse


class PartialSums(Partial[Sums]):
    """The exact sums of some rows, of which others are added."""

    __slots__ = ()

    def __sizeof__(self) -> int:
        """Tell Dask how much moving it costs; that follows from the job alone."""
        return sums_nbytes(self.content)

    def wipe(self) -> None:
        """Overwrite the sums."""
        wipe_sums(self.content)
        self.content = {}


class Packed:
    """Exact data on their way to a worker, in a graph of tasks: bytes, and nothing to see."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    __repr__ = name_alone

    def __reduce__(self) -> tuple[type[Packed], tuple[bytes]]:
        """Let Dask send the bytes."""
        return Packed, (self._data,)

    def opened(self) -> Any:
        """Return what was packed."""
        return unpack(self._data)


@contextmanager
def open_cluster_for_sums(
    address: str,
    certificates: str | None = None,
    stall_seconds: float = STALL_SECONDS,
    notice: Notice = lambda _: None,
) -> Iterator[Cluster]:
    """Open a cluster whose workers can move partial results to one another; see :func:`open_cluster`."""
    require_dask("reading data")
    with open_cluster(
        address,
        certificates=certificates,
        prepare=move_partial_results,
        stall_seconds=stall_seconds,
        notice=notice,
    ) as cluster:
        yield cluster


def for_tasks(value: Content, *, is_distributed: bool) -> Content | Packed:
    """Return what stands for exact data in a graph: themselves where tasks run in this process."""
    if not is_distributed:
        return value
    move_partial_results()
    return Packed(pack(value))


def in_task(value: Content | Packed) -> Content:
    """Return what `for_tasks` took, in a task."""
    return value.opened() if isinstance(value, Packed) else value


def move_partial_results() -> None:
    """Teach Dask's links in this process to move partial results."""
    protocol: Any = importlib.import_module("distributed.protocol")  # it takes a second, and is untyped
    protocol.dask_serialize.register(Partial, _dump)
    protocol.dask_deserialize.register(Partial, _load)


def _dump(partial: Partial[Any]) -> tuple[dict[str, Any], list[Any]]:
    buffers: list[memoryview] = []
    data = pack((type(partial), partial.content), lambda buffer: buffers.append(buffer.raw()))
    return {}, [data, *buffers]


def _load(_header: dict[str, Any], frames: Sequence[Any]) -> Partial[Any]:
    data, *arrays = (memoryview(frame) for frame in frames)
    # What cannot be written cannot be wiped.
    kind, content = unpack(data, [bytearray(array) if array.readonly else array for array in arrays])
    return kind(content)  # type: ignore[no-any-return]
