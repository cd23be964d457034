"""Posteriors of clipped counts: against enumeration, where they agree with others, what is asked of them."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
from suffice.pipeline.ask.calibration.simulation import simulate
from suffice.pipeline.ask.inference import clipped_cells
from suffice.pipeline.ask.inference.clipped import clipped_distribution
from suffice.pipeline.ask.inference.posterior_terms import MODELLED
from suffice.pipeline.ask.pooling.pool import pooled as pooled_by_default
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families.shared.clipped_record import LARGEST_REACH
from suffice.pipeline.math.distributions.composite import PartlyClipped
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Uniform
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


modelled_posterior = partial(posterior_of, clipping=MODELLED)
pooled = partial(pooled_by_default, clipping=MODELLED)
ENTRIES: dict[str, dict[str, Any]] = {
    "poisson": {"upper": "4"},
    "geometric": {"upper": "3"},
    "negative_binomial": {"upper": "5", "successes": "2.5"},
}
PRIORS: dict[str, tuple[Any, ...]] = {
    "poisson": (
        Gamma(1, 0.5),
        Gamma(30, 3),
        Mixture(0.3, Gamma(2, 2), 0.7, Gamma(50, 4)),
        stats.lognorm(0.7, scale=5),
    ),
    **dict.fromkeys(
        ("geometric", "negative_binomial"),
        (Beta(1, 1), Beta(2, 20), Mixture(0.3, Beta(9, 2), 0.7, Beta(1, 30)), stats.beta(0.8, 3)),
    ),
}


def released(
    family: str, sums: list[list[int]], *, epsilon: str, public_n: int | None = None
) -> NoisyStatistic:
    plan = statistic_plan(
        {"family": family, **ENTRIES[family]}, epsilon=epsilon, public_n=public_n is not None
    )
    values = np.array(sums, dtype=object)[:, : len(plan.components)]
    return noisy_statistic(plan, values, public_n=public_n)


def distribution_of(family: str, position: Floats) -> Floats:
    """Chances of a clipped record at places on the line, from the distribution functions of scipy."""
    upper = int(ENTRIES[family]["upper"])
    count = np.arange(float(upper))
    given: Any
    if family == "poisson":
        given = stats.poisson(np.exp(position)[:, None])
    else:
        successes = float(ENTRIES[family].get("successes", 1))
        given = stats.nbinom(successes, 1.0 / (1.0 + np.exp(-position[:, None])))
    return np.concatenate([given.pmf(count), given.sf(upper - 1)], axis=1)


def log_prior(family: str, prior: Any, position: Floats) -> Floats:
    if isinstance(prior, Mixture):
        parts = [log_prior(family, part, position) for part in prior.components]
        return np.asarray(np.logaddexp.reduce(np.log(prior.weights)[:, None] + np.array(parts)))
    if isinstance(prior, Gamma):
        prior = stats.gamma(prior.concentration, scale=1 / prior.rate)
    if isinstance(prior, Beta):
        prior = stats.beta(prior.concentration1, prior.concentration0)
    if family == "poisson":
        return np.asarray(prior.logpdf(np.exp(position)) + position)
    inside = 1.0 / (1.0 + np.exp(-position))
    return np.asarray(prior.logpdf(inside) + np.log(inside) + np.log1p(-inside))


def enumerated(family: str, statistic: NoisyStatistic, prior: Any, n_prior: NPrior) -> tuple[Floats, Floats]:
    """Parameters, and probabilities of them for the first cell: every N, every sum."""
    position = np.linspace(-40.0, 12.0 if family == "poisson" else 34.0, 6001)
    chance = distribution_of(family, position)
    upper, scale = chance.shape[1] - 1, statistic.plan.scale
    values = statistic.values[0].astype(float)
    weight = np.zeros(len(position))
    distribution = np.ones((len(position), 1))
    low, high = n_prior.support
    for n in range(high + 1):
        total = np.arange(float(distribution.shape[1]))
        distance = np.abs(total - values[0])
        if len(values) > 1:
            distance = distance + np.abs(upper * n - total - values[1])
        if n >= low:
            weight += np.exp(n_prior.log_prob(np.array([float(n)]))) * (
                distribution @ np.exp(-distance / scale)
            )
        longer = np.zeros((len(position), distribution.shape[1] + upper))
        for count in range(upper + 1):
            longer[:, count : count + distribution.shape[1]] += distribution * chance[:, count : count + 1]
        distribution = longer
    log_weight = np.log(weight) + log_prior(family, prior, position)
    share = np.exp(log_weight - log_weight.max())
    parameter = np.exp(position) if family == "poisson" else 1.0 / (1.0 + np.exp(-position))
    return parameter, share / share.sum()


@pytest.mark.parametrize("family", list(ENTRIES))
@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize(
    ("sums", "n_prior", "epsilon"),
    [
        ([14, 5], Uniform(0, 6), "0.5"),
        ([19, 1], Uniform(0, 6), "3"),
        ([-9, 30], Uniform(0, 5), "0.2"),
        ([15], Fixed(5), "1"),
        ([26], Fixed(6), "0.3"),
    ],
)
def test_posteriors_are_those_of_enumeration(
    family: str, which: int, sums: list[int], n_prior: NPrior, epsilon: str
) -> None:
    public_n = n_prior.n if isinstance(n_prior, Fixed) else None
    statistic = released(family, [sums], epsilon=epsilon, public_n=public_n)
    given = PRIORS[family][which]
    distribution = clipped_distribution([statistic], Density.of(given) or given, [n_prior])
    parameter, share = enumerated(family, statistic, given, n_prior)
    mean = float(share @ parameter)
    sd = float(np.sqrt(share @ (parameter - mean) ** 2))
    (name,) = distribution.parameters
    assert abs(distribution.mean(name)[0] - mean) < 1e-6 * sd
    assert distribution.sd(name)[0] == pytest.approx(sd, rel=1e-5)
    levels = (0.025, 0.5, 0.975)
    quantiles = distribution.quantiles(name, levels, 1, np.random.default_rng(7))[0]
    below = np.cumsum(share) - share / 2.0
    assert np.interp(quantiles, parameter, below) == pytest.approx(levels, abs=1e-3)


def counted(upper: str, sums: list[list[int]], *, epsilon: str = "1") -> NoisyStatistic:
    """Noisy Poisson counts; of an add_or_remove_one release."""
    plan = statistic_plan({"family": "poisson", "upper": upper}, epsilon=epsilon, public_n=False)
    return noisy_statistic(plan, np.array(sums, dtype=object))


def test_where_little_is_clipped_both_distributions_agree() -> None:
    """Rates of 3 behind a bound of 14: one record in 10^6 is clipped, and the shift is below 1e-3 sd."""
    statistic = counted("14", [[3 * n, 11 * n] for n in (30, 1000, 10**6)])
    n_prior, prior = Uniform(0, 2 * 10**6), Gamma(9, 3)
    plain = modelled_posterior(statistic, prior=prior, n_prior=n_prior, clipping="ignored")
    clipped = clipped_distribution([statistic], prior, [n_prior])
    sd = plain.sd("rate")
    assert np.all(np.abs(plain.mean("rate") - clipped.mean("rate")) < 0.01 * sd)
    assert clipped.sd("rate") == pytest.approx(sd, rel=0.01)


def test_the_choice_is_made_cell_by_cell_and_is_stated() -> None:
    """1,000 records that average 2.0 and 6.9 behind a bound of 8; nothing negligible is left out."""
    statistic = counted("8", [[2000, 6000], [6900, 1100], [2010, 5990]])
    given: dict[str, Any] = {"prior": "Gamma(200, 100)", "n_prior": Uniform(0, 2000)}
    posterior = modelled_posterior(statistic, **given)
    plain = modelled_posterior(statistic, **given, clipping="ignored")
    assert posterior.models_clipping is not None
    assert posterior.models_clipping[1]
    assert plain.models_clipping is not None
    assert not plain.models_clipping.any()
    few = modelled_posterior(counted("40", [[100, 1900], [1900, 100]]), n_prior=Uniform(0, 100))
    assert few.models_clipping is not None
    assert few.models_clipping.tolist() == [False, True]
    assert isinstance(few.distribution, PartlyClipped)
    ignored = modelled_posterior(
        counted("40", [[100, 1900], [1900, 100]]), n_prior=Uniform(0, 100), clipping="ignored"
    )
    assert few.mean("rate")[0] == ignored.mean("rate")[0]
    assert few.mean("rate")[1] > ignored.mean("rate")[1] + 1.0
    assert few.clipping is not None
    assert ignored.clipping is not None
    assert (few.clipping.is_modelled.tolist(), few.clipping.is_warned.tolist()) == (
        [False, True],
        [False, True],
    )  # what lies beyond the bound is extrapolated
    assert ignored.clipping.is_warned.tolist() == [False, False]
    # What is left out is negligible: the two distributions of the first cell.
    alone = clipped_distribution([counted("40", [[100, 1900]])], Gamma(1, 0.05), [Uniform(0, 100)])
    assert abs(alone.mean("rate")[0] - few.mean("rate")[0]) < 0.005 * few.sd("rate")[0]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.3", "5"])
def test_far_from_the_mean_no_cell_is_told_otherwise_than_by_its_whole_distribution(
    epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Averages of 1 to 17 in cells of few records and many, so that distributions are wide and narrow."""
    plan = statistic_plan({"family": "poisson", "upper": "25"}, epsilon=epsilon, public_n=False)
    sums = [[n * average, n * (25 - average)] for n in (2, 10, 60, 2000) for average in range(1, 18)]
    statistic = noisy_statistic(plan, np.array(sums, dtype=object))
    prior, n_prior = Gamma(1, 0.2), Uniform(0, 4000)
    everywhere = np.ones(len(sums), dtype=bool)
    _, quickly = clipped_cells.distribution_with_clipping(statistic, prior, n_prior, everywhere)
    monkeypatch.setattr(clipped_cells, "_FAR", np.inf)
    _, wholly = clipped_cells.distribution_with_clipping(statistic, prior, n_prior, everywhere)
    assert quickly.tolist() == wholly.tolist()
    assert 0 < quickly.sum() < len(sums)


