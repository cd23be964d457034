"""One posterior sample: its law, its cost, and the error of one draw beside the papers' Laplace mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betainc, logsumexp, xlogy

from studies.mechanisms.posterior_sampling import (
    change_bound,
    laplace_beta_bernoulli,
    public_start,
    range_of_change,
    sample_beta_bernoulli,
    sample_dirichlet,
    temperature,
)
from studies.mechanisms.truncated import (
    draw_truncated_beta,
    draw_truncated_dirichlet,
    move_truncated_dirichlet,
)
from suffice.errors import UsageError
from support.one_draw import error_of_a_sample, error_of_laplace

if TYPE_CHECKING:
    from studies.mechanisms.not_a_release import Relation

Floats = NDArray[np.float64]

RELATIONS: tuple[Relation, ...] = ("replace_one", "add_or_remove_one")
SIZES = (1, 5, 10, 100, 1000, 10_000)
TRUTH = 0.1
LAPLACE = {  # mean |draw - truth|: the truth is .1, a0 .05, epsilon .1
    "replace_one": (0.424, 0.389, 0.356, 0.117, 0.0217, 0.0039),
    "add_or_remove_one": (0.407, 0.352, 0.291, 0.0764, 0.0142, 0.0035),
}
SAMPLE = {
    "replace_one": (0.402, 0.388, 0.378, 0.248, 0.0663, 0.0187),
    "add_or_remove_one": (0.397, 0.383, 0.360, 0.181, 0.0438, 0.0133),
}


def _one_pass(parameters: Floats, least: float, draws: int, rng: np.random.Generator) -> Floats:
    """The mutant: Fang and others (2000) draw one entry after the other from truncated Betas."""
    sample = np.zeros((draws, parameters.size))
    left = np.ones(draws)
    for place in range(parameters.size - 1):
        after = parameters.size - place - 1
        first = np.full(draws, parameters[place])
        second = np.full(draws, parameters[place + 1 :].sum())
        share = draw_truncated_beta(first, second, least / left, 1.0 - after * least / left, rng)
        sample[:, place] = share * left
        left = left - sample[:, place]
    sample[:, -1] = left
    return sample


def _expected(n_records: int, relation: Relation) -> float:
    tempered = temperature(range_of_change(0.05, relation=relation), 0.1)
    return error_of_a_sample(n_records, truth=TRUTH, least=0.05, tempered=tempered)


def _expected_of_laplace(n_records: int, relation: Relation) -> float:
    return error_of_laplace(n_records, truth=TRUTH, scale=(2.0 if relation == "replace_one" else 1.0) / 0.1)


def test_costs_are_those_of_the_formulas() -> None:
    assert temperature(range_of_change(0.2), 1.0) == pytest.approx(2.772589, abs=5e-7)
    assert temperature(range_of_change(0.05), 0.1) == pytest.approx(58.88878, abs=5e-6)
    assert range_of_change(0.2, relation="add_or_remove_one") == pytest.approx(1.386294, abs=5e-7)
    for multiplier in (10, 100):
        for n_categories in (2, 10, 60):
            bound = math.log(n_categories * (multiplier - 1) + 1)
            change = change_bound(1.0 / (multiplier * n_categories), n_categories)
            assert change == pytest.approx(bound, rel=1e-12)
    rng = np.random.default_rng(1)
    twice = sample_beta_bernoulli(6, 14, epsilon=1.0, least=0.2, draws=2, rng=rng)
    assert twice.temperature == pytest.approx(2 * 2.772589, abs=1e-6)
    assert twice.nominal_epsilon == pytest.approx(1.0)
    free = sample_beta_bernoulli(6, 14, epsilon=5.0, least=0.2, rng=rng)
    assert free.temperature == 1.0
    assert free.nominal_epsilon == pytest.approx(2.772589, abs=1e-6)


@pytest.mark.parametrize(("relation", "attained"), [("add_or_remove_one", 2.19623), ("replace_one", 4.3853)])
def test_no_neighbour_changes_the_law_by_more_than_its_cost(relation: Relation, attained: float) -> None:
    """The largest log ratio of densities: at (1000, 0) one more record costs 2.19623 of log 9 at T = 1."""
    least, grid = 0.1, np.linspace(0.1, 0.9, 4001)
    weights = np.full(grid.size, grid[1] - grid[0])
    weights[[0, -1]] /= 2.0
    change = range_of_change(least, relation=relation)

    def log_density(ones: int, zeros: int, tempered: float) -> Floats:
        score = (xlogy(ones, grid) + xlogy(zeros, 1.0 - grid)) / tempered
        density: Floats = score - logsumexp(score, b=weights)
        return density

    worst = 0.0
    for epsilon in (0.5, 1.0, 100.0):
        tempered = temperature(change, epsilon)
        for total in (1, 20, 1000):
            for ones in sorted({0, total // 2, total}):
                others = [(ones + 1, total - ones), (ones, total - ones + 1)]
                if relation == "replace_one":
                    others = [(ones + step, total - ones - step) for step in (-1, 1)]
                for other in others:
                    if min(other) >= 0:
                        here = log_density(ones, total - ones, tempered)
                        loss = np.abs(here - log_density(*other, tempered)).max()
                        assert loss <= change / tempered + 1e-9
                        worst = max(worst, loss)
    assert worst == pytest.approx(attained, abs=2e-3)
    assert worst > 0.9 * change  # a range understated by a tenth is exceeded


def test_draws_have_the_law_of_the_truncated_posterior() -> None:
    """Kolmogorov-Smirnov, 40,000 draws, p > 1e-7; the posterior at half of the temperature is caught."""
    rng = np.random.default_rng(2)
    sample = sample_beta_bernoulli(np.full(40_000, 6), np.full(40_000, 14), epsilon=1.0, least=0.2, rng=rng)

    def distribution(points: Any, tempered: float) -> Any:
        first, second = 1.0 + 6.0 / tempered, 1.0 + 14.0 / tempered
        low, high = betainc(first, second, 0.2), betainc(first, second, 0.8)
        return (betainc(first, second, points) - low) / (high - low)

    values = sample.draws.ravel()
    assert values.min() >= 0.2
    assert values.max() <= 0.8
    assert values.mean() == pytest.approx(0.386630, abs=6 * 0.1245 / math.sqrt(values.size) + 5e-4)
    assert stats.kstest(values, lambda points: distribution(points, sample.temperature)).pvalue > 1e-7
    assert stats.kstest(values, lambda points: distribution(points, sample.temperature / 2)).pvalue < 1e-7


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [(3.0, 5e5, 0.01, 0.99), (0.5, 5e5, 0.01, 0.99), (5e5, 0.5, 0.01, 0.99), (0.5, 4e3, 0.4, 0.401)],
)
def test_an_interval_far_in_a_tail_is_drawn_from(
    first: float, second: float, low: float, high: float
) -> None:
    """Kolmogorov-Smirnov, p > 1e-7, against quadrature of logarithms: chances themselves are 0 in floats."""
    size = 20_000
    values = draw_truncated_beta(
        np.full(size, first), np.full(size, second), np.array(low), np.array(high), np.random.default_rng(3)
    )
    assert values.min() >= low
    assert values.max() <= high
    nearer = low if first < second else high
    rate = abs((first - 1) / nearer - (second - 1) / (1 - nearer))
    reach = min(40.0 / rate, high - low)
    points = nearer + np.linspace(0, reach if nearer == low else -reach, 20_001)
    log_density = xlogy(first - 1, points) + xlogy(second - 1, 1 - points)
    density = np.exp(log_density - log_density.max())
    distribution = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    distances = np.abs(points - nearer)
    result = stats.kstest(
        np.abs(values - nearer), lambda at: np.interp(at, distances, distribution / distribution[-1])
    )
    assert result.pvalue > 1e-7


@settings(max_examples=150)
@given(
    powers=st.tuples(st.floats(-3, 7), st.floats(-3, 7)),
    ends=st.tuples(st.floats(1e-9, 1 - 1e-9), st.floats(1e-9, 1 - 1e-9)),
    seed=st.integers(0, 2**32),
)
def test_a_draw_lies_in_its_interval_wherever_that_is(
    powers: tuple[float, float], ends: tuple[float, float], seed: int
) -> None:
    low, high = min(ends), max(ends)
    first, second = (np.full(3, 10.0**power) for power in powers)
    values = draw_truncated_beta(first, second, np.array(low), np.array(high), np.random.default_rng(seed))
    assert (low <= values).all()
    assert (values <= high).all()


def test_a_truncated_dirichlet_is_drawn_and_one_pass_is_not_it() -> None:
    """(5, 2, 1, 1) above .15 has mean .3371 of the first entry; one pass of truncated Betas gives .4229."""
    parameters, least, size = np.array([5.0, 2.0, 1.0, 1.0]), 0.15, 20_000
    rng = np.random.default_rng(4)
    exact = draw_truncated_dirichlet(parameters, least, draws=size, rng=rng)
    moved = move_truncated_dirichlet(
        public_start((size, 4), least, rng), parameters, least, rounds=12, rng=rng
    )
    once = _one_pass(parameters, least, size, rng)
    for sample, mean in ((exact, 0.3371), (moved, 0.3371), (once, 0.4229)):
        np.testing.assert_allclose(sample.sum(axis=1), 1.0, atol=1e-12)
        assert sample.min() >= least - 1e-12
        error = 6 * sample[:, 0].std() / math.sqrt(size)
        assert error < 0.006
        assert sample[:, 0].mean() == pytest.approx(mean, abs=error)
    for entry in range(4):
        assert stats.ks_2samp(exact[:, entry], moved[:, entry]).pvalue > 1e-8
    assert stats.ks_2samp(exact[:, 0], once[:, 0]).pvalue < 1e-8


def test_gibbs_on_pairs_leaves_the_truncated_dirichlet_as_it_is() -> None:
    rng = np.random.default_rng(5)
    parameters, least = np.array([30.0, 2.0, 1.0, 1.0, 1.0]), 0.02
    exact = draw_truncated_dirichlet(parameters, least, draws=30_000, rng=rng)
    moved = move_truncated_dirichlet(exact, parameters, least, rng=rng)
    assert (moved != exact).mean() > 0.7
    for entry in range(5):
        assert stats.ks_2samp(exact[:, entry], moved[:, entry]).pvalue > 1e-8


@pytest.mark.parametrize("relation", RELATIONS)
def test_errors_of_one_draw_are_those_of_the_table(relation: Relation) -> None:
    """20,000 repeats within 6 standard errors of sums over all counts; those within .008 of the table."""
    rng = np.random.default_rng(6)
    for n_records, laplace, sample in zip(SIZES, LAPLACE[relation], SAMPLE[relation], strict=True):
        ones = rng.binomial(n_records, TRUTH, size=20_000)
        drawn = sample_beta_bernoulli(
            ones, n_records - ones, epsilon=0.1, least=0.05, relation=relation, rng=rng
        )
        errors = np.abs(drawn.draws[0] - TRUTH)
        expected = _expected(n_records, relation)
        assert expected == pytest.approx(sample, abs=0.008)
        assert errors.mean() == pytest.approx(expected, abs=6 * errors.std() / math.sqrt(errors.size))
        noisy = laplace_beta_bernoulli(ones, n_records - ones, epsilon=0.1, relation=relation, rng=rng)
        assert np.abs(noisy.draws[0] - TRUTH).mean() == pytest.approx(laplace, abs=0.012)


def test_the_lines_cross_before_ten_records() -> None:
    """The paper says about 10. The sample is better below 5 records, below 3 if records come and go."""
    last: dict[Relation, int] = {"replace_one": 5, "add_or_remove_one": 2}
    for relation, n_records in last.items():
        assert _expected(n_records, relation) < _expected_of_laplace(n_records, relation)
        assert _expected(n_records + 1, relation) > _expected_of_laplace(n_records + 1, relation)


@pytest.mark.audit
@pytest.mark.parametrize("relation", RELATIONS)
def test_errors_of_a_million_draws(relation: Relation) -> None:
    """A million repeats of both mechanisms within 6 standard errors of sums over all counts."""
    rng = np.random.default_rng(7)
    for n_records in (1, 5, 10, 100):
        ones = rng.binomial(n_records, TRUTH, size=1_000_000)
        drawn = sample_beta_bernoulli(
            ones, n_records - ones, epsilon=0.1, least=0.05, relation=relation, rng=rng
        )
        noisy = laplace_beta_bernoulli(ones, n_records - ones, epsilon=0.1, relation=relation, rng=rng)
        for sample, expected in (
            (drawn, _expected(n_records, relation)),
            (noisy, _expected_of_laplace(n_records, relation)),
        ):
            errors = np.abs(sample.draws[0] - TRUTH)
            assert errors.mean() == pytest.approx(expected, abs=6 * errors.std() / math.sqrt(errors.size))


def test_a_sample_of_a_chain_says_that_its_cost_is_nominal() -> None:
    rng = np.random.default_rng(8)
    counts = np.array([40, 10, 5, 5])
    exact = sample_dirichlet(counts, epsilon=1.0, least=0.025, rng=rng)
    chained = sample_dirichlet(counts, epsilon=1.0, least=0.025, rounds=10, rng=rng)
    assert exact.is_exact
    assert not chained.is_exact
    assert exact.temperature == pytest.approx(2 * math.log(37))
    assert "only if the chain has converged" in str(chained)
    assert "only if the chain has converged" not in str(exact)
    for sample in (exact, chained):
        assert sample.label == "not a release"
        assert str(sample).startswith("not a release\n")
        assert sample.csv().startswith("# not a release\n# epsilon 1 ")
        assert sample.csv().splitlines()[2:4] == ["draw,place,value", f"0,0,{sample.draws[0, 0]}"]


Call = Callable[[np.random.Generator], object]


@pytest.mark.parametrize(
    "call",
    [
        lambda rng: sample_beta_bernoulli(-1, 3, epsilon=1.0, least=0.1, rng=rng),
        lambda rng: sample_beta_bernoulli(1, math.nan, epsilon=1.0, least=0.1, rng=rng),
        lambda rng: sample_beta_bernoulli(1, 3, epsilon=0.0, least=0.1, rng=rng),
        lambda rng: sample_beta_bernoulli(1, 3, epsilon=1.0, least=0.5, rng=rng),
        lambda rng: sample_beta_bernoulli(1, 3, epsilon=1.0, least=0.0, rng=rng),
        lambda rng: sample_beta_bernoulli(1, 3, epsilon=1.0, least=0.1, draws=0, rng=rng),
        lambda rng: sample_dirichlet(np.array([1, 2, 3]), epsilon=1.0, least=0.34, rng=rng),
        lambda rng: draw_truncated_dirichlet(np.array([5e3, 1.0, 1.0]), 0.3, rng=rng),
        lambda rng: laplace_beta_bernoulli(np.array([1]), np.array([2]), epsilon=-1.0, rng=rng),
    ],
)
def test_what_has_no_meaning_is_refused(call: Call) -> None:
    with pytest.raises(UsageError):
        call(np.random.default_rng(10))
