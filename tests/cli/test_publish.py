"""The commands that publish, and that read what was published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suffice.errors import SufficeWarning
from suffice.publishing.publish import publish
from suffice.storage.signatures.signing import new_keys
from support.model_releases import publish_models
from support.pooled_cells import make_cells
from support.published import make_release

if TYPE_CHECKING:
    from support.running import Runner


@pytest.fixture
def store(tmp_path: Path) -> str:
    make_release(tmp_path / "store")
    return str(tmp_path / "store")


@pytest.mark.slow
def test_a_publication_is_made_found_listed_checked_and_fetched(
    store: str, suffice: Runner, tmp_path: Path
) -> None:
    words = ("publish", "flights", "flag", "--prior", "Beta(1, 9)", "--draws", "3", "--store", store)
    made = suffice.json(*words)
    assert made["status"] == "published"
    assert made["request"]["statistics"][0]["priors"] == [{"name": None, "prior": "Beta(1, 9)"}]
    assert {file["name"] for file in made["files"]} == {
        *("flag-summaries.parquet", "flag-draws.parquet", "flag-card.html")
    }
    again = suffice.json(*words)
    assert again == {**made, "status": "found"}
    text = suffice.text(*words)
    assert "nothing was computed" in text
    assert made["publication_id"] in text
    listed = suffice.json("publications", "list", "--store", store)
    assert [row["publication_id"] for row in listed["publications"]] == [made["publication_id"]]
    shown = suffice.json("publications", "show", made["publication_id"], "--store", store)
    (release,) = shown.pop("releases")
    assert release == {
        "release": "flights@all",
        "release_id": made["request"]["releases"][0]["release_id"],
        "state": "stands",
    }
    assert shown == {key: value for key, value in made.items() if key != "status"}
    assert suffice.json("publications", "show", made["uri"]) == {**shown, "releases": [release]}
    folder = tmp_path / "fetched"
    fetched = suffice.json("publications", "fetch", made["uri"], "--out", str(folder))
    assert {path.name for path in folder.iterdir()} == {
        *(file["path"] for file in made["files"]),
        "manifest.json",
    }
    assert len(fetched["files"]) == 4
    assert "exists" in suffice.text("publications", "fetch", made["uri"], "--out", str(folder), status=2)
    checked = suffice.json("publications", "verify", made["uri"])
    assert (checked["ok"], checked["files"]) == (True, 3)
    named = suffice.json("publications", "verify", made["publication_id"], "--store", store)
    assert named == checked
    assert "its id, whole" in suffice.text("publications", "show", made["publication_id"][:8], status=2)


@pytest.mark.slow
def test_pooled_cells_and_likelihoods_are_published(suffice: Runner, tmp_path: Path) -> None:
    make_cells(tmp_path / "store", 2)
    words = ("publish", "flights", "ill", "--store", str(tmp_path / "store"))
    made = suffice.json(*words, "--pooled", "region", "--pooled", "logit-normal", "--draws", "3")
    assert made["request"]["pooled"] == {
        "population": "logit-normal",
        "within": ["region"],
        **dict.fromkeys(("covariates", "formula", "over", "adjacency")),
    }
    assert {file["name"] for file in made["files"]} == {
        *("ill-summaries.parquet", "ill-pools.parquet", "ill-draws.parquet", "ill-card.html")
    }
    text = suffice.text(*words, "--pooled", "region", "--pooled", "logit-normal", "--draws", "3")
    assert "cells pooled     pooled logit-normal; within region" in text
    likelihood = suffice.json(*words, "--kind", "likelihood", "--formats", "parquet,csv")
    assert [file["role"] for file in likelihood["files"]] == ["likelihood"] * 3
    text = suffice.text(*words, "--kind", "likelihood", "--formats", "parquet,csv")
    assert "intervals" not in text
    checked = suffice.json("publications", "verify", likelihood["uri"])
    assert (checked["ok"], checked["files"]) == (True, 3)
    refused = suffice.text(*words, "--kind", "likelihood", "--pooled", "all", status=2)
    assert "each cell alone" in refused
    assert "likelihood has none" in suffice.text(*words, "--kind", "likelihood", "--draws", "9", status=2)


def test_nothing_is_written_into_publications(store: str, suffice: Runner, tmp_path: Path) -> None:
    """A store of publications alone has no suffice.json: its publications are what it is known by."""
    other = tmp_path / "other"
    words = ("flights", "flag", "--draws", "0", "--formats", "json")
    made = suffice.json("publish", *words, "--store", store, "--to", str(other))
    inside = other / "publications"
    for place in (inside / "new", inside / made["publication_id"] / "new"):
        said = suffice.text("publications", "fetch", made["uri"], "--out", str(place), status=2)
        assert "inside a store" in said
        assert not place.exists()
        again = suffice.text("publish", *words, "--store", store, "--to", str(place), status=2)
        assert "inside of a release or a store" in again
    elsewhere = tmp_path / "publications" / "new"  # a folder of that name that holds none
    suffice.text("publications", "fetch", made["uri"], "--out", str(elsewhere))
    assert (elsewhere / "manifest.json").is_file()


def test_a_store_that_is_not_there_is_not_an_empty_one(store: str, suffice: Runner, tmp_path: Path) -> None:
    said = suffice.text("publications", "list", "--store", str(tmp_path / "stroe"), status=5)
    assert "there is no store at" in said
    assert "check how it is written" in said
    assert suffice.json("publications", "list", "--store", store)["publications"] == []
    assert "no publications at" in suffice.text("publications", "list", "--store", store)
    other = str(tmp_path / "other")
    suffice.text("publish", "flights", "flag", "--draws", "0", "--store", store, "--to", other)
    assert len(suffice.json("publications", "list", "--store", other)["publications"]) == 1


@pytest.mark.slow
def test_what_is_shown_says_of_which_cells_it_is(store: str, suffice: Runner) -> None:
    words = ("publish", "flights", "flag", "--draws", "0", "--store", store)
    whole = suffice.text(*words)
    assert "cells " not in whole
    assert "draws            none" in whole
    part = suffice.text(*words, "--where", "month=2", "--roll-up", "place")
    assert "cells            month=2" in part
    assert "rolled up over   place" in part
    twice = suffice.text(*words, "--where", "month=1", "--where", "month=2", status=2)
    assert "ask for one at a time" in twice


def test_what_rests_on_a_release_that_was_withdrawn_later_says_so(
    store: str, suffice: Runner, tmp_path: Path
) -> None:
    words = ("publish", "flights", "flag", "--draws", "0", "--formats", "parquet", "--store", store)
    made = suffice.json(*words)
    elsewhere = suffice.json(*words, "--to", str(tmp_path / "elsewhere"))
    (row,) = suffice.json("publications", "list", "--store", store)["publications"]
    assert row["withdrawn"] == []
    suffice.json("withdraw", "flights", "--reason", "wrong unit", "--store", store)
    listed = suffice.json("publications", "list", "--store", store)
    assert [row["withdrawn"] for row in listed["publications"]] == [["flights@all"]]
    assert [withdrawal["reason"] for withdrawal in listed["withdrawn"]] == ["wrong unit"]
    assert "flights@all" in suffice.text("publications", "list", "--store", store).splitlines()[-1]
    for command in (("publications", "show"), ("publications", "verify"), ("verify",)):
        for uri in (made["uri"], elsewhere["uri"]):
            told = suffice.json(*command, uri, "--store", store)
            assert told.get("ok", True), command
            assert [release["state"] for release in told["releases"]] == ["withdrawn"]
            assert [withdrawal["reason"] for withdrawal in told["withdrawn"]] == ["wrong unit"]
            assert "which it rests on: withdrawn at" in suffice.text(*command, uri, "--store", store)
        alone = suffice.json(*command, elsewhere["uri"], "--store", str(tmp_path / "elsewhere"))
        assert [release["state"] for release in alone["releases"]] == ["not_found"]
        assert "withdrawn" not in alone
    beside = next(Path(store).glob("flights/all/*/withdrawn.json"))
    beside.write_text("{}", encoding="utf-8")
    told = suffice.json("publications", "show", made["uri"])
    assert [release["state"] for release in told["releases"]] == ["unreadable"]
    assert "not known" in suffice.text("publications", "verify", made["uri"])


def test_a_damaged_publication_is_named(store: str, suffice: Runner) -> None:
    made = suffice.json("publish", "flights", "flag", "--draws", "0", "--store", store)
    path = made["files"][0]["uri"]
    with open(path, "ab") as file:  # noqa: PTH123 - the test breaks it
        file.write(b"x")
    verified = suffice.json("publications", "verify", made["uri"], status=5)
    assert not verified["ok"]
    assert made["files"][0]["path"] in verified["problems"][0]
    folder = Path(store).parent / "new" / "fetched"
    said = suffice.text("publications", "fetch", made["uri"], "--out", str(folder), status=5)
    assert "the manifest states" in said
    assert not folder.exists()
    with open(f"{made['uri']}/manifest.json", "ab") as file:  # noqa: PTH123 - as above
        file.write(b" ")
    listed = suffice.json("publications", "list", "--store", store, status=5)
    assert made["publication_id"] in listed["problems"][0]


def test_what_somebody_else_published_is_told_to_whoever_signs(
    store: str, suffice: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("publish", "flights", "flag", "--draws", "0", "--store", store)
    for name in ("theirs", "ours"):
        new_keys(tmp_path / name)
    monkeypatch.setenv("SUFFICE_PUBLICATION_KEY", str(tmp_path / "ours"))
    suffice.json(*words)
    assert "(signature checked)" in suffice.text(*words)
    monkeypatch.setenv("SUFFICE_PUBLICATION_KEY", str(tmp_path / "theirs"))
    assert "(signature not checked)" in suffice.text(*words)
    with pytest.warns(SufficeWarning, match="did not sign it: whoever may write to the store"):
        publish("flights", "flag", draws=0, store=store)
    monkeypatch.delenv("SUFFICE_PUBLICATION_KEY")
    assert "(signature not checked)" in suffice.text(*words)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("priors.yaml", "flat: Beta(1, 1)\nlow: Beta(1, 9)\n"),
        ("priors.toml", 'flat = "Beta(1, 1)"\nlow = "Beta(1, 9)"\n'),
        ("priors.json", '{"flat": "Beta(1, 1)", "low": "Beta(1, 9)"}'),
    ],
)
def test_named_priors_come_from_a_file(
    store: str, suffice: Runner, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    words = ("publish", "flights", "flag", "--priors", str(tmp_path / name), "--draws", "0")
    made = suffice.json(*words, "--store", store)
    assert made["request"]["kind"] == "prior_sensitivity"
    assert made["request"]["statistics"][0]["priors"] == [
        {"name": "flat", "prior": "Beta(1, 1)"},
        {"name": "low", "prior": "Beta(1, 9)"},
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("one.yaml", "flat: Beta(1, 1)\n"),
        ("list.yaml", "- Beta(1, 1)\n- Beta(1, 9)\n"),
        ("nested.yaml", "flat:\n  a: Beta(1, 1)\nlow: Beta(1, 9)\n"),
        ("broken.yaml", "flat: [\n"),
        ("number.toml", "flat = 1\nlow = 2\n"),
        ("broken.toml", "flat = \n"),
        ("wrong.yaml", "flat: Beta(1, 1)\nlow: Normal(0, 1)\n"),
        ("absent.yaml", None),
    ],
)
def test_a_file_of_no_priors_is_refused(
    store: str, suffice: Runner, tmp_path: Path, name: str, text: str | None
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = ("publish", "flights", "flag", "--priors", str(tmp_path / name), "--draws", "0")
    said = suffice.text(*words, "--store", store, status=2)
    assert "internal" not in said
    assert name in said or "prior must be Beta" in said


@pytest.mark.slow
def test_priors_are_given_by_statistic(store: str, suffice: Runner) -> None:
    words = ("publish", "flights", "flag", "kind", "--draws", "0", "--store", store)
    made = suffice.json(*words, "--prior", "flag=Beta(2, 2)", "--prior", "kind = Dirichlet(3)")
    priors = [asked["priors"][0]["prior"] for asked in made["request"]["statistics"]]
    assert priors == ["Beta(2, 2)", "Dirichlet(3)"]
    twice = suffice.text(*words, "--prior", "flag=Beta(2, 2)", "--prior", "flag=Beta(1, 2)", status=2)
    assert "given twice" in twice
    assert "names its statistic" in suffice.text(*words, "--prior", "a", "--prior", "b", status=2)


def test_a_models_command_publishes_what_it_would_print(suffice: Runner, tmp_path: Path) -> None:
    models = publish_models(tmp_path / "models")
    words = ("model", "transitions", "models", "steps", "--store", models, "--where", "origin=JFK")
    more = ("--draws", "10", "--steps", "2", "--publish-to", str(tmp_path / "published"))
    made = suffice.json(*words, *more)
    assert made["request"]["model"] == {"name": "transitions", "steps": [2], "start": None, "to": None}
    assert suffice.json(*words, *more)["status"] == "found"
    refused = suffice.text(*words, *more, "--draws-out", str(tmp_path / "draws.csv"), status=2)
    assert "--publish-to" in refused


@pytest.mark.parametrize(
    "words",
    [
        ("posterior", "flights", "flag", "--draws-out", "s3://bucket/draws.parquet"),
        ("posterior", "flights", "flag", "--card", "gs://bucket/card.html"),
        ("posterior", "flights", "flag", "--plot", "s3://bucket/plot.png"),
        ("table", "flights", "flag", "--out", "s3://bucket/table.csv"),
        ("pool", "flag", "--disjoint", "a", "--disjoint", "b", "--draws-out", "az://bucket@a/draws.nc"),
        ("model", "hidden-markov", "flights", "--states", "1", "--draws-out", "s3://bucket/draws.csv"),
        ("model", "transitions", "flights", "flag", "--draws-out", "s3://bucket/draws.csv"),
        ("model", "query", "flights", "flag", "--target", "x", "--draws-out", "s3://bucket/draws.csv"),
        ("publications", "fetch", "0" * 32, "--out", "s3://bucket/folder"),
    ],
)
def test_an_address_as_a_file_is_refused_and_says_where_publications_go(
    store: str, suffice: Runner, words: tuple[str, ...]
) -> None:
    said = suffice.text(*words, "--store", store, status=2)
    assert "://bucket" in said
    assert "suffice publish --to STORE" in said


def test_json_names_its_source(store: str, suffice: Runner) -> None:
    for words in (
        ("posterior", "flights", "flag"),
        ("table", "flights", "flag"),
        ("compare-priors", "flights", "flag", "--prior", "Beta(1, 1)", "--prior", "Beta(1, 9)"),
    ):
        source = suffice.json(*words, "--store", store)["source"]
        assert source["releases"][0]["label"] == "flights@all"
        assert len(source["releases"][0]["manifest_sha256"]) == 64
        assert source["statistic"] == "flag"
        assert source["written_by"].startswith("suffice ")
        assert ("prior" in source) == (words[0] != "table")


def test_files_of_a_command_say_what_they_come_from(store: str, suffice: Runner, tmp_path: Path) -> None:
    out = tmp_path / "posterior.csv"
    words = ("posterior", "flights", "flag", "--draws", "2", "--seed", "4", "--store", store)
    suffice.text(*words, "--out", str(out))
    described = json.loads((tmp_path / "posterior.csv-metadata.json").read_text(encoding="utf-8"))
    source = described["notes"][0]["source"]
    assert source["releases"][0]["label"] == "flights@all"
    assert (source["statistic"], source["method"], source["seed"]) == ("flag", "noise-aware", 4)
    assert "exists" in suffice.text(*words, "--out", str(out), status=2)
    suffice.text(*words, "--out", str(out), "--overwrite")
    beside = tmp_path / "other.csv-metadata.json"
    beside.write_text("{}", encoding="utf-8")
    refused = suffice.text(*words, "--out", str(tmp_path / "other.csv"), "--overwrite", status=2)
    assert beside.name in refused
    assert beside.read_text(encoding="utf-8") == "{}"
