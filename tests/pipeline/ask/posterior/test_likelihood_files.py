"""Likelihoods that are taken away: Parquet, xarray and JAX say what ``log_prob`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.counts_likelihood import CountsLikelihood
from suffice.pipeline.ask.posterior.likelihood import AnyLikelihood, likelihood_of
from suffice.pipeline.ask.posterior.moments_likelihood import MomentsLikelihood
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.typing import Floats

ENTRIES: dict[str, tuple[dict[str, Any], list[list[float]]]] = {
    "categorical": ({"categories": ["a", "b", "c"]}, [[20, 40, 3], [-2, 25, 70]]),
    "normal": ({"lower": "-1", "upper": "1"}, [[300.0, 450.0, 200.0], [11.0, 16.0, 2.0]]),
    "bernoulli": ({}, [[20, 40], [25, 35]]),
}
AT: dict[str, tuple[Floats, ...]] = {
    "categorical": (np.array([[0.3, 0.6, 0.1], [0.01, 0.3, 0.69], [0.0, 0.4, 0.6]]),),
    "normal": (np.array([-0.2, 0.1, 0.6]), np.array([0.3, 0.5, 0.9])),
    "bernoulli": (np.array([0.1, 0.6]),),
}


def asked(family: str) -> AnyLikelihood:
    plan = statistic_plan({"family": family, **ENTRIES[family][0]}, epsilon="1", public_n=False)
    unit = 4 * 4**16 if family == "normal" else 1
    rows = [[round(number * unit) for number in row] for row in ENTRIES[family][1]]
    statistic = noisy_statistic(plan, np.array(rows, dtype=object), groups={"origin": ["EWR", "JFK"]})
    return likelihood_of(statistic, None, lambda posterior: posterior, uuid4().hex)


@pytest.mark.parametrize("family", ENTRIES)
def test_parquet_and_back(family: str, tmp_path: Path) -> None:
    likelihood: Any = asked(family)
    path = tmp_path / "likelihood.parquet"
    likelihood.to_parquet(path)
    for source in (path, path.read_bytes()):
        read: Any = suffice.read_likelihood(source)
        # Arrays lie otherwise in memory, and sums are rounded otherwise.
        np.testing.assert_allclose(read.log_prob(*AT[family]), likelihood.log_prob(*AT[family]), rtol=1e-12)
        if family != "bernoulli":
            for ours, theirs in zip(
                read.log_prob_and_error(*AT[family]), likelihood.log_prob_and_error(*AT[family]), strict=True
            ):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)
        assert (read.groups, read.n_prior, read.error_text) == (
            likelihood.groups,
            likelihood.n_prior,
            likelihood.error_text,
        )
    with pytest.raises(UsageError, match="already"):
        likelihood.to_parquet(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    other, several = tmp_path / "other.parquet", tmp_path / "several.parquet"
    pq.write_table(pa.table({"cell": [0]}), other)
    likelihood: Any = asked("categorical")
    likelihood.to_parquet(several)
    for source in (other, b"no table", tmp_path / "missing.parquet"):
        with pytest.raises(UsageError, match="no likelihood"):
            suffice.read_likelihood(source)
    with pytest.raises(UsageError, match="read_likelihood"):
        suffice.LikelihoodTables.read_parquet(several)
    table = pq.read_table(several)
    pq.write_table(
        table.replace_schema_metadata(
            {**table.schema.metadata, b"suffice.likelihood": b'{"format_version": 2}'}
        ),
        other,
    )
    with pytest.raises(UsageError, match="format 2"):
        suffice.read_likelihood(other)


def test_xarray_has_what_sums_are_made_of() -> None:
    pytest.importorskip("xarray")
    counts, moments = asked("categorical"), asked("normal")
    assert isinstance(counts, CountsLikelihood)
    assert isinstance(moments, MomentsLikelihood)
    of_counts = counts.to_xarray()
    assert of_counts["entries"].to_numpy().tolist() == ["a", "b", "c"]
    assert of_counts["group_origin"].to_numpy().tolist() == ["EWR", "JFK"]
    # log A of the first cell's second number is read off at a place.
    row = int(of_counts["row"][0, 1])
    mine = of_counts["count"].to_numpy() == row
    places, powers = (of_counts[name].to_numpy()[mine] for name in ("place", "powers"))
    middle = len(places) // 2
    exact = counts.counts.tables(np.array([row]), np.array([places[middle]]))
    np.testing.assert_allclose(powers[middle, 0], exact[0], atol=1e-9)
    of_moments = moments.to_xarray()
    first = (of_moments["cell"] == 0) & (of_moments["is_fine"] == 1)
    weights = sum(float(each.weight.sum()) for each in moments.fine[0].slices)
    np.testing.assert_allclose(float(of_moments["weight"][first.to_numpy()].sum()), weights)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["categorical", pytest.param("normal", marks=pytest.mark.audit)])
def test_jax_says_the_same_and_has_gradients(family: str) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("numpyro").enable_x64()
    likelihood: Any = asked(family)
    first, *rest = AT[family]
    way = np.array([[0.1, -0.05, -0.05]]) if family == "categorical" else 1.0
    # Along a line inside, beside differences.
    start = first[:2] if family == "categorical" else first

    def along(step: Any) -> Any:
        value = likelihood.log_prob_jax(start + step * way, *rest)
        return value.sum(), value

    (_, got), slope = jax.jit(jax.value_and_grad(along, has_aux=True))(0.0)
    np.testing.assert_allclose(np.asarray(got), likelihood.log_prob(start, *rest), rtol=1e-7, atol=1e-7)
    above, below = (likelihood.log_prob(start + step * way, *rest).sum() for step in (1e-5, -1e-5))
    np.testing.assert_allclose(float(slope), (above - below) / 2e-5, rtol=1e-4, atol=1e-4)
    with pytest.raises(UsageError, match="shape"):
        likelihood.log_prob_jax(*(np.ones((3, 2)) for _ in AT[family]))