def test_above_the_largest_bound_clipping_is_not_modelled_but_warned_of() -> None:
    """1,000 records that average 990: one in eight is above the first bound beyond it."""
    upper = LARGEST_REACH + 1
    statistic = counted(str(upper), [[990_000, (upper - 990) * 1000]])
    posterior = modelled_posterior(statistic, n_prior=Uniform(0, 2000))
    assert posterior.models_clipping is not None
    assert posterior.clipping is not None
    assert (posterior.models_clipping[0], posterior.clipping.is_warned[0]) == (False, True)


def test_a_posterior_answers_all_questions() -> None:
    """Draws have the distribution's moments and quantiles: 40,000 of them, six standard errors."""
    statistic = counted("40", [[100, 1900], [1900, 100], [30, 20]])
    posterior = modelled_posterior(statistic, n_prior=Uniform(0, 100))
    draws = posterior.sample(40_000, rng=3)["rate"]
    error = posterior.sd("rate") / 200
    assert np.all(np.abs(draws.mean(axis=0) - posterior.mean("rate")) < 6 * error)
    low, high = posterior.credible_interval("rate", 0.9).T
    assert np.all(np.abs(np.mean((low < draws) & (draws < high), axis=0) - 0.9) < 6 * 0.3 / 200)
    assert np.all(np.abs(np.mean(draws < posterior.quantile("rate", 0.3), axis=0) - 0.3) < 6 * 0.46 / 200)
    above = posterior.probability("rate", above=30, draws=40_000, rng=4)
    assert np.all(np.abs(above - np.mean(draws > 30, axis=0)) < 6 * 0.5 / 140)
    difference = posterior.difference("rate", {"cell": 1}, {"cell": 0})
    assert difference.mean()[0] == pytest.approx(posterior.mean("rate")[1] - posterior.mean("rate")[0])


