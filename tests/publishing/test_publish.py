"""Publishing posteriors: what stands there is what was asked, once, whoever asks and however often."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import multiprocessing
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import suffice
from suffice import models
from suffice.errors import PinnedError, PriorError, ReleaseWithdrawnError, StoreError, UsageError
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.publishing import publish as publishing
from suffice.publishing.asking import question_of
from suffice.publishing.publish import carry_out, publications_of, publish
from suffice.storage.objects.object_store import Patience
from suffice.storage.operations.withdrawing import withdraw
from suffice.storage.publications.publication_store import PublicationStore
from support import releases
from support.hidden_states import publish_crashes
from support.model_releases import publish_models
from support.profiles import write_profile
from support.published import KEYS, make_release, publish_at_once, publish_until
from support.table_releases import publish_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice import Publication
    from suffice.pipeline.ask.pooling.release import Release

_SPAWN = multiprocessing.get_context("spawn")
EVERY_FORMAT = ("parquet", "csv", "json", "netcdf", "card")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return make_release(tmp_path_factory.mktemp("releases"))


@pytest.fixture
def months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Release]:
    made = []
    for number in (1, 2):
        monkeypatch.setattr(releases, "RELEASE_ID", f"{number:016x}")
        window = {"column": "day", "every": "month"}
        plan = releases.make_plan(
            groups={"place": ["p", "q"]},
            statistics={"flag": {"family": "bernoulli", "column": "c"}},
            window=window,
        )
        values = {"flag": np.array([[900, 100 * number], [500, 30]], dtype=object)}
        folder = tmp_path / f"store{number}"
        made.append(suffice.open_release(releases.publish(folder, plan, values, window=f"2013-0{number}")))
    return made


def rows_of(publication: Publication, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(publication.read(name))).to_pylist()
    return rows


@pytest.mark.slow
def test_what_is_published_is_the_posterior_and_says_so_everywhere(release: Release, tmp_path: Path) -> None:
    made = publish(
        release, "flag", prior="Beta(1,9)", draws=40, seed=5, formats=EVERY_FORMAT, to=str(tmp_path)
    )
    expected = summarise(release.posterior("flag", prior="Beta(1, 9)"))
    assert [row["mean"] for row in rows_of(made, "flag-summaries.parquet")] == [r["mean"] for r in expected]
    names = {file.name: file for file in made.files}
    assert names.keys() == {
        *("flag-summaries.parquet", "flag-draws.parquet", "flag-summaries.csv", "flag-draws.csv"),
        *("flag-summaries.csv-metadata.json", "flag-draws.csv-metadata.json"),
        *("flag-summaries.json", "flag-draws.nc", "flag-card.html"),
    }
    draws = rows_of(made, "flag-draws.parquet")
    assert len(draws) == names["flag-draws.parquet"].rows == 40 * 6
    assert [row["value"] for row in draws[:6]] == [row["value"] for row in draws if row["draw"] == 0]
    document = json.loads(made.read("flag-summaries.json"))
    assert document["rows"] == rows_of(made, "flag-summaries.parquet")
    sources = [document["source"]]
    tables = [made.read(name) for name in ("flag-summaries.parquet", "flag-draws.parquet")]
    sources += [json.loads(pq.read_schema(io.BytesIO(data)).metadata[b"source"]) for data in tables]
    for name in ("flag-summaries.csv", "flag-draws.csv"):
        described = json.loads(made.read(f"{name}-metadata.json"))
        assert described["url"] == names[name].path
        sources.append(described["notes"][0]["source"])
    import xarray

    path = tmp_path / "draws.nc"
    path.write_bytes(made.read("flag-draws.nc"))
    with xarray.open_dataset(path, group="posterior", engine="h5netcdf") as opened:
        sources.append(json.loads(opened.attrs["source"]))
        assert opened.attrs["release"] == release.label
        values = opened["probability"].to_numpy()[0]
    assert values.ravel().tolist() == [row["value"] for row in draws], "one seed, two sets of draws"
    (reference,) = made.request["releases"]
    for source in sources:
        assert source["releases"] == [reference]
        assert source["statistic"] == "flag"
        assert source["method"] == "noise-aware"
        assert source["prior"] == "Beta(1, 9)"
        assert source["n_prior"] == "Reciprocal(1000000000000)"
        assert (source["mass"], source["draws"], source["seed"]) == (0.95, 40, 5)
        assert source["publication_id"] == made.publication_id
    assert made.manifest["epsilon"] == {release.release_id: "1"}
    assert made.manifest["cost"] == "0"


@pytest.mark.slow
def test_draws_written_in_python_say_what_they_are_of(release: Release, tmp_path: Path) -> None:
    import xarray

    release.posterior("flag", method="plug-in").to_netcdf(tmp_path / "draws.nc", draws=3)
    with xarray.open_dataset(tmp_path / "draws.nc", group="posterior", engine="h5netcdf") as opened:
        assert opened.attrs["release"] == f"{release.label} {release.release_id}"
        assert opened.attrs["method"] == "plug-in: not calibrated"
        assert opened.attrs["prior"] == "Beta(1, 1)"
        assert opened.attrs["inference_library_version"] == suffice.__version__


@pytest.mark.slow
def test_hostile_keys_are_inert_in_every_file(release: Release, tmp_path: Path) -> None:
    made = publish(release, ["flag", "kind"], draws=2, formats=["csv", "card"], to=str(tmp_path))
    rows = list(csv.DictReader(io.StringIO(made.read("kind-draws.csv").decode(), newline="")))
    assert {row["place"] for row in rows} == {"'=1+1", *KEYS[1:]}
    assert {row["category"] for row in rows} == {"x", "'=y"}
    page = made.read("flag-card.html").decode()
    assert "<script" not in page
    assert "&lt;script&gt;x" in page


def test_asking_again_computes_nothing(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = publish(release, ["flag", "kind"], draws=3, where={"month": 1}, to=str(tmp_path))
    stood = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    def computed(*_: object) -> Iterator[Any]:
        pytest.fail("something was computed")
        yield

    monkeypatch.setattr(publishing, "answers", computed)
    for prior in (None, {"flag": "Beta(1.0,1)"}, {"kind": suffice.Dirichlet(1)}):
        question = question_of(release, ["flag", "kind"], draws=3, where={"month": "1"}, prior=prior)
        again = carry_out(question, publications_of(question, tmp_path))
        assert not again.is_new
        assert again.publication.data == first.data
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == stood
    with pytest.raises(pytest.fail.Exception, match="something was computed"):
        publish(release, ["flag", "kind"], draws=4, where={"month": 1}, to=str(tmp_path))


@pytest.mark.slow
def test_what_was_killed_midway_is_resumed(release: Release, tmp_path: Path) -> None:
    process = _SPAWN.Process(target=publish_until, args=(release.uri, str(tmp_path), 3))
    process.start()
    process.join(timeout=120)
    assert process.exitcode == -signal.SIGKILL
    question = question_of(release, ["flag", "kind"], draws=20)
    publications = PublicationStore.open(tmp_path)
    left = {file.path for file in publications.files(question.request.publication_id)}
    assert len(left) == 3
    assert publications.find(question.request.publication_id) is None
    resumed = carry_out(question, publications)
    assert resumed.is_new
    assert left < {file.path for file in resumed.publication.files}, "what stood there was not used"


@pytest.mark.slow
def test_of_two_at_once_one_wins_and_both_get_it(release: Release, tmp_path: Path) -> None:
    barrier, results = _SPAWN.Barrier(2), _SPAWN.SimpleQueue()
    writers = [
        _SPAWN.Process(target=publish_at_once, args=(release.uri, str(tmp_path), barrier, results))
        for _ in range(2)
    ]
    for process in writers:
        process.start()
    got = [results.get() for _ in writers]
    for process in writers:
        process.join(timeout=60)
        assert process.exitcode == 0
    assert got[0][1] == got[1][1]
    assert any(is_new for is_new, _ in got)


@pytest.mark.slow
def test_releases_are_pooled_and_compared(months: list[Release], tmp_path: Path) -> None:
    first, second = months
    pooled = publish(first, "flag", disjoint=[second], draws=5, formats="parquet", to=str(tmp_path))
    expected = suffice.pool("flag", disjoint=months).mean("probability")
    means = [row["mean"] for row in rows_of(pooled, "flag-summaries.parquet")]
    assert means == pytest.approx(expected.tolist(), rel=1e-12)
    assert pooled.manifest["epsilon"] == {month.release_id: "1" for month in months}
    compared = publish(first, "flag", compare=second, draws=500, formats="parquet", to=str(tmp_path))
    changes = rows_of(compared, "flag-summaries.parquet")
    comparison = suffice.compare(first, second, "flag")
    assert [row["change"] for row in changes] == [row["change"] for row in comparison.rows()]
    draws = rows_of(compared, "flag-draws.parquet")
    assert {row["contrast"] for row in draws} == {"difference", "ratio"}
    assert len(draws) == 2 * 500 * 2
    other_way = publish(second, "flag", compare=first, draws=500, formats="parquet", to=str(tmp_path))
    assert other_way.publication_id != compared.publication_id
    with pytest.raises(UsageError, match="one at a"):
        publish(first, "flag", compare=second, disjoint=[second], to=str(tmp_path))


def test_cells_are_rolled_up(release: Release, tmp_path: Path) -> None:
    made = publish(release, "flag", roll_up="place", draws=0, to=str(tmp_path))
    rows = rows_of(made, "flag-summaries.parquet")
    merged = suffice.roll_up(release.statistic("flag"), "place").posterior()
    assert {row["month"] for row in rows} == {1, 2}
    shares = [row for row in rows if row["parameter"] == "share"]
    assert [row["mean"] for row in shares] == merged.mean("share").tolist()
    assert {row["parameter"] for row in rows} == {"n", "total", "share"}
    assert not any(file.role == "draws" for file in made.files)
    terms: Any = {"roll_up": "place", "assume": "one parameter", "formats": "card", "to": str(tmp_path)}
    shared = publish(release, "flag", **terms)
    assert shared.publication_id != made.publication_id
    (page,) = (file.name for file in shared.files if file.role == "card")
    assert "assumed to be the same in" in shared.read(page).decode()
    (page,) = (file.name for file in made.files if file.role == "card")
    assert "of the released records of" in made.read(page).decode()
    for refused in ({"prior": "Beta(1, 9)"}, {"n_prior": 10}, {"assume": "nothing"}):
        with pytest.raises(UsageError, match="roll-up"):
            publish(release, "flag", roll_up="place", to=str(tmp_path), **refused)
    with pytest.raises(UsageError, match="only cells that are rolled up"):
        publish(release, "flag", assume="one parameter", to=str(tmp_path))


@pytest.mark.slow
def test_titles_and_files_tell_what_was_asked(
    release: Release, months: list[Release], tmp_path: Path
) -> None:
    def asked(first: Release, names: list[str], **terms: Any) -> tuple[str, dict[str, Any]]:
        made = publish(first, names, draws=0, formats="json", to=str(tmp_path), **terms)
        return made.manifest["title"], json.loads(made.read("flag-summaries.json"))["source"]

    title, source = asked(release, ["flag"])
    assert title == f"flag under Beta(1, 1): {release.label}"
    assert not source.keys() & {"where", "rolled_up_over", "pooled_as"}
    title, source = asked(release, ["flag", "kind"], where={"place": KEYS[0]}, method="plug-in")
    stated = "flag under Beta(1, 1), kind under Dirichlet(1)"
    assert title == f"{stated}: {release.label}, place={KEYS[0]}, plug-in"
    assert source["where"] == f"place={KEYS[0]}"
    title, source = asked(release, ["flag"], roll_up="place", where={"month": 2})
    assert title.endswith(", rolled up over place, month=2")
    assert (source["where"], source["rolled_up_over"]) == ("month=2", "place")
    title, _ = asked(release, ["flag"], priors={"flat": "Beta(1, 1)", "low": "Beta(1, 9)"})
    assert title.startswith("flag under 2 priors: ")
    assert asked(months[0], ["flag"], disjoint=months[1:])[1]["pooled_as"] == "disjoint"


@pytest.mark.slow
def test_several_priors_stand_side_by_side(release: Release, tmp_path: Path) -> None:
    priors = {"flat": "Beta(1, 1)", "low": "Beta(1, 9)", "wide": "Uniform(0, 1)"}
    where = {"place": KEYS[0]}
    made = publish(release, "flag", priors=priors, where=where, draws=3, to=str(tmp_path))
    rows = rows_of(made, "flag-summaries.parquet")
    evidence = suffice.compare_priors(release, "flag", list(priors.values()), where=where).log_bayes_factors
    for position, (name, prior) in enumerate(priors.items()):
        of_prior = [row for row in rows if row["prior_name"] == name]
        assert [row["mean"] for row in of_prior] == release.posterior("flag", prior, where=where).mean(
            "probability"
        ).tolist()
        assert [row["log_bayes_factor"] for row in of_prior] == pytest.approx(evidence[:, position].tolist())
    assert {row["prior_name"] for row in rows_of(made, "flag-draws.parquet")} == set(priors)


def test_a_plug_in_posterior_is_called_so(release: Release, tmp_path: Path) -> None:
    made = publish(release, "flag", method="plug-in", draws=0, formats="json", to=str(tmp_path))
    source = json.loads(made.read("flag-summaries.json"))["source"]
    assert source["method"] == "plug-in: not calibrated"
    assert any("not calibrated" in note for note in source["notes"])


@pytest.mark.slow
def test_models_are_published_as_their_commands_print_them(tmp_path: Path) -> None:
    chains = suffice.open_release("models", store=publish_models(tmp_path / "models"))
    where = {"origin": "JFK"}
    made = publish(
        chains, "steps", model={"name": "transitions", "steps": [2]}, where=where, draws=20, to=str(tmp_path)
    )
    rows = rows_of(made, "steps-transitions-summaries.parquet")
    expected = models.chain(chains, "steps", where=where, draws=20, rng=1).rows(steps=[2])
    assert [(row["quantity"], row["from"], row["to"]) for row in rows] == [
        (row["quantity"], row["from"], row["to"]) for row in expected
    ]
    publish_tables(tmp_path / "tables")
    tables = suffice.open_release("tables", store=tmp_path / "tables")
    asked = {"name": "query", "target": ["well"], "given": {"severe": "no"}, "do": {"treated": "yes"}}
    publication = publish(tables, "causes", model=asked, method="plug-in", draws=50, to=str(tmp_path))
    shares = rows_of(publication, "causes-query-summaries.parquet")
    assert sum(row["mean"] for row in shares) == pytest.approx(len(shares) / 2, abs=1e-9)
    said = "query; target well; given severe=no; do treated=yes"
    assert said in publication.manifest["title"]
    metadata = pq.read_metadata(io.BytesIO(publication.read("causes-query-draws.parquet"))).metadata
    assert json.loads(metadata[b"source"])["model"] == said
    crashes = suffice.open_release("crashes", store=publish_crashes(tmp_path / "crashes")[0])
    hidden = {
        "name": "hidden_markov",
        "states": [2],
        "chain": ["STATE"],
        "time": ["YEAR", "MONTH"],
        "sweeps": 8,
    }
    fit = publish(
        crashes, ["manner", "drunk"], model=hidden, draws=4, formats=["parquet", "netcdf"], to=str(tmp_path)
    )
    assert len(rows_of(fit, "hidden_markov-cells.parquet")) == 144
    assert fit.manifest["diagnostics"]["hidden_markov"]
    assert {file.format for file in fit.files} == {"parquet", "netcdf"}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"statistics": "nope"}, "has no statistic"),
        ({"statistics": ["flag", "flag"]}, "named twice"),
        ({"statistics": []}, "name one or more statistics"),
        ({"where": {"place": "EWR"}}, "no cell"),
        ({"method": "exact"}, "no method"),
        ({"mass": 1.0}, "mass"),
        ({"draws": -1}, "draws"),
        ({"seed": 2**53}, "seed"),
        ({"formats": ["pdf"]}, "formats"),
        ({"formats": []}, "formats"),
        ({"prior": {"nope": "Beta(1, 1)"}}, "none of the statistics"),
        ({"priors": {"one": "Beta(1, 1)"}}, "two priors"),
        ({"priors": {"a": "Beta(1, 1)", "b": "Beta(1, 2)"}, "prior": "Beta(1, 1)"}, "leave one out"),
        ({"priors": {"a": "Beta(1, 1)", "b": "Beta(1, 2)"}, "formats": ["netcdf"]}, "netcdf"),
        ({"draws": 0, "formats": ["netcdf"]}, "netcdf"),
        ({"roll_up": "day"}, "roll_up"),
        ({"roll_up": "place", "method": "plug-in"}, "roll up"),
        ({"method": "plug-in", "n_prior": 5}, "prior of N"),
        ({"model": {"name": "oracle"}}, "model"),
        ({"model": {"name": "transitions", "steps": ["x"]}}, "steps"),
        ({"model": {"name": "transitions"}, "series": "self", "statistics": ["flag"]}, "series|one release"),
        ({"publish_timeout": float("nan")}, "publish_timeout"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_written(
    release: Release, tmp_path: Path, changes: dict[str, Any], match: str
) -> None:
    terms: dict[str, Any] = {"statistics": "flag", **changes}
    if terms.get("series") == "self":
        terms["series"] = [release]
    with pytest.raises(UsageError, match=match):
        publish(release, **terms, to=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_prior_that_text_cannot_hold_is_refused(release: Release, tmp_path: Path) -> None:
    from scipy import stats

    for prior in (suffice.Density(lambda p: 2 * np.log(p), 0, 1), stats.beta(2, 3)):
        with pytest.raises(PriorError, match="text"):
            publish(release, "flag", prior=prior, to=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_card_that_no_one_reads_is_refused_before_any_work(tmp_path: Path) -> None:
    large = make_release(tmp_path / "large", groups={"cell": {"range": [1, 500]}})
    with pytest.raises(UsageError, match="card"):
        publish(large, "flag", formats=["card"], method="plug-in")
    made = publish(large, "flag", method="plug-in", draws=0)
    assert made.request["formats"] == ["parquet"]


def test_a_store_that_cannot_be_written_shows_nothing(release: Release, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(StoreError):
        publish(release, "flag", draws=0, to=str(place), publish_timeout=0)


@pytest.mark.parametrize("below", ["", "..", "../.."])
def test_nothing_is_published_inside_of_a_release_or_a_store(release: Release, below: str) -> None:
    place = f"{release.uri}/{below}"
    with pytest.raises(UsageError, match="inside of a release or a store"):
        publish(release, "flag", draws=5, to=place)


def test_a_copy_needs_a_store_to_publish_in(release: Release, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(release.uri, tmp_path / "copy")
    with pytest.raises(UsageError, match="--to"):
        publish(str(tmp_path / "copy"), "flag", draws=0)


def test_a_profile_pins_where_is_published(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = tmp_path / "allowed"
    write_profile(tmp_path / "suffice.toml", publications=[str(allowed)])
    monkeypatch.setenv("SUFFICE_CONFIG", str(tmp_path / "suffice.toml"))
    with pytest.raises(PinnedError, match="to"):
        publish(release, "flag", draws=0, to=str(tmp_path / "elsewhere"))
    made = publish(release, "flag", draws=0)
    assert made.uri.startswith(str(allowed))
    assert not (tmp_path / "elsewhere").exists()


def test_a_withdrawn_release_is_refused_or_named_in_every_file(tmp_path: Path) -> None:
    opened = make_release(tmp_path / "store")
    withdraw(opened.uri, reason="a wrong unit", created=releases.NOW)
    with pytest.raises(ReleaseWithdrawnError):
        publish(opened.uri, "flag", draws=0)
    made = publish(opened.uri, "flag", draws=0, formats="json", allow_withdrawn=True)
    (stated,) = json.loads(made.read("flag-summaries.json"))["source"]["releases"]
    assert "a wrong unit" in stated["withdrawn"]


class FailingMidway:
    """Objects that cannot be written for ten minutes, from the second file on."""

    def __init__(self, objects: Any, clock: list[float]) -> None:
        self._objects, self._clock, self._until = objects, clock, float("inf")
        self._files = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def put_new(self, key: str, data: bytes) -> None:
        if "/" in key:
            self._files += 1
        if self._files == 2 and self._until == float("inf"):
            self._until = self._clock[0] + 600.0
        if self._files >= 2 and self._clock[0] < self._until:
            raise StoreError("the server is busy", may_pass=True)
        self._objects.put_new(key, data)


def test_a_store_that_fails_for_ten_minutes_shows_all_or_nothing(release: Release, tmp_path: Path) -> None:
    question, clock = question_of(release, "flag", draws=5), [0.0]
    publications = PublicationStore.open(tmp_path)

    def sleep(seconds: float) -> bool:
        clock[0] += seconds
        assert publications.find(question.request.publication_id) is None
        return True

    failing = dataclasses.replace(
        publications,
        objects=FailingMidway(publications.objects, clock),
        patience=Patience(seconds=3600.0, sleep=sleep, clock=lambda: clock[0]),
    )
    publication = carry_out(question, failing)
    assert publication.is_new
    assert 600 <= clock[0] < 700
    standing = publications.find(question.request.publication_id)
    assert standing is not None
    assert all(standing.read(file.name) for file in standing.files)
