"""What a deployment of `publish_posterior` states of pooled cells is what `suffice publish` asks."""

from __future__ import annotations

import hashlib
import types
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice.errors import PinnedError, UsageError
from suffice.flows.posterior import _published
from suffice.flows.publication_parameters import PublicationParameters
from suffice.profile.model import DeploymentProfile
from suffice.publishing.asking import question_of
from suffice.publishing.public_files import table_file
from support.pooled_cells import make_cells
from support.series_store import SeriesStore
from support.web_server import serving

if TYPE_CHECKING:
    from pathlib import Path

STATED: dict[str, Any] = {"release": "cells", "statistics": ["ill"]}


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        (
            {"pooled": ["region", "logit-normal"], "draws": 3},
            {"pooled": ["logit-normal", "region"], "draws": 3},
        ),
        ({"pooled": ["all"], "over": "town"}, {"pooled": suffice.Pooling(over="town")}),
        ({"kind": "likelihood"}, {"kind": "likelihood"}),
        ({}, {}),
    ],
    ids=["names", "over", "likelihood", "neither"],
)
def test_a_deployment_asks_what_a_command_asks(
    fields: dict[str, Any], asked: dict[str, Any], tmp_path: Path
) -> None:
    release = make_cells(tmp_path, 2)
    terms = PublicationParameters(**STATED, **fields).terms({})
    of_flow = question_of(release, ["ill"], **terms).request
    assert of_flow == question_of(release, "ill", **asked).request


def test_tables_are_stated_by_their_bytes(tmp_path: Path) -> None:
    release = make_cells(tmp_path, 2)
    table = tmp_path / "towns.csv"
    table.write_text("region,income\nnorth,1\nsouth,2\n", encoding="utf-8")
    fields: dict[str, Any] = {"pooled": ["logit-normal"], "formula": "~ income"}
    asked = PublicationParameters(**STATED, **fields, covariates=str(table))
    assert asked.tables == {"covariates": str(table)}
    of_flow = question_of(release, ["ill"], **asked.terms(asked.tables)).request
    pooling = suffice.Pooling(population="logit-normal", covariates=table, formula="~ income")
    assert of_flow == question_of(release, "ill", pooled=pooling).request
    assert of_flow.pooled is not None
    assert of_flow.pooled.covariates == hashlib.sha256(table.read_bytes()).hexdigest()
    pairs = PublicationParameters(**STATED, adjacency="pairs.csv")
    assert pairs.terms(pairs.tables)["pooled"] == suffice.Pooling(adjacency="pairs.csv")


def test_a_table_is_read_where_it_is_pinned(tmp_path: Path) -> None:
    """From a folder as it stands, from a website as a copy; links and everything else are refused."""
    tables, copies = tmp_path / "tables", tmp_path / "copies"
    for folder in (tables, copies, tmp_path / "releases"):
        folder.mkdir()
    (tables / "towns.csv").write_bytes(b"town,income\n1,2\n")
    (tmp_path / "secret.csv").write_bytes(b"town,income\n1,2\n")
    (tables / "link.csv").symlink_to(tmp_path / "secret.csv")
    with serving() as server:
        server.serve_folder(tables, "/tables")
        url = f"{server.url}/tables"
        pinned = DeploymentProfile.model_validate({"tables": [str(tables), url], "stores": [str(tmp_path)]})
        in_stores = DeploymentProfile.model_validate({"stores": [str(tmp_path / "releases")]})
        here = str(tables / "towns.csv")
        for profile in (pinned, None, DeploymentProfile()):
            assert table_file("covariates", here, copies, profile=profile) == here
        copied = table_file("covariates", f"{url}/towns.csv", copies, profile=pinned)
        assert copied == str(copies / "covariates" / "towns.csv")
        assert (copies / "covariates" / "towns.csv").read_bytes() == (tables / "towns.csv").read_bytes()
        with pytest.raises(UsageError, match=r"^adjacency: there is no file at .*/none.csv"):
            table_file("adjacency", f"{url}/none.csv", copies, profile=pinned)
        for place in (str(tables / "link.csv"), str(tmp_path / "secret.csv"), "https://other.example/a.csv"):
            with pytest.raises(PinnedError, match=r"^covariates: this lies outside"):
                table_file("covariates", place, copies, profile=pinned)
        with pytest.raises(PinnedError):
            table_file("covariates", here, copies, profile=in_stores)


@pytest.mark.slow
def test_a_run_publishes_windows_that_walk_and_cells_with_covariates(tmp_path: Path) -> None:
    """Without a server: what is carried out below the flow."""
    reporter = types.SimpleNamespace(name_run=lambda *_: None, notice=lambda *_: None)
    run: Any = types.SimpleNamespace(reporter=reporter)
    store = SeriesStore(tmp_path / "releases")
    for month in (1, 2, 3):
        store.publish(f"2025-0{month}", [0.1 * month, 0.2, 0.3, 0.4], groups={"place": ["a", "b", "c", "d"]})
    stated = {"statistics": ["cancelled"], "draws": 0, "store": str(tmp_path / "releases")}
    walk = PublicationParameters.model_validate({"release": "flights", "over": "window", **stated})
    series = suffice.open_series("flights", store=tmp_path / "releases")
    of_command = suffice.publish(series, "cancelled", pooled=True, draws=0)
    assert _published(run, walk).facts["uri"] == of_command.uri
    with serving() as server:
        server.files["/tables/places.csv"] = b"place,income\na,1\nb,3\nc,2\nd,5\n"
        url = f"{server.url}/tables/places.csv"
        asked = {"release": "flights@2025-03", "covariates": url, "formula": "~ income", **stated}
        result = _published(run, PublicationParameters.model_validate(asked))
        server.files["/tables/places.csv"] = b"place,income\na,1\nb,3\nc,2\n"
        refused = _published(run, PublicationParameters.model_validate(asked))
    made = suffice.open_publication(result.facts["uri"])
    assert len(made.pooled().coefficients) == 1
    digest = hashlib.sha256(b"place,income\na,1\nb,3\nc,2\nd,5\n").hexdigest()
    assert made.request["pooled"]["covariates"] == digest
    assert "places.csv has no row of place=d" in refused.message