@pytest.mark.parametrize(
    ("prior", "sums"),
    [
        ("Gamma(0.001, 0.001)", [[-3, -2], [40, 60]]),
        ("Gamma(4000, 1000)", [[30000, 20000]]),
        ("Gamma(40, 12)", [[10**9, 20], [10**9, -(10**9)], [-(10**9), 10**9], [-(10**9)] * 2]),
    ],
)
def test_any_released_values_have_a_posterior(prior: str, sums: list[list[int]]) -> None:
    """No records, prior and data at odds, impossible sums: never an error, never no number."""
    posterior = modelled_posterior(counted("8", sums), prior=prior)
    assert np.all(np.isfinite(posterior.mean("rate")))
    low, high = posterior.credible_interval("rate").T
    assert np.all((low <= posterior.mean("rate")) | (posterior.sd("rate") > 10))
    assert np.all(low < high)


@pytest.mark.parametrize("sums", [[[30, 10]], [[300, 20]], [[3000, 5000]]])
def test_a_posterior_has_the_moments_that_its_prior_has(sums: list[list[int]]) -> None:
    """Clipped records do not rule out the largest rates: half a Cauchy has no mean."""
    statistic = counted("8", sums)
    given: dict[str, Any] = {"n_prior": Uniform(0, 2000)}
    cauchy = modelled_posterior(statistic, prior="HalfCauchy(2)", **given)
    assert (cauchy.mean("rate")[0], cauchy.sd("rate")[0]) == (np.inf, np.inf)
    assert np.all(np.isfinite(cauchy.quantile("rate", 0.999)))
    t_like = stats.burr12(1.5, 1.0)  # its density falls as the rate to the power of -2.5
    tailed = modelled_posterior(statistic, prior=t_like, **given)
    assert np.isfinite(tailed.mean("rate")[0])
    assert tailed.sd("rate")[0] == np.inf
    normal = modelled_posterior(statistic, prior="HalfNormal(3)", **given)
    assert np.all(np.isfinite([normal.mean("rate"), normal.sd("rate")]))


