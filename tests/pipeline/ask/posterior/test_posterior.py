from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import MissingExtraError, PriorError, UsageError
from suffice.pipeline.ask.inference.chosen_priors import default_prior
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.normal import project as project_normal
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet, project_simplex
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.distributions.spread_scales import VARIANCES, WEIGHTS
from suffice.pipeline.math.priors.mixtures import ScaleMixture
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


BERNOULLI: dict[str, Any] = {"family": "bernoulli"}
CATEGORICAL: dict[str, Any] = {"family": "categorical", "categories": ["a", "b"], "other": "true"}
POISSON: dict[str, Any] = {"family": "poisson", "upper": "8"}
NORMAL: dict[str, Any] = {"family": "normal", "lower": "-60", "upper": "180", "lattice_bits": "10"}
HALF_RANGE, CENTRE = 120.0, 60.0


def released(statistic: dict[str, Any], rows: list[list[int]], public_n: int | None = None) -> NoisyStatistic:
    plan = statistic_plan(statistic, epsilon="0.5", public_n=public_n is not None)
    return noisy_statistic(plan, np.array(rows, dtype=object), public_n=public_n)


def released_normal(n: float, total: float, squares: float) -> NoisyStatistic:
    """A Bernstein block with these sums of z = (x - 60) / 120."""
    steps = 2**10
    ends = (n + squares) * steps**2
    cross = 2 * total * steps**2
    return released(NORMAL, [[round(ends - cross), round(2 * (n - squares) * steps**2), round(ends + cross)]])


@pytest.mark.parametrize(
    ("rows", "public_n", "counts"),
    [
        ([[30, 70], [-5, 3], [-5, -3]], None, [[30, 70], [0, 3], [0, 0]]),
        ([[70], [-4], [130]], 100, [[30, 70], [100, 0], [0, 100]]),
    ],
)
def test_plug_in_bernoulli_is_the_beta_of_clipped_counts(
    rows: list[list[int]], public_n: int | None, counts: list[list[int]]
) -> None:
    posterior = posterior_of(released(BERNOULLI, rows, public_n), prior=Beta(2, 3), method="plug-in")
    for cell, (false, true) in enumerate(counts):
        distribution = stats.beta(2 + true, 3 + false)
        assert posterior.mean("probability")[cell] == pytest.approx(distribution.mean())
        assert posterior.sd("probability")[cell] == pytest.approx(distribution.std())
        assert posterior.credible_interval("probability", 0.9, interval="central")[cell] == pytest.approx(
            distribution.interval(0.9)
        )
    assert posterior.parameters == ("probability",)
    assert posterior.categories == ()
    assert posterior.method == "plug-in"


def test_plug_in_categorical_projects_onto_the_simplex_where_n_is_public() -> None:
    posterior = posterior_of(
        released(CATEGORICAL, [[60, 50, -20]], 100), prior="Dirichlet(1, 2, 3)", method="plug-in"
    )
    concentration = np.array([1.0 + 55, 2.0 + 45, 3.0 + 0])
    assert posterior.mean("probability")[0] == pytest.approx(concentration / 106)
    assert posterior.categories == ("a", "b", "other")
    assert posterior.quantile("probability", 0.3).shape == (1, 3)
    assert posterior.credible_interval("probability").shape == (1, 3, 2)
    latent = posterior_of(released(CATEGORICAL, [[60, 50, -20]]), method="plug-in")
    assert latent.mean("probability")[0] == pytest.approx(np.array([61, 51, 1]) / 113)


@pytest.mark.parametrize("total", [0.0, 1.0, 100.0])
def test_the_projection_is_the_nearest_point_of_the_simplex(total: float) -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(total / 4, 40.0, (50, 4))
    nearest = project_simplex(values, total)
    assert np.all(nearest >= 0.0)
    assert nearest.sum(axis=1) == pytest.approx(total)
    # Optimality: the residual points away from every vertex of the simplex.
    residual = values - nearest
    for vertex in total * np.eye(4):
        assert np.all(np.sum(residual * (vertex - nearest), axis=1) <= 1e-9 * (1 + total**2))


def test_plug_in_poisson_is_a_gamma_within_what_is_possible() -> None:
    # Components sum(x) and sum(8 - x): n = (first + second) / 8.
    statistic = released(POISSON, [[200, 600], [-30, 830], [900, -100], [-100, -60]])
    posterior = posterior_of(statistic, prior=Gamma(2, 0.5), method="plug-in")
    for cell, (n, total) in enumerate([(100, 200), (100, 0), (100, 800), (0, 0)]):
        distribution = stats.gamma(2 + total, scale=1 / (0.5 + n))
        assert posterior.mean("rate")[cell] == pytest.approx(distribution.mean())
        assert posterior.sd("rate")[cell] == pytest.approx(distribution.std())
        assert posterior.credible_interval("rate", interval="central")[cell] == pytest.approx(
            distribution.interval(0.95)
        )


