"""Pooled Bayesian networks taken together by MCMC, against enumeration of all data of every release."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.pool import pooled
from suffice.pipeline.ask.pooling.roll_up import roll_up
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.engines.network import table_posterior as posterior
from suffice.pipeline.math.engines.network.decomposition import pooled_network_distribution
from suffice.pipeline.math.engines.network.table_posterior import NoisyTables
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.count_table import CountTable, Variable
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.composite import PiecewiseTables
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

    Tables: TypeAlias = tuple[list[list[int]], float, NPrior]

FALSE_ALARM = 1e-8
REPEATS = 16
BINARY = {name: Variable(name=name, categories=("x", "z")) for name in "abc"}
CHAIN = tuple(
    CountTable(name=names[-1], variables=tuple(BINARY[name] for name in names)) for names in ("a", "ab", "bc")
)
PRIORS = [np.array([[2.0, 0.5]]), np.array([[1.0, 0.5], [2.0, 1.0]]), np.array([[1.0, 1.0], [0.5, 2.0]])]
RELEASES: list[Tables] = [
    ([[1, 3], [2, -1, 1, 2], [3, 0, 1, 1]], 1.1, Uniform(0, 4)),
    ([[4, 0], [0, 3, 1, -2], [-1, 2, 4, 0]], 0.6, Uniform(0, 3)),
]


UNION = {"categories": ["x", "z"]}
NODES = {
    "a": UNION,
    "b": UNION,
    "c": {**UNION, "parents": ["a", "b"]},
    "d": {**UNION, "parents": ["c"]},
    "e": {**UNION, "parents": ["d"]},
}


@pytest.fixture(autouse=True)
def _short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here holds of short chains too; their errors are measured, not taken from them."""
    monkeypatch.setattr(posterior, "_ITERATIONS", 32)
    monkeypatch.setattr(posterior, "_ITERATIONS_OF_MANY", 64)
    monkeypatch.setattr(posterior, "DOUBLINGS", 0)
    monkeypatch.setattr(posterior, "_LEAST_THIN", 1)


def distribution(releases: list[Tables], noise: float = 1.0) -> PiecewiseTables:
    """One cell, many times over, with so many times its noise believed."""
    data_sets = []
    for tables, scale, n_prior in releases:
        counts = [
            np.tile(np.array(numbers, float).reshape(table.shape), (REPEATS, *[1] * len(table.shape)))
            for numbers, table in zip(tables, CHAIN, strict=True)
        ]
        totals = [NoisyTotals.of_counts([table], [noise * scale]) for table in counts[1:]]
        data_sets.append(NoisyTables.of(CHAIN, totals, n_prior))
    return pooled_network_distribution(CHAIN, data_sets, PRIORS)


def latent(tables: list[list[int]], scale: float, n_prior: NPrior) -> tuple[Floats, Floats]:
    """All that a release's tables may be, one after the other, and the logs of their weights."""
    rows = list(itertools.product((0, 1), repeat=3))
    log_weights: dict[tuple[int, ...], float] = {}
    noisy = np.concatenate([np.array(numbers) for numbers in tables])
    for n in range(n_prior.support[0], n_prior.support[1] + 1):
        for bars in itertools.combinations(range(n + len(rows) - 1), len(rows) - 1):
            full = np.diff((-1, *bars, n + len(rows) - 1)) - 1
            a, b, c = np.repeat(np.array(rows), full, axis=0).T
            counts = np.concatenate(
                [np.bincount(each, minlength=size) for each, size in ((a, 2), (2 * a + b, 4), (2 * b + c, 4))]
            )
            # The root's table is a margin, and is not released.
            away = float(abs(noisy - counts)[2:].sum()) / scale
            log = float(gammaln(n + 1) - gammaln(full + 1).sum()) - away
            key = tuple(counts.tolist())
            log_weights[key] = float(np.logaddexp(log_weights.get(key, -math.inf), log))
    return np.array(list(log_weights), dtype=float), np.array(list(log_weights.values()))


def enumerated(releases: list[Tables]) -> Floats:
    """Means and mean squares of all probabilities."""
    total, log = np.zeros((1, 10)), np.zeros(1)
    for release in releases:
        weights, log_own = latent(*release)
        total = (total[:, None] + weights).reshape(-1, weights.shape[1])
        log = (log[:, None] + log_own).ravel()
    first, second = [], []
    for counts, prior in zip(np.split(total, [2, 6], axis=1), PRIORS, strict=True):
        updated = prior + counts.reshape(-1, *prior.shape)
        whole = updated.sum(axis=2, keepdims=True)
        log = log + (gammaln(updated).sum(axis=2) - gammaln(whole[..., 0])).sum(axis=1)
        first.append((updated / whole).reshape(len(log), -1))
        second.append((updated / whole * (updated + 1) / (whole + 1)).reshape(len(log), -1))
    weight = np.exp(log - log.max())
    expected: Floats = weight @ np.concatenate(first + second, axis=1) / weight.sum()
    return expected


