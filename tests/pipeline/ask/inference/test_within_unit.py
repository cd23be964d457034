"""Rows and units taken apart, design effects behind noise, and posteriors that they widen."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import betaln, gammaln
from scipy.stats import norm

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.within_unit import LEVELS, design_effects
from suffice.pipeline.ask.pooling.roll_up import roll_up
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.released.noisy_statistic import NoisyProducts, noisy_products, rows_alone
from support.dependent_units import (
    BERNOULLI,
    MAX_ROWS,
    NORMAL,
    bernoulli_units,
    normal_units,
    plan_of_units,
)
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

CELLS = 6


def alike(correlation: float, units: int = 400) -> NoisyStatistic:
    rng = np.random.default_rng(5)
    sizes = np.full((CELLS, units), MAX_ROWS)
    return bernoulli_units(plan_of_units(BERNOULLI), sizes, np.full(CELLS, 0.3), correlation, rng)


def test_rows_alone_are_those_of_a_statistic_without_units() -> None:
    plan = plan_of_units(BERNOULLI)
    assert plan.within_unit is not None
    weight = plan.within_unit.row_weight
    statistic = noisy_statistic(plan, np.array([[3 * weight + 4, -weight, 7, 8, 9]]))
    rows = rows_alone(statistic)
    assert rows.values.tolist() == [[3.25, -1.0]]
    assert rows.plan.scale == plan.scale / weight
    of_rows = statistic_plan({**BERNOULLI}, epsilon="1", public_n=False)
    assert [quantity.coefficients for quantity in rows.plan.quantities] == [
        quantity.coefficients for quantity in of_rows.quantities
    ]
    for name in ("n", "total"):
        (ours, noise), (whole, noise_of_whole) = rows.quantity(name), statistic.quantity(name)
        assert ours.tolist() == whole.tolist()
        assert noise == pytest.approx(noise_of_whole, rel=0.02)
    assert noisy_products(statistic).values.tolist() == [[7.0, 8.0, 9.0]]


def test_products_are_quantities_of_the_column() -> None:
    """Two units: (1, 2) and (3) in -10..10, by hand."""
    plan = plan_of_units(NORMAL)
    largest = 1 << (plan.parameters.lattice_bits or 0)
    steps = np.array([round(value / 10 * largest) for value in (1.0, 2.0, 3.0)])
    parts = [
        (2 * largest - steps[:2].sum(), 2 * largest + steps[:2].sum()),
        (largest - steps[2], largest + steps[2]),
    ]
    products = [sum(int(f) * int(f) for f, _ in parts), sum(2 * int(f) * int(s) for f, s in parts)]
    products.append(sum(int(s) * int(s) for _, s in parts))
    values = np.array([[0, 0, 0, *products]], dtype=object)
    statistic = dataclasses.replace(noisy_statistic(plan, np.zeros((1, 6), int)), values=values)
    estimates = {row["quantity"]: row["estimate"] for row in statistic.table()}
    assert estimates["n_squared_of_units"] == pytest.approx(5.0)
    assert estimates["n_times_total_of_units"] == pytest.approx(2 * 3.0 + 3.0, abs=1e-3)
    assert estimates["total_squared_of_units"] == pytest.approx(9.0 + 9.0, abs=1e-3)


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("effect", [1.2, 2.0, 2.9])
def test_without_noise_the_design_effect_is_found(mean: float, effect: float) -> None:
    """Squared totals alone would take much of m^2 k^2 for it where m is near 1."""
    n, most = 30_000.0, 3
    variance = mean * (1 - mean)
    size, squares, cross = 2.95 * n, effect * n * variance, 40.0
    values = [
        (1 - mean) ** 2 * size - 2 * (1 - mean) * cross + squares,
        2 * (variance * size + (1 - 2 * mean) * cross - squares),
        mean**2 * size + 2 * mean * cross + squares,
    ]
    products = NoisyProducts(values=np.array([values]), scale=1.0, max_rows=most)
    levels = design_effects(products, np.array([n]), np.array([mean]), np.array([variance]))
    assert levels.shape == (1, LEVELS)
    assert levels == pytest.approx(effect, abs=0.02)


def test_behind_much_noise_the_design_effect_is_that_of_the_prior() -> None:
    products = NoisyProducts(values=np.zeros((1, 3)), scale=1e9, max_rows=3)
    levels = design_effects(products, np.array([300.0]), np.array([0.5]), np.array([0.25]))[0]
    assert (levels >= 1.0).all()
    assert (levels <= 3.0).all()
    assert (np.diff(levels) > 0).all()
    expected = 2.0 * (2.0 / 3.0) * (3.0 / 8.0)
    assert levels.mean() == pytest.approx(1.0 + expected, abs=0.03), "K - 1 times the means of two parts"
    empty = NoisyProducts(values=np.zeros((1, 3)), scale=57.0, max_rows=3)
    assert np.isfinite(design_effects(empty, np.zeros(1), np.array([0.5]), np.zeros(1))).all()


@pytest.mark.parametrize("prior", [None, "Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1))"])
def test_draws_moments_and_quantiles_of_a_widened_posterior_agree(prior: str | None) -> None:
    statistic = alike(0.5)
    posterior = unrestricted_posterior(statistic, prior=prior, n_prior=Uniform(0, 3000))
    drawn = posterior.sample(20_000, 3)["probability"]
    mean, sd = posterior.mean("probability"), posterior.sd("probability")
    assert np.abs(drawn.mean(axis=0) - mean).max() < 6 * sd.max() / np.sqrt(20_000)
    assert drawn.std(axis=0) == pytest.approx(sd, rel=0.04)
    ends = posterior.credible_interval("probability", 0.8, draws=20_000, rng=4)
    inside = np.mean((ends[:, 0] <= drawn) & (drawn <= ends[:, 1]))
    assert inside == pytest.approx(0.8, abs=0.02)


def test_a_posterior_widens_as_the_root_of_the_design_effect() -> None:
    statistic = alike(0.5, units=20_000)
    widened, plain = (unrestricted_posterior(statistic, within_unit=way) for way in ("modelled", "ignored"))
    assert plain.design_effect is None
    assert widened.design_effect == pytest.approx(2.0, abs=0.1)
    ratio = widened.sd("probability") / plain.sd("probability")
    assert ratio == pytest.approx(np.sqrt(2.0), abs=0.05)
    assert widened.mean("probability") == pytest.approx(plain.mean("probability"), abs=1e-3)


def test_a_widened_normal_posterior() -> None:
    rng = np.random.default_rng(6)
    statistic = normal_units(plan_of_units(NORMAL), (2, 60_000), (2.0, 1.0), 0.5, rng)
    prior = NormalInverseGamma(0, 0.05, 3, 2)
    widened, plain = (
        unrestricted_posterior(statistic, prior=prior, within_unit=way) for way in ("modelled", "ignored")
    )
    assert widened.design_effect == pytest.approx(2.0, abs=0.35)
    assert (widened.sd("mean") > 1.15 * plain.sd("mean")).all()
    drawn = widened.sample(4000, 3)
    for parameter in ("mean", "variance"):
        sd = widened.sd(parameter)
        assert drawn[parameter].std(axis=0) == pytest.approx(sd, rel=0.12)
        lower, upper = widened.credible_interval(parameter, 0.95).T
        assert (upper - lower) == pytest.approx(2 * norm.isf(0.025) * sd, rel=0.1)


def test_sums_behind_noise_between_the_integers() -> None:
    """Rows' noise has a finer lattice than their counts: against a sum over every pair of counts."""
    plan = plan_of_units(BERNOULLI, max_rows=2)
    assert plan.within_unit is not None
    weight = plan.within_unit.row_weight
    values = np.array([[11 * weight + 3, 5 * weight + 5, 0, 0, 0]])
    statistic = noisy_statistic(plan, values)
    posterior = unrestricted_posterior(
        statistic, prior=Beta(2, 3), n_prior=Uniform(0, 60), within_unit="ignored"
    )
    false, true = np.meshgrid(np.arange(61), np.arange(61), indexing="ij")
    n = false + true
    log_weight = gammaln(n + 1) - gammaln(false + 1) - gammaln(true + 1) + betaln(2 + true, 3 + false)
    for position, count in enumerate((false, true)):
        log_weight = log_weight - np.abs(values[0, position] - weight * count) / plan.scale
    share = np.where(n <= 60, np.exp(log_weight - log_weight.max()), 0.0)
    share /= share.sum()
    mean = np.sum(share * (2 + true) / (5 + n))
    second = np.sum(share * (2 + true) * (3 + true) / ((5 + n) * (6 + n)))
    assert posterior.mean("probability")[0] == pytest.approx(mean, abs=2e-3)
    assert posterior.sd("probability")[0] == pytest.approx(np.sqrt(second - mean**2), rel=0.01)