def test_plug_in_normal_is_the_conjugate_update_in_the_columns_unit() -> None:
    x = np.clip(np.random.default_rng(7).normal(7.0, 25.0, 400), -60, 180)
    z = (x - CENTRE) / HALF_RANGE
    statistic = released_normal(400, float(np.sum(z)), float(np.sum(z * z)))
    prior = NormalInverseGamma(10, 2, 3, 2000)
    posterior = posterior_of(statistic, prior=prior, method="plug-in")
    precision, concentration = 402, 3 + 200
    loc = (20 + x.sum()) / precision
    scale = 2000 + (np.sum((x - x.mean()) ** 2) + 2 * 400 * (x.mean() - 10) ** 2 / precision) / 2
    mean = stats.t(2 * concentration, loc, np.sqrt(scale / concentration / precision))
    variance = stats.invgamma(concentration, scale=scale)
    for parameter, distribution in (("mean", mean), ("variance", variance)):
        assert posterior.mean(parameter)[0] == pytest.approx(distribution.mean(), rel=1e-5)
        assert posterior.sd(parameter)[0] == pytest.approx(distribution.std(), rel=1e-5)
        assert posterior.quantile(parameter, 0.2)[0] == pytest.approx(distribution.ppf(0.2), rel=1e-5)
    # Dvoretzky, Kiefer, Wolfowitz with a false alarm of 4e-9 each.
    draws = posterior.sample(20_000)
    for parameter, distribution in (("mean", mean), ("variance", variance)):
        order = np.sort(draws[parameter][:, 0])
        assert (
            np.max(np.abs(distribution.cdf(order) - np.arange(20_000) / 20_000)) < np.sqrt(20 / 40_000) + 2e-3
        )


@pytest.mark.parametrize(
    ("n", "total", "squares", "projected"),
    [
        (100, 20, 30, (100, 20, 30)),
        (100, 130, 30, (100, 100, 100)),
        (100, -130, 30, (100, -100, 100)),
        (100, 20, 1, (100, 20, 4)),
        (100, 20, 170, (100, 20, 100)),
        (-3, 20, 5, (0, 0, 0)),
    ],
)
def test_normal_sums_are_made_possible(
    n: float, total: float, squares: float, projected: tuple[float, float, float]
) -> None:
    sums = project_normal(released_normal(n, total, squares))
    assert (sums.n[0], sums.total[0], sums.total_of_squares[0]) == pytest.approx(projected, abs=1e-4)


def test_a_cell_without_rows_has_its_prior() -> None:
    posterior = posterior_of(released_normal(-3, 20, 5), method="plug-in")
    prior = default_prior(released_normal(0, 0, 0))
    assert prior == ScaleMixture(-60, 180)
    assert posterior.mean("mean")[0] == pytest.approx(60.0)
    average = sum(weight * 120**2 * variance for weight, variance in zip(WEIGHTS, VARIANCES, strict=True))
    assert posterior.mean("variance")[0] == pytest.approx(average)
    assert posterior.prior == prior


def test_default_priors_come_from_public_constants() -> None:
    assert default_prior(released(BERNOULLI, [[1, 2]])) == Beta(1, 1)
    assert default_prior(released(CATEGORICAL, [[1, 2, 3]])) == Dirichlet(1)
    assert default_prior(released(POISSON, [[1, 2]])) == Gamma(1, 0.25)


def test_noise_aware_intervals_are_wider_than_plug_in() -> None:
    for rows, public_n in (([[12, 9]], None), ([[9]], 21)):
        statistic = released(BERNOULLI, rows, public_n)
        aware, naive = unrestricted_posterior(statistic), unrestricted_posterior(statistic, method="plug-in")
        assert aware.method == "noise-aware"
        assert aware.sd("probability")[0] > 1.1 * naive.sd("probability")[0]


def test_noise_aware_tends_to_plug_in_where_noise_is_small() -> None:
    statistic = released(BERNOULLI, [[600_000, 400_000]])
    aware, naive = unrestricted_posterior(statistic), unrestricted_posterior(statistic, method="plug-in")
    assert aware.mean("probability") == pytest.approx(naive.mean("probability"), rel=1e-6)
    assert aware.sd("probability") == pytest.approx(naive.sd("probability"), rel=1e-3)


def test_the_beta_prior_puts_true_first() -> None:
    for rows, public_n in (([[0, 0]], None), ([[10]], 20)):
        posterior = unrestricted_posterior(released(BERNOULLI, rows, public_n), prior=Beta(9000, 1000))
        assert posterior.mean("probability")[0] == pytest.approx(0.9, abs=0.01)


