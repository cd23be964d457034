"""``count_clipped`` from the spec to a reader: releases of generated columns, and all that takes them."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.pipeline.ask.pooling.pool import observed_again
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.released.noisy_statistic import rows_alone
from support.making import Workspace, make_workspace

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release

EPSILON, ROWS, UPPER = 4, 11_000, 40.0
"""So many rows that in a half, of whose skewed numbers 8 % are above the bound, their count behind noise of
scale 17 is below the 157 that are evidence with a chance of 3e-8."""
STATISTICS: dict[str, dict[str, Any]] = {
    "skewed": {"family": "normal", "column": "skewed", "lower": 0, "upper": 40},
    "capped": {"family": "normal", "column": "capped", "lower": 0, "upper": 40},
    "logs": {"family": "lognormal", "column": "skewed", "lower": "0.5", "upper": 40},
    "visits": {"family": "poisson", "column": "visits", "upper": 5},
}
COUNTED = {name: {**entry, "count_clipped": True} for name, entry in STATISTICS.items()}
REACH = 17.0
"""Noise beyond so many scales has a chance of e^-17 = 4e-8; under twenty numbers are looked at."""


def columns() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    skewed = rng.lognormal(2.3, 1.0, ROWS)
    return {
        "half": rng.choice(np.array(["a", "b"]), ROWS),
        "skewed": skewed,
        "capped": np.minimum(skewed, UPPER),
        "visits": rng.poisson(4.0, ROWS),
    }


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray[Any, Any]]:
    return columns()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> Workspace:
    directory = tmp_path_factory.mktemp("counted")
    made = make_workspace(directory)
    (directory / "columns").mkdir()
    pq.write_table(pa.table(data), directory / "columns" / "rows.parquet", row_group_size=1000)
    return dataclasses.replace(made, data=directory / "columns")


def released(workspace: Workspace, **changes: Any) -> Release:
    given = {
        "privacy": {"epsilon": str(EPSILON), "neighboring": "add_or_remove_one", "unit": "row"},
        "groups": {"half": ["a", "b"]},
        "statistics": COUNTED,
        **changes,
    }
    release: Release = workspace.run(**given).release
    return release


@pytest.fixture(scope="module")
def release(workspace: Workspace) -> Release:
    return released(workspace, name="counted")


@pytest.fixture(scope="module")
def without(workspace: Workspace) -> Release:
    return released(workspace, name="plain", statistics=STATISTICS)


def truth(data: dict[str, Any], statistic: str, chosen: Any) -> tuple[int, int]:
    entry = STATISTICS[statistic]
    values = data[entry["column"]][chosen]
    lower = float(entry.get("lower", 0))
    return int(np.sum(values < lower)), int(np.sum(values > float(entry["upper"])))


def test_the_table_counts_what_clipping_moved(release: Release, data: dict[str, Any]) -> None:
    for name in STATISTICS:
        scale = release.statistic(name).plan.quantity_noise_sd(release.statistic(name).plan.quantities[-1])
        rows = [row for row in release.table(name) if row["quantity"] in {"n_below", "n_above"}]
        assert len(rows) == 4
        for row in rows:
            below, above = truth(data, name, data["half"] == row["half"])
            expected = below if row["quantity"] == "n_below" else above
            assert row["noise_sd"] == scale
            assert abs(row["estimate"] - expected) <= REACH * scale / np.sqrt(2.0)
    assert truth(data, "capped", slice(None)) == (0, 0), "whose largest values are its bound"
    held = data["capped"][data["half"] == "a"]
    assert np.sum(held == UPPER) > REACH * 3.0, "counting what lies at a bound would show"


@pytest.mark.slow
def test_answers_are_those_of_the_sums_under_the_noise_that_was_drawn(release: Release) -> None:
    """The same sums without counts, behind noise of this scale: what a plain statistic would have been."""
    for name, entry in STATISTICS.items():
        statistic = release.statistic(name)
        (plain,) = compile_plan(
            load_spec(
                {
                    "name": "n",
                    "dataset": "d",
                    "source": {"parquet": "/x"},
                    "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
                    "groups": {"half": ["a", "b"]},
                    "statistics": {name: {key: str(value) for key, value in entry.items()}},
                }
            )
        ).statistics
        sums = dataclasses.replace(
            statistic,
            plan=dataclasses.replace(plain, scale=statistic.plan.scale),
            values=statistic.values[:, : len(plain.components)],
        )
        for method in ("noise-aware", "plug-in"):
            ours = posterior_of(statistic, method=method, **_plain(method))
            other = posterior_of(sums, method=method, **_plain(method))
            for parameter in ours.parameters:
                assert (ours.mean(parameter) == other.mean(parameter)).all()
                assert (ours.sd(parameter) == other.sd(parameter)).all()


def _plain(method: str) -> dict[str, Any]:
    return {"clipping": "ignored"} if method == "noise-aware" else {}


def test_the_quantities_can_be_asked_for_by_name(release: Release) -> None:
    above, noise_sd = release.statistic("skewed").quantity("n_above")
    assert above.shape == (2,)
    assert noise_sd == pytest.approx(np.sqrt(2.0) * 17.0 / (EPSILON / len(STATISTICS)), rel=1e-6)
    merged = {row["quantity"]: row for row in suffice.roll_up(release.statistic("skewed"), "half").table()}
    assert merged["n_above"]["estimate"] == pytest.approx(above.sum())
    assert merged["n_above"]["noise_sd"] == pytest.approx(np.sqrt(2.0) * noise_sd)


def test_a_release_with_counts_is_pooled_with_one_without(release: Release, without: Release) -> None:
    pooled = suffice.pool("visits", same_data=[release, without], clipping="ignored")
    alone = release.posterior("visits", clipping="ignored")
    sums = observed_again([rows_alone(release.statistic("visits")), without.statistic("visits")])
    expected = posterior_of(sums, clipping="ignored")
    assert (pooled.mean("rate") == expected.mean("rate")).all()
    assert (pooled.sd("rate") == expected.sd("rate")).all()
    assert (pooled.mean("rate") != alone.mean("rate")).all(), "the second release tells of the same data too"
    rolled = suffice.roll_up(release.statistic("visits"), "half")
    merged = rolled.posterior(rng=1, clipping="ignored", assume="one parameter")
    assert merged.sd("rate")[0] < alone.sd("rate").min()


@pytest.mark.slow
def test_clipping_is_modelled_by_default_where_the_release_counts_moved_records(
    release: Release, without: Release
) -> None:
    """Some 1,180 of 5,500 Poisson counts of 4 are above 5, behind noise of 24; none of the capped column."""
    rolled = suffice.roll_up(release.statistic("visits"), "half")
    for posterior in (
        release.posterior("visits"),
        rolled.posterior(assume="one parameter", clipping="by-evidence"),
    ):
        assert posterior.models_clipping is not None
        assert posterior.models_clipping.all()
        assert (np.abs(posterior.mean("rate") - 4.0) < 6.0 * posterior.sd("rate")).all(), "before clipping"
        assert "before clipping" in posterior.estimand
    for posterior in (
        without.posterior("visits"),
        release.posterior("visits", clipping="ignored"),
        rolled.posterior(assume="one parameter", clipping="ignored"),
    ):
        assert posterior.models_clipping is not None
        assert not posterior.models_clipping.any()
        assert "as the public bounds leave them" in posterior.estimand
    statistic, capped = release.statistic("capped"), release.posterior("capped").models_clipping
    assert capped is not None
    # A false alarm has its chance of 1e-4: judged are cells whose noise is below 9 of its scales.
    counts = np.maximum(*(statistic.quantity(name)[0] for name in ("n_below", "n_above")))
    assert (counts < 9.0 * 17.0).any(), "with a chance of 2e-8 of neither"
    assert not capped[counts < 9.0 * 17.0].any()
    cut = release.posterior("visits", clipping="ignored")
    assert (cut.mean("rate") < 4.0 - 6.0 * cut.sd("rate")).all(), "the bounds hide what the counts tell"
    for moved in (
        release.posterior("skewed"),
        suffice.pool("skewed", same_data=[without, release]),
        suffice.roll_up(release.statistic("skewed"), "half").posterior(assume="one parameter"),
    ):
        assert moved.models_clipping is not None
        assert moved.models_clipping.all(), "one of two releases that counts them is enough"


@pytest.mark.slow
def test_a_likelihood_takes_the_sums(release: Release) -> None:
    jax = pytest.importorskip("jax")
    numpyro = pytest.importorskip("suffice.numpyro")
    jax.config.update("jax_enable_x64", val=True)
    counted, sums = (
        numpyro.log_likelihood(statistic, rate=np.array([3.0, 4.0]))
        for statistic in (release.statistic("visits"), rows_alone(release.statistic("visits")))
    )
    assert (np.asarray(counted) == np.asarray(sums)).all()


def test_simulations_take_the_sums(release: Release) -> None:
    result = suffice.calibrate(release, "visits", simulations=20, rng=1, clipping="ignored")
    assert result.simulations == 20


@pytest.mark.slow
def test_a_wanted_width_says_what_counting_costs(workspace: Workspace) -> None:
    entry = {"family": "exponential", "column": "skewed", "upper": 40}
    plain, counted = (
        suffice.smallest_loss(
            workspace.spec(groups=None, statistics={"waits": {**entry, **more}}),
            "waits rate width 0.1",
            n=500,
            simulations=40,
            rng=3,
        )
        for more in ({}, {"count_clipped": True})
    )
    assert plain.counts is not None
    assert counted.counts is not None
    assert (plain.counts.stated, counted.counts.stated) == (None, Fraction(1, 16))
    # A sixteenth more, by the same random numbers: the search rounds to three digits.
    ratio = 17.0 / 16.0
    assert float(counted.loss.amount) == pytest.approx(ratio * float(plain.loss.amount), rel=0.02)
    price = plain.counts.prices[0].loss.amount
    assert float(price) == pytest.approx(ratio * float(plain.loss.amount), rel=1e-4)
    assert float(counted.counts.without.amount) == pytest.approx(float(counted.loss.amount) / ratio, rel=1e-4)
    assert counted.counts.prices[0].noise_sd == pytest.approx(
        np.sqrt(2.0) * 17.0 / float(counted.loss.amount), rel=1e-3
    )
    assert "the spec has none" in str(plain)
    assert "the spec has 0.0625" in str(counted)
    assert document(counted)["count_clipped"]["stated"] == "0.0625"
    assert float(document(counted)["count_clipped"]["epsilon_without"]) < float(counted.loss.amount)
