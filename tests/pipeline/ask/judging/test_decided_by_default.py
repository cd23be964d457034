"""Where a default prior and not the release decides intervals, and where neither is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.ask.judging.bounded_prior import _components, density_of_bounded
from suffice.pipeline.ask.judging.checking import MOVES, _moved
from suffice.pipeline.ask.pooling.roll_up import roll_up
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.notes import default_lines, far_tail_text
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.mixtures import Mixture, ScaleMixture
from support import cone_calibration
from support.cone_calibration import moments_of
from support.correlated_predictors import fixed_release
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Prior

SHARES = {"family": "bernoulli"}
NORMAL = {"family": "normal", "lower": 0, "upper": 100}
EXPONENTIAL = {"family": "exponential", "upper": 100}


def shares(epsilon: str, *released: tuple[int, int], **terms: Any) -> Posterior:
    """Counts of false and true, as they were released."""
    plan = statistic_plan(SHARES, epsilon=epsilon, public_n=False)
    return posterior_of(noisy_statistic(plan, np.array(released)), **terms)


def test_a_cell_that_noise_hides_is_told_from_one_that_it_does_not() -> None:
    posterior = shares("0.1", (20, 10), (2000, 1000))
    assert posterior.decided_by_default["probability"].tolist() == [True, False]
    (line,) = default_lines(posterior)
    assert line.startswith(
        "the default prior decides 95 % intervals, or their far ends, of probability in 1 of"
    )
    assert line in posterior.notes
    assert default_lines(shares("0.1", (2000, 1000))) == []


def test_a_flat_prior_gives_an_interval_its_length() -> None:
    """Under Beta(1, 1) the probability of an interval is its length."""
    for released in [(90, 40), (45, 15), (30, 12), (25, 9), (20, 7), (14, 5), (9, 3)]:
        posterior = shares("0.2", released)
        lower, upper = posterior.credible_interval("probability", interval="central")[0]
        if abs(upper - lower - 2 / 3) > 0.02:
            assert posterior.decided_by_default["probability"][0] == (upper - lower > 2 / 3)


def test_it_is_said_of_defaults_alone_and_never_of_plug_in() -> None:
    for terms in ({"prior": "Beta(2, 1)"}, {"prior": stats.beta(1, 1)}, {"method": "plug-in"}):
        assert shares("0.1", (20, 10), **terms).decided_by_default == {}
    assert shares("0.1", (20, 10), prior="Beta(1, 1)").decided_by_default["probability"].all()


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "decided"), [("0.1", True), ("10", False)])
def test_means_of_thirty_records_near_a_bound(epsilon: str, *, decided: bool) -> None:
    """Noise of epsilon .1 is many times these sums: without it the released ones are as likely as any."""
    records = np.random.default_rng(1).uniform(5, 25, 30) / 50 - 1  # in half ranges about the middle
    sums = np.array([[np.sum(f(records)) for f in (below, between, above)]])
    plan = statistic_plan(NORMAL, epsilon=epsilon, public_n=False)
    unit = float(1 << 2 * (plan.parameters.lattice_bits or 0))
    assert plan.components == ("sum((M-X)^2)", "sum(2(M-X)(M+X))", "sum((M+X)^2)")
    posterior = posterior_of(noisy_statistic(plan, np.rint(sums * unit)))
    assert posterior.decided_by_default["mean"].tolist() == [decided]


def below(x: np.ndarray) -> np.ndarray:
    return (1 - x) ** 2 / 4


def between(x: np.ndarray) -> np.ndarray:
    return (1 - x**2) / 2


def above(x: np.ndarray) -> np.ndarray:
    return (1 + x) ** 2 / 4


def test_a_total_behind_noise_leaves_a_spread_scale_to_its_prior() -> None:
    """Of a rate whose total noise hides the upper end is the prior's, though the lower one is the data's."""
    plan = statistic_plan(EXPONENTIAL, epsilon="0.1", public_n=False)
    unit = 1 << (plan.parameters.lattice_bits or 0)
    hidden, plain = (0, 300 * unit), (100 * unit, 200 * unit)
    few = (0, 10 * unit)
    posterior = posterior_of(noisy_statistic(plan, np.array([hidden, plain, few])))
    assert posterior.decided_by_default["rate"].tolist() == [True, False, True]


def longer(upper: float) -> Mixture:
    """The rule of the default with two decades of scales more: what is the prior's own moves by as much."""
    scales = 10.0 ** (-0.6 * np.arange(14))
    weights = 0.25 / len(scales) + 0.75 * np.sqrt(scales) / np.sqrt(scales).sum()
    parts: list[float | Prior] = []
    for weight, scale in zip(weights.tolist(), scales.tolist(), strict=True):
        parts += [weight, Gamma(3, 2 * scale * upper)]
    return Mixture(*parts)


