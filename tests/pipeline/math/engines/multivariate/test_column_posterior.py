"""Noise-aware posteriors of several columns: their density, against independent routes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from suffice.pipeline.math.engines.multivariate import column_posterior as posteriors
from suffice.pipeline.math.engines.multivariate import hmc
from suffice.pipeline.math.engines.multivariate.evidence import NormalEvidence, RegressionEvidence
from suffice.pipeline.math.engines.multivariate.log_posterior import LatentN, LatentTarget
from suffice.pipeline.math.priors.record_count import Fixed, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from support.joint import STEPS, plan_of, simulate, spec_of, true_regression
from support.noisy import noisy_statistic
from support.slopes import assert_gradient
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.priors.record_count import NPrior

UNIT = {"lower": -1, "upper": 1}
NORMAL = {"family": "multivariate_normal", "columns": {"x": UNIT, "y": UNIT}}
REGRESSION = {"family": "linear_regression", "predictors": {"x": UNIT}, "outcome": {"y": UNIT}}
ORIGIN = {**REGRESSION, "intercept": False, "noise": "laplace"}


def positive(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    root = rng.normal(size=(size, size))
    return np.asarray(root @ root.T + np.eye(size))


def target_of(
    size: int, *, linear: bool, regression: bool, fixed: bool, rng: np.random.Generator
) -> LatentTarget:
    columns = size - 1 if regression else size
    evidence: tuple[Any, ...] = (
        NormalEvidence(
            loc=rng.normal(size=columns) / 5,
            precision=1.3,
            df=size + 4.0,
            scale=positive(columns, rng),
            linear=linear,
        ),
    )
    if regression:
        coefficients = columns + linear
        evidence += (
            RegressionEvidence(
                loc=rng.normal(size=coefficients),
                precision=positive(coefficients, rng),
                concentration=3.0,
                scale=0.5,
                linear=linear,
            ),
        )
    moments = (size + 1) * (size + 2) // 2
    return LatentTarget(
        size=size,
        linear=linear,
        evidence=evidence,
        latent_n=LatentN(
            lowest=30.0 if fixed else size + 1.5, highest=30.0 if fixed else 1e6, reciprocal=True, fixed=fixed
        ),
        scaled=NoisyTotals(
            coefficients=rng.normal(size=(moments, moments)) / 10,
            # Far from the kinks, where the gradient is not rounded off.
            values=1e4 * rng.choice([-1.0, 1.0], size=(2, moments)),
            scale=np.ones(moments),
        ),
    )


@pytest.mark.parametrize(
    ("linear", "regression", "fixed"), list(itertools.product([True, False], [True, False], [True, False]))
)
def test_the_gradient_is_that_of_the_density(linear: bool, regression: bool, fixed: bool) -> None:
    rng = np.random.default_rng(7)
    target = target_of(3, linear=linear, regression=regression, fixed=fixed, rng=rng)
    x = rng.normal(size=(target.n_coordinates, 4)) * 0.3
    if not fixed:
        x[0] -= 9
    _, gradient = target(x)
    assert_gradient(lambda x: target(x)[0], x, gradient)
    state = target.state(x)
    assert target.coordinates(state.n, state.mean, state.spread) == pytest.approx(x, abs=1e-9)


@pytest.mark.parametrize("linear", [True, False])
def test_the_distribution_of_moments_adds_up_to_one_whatever_n(linear: bool) -> None:
    """One column on a grid of mean and log sd: the same total mass for every N."""
    masses = []
    for n in (3.0, 4.0, 7.0, 40.0):
        target = LatentTarget(
            size=1,
            linear=linear,
            evidence=(
                NormalEvidence(
                    loc=np.array([0.2]), precision=1.5, df=6.0, scale=np.array([[0.7]]), linear=linear
                ),
            ),
            latent_n=LatentN(lowest=n, highest=n, reciprocal=False, fixed=True),
            scaled=NoisyTotals(coefficients=np.zeros((3, 3)), values=np.zeros((1, 3)), scale=np.ones(3)),
        )
        mean, log_sd = np.linspace(-6, 6, 601), np.linspace(-9, 5, 701)
        grid = np.stack([axis.ravel() for axis in np.meshgrid(mean, log_sd, indexing="ij")])
        cell = (mean[1] - mean[0]) * (log_sd[1] - log_sd[0])
        if not linear:
            grid, cell = log_sd[None], log_sd[1] - log_sd[0]
        masses.append(np.log(np.sum(np.exp(target(grid)[0])) * cell))
    assert masses == pytest.approx([masses[0]] * len(masses), abs=2e-3)


def brute_force(
    entry: dict[str, Any],
    values: NDArray[Any],
    prior: Any,
    sizes: NDArray[np.int64],
    *,
    epsilon: str,
    public_n: int | None,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weigh draws of the prior, with statistics drawn from the model, by the density of the noise."""
    plan = plan_of(entry, epsilon=epsilon, public_n=public_n is not None)
    truth, totals = simulate(entry, prior, sizes, epsilon=epsilon, public_n=public_n is not None, rng=rng)
    log_weight = -np.abs((values - totals).astype(np.float64) / plan.scale).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return truth, weight / weight.sum()


