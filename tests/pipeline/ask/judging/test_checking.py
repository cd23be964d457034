"""Posterior predictive checks: a model that fits, and one that does not."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.model import Model
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.generative_models import generative_model_for
from support.noisy import discrete_laplace

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior


def posterior_with(family: str, *, n: int, cells: int, seed: int) -> Posterior:
    model = generative_model_for(family, n=n)
    rng = np.random.default_rng(seed)
    sums = model.sums(model.truth(cells, rng), np.full(cells, n), rng).clipped
    statistic = model.noisy(sums, discrete_laplace(model.scale, (cells, len(model.plan.components)), rng))
    posterior = posterior_of(statistic, prior=model.prior)
    return dataclasses.replace(posterior, model=Model(entry=model.entry, statistic=statistic))


@pytest.mark.parametrize("family", ["bernoulli", "exponential", "normal", "categorical"])
def test_data_of_the_model_are_replicated(family: str) -> None:
    check = posterior_with(family, n=200, cells=20, seed=1).check(draws=400, rng=1)
    assert check.released.shape == check.tails.shape
    # Tails are drawn to the middle: of 20 cells few are below 0.02, and none is at the least of 2 / 401.
    assert np.all(check.tails > 2 / 401)
    assert len(check.rows()) == check.tails.size


def test_a_release_that_no_parameter_explains_is_found() -> None:
    posterior = posterior_with("exponential", n=200, cells=2, seed=1)
    (statistic,) = posterior.observed
    impossible = statistic.values.copy()
    impossible[:, 0] = -impossible[:, 0]
    other = dataclasses.replace(posterior, observed=(dataclasses.replace(statistic, values=impossible),))
    assert np.all(other.check(draws=400, rng=1).tails <= 4 / 401)


def test_one_quantity_is_checked_alone_and_the_generator_decides() -> None:
    posterior = posterior_with("normal", n=100, cells=2, seed=3)
    first, again = (posterior.check("total_of_squares", draws=50, rng=7) for _ in range(2))
    assert first.quantities == ("total_of_squares",)
    assert np.array_equal(first.replicated, again.replicated)
    # As variable as the release itself: by the noise, by N, by the parameters and by the records.
    assert np.all(np.std(first.replicated, axis=0) > 0)


def test_what_cannot_be_checked_is_refused() -> None:
    posterior = posterior_with("bernoulli", n=20, cells=1, seed=1)
    with pytest.raises(UsageError, match="no quantity 'mean' to check: it has total"):
        posterior.check("mean")
    with pytest.raises(UsageError, match="posterior of one release"):
        dataclasses.replace(posterior, model=None).check()
    with pytest.raises(UsageError, match="draws must be"):
        posterior.check(draws=0)
