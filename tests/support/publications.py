"""Publications to write and to read: small requests, their files, and writers that can be killed."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.storage.publications.publication import compose_publication, publication_id_of
from suffice.storage.publications.publication_store import PublicationStore
from support.faults import interpose

if TYPE_CHECKING:
    from collections.abc import Iterable
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    from suffice.storage.publications.publication import Publication, PublishedFile
    from suffice.storage.signatures.signing import Signer

CREATED = datetime(2026, 1, 31, 8, tzinfo=UTC)
FILES = {"summaries.parquet": b"PAR1 summaries", "draws.parquet": b"PAR1 draws"}
POINTS = (
    "before file 1",
    "inside file 1",
    "after file 1",
    "after file 2",
    "inside manifest",
    "after manifest",
)
"""Where a writer is killed: "inside" a file is complete under a hidden name, and not linked yet."""


def request_of(**changes: Any) -> dict[str, Any]:
    """Return a request of one release."""
    release = {"release_id": "ab" * 8, "manifest_sha256": "cd" * 32, "label": "flights@2013-01"}
    statistic = {
        "statistic": "cancelled",
        "priors": [{"name": None, "prior": "Beta(1, 1)"}],
        "n_prior": "Uniform()",
        "predictor_prior": None,
        "interval": "highest-density",
    }
    request = {
        "algorithm": 1,
        "kind": "posterior",
        "releases": [release],
        "statistics": [statistic],
        "where": {},
        "method": "noise-aware",
        "clipping": "by-evidence",
        "within_unit": "modelled",
        "mass": "0.95",
        "draws": 1000,
        "seed": 7,
        "formats": ["parquet"],
        "cells_per_part": None,
        "relation": None,
        "vouched": False,
        "over": [],
        "model": None,
    }
    return {**request, **changes}


def id_of(request: dict[str, Any]) -> str:
    """Return the id of a request."""
    return publication_id_of(canonical_json.encode(request))


def manifest_of(
    request: dict[str, Any], files: Iterable[PublishedFile], signer: Signer | None = None
) -> bytes:
    """Return the manifest that answers a request with some files."""
    return compose_publication(
        request,
        title="Posterior of cancelled",
        losses={
            release["release_id"]: PrivacyLoss.of_epsilon(Fraction(1)) for release in request["releases"]
        },
        files=[file.entry(role="draws", file_format="parquet", rows=3) for file in files],
        created=CREATED,
        diagnostics={"cancelled": {"r_hat": "1.003"}},
        signer=signer,
    )


def publish(
    store: PublicationStore,
    request: dict[str, Any] | None = None,
    files: dict[str, bytes] | None = None,
    signer: Signer | None = None,
) -> Publication:
    """Publish some files for a request, whatever stands there already."""
    request = request or request_of()
    publication_id = id_of(request)
    put = [store.put_file(publication_id, name, data) for name, data in (files or FILES).items()]
    return store.publish(publication_id, manifest_of(request, put, signer))


def publish_until(uri: str, point: str) -> None:
    """Publish in this process, which is killed when it comes to a point."""
    from suffice.storage.objects import local_files
    from suffice.storage.objects.local_files import LocalFiles

    moment, what, *number = point.split()
    suffix = "manifest.json" if what == "manifest" else tuple(FILES)[int(number[0]) - 1]
    if moment == "inside":
        interpose(local_files, "_link", "before", lambda _, path: _die(path.name, suffix))
    else:
        interpose(LocalFiles, "put_new", moment, lambda _, key, __: _die(key, suffix))
    publish(PublicationStore.open(uri))


def publish_racing(uri: str, writer: int, n_rounds: int, barrier: Barrier, results: Any) -> None:
    """Publish a request a round, each with files of this writer; report the manifest that one got."""
    store = PublicationStore.open(uri)
    for number in range(n_rounds):
        request = request_of(draws=number + 1)
        barrier.wait(timeout=60)
        publication = publish(store, request, {"summaries.parquet": f"of {writer}".encode() * 10_000})
        results.put((number, writer, publication.read("summaries.parquet")[:4].decode()))


def replace_bytes(folder: Path, suffix: str, data: bytes) -> None:
    """Put other bytes where a file of a folder stands."""
    (path,) = [path for path in folder.iterdir() if path.name.endswith(suffix)]
    path.write_bytes(data)


def _die(name: str, suffix: str) -> None:
    """End this process, if a name has an ending."""
    if name.endswith(suffix):
        os.kill(os.getpid(), signal.SIGKILL)
