"""Pools of many cells: sums over some cells at a time, and rules that begin where fewer cells put them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import expit

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled import hyperparameters, kept_nodes, normal_approximation
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution, pooled_distribution
from suffice.pipeline.math.engines.pooled.hyperparameters import Fit, more_cells
from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
from suffice.pipeline.math.engines.pooled.normal_approximation import Moments, first_box, moments_of
from suffice.pipeline.math.engines.pooled.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.priors.record_count import Reciprocal

CELLS = 260
POPULATION = POPULATIONS[Line.LOGIT][DEFAULT]
PRIOR = LocationPrior(0.0, 1.0)


def cells_with_outliers() -> CountCells:
    """One in ten is three logits away: the normal approximation is off by many times what cells tell."""
    rng = np.random.default_rng(3)
    size = rng.integers(40, 4000, CELLS)
    logit = rng.normal(-2.0, 0.4, CELLS) + 3.0 * (np.arange(CELLS) % 10 == 0)
    true = rng.binomial(size, expit(logit))
    counts = [
        NoisyCount(values=n.astype(np.float64)[:, None], scales=np.full(1, 2.0)) for n in (true, size - true)
    ]
    return CountCells(true=counts[0], false=counts[1], n_prior=Reciprocal(10**12))


@cache
def at_once() -> PooledDistribution:
    return asked()


def asked() -> PooledDistribution:
    return pooled_distribution(cells_with_outliers(), POPULATION, "probability", Line.LOGIT)


def test_an_approximation_is_the_same_by_some_cells_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    moments = Moments(
        mean=rng.normal(-1.0, 0.5, 200),
        precision=rng.gamma(2.0, 3.0, 200),
        log_size=rng.normal(4.0, 1.0, 200),
    )
    whole = first_box(moments, PRIOR, has_slope=True, has_spread_slope=True)
    # 540 pairs of a spread and its slope: seven cells at a time.
    monkeypatch.setattr(normal_approximation, "_TOGETHER", 4000)
    parts = first_box(moments, PRIOR, has_slope=True, has_spread_slope=True)
    for name in "tsbg":
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9)


@pytest.mark.slow
def test_nodes_that_are_not_kept_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = at_once()
    assert kept.blocks.are_kept
    monkeypatch.setattr(kept_nodes, "KEPT_NODES", 100)
    again = asked()
    assert not again.blocks.are_kept
    np.testing.assert_allclose(again.mean("probability"), kept.mean("probability"), rtol=1e-9)
    np.testing.assert_allclose(again.own_share, kept.own_share, rtol=1e-9)


@pytest.mark.slow
def test_rules_begin_where_fewer_cells_have_the_posterior() -> None:
    """The approximation of all cells puts the location elsewhere."""
    source = cells_with_outliers()

    def fit_of(n: int) -> Fit:
        blocks = KeptNodes(source, np.arange(n))
        return Fit(
            blocks=blocks,
            population=POPULATION,
            moments=moments_of(blocks, source.middle),
            prior=PRIOR,
            has_slope=True,
            has_spread_slope=True,
        )

    known, fit = fit_of(100), fit_of(CELLS)
    begun = fit.box_after(known.settled(known.first_box()), CELLS / 100)
    settled = fit.settled(begun)
    _, t = fit.weighed(begun)
    for (centre, half), values in (
        (begun.t, t),
        (begun.s, settled.drawn_spread),
        (begun.b, settled.slopes),
        (begun.g, settled.spread_slope),
    ):
        assert abs(settled.mean(values) - centre) < 0.75 * half
        assert half < 3.0 * normal_approximation.T_REACH * settled.sd(values)
    assert abs(settled.mean(t)) > 0.75 * fit.first_box().t[1]


@pytest.mark.slow
def test_fewer_cells_put_the_rules_and_the_answer_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules differ, which moves an answer by what they are off by: some hundredths of a deviation."""
    of_all = at_once()
    monkeypatch.setattr(hyperparameters, "FIRST_CELLS", 64)
    monkeypatch.setattr(hyperparameters, "KEPT_NODES", 100)
    monkeypatch.setattr(kept_nodes, "KEPT_NODES", 100)
    by_stages = asked()
    gap = by_stages.mean("probability") - of_all.mean("probability")
    assert float(np.max(np.abs(gap) / of_all.sd("probability"))) < 0.05
    hyper, other = by_stages.hyperparameters, of_all.hyperparameters
    off = abs(hyper.mean(hyper.location) - other.mean(other.location))
    assert off < 0.2 * other.sd(other.location)


@pytest.mark.parametrize(
    ("n", "n_cells", "more"),
    [
        (512, 600, 600),
        (512, 10_000, 2560),
        (2560, 10_000, 10_000),
        (2560, 100_000, 12_000),
        (12_000, 10**6, 10**6),
    ],
)
def test_stages_end_where_nodes_are_no_longer_kept(n: int, n_cells: int, more: int) -> None:
    assert more_cells(n, n_cells) == more