@pytest.mark.slow
def test_a_far_end_that_is_said_to_be_the_priors_moves_with_it() -> None:
    """Two decades more move it by two; other ends stay, though they may be as far from the middle."""
    plan = statistic_plan(EXPONENTIAL, epsilon="1", public_n=False)
    unit = 1 << (plan.parameters.lattice_bits or 0)
    # Totals of 0 to 30 noise scales, of 10 to 1,000 records; at 5 the tail alone is the prior's.
    totals = (0, 1, 3, 5, 10, 30)
    released = [(total * unit, (n - total) * unit) for n in (10, 100, 1000) for total in totals]
    statistic = noisy_statistic(plan, np.array(released))
    posterior, moved = posterior_of(statistic), posterior_of(statistic, prior=longer(100.0))
    decided = posterior.decided_by_default["rate"]
    # At the edge of what is named the end lies where the density is low: 4,000 draws move it by decades,
    # so many leave 1.19 within .02.
    ends = [each.quantile("rate", 0.975, draws=100_000) for each in (moved, posterior)]
    decades = np.log10(ends[0] / ends[1])
    assert 6 <= decided.sum() <= 12
    assert np.all(decades[decided] > 0.3)
    assert np.all(np.abs(decades[~decided]) < 0.2)


@pytest.mark.parametrize(
    ("entry", "quantity", "hidden"),
    [(SHARES, "share", (20, 12)), ({**EXPONENTIAL, "column": "x"}, "mean", (10 << 16, 20 << 16))],
)
def test_merged_cells_that_noise_hides_are_named(
    entry: dict[str, Any], quantity: str, hidden: tuple[int, int]
) -> None:
    """A thousand times as much is not hidden."""
    plan = statistic_plan(entry, epsilon="0.05", public_n=False)
    for times, decided in ((1, True), (1000, False)):
        values = times * np.array([hidden] * 4)
        statistic = noisy_statistic(plan, values, groups={"a": ["x", "x", "y", "y"], "b": [1, 2, 1, 2]})
        posterior = roll_up(statistic, "a").posterior()
        assert (posterior.decided_by_default[quantity] == decided).all()
        assert bool(posterior.notes) == decided


def test_a_mean_outside_of_its_interval_is_said() -> None:
    """Of a rate with a far tail; of one that the data set nothing is said."""
    plan = statistic_plan(EXPONENTIAL, epsilon="1", public_n=False)
    unit = 1 << (plan.parameters.lattice_bits or 0)
    far, near = (7 * unit, 293 * unit), (2000 * unit, 3000 * unit)
    said = [posterior_of(noisy_statistic(plan, np.array([each]))) for each in (far, near)]
    assert said[0].mean("rate")[0] > said[0].quantile("rate", 0.975)[0]
    assert "the mean lies outside its 95 % interval of rate in 1 of 1 cells" in said[0].notes[0]
    assert far_tail_text(said[1]) == ""


def test_the_lower_end_of_a_small_share_is_not_judged() -> None:
    """Of no successes in 2,000 it is the prior's in a ratio, and next to nothing in a difference."""
    posterior = shares("1", (2000, 0))
    assert posterior.quantile("probability", 0.5)[0] > 10 * posterior.quantile("probability", 0.025)[0]
    assert not posterior.decided_by_default["probability"].any()


@pytest.mark.slow
def test_several_columns_are_judged_by_draws_of_their_prior() -> None:
    """Of 30 records noise of epsilon 1 hides a slope of 1 beside residuals of 1, of 20,000 it does not."""
    release = fixed_release(1, 0.0, np.array([30, 20_000]), cells=2, rng=np.random.default_rng(1))
    decided = posterior_of(release).decided_by_default
    assert decided["coefficient"].tolist() == [[True], [False]]
    assert not any(mask[1].any() for mask in decided.values())
    assert list(decided) == ["coefficient", "intercept", "variance"]


