"""Where priors and released quantities disagree: tails against enumeration, false alarms, what is said."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice import Density
from suffice.errors import UsageError
from suffice.pipeline.ask.inference.model import Model
from suffice.pipeline.ask.judging.conflict import THRESHOLD
from suffice.pipeline.ask.pooling.pool import observed_again, pooled
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.generative_models import generative_model_for, noise_aware_families
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.ask.judging.conflict import Conflict
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

BERNOULLI = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="0.5", public_n=False)
B = BERNOULLI.scale


def noise(value: Any) -> np.ndarray:
    chance: np.ndarray = np.tanh(0.5 / B) * np.exp(-np.abs(np.asarray(value, float)) / B)
    return chance


def bernoulli(*counts: tuple[int, int]) -> NoisyStatistic:
    """Released counts of false and true."""
    return noisy_statistic(BERNOULLI, np.array(counts))


@pytest.mark.parametrize("released", [70, 100, 200, 400])
def test_the_tail_of_n_is_that_of_the_discrete_noise(released: int) -> None:
    conflict = posterior_of(bernoulli((released, 0)), n_prior="Uniform(0, 50)").conflict
    both = np.arange(-4000, 4001)
    sums = np.convolve(noise(both), noise(both))[4000:-4000]
    tail = np.array([np.sum(sums[both >= released - n]) for n in range(51)]).mean()
    assert conflict.quantities[0] == "n"
    assert 0.9 < conflict.tails[0, 0] / (2 * tail) < 2


@pytest.mark.parametrize(
    ("true", "prior"), [(75, (200, 200)), (85, (200, 200)), (99, (50, 50)), (110, (20, 90))]
)
def test_the_tail_of_a_total_given_n_is_that_of_an_enumeration(true: int, prior: tuple[int, int]) -> None:
    n = 100
    conflict = posterior_of(
        bernoulli((n - true, true)), prior=f"Beta({prior[0]}, {prior[1]})", n_prior="Uniform(0, 1000)"
    ).conflict
    joint, given_n = 0.0, 0.0
    error = np.arange(-160, 161)
    for records in range(160):
        chance = noise(error) * noise(n - records - error)
        total = np.arange(records + 1)
        mass = stats.betabinom.pmf(total, records, *prior)
        above = np.cumsum(mass[::-1])[::-1]
        at = np.clip(true - error, 0, records + 1)
        joint += float(np.sum(chance * np.append(above, 0.0)[at]))
        given_n += float(np.sum(chance))
    exact = 2 * joint / given_n
    # Records' sums are taken for gamma distributed, whose tail is longer than a binomial one.
    assert 0.7 * exact < conflict.tails[0, 1]
    assert np.log(conflict.tails[0, 1]) == pytest.approx(np.log(exact), rel=0.2)


def simulated(family: str, cells: int, *, seed: int, n: int = 200, **changed: Any) -> Conflict:
    """Cells whose truth comes from the priors, as `changed` ones believe them."""
    model = generative_model_for(family, n=n)
    rng = np.random.default_rng(seed)
    sums = model.sums(model.truth(cells, rng), model.sizes(cells, rng), rng).clipped
    statistic = model.noisy(sums, discrete_laplace(model.scale, (cells, len(model.plan.components)), rng))
    judged = posterior_of(
        statistic.take(np.arange(1)), **{"prior": model.prior, "n_prior": model.believed_n_prior, **changed}
    )
    clipped = None if judged.models_clipping is None else np.ones(cells, dtype=bool)
    posterior = dataclasses.replace(
        judged,
        observed=(statistic,),
        models_clipping=clipped,
        model=Model(entry=model.entry, statistic=statistic),
    )
    return posterior.conflict


def too_often(conflict: Conflict, level: float) -> np.ndarray:
    """By quantity, whether tails below a level are more frequent than chance lets them be: 1e-6 in all."""
    cells, quantities = conflict.tails.shape
    most = stats.binom.isf(1e-6 / quantities, cells, level)
    is_exceeded: np.ndarray = np.count_nonzero(conflict.tails < level, axis=0) > most
    return is_exceeded


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "exponential", "normal", "categorical"])
def test_tails_are_no_smaller_than_they_should_be(family: str) -> None:
    assert not too_often(simulated(family, 2000, seed=1), 0.005).any()


@pytest.mark.parametrize(
    ("family", "changed"),
    [
        ("bernoulli", {"prior": "Beta(30, 30)"}),
        ("bernoulli", {"n_prior": "Uniform(0, 100)"}),
        ("normal", {"prior": "NormalInverseGamma(0.3, 400, 12, 6)"}),
        ("categorical", {"prior": "Dirichlet(40)"}),
    ],
)
def test_another_prior_is_found_out(family: str, changed: dict[str, Any]) -> None:
    exceeded = too_often(simulated(family, 300, seed=1, **changed), 0.005)
    of_n = "n_prior" in changed
    assert exceeded[0] == of_n
    assert exceeded[1:].any() or of_n


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", noise_aware_families() + noise_aware_families(by_mcmc=True))
def test_false_alarms_of_every_family(family: str) -> None:
    by_mcmc = family in noise_aware_families(by_mcmc=True)
    for n in (5, 200):
        conflict = simulated(family, 1000 if by_mcmc else 20_000, seed=2, n=n)
        for level in (0.005, 1e-3, 1e-4):
            assert not too_often(conflict, level).any()
        # The threshold is divided by the number of cells and quantities: a chance of 1e-4 in all.
        assert not conflict.lines()


def test_a_prior_of_n_that_excludes_what_was_released() -> None:
    posterior = posterior_of(bernoulli((251, 249), (20, 25)), n_prior="Uniform(0, 50)")
    (line,) = posterior.conflict.lines()
    assert "prior of N, Uniform(0, 50)" in line
    assert "1 of 2 cells" in line
    assert posterior.conflict.is_said[:, 0].tolist() == [True, False]
    assert posterior_of(bernoulli((251, 249), (20, 25))).conflict.lines() == []


def test_a_prior_of_the_parameters_that_excludes_what_was_released() -> None:
    (line,) = posterior_of(bernoulli((250, 250)), prior="Beta(1000, 1)").conflict.lines()
    assert "prior of the parameters, Beta(1000, 1)" in line
    assert "total" in line


@pytest.mark.slow
def test_values_far_from_anything_possible_are_said() -> None:
    plan = statistic_plan(
        {"family": "normal", "column": "x", "lower": "-10", "upper": "10"}, epsilon="0.5", public_n=False
    )
    steps = 4 * (1 << 16) ** 2
    possible = np.array([300, 450, 250]) * steps
    far = possible + np.array([0, -int(1e6 * plan.scale), 0])
    prior = "NormalInverseGamma(0, 1, 3, 50)"
    assert (
        posterior_of(noisy_statistic(plan, possible[None]), prior=prior, clipping="ignored").conflict.lines()
        == []
    )
    conflict = posterior_of(
        noisy_statistic(plan, np.array([possible, far])), prior=prior, clipping="ignored"
    ).conflict
    assert conflict.is_said.tolist() == [[False] * 3, [True, False, True]]
    assert conflict.tails[1, 2] == 0.0


def test_mixtures_and_densities_say_the_same() -> None:
    statistic = bernoulli((300, 20))
    plain = posterior_of(statistic, prior="Beta(60, 60)").conflict.tails
    mixed = posterior_of(statistic, prior="Mixture(1, Beta(60, 60), 2, Beta(60, 60))").conflict.tails
    density = posterior_of(statistic, prior=Density.of(stats.beta(60, 60))).conflict.tails
    assert plain[0, 1] < 1e-6
    for other in (mixed, density):
        assert other == pytest.approx(plain, rel=0.5)


def test_a_joint_prior_says_the_same_as_the_conjugate_one() -> None:
    plan = statistic_plan(
        {"family": "normal", "column": "x", "lower": "-10", "upper": "10"}, epsilon="0.5", public_n=False
    )
    statistic = noisy_statistic(plan, (np.array([[250, 420, 330]]) * 4 * (1 << 16) ** 2))
    joint = posterior_of(
        statistic, prior="Independent(mean=Normal(0, 0.2), variance=InverseGamma(300, 4200))"
    ).conflict.tails
    alike = posterior_of(statistic, prior="NormalInverseGamma(0, 350, 300, 4200)").conflict.tails
    assert joint[0, 1] < 0.01
    assert joint[0, 1] == pytest.approx(alike[0, 1], rel=0.5)


def test_every_release_and_every_data_set_is_judged() -> None:
    first, second = bernoulli((251, 249)), bernoulli((245, 251))
    again = posterior_of(observed_again([first, second]), n_prior="Uniform(0, 50)").conflict
    assert again.quantities == ("n, release 1", "total, release 1", "n, release 2", "total, release 2")
    both = pooled(
        [first, second], prior=None, n_prior="Uniform(0, 50)", rng=np.random.default_rng(1)
    ).conflict
    assert both.is_said.tolist() == [[True, False, True, False]]


def test_a_public_n_is_not_judged_and_plug_in_has_no_prior_of_n() -> None:
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="1", public_n=True)
    statistic = noisy_statistic(plan, np.array([[20]]), public_n=500)
    assert posterior_of(statistic, prior="Beta(90, 90)").conflict.is_said.tolist() == [[True]]
    plug_in = posterior_of(bernoulli((251, 249)), method="plug-in").conflict
    assert plug_in.quantities == ("total",)
    assert plug_in.n_prior == ""


@pytest.mark.slow
def test_the_threshold_counts_quantities_and_cells() -> None:
    conflict = posterior_of(bernoulli((85, 15)), prior="Beta(60, 60)").conflict
    many = posterior_of(bernoulli(*[(85, 15)] * 50), prior="Beta(60, 60)").conflict
    assert many.tails[0] == pytest.approx(conflict.tails[0])
    assert many.adjusted[0, 1] == pytest.approx(50 * conflict.adjusted[0, 1])
    assert conflict.is_said[0, 1] == (conflict.tails[0, 1] * 2 < THRESHOLD)


def test_what_is_not_judged_is_named() -> None:
    entry = dict(FAMILIES["bayesian_network"].generative_case.entry)
    plan = statistic_plan({"family": "bayesian_network", **entry}, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.full((1, len(plan.components)), 50))
    conflict = posterior_of(statistic, method="plug-in").conflict
    assert conflict.quantities == ()
    assert conflict.not_judged


def test_a_posterior_that_does_not_know_its_release_is_refused() -> None:
    posterior = dataclasses.replace(posterior_of(bernoulli((1, 2))), observed=())
    with pytest.raises(UsageError, match="what was released"):
        _ = posterior.conflict


@pytest.mark.slow
def test_cells_that_no_tail_names_contradict_a_prior_together() -> None:
    """Four hundred cells of thirty records whose truth is .1, under Beta(60, 40); and under a fitting one.

    In three runs log B was 68 to 73 against the first, of 128 cells each of which says little, and -2 to 1
    against the second; 9.2 is a conflict.
    """
    rng = np.random.default_rng()
    plan = statistic_plan({"family": "bernoulli"}, epsilon="0.1", public_n=False)
    ones = rng.binomial(30, 0.1, size=400)
    noise = discrete_laplace(plan.scale, (400, 2), rng)
    statistic = noisy_statistic(plan, np.stack([30 - ones, ones], axis=1) + noise)
    against = posterior_of(statistic, prior="Beta(60, 40)").conflict
    assert against.is_against_all
    without_tails = dataclasses.replace(against, tails=np.ones_like(against.tails))
    assert "128 of 400 cells together disagree" in without_tails.lines()[-1]
    assert not posterior_of(statistic, prior="Beta(1, 9)").conflict.is_against_all


@pytest.mark.slow
def test_cells_that_ask_for_a_moved_prior_together_contradict_it() -> None:
    """Poisson cells whose rate is 2, under a prior about 10 that each of them alone allows for."""
    rng = np.random.default_rng()
    plan = statistic_plan({"family": "poisson", "upper": 40}, epsilon="0.1", public_n=False)
    totals = rng.poisson(2.0, size=(300, 60)).sum(axis=1)
    exact = np.stack([totals, 60 * 40 - totals], axis=1)
    statistic = noisy_statistic(plan, exact + discrete_laplace(plan.scale, exact.shape, rng))
    conflict = posterior_of(statistic, prior="Gamma(200, 20)").conflict
    # Of 40 simulations log B was 73 on average, with a standard deviation of 10; 9.2 is a conflict. Of a sum
    # over 128 cells, which is about normal, that is missed with a chance of 1e-10.
    assert conflict.is_against_all
    assert conflict.alternative in {"Gamma(200, 40)", "Gamma(200, 80)"}
    # Tails of single cells would be said in its place, where there were any.
    without_tails = dataclasses.replace(conflict, tails=np.ones_like(conflict.tails))
    assert "128 of 300 cells together disagree" in without_tails.lines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "prior"),
    [("poisson", Gamma(200, 20)), ("bernoulli", Beta(60, 40)), ("exponential", Gamma(9, 9))],
)
def test_cells_of_the_prior_do_not_contradict_it_together(family: str, prior: Gamma | Beta) -> None:
    """With parameters drawn from it, by Markov's inequality: a false alarm in fewer than 1e-6 of runs."""
    rng = np.random.default_rng()
    model = generative_model_for(family, n=30, epsilon="0.1")
    sums = model.sums(prior.sample(200, rng), np.full(200, 30), rng).clipped
    noise = discrete_laplace(model.scale, (200, len(model.plan.components)), rng)
    conflict = posterior_of(model.noisy(sums, noise), prior=prior).conflict
    assert len(conflict.log_bayes_factors) == 128
    assert np.sum(conflict.log_bayes_factors) < np.log(3e6)  # of three such tests


def test_what_a_prior_holds_beyond_the_bounds_makes_no_conflict() -> None:
    """Of Gamma(2, .05) rates up to 40 have .59: without them every cell would speak against it by as much."""
    plan = statistic_plan({"family": "poisson", "upper": 40}, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.array([[300, 900], [600, 600]]))
    within, whole = (
        make(statistic, prior="Gamma(2, 0.05)").conflict for make in (posterior_of, unrestricted_posterior)
    )
    assert within.alternative == whole.alternative
    less = np.log(stats.gamma(2, scale=20).cdf(40))
    np.testing.assert_allclose(within.log_bayes_factors, whole.log_bayes_factors + less, atol=1e-6)
