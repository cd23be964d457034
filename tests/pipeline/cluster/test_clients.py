"""Clients that are handed over, and functions that return one."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import dask
import distributed
import pytest

import suffice
from suffice.errors import ClusterError, PinnedError, UsageError
from suffice.flows.parameters import ReleaseParameters
from suffice.pipeline.cluster import clients, connection
from suffice.pipeline.cluster.connection import check_workers, open_cluster
from support.dask_clusters import NO_SPILLING, by_address
from support.making import make_workspace
from support.page_blocks import read_page
from support.profiles import write_profile

DaskClient: Any = distributed.Client  # untyped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOOK = "operators_clusters:production"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with dask.config.set(NO_SPILLING):
        processes = by_address(2)
    with processes, DaskClient(processes, set_as_default=False) as client:
        yield client


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType(HOOK.split(":", maxsplit=1)[0])
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.mark.slow
def test_a_client_releases_and_stays_open(client: Any, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    spec = workspace.spec()
    kept = client.submit(pow, 3, 4)
    done = suffice.rehearse(spec, workspace.store, workspace.ledger, client)
    assert done.ok
    release = suffice.release(spec, workspace.store, workspace.ledger, client)
    assert (
        suffice.release(spec, workspace.store, workspace.ledger, "threads").release_id == release.release_id
    )
    assert workspace.account().remaining == workspace.account().granted - release.loss.amount
    assert kept.result() == 81, "what is the caller's is still there"
    plugins = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.worker_plugins))
    assert not any(name.startswith("suffice-") for name in plugins)


def test_a_client_that_cannot_be_used_is_refused(client: Any, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    for other in (7, client.cluster, SimpleNamespace(status="running")):
        with pytest.raises(UsageError, match=f"a {type(other).__name__} is given.*hand over a"):
            suffice.rehearse(workspace.spec(), workspace.store, workspace.ledger, other)
    with DaskClient(client.scheduler.address, set_as_default=False) as closed:
        pass
    with pytest.raises(ClusterError, match="the client is closed"), open_cluster(closed):
        pass


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("tcp://10.1.2.3:8786", "is not encrypted"),
        ("ws://example.org:8786", "is not encrypted"),
        ("inproc://10.1.2.3/4/1", "say threads instead"),
    ],
)
def test_a_client_is_treated_as_its_address(
    client: Any, monkeypatch: pytest.MonkeyPatch, address: str, text: str
) -> None:
    monkeypatch.setattr(client, "scheduler", SimpleNamespace(address=address))
    with pytest.raises(ClusterError, match=text), open_cluster(client):
        pass


@pytest.mark.slow
def test_a_client_whose_workers_may_spill_is_refused() -> None:
    with by_address() as processes, DaskClient(processes, set_as_default=False) as client:
        with pytest.raises(ClusterError) as caught, open_cluster(client):
            pass
        assert client.status == "running"
    assert str(caught.value) == connection.MAY_SPILL


def test_a_profile_pins_clients_by_their_address(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path)
    for pinned in ("threads", client.scheduler.address):
        profile = write_profile(tmp_path / "profile.toml", clusters=[pinned])
        monkeypatch.setenv("SUFFICE_CONFIG", str(profile))
        if pinned == "threads":
            with pytest.raises(PinnedError):
                suffice.rehearse(workspace.spec(), workspace.store, workspace.ledger, client)
        else:
            assert suffice.rehearse(workspace.spec(), workspace.store, workspace.ledger, client).ok


def test_a_function_returns_a_client_that_is_closed_at_the_end(client: Any, hook: ModuleType) -> None:
    made: list[Any] = []

    def production() -> Any:
        sys.stdout.write("not into the document")
        made.append(DaskClient(client.scheduler.address, set_as_default=False))
        return made[-1]

    hook.production = production  # type: ignore[attr-defined]
    assert check_workers(HOOK) == 2
    with open_cluster(HOOK) as cluster:
        assert cluster.compute({"a": (sum, [1, 2])}, ["a"]) == [3]
    assert [each.status for each in made] == ["closed", "closed"]
    assert client.status == "running"


def test_a_function_may_take_its_cluster_down_and_hears_of_no_error(
    client: Any, hook: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[object] = []
    notices: list[str] = []

    @contextmanager
    def production() -> Iterator[Any]:
        sys.stdout.write("starting")
        try:
            with DaskClient(client.scheduler.address, set_as_default=False) as connected:
                yield connected
        except BaseException as error:  # noqa: BLE001 - of whatever it hears
            heard.append(error)
        raise OSError("hunter2")

    hook.production = production  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError), open_cluster(HOOK, notice=notices.append):
        raise ZeroDivisionError("exact")
    assert heard == []
    assert notices == [clients._NOT_LEFT.format(HOOK, "OSError")]
    assert capsys.readouterr().out == ""


def test_a_function_that_fails_is_named_without_its_text(hook: ModuleType) -> None:
    def production() -> Any:
        raise OSError("password hunter2")

    hook.production = production  # type: ignore[attr-defined]
    cases = [
        (HOOK, "ended in OSError"),
        ("operators_clusters:missing", "ended in AttributeError"),
        ("no_such_module:production", "cannot be imported"),
        ("builtins:object", "ended in AttributeError"),
    ]
    for name, text in cases:
        with pytest.raises(ClusterError, match=text) as caught, open_cluster(name):
            pass
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["gateway", "coiled"])
def test_the_functions_of_the_page(
    client: Any, hook: ModuleType, monkeypatch: pytest.MonkeyPatch, repository: Path, name: str
) -> None:
    """Against stand-ins that hand out a client of processes here; neither package is installed."""
    connected: list[Any] = []

    class Cluster:
        def __init__(self, **options: Any) -> None:
            assert set(options) <= {"n_workers", "environ"}
            connected.append(self)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            connected.clear()

        def get_client(self) -> Any:
            return DaskClient(client.scheduler.address, set_as_default=False)

    gateway = SimpleNamespace(connect=lambda _: Cluster())
    stand_ins: dict[str, dict[str, Any]] = {
        "dask_gateway": {"Gateway": lambda _: gateway},
        "coiled": {"Cluster": Cluster},
    }
    for module, names in stand_ins.items():
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**names))
    page = read_page(repository / "docs/how-to/run-a-cluster.md")
    code = next(block.text for block in page.blocks if f"def {name}()" in block.text)
    exec(code, vars(hook))  # noqa: S102 - our own page
    with open_cluster(f"{hook.__name__}:{name}") as cluster:
        assert cluster.compute({"a": (sum, [1, 2])}, ["a"]) == [3]
        assert len(connected) == 1
    assert len(connected) == (name == "gateway"), "what the function starts, it takes down"


@pytest.mark.slow
def test_neither_a_spec_nor_a_parameter_of_a_flow_names_a_function(tmp_path: Path) -> None:
    """Whoever writes one of them must not have code imported where the exact sums are."""
    with pytest.raises(ValueError, match="by SUFFICE_CLUSTER, where the flow runs"):
        ReleaseParameters(spec="spec.yaml", cluster=HOOK)
    with pytest.raises(suffice.errors.SpecError, match="cluster"):
        make_workspace(tmp_path).spec(cluster=HOOK)
