"""Every flow keeps to what the profile pins; asked in a process of its own, without a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.hidden_states import publish_crashes
from support.profiles import write_profile

VECTORS = Path(__file__).parents[1] / "vectors"
CREDENTIALED = "s3://key:hunter2@bucket/releases/crashes"
ASK = """
import inspect, json, os, sys, types
from suffice.flows import parameters
from suffice.flows.audit import _audited
from suffice.flows.backfill import _backfilled
from suffice.flows.model import _fitted, fit_hidden_markov
from suffice.flows.posterior import _published
from suffice.flows.publication_parameters import PublicationParameters
from suffice.flows.recover import _recovered
from suffice.flows.rehearsal import _rehearsed
from suffice.flows.release import _release

run = types.SimpleNamespace(reporter=types.SimpleNamespace(name_run=lambda *_: None, notice=lambda *_: None))
asked = json.loads(sys.argv[1])
said = {name: _published(run, PublicationParameters(**one)).message for name, one in asked["publish"].items()}
for name, one in asked["fit"].items():
    said[name] = _fitted(run, *one).message
LEDGER = {
    "release": (parameters.ReleaseParameters, lambda asked: _release(asked, run)),
    "rehearsal": (parameters.ReleaseParameters, lambda asked: _rehearsed(asked, run)),
    "backfill": (parameters.BackfillParameters, lambda asked: _backfilled(asked, run)),
    "recover": (parameters.RecoverParameters, _recovered),
    "audit": (parameters.AuditParameters, _audited),
}
for name, (flow, field, fields) in asked["ledger"].items():
    model, carried_out = LEDGER[flow]
    said[name] = carried_out(model(**fields)).message
fields = {flow: sorted(model.model_fields) for flow, (model, _) in LEDGER.items()}
fields["publish"] = sorted(PublicationParameters.model_fields)
fields["fit"] = sorted(inspect.signature(fit_hidden_markov).parameters)
said["fields"] = json.dumps(fields)
os.environ["SUFFICE_CONFIG"] = asked["profile with a key"]
said["unsigned"] = _published(run, PublicationParameters(**asked["publish"]["pinned"])).message
said["unsigned fit"] = _fitted(run, *asked["fit"]["pinned fit"]).message
print(json.dumps(said))
"""


PLACES = {
    "release": ["spec", "ledger", "store", "cluster"],
    "rehearsal": ["spec", "ledger", "store", "cluster"],
    "backfill": ["spec", "ledger", "store", "cluster"],
    "recover": ["ledger", "store"],
    "audit": ["ledger", "store"],
    "publish": [
        "release",
        "disjoint",
        "same_data",
        "compare",
        "to",
        "store",
        "cluster",
        "covariates",
        "adjacency",
    ],
    "fit": ["release", "out", "store"],
}
"""By flow: the parameters that name what is opened."""
NO_PLACES = {
    *(
        "window",
        "first",
        "last",
        "allow_open",
        "reading_attempts",
        "reading_pause",
        "publish_timeout",
        "full",
    ),
    *("statistics", "prior", "n_prior", "where", "method", "clipping", "within_unit", "predictor_prior"),
    *(
        "kind",
        "pooled",
        "over",
        "formula",
        "roll_up",
        "assume",
        "interval",
        "vouched",
        "mass",
        "draws",
        "seed",
        "formats",
        "allow_withdrawn",
        "chain",
        "time",
        "states",
    ),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Ask both flows for what is pinned, and for what is not."""
    directory = tmp_path_factory.mktemp("pinned")
    pinned, other = (publish_crashes(directory / name)[0] for name in ("pinned", "other"))
    profile = write_profile(
        directory / "suffice.toml",
        ledger=f"sqlite:///{directory}/ledger.db",
        clusters=["threads"],
        spec_folders=[str(directory / "specs")],
        stores=[str(pinned)],
        publications=[str(directory / "posteriors")],
        output_folders=[str(directory / "models")],
    )
    with_a_key = write_profile(
        directory / "with-a-key.toml", public_keys=[str(VECTORS / "test-key.pem.pub")], stores=[str(pinned)]
    )
    question: dict[str, Any] = {"release": "crashes", "statistics": ["drunk"], "draws": 0}
    question["where"] = {"STATE": "AK", "YEAR": "2013", "MONTH": "1"}
    elsewhere = str(directory / "elsewhere")
    fit = [["STATE"], ["YEAR", "MONTH"], ["drunk"], 2]
    asked = {
        "publish": {
            "pinned": question,
            "release": {**question, "release": release_of(other)},
            "compare": {**question, "compare": release_of(other)},
            "to": {**question, "to": elsewhere},
            "store": {**question, "store": str(other)},
            "disjoint": {**question, "disjoint": [release_of(other)]},
            "same_data": {**question, "same_data": [release_of(other)]},
            "cluster": {**question, "cluster": "tls://10.0.0.1:8786"},
            "covariates": {**question, "covariates": str(directory / "suffice.toml"), "formula": "~ x"},
            "adjacency": {**question, "adjacency": str(directory / "suffice.toml")},
            "secret adjacency": {**question, "adjacency": CREDENTIALED},
            "secret release": {**question, "release": CREDENTIALED},
            "secret disjoint": {**question, "disjoint": ["crashes", CREDENTIALED]},
            "secret compare": {**question, "compare": CREDENTIALED},
            "secret to": {**question, "to": CREDENTIALED},
            "many digits": {**question, "n_prior": "9" * 5000},
        },
        "profile with a key": str(with_a_key),
        "fit": {
            "secret fitted release": [[CREDENTIALED], *fit, str(directory / "models"), None],
            "pinned fit": ["crashes", *fit, str(directory / "models"), str(pinned)],
            "fitted release": [release_of(other), *fit, str(directory / "models"), None],
            "out": ["crashes", *fit, elsewhere, None],
            "fitted store": ["crashes", *fit, str(directory / "models"), str(other)],
        },
        "ledger": ledger_questions(directory, str(other)),
    }
    finished = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(asked)],
        env={**os.environ, "SUFFICE_CONFIG": str(profile), "PREFECT_HOME": str(directory / "prefect")},
        capture_output=True,
        check=False,
        cwd=directory,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    assert not (directory / "elsewhere").exists()
    said: dict[str, str] = json.loads(finished.stdout.splitlines()[-1])
    return said | {"place": str(directory)}


