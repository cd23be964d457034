"""Posteriors in blocks of cells: the same numbers as in one go, and progress after each block."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.ask.posterior import choice_of_engine
from suffice.pipeline.ask.posterior.choice_of_engine import block_cells, posterior_of
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions import many_cells
from suffice.pipeline.math.distributions.composite import CellBlocks
from support.generative_models import generative_model_for
from support.noisy import statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

CELLS = 7


def released(family: str, cells: int = CELLS) -> NoisyStatistic:
    """Cells of data that the family's own model draws, with noise."""
    rng = np.random.default_rng(5)
    model = generative_model_for(family, n=60, epsilon="1")
    sums = model.sums(model.truth(cells, rng), np.full(cells, 60), rng).clipped
    return model.noisy(sums, rng.integers(-3, 4, (cells, len(model.plan.components))))


def worked_out_in(
    size: int, patch: pytest.MonkeyPatch, statistic: NoisyStatistic, method: str
) -> tuple[Posterior, list[tuple[int, int]]]:
    """Return the posterior in blocks of this size, and what its progress was."""
    seen: list[tuple[int, int]] = []
    patch.setattr(choice_of_engine, "BLOCK_CELLS", size)
    is_modelled = FAMILIES[statistic.plan.family].clipped_record is not None  # of a normal it is slow
    clipping = "modelled" if is_modelled else "ignored"
    posterior = posterior_of(
        statistic,
        method=method,
        clipping="by-evidence" if method == "plug-in" else clipping,
        progress=lambda done, total: seen.append((done, total)),
    )
    return posterior, seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "method"),
    [
        ("bernoulli", "noise-aware"),
        ("poisson", "noise-aware"),
        ("exponential", "noise-aware"),
        ("normal", "noise-aware"),
        ("categorical", "noise-aware"),
        ("contingency", "plug-in"),
    ],
)
def test_blocks_of_cells_change_no_number(family: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statistic = released(family)
    whole, in_single_cells = worked_out_in(CELLS, monkeypatch, statistic, method)
    parts, several = worked_out_in(3, monkeypatch, statistic, method)
    assert not isinstance(whole.distribution, CellBlocks)
    assert isinstance(parts.distribution, CellBlocks)
    assert [len(block.mean(parts.parameters[0])) for block in parts.distribution.blocks] == [3, 2, 2]
    assert (in_single_cells, several) == ([(7, 7)], [(3, 7), (5, 7), (7, 7)])
    assert (parts.groups, parts.n_groups, parts.parameters) == (whole.groups, CELLS, whole.parameters)
    assert parts.observed[0].values.tolist() == whole.observed[0].values.tolist()
    for parameter in whole.parameters:
        np.testing.assert_allclose(parts.mean(parameter), whole.mean(parameter), rtol=1e-9)
        np.testing.assert_allclose(parts.sd(parameter), whole.sd(parameter), rtol=1e-9)
        if family in {"bernoulli", "poisson", "exponential", "normal"}:  # the others' rest on draws
            interval = whole.credible_interval(parameter)
            # How near a quantile is searched for may depend on the cells beside: to some 1e-7.
            np.testing.assert_allclose(parts.credible_interval(parameter), interval, rtol=1e-6)
        drawn = parts.sample(50, 1)[parameter]
        assert drawn.shape == whole.sample(50, 1)[parameter].shape
        first = parts.distribution.blocks[0].sample(50, np.random.default_rng(1))[parameter]
        np.testing.assert_array_equal(drawn[:, :3], first)
    if method == "noise-aware":
        np.testing.assert_allclose(parts.log_evidence, whole.log_evidence, rtol=1e-9)


def test_a_summary_tells_its_progress_and_is_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    statistic = released("poisson")
    parts, _ = worked_out_in(3, monkeypatch, statistic, "noise-aware")
    seen: list[tuple[int, int]] = []
    rows = summarise(parts, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 7), (5, 7), (7, 7)]
    whole, _ = worked_out_in(CELLS, monkeypatch, statistic, "noise-aware")
    for row, other in zip(rows, summarise(whole), strict=True):
        assert (row.pop("parameter"), other.pop("parameter")) == ("rate", "rate")
        assert row == pytest.approx(other, rel=1e-9)
    assert parts.conflict.tails.tolist() == whole.conflict.tails.tolist()
    above = parts.probability("rate", above=0.5, draws=4000, rng=3)
    np.testing.assert_allclose(above, whole.probability("rate", above=0.5, draws=4000, rng=4), atol=0.08)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "prior"),
    [
        ("bernoulli", None),
        ("poisson", None),
        ("poisson", "Gamma(2, 1)"),
        ("exponential", None),
        ("categorical", None),
    ],
)
@pytest.mark.parametrize("interval", ["central", "highest-density"])
def test_blocks_side_by_side_change_no_digit_and_no_draw(
    family: str, prior: str | None, interval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By compiled loops, on one processor, on two of which one has a block more, and on three."""
    for loops in (many_cells.PAIRS, many_cells.BLOCKS, many_cells.SPREAD):
        importlib.import_module(loops.module)
    monkeypatch.setattr(choice_of_engine, "BLOCK_CELLS", 60)
    statistic = released(family, cells=170)

    def summed_up(number: int) -> tuple[object, object, object, object]:
        monkeypatch.setattr(many_cells, "processors", lambda: number)
        seen: list[tuple[int, int]] = []
        rng = np.random.default_rng(1)
        posterior = posterior_of(
            statistic,
            prior=prior,
            clipping="ignored",
            progress=lambda done, total: seen.append((done, total)),
        )
        rows = summarise(posterior, draws=500, rng=rng, interval=interval)
        return rows, posterior.log_evidence.tolist(), rng.random(), seen

    alone = summed_up(1)
    assert alone[3] == [(57, 170), (114, 170), (170, 170)]
    assert summed_up(2) == alone
    assert summed_up(3) == alone


def test_an_interrupt_ends_a_posterior_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_of_engine, "BLOCK_CELLS", 3)
    seen: list[int] = []

    def interrupt(done: int, _total: int) -> None:
        seen.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        posterior_of(released("bernoulli"), progress=interrupt)
    assert seen == [3]


def test_blocks_are_smaller_where_cells_have_chains_or_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert block_cells(_plan("poisson")) == choice_of_engine.BLOCK_CELLS
    assert block_cells(_plan("linear_regression")) == choice_of_engine.MCMC_CELLS
    monkeypatch.setattr(choice_of_engine, "BLOCK_ENTRIES", 6)
    plan = _plan("categorical")
    (categories,) = FAMILIES["categorical"].labels(plan.parameters).values()
    assert block_cells(plan) == 6 // len(categories) > 0


def _plan(family: str) -> StatisticPlan:
    entry = {"family": family, **FAMILIES[family].generative_case.entry}
    return statistic_plan(entry, epsilon="1", public_n=False)


def test_diagnostics_are_the_worst_of_all_blocks() -> None:
    class Sampled:
        parameters = ("mean",)

        def __init__(self, r_hat: float, effective: int) -> None:
            self.diagnostics = {
                "sampler": "MCMC",
                "largest_r_hat": r_hat,
                "fewest_effective_draws": effective,
            }

    blocks = CellBlocks(blocks=(Sampled(1.01, 900), Sampled(1.2, 1500)))  # type: ignore[arg-type]
    assert blocks.diagnostics == {"sampler": "MCMC", "largest_r_hat": 1.2, "fewest_effective_draws": 900}
