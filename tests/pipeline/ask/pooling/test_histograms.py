"""Histograms of several releases: pooled, rolled up, compared; and their evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.pooling.pool import observed_again, pooled
from suffice.pipeline.ask.pooling.roll_up import roll_up
from suffice.pipeline.ask.posterior.choice_of_engine import noise_aware
from suffice.pipeline.ask.posterior.notes import conflict_lines, default_lines
from suffice.pipeline.math.engines.histogram.histogram_posterior import HistogramPosterior
from support import releases as making
from support.noisy import noisy_statistic
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

BINS = 20
SHARE = np.exp(-np.arange(BINS) / 4.0) / np.sum(np.exp(-np.arange(BINS) / 4.0))


def plan_of(epsilon: str = "0.2", **changes: Any) -> Any:
    entry = {"family": "histogram", "column": "d", "lower": "0", "upper": "20", "bins": BINS}
    return make_plan(
        privacy={"epsilon": epsilon, "neighboring": "add_or_remove_one"},
        statistics={"delay": entry},
        **{"groups": None, **changes},
    )


def released(plan: StatisticPlan, counts: NDArray[Any], rng: np.random.Generator) -> NoisyStatistic:
    """Add simulated noise to the counts of cells."""
    p = -np.expm1(-1.0 / plan.scale)
    noise = rng.geometric(p, counts.shape) - rng.geometric(p, counts.shape)
    return noisy_statistic(plan, (counts + noise).astype(np.int64).astype(object))


def width(estimate: Any) -> float:
    return float(np.mean(estimate.upper - estimate.lower))


@pytest.mark.slow
def test_the_rows_of_several_releases_are_known_better() -> None:
    """Exact numbers of rows in 20 cells, in 95 % intervals: 11 or fewer has the chance 2e-7."""
    rng = np.random.default_rng()
    (plan,) = plan_of().statistics
    sizes = 300.0 + 300.0 * np.arange(20)
    counts = rng.poisson(sizes[:, None] * SHARE)
    parts = [released(plan, counts, rng) for _ in range(4)]
    plain, together = (
        noise_aware(each, PosteriorTerms()).column(of="rows", draws=500, rng=rng)
        for each in (parts[0], observed_again(parts))
    )
    assert width(together.cdf(5.0)) < 0.7 * width(plain.cdf(5.0))
    n, exact = together.n(), counts.sum(axis=1)
    assert np.sum((n.lower <= exact) & (exact <= n.upper)) > 11
    # Control: those of the cell beside it are in hardly any.
    other = np.roll(exact, 1)
    assert np.sum((n.lower <= other) & (other <= n.upper)) <= 11


def test_sentences_count_bins_and_name_none() -> None:
    """Of 50 rows behind noise of standard deviation 70 the prior decides nearly all bins."""
    (plan,) = plan_of("0.02").statistics
    shown = noise_aware(
        noisy_statistic(plan, np.array([[9, -31, 14, 2, *[5] * 16]], dtype=object)), PosteriorTerms()
    )
    (decided,) = shown.decided_by_default.values()
    assert decided.sum() > 5
    (line,) = default_lines(shown)
    assert line.startswith(
        f"the default prior decides 95 % intervals of the shares of {decided.sum()} of 20 bins"
    )
    (of_counts,) = [each for each in conflict_lines(shown) if "not judged" in each]
    assert of_counts.endswith("for 20 counts")


@pytest.mark.slow
def test_disjoint_data_are_added_up() -> None:
    """The law's share among 6 cells, of three data sets of unequal size: none has the chance 2e-8.

    Of their numbers of rows none has that chance too.
    """
    rng = np.random.default_rng()
    (plan,) = plan_of().statistics
    sizes = (100.0, 400.0, 900.0)
    counts = [rng.poisson(n * SHARE, (6, BINS)) for n in sizes]
    parts = [released(plan, each, rng) for each in counts]
    together = pooled(parts, rng=rng)
    law = together.column(draws=500, rng=rng)
    share = law.cdf(5.0)
    truth = float(np.sum(SHARE[:5]))
    assert np.sum((share.lower <= truth) & (truth <= share.upper)) > 0
    assert width(share) < width(noise_aware(parts[1], PosteriorTerms()).column(draws=500, rng=rng).cdf(5.0))
    # The rows are those of all three data sets.
    n = together.column(of="rows", draws=500, rng=rng).n()
    exact = np.sum(counts, axis=(0, 2))
    assert np.sum((n.lower <= exact) & (exact <= n.upper)) > 0
    assert np.all(n.lower > sizes[2] / 2.0)
    with pytest.raises(UsageError, match="one scale"):
        pooled([parts[0], released(plan_of("0.4").statistics[0], counts[0], rng)], rng=rng)


def test_cells_that_differ_are_rolled_up_into_the_law_of_all_their_records() -> None:
    """Half of the records are of another law: the median of all is between, 6 standard deviations off it.

    A false alarm of 2e-9.
    """
    rng = np.random.default_rng()
    (plan,) = plan_of("1").statistics
    counts = np.stack([rng.poisson(3_000.0 * SHARE), rng.poisson(3_000.0 * SHARE[::-1])])
    merged = roll_up(released(plan, counts, rng), "cell").posterior(assume="one parameter", rng=rng)
    assert "which may differ" in str(merged.rows_of)
    column = merged.column(draws=500, rng=rng)
    below = column.cdf(10.0)
    assert abs(below.mean[0] - 0.5) < 0.045
    assert column.quantile(0.1).upper[0] < 3.0
    assert column.quantile(0.9).lower[0] > 17.0


def test_evidence_is_the_engines_and_compares_priors(tmp_path: Path) -> None:
    plan = plan_of("1")
    rng = np.random.default_rng(5)
    smooth = released(plan.statistics[0], rng.poisson(np.full((1, BINS), 200.0)), rng)
    release = suffice.open_release(publish(tmp_path, plan, {"delay": smooth.values}))
    posterior = release.posterior("delay")
    assert isinstance(posterior.distribution, HistogramPosterior)
    assert posterior.log_evidence == pytest.approx(posterior.distribution.log_evidence())
    compared = suffice.compare_priors(release, "delay", ["BinWalk(0.1)", "BinWalk(0.8)"])
    assert compared.total_log_bayes_factors[1] < -3.0


@pytest.mark.slow
def test_changes_of_quantiles_have_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At one pair of releases: an interval of 95 % holds a median's change, others do within some room."""
    window = {"column": "day", "every": "month"}
    plan = plan_of("1", window=window)
    rng = np.random.default_rng(7)
    later = np.roll(SHARE, 6)
    releases: list[suffice.Release] = []
    for label, law in (("2013-01", SHARE), ("2013-02", later)):
        values = released(plan.statistics[0], rng.poisson(20_000.0 * law)[None], rng).values
        monkeypatch.setattr(making, "RELEASE_ID", f"{len(releases) + 1:016x}")
        releases.append(
            suffice.open_release(publish(tmp_path / label, plan, {"delay": values}, window=label))
        )
    compared = suffice.compare(releases[0], releases[1], "delay", rng=1)
    change = compared.column(rng=1)
    middle = change.quantile(0.5)
    first, second = (float(np.interp(0.5, np.cumsum(law), np.arange(BINS) + 1.0)) for law in (SHARE, later))
    assert middle.lower[0] < second - first < middle.upper[0]
    assert 2.0 < middle.lower[0] < middle.upper[0] < second - first + 2.0
    mean = float(np.sum((later - SHARE) * (np.arange(BINS) + 0.5)))
    for of_mean in (change.mean(), change.mean(is_even=True)):
        assert of_mean.lower[0] - 0.3 < mean < of_mean.upper[0] + 0.3
    assert width(change.mean(is_even=True)) < width(change.mean())
    tail = float(np.sum((later - SHARE)[5:]))
    of_tail = change.tail_share(5.0)
    assert of_tail.lower[0] - 0.02 < tail < of_tail.upper[0] + 0.02
    assert compared.column(of="rows", rng=1).median().lower[0] > 2.0
    both = suffice.pool("delay", disjoint=releases, rng=1)
    share = both.column(rng=1).cdf(5.0)
    assert share.lower[0] - 0.02 < float(np.sum((SHARE + later)[:5])) / 2.0 < share.upper[0] + 0.02
