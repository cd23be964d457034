"""Published pooled cells and likelihoods: what stands there is what Python computes, and is found again."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.publishing import publish as publishing
from suffice.publishing.publish import publish
from support.pooled_cells import make_cells
from support.published import make_release
from support.series_store import SeriesStore

if TYPE_CHECKING:
    from pathlib import Path

    from suffice import Publication
    from suffice.pipeline.ask.pooling.release import Release


ORIGINS = {"origin": ["JFK", "LGA"]}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return make_cells(tmp_path_factory.mktemp("cells"), 11)


def rows_of(publication: Publication, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(publication.read(name))).to_pylist()
    return rows


@pytest.mark.slow
def test_pooled_cells_stand_beside_themselves_alone(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = publish(release, "ill", pooled="region", draws=20, formats=("parquet", "json", "csv"), to=tmp_path)
    together: Any = release.posterior("ill", pooled="region")
    rows = rows_of(made, "ill-summaries.parquet")
    for before, posterior in (("", together), ("alone_", together.alone)):
        exact = summarise(posterior, interval="central")
        for name in ("mean", "sd", "lower", "upper"):
            np.testing.assert_allclose(
                [row[f"{before}{name}"] for row in rows], [row[name] for row in exact], rtol=1e-9
            )
    np.testing.assert_allclose([row["own_share"] for row in rows], together.own_share)
    np.testing.assert_allclose([row["outside"] for row in rows], together.outside)
    pools = rows_of(made, "ill-pools.parquet")
    assert [(pool["region"], pool["cells"]) for pool in pools] == [("north", 11), ("south", 11)]
    for pool, known in zip(pools, together.pools, strict=True):
        assert (pool["location"], pool["spread_sd"]) == pytest.approx((known.location[0], known.spread[1]))
        assert pool["identified"] == known.identified
        assert pool["centre"] == pytest.approx(1.0 / (1.0 + np.exp(-known.location[0])))
        assert pool["in_words"] == together.rows_of
    document = json.loads(made.read("ill-summaries.json"))
    assert document["rows"] == rows
    assert document["pools"] == pools
    assert document["source"]["model"] == "pooled contaminated; within region"
    assert document["source"]["prior"].startswith("one population, contaminated")
    assert f"parameters: {together.rows_of}" in document["source"]["notes"]
    draws = rows_of(made, "ill-draws.parquet")
    assert len(draws) == 20 * 22
    # Asked again in other words, nothing is computed.
    monkeypatch.setattr(publishing, "answers", lambda *_: pytest.fail("something was computed"))
    again = publish(
        release,
        ["ill"],
        pooled=suffice.Pooling(within=("region",)),
        draws=20,
        formats=("csv", "json", "parquet"),
        to=tmp_path,
    )
    assert again.data == made.data


@pytest.mark.slow
def test_a_pool_in_two_publications_has_the_same_numbers(release: Release, tmp_path: Path) -> None:
    """Of cells that are kept alone: they are pooled among themselves."""
    part = publish(release, "visits", pooled="gamma", draws=0, where={"region": "north"}, to=tmp_path)
    exact = release.posterior("visits", pooled="gamma", where={"region": "north"})
    rows = rows_of(part, "visits-summaries.parquet")
    np.testing.assert_allclose([row["mean"] for row in rows], exact.mean(), rtol=1e-9)
    assert {file.role for file in part.files} == {"summaries", "card"}
    elsewhere = publish(
        release, "visits", pooled="gamma", draws=0, where={"region": "north"}, to=tmp_path / "elsewhere"
    )
    assert [file.sha256 for file in elsewhere.files] == [file.sha256 for file in part.files]


@pytest.mark.slow
def test_windows_of_a_series_are_published_as_they_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of noise that differs between windows, and with a window that was amended."""
    windows = SeriesStore(tmp_path / "releases")
    for month, epsilon in zip(range(1, 7), ("1", "1", "1", "2", "2", "2"), strict=True):
        windows.publish(f"2025-{month:02}", [0.1 + 0.02 * month, 0.3], epsilon=epsilon, groups=ORIGINS)
    windows.publish("2025-02", [0.15, 0.3], groups=ORIGINS)
    series = suffice.open_series("flights", store=tmp_path / "releases")
    made = publish(series, "cancelled", pooled=True, draws=5, formats=("card", "csv", "parquet"))
    walked: Any = series.posterior("cancelled")
    rows = rows_of(made, "cancelled-summaries.parquet")
    assert [(row["window"], row["origin"]) for row in rows] == [
        *zip(walked.groups["window"], walked.groups["origin"], strict=True)
    ]
    for before, posterior in (("", walked), ("alone_", walked.alone)):
        for row, exact in zip(rows, summarise(posterior, interval="central"), strict=True):
            for name in ("mean", "sd", "lower", "upper"):
                assert row[f"{before}{name}"] == pytest.approx(exact[name], rel=1e-9)
    (pool,) = rows_of(made, "cancelled-pools.parquet")
    assert (pool["series"], pool["times"], pool["step"]) == (2, 6, pytest.approx(walked.steps[0].step[0]))
    assert made.stated.title == (
        "cancelled, pooled; over window: flights@2025-01 to flights@2025-06, 6 windows"
    )
    assert [stated["label"] for stated in made.request["releases"]] == [
        release.label for release in series.releases
    ]
    assert made.stated.epsilon == {release.release_id: str(release.loss.text) for release in series}
    card = made.read("cancelled-card.html").decode()
    assert "from flights@2025-01 to flights@2025-06, 6 releases" in card
    assert '<dt>walk over</dt><dd class="code">window</dd>' in card
    # Asked again in other words, nothing is computed; with one more window it is another question.
    with monkeypatch.context() as nothing_new:
        nothing_new.setattr(publishing, "answers", lambda *_: pytest.fail("something was computed"))
        asked = suffice.Pooling(over="window")
        again = publish(series, ["cancelled"], pooled=asked, draws=5, formats=("parquet", "csv", "card"))
        assert again.data == made.data
    windows.publish("2025-08", [0.25, 0.3], groups=ORIGINS)
    longer = suffice.open_series("flights", store=tmp_path / "releases")
    assert publish(longer, "cancelled", pooled=True, draws=0).publication_id != made.publication_id


