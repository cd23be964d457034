"""What people do with a posterior under priors that are no conjugate ones, from Python and by command."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import suffice
from suffice.cli.app import whole
from suffice.errors import ConflictWarning, PriorError
from suffice.pages.card import card
from support import releases
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

TWO = "Independent(mean=Normal(15, 5), sd=LogNormal(3.4, 0.3))"
MIXED = "Mixture(0.5, NormalInverseGamma(15, 1, 9, 9000), 0.5, NormalInverseGamma(0, 4, 9, 9000))"
MEAN, SQUARE = 0.2, 0.1
"""Of the delays, in half ranges: a mean of 10 and a standard deviation of 12."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Release]:
    made = []
    for number, window in enumerate(("2013-01", "2013-02")):
        plan = make_plan(
            groups={"origin": ["EWR", "JFK"]},
            window={"column": "day", "every": "month"},
            statistics={"delay": {"family": "normal", "column": "d", "lower": -50, "upper": 50}},
        )
        shares = [1 - 2 * MEAN + SQUARE, 2 * (1 - SQUARE), 1 + 2 * MEAN + SQUARE]
        values = {"delay": np.array([[int(400 * share * 4**16) for share in shares]] * 2, dtype=object)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(releases, "RELEASE_ID", f"{number + 1:016x}")
            store = tmp_path_factory.mktemp("release")
            made.append(suffice.open_release(str(publish(store, plan, values, window=window))))
    return made


@pytest.mark.slow
def test_a_posterior_under_two_priors_answers_everything(pair: list[Release]) -> None:
    posterior = pair[0].posterior("delay", prior=TWO)
    mean, interval = posterior.mean("mean"), posterior.credible_interval("mean")
    assert np.all((interval[:, 0] < mean) & (mean < interval[:, 1]))
    assert posterior.quantile("variance", 0.5).shape == (2,)
    assert np.all(posterior.probability("mean", above=interval[0, 0], rng=1) > 0.95)
    difference = posterior.difference("mean", {"origin": "JFK"}, {"origin": "EWR"}, rng=1)
    assert abs(difference.mean()[0]) < 0.01 * posterior.sd("mean")[0]
    new = posterior.predictive(rows=3, draws=50, rng=1)
    assert new["total"].shape == (50, 2)
    assert posterior.clipping is not None
    arviz = pytest.importorskip("arviz")
    assert arviz is not None
    assert posterior.to_arviz(20, rng=1) is not None
    options: dict[str, Any] = {"mass": 0.9, "draws": 200, "seed": 7, "rng": np.random.default_rng(7)}
    assert TWO in card(pair[0], posterior, **options).replace("&#x27;", "'")


@pytest.mark.slow
@pytest.mark.parametrize("prior", [TWO, MIXED])
def test_releases_are_compared_under_any_prior(pair: list[Release], prior: str) -> None:
    first, second = pair
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)  # noise may set one of these priors at odds
        comparison = suffice.compare(
            first, second, "delay", prior=prior, where={"origin": "JFK"}, draws=500, rng=1
        )
    rows = comparison.rows()
    assert [row["parameter"] for row in rows] == ["mean", "variance"]
    for row in rows:
        assert row["lower"] < row["change"] < row["upper"]
        assert row["apparent"] == 0.0
        assert row["noise_sd"] > 0.0


@pytest.mark.slow
def test_the_command_line_reads_priors_of_two_numbers(pair: list[Release], tmp_path: Path) -> None:
    where = ["--where", "origin=JFK", "--seed", "1", "--json"]
    plot = tmp_path / "delay.svg"
    runner = CliRunner()
    shown = runner.invoke(
        whole(), ["posterior", pair[0].uri, "delay", "--prior", TWO, "--plot", str(plot), *where]
    )
    assert shown.exit_code == 0, shown.output
    answer = json.loads(shown.stdout)
    assert answer["prior"] == TWO
    assert [row["parameter"] for row in answer["rows"]] == ["mean", "variance"]
    assert plot.read_text().startswith("<?xml")
    refused = runner.invoke(whole(), ["posterior", pair[0].uri, "delay", "--prior", "HalfCauchy(2)", *where])
    assert isinstance(refused.exception, PriorError)
    assert "Independent" in str(refused.exception)
