"""The posterior of a histogram beside enumeration of all paths, a finer grid, and what it is not without."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

from suffice.errors import UsageError
from suffice.pipeline.math.engines.histogram import bin_walk
from suffice.pipeline.math.engines.histogram.bin_grid import LEAST
from suffice.pipeline.math.engines.histogram.bin_walk import KINDS, STEPS, Filtered, kernel
from suffice.pipeline.math.engines.histogram.histogram_posterior import (
    HistogramPosterior,
    histogram_posterior,
)
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Floats


def bins_of(edges: Floats) -> SimpleNamespace:
    """Return bins between edges."""
    return SimpleNamespace(lower=edges[:-1], upper=edges[1:], is_atom=np.zeros(len(edges) - 1, dtype=bool))


def noisy(counts: NDArray[Any], epsilon: float, rng: np.random.Generator) -> NoisyTotals:
    """Add simulated noise."""
    p = -np.expm1(-epsilon)
    noise = rng.geometric(p, counts.shape) - rng.geometric(p, counts.shape)
    return NoisyTotals.of_counts([(counts + noise).astype(np.float64)], [1.0 / epsilon])


def with_kernels(
    posterior: HistogramPosterior, kernels: Floats, *, empty: bool
) -> tuple[Floats, Floats, Floats]:
    """Return log evidence, means and standard deviations of one cell's bins under other kernels."""
    (fitted,) = posterior.fitted()
    emission = fitted.grid.emission.copy()
    emission[:, :, -1] *= empty
    walk = Filtered.of(emission, kernels)
    states = walk.marginals()[:, :, :-1]
    first, second = fitted.grid.moments()
    mean = np.sum(states * first, axis=2)
    return walk.log_evidence, mean, np.sqrt(np.sum(states * second, axis=2) - mean**2)


def test_enumeration_of_all_paths_gives_the_same() -> None:
    """Three bins of unequal width and an atom: 17^3 paths, 25 kernels, sums over counts term by term."""
    y, epsilon, spacing = np.array([3.0, -1.0, 1.0, 5.0]), 0.5, 0.5
    bins = SimpleNamespace(
        lower=np.array([0.0, 1.0, 1.0, 3.0]),
        upper=np.array([1.0, 1.0, 3.0, 4.0]),
        is_atom=np.array([False, True, False, False]),
    )
    posterior = replace(
        histogram_posterior(NoisyTotals.of_counts([y[None]], [1.0 / epsilon]), bins), spacing=spacing
    )
    (fitted,) = posterior.fitted()
    points = len(fitted.grid.position)
    # Each place counts by itself.
    width = np.array([1.0, 2.0, 2.0, 1.0])
    mean = width[:, None] * np.exp(np.log(LEAST / 2.0) + spacing * np.arange(points))
    k = np.arange(0.0, 2_000.0)
    noise = np.tanh(epsilon / 2.0) * np.exp(-epsilon * np.abs(y[:, None] - k))
    first, second, emission = np.zeros((3, 4, points + 1))
    emission[:, -1] = noise[:, 0]
    for at in np.ndindex(4, points):
        # As many places as the grid takes there.
        n_places = 1
        for places in fitted.grid.places:
            if places.number[fitted.grid.row[0, at[0]], at[1]] >= 0:
                n_places = places.cumulative.shape[1]
        values = mean[at] * np.exp(((np.arange(n_places) + 0.5) / n_places - 0.5) * spacing)
        each = np.array([np.sum(poisson.pmf(k, value) * noise[at[0]]) for value in values])
        emission[at] = np.mean(each)
        first[at] = np.sum(each * values) / np.sum(each)
        second[at] = np.sum(each * values**2) / np.sum(each)
    start = np.append(np.full(points, 0.5 / points), 0.5)
    total, weighed, squared = 0.0, np.zeros(4), np.zeros(4)
    # The atom is apart from the walk.
    atom = start * emission[1]
    inner = [0, 2, 3]
    for step, (jumps, stay) in itertools.product(STEPS, KINDS):
        gap = np.abs(np.arange(points)[:, None] - np.arange(points)) * spacing
        normal = np.exp(-0.5 * (gap / step) ** 2)
        if step < 0.75 * spacing:
            share = (step / spacing) ** 2
            normal = np.where(gap == 0.0, 1.0 - share, np.where(np.isclose(gap, spacing), share / 2.0, 0.0))
        normal, jump = (each / each.sum(axis=1, keepdims=True) for each in (normal, np.exp(-gap / 1.5)))
        move = np.block(
            [
                [stay * ((1.0 - jumps) * normal + jumps * jump), np.full((points, 1), 1.0 - stay)],
                [np.full((1, points), (1.0 - stay) / points), np.array([[stay]])],
            ]
        )
        path = (
            start[:, None, None]
            * move[:, :, None]
            * move[None]
            * emission[0][:, None, None]
            * emission[2][None, :, None]
            * emission[3]
        )
        path /= len(STEPS) * len(KINDS)
        total += np.sum(path)
        for axis, position in enumerate(inner):
            others = tuple(each for each in range(3) if each != axis)
            weighed[position] += np.sum(path, axis=others) @ first[position]
            squared[position] += np.sum(path, axis=others) @ second[position]
    expected = weighed / total
    expected[1] = atom @ first[1] / np.sum(atom)
    square = squared / total
    square[1] = atom @ second[1] / np.sum(atom)
    means, sds = posterior.expected_counts()
    assert means[0] == pytest.approx(expected, rel=1e-10)
    assert sds[0] == pytest.approx(np.sqrt(square - expected**2), rel=1e-9)
    assert posterior.log_evidence()[0] == pytest.approx(np.log(total * np.sum(atom)), rel=1e-10)