def test_rows_that_are_independent_in_any_case_are_not_asked_about() -> None:
    statistic = noisy_statistic(statistic_plan(BERNOULLI, epsilon="1", public_n=False), np.array([[20, 10]]))
    with pytest.raises(UsageError, match="was released without within_unit"):
        unrestricted_posterior(statistic, within_unit="ignored")


def test_what_cannot_make_use_of_units_refuses_them() -> None:
    statistic = alike(0.1)
    with pytest.raises(UsageError, match="pooling would take rows of one unit for independent"):
        roll_up(statistic, "cell").posterior(assume="one parameter")
    with pytest.raises(UsageError, match="within_unit is modelled or ignored"):
        unrestricted_posterior(statistic, within_unit="perhaps")
    density = "TruncatedNormal(0.3, 0.2, 0, 1)"
    with pytest.raises(UsageError, match="conjugate priors and mixtures"):
        unrestricted_posterior(statistic, prior=density)
    assert unrestricted_posterior(statistic, prior=density, within_unit="ignored").design_effect is None


def test_evidence_and_checks_do_not_take_alike_rows_for_independent() -> None:
    statistic = alike(0.5)
    posterior = unrestricted_posterior(statistic)
    with pytest.raises(UsageError, match="rows of one unit for independent"):
        _ = posterior.log_evidence
    ignored = unrestricted_posterior(statistic, within_unit="ignored")
    assert np.isfinite(ignored.log_evidence).all()


def test_totals_vary_by_the_design_effect_where_conflicts_are_looked_for() -> None:
    """A prior as good as a point, and little noise: tails of a normal number, whose variance is known."""
    n, units = MAX_ROWS * 2000, 2000
    plan = plan_of_units(BERNOULLI, epsilon="100")
    sizes = np.full((1, units), MAX_ROWS)
    statistic = bernoulli_units(plan, sizes, np.array([0.3]), 0.5, np.random.default_rng(3))
    prior = "Beta(33000000, 67000000)"
    posterior = unrestricted_posterior(statistic, prior=prior)
    ignored = unrestricted_posterior(statistic, prior=prior, within_unit="ignored")
    total = posterior.conflict.quantities.index("total")
    (quantity,) = (quantity for quantity in plan.quantities if quantity.name == "total")
    gap = float(statistic.estimates(quantity)[0]) - 0.33 * n
    assert posterior.design_effect is not None
    for each, effect in ((posterior, posterior.design_effect[0]), (ignored, 1.0)):
        expected = 2 * norm.sf(abs(gap) / np.sqrt(n * 0.33 * 0.67 * effect))
        assert np.log(each.conflict.tails[0, total]) == pytest.approx(np.log(expected), rel=0.1)
