"""The page on Airflow, Dagster and dbt: its snippets run against stand-ins for the names that they import.

The long audits run them in Airflow and Dagster themselves.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from support.making import Workspace, make_workspace
from support.page_blocks import read_page
from support.running import Runner, spec_file

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = "docs/how-to/release-from-an-orchestrator.md"
STATISTICS = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
WINDOW = {"column": "day", "every": "month", "time_zone": "America/New_York", "lag": "3 days"}
SPEC, PYTHON, COMMAND = "/srv/specs/monthly.yaml", "/opt/suffice/bin/python", "/opt/suffice/bin/suffice"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    place = make_workspace(tmp_path)
    monkeypatch.setenv("SUFFICE_LEDGER", place.ledger)
    monkeypatch.setenv("SUFFICE_STORE", place.store)
    return place


@pytest.fixture
def suffice(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


def snippet(repository: Path, language: str, word: str) -> str:
    (block,) = (
        block
        for block in read_page(repository / PAGE).blocks
        if block.language == language and word in block.text
    )
    return block.text


def loaded(
    code: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, **modules: Any
) -> dict[str, Any]:
    """Run a snippet as a module of its own, over this place's spec."""
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name.replace("__", "."), module)
    spec = spec_file(workspace, statistics=STATISTICS, groups=None, window=WINDOW)
    path = workspace.directory / "snippet.py"
    path.write_text(code.replace(SPEC, spec), encoding="utf-8")
    names: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)  # noqa: S102 - our own page
    return names


@pytest.mark.slow
def test_airflow_releases_the_window_of_the_scheduled_time(
    workspace: Workspace, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow sends a task's source and rendered arguments to another interpreter: so does the stand-in."""
    results: list[str] = []

    def external_python(python: str, *, expect_airflow: bool) -> Callable[..., Callable[..., None]]:
        assert (python, expect_airflow) == (PYTHON, False)

        def decorated(function: Callable[..., str]) -> Callable[..., None]:
            source = textwrap.dedent(inspect.getsource(function)).split("\n", maxsplit=1)[1]

            def called(*arguments: str) -> None:
                rendered = [
                    each.replace("{{ data_interval_end | ts }}", "2013-03-04T00:00:00-05:00")
                    for each in arguments
                ]
                script = f"{source}\nprint(release(*{json.dumps(rendered)}))"
                ended = subprocess.run(
                    [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ
                )
                results.append(ended.stdout.strip())

            return called

        return decorated

    def dag(**options: Any) -> Callable[[Any], Any]:
        assert set(options) == {"schedule", "start_date", "catchup", "max_active_runs"}
        return lambda function: function

    code = snippet(repository, "python", "airflow")
    sdk = SimpleNamespace(dag=dag, task=SimpleNamespace(external_python=external_python))
    pendulum = SimpleNamespace(datetime=lambda *_, tz: tz)
    airflow = SimpleNamespace(sdk=sdk)
    loaded(code, workspace, monkeypatch, pendulum=pendulum, airflow=airflow, airflow__sdk=sdk)
    charge = workspace.charge(window="2013-02")
    assert charge is not None
    assert results == [f"{workspace.store}/flights/2013-02/{charge.release_id}"]


@pytest.mark.slow
def test_dagster_releases_its_partition(
    workspace: Workspace, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dagster = SimpleNamespace(
        MonthlyPartitionsDefinition=lambda *, start_date, timezone: (start_date, timezone),
        asset=lambda **_: lambda function: function,
    )
    code = snippet(repository, "python", "dagster").replace(
        f'"{COMMAND}"', f'"{sys.executable}", "-m", "suffice"'
    )
    names = loaded(code, workspace, monkeypatch, dagster=dagster)
    names["flights"](SimpleNamespace(partition_key="2013-01-01"))
    assert workspace.charge(window="2013-01") is not None
    with pytest.raises(subprocess.CalledProcessError) as caught:
        names["flights"](SimpleNamespace(partition_key="2050-01-01"))
    assert caught.value.returncode == 2


def environment_of(package: str, directory: Path) -> Path:
    """Install an orchestrator into an environment of its own, and return where its programs are."""
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    programs = directory / "bin"
    subprocess.run([str(programs / "python"), "-m", "pip", "install", "--quiet", package], check=True)
    return programs


def in_this_place(code: str, workspace: Workspace) -> str:
    """Return a snippet over this place's spec and interpreter."""
    spec = spec_file(workspace, statistics=STATISTICS, groups=None, window=WINDOW)
    command = f'"{sys.executable}", "-m", "suffice"'
    return code.replace(SPEC, spec).replace(PYTHON, sys.executable).replace(f'"{COMMAND}"', command)


@pytest.mark.audit
@pytest.mark.timeout(1200)
def test_airflow_itself_releases(workspace: Workspace, repository: Path, tmp_path: Path) -> None:
    programs = environment_of("apache-airflow", tmp_path / "airflow")
    code = in_this_place(snippet(repository, "python", "airflow"), workspace)
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "flights.py").write_text(code.replace("2026, 1, 1", "2013, 1, 1"), encoding="utf-8")
    settings = {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    for words in (["db", "migrate"], ["dags", "test", "flights", "2013-03-05T02:30:00+01:00"]):
        command = [str(programs / "airflow"), *words]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **settings})
    assert workspace.charge(window="2013-02") is not None


DAGSTER = """
import sys
from dagster import materialize
from flights import flights
sys.exit(not materialize([flights], partition_key="2013-01-01").success)
"""


@pytest.mark.audit
@pytest.mark.timeout(1200)
def test_dagster_itself_releases(workspace: Workspace, repository: Path, tmp_path: Path) -> None:
    programs = environment_of("dagster", tmp_path / "dagster")
    code = in_this_place(snippet(repository, "python", "dagster"), workspace)
    (tmp_path / "flights.py").write_text(code, encoding="utf-8")
    command = [str(programs / "python"), "-c", DAGSTER]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert workspace.charge(window="2013-01") is not None


def test_dbt_gives_a_skeleton(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffice: Runner
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    Path("models/flights.yml").write_text(snippet(repository, "yaml", "exposures"), encoding="utf-8")
    (block,) = (block for block in read_page(repository / PAGE).blocks if "init --dbt" in block.text)
    suffice.text(*block.text.split()[1:])
    spec = yaml.safe_load(Path("monthly.yaml").read_text(encoding="utf-8"))
    assert (spec["name"], spec["source"]) == ("flights_by_origin", {"parquet": "exports/fct_flights/"})
    assert list(spec["statistics"]) == ["origin", "arr_delay"]
    assert suffice.json("init", "flights_by_origin", "--dbt", "models/flights.yml")["out"] is None
    assert "DATA is missing" in suffice.text("init", status=2)
    sample = ("--sample", "a.csv", "--sample-is", "public")
    assert "states the types" in suffice.text("init", "--dbt", "models/flights.yml", *sample, status=2)
