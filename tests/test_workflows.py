"""The workflows of the repository: pinned, of least privilege, and on the Pythons that the metadata admit."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORKFLOWS = ("ci", "release")
WRITES = {
    ("release", "attest"): {"attestations": "write", "id-token": "write"},
    ("release", "publish"): {"id-token": "write"},
    ("release", "announce"): {"contents": "write"},
}
"""All that any job may do beside reading the repository."""


@pytest.fixture(scope="module")
def workflows(repository: Path) -> dict[str, dict[str, Any]]:
    folder = repository / ".github/workflows"
    if not folder.exists():
        pytest.skip("a source distribution holds no workflows")
    by_name = {path.stem: yaml.safe_load(path.read_text()) for path in folder.glob("*.yml")}
    assert sorted(by_name) == sorted(WORKFLOWS)
    return by_name


def jobs(workflows: dict[str, dict[str, Any]]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for name, workflow in workflows.items():
        for job, content in workflow["jobs"].items():
            yield (name, job), content


def steps(job: dict[str, Any]) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = job.get("steps", [])
    return listed


def test_every_action_is_pinned_by_its_commit(repository: Path, workflows: dict[str, dict[str, Any]]) -> None:
    texts = "".join((repository / f".github/workflows/{name}.yml").read_text() for name in workflows)
    used = re.findall(r"uses: (\S+)(.*)", texts)
    assert used
    commits: dict[str, set[tuple[str, str]]] = {}
    for action, comment in used:
        if not action.startswith("./"):
            name, _, commit = action.partition("@")
            assert re.fullmatch(r"[0-9a-f]{40}", commit), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
            commits.setdefault(name, set()).add((commit, comment))
    assert {len(pins) for pins in commits.values()} == {1}, "one action, one version"


def test_a_job_may_only_what_it_needs(workflows: dict[str, dict[str, Any]]) -> None:
    assert {name: workflow["permissions"] for name, workflow in workflows.items()} == {
        name: {} for name in WORKFLOWS
    }
    granted = {place: job["permissions"] for place, job in jobs(workflows)}
    assert granted == {place: WRITES.get(place, {"contents": "read"}) for place in granted}
    assert WRITES.keys() <= granted.keys()


def test_what_builds_has_no_identity_and_keeps_no_credentials(workflows: dict[str, dict[str, Any]]) -> None:
    for place, job in jobs(workflows):
        for step in steps(job):
            action = step.get("uses", "")
            if action.startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, place
                assert place not in WRITES, "a job that may write runs nothing of the repository"
            assert "secrets." not in yaml.safe_dump(step), place
            assert "${{" not in step.get("run", ""), "a shell gets what others write as variables only"


def test_the_files_are_built_once_and_published_when_tested(workflows: dict[str, dict[str, Any]]) -> None:
    release = workflows["release"]["jobs"]
    commands = {name: " ".join(step.get("run", "") for step in steps(job)) for name, job in release.items()}
    assert [name for name, text in commands.items() if "-m build" in text] == ["build"]
    assert "scripts.distributions dist" in commands["build"]
    uploads = [step for step in steps(release["build"]) if "upload-artifact" in step.get("uses", "")]
    (upload,) = uploads
    for name in ("attest", "publish", "announce"):
        downloads = [step for step in steps(release[name]) if "download-artifact" in step.get("uses", "")]
        assert [step["with"] for step in downloads] == [
            {key: upload["with"][key] for key in ("name", "path")}
        ], name
    assert {name: release[name].get("needs") for name in release} == {
        "test": None,
        "build": None,
        "attest": ["test", "build"],
        "publish": "attest",
        "announce": "publish",
    }
    assert release["publish"]["environment"]["name"] == "pypi"
    assert release["test"]["uses"] == "./.github/workflows/ci.yml"


def test_every_admitted_python_is_tested(repository: Path, workflows: dict[str, dict[str, Any]]) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    admitted = {entry.rpartition(" ")[2] for entry in project["classifiers"] if ":: Python :: 3." in entry}
    tested = workflows["ci"]["jobs"]
    (of_wheels,) = (
        set(step["with"]["python-version"].split())
        for step in steps(tested["checks"])
        if "python-version" in step.get("with", {})
    )
    assert of_wheels == admitted
    assert {*tested["pythons"]["strategy"]["matrix"]["python"], "3.12"} == admitted
    assert [step["run"] for step in steps(tested["checks"]) if "run" in step] == [".ci/run"]


@pytest.mark.parametrize("name", ["bug", "proposal", "reader"])
def test_forms_of_issues_ask_and_have_names(repository: Path, name: str) -> None:
    """Those keys that a repository's host demands of a form."""
    folder = repository / ".github/ISSUE_TEMPLATE"
    if not folder.exists():
        pytest.skip("a source distribution holds no forms")
    form = yaml.safe_load((folder / f"{name}.yml").read_text())
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert fields
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
