"""Flows in every way that Prefect is given them: `.serve()`, `.deploy()`, `prefect deploy`, and a form."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest

from support.hidden_states import publish_crashes
from support.making import make_workspace
from support.prefect_server import running_server, waited_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from support.making import Workspace
    from support.prefect_server import PrefectServer

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

LONGEST_S = 1200.0

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


OWN_SCRIPT = """
import asyncio, json, os, sys
from prefect.runner import Runner
from suffice.flows.audit import audit_ledger
from suffice.flows.backfill import backfill_windows
from suffice.flows.model import fit_hidden_markov
from suffice.flows.posterior import publish_posterior
from suffice.flows.recover import recover_charges
from suffice.flows.rehearsal import rehearse_release
from suffice.flows.release import release_statistics

if __name__ == "__main__":
    way, parameters = sys.argv[1], json.loads(sys.argv[2])
    if way == "serve":
        runner = Runner(name="serve", limit=2)
        for name, asked in parameters.items():
            runner.add_flow(globals()[name], name="serve", parameters=asked)
        asyncio.run(runner.start())
    for name, asked in parameters.items():
        flow = globals()[name].from_source(os.getcwd(), f"own_script.py:{name}")
        flow.deploy("deploy", work_pool_name="installed", parameters=asked)
"""
"""A user's script; what it does with a runner is what ``FLOW.serve()`` does, for all flows in one process."""

ENDS = {
    "release_statistics": "Published",
    "audit_ledger": "Verified",
    "backfill_windows": "Backfilled",
    "fit_hidden_markov": "Fitted",
    "publish_posterior": "Published",
    "recover_charges": "Recovered",
    "rehearse_release": "Rehearsed",
}
"""How a run of each flow ends that does its work; the first is what others need."""
WAYS = ("serve", "deploy", "file", "module", "form")
"""``.serve()``, ``.deploy()``, ``prefect deploy`` with either kind of entrypoint, and a run from the form."""


