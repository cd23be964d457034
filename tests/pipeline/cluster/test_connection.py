"""Connections to clusters: what is opened, and what is refused before a task is handed out."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import dask
import pytest

from suffice.errors import ClusterError, UsageError
from suffice.pipeline.cluster import clients, connection
from suffice.pipeline.cluster.connection import check_workers, open_cluster
from support.dask_clusters import NO_SPILLING, by_address

if TYPE_CHECKING:
    from pathlib import Path


OTHER_TEXTS = [
    "",
    "thread",
    "local ",
    "localhost:8786",
    "http://127.0.0.1:1",
    "tls://h",
    "tls://a:b@h:1",
    "tls://h:x",
]


def test_threads_open_no_socket_and_load_no_network_code() -> None:
    code = (
        "import sys, psutil; from suffice.pipeline.cluster.connection import open_cluster\n"
        "with open_cluster('threads') as cluster:\n"
        "    assert not cluster.is_distributed\n"
        "    assert cluster.compute({'a': (sum, [1, 2])}, ['a']) == [3]\n"
        "    assert not psutil.Process().net_connections('inet')\n"
        "    assert 'distributed' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("text", OTHER_TEXTS)
def test_other_texts_are_refused_and_not_repeated(text: str) -> None:
    with (
        pytest.raises(UsageError, match=r"^--cluster is threads, local, or the") as caught,
        open_cluster(text),
    ):
        pass
    assert "a:b" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["tcp://10.1.2.3:8786", "tcp://example.org:8786", "tcp://[2001:db8::1]:8786"]
)
def test_open_links_beyond_the_loopback_are_refused(address: str) -> None:
    with pytest.raises(ClusterError, match="is not encrypted"), open_cluster(address):
        pass


@pytest.mark.slow
def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 1)
    with (
        pytest.raises(ClusterError, match=r"cluster at tcp://127\.0\.0\.1:1 cannot be reached") as caught,
        open_cluster("tcp://127.0.0.1:1/?password"),
    ):
        pass
    assert caught.value.__suppress_context__


@pytest.mark.slow
def test_a_cluster_that_may_spill_is_refused() -> None:
    with by_address() as processes:  # Dask's defaults
        with pytest.raises(ClusterError, match="may write its memory to disk"):
            check_workers(processes.scheduler_address)
        with pytest.raises(ClusterError) as caught, open_cluster(processes.scheduler_address):
            pass
    assert str(caught.value) == connection.MAY_SPILL


@pytest.mark.slow
def test_a_cluster_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 1)
    with (
        by_address(n_workers=0) as processes,
        pytest.raises(ClusterError, match=r"cluster at tcp://127\.0\.0\.1:\d+ has no worker"),
        open_cluster(processes.scheduler_address),
    ):
        pass


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from suffice.pipeline.cluster.connection import open_cluster\n"
        "with open_cluster('local'):\n    pass\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "suffice.errors.ClusterError: the local processes could not"
    )


@pytest.mark.slow
def test_a_cluster_keeps_nothing_of_a_run_that_is_over() -> None:
    with dask.config.set(NO_SPILLING), by_address() as processes:
        with open_cluster(processes.scheduler_address):
            assert any(name.startswith("suffice-") for name in processes.scheduler.worker_plugins)
        assert not any(name.startswith("suffice-") for name in processes.scheduler.worker_plugins)
        plugins = set(processes.scheduler.worker_plugins)
        assert check_workers(processes.scheduler_address) == 1
        assert set(processes.scheduler.worker_plugins) == plugins, "a look changes nothing"