def test_windows_that_are_no_series_are_refused(tmp_path: Path) -> None:
    windows = SeriesStore(tmp_path / "releases")
    windows.publish("2025-01", [0.1, 0.3], groups=ORIGINS)
    series = suffice.open_series("flights", store=tmp_path / "releases")
    with pytest.raises(suffice.errors.UsageError, match=r"one window alone has it: publish that as flights@"):
        publish(series, "cancelled", pooled=True)
    with pytest.raises(suffice.errors.UsageError, match="published as cells that are pooled"):
        publish(series, "cancelled")
    with pytest.raises(suffice.errors.UsageError, match="of one release or series, without roll up"):
        publish(series, "cancelled", pooled=True, roll_up="origin")


def test_likelihoods_of_all_three_kinds_are_read_back(tmp_path: Path) -> None:
    release = make_release(tmp_path / "releases", groups=None)
    made = publish(release, ["flag", "kind", "delay"], kind="likelihood", to=tmp_path)
    assert [(file.name, file.role) for file in made.files] == [
        (f"{name}-likelihood.parquet", "likelihood") for name in ("flag", "kind", "delay")
    ]
    at: dict[str, tuple[Any, ...]] = {
        "flag": ([0.2, 0.6],),
        "kind": (np.array([[0.4, 0.6]]),),
        "delay": ([4.0], [2.0]),
    }
    for name, points in at.items():
        data = made.read(f"{name}-likelihood.parquet")
        read: Any = suffice.read_likelihood(data)
        exact: Any = release.likelihood(name)
        np.testing.assert_allclose(read.log_prob(*points), exact.log_prob(*points), rtol=1e-12)
        source = json.loads(pq.read_schema(io.BytesIO(data)).metadata[b"source"])
        assert source["what"] == "log likelihood, as tables"
        assert source["publication_id"] == made.publication_id
        assert "mass" not in source
        assert any(note.startswith("error: ") for note in source["notes"])
    request = made.request
    assert (request["mass"], request["draws"], request["seed"], request["clipping"]) == (
        None,
        0,
        0,
        "ignored",
    )
    # The prior of N is a part of the question.
    other = publish(release, "flag", kind="likelihood", n_prior="Uniform(0, 1000000)", to=tmp_path)
    assert other.request["statistics"][0]["n_prior"] == "Uniform(0, 1000000)"
    with pytest.raises(suffice.errors.UsageError, match="csv holds"):
        publish(release, "kind", kind="likelihood", formats="csv", to=tmp_path)


@pytest.mark.slow
def test_a_likelihood_in_netcdf_is_the_one_in_parquet(release: Release, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    made = publish(release, "ill", kind="likelihood", formats=("netcdf", "parquet"), to=tmp_path)
    path = tmp_path / "likelihood.nc"
    path.write_bytes(made.read("ill-likelihood.nc"))
    table = pq.read_table(io.BytesIO(made.read("ill-likelihood.parquet")))
    with xarray.open_dataset(path, engine="h5netcdf") as opened:
        np.testing.assert_array_equal(opened["left"].to_numpy(), table["left"].to_numpy())
        assert opened.attrs["statistic"] == "ill"
        assert json.loads(opened.attrs["source"])["publication_id"] == made.publication_id
