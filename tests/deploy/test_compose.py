"""``deploy/compose``: what the file says, without a container; `test_composed.py` starts its services."""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from suffice.cli.app import command
from suffice.pipeline.cluster import connection
from suffice.profile.model import DeploymentProfile, parse_profile
from support.bad_inputs import walk
from support.composed import HERE, composition

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET_NAMES = re.compile(r"PASSWORD|SECRET|TOKEN|KEY", re.IGNORECASE)
OURS = {
    *("prefect-server", "deploy", "worker", "scheduler", "reader"),
    *("administrator", "owner", "auditor", "prefect"),
}
ROWS = {"worker", "reader"}
MADE = ("./state", "./site", "./data", "./specs")
"""Folders that `prepare.sh` makes."""


@functools.cache
def schema() -> Any:
    """Return the schema of the Compose Specification."""
    return json.loads((Path(__file__).parent / "schemas/compose-spec.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    """Return the file with its variables filled in."""
    return composition({"SUFFICE_USER": "1000:1000"})


def test_it_is_what_the_specification_says(composed: dict[str, Any]) -> None:
    validator = jsonschema.Draft7Validator(schema())
    assert list(validator.iter_errors(composed)) == []
    broken = copy.deepcopy(composed)
    broken["services"]["worker"]["enviroment"] = {}
    assert list(validator.iter_errors(broken))


def test_every_name_stands_for_something(composed: dict[str, Any]) -> None:
    services = composed["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        assert set(service["networks"]) <= composed["networks"].keys()
        for secret in service.get("secrets", ()):
            name = secret if isinstance(secret, str) else secret["source"]
            assert name in composed["secrets"]
        for volume in service.get("volumes", ()):
            if isinstance(volume, dict) and not volume["source"].startswith(MADE):
                assert (HERE / volume["source"]).exists(), volume
    used = {
        mounted if isinstance(mounted, str) else mounted["source"]
        for service in services.values()
        for mounted in service.get("secrets", ())
    }
    assert used == composed["secrets"].keys()


def test_nothing_listens_beyond_the_loopback(composed: dict[str, Any]) -> None:
    services = composed["services"]
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"prefect-server": ["127.0.0.1:4200:4200"], "store": ["127.0.0.1:9000:9000"]}
    told = composition({"SUFFICE_USER": "1:1", "SUFFICE_LISTEN": "10.0.0.1"})
    assert told["services"]["store"]["ports"] == ["10.0.0.1:9000:9000"]
    outside = {name for name, network in composed["networks"].items() if not (network or {}).get("internal")}
    assert outside == {"edge"}
    assert {name for name, service in services.items() if outside & set(service["networks"])} == set(
        published
    )


def test_who_reaches_what(composed: dict[str, Any]) -> None:
    services = composed["services"]

    def on(network: str) -> set[str]:
        return {name for name, service in services.items() if network in service["networks"]}

    assert on("cluster") == {"worker", "scheduler", "reader"}
    assert on("prefect-database") == {"postgres", "prefect-server"}
    assert "prefect-server" not in on("ledger") | on("store")
    mounted = {
        name
        for name, service in services.items()
        for volume in service.get("volumes", ())
        if isinstance(volume, dict) and volume["target"] == "/srv/data"
    }
    assert mounted == ROWS
    writable = {
        (name, volume["target"])
        for name, service in services.items()
        for volume in service.get("volumes", ())
        if isinstance(volume, dict) and not volume.get("read_only")
    }
    assert writable == {
        ("prefect-server", "/srv/prefect-home"),
        ("worker", "/srv/spool"),
        ("auditor", "/srv/site"),
        ("store", "/data"),
    }


def test_containers_have_no_rights_that_they_do_not_need(composed: dict[str, Any]) -> None:
    for name, service in composed["services"].items():
        assert "privileged" not in service
        if name == "postgres":  # its own program drops root's rights
            continue
        assert service["user"] == "1000:1000", name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert name not in OURS or service["image"] == composed["services"]["worker"]["image"]


def test_secrets_are_files_and_each_login_has_its_own(composed: dict[str, Any]) -> None:
    logins = {}
    for name, service in composed["services"].items():
        for variable, value in service.get("environment", {}).items():
            assert not re.search(r"://[^/@]*:[^/@]*@", value), (name, variable)
            if SECRET_NAMES.search(variable):
                assert value.startswith("/run/secrets/"), (name, variable)
        held = {
            (secret if isinstance(secret, str) else secret["source"]) for secret in service.get("secrets", ())
        }
        assert "ca.key" not in held
        logins[name] = {secret.partition(".")[0] for secret in held if secret.endswith((".pgpass", ".aws"))}
    assert logins["worker"] == {"releases"}
    assert logins["owner"] == {"owner", "readers"}
    assert logins["auditor"] == {"auditor", "readers"}
    assert logins["prefect-server"] == {"prefect"}
    assert not any(logins[name] for name in ("scheduler", "reader", "deploy", "prefect", "postgres"))


def test_no_worker_writes_its_memory_to_a_disk(composed: dict[str, Any]) -> None:
    for name in ("scheduler", "reader"):
        environment = composed["services"][name]["environment"]
        for what in ("TARGET", "SPILL", "PAUSE"):
            assert environment[f"DASK_DISTRIBUTED__WORKER__MEMORY__{what}"] == "False"
        assert environment["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
        assert environment["DASK_LOGGING__DISTRIBUTED"] == "error"
        role = {"scheduler": "SCHEDULER", "reader": "WORKER"}[name]
        assert environment[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"].startswith("/run/secrets/")


def test_workers_keep_freed_memory_as_those_of_a_local_cluster_do(
    composed: dict[str, Any], repository: Path
) -> None:
    local = connection._LOCAL_SETTINGS["distributed.nanny.pre-spawn-environ"]
    kept = {name: str(value) for name, value in local.items() if name.startswith("MALLOC_")}  # type: ignore[attr-defined]
    assert kept.items() <= composed["services"]["reader"]["environment"].items()
    folder = repository / "deploy/kubernetes/components/dask"
    pods = json.loads((folder / "cluster.json").read_text(encoding="utf-8"))["spec"]["worker"]["spec"]
    (container,) = pods["containers"]
    assert kept.items() <= {each["name"]: each["value"] for each in container["env"]}.items()


def test_the_profile_pins_what_the_file_starts(composed: dict[str, Any]) -> None:
    content = (HERE / "suffice.toml").read_bytes()
    profile = parse_profile(content, "suffice.toml")
    left_open = {"witness", "tables", "output_folders", "public_keys", "stall_seconds"}
    assert DeploymentProfile.model_fields.keys() - tomllib.loads(content.decode()).keys() == left_open
    assert profile.clusters == ("tls://scheduler:8786",)
    worker = composed["services"]["worker"]
    assert worker["environment"]["SUFFICE_CONFIG"] in {volume["target"] for volume in worker["volumes"]}
    assert profile.cluster_certificates == "/run/secrets"
    assert {"ca.pem", "client.pem", "client.key"} <= {
        secret for secret in worker["secrets"] if isinstance(secret, str)
    }
    assert (
        "env"
        not in json.loads((HERE / "../prefect/process-pool.json").read_text())["variables"]["properties"]
    )


@pytest.mark.slow
def test_preparing_makes_what_is_mounted_and_replaces_nothing(
    composed: dict[str, Any], prepared: Callable[[], Path]
) -> None:
    folder = prepared()
    files = {path: path.read_bytes() for path in (folder / "secrets").rglob("*") if path.is_file()}
    wanted = {folder / secret["file"] for secret in composed["secrets"].values()}
    assert files.keys() == wanted | {folder / "secrets/cluster/ca.key"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files if path.suffix != ".pem"} == {0o600}
    texts = [
        files[folder / f"secrets/{login}.password"] for login in ("postgres", "prefect", "owner", "releases")
    ]
    assert len(set(texts)) == len(texts)
    assert all(len(text) == 49 for text in texts)
    assert (folder / ".env").read_text() == f"SUFFICE_USER={os.getuid()}:{os.getgid()}\n"
    prepared()
    assert files == {path: path.read_bytes() for path in (folder / "secrets").rglob("*") if path.is_file()}
    ignored = subprocess.run(
        ["git", "check-ignore", "secrets/owner.password", ".env", "state/x", "data/x"],
        cwd=HERE,
        capture_output=True,
        check=False,
    )
    assert ignored.returncode in {0, 128}, "secrets could be committed"
    assert ignored.returncode or len(ignored.stdout.split()) == 4


def test_the_page_names_services_commands_and_images_that_there_are(composed: dict[str, Any]) -> None:
    page = (HERE / "README.md").read_text(encoding="utf-8")
    runs = re.findall(r"^docker compose run --rm (\S+) ?(.*)$", page, re.MULTILINE)
    assert len(runs) >= 10
    known = {words for words, _ in walk(command())}
    for name, words in runs:
        service = composed["services"][name]
        if service["entrypoint"] == ["suffice"]:
            first = tuple(words.split())
            assert {first[:1], first[:2]} & known, words
    assert set(re.findall(r"suffice-pipeline:\S+", page)) == {composed["services"]["worker"]["image"]}
    assert set(re.findall(r"^\| `([a-z-]+)` \| .* \|$", page, re.MULTILINE)) <= composed["services"].keys()


def test_policies_name_the_bucket_that_is_made(composed: dict[str, Any]) -> None:
    stores = parse_profile((HERE / "suffice.toml").read_bytes(), "suffice.toml")
    pinned = {uri.removeprefix("s3://") for uri in (*(stores.stores or ()), *(stores.publications or ()))}
    publishing, reading = (
        json.loads((HERE / f"policies/{login}.json").read_text())["Statement"]
        for login in ("releases", "readers")
    )
    puts = next(statement for statement in publishing if "s3:PutObject" in statement["Action"])["Resource"]
    assert set(puts) == {f"arn:aws:s3:::{place}/*" for place in pinned}
    assert {action for statement in reading for action in statement["Action"]} == {
        "s3:GetObject",
        "s3:ListBucket",
    }
    assert (
        yaml.safe_load((HERE / "compose.yaml").read_text())["services"]["bucket"]["secrets"]
        == (composed["services"]["bucket"]["secrets"])
    )


@pytest.fixture
def prepared(tmp_path: Path) -> Callable[[], Path]:
    """Return what prepares a copy of the folder."""
    from support.composed import prepare

    return lambda: prepare(tmp_path / "compose")
