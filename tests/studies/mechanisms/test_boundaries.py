"""No studied mechanism can reach a ledger, and nothing that releases knows one by name."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from studies.mechanisms.not_a_release import NotARelease
from suffice.cli import app
from suffice.errors import SpecError
from suffice.flows.parameters import ReleaseParameters
from suffice.pipeline.spec.spec import load_spec
from support.making import mapping

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "studies" / "mechanisms").glob("*.py"))
MODULES = [f"studies.mechanisms.{path.stem}" for path in FILES if path.stem != "__init__"]
NAMES = ("posterior_sampling", "private_gibbs", "ops_hmm", "metropolis", "barker", "annealing", "candidates")
SAMPLE = {"draws": 3, "within": [0.005, 0.5], "grid": 1025, "prior": "Beta(1, 30)"}
FORBIDDEN = (
    "suffice.cli",
    "suffice.flows",
    "suffice.pipeline.rows.mechanism",
    "suffice.releasing",
    "suffice.storage",
)
STUDIES = sorted((ROOT / "studies").rglob("*.py"))
RELEASING = ROOT / "studies" / "event_log_release.py"
"""The case studies release two event logs, with a ledger of their own."""
CLOSED = ("opendp", "prefect", "sqlalchemy", "sqlite3")

IMPORTING = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""

RUNNING = """
import sys
import numpy as np
import scipy.special, scipy.linalg
from studies.mechanisms.annealing import anneal, annealing_cost
from studies.mechanisms.candidates import candidate_mechanism
from studies.mechanisms.metropolis import draw_chain, step_cost
from studies.mechanisms.ops_hmm import ops_hmm
from studies.mechanisms.posterior_sampling import (
    laplace_beta_bernoulli, sample_beta_bernoulli, sample_dirichlet
)
from studies.mechanisms.private_gibbs import Variable, private_gibbs, random_scan

seen = []

def note(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wxa+"):
        seen.append((event, str(arguments[0])))
    elif event.split(".")[0] in {"sqlite3", "socket", "subprocess", "os", "shutil"} and event != "os.listdir":
        seen.append((event, ""))

sys.addaudithook(note)
rng = np.random.default_rng(1)
counts = np.array([3, 4, 5])
outputs = [
    sample_beta_bernoulli(3, 4, epsilon=1.0, least=0.1, rng=rng),
    sample_dirichlet(counts, epsilon=1.0, least=0.1, rng=rng),
    laplace_beta_bernoulli(counts, counts, epsilon=1.0, rng=rng),
    step_cost(1.0, rule="barker", n_points=5, most_records=3),
    draw_chain(1, 2, n_steps=5, cost=step_cost(1.0, rule="metropolis", n_points=5), rng=rng),
    private_gibbs([0], lambda *_: np.zeros(2), variables=[Variable(change=1.0, is_of_one_record=True)],
                  n_sweeps=2, rng=rng),
    random_scan(1.0, 1, 2),
    annealing_cost((0.0, 1.0), n_points=3, most_records=2),
    anneal(1, 2, (0.0, 1.0), n_chains=2, weights_epsilon=1.0, rng=rng),
    candidate_mechanism((1.0, 1.0), 5, epsilon=1.0, sensitivity="local"),
    candidate_mechanism((1.0, 1.0), 5, epsilon=1.0, sensitivity="global").draw((2, 3), rng=rng),
    ops_hmm([np.ones((1, 3, 2))], np.ones((1, 3), dtype=bool), n_states=2, epsilon=1.0, n_sweeps=2, rng=rng),
]
assert not seen, seen
for output in outputs:
    assert output.label == "not a release"
    assert str(output).startswith("not a release") and output.csv().startswith("# not a release")
print(*sorted(type(output).__name__ for output in outputs))
import sqlite3
sqlite3.connect(":memory:")
assert seen  # what this looks for, it sees
"""


def _fresh(code: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _is_within(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def test_importing_every_study_of_a_mechanism_loads_no_ledger_and_no_noise() -> None:
    loaded = json.loads(_fresh(IMPORTING, json.dumps(MODULES)))
    assert set(MODULES) < set(loaded)
    assert "suffice.pipeline.ask.models.state_draws" in loaded
    closed = (*FORBIDDEN, *CLOSED)
    assert [
        name for name in loaded if any(name == each or name.startswith(f"{each}.") for each in closed)
    ] == []


def test_running_every_study_opens_no_database_no_connection_and_no_file_to_write() -> None:
    """Every kind of output is made, with an audit hook beside it, and says what it is."""
    made = set(_fresh(RUNNING).split())

    def kinds(base: type[NotARelease]) -> Iterator[str]:
        for each in base.__subclasses__():
            yield each.__name__
            yield from kinds(each)

    for name in MODULES:
        __import__(name)
    assert made == set(kinds(NotARelease))


def test_no_study_imports_what_can_release() -> None:
    """The import contract forbids it, but for one module, and no other takes what gives it lazily."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    contract = next(each for each in contracts if each.get("source_modules") == ["studies"])
    assert contract["type"] == "forbidden"
    assert set(FORBIDDEN) <= set(contract["forbidden_modules"])
    assert "allow_indirect_imports" not in contract
    assert contract["ignore_imports"] == [
        "studies.event_log_release -> suffice",
        "studies.event_log_release -> suffice.storage.ledger.opening",
    ]
    for path in (each for each in STUDIES if each != RELEASING):
        unsafe = set(CLOSED)
        if path in FILES:
            unsafe |= {"importlib", "os", "pathlib", "subprocess"}  # other studies write pictures
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "."]
                assert node.module != "suffice", "it gives release, lazily: no contract would see it"
            elif isinstance(node, ast.Name):
                assert node.id not in {"__import__", "eval", "exec", "compile"}, path
                assert node.id != "open" or path not in FILES, path
                continue
            else:
                continue
            for name in names:
                assert not any(name == each or name.startswith(f"{each}.") for each in FORBIDDEN), path
                assert name != "suffice", path
                assert name.partition(".")[0] not in unsafe, path


