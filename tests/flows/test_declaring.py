"""Flows whose modules a run cannot import by name, as ``FLOW.serve()`` may send them."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest

from support.making import make_workspace
from support.prefect_server import running_server

if TYPE_CHECKING:
    from pathlib import Path

FLOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "audit": ("audit_ledger", {"audit": {}}),
    "backfill": ("backfill_windows", {"windows": {"spec": "s.yaml", "first": "2013-01", "last": "2013-02"}}),
    "model": (
        "fit_hidden_markov",
        {
            "release": "r",
            "chain": ["a"],
            "time": ["t"],
            "statistics": None,
            "states": 2,
            "out": "m",
            "store": None,
        },
    ),
    "posterior": ("publish_posterior", {"publication": {"release": "r", "statistics": ["s"]}}),
    "recover": ("recover_charges", {"recovery": {}}),
    "rehearsal": ("rehearse_release", {"release": {"spec": "s.yaml"}}),
    "release": ("release_statistics", {"release": {"spec": "s.yaml"}}),
}

VALIDATED = """
import pickle, sys
for module, sent in pickle.load(sys.stdin.buffer).items():
    flow, parameters = pickle.loads(sent)
    print(module, *sorted(flow.validate_parameters(parameters)))
"""


@pytest.mark.slow
def test_a_flow_without_its_module_knows_its_parameters() -> None:
    import prefect

    sent = {}
    for module, (name, parameters) in FLOWS.items():
        flow = getattr(import_module(f"suffice.flows.{module}"), name)
        assert isinstance(flow, prefect.Flow)
        sent[module] = pickled_by_value(module, (flow, parameters))
    command = [sys.executable, "-c", VALIDATED]
    done = subprocess.run(command, input=pickle.dumps(sent), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == [
        " ".join([module, *sorted(parameters)]) for module, (_, parameters) in FLOWS.items()
    ]


SCRIPT = """
import sys
from suffice.flows.release import release_statistics

if __name__ == "__main__":
    release_statistics.serve(name="nightly", interval=15, parameters={"release": {"spec": sys.argv[1]}})
"""


@pytest.mark.audit
@pytest.mark.timeout(300)
def test_a_script_that_serves_a_flow_makes_releases(tmp_path: Path, repository: Path) -> None:
    """On a real server; the package is a copy beside the script, as where it is installed."""
    work = make_workspace(tmp_path)
    shutil.copytree(repository / "src/suffice", tmp_path / "site/suffice")
    script = tmp_path / "serve_it.py"
    script.write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "prefect").mkdir()
    with running_server(tmp_path / "prefect") as server:
        places = {"SUFFICE_LEDGER": work.ledger, "SUFFICE_STORE": work.store}
        served = subprocess.Popen(
            [sys.executable, str(script), str(work.write_spec())],
            env=server.environment(PYTHONPATH=str(tmp_path / "site"), **places),
            cwd=tmp_path,
        )
        try:
            names: set[str] = set()
            while "Already published" not in names and served.poll() is None:
                time.sleep(2)
                names = {run["state_name"] for run in server.post("/flow_runs/filter", {"limit": 200})}
                assert names.isdisjoint({"Failed", "Crashed"})
        finally:
            served.terminate()
            served.wait(timeout=60)
    assert "Published" in names
    assert work.account().spent == 1


def test_every_flow_is_in_the_table(repository: Path) -> None:
    modules = (repository / "src/suffice/flows").glob("*.py")
    assert {path.stem for path in modules if "\n@flow(" in path.read_text(encoding="utf-8")} == set(FLOWS)


def pickled_by_value(module: str, what: object) -> bytes:
    """Pickle as Prefect does what belongs to a module that it takes for the user's own script."""
    owner = import_module(f"suffice.flows.{module}")
    cloudpickle.register_pickle_by_value(owner)
    try:
        return bytes(cloudpickle.dumps(what))
    finally:
        cloudpickle.unregister_pickle_by_value(owner)