def distance(tables: PiecewiseTables, expected: Floats) -> float:
    """The largest t statistic of means and mean squares over the repeated cells."""
    mean, sd = tables.mean("probability"), tables.sd("probability")
    moments = np.concatenate([mean, sd**2 + mean**2], axis=1)
    error = moments.std(axis=0, ddof=1) / math.sqrt(REPEATS)
    return float(np.abs((moments.mean(axis=0) - expected) / error).max())


LIMIT = float(stats.t.isf(FALSE_ALARM / (2 * 20), REPEATS - 1))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("order", [1, pytest.param(-1, marks=pytest.mark.audit)])
def test_pooled_moments_equal_enumeration(order: int) -> None:
    """In either order of the releases, with a limit of 14 standard errors of sixteen cells."""
    assert distance(distribution(RELEASES[::order]), enumerated(RELEASES)) < LIMIT


@pytest.mark.slow
def test_half_of_the_noise_is_seen() -> None:
    """A control: measured over 200 cells, it is 127 standard errors of sixteen off, where the limit is 14.

    To hide it, sixteen cells would have to scatter eight times as much as they do: a chi squared of 15
    degrees of freedom above 900, with a chance far under 1e-6.
    """
    assert distance(distribution(RELEASES, 0.5), enumerated(RELEASES)) > LIMIT


@pytest.mark.slow
def test_a_release_that_says_nothing_changes_nothing() -> None:
    blank: Tables = ([[0, 0], [0] * 4, [0] * 4], 1e9, Uniform(0, 4))
    assert distance(distribution([RELEASES[0], blank]), enumerated(RELEASES[:1])) < LIMIT


def network(nodes: dict[str, Any], rows: list[list[int]], epsilon: str = "1") -> NoisyStatistic:
    plan = statistic_plan({"family": "bayesian_network", "nodes": nodes}, epsilon=epsilon, public_n=False)
    groups: dict[str, list[str | int]] = {"region": list(range(len(rows)))}
    return noisy_statistic(plan, np.array(rows), groups=groups)


@pytest.mark.slow
def test_a_roll_up_with_hardly_any_noise_is_the_update_with_the_sums() -> None:
    """Three regions of 300, 60 and 600 rows: the probabilities are those of all 960."""
    nodes = {"a": UNION, "b": {**UNION, "parents": ["a"]}, "c": {**UNION, "parents": ["b"]}}
    region = np.array([10, 20, 4, 6, 5, 15, 3, 6, 12, 9])
    rolled = roll_up(network(nodes, [(times * region[2:]).tolist() for times in (10, 2, 20)], "60"), "region")
    with pytest.raises(UsageError, match="not worked out"):
        rolled.posterior()
    rolled_up = rolled.posterior(assume="one parameter")
    counts = 32 * region.reshape(-1, 2)
    expected = ((1 + counts) / (2 + counts.sum(axis=1, keepdims=True))).ravel()
    sd = np.sqrt(expected * (1 - expected) / (3 + np.repeat(counts.sum(axis=1), 2)))
    assert rolled_up.mean("probability")[0] == pytest.approx(expected, abs=0.1 * float(sd.min()))
    assert rolled_up.sd("probability")[0] == pytest.approx(sd, rel=0.1)
    assert str(rolled_up.diagnostics["sampler"]).startswith("MCMC")
    assert "not_reconciled" not in rolled_up.diagnostics


@pytest.mark.slow
def test_what_is_not_taken_together_is_named_as_in_one_release() -> None:
    """The tables of d and e are drawn by chains; a, b and c one by one, by importance sampling."""
    rows = [[30, 20, 25, 25, 10, 5, 8, 7, 4, 6, 3, 7, 14, 11, 12, 13, 16, 10, 9, 15]]
    parts = [network(NODES, rows), network(NODES, rows, "2")]
    rng = np.random.default_rng(7)
    together = pooled(parts, prior=None, n_prior=Uniform(0, 200), rng=rng)
    alone = posterior_of(parts[1], n_prior=Uniform(0, 200))
    assert together.diagnostics["not_reconciled"] == alone.diagnostics["not_reconciled"] == "a, b, c"
    assert "MCMC" in together.diagnostics["sampler"]
    assert "importance" in together.diagnostics["sampler"]
    draws = together.sample(2000, rng)["probability"]
    assert draws.reshape(2000, -1, 2).sum(axis=2) == pytest.approx(1.0)
    assert together.sd("probability").mean() < 0.95 * alone.sd("probability").mean()
    unjoined = {name: NODES[name] for name in "abc"}
    parts = [network(unjoined, [rows[0][:12]]) for _ in range(2)]
    together = pooled(parts, prior=None, n_prior=Uniform(0, 200), rng=rng)
    assert together.diagnostics["sampler"] == "importance"
    assert together.diagnostics["not_reconciled"] == "a, b, c"