def test_draws_have_the_exact_means() -> None:
    """Means of 40,000 draws of six bins within 6 standard errors; of one near 0 their skewness is 14.

    By Chernoff's bound a false alarm has a chance below 2e-8.
    """
    rng = np.random.default_rng(7)
    totals = noisy(rng.poisson([[400.0, 30.0, 20.0, 3.0, 0.0, 0.0]]), 0.5, rng)
    posterior = histogram_posterior(totals, bins_of(np.array([0.0, 1, 2, 3, 5, 9, 20])))
    mean, sd = posterior.expected_counts()
    rng = np.random.default_rng()
    drawn = posterior.means(40_000, rng)
    assert np.all(np.abs(np.mean(drawn, axis=0) - mean) < 6.0 * sd / np.sqrt(40_000.0) + 2e-3 * mean)
    counts = posterior.counts(drawn, rng)
    # E[k | mu, y] has the mean of mu but for what the prior of mu adds; the rows are known better.
    assert np.all(np.std(counts, axis=0)[:, :1] < sd[:, :1])
    shares = posterior.sample(100, rng)["probability"]
    assert np.sum(shares, axis=2) == pytest.approx(1.0)
    assert posterior.mean("probability") == pytest.approx(mean / mean.sum(), abs=0.05)


def test_counts_of_the_rows_know_the_noise() -> None:
    """Far below a noisy count, a count is Poisson(mean e^epsilon): 6 standard errors of 2,000 draws, 2e-9."""
    totals = NoisyTotals.of_counts([np.array([[90.0, 5.0]])], [2.0])
    posterior = histogram_posterior(totals, bins_of(np.arange(3.0)))
    counts = posterior.counts(np.full((2_000, 1, 2), 20.0), np.random.default_rng())[:, 0, 0]
    expected = 20.0 * np.exp(0.5)
    assert abs(np.mean(counts) - expected) < 6.0 * np.sqrt(expected / 2_000.0)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(300, 1.0), (30_000, 1.0)])
def test_a_grid_four_times_finer_moves_next_to_nothing(n: int, epsilon: float) -> None:
    rng = np.random.default_rng(2)
    share = np.exp(-np.arange(32) / 8.0)
    totals = noisy(rng.poisson(n * share / share.sum(), (3, 32)), epsilon, rng)
    posterior = histogram_posterior(totals, bins_of(np.arange(33.0)))
    mean, sd = posterior.expected_counts()
    finer, finer_sd = replace(posterior, spacing=0.025).expected_counts()
    assert np.max(np.abs(mean - finer) / finer_sd) < 0.15
    assert np.mean(np.abs(mean - finer) / finer_sd) < 0.02
    assert np.max(np.abs(sd / finer_sd - 1.0)) < 0.08
    # Control: one as coarse as .8 moves them.
    coarse, _ = replace(posterior, spacing=0.8).expected_counts()
    assert np.mean(np.abs(coarse - finer) / finer_sd) > 0.02


def test_a_cell_has_the_same_posterior_beside_any_others() -> None:
    rng = np.random.default_rng(3)
    counts = rng.poisson([[5.0] * 8, [5_000.0] * 8, [0.1] * 8])
    posterior = histogram_posterior(noisy(counts, 0.5, rng), bins_of(np.arange(9.0)))
    together, _ = posterior.expected_counts()
    for cell in range(3):
        assert posterior.at(slice(cell, cell + 1)).expected_counts()[0][0] == pytest.approx(together[cell])


