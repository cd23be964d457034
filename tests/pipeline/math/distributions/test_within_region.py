"""A mean and a variance within the region of bounded records, beside dense sums."""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import gammaincc, ndtr, stdtr

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.joint_components import JointComponents
from suffice.pipeline.math.distributions.many_cells import MOMENT_NODES
from suffice.pipeline.math.distributions.within_limits import WithinLimits
from suffice.pipeline.math.distributions.within_region import TabulatedJointly, marginals_within
from suffice.pipeline.math.engines.normal.covering import SHARE
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.within_region import Marginal
    from suffice.typing import Floats

LEVELS = np.array([0.001, 0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.999])


@dataclass(frozen=True)
class Dense:
    """Sums over all components on a grid of one parameter: edges of steps, and the mass in each."""

    edges: Floats
    mass: Floats

    def judge(self, marginal: Marginal) -> None:
        """Hold a marginal's numbers beside these."""
        share = self.mass.sum()
        assert marginal.inside == pytest.approx(share, abs=0.001, rel=0.02)
        below = np.concatenate([[0.0], np.cumsum(self.mass)]) / share
        at = np.interp(LEVELS, marginal.below, marginal.knots)
        assert np.interp(at, self.edges, below) == pytest.approx(LEVELS, abs=0.005)
        middle, step = (self.edges[1:] + self.edges[:-1]) / 2.0, np.diff(self.edges)
        mean = self.mass @ middle / share
        sd = np.sqrt(self.mass @ ((middle - mean) ** 2 + step**2 / 12.0) / share)
        assert marginal.mean == pytest.approx(mean, abs=0.005 * sd)
        assert marginal.sd == pytest.approx(sd, rel=0.01)


def dense_sums(
    parts: JointComponents, marginals: tuple[Marginal, Marginal], fine: int
) -> tuple[Dense, Dense]:
    """Sums on grids that are `fine` times as close as a table's knots, and go on to both ends."""
    of_mean, of_variance = (
        finer(marginal.knots, fine, end) for marginal, end in zip(marginals, (-1, 0), strict=True)
    )
    mean, variance = np.zeros(len(of_mean) - 1), np.zeros(len(of_variance) - 1)
    middle, inside = (of_mean[1:] + of_mean[:-1]) / 2.0, (of_variance[1:] + of_variance[:-1]) / 2.0
    room, reach = (1.0 - middle) * (1.0 + middle), np.sqrt(1.0 - inside)
    for start in range(0, len(parts.weight), 500):
        block = parts.take(slice(start, start + 500))
        m, width, ratio = block.loc[:, None], block.width[:, None], np.exp(block.log_ratio[:, None])
        a = block.log_width[:, None] ** -2.0
        # Student's t, and the variance beside each mean.
        below = stdtr(block.degrees[:, None], (of_mean - m) / width)
        given = gammaincc(a + 0.5, ratio * (a + ((middle - m) / width) ** 2 / 2.0) / room)
        mean += block.weight @ (np.diff(below, axis=1) * given)
        # The inverse gamma, and the means beside each variance.
        below = gammaincc(a, a * ratio / np.maximum(of_variance, 1e-300))
        spread = width * np.sqrt(inside / ratio)
        given = ndtr((reach - np.abs(m)) / spread) - ndtr((-reach - np.abs(m)) / spread)
        variance += block.weight @ (np.diff(below, axis=1) * given)
    return Dense(of_mean, mean), Dense(of_variance, variance)


def finer(knots: Floats, fine: int, end: float) -> Floats:
    """Knots with others between them, and beyond them up to the ends of the region, ever farther apart."""
    away = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 600)])
    beyond = [knots[0] + (end - knots[0]) * away, knots[-1] + (1.0 - knots[-1]) * away]
    between = np.interp(np.arange((len(knots) - 1) * fine + 1) / fine, np.arange(len(knots)), knots)
    return np.unique(np.concatenate([*beyond, between]))


def conjugate(loc: Floats, precision: Floats, concentration: Floats, scale: Floats) -> JointComponents:
    """Components of normal inverse gamma distributions, equally likely."""
    return JointComponents(
        weight=np.full(len(loc), 1.0 / len(loc)),
        loc=loc,
        width=np.sqrt(scale / concentration / precision),
        degrees=2.0 * concentration,
        log_ratio=np.log(scale / concentration),
        log_width=1.0 / np.sqrt(concentration),
    )


@pytest.mark.parametrize("seed", range(40))
def test_one_component_has_the_marginals_of_dense_sums(seed: int) -> None:
    """From half a record to a million, well within the region and nearly all outside of it."""
    rng = np.random.default_rng(seed)
    n = 10.0 ** rng.uniform(-0.3, 6.0, 1)
    # Up to five standard deviations outside, at either end.
    variance = 10.0 ** rng.uniform(-4.0, 0.3, 1)
    edge = np.sqrt(np.maximum(1.0 - variance, 0.0))
    loc = (edge + rng.uniform(-8.0, 5.0, 1) * np.sqrt(variance / n)) * rng.choice([-1.0, 1.0])
    parts = conjugate(loc, n, 0.5 + n / 2.0, variance * (0.5 + n / 2.0))
    marginals = marginals_within(parts)
    if min(marginal.inside for marginal in marginals) < 1e-8:
        pytest.skip("next to nothing is left")
    for marginal, dense in zip(marginals, dense_sums(parts, marginals, 8), strict=True):
        dense.judge(marginal)


