"""The Dask cluster of deploy/kubernetes: its processes, started as its pods would start them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from suffice.errors import ClusterError
from suffice.pipeline.cluster.certificates import certificates_in
from suffice.pipeline.cluster.connection import open_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.audit, pytest.mark.timeout(300)]

SECRETS, PLACE = "/run/secrets/suffice/cluster", "suffice-scheduler:8786"


@contextmanager
def cluster_of(repository: Path, directory: Path, *, without: str = "none of them") -> Iterator[str]:
    """Start the scheduler and one worker as their pods would, but for some variables."""
    folder = repository / "deploy/kubernetes/components/dask"
    spec = json.loads((folder / "cluster.json").read_text(encoding="utf-8"))["spec"]
    certificates_in(directory / "made")
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    running = []
    for role in ("scheduler", "worker"):
        (container,) = spec[role]["spec"]["containers"]
        told = {
            variable["name"]: variable["value"]
            for variable in container["env"]
            if without not in variable["name"]
        }
        running.append(started(container["command"], told, role, place, directory))
    try:
        yield f"tls://{place}"
    finally:
        for current in reversed(running):
            current.terminate()
            current.wait(60)


def started(
    command: list[str], told: dict[str, str], role: str, place: str, directory: Path
) -> subprocess.Popen[bytes]:
    secrets = directory / role
    secrets.mkdir()
    for name in ("ca.pem", f"{role}.pem", f"{role}.key"):
        (secrets / name).write_bytes((directory / "made" / name).read_bytes())
    told = {name: value.replace(SECRETS, str(secrets)).replace(PLACE, place) for name, value in told.items()}
    here = {"8786": place.rpartition(":")[2], "/" + "tmp": str(directory)}
    words = [here.get(word, word) for word in command]
    assert words[0] == "python"
    extra = ["--host", "127.0.0.1"]  # a pod has one address, this machine others that are not free
    environment = {**os.environ, **told, "HOME": str(directory)}
    with (directory / f"{role}.log").open("wb") as log:
        return subprocess.Popen([sys.executable, *words[1:], *extra], env=environment, stdout=log, stderr=log)


def test_a_release_opens_it_and_a_stranger_does_not(repository: Path, tmp_path: Path) -> None:
    with cluster_of(repository, tmp_path) as address:
        with open_cluster(address, certificates=str(tmp_path / "made")) as cluster:
            assert cluster.is_distributed
            assert cluster.compute({"sum": (sum, [1, 2, 3])}, ["sum"]) == [6]
        certificates_in(tmp_path / "strangers")
        with (
            pytest.raises(ClusterError, match="its certificates do not match"),
            open_cluster(address, certificates=str(tmp_path / "strangers")),
        ):
            pass


def test_without_the_pods_variables_it_would_be_refused(repository: Path, tmp_path: Path) -> None:
    """The control: a worker that may write its memory to disk."""
    with (
        cluster_of(repository, tmp_path, without="MEMORY") as address,
        pytest.raises(ClusterError, match="may write its memory to disk"),
        open_cluster(address, certificates=str(tmp_path / "made")),
    ):
        pass
