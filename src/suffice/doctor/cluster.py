"""Whether the cluster can be reached, is encrypted, and has workers that may hold exact sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.doctor.contract import ok
from suffice.pipeline.cluster.connection import LOCAL, THREADS, check_cluster, check_workers, require_dask
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings


def check(place: Settings) -> Iterator[Fact]:
    """Connect to a cluster that is given by address, and ask its workers; start none."""
    check_cluster(place.cluster)
    if place.cluster == THREADS:
        yield ok("threads of the run's own process")
        return
    require_dask("a cluster of processes")
    if place.cluster == LOCAL:
        yield ok("processes of this machine, which each run starts for itself; none was started now")
    else:
        n_workers = check_workers(place.cluster, certificates=place.cluster_certificates)
        workers = counted(n_workers, "worker")
        yield ok(f"the cluster answers: {workers}, none of which may spill, and each of this version")