def _asked(words: list[str]) -> tuple[object, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app.main(words)
        except SystemExit as end:
            return end.code, err.getvalue()
    return None, err.getvalue()


def _naming(name: str) -> list[dict[str, Any]]:
    """Specs that name a mechanism in every place where somebody might."""
    flag = {"family": "bernoulli", "column": "cancelled"}
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"}
    changes: list[dict[str, Any]] = [
        {"mechanism": name},
        {"statistics": {"flag": {**flag, "mechanism": name}}},
        {"statistics": {"flag": {**flag, "family": name}}},
        {"statistics": {"flag": {**flag, "sample": name}}},
        {"statistics": {"flag": {**flag, "sample": {**SAMPLE, "mechanism": name}}}},
        {"statistics": {"flag": {**flag, "sample": {**SAMPLE, "sampler": name}}}},
        {"privacy": {**privacy, "mechanism": name}},
        {"privacy": {**privacy, "delta": "0.15"}},
    ]
    return [mapping("rows", **change) for change in changes]


def test_a_spec_that_names_a_studied_mechanism_is_refused(tmp_path: Path) -> None:
    """By load_spec, with which every command and flow begins, for every name and place; exit status 2."""
    path = tmp_path / "spec.json"
    for name in NAMES:
        for document in _naming(name):
            path.write_text(json.dumps(document), encoding="utf-8")
            with pytest.raises(SpecError) as caught:
                load_spec(path)
            assert caught.value.exit_status == 2
    flag = {"family": "bernoulli", "column": "cancelled", "sample": SAMPLE}
    for plain in (mapping("rows"), mapping("rows", statistics={"flag": flag})):
        path.write_text(json.dumps(plain), encoding="utf-8")
        load_spec(path)  # without the name there is nothing to refuse


def test_a_command_that_names_a_studied_mechanism_is_refused(tmp_path: Path) -> None:
    """No ledger is made, nothing is stored, and the answer is a sentence."""
    plain, named = tmp_path / "plain.json", tmp_path / "named.json"
    plain.write_text(json.dumps(mapping("rows")), encoding="utf-8")
    places = ["--store", str(tmp_path / "store"), "--ledger", f"sqlite:///{tmp_path}/ledger.db"]
    asked = [
        ["metropolis"],
        ["plan", str(plain), "--mechanism", "metropolis"],
        ["plan", str(plain), "--beside", "metropolis"],
        ["release", str(plain), "--mechanism", "candidates", *places],
        ["rehearse", str(plain), "--mechanism", "private_gibbs", *places],
    ]
    named.write_text(json.dumps(_naming("metropolis")[1]), encoding="utf-8")
    asked += [["plan", str(named)], ["release", str(named), *places], ["rehearse", str(named), *places]]
    for words in asked:
        status, said = _asked(words)
        assert status == 2, words
        assert "Traceback" not in said
        assert "internal error" not in said
    assert sorted(tmp_path.iterdir()) == [named, plain]
    status, _ = _asked(["plan", str(plain)])
    assert status in {0, None}


def test_a_flow_has_no_parameter_for_a_mechanism(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(mapping("rows")), encoding="utf-8")
    ReleaseParameters(spec=str(path))
    for name in NAMES:
        with pytest.raises(ValidationError, match="extra_forbidden"):
            ReleaseParameters(spec=str(path), mechanism=name)  # type: ignore[call-arg]


FLOWING = """
import json, sys, types
from suffice.flows.parameters import ReleaseParameters
from suffice.flows.release import _release

run = types.SimpleNamespace(reporter=types.SimpleNamespace(name_run=lambda *_: None, notice=lambda *_: None))
verdict = _release(ReleaseParameters(**json.loads(sys.argv[1])), run)
print(json.dumps([verdict.ending.name, verdict.message]))
"""


@pytest.mark.audit
def test_a_flow_refuses_a_spec_that_names_a_studied_mechanism(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(_naming("metropolis")[1]), encoding="utf-8")
    asked = {"spec": str(path), "store": str(tmp_path / "store"), "ledger": f"sqlite:///{tmp_path}/ledger.db"}
    ending, message = json.loads(_fresh(FLOWING, json.dumps(asked)))
    assert "mechanism" in message
    assert "refused" in ending.lower()
