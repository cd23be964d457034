"""Tables that are taken away: JAX, padded arrays and Parquet say what ``log_prob`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.likelihood import Likelihood, likelihood_of
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES: dict[str, tuple[dict[str, Any], list[float]]] = {
    "bernoulli": ({}, [0.0, 1e-9, 0.02, 0.3, 0.97, 1.0, 1.5, -0.1]),
    "exponential": ({"upper": "8"}, [1e-6, 0.3, 2.0, 1e5, -1.0]),
    "normal_known_variance": ({"variance": "4", "lower": "-2", "upper": "10"}, [-1e3, -1.0, 4.0, 60.0]),
}


def asked(family: str) -> Likelihood:
    plan = statistic_plan({"family": family, **ENTRIES[family][0]}, epsilon="0.8", public_n=False)
    reach = 1 if family == "bernoulli" else plan.partition_total or round(plan.l1_sensitivity)
    rows = [[round(share * reach) for share in row] for row in ([20, 40], [25, 35])]
    statistic = noisy_statistic(plan, np.array(rows, dtype=object), groups={"origin": ["EWR", "JFK"]})
    likelihood = likelihood_of(statistic, None, lambda posterior: posterior, uuid4().hex)
    assert isinstance(likelihood, Likelihood)
    return likelihood


@pytest.mark.slow
@pytest.mark.parametrize("family", ENTRIES)
def test_jax_says_the_same_and_has_gradients(family: str) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("numpyro").enable_x64()
    likelihood, theta = asked(family), np.array(ENTRIES[family][1])
    exact = likelihood.log_prob(theta)
    got = np.asarray(jax.jit(likelihood.log_prob_jax)(theta))
    np.testing.assert_allclose(got, exact, rtol=1e-9, atol=1e-9)
    # One parameter a cell, and its gradient beside differences.
    inner = np.array([0.31, 0.62]) if family == "bernoulli" else np.array([1.1, 2.3])
    slope = np.asarray(jax.grad(lambda value: likelihood.log_prob_jax(value[:, None]).sum())(inner))
    step = 1e-5
    above, below = (likelihood.log_prob((inner + way)[:, None])[:, 0] for way in (step, -step))
    np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-5, atol=1e-5)
    with pytest.raises(UsageError, match="shape"):
        likelihood.log_prob_jax(np.ones((3, 2)))
    assert np.all(np.isfinite(np.asarray(jax.grad(lambda p: likelihood.log_prob_jax(p).sum())(inner[:1]))))


@pytest.mark.parametrize("family", ENTRIES)
def test_parquet_and_back(family: str, tmp_path: Path) -> None:
    likelihood, theta = asked(family), np.array(ENTRIES[family][1])
    path = tmp_path / "likelihood.parquet"
    likelihood.to_parquet(path)
    read = suffice.LikelihoodTables.read_parquet(path)
    np.testing.assert_array_equal(read.log_prob(theta), likelihood.log_prob(theta))
    np.testing.assert_array_equal(read.error, likelihood.error)
    assert (read.groups, read.n_prior, read.line) == (
        likelihood.groups,
        likelihood.n_prior,
        likelihood.line,
    )
    with pytest.raises(UsageError, match="already"):
        likelihood.to_parquet(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    other, text = tmp_path / "other.parquet", tmp_path / "text.parquet"
    pq.write_table(pa.table({"cell": [0]}), other)
    text.write_text("no table", encoding="utf-8")
    for path in (other, text, tmp_path / "missing.parquet"):
        with pytest.raises(UsageError, match="no likelihood"):
            suffice.LikelihoodTables.read_parquet(path)


def test_padded_arrays_have_every_panel() -> None:
    likelihood = asked("bernoulli")
    arrays, table = likelihood.to_arrays(), likelihood.tables.table
    held = np.isfinite(arrays["left"])
    np.testing.assert_array_equal(held.sum(axis=1), np.diff(table.start))
    np.testing.assert_array_equal(arrays["powers"][held], table.powers)
