"""The wheel as strangers install it: without this repository, its constraints or its environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(900)]

PYTHONS = ("3.11", "3.12", "3.13")
HEADS, TAILS = 700, 300

SPEC = """\
name: flips
dataset: coins
source: {parquet: coins.parquet}
privacy: {epsilon: "1", neighboring: add_or_remove_one, unit: row}
groups:
  coin: [gold, silver]
statistics:
  heads: {family: bernoulli, column: heads}
"""

RUN_THE_FLOW = """
import sys
from suffice.flows.release import release_statistics
print(release_statistics({"spec": sys.argv[1], "store": sys.argv[2], "ledger": sys.argv[3]}))
"""

READ_AS_A_CONSUMER = """
import importlib.util, json, sys
import suffice
release = suffice.open_release(sys.argv[1])
posterior = release.posterior("heads", prior=suffice.Beta(1, 1), where={"coin": "gold"})
low, high = posterior.credible_interval("probability", mass=0.999999)[0]
optional = ["alembic", "dask", "distributed", "matplotlib", "numba", "opendp", "prefect", "sqlalchemy"]
print(json.dumps({
    "low": low,
    "high": high,
    "draws": list(posterior.sample(10, rng=1)["probability"].shape),
    "installed": [name for name in optional if importlib.util.find_spec(name)],
}))
"""


class Installation:
    """A fresh virtual environment with the wheel in it, and a directory to work in."""

    def __init__(self, python: str, wheel: Path, extra: str, root: Path) -> None:
        self.directory = root
        self.programs = root / "venv" / "bin"
        settings = ("PREFECT_", "SUFFICE_", "DASK_", "PYTHON")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(settings)},
            "DO_NOT_TRACK": "1",
            "PREFECT_HOME": str(root / "prefect"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
        }
        self.environment.pop("PIP_CONSTRAINT", None)
        subprocess.run([python, "-m", "venv", str(root / "venv")], check=True)
        self.run("python", "-m", "pip", "install", "--quiet", f"{wheel}{extra}")

    def run(self, program: str, *words: str, status: int = 0) -> str:
        """Run a program of the environment, check its exit status and return its standard output."""
        done = subprocess.run(
            [str(self.programs / program), *words],
            check=False,
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, (
            f"{program} {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout


def answers(command: str) -> bool:
    """Whether a Python that can make environments runs; a name on PATH may be a shim that cannot."""
    if shutil.which(command) is None:
        return False
    return (
        subprocess.run([command, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode
        == 0
    )


@pytest.fixture(scope="module", params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    """Return a command that runs this version: our own interpreter, or one on PATH."""
    if request.param == "{}.{}".format(*sys.version_info):
        return sys.executable
    command = f"python{request.param}"
    if not answers(command):
        pytest.skip(f"no {command} here")
    return command


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (wheel,) = (distributions / "sdist").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def release_uri(python: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Publish a release through the Prefect flow, as the wheel's metadata alone resolve it."""
    operator = Installation(python, wheel, "[pipeline]", tmp_path_factory.mktemp("operator"))
    (operator.directory / "spec.yaml").write_text(SPEC)
    flips = [True] * HEADS + [False] * TAILS
    coins = ["gold"] * len(flips) + ["silver"] * len(flips)
    pq.write_table(pa.table({"heads": flips + flips, "coin": coins}), operator.directory / "coins.parquet")
    ledger = f"sqlite:///{operator.directory / 'ledger.db'}"
    options = ("--epsilon", "1", "--reason", "a test", "--create", "--ledger", ledger)
    operator.run("suffice", "ledger", "grant", "coins", *options)
    store = str(operator.directory / "releases")
    uri = operator.run("python", "-c", RUN_THE_FLOW, "spec.yaml", store, ledger).splitlines()[-1]
    accounts = json.loads(operator.run("suffice", "ledger", "show", "coins", "--ledger", ledger, "--json"))
    assert accounts["accounts"][0]["spent"] == "1"
    return uri


@pytest.fixture(scope="module")
def consumer(python: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(python, wheel, "", tmp_path_factory.mktemp("consumer"))


def test_the_flow_publishes_a_release(release_uri: str) -> None:
    assert (Path(release_uri.removeprefix("file://")) / "manifest.json").is_file()


def test_the_base_wheel_reads_the_release(consumer: Installation, release_uri: str) -> None:
    answer = json.loads(consumer.run("python", "-c", READ_AS_A_CONSUMER, release_uri))
    assert answer["installed"] == []
    assert answer["low"] < HEADS / (HEADS + TAILS) < answer["high"]
    assert answer["draws"] == [10, 1]


def test_the_base_wheel_prints_a_table_and_a_posterior(consumer: Installation, release_uri: str) -> None:
    assert "noise_sd" in consumer.run("suffice", "table", release_uri, "heads")
    rows = json.loads(consumer.run("suffice", "posterior", release_uri, "heads", "--json"))["rows"]
    assert [row["coin"] for row in rows] == ["gold", "silver"]


def test_the_base_wheel_names_the_extra_that_a_release_needs(consumer: Installation) -> None:
    (consumer.directory / "spec.yaml").write_text(SPEC)
    failed = json.loads(consumer.run("suffice", "release", "spec.yaml", "--json", status=1))
    assert failed["error"]["type"] == "MissingExtraError"
    assert "pip install 'suffice[" in failed["error"]["message"]