@pytest.mark.slow
def test_without_the_state_of_no_records_near_empty_bins_add_up() -> None:
    """Ten bins of 256 have 300 records, with the mean 5: without the state it is more than twice that."""
    rng = np.random.default_rng(7)
    share = np.where(np.arange(256) < 10, 0.1, 0.0)
    posterior = histogram_posterior(
        noisy(rng.poisson(300.0 * share, (4, 256)), 1.0, rng), bins_of(np.arange(257.0))
    )
    middle = np.arange(256) + 0.5
    ours, theirs = [], []
    for cell in range(4):
        alone = posterior.at(slice(cell, cell + 1))
        (fitted,) = alone.fitted()
        points = len(fitted.grid.position)
        walks = np.zeros((len(STEPS), points + 1, points + 1))
        walks[:, :-1, :-1] = [kernel(step, fitted.grid.spacing, points) for step in STEPS]
        ours.append(alone.expected_counts()[0])
        theirs.append(with_kernels(alone, walks, empty=False)[1])
    mean, without = (np.mean([each @ middle / each.sum() for each in side]) for side in (ours, theirs))
    assert mean < 12.0
    assert without > 12.0


def test_without_jumps_a_spike_is_taken_for_a_rough_histogram() -> None:
    rng = np.random.default_rng(7)
    share = np.where(np.arange(64) == 20, 40.0, 1.0)
    totals = noisy(rng.poisson(3_000.0 * share / share.sum(), (1, 64)), 1.0, rng)
    posterior = histogram_posterior(totals, bins_of(np.arange(65.0)))
    (fitted,) = posterior.fitted()
    points = len(fitted.grid.position)
    smooth = fitted.walk.kernels.copy()
    for number, ((_, stay), step) in enumerate(itertools.product(KINDS, STEPS)):
        smooth[number, :-1, :-1] = stay * kernel(step, fitted.grid.spacing, points, jumps=0.0)
    evidence, _, _ = with_kernels(posterior, smooth, empty=True)
    assert logsumexp(fitted.walk.log_evidence) - logsumexp(evidence) > 20.0


def test_between_heaps_bins_are_nearly_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two records a bin between heaps of 250, noise of 14: smooth kinds take noise for records, 280 of 96.

    The mean over 30 histograms has a standard error of 8 at most: either side of 190 is nine of them away, a
    chance below 1e-7, skewness included.
    """
    rng = np.random.default_rng()
    counts = np.where(np.arange(60) % 5 == 0, 250, 2)
    totals = noisy(np.broadcast_to(counts, (30, 60)), 0.1, rng)

    def between() -> float:
        mean, _ = histogram_posterior(totals, bins_of(np.arange(61.0))).expected_counts()
        return float(np.mean(np.sum(mean[:, counts == 2], axis=1)))

    ours = between()
    monkeypatch.setattr(bin_walk, "KINDS", KINDS[:-1])
    assert ours < 190.0
    assert between() > 190.0


@pytest.mark.slow
def test_noise_of_another_scale_is_less_probable() -> None:
    """Of 120 histograms the gain is some 9 standard errors: a miss of 3 has a chance below 1e-8."""
    rng = np.random.default_rng()
    share = np.exp(-np.arange(64) / 6.0)
    totals = noisy(rng.poisson(30.0 * share / share.sum(), (120, 64)), 0.1, rng)
    bins = bins_of(np.arange(65.0))
    right = histogram_posterior(totals, bins).log_evidence()
    for factor in (0.8, 1.25):
        wrong = histogram_posterior(replace(totals, scale=factor * totals.scale), bins).log_evidence()
        gain = right - wrong
        assert np.mean(gain) > 3.0 * np.std(gain) / np.sqrt(len(gain))


def test_a_step_plugged_in_knows_too_much() -> None:
    """A step that is plugged in leaves its own uncertainty out: standard deviations are smaller."""
    rng = np.random.default_rng(7)
    totals = noisy(rng.poisson(np.full((40, 12), 12.0)), 0.3, rng)
    posterior = histogram_posterior(totals, bins_of(np.arange(13.0)))
    weight = np.concatenate([fitted.walk.weight for fitted in posterior.fitted()], axis=1)
    weight = weight.reshape(len(KINDS), len(STEPS), -1).sum(axis=0)
    assert np.median(weight.max(axis=0)) < 0.9
    _, sd = posterior.expected_counts()
    of_least = replace(posterior, steps=(min(STEPS),)).expected_counts()[1]
    assert np.mean(of_least) < 0.9 * np.mean(sd)


def test_bins_and_counts_go_together() -> None:
    bins = bins_of(np.arange(4.0))
    with pytest.raises(UsageError, match="3 bins"):
        histogram_posterior(NoisyTotals.of_counts([np.zeros((1, 2))], [1.0]), bins)
    with pytest.raises(UsageError, match="of one release"):
        histogram_posterior(NoisyTotals.of_counts([np.zeros((1, 3))] * 2, [1.0, 1.0]), bins, noises=2)


def test_kernels_are_laws() -> None:
    for step in bin_walk.STEPS:
        assert np.sum(bin_walk.transition(step, 0.1, 40), axis=1) == pytest.approx(1.0)
    assert np.sum(bin_walk.first_state(40)) == pytest.approx(1.0)
