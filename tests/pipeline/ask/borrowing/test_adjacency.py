"""Neighbours as they are asked for: what is read, what is refused, what is said, and a map's worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.adjacency import MapPosterior
from suffice.pipeline.ask.borrowing.neighbours import Neighbours
from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

SIDE = 7
N = SIDE**2
ROW, COLUMN = np.divmod(np.arange(N), SIDE)
PAIRS = [(cell, cell + 1) for cell in range(N) if COLUMN[cell] < SIDE - 1]
PAIRS += [(cell, cell + SIDE) for cell in range(N - SIDE)]


def released(logit: Any, size: Any, groups: dict[str, Any], seed: int = 1) -> NoisyStatistic:
    rng = np.random.default_rng(seed)
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="1", public_n=False)
    true = rng.binomial(size, 1.0 / (1.0 + np.exp(-np.asarray(logit))))
    counts = np.stack([size - true, true], axis=1)
    return noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng), groups=groups)


def asked(statistic: NoisyStatistic, adjacency: Any, **further: Any) -> MapPosterior:
    pooling = Pooling(adjacency=adjacency, **further)
    answer = pooled_posterior(statistic, PosteriorTerms(), pooling, lambda: posterior_of(statistic))
    assert isinstance(answer, MapPosterior)
    return answer


LINKED = [pair for pair in PAIRS if N - 1 not in pair]
SMOOTH = -2.0 + 1.0 * np.sin(ROW / 2.5) + 0.8 * np.cos(COLUMN / 2.0)
CELLS = {"county": [*range(N)]}


@pytest.fixture(scope="module")
def answer() -> MapPosterior:
    logit = SMOOTH.copy()
    logit[24] = 3.0
    return asked(released(logit, np.full(N, 60), CELLS), LINKED)


@pytest.mark.slow
def test_an_answer_says_what_borrowed_from_what_and_its_error(answer: MapPosterior) -> None:
    said = str(answer)
    assert f"{N} cells pooled with their neighbours by county, {len(LINKED)} pairs" in said
    assert "is the map's, slope on log(1 + size)" in said
    assert (
        "by expectation propagation with the exact likelihood of each cell: what others say is off by an "
        "estimated" in said
    )
    assert "it may be off by more, as long tails are not seen" in said
    assert "the field's share of the variance Uniform(0, 1)" in said
    (pool,) = answer.pools
    assert pool.of_map[0] > 0.6
    assert 0.0 < pool.error.typical < 0.1
    assert pool.settled


@pytest.mark.slow
def test_an_outlying_cell_stays_itself_and_is_listed(answer: MapPosterior) -> None:
    assert np.flatnonzero(answer.outside > 0.5).tolist() == [24]
    assert answer.mean()[24] == pytest.approx(1.0 / (1.0 + np.exp(-3.0)), abs=0.1)
    assert answer.own_share[24] > 0.9
    assert "the population does not fit 1 of 49 cells (24)" in answer.conflict.lines()[-1]


def test_neighbours_take_part_and_draws_go_together(answer: MapPosterior) -> None:
    truth = 1.0 / (1.0 + np.exp(-SMOOTH))
    others = np.arange(N) != 24
    together, alone = (each.mean() - truth for each in (answer, answer.alone))
    assert np.mean(together[others] ** 2) < 0.5 * np.mean(alone[others] ** 2)
    low, high = answer.interval(0.95)
    assert np.mean(((low <= truth) & (truth <= high))[others]) > 0.85
    drawn = answer.sample(4000, np.random.default_rng(1))["probability"]
    np.testing.assert_allclose(drawn.mean(axis=0), answer.mean(), atol=6.0 * np.max(answer.sd()) / 4000**0.5)
    np.testing.assert_allclose(drawn.std(axis=0), answer.sd(), rtol=0.12)
    correlation = np.asarray(np.corrcoef(drawn.T))
    near = np.mean([correlation[pair] for pair in LINKED])
    far = np.mean([correlation[cell, N - 1 - cell] for cell in range(SIDE)])
    assert near > far + 0.1


@pytest.mark.slow
def test_where_there_is_no_map_little_is_borrowed_from_neighbours() -> None:
    logit = np.random.default_rng(4).normal(-1.5, 0.8, N)
    answer = asked(released(logit, np.full(N, 200), CELLS), PAIRS)
    assert answer.pools[0].of_map[0] < 0.5


@pytest.mark.audit
def test_maps_share_hyperparameters_or_have_their_own_within_keys() -> None:
    n, pairs = 3 * SIDE, [pair for pair in PAIRS if max(pair) < 3 * SIDE]
    logit = np.concatenate([SMOOTH[:n], SMOOTH[:n] + 2.0])
    groups = {"year": [2001] * n + [2002] * n, "county": [*range(n), *range(n)]}
    statistic = released(logit, np.full(2 * n, 60), groups)
    # A table's first column bears the name.
    table = pa.table({"county": [a for a, _ in pairs], "next": [b for _, b in pairs]})
    shared = asked(statistic, table)
    assert shared.pools[0].n_maps == 2
    assert "on 2 maps of one spread" in str(shared)
    within = asked(statistic, table, population="logit-normal", within=("year",))
    assert [pool.keys for pool in within.pools] == [{"year": 2001}, {"year": 2002}]
    for each in (shared, within):
        assert np.mean(each.mean()[n:]) > np.mean(each.mean()[:n]) + 0.15


def test_files_tables_and_lists_are_read_alike(tmp_path: Path) -> None:
    statistic = released(SMOOTH, np.full(N, 60), {"county": [f"c{cell}" for cell in range(N)]})
    pairs = [(f"c{a}", f"c{b}") for a, b in PAIRS]
    lines = [f"{b},{a}" for a, b in [*pairs, pairs[0]]]
    (tmp_path / "next.csv").write_text("\n".join(["county,neighbour", *lines]))
    table = pa.table({"county": [a for a, _ in pairs], "neighbour": [b for _, b in pairs]})
    pq.write_table(table, tmp_path / "next.parquet")
    read = [
        Neighbours.of(statistic, each)
        for each in (pairs, tmp_path / "next.csv", str(tmp_path / "next.parquet"), table, table.to_pydict())
    ]
    assert all(each == read[0] for each in read)
    assert len(read[0].pairs) == len(PAIRS)


@pytest.mark.parametrize(
    ("adjacency", "further", "says"),
    [
        ([], {}, "has no pair"),
        ([(0, 999)], {}, "pair 1: 999 is no key of county"),
        ([(0, 1), (3, 3)], {}, "pair 2: 3 is its own neighbour"),
        ([(0, 1, 2)], {}, "a list has pairs of keys"),
        ({"state": [0], "next": [1]}, {}, "state is no group column of measured, which has county"),
        ({"county": [0], "next": [1], "length": [2.0]}, {}, "has 3 columns"),
        ("nowhere.csv", {}, "nowhere.csv cannot be read"),
        (7, {}, "is no table"),
        (PAIRS, {"population": "beta"}, "population beta has no neighbours: take contaminated, logit-normal"),
        (PAIRS, {"covariates": {"a": [1]}}, "covariates and adjacency do not go together"),
        (PAIRS, {"over": "county"}, "county is walked over, and has no neighbours"),
    ],
    ids=[
        "empty", "unknown key", "itself", "three", "other column", "weights", "no file", "a number", "beta",
        "covariates", "over",
    ],
)  # fmt: skip
def test_what_is_no_map_of_the_cells_is_refused(adjacency: Any, further: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        asked(released(SMOOTH, np.full(N, 60), CELLS), adjacency, **further)