@pytest.mark.slow
def test_a_covariance_is_decided_where_noise_hides_its_correlation() -> None:
    """Noise of epsilon .3 hides correlations of 200 rows, and of 60,000 it does not; variances are seen."""
    n, root = np.array([200, 60_000]), np.tile(0.25 * np.eye(3), (2, 1, 1))
    sums = moments_of(n, np.zeros((2, 3)), root, np.random.default_rng(1))
    statistic = cone_calibration.released(sums, "0.3", np.random.default_rng(2), noise="laplace")
    decided = posterior_of(statistic).decided_by_default
    assert decided["covariance"][0].all()
    assert not decided["variance"][0].any()
    assert not decided["covariance"][1].any()


TABLE = {"family": "categorical", "categories": list("abcd")}


def categories(epsilon: str, *released: tuple[int, ...], **terms: Any) -> Posterior:
    plan = statistic_plan(TABLE, epsilon=epsilon, public_n=False)
    return posterior_of(noisy_statistic(plan, np.array(released)), **terms)


def test_a_share_of_almost_all_is_drawn_towards_others_that_noise_does_not_rule_out() -> None:
    posterior = categories("0.1", (285, 5, 4, 6), (80, 70, 75, 75), (28500, 500, 400, 600))
    moved = [[True, False, False, False], [False] * 4, [False] * 4]
    assert posterior.moved_by_default["probability"].tolist() == moved
    assert not posterior.decided_by_default["probability"].any()
    (line,) = default_lines(posterior)
    assert line.startswith("the default prior moves probability in 1 of 12 entries (0, a): half of it would")
    assert line in posterior.notes


def test_what_half_the_prior_moves_is_what_it_is_said_to_move() -> None:
    """To first order; the draws of both take part in the difference."""
    halves = categories("0.1", (285, 5, 4, 6), prior="Dirichlet(0.5)")
    posterior = categories("0.1", (285, 5, 4, 6))
    sd = posterior.sd("probability")[0, 0]
    change = (halves.mean("probability") - posterior.mean("probability"))[0, 0] / sd
    assert MOVES < change < 3 * MOVES


def test_a_category_without_records_is_no_news() -> None:
    """Half the prior halves its mean, and its interval reaches 0 under either."""
    assert not categories("10", (150, 150, 0, 0)).moved_by_default["probability"].any()


def test_it_moves_nothing_that_a_person_states() -> None:
    for terms in ({"prior": "Dirichlet(2)"}, {"method": "plug-in"}):
        assert categories("0.1", (285, 5, 4, 6), **terms).moved_by_default == {}
    assert shares("0.1", (20, 10)).moved_by_default == {}


def test_shares_of_several_distributions_are_judged_by_their_own() -> None:
    """Only categories of one distribution share what its prior gives: of two, one may be well known."""
    rng = np.random.default_rng(7)
    known, hidden = rng.dirichlet([3000, 4000], (1000, 1)), rng.dirichlet([30, 1, 1, 1, 1, 1], (1000, 1))
    both = np.concatenate([known, hidden], axis=-1)
    apart = _moved(both, np.full(8, 0.5), (0, 2))
    assert not apart[0, :2].any()
    assert apart[0, 2]


@pytest.mark.parametrize(
    "prior", [ScaleMixture(0, 100), NormalInverseGamma(20, 0.5, 3, 200), NormalInverseGamma(95, 4, 2, 4000)]
)
def test_the_density_of_a_bounded_prior_is_that_of_draws_within_its_region(prior: Any) -> None:
    """20 bins of 100,000 draws or more: each within six standard errors and a thousandth."""
    components = _components(prior)
    drawn = np.concatenate(
        [part.sample(int(400_000 * weight), np.random.default_rng(1)) for weight, part in components]
    )
    mean, variance = drawn[drawn[:, 1] <= 2500 - (drawn[:, 0] - 50) ** 2].T
    for position, (values, end) in enumerate(((mean, 100.0), (variance, 2500.0))):
        edges = np.linspace(0.0, end, 21)
        points = np.linspace(0.0, end, 20 * 400 + 1)[:-1] + end / 16_000
        density = density_of_bounded(components, (50.0, 50.0), position, points)
        shares = density.reshape(20, 400).mean(axis=1) * end / 20
        counted = np.histogram(values, edges)[0] / len(values)
        room = 6 * np.sqrt(shares / len(values)) + 1e-3
        kept = slice(1 if position else 0, None)  # the smallest variances need a finer grid
        assert np.all(np.abs(shares - counted)[kept] < room[kept])
        if not position:
            assert shares.sum() == pytest.approx(1.0, abs=1e-3)
