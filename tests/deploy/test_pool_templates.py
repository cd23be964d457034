"""The templates of Prefect's work pools give callers nothing to choose but a name; no server is asked.

What a real server makes of the same attacks is in tests/flows/test_work_pool.py.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from support.kustomize import render
from support.manifests import pods

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES = ("process-pool.json", "docker-pool.json", "kubernetes-pool.json", "kubernetes-dask-pool.json")
TEMPORARY = "/" + "tmp"
FREE = {"name", "labels", "stream_output"}
CLOSED = {
    "env": {"SUFFICE_LEDGER": "sqlite:////tmp/other.db"},
    "command": "python -c 'print(1)'",
    "working_dir": "/",
    "image": "attacker/image:1",
    "namespace": "kube-system",
    "service_account_name": "cluster-admin",
    "job_manifest": {},
    "cluster_config": {},
    "volumes": ["/:/host"],
    "privileged": True,
    "container_create_kwargs": {"pid_mode": "host"},
    "registry_credentials": {},
    "finished_job_ttl": 0,
    "memory": "900Gi",
}
"""What callers would like to set: one value for each."""


def template(repository: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((repository / "deploy/prefect" / name).read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_takes_nothing_but_what_is_free(repository: Path, name: str) -> None:
    content = template(repository, name)
    schema, configuration = content["variables"], content["job_configuration"]
    properties = set(schema["properties"])
    # Labels decide what a pod may reach, and are Docker's to act on: only a process may have its caller's.
    assert properties == (FREE if name == "process-pool.json" else FREE - {"labels"})
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"name": "night", "stream_output": False})
    for key, value in CLOSED.items():
        assert not validator.is_valid({key: value}), key
        assert not validator.is_valid({f"{key}.SUFFICE_LEDGER": "x"}), key
    # If a server let them through, no place would take them; Prefect merges `env` into any that is there.
    placeholders = set(re.findall(r"\{\{\s*([\w.-]+)\s*\}\}", json.dumps(configuration)))
    assert placeholders == properties
    assert not {"env", "command", "working_dir", "cluster_config", "annotations"} & set(configuration)


def test_a_template_that_is_open_is_told_from_one_that_is_not(repository: Path) -> None:
    """The control: Prefect's own way to write a template fails the test above."""
    content = template(repository, "process-pool.json")
    del content["variables"]["additionalProperties"]
    assert jsonschema.Draft202012Validator(content["variables"]).is_valid({"env": CLOSED["env"]})


@pytest.mark.parametrize(
    ("name", "overlay"), [("kubernetes-pool.json", "cron"), ("kubernetes-dask-pool.json", "cron-dask")]
)
def test_a_run_of_prefect_has_the_pod_of_the_cronjob(repository: Path, name: str, overlay: str) -> None:
    theirs = template(repository, name)["job_configuration"]["job_manifest"]["spec"]["template"]
    (release,) = (
        item
        for item in render(repository / "deploy/kubernetes/overlays" / overlay)
        if (item["kind"], item["metadata"]["name"]) == ("CronJob", "release")
    )
    ((labels, spec),) = pods(release)
    expected = copy.deepcopy(spec)
    (container,) = expected["containers"]
    del container["args"]
    container |= {"name": "prefect-job", "command": ["/usr/bin/env"]}
    container["env"].append({"name": "PREFECT_HOME", "value": f"{TEMPORARY}/prefect"})
    assert theirs["metadata"]["labels"] == {**labels, "suffice/prefect": "client"}
    assert theirs["spec"] == {**expected, "parallelism": 1, "completions": 1}


def test_a_container_of_docker_has_no_rights(repository: Path) -> None:
    configuration = template(repository, "docker-pool.json")["job_configuration"]
    more = configuration["container_create_kwargs"]
    assert configuration["privileged"] is False
    assert configuration["mem_limit"] == configuration["memswap_limit"], "nothing goes to swap"
    assert (more["read_only"], more["cap_drop"], more["security_opt"]) == (
        True,
        ["ALL"],
        ["no-new-privileges:true"],
    )
    assert not more["user"].startswith(("0", "root"))
    assert not {"environment", "privileged", "network_mode", "pid_mode", "cap_add", "devices"} & set(more)
    modes = {place.split(":")[1]: place.split(":")[2:] for place in configuration["volumes"]}
    assert [place for place, mode in modes.items() if mode != ["ro"]] == ["/var/lib/suffice"]
    assert not any("docker.sock" in place for place in configuration["volumes"])
    # The worker passes over keys of its own configuration here: each of these must reach Docker.
    assert not {"image", "command", "env", "labels", "name", "networks", "volumes", "mem_limit"} & set(more)


def test_a_container_of_docker_takes_its_variables_from_a_file(repository: Path, tmp_path: Path) -> None:
    """By the shell that is its entrypoint; the worker's own home is nothing to it."""
    entrypoint = template(repository, "docker-pool.json")["job_configuration"]["container_create_kwargs"][
        "entrypoint"
    ]
    shell, option, script, name = entrypoint
    place = "/run/secrets/suffice/release.env"
    assert place in script
    file = tmp_path / "release.env"
    file.write_text("PGPASSWORD='a b$c'\nSUFFICE_LOG=json\n", encoding="utf-8")
    finished = subprocess.run(
        [shell, option, script.replace(place, str(file)), name, "/usr/bin/env"],
        env={"PREFECT_HOME": "/home/worker/.prefect", "PREFECT__FLOW_RUN_ID": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    variables = dict(line.split("=", 1) for line in finished.stdout.splitlines())
    assert (variables["PGPASSWORD"], variables["SUFFICE_LOG"]) == ("a b$c", "json")
    assert (variables["PREFECT_HOME"], variables["PREFECT__FLOW_RUN_ID"]) == (f"{TEMPORARY}/prefect", "7")
