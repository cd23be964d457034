"""Published numbers are the posterior's: summaries to the last digit, draws as its law has them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.composite import from_draws
from suffice.publishing.publish import publish
from support import releases
from support.catalogued import realistic
from support.entries import entry_of
from support.javascript import ONE_SUM
from support.releases import make_plan

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.storage.publications.publication import Publication
    from suffice.typing import Floats

NAMES = (*ONE_SUM, "categorical", "normal")
DRAWS = 2000
FALSE_ALARM = 1e-8
FARTHEST = float(np.sqrt(np.log(2.0 / FALSE_ALARM) / (2.0 * DRAWS)))
"""Of draws from their law, but once in 1e8: the bound of Dvoretzky, Kiefer, Wolfowitz and Massart."""
POINTS = 801
OFTEN = {"bernoulli", "poisson", "exponential", "normal", "categorical"}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, Publication]:
    """Publish posteriors of one cell of every family whose posterior takes no sampler."""
    entries = {name: entry_of(name, dict(FAMILIES[name].generative_case.entry)) for name in NAMES}
    plan = make_plan(groups=None, statistics=entries)
    folder = tmp_path_factory.mktemp("numbers")
    release = suffice.open_release(releases.publish(folder, plan, realistic(plan, 3)))
    made = publish(release, list(NAMES), draws=DRAWS, clipping="ignored", formats="parquet")
    return release, made


def columns_of(made: Publication, name: str) -> dict[str, Floats]:
    table = pq.read_table(io.BytesIO(made.read(name)))
    return {column: np.array(table[column].to_pylist()) for column in table.column_names}


@pytest.mark.parametrize("name", NAMES)
def test_summaries_are_those_of_the_posterior(published: tuple[Release, Publication], name: str) -> None:
    release, made = published
    posterior = release.posterior(name, clipping="ignored")
    columns = columns_of(made, f"{name}-summaries.parquet")
    for parameter in posterior.parameters:
        of_parameter = columns["parameter"] == parameter
        np.testing.assert_array_equal(columns["mean"][of_parameter], np.ravel(posterior.mean(parameter)))
        np.testing.assert_array_equal(columns["sd"][of_parameter], np.ravel(posterior.sd(parameter)))
        ends = np.stack([columns["lower"][of_parameter], columns["upper"][of_parameter]], axis=-1)
        if from_draws(posterior.distribution):
            assert np.all(
                (ends[:, 0] < columns["mean"][of_parameter]) & (columns["mean"][of_parameter] < ends[:, 1])
            )
        else:
            np.testing.assert_array_equal(ends, posterior.credible_interval(parameter).reshape(-1, 2))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.audit]) for name in NAMES]
)
def test_draws_in_files_are_of_the_law(published: tuple[Release, Publication], name: str) -> None:
    release, made = published
    posterior = release.posterior(name, clipping="ignored")
    columns = columns_of(made, f"{name}-draws.parquet")
    for parameter in posterior.parameters:
        of_parameter = columns["parameter"] == parameter
        labels = (
            columns["category"][of_parameter] if "category" in columns else np.zeros(np.sum(of_parameter))
        )
        drawn = np.stack(
            [columns["value"][of_parameter][labels == label] for label in dict.fromkeys(labels.tolist())]
        )
        assert drawn.shape == (np.size(posterior.mean(parameter)), DRAWS)
        points, law = law_of(posterior, parameter, drawn)
        assert np.all(distance(drawn, points, law) < FARTHEST)
        # The control: draws of another law, a fifth of a standard deviation away.
        moved = drawn + 0.2 * np.reshape(posterior.sd(parameter), (-1, 1))
        assert np.all(distance(moved, points, law) > FARTHEST)


def law_of(posterior: Posterior, parameter: str, drawn: Floats) -> tuple[Floats, Floats]:
    """Return points, and the distribution functions there that the densities state, a row for each entry."""
    mean, sd = (np.ravel(moments) for moments in (posterior.mean(parameter), posterior.sd(parameter)))
    ends = np.minimum(drawn.min(axis=1), mean - 8 * sd), np.maximum(drawn.max(axis=1), mean + 8 * sd)
    points = np.linspace(*ends, POINTS, axis=-1)
    shape = (*np.shape(posterior.mean(parameter)), POINTS)
    density = posterior.density(parameter, points.reshape(shape))
    assert density is not None
    heights = density.reshape(points.shape)
    pieces = (heights[:, 1:] + heights[:, :-1]) / 2 * np.diff(points)
    law = np.concatenate([np.zeros((len(points), 1)), np.cumsum(pieces, axis=1)], axis=1)
    return points, law / law[:, -1:]


def distance(drawn: Floats, points: Floats, law: Floats) -> Floats:
    """Return how far draws are from a law, a number for each entry: Kolmogorov's distance."""
    steps = np.arange(DRAWS + 1) / DRAWS
    at = np.stack([np.interp(np.sort(draws), *of) for draws, *of in zip(drawn, points, law, strict=True)])
    farthest: Floats = np.maximum(np.max(steps[1:] - at, axis=1), np.max(at - steps[:-1], axis=1))
    return farthest
