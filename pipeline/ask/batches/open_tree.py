"""A tree of which no process holds all messages: its pieces are tasks of a cluster."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.ask.trees.count_tree import CountTree
from suffice.pipeline.cluster.connection import THREADS, open_cluster
from suffice.pipeline.cluster.stream import stream
from suffice.pipeline.terms.declaration.wording import not_a_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.math.engines.tree.piece_tasks import Run


@dataclass(frozen=True, slots=True, repr=False)
class TreeToOpen:
    """A tree that a with block opens, with its cluster, and closes."""

    opened: Callable[[], AbstractContextManager[CountTree]]
    blocks: list[AbstractContextManager[CountTree]] = field(default_factory=list)

    def __enter__(self) -> CountTree:
        """Open the cluster, and give the tree."""
        block = self.opened()
        tree = block.__enter__()
        self.blocks.append(block)
        return tree

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Close the cluster."""
        return self.blocks.pop().__exit__(kind, error, traceback)

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            if name in _ANSWERS:
                message = (
                    f"the tree is not open, and has no {name} yet: ask inside of "
                    "with suffice.open_tree(...) as tree:"
                )
                raise UsageError(message)
            raise not_a_name(type(self), name, {})


_ANSWERS = frozenset(name for name in dir(CountTree) if not name.startswith("_"))


def open_tree(
    release: Release,
    name: str,
    where: Mapping[str, object] | None = None,
    *,
    cluster: AnyCluster = THREADS,
    certificates: str | None = None,
    population: str = "contaminated",
    sizes: Sequence[float] | None = None,
) -> TreeToOpen:
    """Return a tree for a ``with`` block, in which its pieces are worked out by a cluster.

    Answers are those of :meth:`Release.tree`, but for rounding and tails that are cut; draws are
    others, of the same law. Costs no privacy.

    Parameters
    ----------
    release : Release
    name, where, population, sizes
        As for :meth:`Release.tree`.
    cluster : str or Client
        Where pieces are computed: ``threads``, ``local``, the address of a scheduler, ``MODULE:FUNCTION``, or
        a client. It changes no number.
    certificates : str, optional
        The folder of the client's certificate, for ``tls://``; where left out, Dask's configuration names it.

    Raises
    ------
    UsageError
        Where the release has no such tree, or `cluster` is none; of answers before the tree is open and after
        it was closed.
    ClusterError, MissingExtraError
        Where the cluster cannot be used.
    """

    @contextmanager
    def opened() -> Iterator[CountTree]:
        with open_cluster(cluster, certificates=certificates) as computing, _open(computing) as run:
            yield release.tree(name, where, population=population, sizes=sizes, run=run)

    return TreeToOpen(opened)


@contextmanager
def _open(cluster: Cluster) -> Iterator[Run]:
    """Give what runs tasks on a cluster until it is closed."""
    is_open = True

    def run(task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        if not is_open:
            message = "the tree is closed, and its cluster with it: ask for answers inside of the with block"
            raise UsageError(message)
        return stream(cluster, task, arguments)

    try:
        yield run
    finally:
        is_open = False
