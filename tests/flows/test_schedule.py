"""The how-to about schedules and the deployments that it makes, as they are written."""

from __future__ import annotations

import inspect
import re
import shlex
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from suffice.publishing.publish import publish
from suffice.storage.publications.publication_store import PublicationStore
from support.prefect_server import waited_for
from support.running import Runner
from support.scheduled import HOW_TO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.prefect_server import PrefectServer
    from support.scheduled import Scheduled

pytestmark = pytest.mark.timeout(900)

FLOWS = {
    "nightly": "release",
    "gaps": "windows",
    "rehearsal": "release",
    "recover": "recovery",
    "audit": "audit",
    "posterior": "publication",
    "posterior-series": "publication",
    "posterior-pooled": "publication",
}
"""The deployments, and the parameter of the flow of each."""
PREFECT_FILE = "deploy/prefect/prefect.yaml"
OF_A_MODEL = "hidden-states"
"""The deployment of the flow whose parameters are plain ones."""
ENDED = {"COMPLETED", "FAILED", "CRASHED"}
NOT_OF_THE_FLOW = {"priors", "series", "model", "public_keys", "publication_keys", "notice", "progress"}
"""What `suffice.publish` takes and the flow does not: keys are pinned, tables of priors a command's."""


@pytest.mark.slow
def test_the_how_tos_commands_of_suffice_work_as_written(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (repository / HOW_TO).read_text(encoding="utf-8")
    (window,) = re.findall(r"```yaml\n(window: .*)\n```", text)
    spec = {
        "name": "flights",
        "dataset": "nycflights13",
        "source": {"parquet": "data/flights"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "statistics": {"cancelled": {"family": "bernoulli", "column": "cancelled"}},
    }
    (amended,) = re.findall(r"^    (window: .* amend: .*)$", text, re.MULTILINE)
    monthly = tmp_path / "monthly.yaml"
    monthly.write_text(yaml.safe_dump(spec) + window, encoding="utf-8")
    (tmp_path / "data/flights").mkdir(parents=True)
    days = pa.array(np.datetime64("2013-01-01") + np.arange(360))
    table = pa.table({"flight_date": days, "cancelled": pa.array(np.arange(360) % 2 == 0)})
    pq.write_table(table, tmp_path / "data/flights/a.parquet")
    monkeypatch.chdir(tmp_path)
    suffice = Runner(capsys)
    commands = [
        shlex.split(line, comments=True)[1:] for line in re.findall(r"^    (suffice .*)$", text, re.MULTILINE)
    ]
    grant, january, latest, planned, backfill, rehearsal, amendment, status = commands
    assert "--by-calendar" in rehearsal, "tests/releasing/test_amendments.py runs it"
    suffice.text(*grant)
    assert suffice.json(*january)["status"] == "published"
    again = suffice.json(*latest)
    assert (again["window"], again["status"]) == ("2013-01", "already_published")
    left = suffice.json(*planned)["windows"]
    assert [each["status"] for each in left] == ["already_published"] + ["left"] * 11
    filled = suffice.json(*backfill)["windows"]
    assert [each["status"] for each in filled] == ["already_published"] + ["published"] * 11
    report = suffice.json(*status, "--as-of", "2014-01-05T00:00Z")
    assert [each["state"] for each in report["windows"]] == ["published"] * 12
    monthly.write_text(yaml.safe_dump(spec) + amended, encoding="utf-8")
    assert suffice.json(*amendment)["status"] == "published"
    assert suffice.json("show", "flights@2013-01")["window"] == "2013-01"
    assert suffice.json("show", "flights")["window"] == "2013-12"


@pytest.mark.slow
def test_prefect_takes_every_command_of_the_how_to(
    scheduled: Scheduled, prefect_server: PrefectServer
) -> None:
    starts = [words[:2] for words in scheduled.commands]
    assert ["--no-prompt", "deploy"] in starts
    assert len(starts) == 6, "servers and workers are started with a variable before them"
    assert scheduled.statuses == [0] * 6, scheduled.said
    made = prefect_server.post("/automations/filter", {})
    assert {deployment["name"] for deployment in made} == {
        "suffice-budget-refused",
        "posterior__automation_1",
    }
    pool = prefect_server.get("/work_pools/releases")
    assert "env" not in pool["base_job_template"]["variables"]["properties"]
    assert pool["concurrency_limit"] == 4


def test_every_deployment_is_made_with_its_schedule(scheduled: Scheduled) -> None:
    made = scheduled.deployments
    assert set(made) == {*FLOWS, OF_A_MODEL}
    schedules = {
        name: [entry["schedule"] for entry in deployment["schedules"]] for name, deployment in made.items()
    }
    assert {name: bool(listed) for name, listed in schedules.items()} == {
        "nightly": True,
        "gaps": True,
        "rehearsal": False,
        "recover": True,
        "audit": True,
        "posterior": False,
        "posterior-series": True,
        "posterior-pooled": False,
        "hidden-states": False,
    }
    assert (schedules["nightly"][0]["cron"], schedules["nightly"][0]["timezone"]) == (
        "30 2 * * *",
        "Europe/Berlin",
    )
    assert schedules["recover"][0]["interval"] == 900
    assert made["nightly"]["parameters"]["release"]["window"] == "latest-complete"
    assert made["gaps"]["parameters"]["windows"].keys() == {"spec"}, "from window.first on"
    assert {deployment["global_concurrency_limit"] for deployment in made.values()} == {None}


def test_every_deployments_parameters_fit_its_schema(scheduled: Scheduled) -> None:
    for deployment in scheduled.deployments.values():
        assert deployment["enforce_parameter_schema"]
        jsonschema.Draft202012Validator(deployment["parameter_openapi_schema"]).validate(
            deployment["parameters"]
        )


@pytest.mark.parametrize("name", FLOWS)
def test_a_deployments_schema_refuses_passwords(scheduled: Scheduled, name: str) -> None:
    """Of what the server stored: that is what a form shows, and what a run is held against."""
    deployment = scheduled.deployments[name]
    validator = jsonschema.Draft202012Validator(deployment["parameter_openapi_schema"])
    (model,) = deployment["parameter_openapi_schema"]["definitions"].values()
    asked = deployment["parameters"].get(FLOWS[name], {})
    publishes = name.startswith("posterior")
    urls = ("store", "to", "covariates", "adjacency") if publishes else ("store", "ledger")

    def is_valid(**fields: Any) -> bool:
        return bool(validator.is_valid({FLOWS[name]: {**asked, **fields}}))

    assert is_valid()
    for place in urls:
        assert is_valid(**{place: "postgresql://owner@db/ledger"})
        assert is_valid(**{place: None})
        for url in ("postgresql://owner:hunter2@db/ledger", "postgresql://db/ledger?user=a&password=b"):
            assert not is_valid(**{place: url})
    if publishes:
        assert is_valid(release="crashes@latest", disjoint=["s3://bucket/releases/crashes"], compare=None)
        credentialed = "s3://key:hunter2@bucket/releases/crashes"
        for field in ("release", "disjoint", "same_data", "compare"):
            is_list = field in {"disjoint", "same_data"}
            assert not is_valid(**{field: [credentialed] if is_list else credentialed})
    assert is_valid(store="s3://bucket/releases")
    assert not is_valid(unknown=1)
    described = {key: field.get("description") for key, field in model["properties"].items()}
    assert all(described.values())
    releasing = {"spec", "cluster", "reading_attempts", "reading_pause", "publish_timeout", "allow_open"}
    fields = {
        "nightly": {"window"} | releasing,
        "rehearsal": {"window"} | releasing,
        "gaps": {"first", "last"} | releasing,
        "recover": set(),
        "audit": {"full"},
    }
    of_publications = set(inspect.signature(publish).parameters) - NOT_OF_THE_FLOW | {"over", "formula"}
    assert set(described) == {*urls} | (of_publications if publishes else fields[name])
    if name in {"nightly", "gaps", "rehearsal"}:
        assert is_valid(cluster="tls://scheduler:8786")
        assert not is_valid(cluster="everywhere")
        assert not is_valid(publish_timeout=-1)
        assert not is_valid(reading_attempts=0)
        assert not is_valid(**{"first" if name == "gaps" else "window": "2013-1"})


def test_every_flow_has_a_deployment(repository: Path) -> None:
    shipped = yaml.safe_load((repository / PREFECT_FILE).read_text(encoding="utf-8"))["deployments"]
    entries = [deployment["entrypoint"] for deployment in shipped]
    flows = {
        f"suffice.flows.{file.stem}.{function}"
        for file in (repository / "flows").glob("*.py")
        for function in re.findall(
            r"^@flow\((?:.*?)\)\ndef (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
    }
    assert set(entries) == flows
    assert all(
        deployment["work_pool"] == {"name": "releases"} and "job_variables" not in deployment
        for deployment in shipped
    )


def test_the_deployment_of_a_model_refuses_passwords(scheduled: Scheduled) -> None:
    deployment = scheduled.deployments[OF_A_MODEL]
    validator = jsonschema.Draft202012Validator(deployment["parameter_openapi_schema"])
    assert validator.is_valid(deployment["parameters"])
    for fields in ({"store": "s3://key:hunter2@bucket"}, {"release": "s3://key:hunter2@bucket/a"}):
        assert not validator.is_valid({**deployment["parameters"], **fields})


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_the_run_that_the_how_to_starts_by_hand_is_published(
    scheduled: Scheduled, prefect_server: PrefectServer
) -> None:
    """The worker gives it the ledger and the store, as an operator's would."""

    def published() -> dict[str, Any] | None:
        asked = {"flow_runs": {"name": {"any_": ["flights-by-origin@2013-01"]}}}
        runs = prefect_server.post("/flow_runs/filter", asked)
        return runs[0] if runs and runs[0]["state"]["type"] in ENDED else None

    run = waited_for(published, "the run")
    assert run["state"]["name"] == "Published", run["state"]
    assert run["deployment_id"] == scheduled.deployments["nightly"]["id"]
    assert set(run["tags"]) == {"suffice", "passengers", "flights-by-origin"}
    assert str(getattr(scheduled.place.charge("flights-by-origin", "2013-01"), "state", "")) == "published"


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_new_release_has_its_posterior_published(
    scheduled: Scheduled, prefect_server: PrefectServer
) -> None:
    """By the trigger that is shipped; and another from the form, with a prior as text."""
    deployment = scheduled.deployments["posterior"]["id"]

    def ended(prior: str) -> Callable[[], dict[str, Any] | None]:
        def find() -> dict[str, Any] | None:
            flow_runs = prefect_server.post(
                "/flow_runs/filter", {"flow_runs": {"deployment_id": {"any_": [deployment]}}}
            )
            asked = [
                flow_run for flow_run in flow_runs if flow_run["parameters"]["publication"]["prior"] == prior
            ]
            return next((flow_run for flow_run in asked if flow_run["state"]["type"] in ENDED), None)

        return find

    runs = {"Beta(1, 30)": waited_for(ended("Beta(1, 30)"), "the triggered publication")}
    question = {"release": "flights-by-origin@2013-01", "statistics": ["cancelled"], "prior": "Beta(2, 5)"}
    form = {"parameters": {"publication": question}}
    prefect_server.post(f"/deployments/{deployment}/create_flow_run", form)
    runs["Beta(2, 5)"] = waited_for(ended("Beta(2, 5)"), "the publication that was asked for")
    for prior, run in runs.items():
        assert run["state"]["name"] == "Published", (prior, run["state"])
    published = PublicationStore.open(scheduled.place.store).all()
    by_prior = {
        publication.request["statistics"][0]["priors"][0]["prior"]: publication for publication in published
    }
    for prior, run in runs.items():
        assert by_prior[prior].uri in run["state"]["message"]
        assert by_prior[prior].request["releases"][0]["label"] == "flights-by-origin@2013-01"