def test_of_records_that_are_all_at_the_bound() -> None:
    """Millions of geometric counts at the bound, and nothing on the other side."""
    plan = statistic_plan({"family": "geometric", "upper": "6"}, epsilon="0.1", public_n=False)
    statistic = noisy_statistic(plan, np.array([[6 * 10**6, 0]], dtype=object))
    posterior = modelled_posterior(statistic, prior="Beta(1, 1)")
    assert posterior.models_clipping is not None
    assert posterior.models_clipping[0]
    assert 0.0 < posterior.mean("probability")[0] < 1e-3


def test_there_are_three_ways_of_clipping() -> None:
    with pytest.raises(UsageError, match="by-evidence, modelled or ignored"):
        posterior_of(counted("8", [[3, 4]]), clipping="sometimes")


class IgnoresClipping(GenerativeModel):
    """Posteriors of records as the bound leaves them, judged by the parameters before clipping."""

    @property
    def is_of_bounded_records(self) -> bool:
        """No: truths are of the whole prior, and rates of records before clipping."""
        return False


@pytest.mark.slow
@pytest.mark.parametrize(("n", "public_n", "simulations"), [(200, True, 200), (60, False, 60)])
def test_intervals_cover_where_most_is_clipped_and_fail_where_that_is_ignored(
    n: int, public_n: bool, simulations: int
) -> None:
    """Rates of 10 on average behind a bound of 8: six records of ten are clipped.

    Calibrated posteriors are called otherwise with a chance of 6e-7: each of the three runs of 60 has
    three coverages, at 3e-9 each, and a histogram, whose chi square is as high with chance 1.6e-7 by exact
    enumeration; of 200 with 2.2e-8.
    The control ignores clipping: its intervals of 95 % held the truth in 4 % and 11 % of 1,500 simulations.
    It is missed only where more than 42 of 60 do: at 11 %, a chance below 1e-12.
    """
    limit = 3e-9
    generative_model = generative_model_for(
        "poisson", n=n, public_n=public_n, conditions=({"upper": "8"}, "Gamma(20, 2)")
    )
    generative_model = dataclasses.replace(generative_model, clipping=MODELLED)
    simulation = simulate(generative_model, simulations, np.random.default_rng())
    assert 0.4 < simulation.clipped_share < 0.8
    assert min(simulation.clipped[0].p_values()) > limit
    assert min(simulation.unclipped[0].p_values()) > limit
    fields = {
        field.name: getattr(generative_model, field.name) for field in dataclasses.fields(generative_model)
    }
    ignored = IgnoresClipping(**{**fields, "clipping": "ignored"})
    control = simulate(ignored, simulations, np.random.default_rng())
    assert min(control.clipped[0].p_values()) < limit
    assert min(control.unclipped[0].p_values()) > limit


