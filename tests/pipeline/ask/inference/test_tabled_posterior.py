"""Posteriors from tables of likelihoods, against dense quadrature over the parameter itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError
from suffice.pipeline.ask.inference import tabled_posterior
from suffice.pipeline.ask.posterior.likelihood import Likelihood, likelihood_of
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.typing import Floats

PRIORS: dict[str, Any] = {
    "smooth": stats.beta(2, 9),
    "narrow": stats.truncnorm(-300, 700, loc=0.3, scale=1e-3),
    "steps": "0.3*Uniform(0, 0.2) + 0.2*Uniform(0.2, 0.31) + 0.5*Uniform(0.4, 0.9)",
    "a pole at 0": stats.beta(0.3, 3),
}


def pdf(prior: Any, theta: Floats) -> Floats:
    if not isinstance(prior, str):
        return np.asarray(prior.pdf(theta))
    heights = [0.3 / 0.2, 0.2 / 0.11, 0.0, 0.5 / 0.5, 0.0]
    return np.asarray(heights)[np.searchsorted([0.2, 0.31, 0.4, 0.9], theta)]


@pytest.fixture(scope="module")
def likelihood() -> Likelihood:
    plan = statistic_plan({"family": "bernoulli"}, epsilon="0.8", public_n=False)
    rows = np.array([[70, 30], [9, 4], [0, -2], [3, 50]], dtype=object)
    answer = likelihood_of(noisy_statistic(plan, rows), None, lambda posterior: posterior, "tabled")
    assert isinstance(answer, Likelihood)
    return answer


def integrated(likelihood: Likelihood, prior: Any) -> Any:
    """Means, standard deviations and log evidences, by panels of eight nodes between steps."""
    places = np.unique(
        np.concatenate(
            [
                np.linspace(0.0, 1.0, 4001),
                0.3 + 1e-3 * np.linspace(-12.0, 12.0, 200),
                [0.2, 0.31, 0.4, 0.9],
                np.geomspace(1e-60, 1e-3, 400),
            ]
        )
    )
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(places)[:, None] / 2.0
    theta = (places[:-1, None] + half + half * nodes).ravel()
    value = likelihood.log_prob(theta)
    top = value.max(axis=1, keepdims=True)
    mass = np.exp(value - top) * pdf(prior, theta) * (half * weights).ravel()
    total = mass.sum(axis=1)
    mean = mass @ theta / total
    sd = np.sqrt(np.sum(mass * (theta - mean[:, None]) ** 2, axis=1) / total)
    return mean, sd, top[:, 0] + np.log(total)


@pytest.mark.parametrize("name", PRIORS)
def test_it_is_what_dense_quadrature_says(name: str, likelihood: Likelihood) -> None:
    prior = PRIORS[name]
    posterior = likelihood.posterior(prior)
    mean, sd, log_evidence = integrated(likelihood, prior)
    assert np.max(np.abs(posterior.mean("probability") - mean) / sd) < 1e-5
    np.testing.assert_allclose(posterior.sd("probability"), sd, rtol=1e-5)
    # A posterior's evidence has the noise's own constant, of both counts.
    of_noise = 2.0 * np.log(np.tanh(0.5 / likelihood.noisy.plan.scale))
    np.testing.assert_allclose(posterior.log_evidence, log_evidence + of_noise, atol=1e-5)


def test_edges_that_matter_are_kept(likelihood: Likelihood, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where polynomials may miss by nats, panels are joined that should not be, and it is seen."""
    monkeypatch.setattr(tabled_posterior, "_SAME", 5.0)
    monkeypatch.setattr(tabled_posterior, "_RISE", 1e3)
    mean, sd, _ = integrated(likelihood, PRIORS["steps"])
    wrong = likelihood.posterior(PRIORS["steps"]).mean("probability")
    assert np.max(np.abs(wrong - mean) / sd) > 1e-5


def test_a_posterior_where_the_table_ends_is_refused(likelihood: Likelihood) -> None:
    with pytest.raises(PriorError, match="disagree so much"):
        likelihood.posterior(stats.truncnorm(-9, 9, loc=0.99999, scale=1e-6))


def test_few_edges_are_left_of_a_smooth_prior() -> None:
    def log_density(position: Any) -> Any:
        return -0.5 * position**2

    prior = tabled_posterior.PriorOnLine(
        ends=(-8.0, 8.0), edges=np.linspace(-8.0, 8.0, 300), log_density=log_density
    )
    coarse = prior.coarse()
    # A square is one polynomial, but for panels that rise by more than 8 nats.
    assert len(coarse.edges) < 20
    assert (coarse.edges[0], coarse.edges[-1]) == (-8.0, 8.0)