def in_the_middle(
    entry: dict[str, Any],
    prior: Any,
    sizes: NDArray[np.int64],
    *,
    epsilon: str,
    public_n: bool,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Noisy sums amid what is expected, in whole scales: far out weighted draws would be few, by bad luck."""
    _, totals = simulate(entry, prior, sizes[:10_000], epsilon=epsilon, public_n=public_n, rng=rng)
    scale = plan_of(entry, epsilon=epsilon, public_n=public_n).scale
    steps = np.rint(np.median(totals.astype(np.float64), axis=0) / scale)
    positions: NDArray[np.float64] = np.rint((steps + np.resize([1.0, -1.0], len(steps))) * scale)[None]
    return positions


CASES: list[tuple[dict[str, Any], Any, str, int | None]] = [
    (NORMAL, NormalInverseWishart([0.1, -0.1], 4, 9, [[0.5, 0.2], [0.2, 0.7]]), "1", None),
    (NORMAL, NormalInverseWishart([0.1, -0.1], 4, 9, [[0.5, 0.2], [0.2, 0.7]]), "1", 12),
    (NORMAL, SpreadNormalInverseWishart([0.1, -0.1], 0.6), "3", 12),
    (REGRESSION, NormalInverseGammaRegression([0.5, 0.1], [2, 5], 4, 0.4), "0.3", None),
    (REGRESSION, NormalInverseGammaRegression([0.5, 0.1], [2, 5], 4, 0.4), "1", 12),
    (ORIGIN, NormalInverseGammaRegression(0.5, 2, 4, 0.4), "0.3", None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "prior", "epsilon", "public_n"), CASES)
def test_the_posterior_is_that_of_weighted_draws_of_the_prior(
    entry: dict[str, Any], prior: Any, epsilon: str, public_n: int | None
) -> None:
    """An independent route: parameters and moments from the prior, weighted by the noise alone.

    Both are simulations: at this seed they differ by seven of their estimated errors at most.
    """
    rng = np.random.default_rng(7)
    n_prior: NPrior | None = None if public_n else Uniform(4, 30)
    size = 100_000
    sizes = np.full(size, public_n) if public_n else rng.integers(4, 31, size)
    plan = plan_of(entry, epsilon=epsilon, public_n=public_n is not None)
    values = in_the_middle(entry, prior, sizes, epsilon=epsilon, public_n=public_n is not None, rng=rng)
    statistic = noisy_statistic(plan, values, public_n=public_n)
    truth, weight = brute_force(
        entry, statistic.values, prior, sizes, epsilon=epsilon, public_n=public_n, rng=rng
    )
    effective = 1.0 / np.sum(weight**2)
    assert effective > 100
    posterior = unrestricted_posterior(statistic, prior=prior, n_prior=n_prior)
    chains = posterior.diagnostics["fewest_effective_draws"]
    assert posterior.diagnostics["largest_r_hat"] < 1.1
    means = np.concatenate([np.atleast_1d(posterior.mean(name)[0]) for name in posterior.parameters])
    sds = np.concatenate([np.atleast_1d(posterior.sd(name)[0]) for name in posterior.parameters])
    expected = weight @ truth
    spread = np.sqrt(weight @ (truth - expected) ** 2)
    room = 7 * spread * np.sqrt(1 / effective + 1 / chains)
    assert (np.abs(means - expected) < room).all()
    assert sds == pytest.approx(spread, rel=max(0.25, 10 / np.sqrt(effective)))
    drawn = np.concatenate(
        [values.reshape(4000, -1) for values in posterior.sample(4000, rng=rng).values()], axis=1
    )
    for column in range(truth.shape[1]):
        order = np.argsort(truth[:, column])
        for q in (0.1, 0.5, 0.9):
            position = truth[order, column][np.searchsorted(np.cumsum(weight[order]), q)]
            below = np.mean(drawn[:, column] < position)
            assert below == pytest.approx(
                q, abs=7 * np.sqrt(q * (1 - q) * (1 / effective + 1 / chains + 1 / 4000))
            )


@pytest.mark.slow
def test_a_fixed_n_without_a_public_one_is_known() -> None:
    """More components than moments: the noise on n says nothing any more; seven errors of simulation."""
    rng = np.random.default_rng(7)
    prior = CASES[0][1]
    plan = plan_of(NORMAL, epsilon="1", public_n=False)
    sizes = np.full(100_000, 12)
    values = in_the_middle(NORMAL, prior, sizes, epsilon="1", public_n=False, rng=rng)
    statistic = noisy_statistic(plan, values)
    truth, weight = brute_force(NORMAL, statistic.values, prior, sizes, epsilon="1", public_n=None, rng=rng)
    posterior = unrestricted_posterior(statistic, prior=prior, n_prior=12)
    assert posterior.n_prior == Fixed(12)
    effective = 1.0 / np.sum(weight**2)
    expected = weight @ truth
    spread = np.sqrt(weight @ (truth - expected) ** 2)
    means = np.concatenate([posterior.mean(name)[0] for name in posterior.parameters])
    chains = posterior.diagnostics["fewest_effective_draws"]
    assert (np.abs(means - expected) < 7 * spread * np.sqrt(1 / effective + 1 / chains)).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [10**6, 10**9])
def test_without_noise_to_speak_of_the_posterior_is_the_plug_in_one(n: int) -> None:
    """Moments known to a millionth: cost and answer do not depend on how many rows there were.

    Errors of the chains are well within the .3 standard deviations and 10 % that are allowed for.
    """
    rng = np.random.default_rng(7)
    prior = NormalInverseWishart([0.1, -0.1], 4, 9, [[0.5, 0.2], [0.2, 0.7]])
    plan = plan_of(NORMAL, epsilon="20", public_n=False)
    _, totals = simulate(NORMAL, prior, np.array([1000]), epsilon="20", public_n=False, rng=rng)
    noise = np.rint(rng.laplace(0, plan.scale, totals.shape)).astype(np.int64)
    statistic = noisy_statistic(plan, totals * (n // 1000) + noise.astype(object))
    posterior, plain = (
        unrestricted_posterior(statistic, prior=prior),
        posterior_of(statistic, prior=prior, method="plug-in"),
    )
    assert posterior.diagnostics["largest_r_hat"] < 1.1
    for parameter in posterior.parameters:
        sd = plain.sd(parameter)
        assert (np.abs(posterior.mean(parameter) - plain.mean(parameter)) < 0.3 * sd).all()
        assert posterior.sd(parameter) == pytest.approx(sd, rel=0.1)


@pytest.mark.slow
def test_chains_find_moments_beyond_the_bounds() -> None:
    """Sums of a model without bounds: brought within some, chains would start where nothing is likely."""
    rng, sizes = np.random.default_rng(7), np.array([10_000])
    prior = NormalInverseGammaRegression([0.5, 0.1], [2, 5], 4, 0.4)
    outside = NormalInverseWishart([1.5, 0.0], 1e4, 1e4, [[3e3, 0.0], [0.0, 10.0]])
    plan = plan_of(REGRESSION, epsilon="1", public_n=False)
    _, totals = simulate(NORMAL, outside, sizes, epsilon="1", public_n=False, rng=rng)
    noise = np.rint(rng.laplace(0, plan.scale, totals.shape)).astype(np.int64)
    posterior = unrestricted_posterior(
        noisy_statistic(plan, totals + noise.astype(object)), prior=prior, n_prior=Uniform(4, 20_000)
    )
    assert posterior.diagnostics["largest_r_hat"] < 1.1
    assert abs(posterior.mean("coefficient")[0, 0]) < 8 * posterior.sd("coefficient")[0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [pytest.param(NORMAL, id="normal"), pytest.param(REGRESSION, id="regression", marks=pytest.mark.audit)],
)
def test_cells_side_by_side_have_the_posteriors_that_they_have_alone(entry: dict[str, Any]) -> None:
    """Cells of very different noise a row, whose chains move in different units; seven errors of chains."""
    rng = np.random.default_rng(7)
    plan = plan_of(entry, epsilon="1", public_n=False)
    # Rows, sums of x and y, of x^2, x y and y^2: standard deviations of .3 and .4, means of .5.
    each = np.array([1.0, 0.5, 0.5, 0.34, 0.31, 0.41]) * STEPS ** np.array([0, 1, 1, 2, 2, 2])
    sums = np.array([[int(rows * moment) for moment in each] for rows in (30, 30_000)], dtype=object)
    spec = spec_of(entry, epsilon="1", public_n=False).statistics["s"]
    totals = FAMILIES[entry["family"]].totals(spec, plan.design, sums)
    noise = np.rint(rng.laplace(0, plan.scale, totals.shape)).astype(np.int64)
    statistic = noisy_statistic(plan, totals + noise.astype(object))
    together = unrestricted_posterior(statistic)
    for cell in range(2):
        alone = unrestricted_posterior(statistic.take(np.array([cell])))
        for name in together.parameters:
            sd = alone.sd(name)[0]
            effective = min(each.diagnostics["fewest_effective_draws"] for each in (alone, together))
            apart = np.abs(together.mean(name)[cell] - alone.mean(name)[0])
            assert (apart < 7 * sd * np.sqrt(2.0 / effective)).all()


@pytest.mark.slow
def test_who_asks_again_gets_the_same_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of short chains too, whatever they say of the posterior."""
    monkeypatch.setattr(posteriors, "lengths", lambda _: (32, 64))
    monkeypatch.setattr(posteriors, "_OF_MOMENTS", hmc.Course(doublings=0))
    values = np.array([[5 * 2**32, 2**30, 2**30, 2**30, -(2**30), 2**28]], dtype=object)
    statistic = noisy_statistic(plan_of(NORMAL, epsilon="1", public_n=False), values)
    first, second = (unrestricted_posterior(statistic) for _ in range(2))
    assert first.method == "noise-aware"
    assert first.diagnostics == second.diagnostics
    assert first.diagnostics["sampler"].startswith("MCMC")
    assert set(first.diagnostics) == {
        "sampler",
        "chains",
        "draws",
        "largest_r_hat",
        "fewest_effective_draws",
    }
    assert (first.mean("covariance") == second.mean("covariance")).all()
    sample = first.sample(5000, rng=1)
    assert sample["covariance"].shape == (5000, 1, 1)
    assert (sample["mean"] == second.sample(5000, rng=1)["mean"]).all()
    other = unrestricted_posterior(statistic, prior=NormalInverseWishart(0.5, 1, 7, 1))
    assert (other.mean("mean") != first.mean("mean")).all()


@pytest.mark.slow
def test_too_few_rows_for_a_density_are_refused() -> None:
    values = np.zeros((1, 6), dtype=object)
    statistic = noisy_statistic(plan_of(NORMAL, epsilon="1", public_n=False), values)
    with pytest.raises(PriorError, match="at least 4 rows"):
        posterior_of(statistic, n_prior=Uniform(0, 3))
    assert posterior_of(statistic, n_prior=Uniform(0, 4)).mean("mean").shape == (1, 2)


def test_the_weights_of_the_simulation_are_those_of_the_priors() -> None:
    """The tests' own simulator: the moments of what it draws are those of the priors.

    Means of 40,000 within .01, fourteen standard errors and more: a false alarm has a chance below 1e-8.
    """
    rng = np.random.default_rng()
    prior = NormalInverseWishart([0.1, -0.1], 4, 9, [[0.5, 0.2], [0.2, 0.7]])
    truth, _ = simulate(NORMAL, prior, np.full(40_000, 5), epsilon="1", public_n=False, rng=rng)
    assert truth.mean(axis=0) == pytest.approx([0.1, -0.1, 0.5 / 6, 0.7 / 6, 0.2 / 6], abs=0.01)
    slopes = true_regression(np.zeros((1, 2)), np.array([[[1.0, 0.5], [0.5, 2.0]]]))
    assert slopes == pytest.approx(np.array([[0.5, 0.0, 1.75]]))
    assert stats.kstest(truth[:, 0], stats.t(8, 0.1, np.sqrt(0.5 / 8 / 4)).cdf).pvalue > 1e-9
