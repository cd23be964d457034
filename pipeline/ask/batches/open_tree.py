"""A tree of which no process holds all messages: its pieces are tasks of a cluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.cluster.connection import THREADS, open_cluster
from suffice.pipeline.cluster.stream import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.trees.count_tree import CountTree
    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.math.engines.tree.pieces import Run


@contextmanager
def open_tree(
    release: Release,
    name: str,
    where: Mapping[str, object] | None = None,
    *,
    cluster: AnyCluster = THREADS,
    certificates: str | None = None,
    population: str = "contaminated",
    sizes: Sequence[float] | None = None,
) -> Iterator[CountTree]:
    """Open a tree of a release whose pieces are worked out by a cluster; it is answered until it is closed.

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
        Where the release has no such tree, or `cluster` is none; of answers after the tree was closed.
    ClusterError, MissingExtraError
        Where the cluster cannot be used.
    """
    with open_cluster(cluster, certificates=certificates) as opened, _open(opened) as run:
        yield release.tree(name, where, population=population, sizes=sizes, run=run)


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