def test_n_is_latent_with_a_public_prior_unless_it_is_public() -> None:
    statistic = released(BERNOULLI, [[12, 9]])
    assert unrestricted_posterior(statistic).n_prior == Reciprocal(10**12)
    assert unrestricted_posterior(statistic, n_prior="Uniform(0, 2000)").n_prior == Uniform(0, 2000)
    assert unrestricted_posterior(statistic, n_prior=21).n_prior == Fixed(21)
    assert unrestricted_posterior(released(BERNOULLI, [[9]], 21)).n_prior == Fixed(21)
    with pytest.raises(UsageError, match="public"):
        unrestricted_posterior(released(BERNOULLI, [[9]], 21), n_prior=21)
    with pytest.raises(UsageError, match="prior of N"):
        unrestricted_posterior(statistic, method="plug-in", n_prior=21)


def test_a_family_without_a_noise_aware_posterior_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "poisson", replace(FAMILIES["poisson"], noise_aware=None))
    with pytest.raises(UsageError, match=r"only method plug-in.*not calibrated"):
        unrestricted_posterior(released(POISSON, [[200, 600]]))


@pytest.mark.parametrize(
    ("statistic", "row", "prior"),
    [
        (BERNOULLI, [3, 4], "Gamma(1, 1)"),
        (CATEGORICAL, [3, 4, 5], "Beta(1, 1)"),
        (CATEGORICAL, [3, 4, 5], "Dirichlet(1, 1)"),
        (POISSON, [3, 4], "Beta(1, 1)"),
        (NORMAL, [3, 4, 5], "Normal(0, 1)"),
    ],
)
@pytest.mark.parametrize("method", ["noise-aware", "plug-in"])
def test_priors_of_another_kind_are_refused(
    statistic: dict[str, Any], row: list[int], prior: str, method: str
) -> None:
    with pytest.raises(UsageError) as refused:
        unrestricted_posterior(released(statistic, [row]), method=method, prior=prior)
    assert method == "noise-aware" or isinstance(refused.value, PriorError)


def test_calls_that_make_no_sense_are_refused() -> None:
    posterior = unrestricted_posterior(released(BERNOULLI, [[3, 4]]))
    with pytest.raises(UsageError, match="no method 'exact'"):
        unrestricted_posterior(released(BERNOULLI, [[3, 4]]), method="exact")
    with pytest.raises(UsageError, match="no parameter 'mean'"):
        posterior.mean("mean")
    for mass in (0.0, 1.0, float("nan")):
        with pytest.raises(UsageError, match="mass"):
            posterior.credible_interval("probability", mass)
    with pytest.raises(UsageError, match="q must"):
        posterior.quantile("probability", 1.5)
    for draws in (0, -1, True, 1.5):
        with pytest.raises(UsageError, match="draws"):
            posterior.sample(draws)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="rng"):
        posterior.sample(1, -1)


def test_seeds_and_generators_repeat_draws() -> None:
    posterior = unrestricted_posterior(released(CATEGORICAL, [[30, 40, 5], [3, -4, 5]]))
    first = posterior.sample(100, rng=7)["probability"]
    assert first.shape == (100, 2, 3)
    assert np.array_equal(first, posterior.sample(100, np.random.default_rng(7))["probability"])
    assert not np.array_equal(first, posterior.sample(100)["probability"])


def test_rows_of_the_summary() -> None:
    plan = statistic_plan(CATEGORICAL, epsilon="0.5", public_n=False)
    groups: dict[str, list[str | int]] = {"origin": ["EWR", "JFK"], "month": [1, 1]}
    statistic = noisy_statistic(plan, np.array([[30, 40, 5], [3, -4, 5]]), groups=groups)
    posterior = unrestricted_posterior(statistic)
    rows = summarise(posterior, mass=0.8, draws=2000, rng=1)
    assert [(row["origin"], row["month"], row["category"]) for row in rows] == [
        (origin, 1, category) for origin in ("EWR", "JFK") for category in ("a", "b", "other")
    ]
    assert list(rows[0]) == ["origin", "month", "parameter", "category", "mean", "sd", "lower", "upper"]
    assert all(row["parameter"] == "probability" for row in rows)
    assert all(row["lower"] < row["mean"] < row["upper"] for row in rows)
    interval = posterior.credible_interval("probability", 0.8, draws=2000, rng=1)
    assert (rows[4]["lower"], rows[4]["upper"]) == tuple(interval[1, 1])


def test_moments_that_do_not_exist_are_no_numbers_in_the_summary() -> None:
    posterior = posterior_of(
        released_normal(-3, 0, 0), prior=NormalInverseGamma(0, 1, 0.75, 1), method="plug-in"
    )
    mean, variance = summarise(posterior)
    assert (mean["mean"], mean["sd"]) == (0.0, None)
    assert (variance["mean"], variance["sd"]) == (None, None)
    assert 0.0 < variance["lower"] < variance["upper"]


