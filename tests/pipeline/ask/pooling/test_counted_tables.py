"""Pooled count tables against enumeration of every latent table of every release."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.pool import pooled
from suffice.pipeline.math.engines.combined import FEWEST_EFFECTIVE
from suffice.pipeline.math.priors.record_count import Uniform
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


FALSE_ALARM = 1e-8
"""Of a normal mean; that of weighted draws has the error of as many draws as are effective, an estimate."""
FAR = float(stats.norm.isf(FALSE_ALARM / 2))
TWO = ["x", "z"]
NAIVE_BAYES = {"family": "naive_bayes", "outcome": {"class": TWO}, "features": {"feature": TWO}}
CHAIN = {"family": "markov_chain", "categories": TWO, "order": "when", "transitions": "3"}
CONTINGENCY = {"family": "contingency", "columns": {"class": TWO, "feature": TWO}}
MOST = 9
TABLES = np.array([c for c in itertools.product(range(MOST + 1), repeat=4) if sum(c) <= MOST], float)
ROWS: list[tuple[list[int], str]] = [([5, 1, 2, 4], "2"), ([3, 2, -1, 3], "1")]


def released(entry: dict[str, Any]) -> list[NoisyStatistic]:
    return [
        noisy_statistic(statistic_plan(entry, epsilon=epsilon, public_n=False), np.array([row]))
        for row, epsilon in ROWS
    ]


def log_dirichlet(counts: Floats) -> Floats:
    """Log of Z of a Dirichlet(1) updated by these counts."""
    value: Floats = gammaln(1 + counts).sum(axis=-1) - gammaln((1 + counts).sum(axis=-1))
    return value


def enumerated(entry: dict[str, Any], parts: list[NoisyStatistic]) -> tuple[Floats, Floats]:
    """Means and standard deviations of every probability, in the order of the posterior's entries."""
    family = entry["family"]
    shared, log_weight = np.zeros((1, 4)), np.zeros(1)
    for part in parts:
        noise = np.abs(part.values[0].astype(float) - TABLES).sum(axis=1) / part.plan.scale
        log_weights = gammaln(TABLES.sum(axis=1) + 1) - gammaln(TABLES + 1).sum(axis=1) - noise
        if family == "markov_chain":
            # How often each state is left is every data set's own: Dirichlet(1), integrated out.
            log_weights = log_weights + log_dirichlet(TABLES.reshape(-1, 2, 2).sum(axis=2))
        shared = (shared[:, None] + TABLES).reshape(-1, 4)
        log_weight = (log_weight[:, None] + log_weights).ravel()
        shared, position = np.unique(shared, axis=0, return_inverse=True)
        top = log_weight.max()
        log_weight = np.log(np.bincount(position.ravel(), np.exp(log_weight - top))) + top
    table = shared.reshape(-1, 2, 2)
    if family == "contingency":
        blocks = [shared]
    else:
        blocks = [table[:, 0], table[:, 1]]
        if family == "naive_bayes":
            blocks.insert(0, table.sum(axis=2))
    log_weight = log_weight + sum(log_dirichlet(block) for block in blocks)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    means, squares = [], []
    for block in blocks:
        alpha = 1 + block
        whole = alpha.sum(axis=1, keepdims=True)
        means.append(weight @ (alpha / whole))
        squares.append(weight @ (alpha * (alpha + 1) / (whole * (whole + 1))))
    mean, square = np.concatenate(means), np.concatenate(squares)
    return mean, np.sqrt(square - mean**2)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [NAIVE_BAYES, CHAIN, CONTINGENCY], ids=lambda entry: entry["family"])
def test_pooled_tables_equal_enumeration(entry: dict[str, Any]) -> None:
    parts = released(entry)
    rng = np.random.default_rng(7)
    posterior = pooled(parts, prior=None, n_prior=Uniform(0, MOST), rng=rng)
    mean, sd = enumerated(entry, parts)
    effective = posterior.diagnostics["fewest_effective_draws"]
    assert posterior.diagnostics["sampler"] == "importance"
    assert effective >= FEWEST_EFFECTIVE
    reach = FAR / np.sqrt(effective)
    assert np.all(np.abs(posterior.mean("probability")[0] - mean) < reach * sd)
    assert posterior.sd("probability")[0] == pytest.approx(sd, rel=2 * reach)
    draws = posterior.sample(4000, rng)["probability"][:, 0]
    assert np.all(np.abs(draws.mean(axis=0) - mean) < (reach + FAR / np.sqrt(4000)) * sd)
    # Not what either says alone, and so not what a product without its prior counted once would be.
    alone, _ = enumerated(entry, parts[:1])
    assert np.any(np.abs(mean - alone) > reach * sd)


@pytest.mark.slow
def test_how_often_states_are_left_is_every_data_sets_own() -> None:
    """Over 64 equal cells, whose draws are independent: shared, it would move a mean by 0.028 deviations."""
    cells = 64
    parts = [part.take(np.zeros(cells, dtype=np.int64)) for part in released(CHAIN)]
    posterior = pooled(parts, prior=None, n_prior=Uniform(0, MOST), rng=np.random.default_rng(7))
    mean, sd = enumerated(CHAIN, parts)
    reach = FAR / np.sqrt(cells * posterior.diagnostics["fewest_effective_draws"])
    assert reach < 0.014
    assert np.all(np.abs(posterior.mean("probability").mean(axis=0) - mean) < reach * sd)


@pytest.mark.slow
def test_tables_that_contradict_each_other_are_refused() -> None:
    parts = [
        noisy_statistic(statistic_plan(NAIVE_BAYES, epsilon="1", public_n=False), np.array([row]))
        for row in ([9000, 5, 5, 9000], [5, 9000, 9000, 5])
    ]
    with pytest.raises(UsageError, match="barely fit"):
        pooled(parts, prior=None, n_prior=None, rng=np.random.default_rng(7))