@dataclass(kw_only=True)
class Installation:
    """A place with suffice installed, not editable, and a server of Prefect that runs flows from there."""

    directory: Path
    server: PrefectServer
    work: Workspace
    spec: Path
    crashes: str

    @property
    def environment(self) -> dict[str, str]:
        """What commands and runs find."""
        places = {"SUFFICE_LEDGER": self.work.ledger, "SUFFICE_STORE": self.work.store}
        return {**self.server.environment(**places), "PYTHONPATH": ""}

    def asked(self, way: str) -> dict[str, dict[str, Any]]:
        """Return the parameters of each flow's run, by the name of the flow's function."""
        month = 1 + WAYS.index(way)
        windows = {"spec": str(self.spec), "first": f"2013-{month + 6:02}", "last": f"2013-{month + 6:02}"}
        release = {"spec": str(self.spec), "window": f"2013-{month:02}"}
        return {
            "release_statistics": {"release": release},
            "audit_ledger": {"audit": {"full": True}},
            "backfill_windows": {"windows": windows},
            "fit_hidden_markov": {
                "release": "crashes",
                "chain": ["STATE"],
                "time": ["YEAR", "MONTH"],
                "statistics": ["drunk"],
                "states": 2,
                "out": str(self.directory / f"models-{way}"),
                "store": self.crashes,
            },
            "publish_posterior": {
                "publication": {
                    "release": f"flights@{release['window']}",
                    "statistics": ["cancelled"],
                    "prior": "Beta(1, 3)",
                    "draws": 100,
                    "to": str(self.directory / "posteriors"),
                }
            },
            "recover_charges": {"recovery": {}},
            "rehearse_release": {"release": release},
        }

    def python(self, *words: str) -> None:
        """Run the installation's Python to its end."""
        done = subprocess.run(
            [str(self.directory / "bin/python"), *words],
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def started(self, *words: str) -> Iterator[None]:
        """Run the installation's Python for as long as the block lasts."""
        process = subprocess.Popen(
            [str(self.directory / "bin/python"), *words],
            env={**self.environment, "PREFECT_WORKER_QUERY_SECONDS": "1"},
            cwd=self.directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
            assert process.poll() is None
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                # A worker makes SIGINT of SIGTERM, which processes of a shell's background job ignore.
                process.kill()
                process.wait(timeout=60)

    def deployments(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the deployments of a name once there is one of each flow, by the function's name."""

        def look() -> dict[str, dict[str, Any]] | None:
            every = self.server.post("/deployments/filter", {"limit": 200})
            of_name = [each for each in every if each["name"] == name]
            by_function = {each["entrypoint"].replace(":", ".").split(".")[-1]: each for each in of_name}
            return by_function if by_function.keys() == ENDS.keys() else None

        return waited_for(look, f"deployments called {name}")

    def ends(self, name: str, parameters: Mapping[str, Any]) -> dict[str, str]:
        """Run the deployments of a name, with parameters or their own; return the states that runs end in.

        All others wait for the first. Few run at once: on a busy machine the last waits for long.
        """
        made = self.deployments(name)

        def begin(function: str) -> str:
            asked = {"state": {"type": "SCHEDULED"}, "parameters": parameters.get(function, {})}
            path = f"/deployments/{made[function]['id']}/create_flow_run"
            return str(self.server.post(path, asked)["id"])

        first, *others = ENDS
        states = {first: self.server.ended(begin(first), seconds=LONGEST_S)["name"]}
        runs = {function: begin(function) for function in others}
        ended = {function: self.server.ended(run, seconds=LONGEST_S) for function, run in runs.items()}
        return {**states, **{function: state["name"] for function, state in ended.items()}}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Installation]:
    """Copy the package into an environment of its own; what it needs is this environment's."""
    directory = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    shutil.copytree(repository / "src/suffice", packages / "suffice")
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (directory / "own_script.py").write_text(OWN_SCRIPT, encoding="utf-8")
    (directory / "prefect").mkdir()
    work = make_workspace(directory / "work", granted="100")
    spec = work.write_spec(
        groups=None,
        statistics={"cancelled": {"family": "bernoulli", "column": "cancelled"}},
        window={"column": "day", "every": "month"},
    )
    crashes, _ = publish_crashes(directory / "crashes")
    with running_server(directory / "prefect") as server:
        made = Installation(directory=directory, server=server, work=work, spec=spec, crashes=crashes)
        made.python("-m", "prefect", "work-pool", "create", "installed", "--type", "process")
        yield made


@pytest.mark.audit
@pytest.mark.timeout(1800)
def test_a_script_that_serves_runs_every_flow(installation: Installation) -> None:
    where = "import suffice; assert 'site-packages' in suffice.__file__, suffice.__file__"
    installation.python("-c", where)
    with installation.started("own_script.py", "serve", json.dumps(installation.asked("serve"))):
        assert installation.ends("serve", {}) == ENDS


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_whatever_deploys_a_flow_to_a_pool_its_runs_do_their_work(installation: Installation) -> None:
    before = installation.work.account().spent
    installation.python("own_script.py", "deploy", json.dumps(installation.asked("deploy")))
    modules = {name: module for module, (name, _) in FLOWS.items()}
    entrypoints = {
        "file": {name: f"own_script.py:{name}" for name in ENDS},
        "module": {name: f"suffice.flows.{modules[name]}.{name}" for name in ENDS},
    }
    deployments = [
        {
            "name": way,
            "entrypoint": entrypoint,
            "work_pool": {"name": "installed"},
            "parameters": installation.asked(way)[name],
        }
        for way, of_way in entrypoints.items()
        for name, entrypoint in of_way.items()
    ]
    (installation.directory / "prefect.yaml").write_text(
        json.dumps({"name": "own", "deployments": deployments}), encoding="utf-8"
    )
    installation.python("-m", "prefect", "--no-prompt", "deploy", "--all")
    with installation.started("-m", "prefect", "worker", "start", "--pool", "installed", "--limit", "2"):
        for way in ("deploy", "file", "module"):
            assert installation.ends(way, {}) == ENDS, way
        schemas = {
            name: made["parameter_openapi_schema"]
            for name, made in installation.deployments("module").items()
        }
        asked = installation.asked("form")
        filled = {name: filled_in(schemas[name], asked[name]) for name in ENDS}
        assert filled["recover_charges"]["recovery"], "a form sends what it shows"
        assert installation.ends("module", filled) == ENDS
    assert installation.work.account().spent - before == 2 * len(WAYS[1:])


def filled_in(schema: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as a form sends them: with every default that it shows."""
    filled = dict(asked)
    for name, shown in schema["properties"].items():
        alternatives = [shown, *shown.get("allOf", []), *shown.get("anyOf", [])]
        reference = next((each["$ref"] for each in alternatives if "$ref" in each), None)
        if reference is not None:
            fields = schema["definitions"][reference.rpartition("/")[2]]["properties"]
            defaults = {field: of["default"] for field, of in fields.items() if "default" in of}
            filled[name] = {**defaults, **asked[name]}
    return filled


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
