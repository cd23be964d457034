"""Pools whose cells differ by decades in size: one cell decides no slope, and no law falls between nodes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import expit

from suffice.pipeline.ask.borrowing.pool import Pool
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled import hyperparameters
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution, pooled_distribution
from suffice.pipeline.math.engines.pooled.hyperparameters import Fit
from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
from suffice.pipeline.math.engines.pooled.normal_approximation import Box, moments_of, outer_fence
from suffice.pipeline.math.engines.pooled.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.priors.record_count import Reciprocal
from support.noisy import discrete_laplace
from support.normal_cells import NormalCells

if TYPE_CHECKING:
    from suffice.typing import Counts, Floats

POPULATION = POPULATIONS[Line.LOGIT][DEFAULT]
HUGE, SMALL, CELLS = 10**7, 3, 60


def cells_of(size: Counts, logit: Floats, scale: float) -> CountCells:
    rng = np.random.default_rng(3)
    true = rng.binomial(size, expit(logit))
    noisy = [n + discrete_laplace(scale, n.shape, rng) for n in (true, size - true)]
    counts = [NoisyCount(values=n.astype(np.float64)[:, None], scales=np.full(1, scale)) for n in noisy]
    return CountCells(true=counts[0], false=counts[1], n_prior=Reciprocal(10**12))


def pooled(cells: CountCells) -> PooledDistribution:
    return pooled_distribution(cells, POPULATION, "probability", Line.LOGIT)


@cache
def tiny_and_huge() -> CountCells:
    """Sixty cells of three records, and the last has ten million."""
    logit = np.random.default_rng(4).normal(-1.0, 0.5, CELLS + 1)
    return cells_of(np.array([SMALL] * CELLS + [HUGE]), logit, 0.5)


@pytest.mark.slow
def test_a_huge_cell_among_tiny_ones_leaves_what_they_say_of_each_other() -> None:
    together, places = pooled(tiny_and_huge()), np.arange(CELLS)
    known = together.hyperparameters
    assert known.settled
    assert SMALL < np.expm1(known.grid.highest) < 1e4
    cells = tiny_and_huge()
    apart = pooled(
        CountCells(true=cells.true.take(places), false=cells.false.take(places), n_prior=cells.n_prior)
    )
    assert np.isinf(apart.hyperparameters.grid.highest)
    said = Pool.of({"state": 1}, together).of_far_sizes
    assert said.startswith("cells of state=1 with more than 2")
    assert "0 records count as that large in slopes on log size" in said
    assert Pool.of({}, apart).of_far_sizes == ""
    # The end of a line over 14 units of log size would tell a slope by .03.
    assert known.sd(known.slopes) > 0.1
    # One cell more says a little of the population, and no more.
    gap = together.mean("probability")[:CELLS] - apart.mean("probability")
    assert np.max(np.abs(gap) / apart.sd("probability")) < 0.4
    np.testing.assert_allclose(together.sd("probability")[:CELLS], apart.sd("probability"), rtol=0.25)
    # It has its own likelihood: of ten million records.
    share = float(cells.true.values[-1, 0]) / HUGE
    assert abs(together.mean("probability")[-1] - share) < 0.3 * (share * (1.0 - share) / HUGE) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("huge", "scale"), [(2, 2.0), (3, 10.0)])
def test_several_huge_cells_leave_evidence_that_nodes_tell(huge: int, scale: float) -> None:
    """Spreads whose slope is steep are narrow at one end of the sizes only, where slopes have moved them."""
    for seed in range(2):
        logit = np.random.default_rng(seed).normal(-1.0, 0.5, CELLS)
        known = pooled(cells_of(np.array([HUGE] * huge + [SMALL] * (CELLS - huge)), logit, scale))
        assert known.hyperparameters.settled
        # By their number, no node has all of the weight.
        assert np.max(known.hyperparameters.weight) < 0.3


def test_populations_of_a_box_are_no_narrower_than_nodes_are_apart() -> None:
    """Wherever they are; by Poisson's formula sums over nodes 1.5 standard deviations apart are off by .0003.

    One cell says much, and where it is: next to it are narrow populations, and wider ones elsewhere.
    """
    cells = NormalCells(np.append(np.full(40, -1.0), 3.0), np.append(np.full(40, 1.0), 1e-3))
    blocks = KeptNodes(cells, np.arange(41))
    fit = Fit(
        blocks=blocks,
        population=POPULATION,
        moments=moments_of(blocks, cells.middle),
        prior=LocationPrior(0.0, 1.0),
        has_slope=False,
        has_spread_slope=False,
    )
    hyper, _ = fit.weighed(Box(t=(0.0, 6.0), s=(1.0, 1.0), b=(0.0, 0.0)))
    focus = hyper.grid.focus
    apart = focus.apart / (focus.width * focus.slope(hyper.location))
    assert np.max(apart / hyper.spread) < 1.5
    # Where spacing bends, sums are off by .0005: narrow populations are well inside.
    gap = np.abs(hyper.location - focus.centre)[hyper.spread <= 2.0 * focus.width]
    assert np.max(gap) < focus.reach - 2.0 * focus.width


@pytest.mark.slow
def test_a_spread_between_two_sizes_is_that_of_closer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty-four cells, one of them far out, say little of the slope of the spread: it may be steep."""
    rng = np.random.default_rng(5)
    logit = rng.normal(-2.0, 0.4, 24)
    logit[5] = 1.0
    cells = cells_of(rng.integers(30, 200, 24), logit, 2.0)
    normal = POPULATIONS[Line.LOGIT]["logit-normal"]
    known = pooled_distribution(cells, normal, "probability", Line.LOGIT)
    monkeypatch.setattr(hyperparameters, "_RATIO_OF_TAILS", 0.15)
    monkeypatch.setattr(hyperparameters, "_KNOTS", {None: 60})
    closer = pooled_distribution(cells, normal, "probability", Line.LOGIT)
    assert len(closer.hyperparameters.grid.knots) > 2 * len(known.hyperparameters.grid.knots) - 2
    gap = np.abs(closer.mean("probability") - known.mean("probability")) / closer.sd("probability")
    assert np.max(gap) < 0.03


def test_a_fence_is_where_tukey_has_it() -> None:
    even = np.linspace(0.0, 8.0, 9)
    assert outer_fence(np.append(even, 40.0)) == pytest.approx(np.quantile([*even, 40.0], 0.75) + 3.0 * 4.5)
    assert np.isinf(outer_fence(even))
    # Sizes that are all alike have a range of 1.35.
    assert outer_fence(np.array([2.0] * 9 + [9.0])) == pytest.approx(2.0 + 3.0 * 1.35)
