"""Pooled cells: the exact mixture over hyperparameters beside a brute force, and coverage beside controls."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import exp1, expit, gammaln
from scipy.stats import beta, binom, norm, poisson

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled import normal_approximation
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.count_cells import CountCells, CountTable
from suffice.pipeline.math.engines.pooled.distribution import mixture_over, pooled_distribution
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.hyperpriors import size_unit
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS
from suffice.pipeline.math.engines.pooled.rate_cells import RateCells
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.cells import Nodes
    from suffice.typing import Cells, Floats

TRUE, FALSE, SCALE = np.array([3.0, 14.0, 40.0]), np.array([25.0, 20.0, 160.0]), 2.0
N_PRIOR = Reciprocal(10**12)


def counts(values: Any, scale: float) -> NoisyCount:
    return NoisyCount(values=values.astype(np.float64)[:, None], scales=np.array([scale]))


def three_cells() -> CountCells:
    return CountCells(true=counts(TRUE, SCALE), false=counts(FALSE, SCALE), n_prior=N_PRIOR)


@dataclasses.dataclass(frozen=True)
class Brute:
    """Even grids of everything, wide and coarse; sums over latent counts one by one."""

    x: Floats
    log_mean: Floats
    likelihood: Floats  # (n_cells, n_x, n_means), the prior of the mean in it

    @classmethod
    @cache
    def of_three(cls) -> Brute:
        x, log_mean = np.linspace(-14.0, 8.0, 221), np.linspace(-9.0, 6.4, 70)
        mean, latent = np.exp(log_mean), np.arange(700.0)
        prior = np.exp(mean) * exp1(mean) * mean

        def of_count(means: Floats, released: float) -> Floats:
            log_p = latent * np.log(means[..., None]) - means[..., None] - gammaln(latent + 1.0)
            return np.exp(log_p) @ np.exp(-np.abs(released - latent) / SCALE)

        parts = [
            of_count(mean * expit(x)[:, None], true) * of_count(mean * expit(-x)[:, None], false) * prior
            for true, false in zip(TRUE, FALSE, strict=True)
        ]
        return cls(x, log_mean, np.array(parts))

    def moments(self, name: str, origin: float) -> tuple[Floats, Floats, float]:
        """Means and standard deviations of probabilities, and the mean spread.

        Two sizes next to each other have the spread of the one between them.
        """
        x, m, s = self.x, np.linspace(-8.0, 5.0, 53), (np.arange(16) + 0.5) * 0.24
        size = np.log1p(np.exp(self.log_mean)) - origin
        between, n = np.mean(size.reshape(-1, 2), axis=1), len(x)
        slopes, growths = np.linspace(-1.8, 1.8, 11), np.linspace(-0.75, 0.75, 7)
        if name == "beta":
            slopes, growths, between = np.zeros(1), np.zeros(1), np.zeros(1)
        of_slopes = np.array([self.less_slope(slope * size, len(between)) for slope in slopes])
        back, total, spread = np.zeros_like(of_slopes), 0.0, 0.0
        for growth in growths:
            for each in s:
                density = np.stack(
                    [self.density(name, m, each * np.exp(growth * v)) for v in between], axis=1
                )
                density = density.reshape(len(m), -1)
                for number, slope in enumerate(slopes):
                    z = of_slopes[number].reshape(3, -1) @ density.T
                    weight = np.prod(z, axis=0) * expit(m) * expit(-m)
                    weight *= np.exp(-0.5 * each**2 - 2.0 * slope**2 - 8.0 * growth**2)
                    total += float(np.sum(weight))
                    spread += float(np.sum(weight)) * float(each)
                    back[number] += ((weight / np.maximum(z, 1e-300)) @ density).reshape(3, -1, n)
        posterior = np.zeros((3, n))
        for number, slope in enumerate(slopes):
            for cell in range(3):
                for j, shift in enumerate(slope * size):
                    at = back[number, cell, min(j // 2, len(between) - 1)]
                    posterior[cell] += self.likelihood[cell][:, j] * np.interp(
                        x - shift, x, at, left=0.0, right=0.0
                    )
        posterior /= np.sum(posterior, axis=1, keepdims=True)
        mean = posterior @ expit(x)
        return mean, np.sqrt(posterior @ expit(x) ** 2 - mean**2), spread / total

    def less_slope(self, shifts: Floats, n_sizes: int) -> Floats:
        """Likelihoods of z at some sizes, (n_cells, n_sizes, n_x): those of two sizes next to each other."""
        moved = np.zeros((3, n_sizes, len(self.x)))
        for cell in range(3):
            for j, shift in enumerate(shifts):
                of_size = self.likelihood[cell][:, j]
                moved[cell, min(j // 2, n_sizes - 1)] += np.interp(
                    self.x + shift, self.x, of_size, left=0.0, right=0.0
                )
        return moved

    def density(self, name: str, m: Floats, s: float) -> Floats:
        if name == "beta":
            # The trigamma equation by a search that is not the engine's.
            from scipy.optimize import brentq
            from scipy.special import polygamma

            def wanted(log_total: float, share: float) -> float:
                a, b = np.exp(log_total) * np.array([share, 1.0 - share])
                return float(polygamma(1, a) + polygamma(1, b) - s**2)

            shares = expit(m)
            totals = np.exp([brentq(wanted, -20.0, 40.0, args=(share,)) for share in shares])
            p = expit(self.x)
            pdf = beta.pdf(p, (totals * shares)[:, None], (totals * (1.0 - shares))[:, None])
            return np.asarray(pdf * p * (1.0 - p))
        most = norm.pdf(self.x, m[:, None], s)
        if name == "logit-normal":
            return np.asarray(most)
        return np.asarray(0.95 * most + 0.05 * norm.pdf(self.x, m[:, None], np.hypot(s, 2.0)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["contaminated", pytest.param("logit-normal", marks=pytest.mark.audit), "beta"]
)
def test_three_cells_are_as_a_brute_force_over_everything_has_them(name: str) -> None:
    population = POPULATIONS[Line.LOGIT][name]
    hyper, blocks = fitted(three_cells(), population, Line.LOGIT)
    answer = mixture_over(hyper, blocks, population, "probability", Line.LOGIT)
    mean, sd, spread = Brute.of_three().moments(name, hyper.grid.origin)
    np.testing.assert_allclose(answer.mean("probability"), mean, rtol=0.004)
    np.testing.assert_allclose(answer.sd("probability"), sd, rtol=0.01)
    assert hyper.mean(hyper.drawn_spread) == pytest.approx(spread, rel=0.02)
    # Controls: hyperparameters plugged in, and a slope that is forgotten, are neither.
    best = np.zeros_like(hyper.weight)
    best[np.unravel_index(np.argmax(hyper.weight), best.shape)] = 1.0
    plugged = dataclasses.replace(hyper, weight=best)
    narrow = mixture_over(plugged, blocks, population, "probability", Line.LOGIT)
    assert np.max(np.abs(narrow.sd("probability") / sd - 1.0)) > 0.05
    if population.slope:
        flat = pooled_distribution(WithoutSizes(three_cells()), population, "probability", Line.LOGIT)
        assert np.max(np.abs(flat.sd("probability") / sd - 1.0)) > 0.015


@dataclasses.dataclass(frozen=True)
class WithoutSizes:
    """The same cells, and no slope."""

    cells: CountCells
    has_sizes: bool = False

    @property
    def n_cells(self) -> int:
        return self.cells.n_cells

    @property
    def middle(self) -> float:
        return self.cells.middle

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        return self.cells.nodes(cells, focus)


@pytest.mark.parametrize(
    ("scale", "true", "false"),
    [(10.0, [33.0, 54.0, 102.0], [11.0, 23.0, 37.0]), (2.0, [33.0, 54.0, 600.0], [11.0, 23.0, 300.0])],
    ids=["hidden by noise", "precise"],
)
def test_outliers_are_drawn_to_a_known_population_as_exact_sums_have_it(
    scale: float, true: list[float], false: list[float]
) -> None:
    """Alone all are near .7: noise that hides a cell draws it to the population, and a precise one stays."""
    location, spread = -2.2, 0.4
    cells = CountCells(
        true=counts(np.array(true), scale), false=counts(np.array(false), scale), n_prior=N_PRIOR
    )
    population = POPULATIONS[Line.LOGIT]["contaminated"]
    hyper, blocks = fitted(cells, population, Line.LOGIT)
    known = dataclasses.replace(
        hyper, slope=np.zeros(1), weight=np.ones((1, 1)), drawn_spread=np.full((1, 1), spread),
        location=np.full((1, 1), location), spread=np.full((1, 1), spread),
        spread_slope=np.zeros((1, 1)),
    )  # fmt: skip
    answer = mixture_over(known, blocks, population, "probability", Line.LOGIT)
    x, log_mean = np.linspace(-8.0, 8.0, 401), np.linspace(-9.0, 7.5, 500)
    mean, root, latent = np.exp(log_mean), np.linspace(1e-3, 44.0, 1500), np.arange(2500.0)
    p_latent = np.exp(2.0 * latent * np.log(root)[:, None] - root[:, None] ** 2 - gammaln(latent + 1.0))

    def of_count(means: Floats, released: float) -> Floats:
        of_root = p_latent @ np.exp(-np.abs(released - latent) / scale)
        return np.asarray(np.exp(np.interp(np.sqrt(means), root, np.log(np.maximum(of_root, 1e-300)))))

    law = [share * norm.pdf(x, location, sd) for share, sd in ((0.95, spread), (0.05, np.hypot(spread, 2.0)))]
    # exp(mean) E_1(mean), of large means 1 / mean.
    small = np.minimum(mean, 300.0)
    prior = np.where(mean < 300.0, np.exp(small) * exp1(small), 1.0 / mean)
    for cell in range(3):
        of_true = of_count(mean * expit(x)[:, None], true[cell])
        likelihood = (of_true * of_count(mean * expit(-x)[:, None], false[cell])) @ (prior * mean)
        weights = [likelihood * each for each in law]
        total = np.sum(weights)
        assert answer.mean("probability")[cell] == pytest.approx(np.sum(weights @ expit(x)) / total, rel=0.01)
        assert answer.outside[cell] == pytest.approx(np.sum(weights[1]) / total, rel=0.03)
    assert (answer.mean("probability")[0] < 0.3) == (scale > 5.0)
    assert answer.mean("probability")[2] > 0.6


def three_sizes() -> CountCells:
    return CountCells(
        true=counts(np.array([9.0, 70.0, 500.0]), 1.0),
        false=counts(np.array([24.0, 230.0, 2500.0]), 1.0),
        n_prior=N_PRIOR,
    )


def at_one_node(hyper: Any, *, spread: float, spread_slope: float, location: float = -1.8) -> Any:
    known = {"location": location, "spread": spread, "drawn_spread": spread, "spread_slope": spread_slope}
    nodes = {name: np.full((1, 1), value) for name, value in known.items()}
    return dataclasses.replace(hyper, **nodes, slope=np.zeros(1), weight=np.ones((1, 1)))


@pytest.mark.slow
def test_a_known_spread_that_falls_with_size_is_that_of_sums_over_all_counts() -> None:
    """Small cells are drawn to the population by less than large ones: at first sight .27, .23 and .17."""
    population, spread, spread_slope = POPULATIONS[Line.LOGIT]["logit-normal"], 0.4, -0.25
    hyper, blocks = fitted(three_sizes(), population, Line.LOGIT)
    origin = hyper.grid.origin
    answer, alike = (
        mixture_over(
            at_one_node(hyper, spread=spread, spread_slope=each), blocks, population, "p", Line.LOGIT
        )
        for each in (spread_slope, 0.0)
    )
    x, latent = np.linspace(-5.0, 1.0, 241), np.arange(4000.0)
    log_latent = gammaln(latent + 1.0)
    for cell, (true, false) in enumerate([(9.0, 24.0), (70.0, 230.0), (500.0, 2500.0)]):
        n = true + false
        log_mean = np.log(n) + np.linspace(-6.0, 5.0, 45) * max(n**-0.5, 0.06)
        mean = np.exp(log_mean)
        prior = np.where(
            mean < 300.0, np.exp(np.minimum(mean, 300.0)) * exp1(np.minimum(mean, 300.0)), 1.0 / mean
        )

        def of_count(means: Floats, released: float) -> Floats:
            near = np.abs(released - latent) < 30.0
            log_p = latent[near] * np.log(means)[:, None] - means[:, None] - log_latent[near]
            return np.asarray(np.exp(log_p) @ np.exp(-np.abs(released - latent[near])))

        law = np.stack(
            [
                of_count(each * expit(x), true) * of_count(each * expit(-x), false)
                * norm.pdf(x, -1.8, spread * np.exp(spread_slope * (np.log1p(each) - origin)))
                for each in mean
            ]
        )  # fmt: skip
        weight = (prior * mean) @ law
        wanted = float(weight @ expit(x) / np.sum(weight))
        assert answer.mean("p")[cell] == pytest.approx(wanted, rel=0.004)
        if cell == 0:
            # Control: a spread that is the same of all sizes.
            assert alike.mean("p")[cell] < 0.9 * wanted


@pytest.mark.slow
def test_new_cells_have_the_spread_of_their_size() -> None:
    population = POPULATIONS[Line.LOGIT]["logit-normal"]
    hyper, blocks = fitted(three_sizes(), population, Line.LOGIT)
    known = at_one_node(hyper, spread=0.5, spread_slope=-0.3)
    answer = mixture_over(known, blocks, population, "p", Line.LOGIT)
    for knot in hyper.grid.knots:
        drawn = answer.population_draws(np.full(4000, knot), np.random.default_rng())
        wanted = 0.5 * np.exp(-0.3 * (knot - hyper.grid.origin))
        # Six standard errors of a standard deviation of 4,000 are missed with a chance below 1e-8.
        assert np.std(Line.LOGIT.position(drawn)) == pytest.approx(wanted, rel=0.01 + 6.0 / 8000.0**0.5)
    # A cell on its own beside plugged-in hyperparameters: the same node again.
    np.testing.assert_allclose(answer.plug_in().mean("p"), answer.mean("p"))


def test_slopes_are_by_the_standard_deviation_of_log_sizes_where_these_span_decades() -> None:
    assert size_unit(np.array([4.0, 4.5, 5.0])) == 1.0
    assert size_unit(np.array([1.0, 7.0])) == pytest.approx(3.0)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_tables_of_counts_are_the_likelihoods(scale: float) -> None:
    count = counts(np.array([-30.0, 0.0, 1.0, 17.0, 400.0, 90_000.0]), scale)
    typical = np.maximum(count.values, scale)
    mean = np.maximum(typical + np.linspace(-3.0, 3.0, 33) * np.sqrt(typical + scale**2), 0.01)
    exact = count.log_likelihood(np.log(mean))
    known = exact > np.max(exact, axis=1, keepdims=True) - 20.0
    table = CountTable.of(count)(np.arange(6), mean)
    np.testing.assert_allclose(table[known], exact[known], atol=0.004)
    assert np.all(known.sum(axis=1) > 2)


@pytest.mark.slow
def test_nodes_of_rates_sum_to_what_sums_over_all_records_give() -> None:
    bound, scale = 5.0, 4.0
    total, rest = np.array([22.0, -3.0]), np.array([70.0, 11.0])
    cells = RateCells(
        total=total[:, None], rest=rest[:, None], scales=np.array([scale]), bound=bound, n_prior=N_PRIOR
    )
    nodes = cells.nodes(np.arange(2), Focus(centre=0.3, width=0.3))
    prior = norm.pdf(nodes.position, 0.3, 0.5)[:, :, None] * nodes.weight
    shown = np.sum(prior * np.exp(nodes.position)[:, :, None], axis=(1, 2)) / np.sum(prior, axis=(1, 2))
    sizes = np.sum(prior * nodes.log_size[:, None, :], axis=(1, 2)) / np.sum(prior, axis=(1, 2))
    x, n, latent = np.linspace(-3.0, 3.5, 131), np.arange(0.0, 121.0), np.arange(0.0, 400.0)
    of_latent = (
        poisson.pmf(latent, (np.exp(x)[:, None] * n)[:, :, None]) * norm.pdf(x, 0.3, 0.5)[:, None, None]
    )
    for cell in range(2):
        noise = np.exp(-np.abs(total[cell] - latent) / scale) * np.exp(
            -np.abs(rest[cell] - (bound * n[:, None] - latent)) / scale
        )
        weight = np.sum(of_latent * noise, axis=2) / (n + 1.0)
        assert shown[cell] == pytest.approx(np.sum(weight * np.exp(x)[:, None]) / np.sum(weight), rel=0.004)
        assert sizes[cell] == pytest.approx(np.sum(weight * np.log1p(n)) / np.sum(weight), rel=0.01)


def test_cells_of_two_blocks_are_as_those_of_one() -> None:
    """The first ten of 260 cells stand at the end as well, in a block of their own sizes."""
    population = POPULATIONS[Line.LOGIT]["logit-normal"]
    rng = np.random.default_rng(4)
    size = rng.integers(40, 4000, 260)
    true = rng.binomial(size, expit(rng.normal(-2.0, 0.7, 260)))
    true[250:], size[250:] = true[:10], size[:10]
    cells = CountCells(true=counts(true, 2.0), false=counts(size - true, 2.0), n_prior=N_PRIOR)
    answer = pooled_distribution(cells, population, "probability", Line.LOGIT)
    for values in (answer.mean("probability"), answer.own_share):
        # Log weights of thousands of records are large: their rounding was 4e-9 of a mean on one processor.
        np.testing.assert_allclose(values[250:], values[:10], rtol=2e-8)
    drawn = answer.sample(20, np.random.default_rng(1))["probability"]
    np.testing.assert_allclose(drawn.mean(axis=0)[250:], answer.mean("probability")[:10], rtol=0.5)


def test_joint_draws_have_the_marginals_and_share_their_population() -> None:
    population = POPULATIONS[Line.LOGIT]["logit-normal"]
    empty = np.zeros(12)
    cells = CountCells(true=counts(empty + 2.0, 8.0), false=counts(empty + 9.0, 8.0), n_prior=N_PRIOR)
    answer = pooled_distribution(cells, population, "probability", Line.LOGIT)
    drawn = answer.sample(4000, np.random.default_rng(7))["probability"]
    levels = answer.quantiles("probability", (0.1, 0.5, 0.9), 0, np.random.default_rng(0))
    below: Floats = np.asarray(np.mean(drawn[:, :, None] < levels, axis=0))
    # 36 shares of 4,000 draws: six standard errors are missed with a chance below 1e-7.
    np.testing.assert_allclose(below, [[0.1, 0.5, 0.9]] * 12, atol=6.0 * 0.5 / 4000**0.5)
    logit = Line.LOGIT.position(drawn)
    # Cells that say nothing have their population in common.
    correlation = np.asarray(np.corrcoef(logit.T))[np.triu_indices(12, 1)]
    assert np.mean(correlation) > 0.2


@pytest.mark.slow
def test_intervals_hold_small_cells_where_rates_move_with_size_and_not_without_the_slope() -> None:
    """Truths are not of the model: a slope on the exact size, and no outliers.

    Of 50 small cells at least 31 have to be covered. Were they as good as 25 independent ones with a coverage
    of .95, as few have a chance below 1e-6.
    """
    assert binom.cdf(15, 25, 0.95) < 1e-6
    population = POPULATIONS[Line.LOGIT]["contaminated"]
    rng, epsilon = np.random.default_rng(20), 0.3
    size = np.maximum(np.rint(np.exp(rng.normal(np.log(60.0), 1.0, 150))), 1.0)
    truth = expit(rng.normal(-2.3, 0.15, 150) + np.log(size / 60.0))
    true = rng.binomial(size.astype(np.int64), truth)
    noise = rng.geometric(-np.expm1(-epsilon), (4, 150))
    cells = CountCells(
        true=counts(true + noise[0] - noise[1], 1.0 / epsilon),
        false=counts(size - true + noise[2] - noise[3], 1.0 / epsilon),
        n_prior=N_PRIOR,
    )
    small = np.argsort(size)[:50]
    covered = {}
    for name, source in (("slope", cells), ("none", WithoutSizes(cells))):
        answer = pooled_distribution(source, population, "probability", Line.LOGIT)
        low, high = answer.quantiles("probability", (0.025, 0.975), 0, rng)[small].T
        covered[name] = int(np.sum((low <= truth[small]) & (truth[small] <= high)))
    assert covered["slope"] >= 31
    assert covered["none"] < 31


@pytest.mark.slow
def test_a_slope_that_small_cells_hardly_tell_is_that_of_sums_over_all_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cells of 2 and of 10^6 records: a slope moves the small ones 20 units and more down the line.

    That is of a wide hyperprior, Normal(0, .5) for each unit, and of one spread.

    Sums over numbers of records and counts, on a grid of slopes, give .38 (sd .30); nodes that reached 15
    units gave 1.55 (sd .02), which was called settled.
    """
    small = [
        [4, 0], [0, -2], [4, 0], [0, 2], [3, -1], [4, 1], [1, 1], [3, 0], [2, -1], [2, 0],
        [1, 1], [0, 2], [2, 0], [2, 0], [3, 1], [3, 1], [1, 0], [3, 0], [3, -1], [1, 0],
    ]  # fmt: skip
    true = np.rint(1e6 * expit(-1.4 + 0.26 * np.linspace(-1.8, 1.8, 20)))
    values = np.concatenate([np.array(small, dtype=np.float64), np.stack([1e6 - true, true], axis=1)])
    cells = CountCells(true=counts(values[:, 1], 1.0), false=counts(values[:, 0], 1.0), n_prior=N_PRIOR)
    monkeypatch.setattr(normal_approximation, "size_unit", lambda _: 1.0)
    hyper, _ = fitted(cells, POPULATIONS[Line.LOGIT]["contaminated"], Line.LOGIT, has_spread_slope=False)
    assert hyper.settled
    assert hyper.mean(hyper.slopes) == pytest.approx(0.38, abs=0.1)
    assert hyper.sd(hyper.slopes) == pytest.approx(0.30, abs=0.1)