def ledger_questions(directory: Path, store: str) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Ask each flow that opens the ledger for one place outside; and, as a control, for what is pinned."""
    outside = {
        "spec": str(directory / "suffice.toml"),
        "ledger": f"sqlite:///{directory}/other.db",
        "store": store,
        "cluster": "tls://10.0.0.1:8786",
    }
    questions = {}
    for flow, places in PLACES.items():
        if flow in {"publish", "fit"}:
            continue
        least = {"spec": str(directory / "specs" / "absent.yaml")} if "spec" in places else {}
        least |= {"first": "2013-01"} if flow == "backfill" else {}
        questions[f"{flow} pinned"] = (flow, "", least)
        questions |= {f"{flow} {name}": (flow, name, {**least, name: outside[name]}) for name in places}
    return questions


def release_of(store: str | Path) -> str:
    """Return the path of the one release in a store."""
    (manifest,) = Path(store).rglob("manifest.json")
    return str(manifest.parent)


@pytest.mark.slow
def test_what_is_pinned_is_published(answers: dict[str, str]) -> None:
    assert answers["pinned"].startswith(f"{answers['place']}/posteriors/publications/")


@pytest.mark.parametrize("name", [*PLACES["publish"], "fitted release", "out", "fitted store"])
def test_what_lies_outside_is_refused(answers: dict[str, str], name: str) -> None:
    assert answers[name].startswith(f"PinnedError: {name.rsplit(maxsplit=1)[-1]}: this lies outside")


@pytest.mark.parametrize("flow", ["release", "rehearsal", "backfill", "recover", "audit"])
def test_a_flow_with_a_ledger_refuses_what_lies_outside(answers: dict[str, str], flow: str) -> None:
    """Before it opens anything: neither the spec nor the ledger that it is asked for is there."""
    for name in PLACES[flow]:
        place = "the spec" if name == "spec" else name
        assert answers[f"{flow} {name}"].startswith(f"PinnedError: {place}: this lies outside"), name
    assert answers[f"{flow} pinned"]
    assert "PinnedError" not in answers[f"{flow} pinned"]


def test_every_parameter_is_a_place_that_is_held_against_the_profile_or_none(answers: dict[str, str]) -> None:
    fields = {flow: set(names) for flow, names in json.loads(answers["fields"]).items()}
    assert fields.keys() == PLACES.keys()
    for flow, places in PLACES.items():
        assert fields[flow] - NO_PLACES == set(places)


@pytest.mark.parametrize("name", ["release", "disjoint", "compare", "to", "adjacency", "fitted release"])
def test_passwords_are_told_of_wherever_they_stand(answers: dict[str, str], name: str) -> None:
    told = answers[f"secret {name}"]
    assert told.startswith(f"UsageError: the {name.rsplit(maxsplit=1)[-1]} URL holds a password")
    assert "leave it out: credentials come from the environment" in told
    assert "hunter2" not in told


def test_a_prior_of_n_with_many_digits_is_refused(answers: dict[str, str]) -> None:
    assert answers["many digits"].startswith("PriorError: prior of N")


@pytest.mark.parametrize("name", ["unsigned", "unsigned fit"])
def test_releases_are_signed_by_a_key_that_is_pinned(answers: dict[str, str], name: str) -> None:
    assert answers[name].startswith("SignatureError: ")