def test_arviz_gets_one_chain_with_groups_as_coordinates() -> None:
    plan = statistic_plan(CATEGORICAL, epsilon="0.5", public_n=False)
    groups: dict[str, list[str | int]] = {"origin": ["EWR", "JFK"], "chain": ["x", "y"]}
    posterior = unrestricted_posterior(
        noisy_statistic(plan, np.array([[30, 40, 5], [3, -4, 5]]), groups=groups)
    )
    probability = posterior.to_arviz(50, rng=7).posterior["probability"]
    assert probability.dims == ("chain", "draw", "group", "category")
    assert probability.shape == (1, 50, 2, 3)
    assert list(probability.coords["origin"].values) == ["EWR", "JFK"]
    assert list(probability.coords["chain_"].values) == ["x", "y"]
    assert list(probability.coords["category"].values) == ["a", "b", "other"]
    assert np.array_equal(probability.values[0], posterior.sample(50, rng=7)["probability"])


def test_arviz_gets_a_dimension_for_each_group_column_where_cells_are_all_their_combinations() -> None:
    plan = statistic_plan(CATEGORICAL, epsilon="0.5", public_n=False)
    groups: dict[str, list[str | int]] = {"origin": ["EWR", "EWR", "JFK", "JFK"], "chain": [1, 2, 1, 2]}
    values = np.array([[30, 40, 5], [3, -4, 5], [9, 9, 9], [1, 2, 3]])
    posterior = unrestricted_posterior(noisy_statistic(plan, values, groups=groups))
    probability = posterior.to_arviz(50, rng=7).posterior["probability"]
    assert probability.dims == ("chain", "draw", "origin", "chain_", "category")
    drawn = posterior.sample(50, rng=7)["probability"]
    assert np.array_equal(probability.sel(origin="JFK", chain_=1, category="b").values[0], drawn[:, 2, 1])


def test_draws_go_to_netcdf_and_come_back(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    posterior = unrestricted_posterior(released(CATEGORICAL, [[30, 40, 5], [3, -4, 5]]))
    path = tmp_path / "draws.nc"
    posterior.to_netcdf(path, 50, rng=7)
    with xarray.open_dataset(path, group="posterior", engine="h5netcdf") as read:
        assert np.array_equal(read["probability"].values[0], posterior.sample(50, rng=7)["probability"])
        assert list(read["category"].values) == ["a", "b", "other"]
        assert read.attrs["method"] == "noise-aware"
    with pytest.raises(UsageError, match="cannot be written"):
        posterior.to_netcdf(tmp_path / "absent" / "draws.nc", 5)


def test_without_a_writer_of_netcdf_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.pipeline.ask.posterior.arviz._NETCDF", "no_such_writer")
    with pytest.raises(MissingExtraError, match=r"suffice\[arviz\]"):
        unrestricted_posterior(released(BERNOULLI, [[3, 4]])).to_netcdf(tmp_path / "draws.nc", 5)


def test_without_arviz_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(MissingExtraError, match=r"suffice\[arviz\]"):
        unrestricted_posterior(released(BERNOULLI, [[3, 4]])).to_arviz(10)


@pytest.mark.parametrize("weight", ["0.5", "2", "64"])
def test_noise_aware_normal_posteriors_know_the_weight_of_second_moments(weight: str) -> None:
    plan = statistic_plan({**NORMAL, "moment_weight": weight}, epsilon="0.5", public_n=True)
    n, mean, square = 10**6, 0.2, 0.1
    rows = np.array([[int(n * mean * 2**20 / float(weight)), int(n * square * 2**20)]], dtype=object)
    aware = unrestricted_posterior(noisy_statistic(plan, rows, public_n=n), clipping="ignored")
    naive = unrestricted_posterior(noisy_statistic(plan, rows, public_n=n), method="plug-in")
    for parameter in ("mean", "variance"):
        assert aware.mean(parameter) == pytest.approx(naive.mean(parameter), rel=1e-3)


def test_noise_aware_lognormal_posteriors_name_the_logarithms() -> None:
    statistic = {"family": "lognormal", "lower": "1", "upper": "100", "lattice_bits": "10"}
    posterior = unrestricted_posterior(
        released(statistic, [[10**6, 2 * 10**6, 10**6]]), n_prior="Uniform(0, 10)"
    )
    assert posterior.parameters == ("log_mean", "log_variance")
    assert posterior.mean("log_mean")[0] == pytest.approx(np.log(10), abs=0.2)
    assert posterior.sample(10)["log_variance"].shape == (10, 1)