@pytest.mark.parametrize("seed", range(10))
def test_many_components_have_the_marginals_of_dense_sums(seed: int) -> None:
    """Of few records and of many, and in clusters; the control is that of twice the variance."""
    rng = np.random.default_rng(seed)
    size = 400
    n = 10.0 ** (rng.uniform(0.0, 4.0) + rng.uniform(0.0, 1.0, size))
    variance = 10.0 ** (rng.uniform(-3.0, -0.5) + 0.4 * rng.standard_normal(size))
    loc = rng.uniform(-1.0, 1.0) + rng.uniform(0.01, 0.5) * rng.standard_normal(size)
    loc[: size // 2] += rng.uniform(-0.5, 0.5)
    parts = conjugate(loc, n, 0.5 + n / 2.0, variance * (0.5 + n / 2.0))
    marginals = marginals_within(parts)
    for marginal, dense in zip(marginals, dense_sums(parts, marginals, 4), strict=True):
        dense.judge(marginal)
        assert marginal.error < 0.01


@pytest.mark.parametrize(("epsilon", "records", "is_cut"), [("1", 100, False), ("0.2", 40, True)])
def test_tails_without_moments_cut_off_nothing_where_they_are_next_to_impossible(
    epsilon: str, records: int, *, is_cut: bool
) -> None:
    """With no records the variance has no second moment, and within bounds each number has all of them."""
    rng = np.random.default_rng(records)
    importlib.import_module(MOMENT_NODES.module)
    plan = statistic_plan({"family": "normal", "lower": "-3", "upper": "5"}, epsilon=epsilon, public_n=False)
    z = np.clip(0.5 + 0.05 * rng.standard_normal((MOMENT_NODES.fewest, records)), 0.0, 1.0)
    sums = np.stack([((1 - z) ** 2).sum(axis=1), (2 * z * (1 - z)).sum(axis=1), (z**2).sum(axis=1)], axis=1)
    values = np.rint(sums * int(plan.partition_total or 1)).astype(np.int64)
    values += discrete_laplace(plan.scale, values.shape, rng)
    prior = "NormalInverseGamma(1, 0.1, 1.5, 0.2)"
    posterior = posterior_of(noisy_statistic(plan, values), prior=prior, clipping="ignored")
    restricted = posterior.distribution
    assert isinstance(restricted, WithinLimits)
    assert np.mean(restricted.cut) == is_cut
    plain = restricted.plain
    assert np.all(np.isinf(plain.sd("variance")))
    # Beside the lattice within the region, of fine boxes.
    fine = dataclasses.replace(plain.posterior, share=SHARE / 30.0)  # type: ignore[attr-defined]
    by_boxes = fine.take(np.arange(4)).joint_components()
    for cell, (of_mean, of_variance) in enumerate(map(marginals_within, by_boxes)):
        mean, variance = restricted.mean("mean")[cell], restricted.mean("variance")[cell]
        assert mean == pytest.approx(1.0 + 4.0 * of_mean.mean, abs=0.04 * of_mean.sd)
        assert variance == pytest.approx(16.0 * of_variance.mean, abs=0.64 * of_variance.sd)
        if not is_cut:
            assert restricted.sd("mean")[cell] == pytest.approx(4.0 * of_mean.sd, rel=0.01)
            assert restricted.sd("variance")[cell] == pytest.approx(16.0 * of_variance.sd, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "records"), [("0.05", 6), ("0.3", 90), ("2", 2), ("0.02", 2000)])
def test_noisy_cells_have_the_marginals_of_dense_sums_over_their_nodes(epsilon: str, records: int) -> None:
    """And none of their numbers is of draws, but for draws themselves."""
    rng = np.random.default_rng(records)
    plan = statistic_plan({"family": "normal", "lower": "-3", "upper": "5"}, epsilon=epsilon, public_n=False)
    z = np.clip(0.7 + 0.3 * rng.standard_normal(records), 0.0, 1.0)
    sums = np.array([((1 - z) ** 2).sum(), (2 * z * (1 - z)).sum(), (z**2).sum()])
    values = np.rint(sums * int(plan.partition_total or 1)).astype(np.int64)
    values += discrete_laplace(plan.scale, (3,), rng)
    posterior = posterior_of(noisy_statistic(plan, values[None]), clipping="ignored")
    restricted = posterior.distribution
    assert isinstance(restricted, WithinLimits)
    assert isinstance(restricted.inner, TabulatedJointly)
    assert not restricted.is_from_draws
    (parts,) = restricted.plain.joint_components(1.0, 4.0)  # type: ignore[attr-defined]
    marginals = marginals_within(parts)
    likely = parts.take(parts.weight > 1e-9)
    for marginal, dense in zip(marginals, dense_sums(likely, marginals, 1), strict=True):
        dense.judge(marginal)
    assert restricted.mean("mean") == pytest.approx(1.0 + 4.0 * marginals[0].mean)
    assert restricted.sd("variance") == pytest.approx(16.0 * marginals[1].sd)
    # Joint draws are of the same law: four standard errors, and what boxes are off by.
    drawn = restricted.sample(4000, rng)
    for name in restricted.parameters:
        away = drawn[name].mean() - restricted.mean(name)[0]
        assert abs(away) < (4.9 / np.sqrt(4000) + 0.03) * restricted.sd(name)[0]
    assert np.all(drawn["variance"] <= (drawn["mean"] + 3.0) * (5.0 - drawn["mean"]) + 1e-9)
