"""Pooled Bayesian networks taken together by MCMC, against enumeration of all data of every release."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from suffice.pipeline.counts.network.posterior import NoisyTables
from suffice.pipeline.inference import noise_aware_posterior
from suffice.pipeline.n_prior import NPrior, Uniform
from suffice.pipeline.pooling.networks import pooled_network_law
from suffice.pipeline.pooling.releases import pooled
from suffice.pipeline.structure import CountTable, Variable
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.pooling.tables import PooledTablesLaw
    from suffice.pipeline.release import NoisyStatistic

    Floats: TypeAlias = NDArray[np.float64]

FALSE_ALARM = 1e-8
REPEATS = 30
BINARY = {name: Variable(name=name, categories=("x", "z")) for name in "abc"}
CHAIN = tuple(
    CountTable(name=names[-1], variables=tuple(BINARY[name] for name in names)) for names in ("a", "ab", "bc")
)
PRIORS = [np.array([[2.0, 0.5]]), np.array([[1.0, 0.5], [2.0, 1.0]]), np.array([[1.0, 1.0], [0.5, 2.0]])]
RELEASES: list[tuple[list[list[int]], float, NPrior]] = [
    ([[1, 3], [2, -1, 1, 2], [3, 0, 1, 1]], 1.1, Uniform(0, 4)),
    ([[4, 0], [0, 3, 1, -2], [-1, 2, 4, 0]], 0.6, Uniform(0, 3)),
]


def law(noise: float = 1.0, releases: Any = RELEASES) -> PooledTablesLaw:
    """One cell, many times over, with so many times its noise believed."""
    data_sets = []
    for tables, scale, n_prior in releases:
        counts = [
            np.tile(np.array(numbers, float).reshape(table.shape), (REPEATS, *[1] * len(table.shape)))
            for numbers, table in zip(tables, CHAIN, strict=True)
        ]
        data_sets.append(NoisyTables(looks=((counts, noise * scale),), n_prior=n_prior))
    return pooled_network_law(CHAIN, data_sets, PRIORS)


def latent(tables: list[list[int]], scale: float, n_prior: NPrior) -> tuple[Floats, Floats]:
    """All that a release's tables may be, one after the other, and the logs of their weights."""
    rows = list(itertools.product((0, 1), repeat=3))
    found: dict[tuple[int, ...], float] = {}
    noisy = np.concatenate([np.array(numbers) for numbers in tables])
    for n in range(n_prior.support[0], n_prior.support[1] + 1):
        for bars in itertools.combinations(range(n + len(rows) - 1), len(rows) - 1):
            full = np.diff((-1, *bars, n + len(rows) - 1)) - 1
            a, b, c = np.repeat(np.array(rows), full, axis=0).T
            counts = np.concatenate(
                [np.bincount(each, minlength=size) for each, size in ((a, 2), (2 * a + b, 4), (2 * b + c, 4))]
            )
            log = float(gammaln(n + 1) - gammaln(full + 1).sum()) - float(abs(noisy - counts).sum()) / scale
            key = tuple(counts.tolist())
            found[key] = float(np.logaddexp(found.get(key, -math.inf), log))
    return np.array(list(found), dtype=float), np.array(list(found.values()))


def enumerated() -> Floats:
    """Means and mean squares of all probabilities."""
    (one, log_one), (other, log_other) = (latent(*release) for release in RELEASES)
    total = (one[:, None] + other).reshape(-1, one.shape[1])
    log = (log_one[:, None] + log_other).ravel()
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


def moments(found: PooledTablesLaw) -> Floats:
    mean, sd = found.mean("probability"), found.sd("probability")
    return np.concatenate([mean, sd**2 + mean**2], axis=1)


def test_scratch() -> None:
    import time
    t=time.process_time()
    expected = enumerated()
    print("enum", time.process_time()-t)
    for noise in (1.0, 0.5):
        t=time.process_time()
        l = law(noise)
        print(l.diagnostics, time.process_time()-t)
        m = moments(l)
        error = m.std(axis=0, ddof=1) / math.sqrt(REPEATS)
        print(noise, np.round((m.mean(axis=0)-expected)/error,1), error.max())
    t=time.process_time()
    m2 = moments(law(1.0, RELEASES[::-1]))
    m = moments(law(1.0))
    print(np.round((m.mean(axis=0)-m2.mean(axis=0))/np.sqrt((m.var(axis=0)+m2.var(axis=0))/REPEATS),1))