@pytest.mark.parametrize(
    ("family", "which", "parts", "n_prior"),
    [
        ("poisson", 0, [[14, 5], [19, 1], [15, 9]], Uniform(0, 6)),
        ("poisson", 2, [[3, 15], [23, 1]], Uniform(0, 6)),
        ("geometric", 0, [[15], [9]], Fixed(6)),
        ("negative_binomial", 3, [[19, 3], [-9, 30]], Uniform(0, 6)),
    ],
)
def test_pooled_posteriors_are_those_of_enumeration(
    family: str, which: int, parts: list[list[int]], n_prior: NPrior
) -> None:
    """The product of the likelihoods of all sums of every part, two noises, and the prior once."""
    public_n = n_prior.n if isinstance(n_prior, Fixed) else None
    statistics = [
        released(family, [sums, sums[::-1]], epsilon=epsilon, public_n=public_n)
        for sums, epsilon in zip(parts, ("0.5", "2", "0.3"), strict=False)
    ]
    given = PRIORS[family][which]
    terms: dict[str, Any] = {
        "prior": given,
        "n_prior": None if public_n else n_prior,
        "rng": np.random.default_rng(7),
    }
    posterior = pooled(statistics, **terms)
    position = np.linspace(-40.0, 12.0 if family == "poisson" else 34.0, 6001)
    with np.errstate(divide="ignore"):
        log_share = log_prior(family, given, position) * (1 - len(parts))
        for statistic in statistics:
            parameter, share = enumerated(family, statistic, given, n_prior)
            log_share = log_share + np.log(share)
    share = np.exp(log_share - np.max(log_share))
    share /= np.sum(share)
    mean = float(share @ parameter)
    sd = float(np.sqrt(share @ (parameter - mean) ** 2))
    (name,) = posterior.parameters
    assert posterior.models_clipping is not None
    assert posterior.models_clipping[0]
    assert abs(posterior.mean(name)[0] - mean) < 1e-5 * sd
    assert posterior.sd(name)[0] == pytest.approx(sd, rel=1e-4)
    ignored = pooled(statistics, clipping="ignored", **terms)
    assert ignored.models_clipping is not None
    assert not ignored.models_clipping.any()
    assert abs(ignored.mean(name)[0] - mean) > 1e-3 * sd


@pytest.mark.slow
def test_pooled_cells_in_which_clipping_is_negligible_stay_as_they_were() -> None:
    parts = [counted("40", [[100, 1900], [1900, 100]]), counted("40", [[120, 1880], [1850, 150]])]
    terms: dict[str, Any] = {"prior": "Gamma(1, 0.1)", "n_prior": Uniform(0, 100)}
    both, ignored = (
        pooled(parts, **terms, clipping=clipping, rng=np.random.default_rng(7))
        for clipping in ("modelled", "ignored")
    )
    assert both.models_clipping is not None
    assert both.models_clipping.tolist() == [False, True]
    assert both.mean("rate")[0] == ignored.mean("rate")[0]
    assert both.mean("rate")[1] > ignored.mean("rate")[1] + 1.0
    assert ignored.clipping is not None
    assert ignored.clipping.is_warned.tolist() == [False, False]


@pytest.mark.slow
def test_pooled_intervals_cover_where_most_is_clipped_and_fail_where_that_is_ignored() -> None:
    """30 times two data sets of 40 records, rates of 10 on average behind a bound of 8.

    Fewer than 20 of 30 intervals of 95 % hold the truth with a chance of 1.1e-7. Of those that ignore
    clipping 9.6 % of 1,200 did: were it 20 %, 20 or more would with a chance below 1e-6. Truths are of
    the prior before it is restricted: `GenerativeModel.truth` has means within the bounds alone.
    """
    cells, rng = 30, np.random.default_rng()
    generative_model = generative_model_for(
        "poisson", n=40, public_n=True, conditions=({"upper": "8"}, "Gamma(20, 2)")
    )
    truth, sizes = rng.gamma(20.0, 0.5, cells), np.full(cells, 40)
    parts = []
    for _ in range(2):
        noise = discrete_laplace(generative_model.scale, (cells, len(generative_model.plan.components)), rng)
        parts.append(generative_model.noisy(generative_model.sums(truth, sizes, rng).clipped, noise))
    held = []
    for clipping in ("modelled", "ignored"):
        posterior = pooled(parts, prior=generative_model.prior, n_prior=None, clipping=clipping, rng=rng)
        low, high = posterior.credible_interval("rate").T
        held.append(int(np.sum((low < truth.ravel()) & (truth.ravel() < high))))
    assert held[0] >= 20
    assert held[1] < 20
