"""Worlds that are not the model: what records add, what the truth is, and what is called honest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.calibration.record_worlds import (
    CLIPPED,
    CORRELATED,
    WORLDS,
    populations,
    sums_of_each,
    worlds_of,
)
from suffice.pipeline.ask.calibration.simulation import (
    CANNOT_TELL,
    HONEST,
    NOT_HONEST,
    WorldCoverage,
    true_parameters,
    world_coverages,
    worlds_table,
)
from suffice.pipeline.ask.calibration.verdict import DRAWS, LEFT_OUT, Ranks, batch_of
from suffice.pipeline.ask.inference.posterior_terms import MODELLED, PLUG_IN
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.many_cells import CLIPPED_MOMENTS
from suffice.pipeline.terms.declaration.documents import document
from support.generative_models import generative_model_for


def test_clipped_normals_are_so_many_at_a_time_that_loops_pay_which_are_not_there_yet() -> None:
    model = replace(generative_model_for("normal", n=30), clipping=MODELLED)
    assert batch_of(model) * CLIPPED_MOMENTS.saves >= CLIPPED_MOMENTS.made_in


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_worlds_whose_truths_differ(family: str) -> None:
    model = generative_model_for(family, n=30, method=PLUG_IN)
    measure = model.family.measure(model.entry)
    worlds = worlds_of(measure, chosen=True)
    assert {world.name for world in worlds} <= set(WORLDS)
    for world in worlds:
        pools = populations(world, model.entry, measure, np.random.default_rng(0))
        sums = [sums_of_each(measure, pool) for pool in pools]
        assert all(each.shape == (20_000, measure.width) for each in sums)
        if not model.family.of_release:  # its truths are of the rows that there are
            truths = true_parameters(model, [each.mean(axis=0) for each in sums])
            assert np.isfinite(truths).all()
            assert len(np.unique(truths[:, 0])) == len(pools)


def test_the_truth_is_of_the_records_as_the_bounds_leave_them() -> None:
    """By NumPy's own mean and variance of clipped values, to the lattice's 2^-16."""
    model = generative_model_for("normal", n=30)
    measure = model.family.measure(model.entry)
    (world,) = worlds_of(measure, [CLIPPED])
    pools = populations(world, model.entry, measure, np.random.default_rng(0))
    truths = true_parameters(model, [sums_of_each(measure, pool).mean(axis=0) for pool in pools])
    bounded = [np.clip(np.asarray(pool), -6, 6) for pool in pools]
    assert min(np.mean(np.abs(np.asarray(pool)) > 6) for pool in pools) > 0.01
    np.testing.assert_allclose(truths, [[each.mean(), each.var()] for each in bounded], atol=1e-3)


def test_records_that_hang_together_make_intervals_too_narrow() -> None:
    """Five of a unit correlated .5 triple the variance: 95 % intervals hold 74 %.

    Of 400 the upper end of a simultaneous interval is above .93 with chance below 1e-10, and 87 % hold with
    2e-10.
    """
    model = generative_model_for("bernoulli", n=500, epsilon="5")
    (coverage,) = world_coverages(model, [CORRELATED], 400, np.random.default_rng())
    assert coverage.answer == NOT_HONEST
    assert coverage.ranks.coverage(0.95) < 0.87
    assert "too narrow" in worlds_table([coverage])
    assert document(coverage)["answer"] == NOT_HONEST


def test_wide_intervals_are_honest_and_few_tell_nothing() -> None:
    def covering(shares: dict[float, float], simulations: int) -> WorldCoverage:
        counts = np.zeros(DRAWS + 1, dtype=int)
        inside = 0
        for mass, out in LEFT_OUT.items():
            held = round(shares[mass] * simulations)
            counts[out] += held - inside
            inside = held
        counts[0] += simulations - inside
        ranks = Ranks(parameter="rate", category=None, counts=tuple(counts.tolist()))
        return WorldCoverage(world="w", says="", ranks=ranks, without_noise=ranks, level=0.01 / 3)

    nominal = {0.5: 0.5, 0.8: 0.8, 0.95: 0.95}
    assert covering(nominal, 5000).answer == HONEST
    assert covering({0.5: 0.7, 0.8: 0.95, 0.95: 0.999}, 5000).answer == HONEST
    assert covering(nominal, 50).answer == CANNOT_TELL
    assert covering({**nominal, 0.95: 0.9}, 5000).answer == NOT_HONEST


def test_worlds_that_do_not_exist_are_refused() -> None:
    measure = generative_model_for("bernoulli", n=30)
    of_codes = measure.family.measure(measure.entry)
    for wrong in (["magic"], ["rounded"], "skewed"):
        with pytest.raises(UsageError, match="skewed, correlated"):
            worlds_of(of_codes, wrong)
