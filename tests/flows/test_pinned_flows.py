"""Flows that read releases keep to what the profile pins; asked in a process of its own, without a server."""

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
import json, os, sys, types
from suffice.flows.model import _fitted
from suffice.flows.posterior import _published
from suffice.flows.publication_parameters import PublicationParameters

run = types.SimpleNamespace(reporter=types.SimpleNamespace(name_run=lambda *_: None, notice=lambda *_: None))
asked = json.loads(sys.argv[1])
said = {name: _published(run, PublicationParameters(**one)).message for name, one in asked["publish"].items()}
for name, one in asked["fit"].items():
    said[name] = _fitted(run, *one).message
os.environ["SUFFICE_CONFIG"] = asked["profile with a key"]
said["unsigned"] = _published(run, PublicationParameters(**asked["publish"]["pinned"])).message
said["unsigned fit"] = _fitted(run, *asked["fit"]["pinned fit"]).message
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Ask both flows for what is pinned, and for what is not."""
    directory = tmp_path_factory.mktemp("pinned")
    pinned, other = (publish_crashes(directory / name)[0] for name in ("pinned", "other"))
    profile = write_profile(
        directory / "suffice.toml",
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
        },
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


def release_of(store: str | Path) -> str:
    """Return the path of the one release in a store."""
    (manifest,) = Path(store).rglob("manifest.json")
    return str(manifest.parent)


def test_what_is_pinned_is_published(answers: dict[str, str]) -> None:
    assert answers["pinned"].startswith(f"{answers['place']}/posteriors/publications/")


@pytest.mark.parametrize("name", ["release", "compare", "to", "store", "fitted release", "out"])
def test_what_lies_outside_is_refused(answers: dict[str, str], name: str) -> None:
    assert answers[name].startswith(f"PinnedError: {name.rsplit(maxsplit=1)[-1]}: this lies outside")


@pytest.mark.parametrize("name", ["release", "disjoint", "compare", "to", "fitted release"])
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
