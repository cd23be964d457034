"""What an operator edits of deploy/kubernetes: settings, profile and specs, and what is made of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from suffice.pipeline.spec.spec import load_spec
from suffice.profile.model import parse_profile
from support.installation import OVERLAYS, everything, release
from support.kustomize import render

if TYPE_CHECKING:
    from pathlib import Path

    Object = dict[str, Any]


@pytest.fixture(scope="module")
def folder(repository: Path) -> Path:
    return repository / "deploy/kubernetes"


@pytest.mark.parametrize(
    "overlay",
    [name if name.endswith("dask") else pytest.param(name, marks=pytest.mark.audit) for name in OVERLAYS],
)
def test_kubectl_makes_the_same(folder: Path, overlay: str) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    command = ["kubectl", "kustomize", str(folder / "overlays" / overlay)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    theirs = list(yaml.safe_load_all(finished.stdout))
    assert by_name(theirs) == by_name(render(folder / "overlays" / overlay))


def by_name(objects: list[Object]) -> dict[tuple[str, str], Object]:
    named = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    assert len(named) == len(objects)
    return named


def settings(folder: Path) -> dict[str, str]:
    content = yaml.safe_load((folder / "site/settings.yaml").read_text(encoding="utf-8"))
    data: dict[str, str] = content["data"]
    return data


def test_every_setting_has_an_effect(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "kubernetes"
    shutil.copytree(folder, copied)
    path = copied / "site/settings.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    telling = {
        name: str(7000 + number) if value.isdigit() else f"telling-{name}"
        for number, (name, value) in enumerate(content["data"].items())
    }
    content["data"] = telling
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    texts = "".join(
        json.dumps([item for item in render(copied / "overlays" / name) if item["kind"] != "ConfigMap"])
        for name in OVERLAYS
    )
    for name, old in settings(folder).items():
        assert telling[name] in texts, name
        if not old.isdigit() and old not in {"prefect", "standard", "monitoring"}:
            assert f'"{old}"' not in texts, name


def test_the_settings_are_valid_and_mutants_are_not(folder: Path) -> None:
    schema = json.loads((folder / "settings.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = settings(folder)
    validator.validate(good)
    assert set(schema["required"]) == set(schema["properties"]) == set(good)
    validator.validate({**good, "image": "registry:5000/a/b@sha256:" + "0" * 64})
    for address in ("10.1.0.0/16", "fd00::5/128"):
        validator.validate({**good, "rowsAddress": address})
    bad: dict[str, list[object]] = {
        "image": ["registry.example.org/suffice:latest", "registry.example.org/suffice", "a b:1", ""],
        "rowsAddress": ["0.0.0.0/0", "::/0", "warehouse.example.org", "10.0.0.1"],
        "ledgerPort": ["0", "https", "-1", 5432],
        "prefectUrl": ["http://admin:hunter2@prefect/api", "prefect", "http://prefect/api?key=1"],
        "spec": ["/etc/passwd", "/srv/specs/../x.yaml", "flights.yaml"],
        "releaseSchedule": ["at two", "* * *", "30 2 * * * *"],
        "timeZone": ["Berlin", "+01:00"],
        "daskWorkers": ["0", "many", 4],
        "spoolSize": ["0Gi", "10"],
        "unknown": ["x"],
    }
    for name, values in bad.items():
        for value in values:
            assert not validator.is_valid({**good, name: value}), (name, value)
    for name in good:
        assert not validator.is_valid({key: value for key, value in good.items() if key != name}), name


def test_the_shipped_profile_and_spec_are_ones(folder: Path) -> None:
    path = folder / "site/suffice.toml"
    profile = parse_profile(path.read_bytes(), str(path))
    spec = load_spec(folder / "site/specs/flights-by-origin.yaml")
    assert settings(folder)["spec"] == f"/srv/specs/{spec.name}.yaml"
    assert profile.spec_folders == ("/srv/specs",)
    template = release(render(folder / "overlays/cron-dask"))["spec"]
    (container,) = template["containers"]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    # Below: the volume's own folder may be written by its group.
    assert str(profile.spool).startswith(mounts["spool"]["mountPath"] + "/")
    # By itself: a folder of such a volume may be written by anyone, and the profile would be refused.
    assert mounts["profile"]["mountPath"] == "/etc/suffice/suffice.toml"
    assert mounts["profile"]["subPath"] == "suffice.toml"
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    assert profile.clusters is not None
    assert variables["SUFFICE_CLUSTER"] in profile.clusters


def test_the_readme_names_every_secret_and_no_other(folder: Path) -> None:
    objects = [
        item for name in OVERLAYS for item in everything(folder, render(folder / "overlays" / name), name)
    ]
    text = json.dumps([item for item in objects if item["kind"] != "ConfigMap"])
    used = set(re.findall(r'"secretName": "([^"]+)"|"secretRef": \{"name": "([^"]+)"\}', text))
    names = {first or second for first, second in used}
    page = (folder / "README.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\| secret \|.*?\n\n", page, re.DOTALL)
    rows = [line.split("|")[1] for line in table.strip().splitlines()[2:]]
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == names
