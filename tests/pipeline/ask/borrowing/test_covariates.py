"""Covariates of pooled cells as they are asked for: what joins, what is refused, and whose units count."""

from __future__ import annotations

import builtins
import csv
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.ask.borrowing.covariates import Design, design_of
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior, pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.terms.declaration.domain_entries import parse_domain
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

N = 24
BERNOULLI: dict[str, Any] = {"family": "bernoulli", "column": "x"}
RNG = np.random.default_rng(6)
INCOME = RNG.normal(40_000.0, 9_000.0, N).round()
STATE = [("A", "B", "C")[each] for each in RNG.integers(0, 3, N)]
TRUTH = 1.0 / (1.0 + np.exp(1.0 - 0.6 * (INCOME - 40_000.0) / 9_000.0))
COUNTIES = [f"{number:03d}" for number in range(1, N + 1)]
TABLE: dict[str, Any] = {"county": COUNTIES, "income": INCOME.tolist(), "state": STATE}


def released(groups: dict[str, list[Any]] | None = None) -> NoisyStatistic:
    groups = groups or {"county": list(COUNTIES)}
    domains = {
        column: parse_domain(sorted(set(map(str, keys))), directory=None, column=column)
        for column, keys in groups.items()
    }
    plan = dataclasses.replace(statistic_plan(BERNOULLI, epsilon="1", public_n=False), groups=domains)
    rng = np.random.default_rng(1)
    true = rng.binomial(200, TRUTH)
    counts = np.stack([200 - true, true], axis=1)
    return noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng), groups=groups)


def design(**asked: Any) -> Design:
    result = design_of(released(), Pooling(**asked))
    assert result is not None
    return result


def pooled(statistic: NoisyStatistic, *names: str, **asked: Any) -> PooledPosterior:
    pooling = Pooling.of_names(names, **asked)
    return pooled_posterior(statistic, PosteriorTerms(), pooling, lambda: posterior_of(statistic))


@pytest.fixture(params=["mapping", "pandas", "polars", "arrow", "csv", "parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The same table in all forms, its rows in another order."""
    order = np.random.default_rng(3).permutation(N)
    shuffled = {name: [column[place] for place in order] for name, column in TABLE.items()}
    if request.param == "csv":
        with (tmp_path / "counties.csv").open("w", newline="") as written:
            csv.writer(written).writerows([tuple(shuffled), *zip(*shuffled.values(), strict=True)])
        return str(tmp_path / "counties.csv")
    if request.param == "parquet":
        pq.write_table(pa.table(shuffled), tmp_path / "counties.parquet")
        return tmp_path / "counties.parquet"
    return {"mapping": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[
        request.param
    ](shuffled)


def test_rows_are_joined_by_keys_whatever_the_table_is(table: Any) -> None:
    result = design(covariates=table, formula="~ income + C(state)")
    assert result.names == ("income", "C(state)[T.B]", "C(state)[T.C]")
    np.testing.assert_allclose(result.columns[:, 0], INCOME)
    np.testing.assert_array_equal(result.columns[:, 1], np.array(STATE) == "B")
    np.testing.assert_allclose(result.steps, np.array([float(np.std(INCOME)), 1.0, 1.0]))
    standardised = result.of_pool(np.arange(N), "")
    np.testing.assert_allclose(standardised.mean(axis=0), 0.0, atol=1e-12)
    assert standardised[:, 0].std() == pytest.approx(1.0)


@pytest.mark.audit
def test_units_of_a_covariate_do_not_change_an_answer() -> None:
    statistic = released()
    dollars = pooled(statistic, "logit-normal", covariates=TABLE, formula="~ income")
    thousands = {**TABLE, "income": (INCOME / 1000.0).tolist()}
    others = pooled(statistic, "logit-normal", covariates=thousands, formula="~ income")
    np.testing.assert_allclose(dollars.mean(), others.mean(), rtol=1e-9)
    (first,), (second,) = dollars.pools[0].coefficients, others.pools[0].coefficients
    assert 1000.0 * first.mean == pytest.approx(second.mean)
    assert first.factors == pytest.approx(second.factors)
    assert first.lower < 0.6 / 9_000.0 < first.upper
    assert str(second).endswith(f"per {second.step:.4g} of income")
    (row,) = dollars.coefficients
    assert row["in_words"].startswith("odds multiply by 1.")
    assert "~ income, coefficients Normal(0, 1)" in str(dollars)
    assert "averages can be relied on" in str(dollars)
    # It explains: what is left is less than without it.
    assert dollars.pools[0].spread[0] < 0.7 * pooled(statistic, "logit-normal").pools[0].spread[0]


@pytest.mark.audit
def test_group_columns_are_covariates_too_and_pools_have_coefficients_of_their_own() -> None:
    groups = {"region": ["N", "S"] * (N // 2), "county": list(COUNTIES)}
    statistic = released(groups)
    assert (
        pooled(statistic, "logit-normal", formula="~ C(region)").pools[0].coefficients[0].name
        == "C(region)[T.S]"
    )
    within = pooled(statistic, "logit-normal", "region", covariates=TABLE, formula="~ income")
    assert [row["region"] for row in within.coefficients] == ["N", "S"]
    assert within.sample(50, np.random.default_rng(1))["probability"].shape == (50, N)
    with pytest.raises(UsageError, match=r"C\(region\)\[T.S\] is the same in all cells of region=N"):
        pooled(statistic, "region", formula="~ C(region)")
    regions = {"region": ["S", "N"], "age": [30.0, 40.0]}
    by_region = design_of(statistic, Pooling(covariates=regions, formula="~ age"))
    assert by_region is not None
    np.testing.assert_array_equal(by_region.columns[:, 0], [40.0, 30.0] * (N // 2))


def test_keys_that_are_numbers_are_joined_as_numbers() -> None:
    statistic = released({"county": list(range(1, N + 1))})
    result = design_of(statistic, Pooling(covariates=TABLE, formula="~ income"))
    assert result is not None
    np.testing.assert_allclose(result.columns[:, 0], INCOME)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no formula": ({"covariates": TABLE}, "need a formula that names columns of theirs, as '~ income"),
    "unknown column": ({"covariates": TABLE, "formula": "~ incom"}, "names 'incom', and covariates has"),
    "no key column": ({"covariates": {"x": [1.0]}, "formula": "~ x"}, "has no group column of measured"),
    "missing cells": (
        {"covariates": {"county": ["001"], "x": [1.0]}, "formula": "~ x"},
        "has no row of county=002 and of 22 more",
    ),
    "a key twice": (
        {"covariates": {"county": ["001", "001"], "x": [1.0, 2.0]}, "formula": "~ x"},
        "rows 1 and 2 are both of county=001",
    ),
    "an unknown key": (
        {"covariates": {"county": ["1"], "x": [1.0]}, "formula": "~ x"},
        "row 1 has '1', which is no key of the release in its column county",
    ),
    "no value": (
        {"covariates": {**TABLE, "x": [None, *INCOME[1:]]}, "formula": "~ x"},
        "x has no value in 1 cell, of which the first is county=001",
    ),
    "infinite": (
        {"covariates": {**TABLE, "x": [np.inf, *INCOME[1:]]}, "formula": "~ x"},
        "x is not finite in 1 cell, of which the first is county=001",
    ),
    "log of 0": (
        {"covariates": {**TABLE, "x": [0.0, *INCOME[1:]]}, "formula": "~ log(x)"},
        r"log\(x\) is not finite in 1 cell",
    ),
    "constant": ({"covariates": {**TABLE, "x": [3.0] * N}, "formula": "~ x"}, "x is the same in all cells"),
    "collinear": (
        {"covariates": {**TABLE, "x": (2.0 * INCOME + 5.0).tolist()}, "formula": "~ income + x"},
        r"x is a linear combination of those before it \(income\)",
    ),
    "too many": ({"formula": "~ C(county)"}, "has 23 columns, and the pool 24 cells"),
    "no intercept": ({"covariates": TABLE, "formula": "~ 0 + income"}, "has no intercept"),
    "only an intercept": ({"covariates": TABLE, "formula": "~ 1"}, "has 0 columns"),
    "a left side": ({"covariates": TABLE, "formula": "income ~ state"}, "has a left side"),
    "no formula at all": ({"covariates": TABLE, "formula": "income +"}, "cannot be read"),
    "a number": ({"covariates": TABLE, "formula": 3}, "formula is a text"),
    "texts in log": (
        {"covariates": TABLE, "formula": "~ log(state)"},
        "cannot be worked out of columns state",
    ),
    "a call": ({"covariates": TABLE, "formula": "~ open('x')"}, "calls 'open': it may call C, I"),
    "a hidden call": ({"covariates": TABLE, "formula": "~ (open)('x')"}, "has signs that are of no formula"),
    "an attribute": ({"covariates": TABLE, "formula": "~ income.__class__"}, "signs that are of no formula"),
    "a power of powers": (
        {"covariates": TABLE, "formula": "~ I(income + 9**9**9**9)"},
        r"'9 \*\* 9 \*\* 9 \*\* 9': a power is a number from 0 to 10",
    ),
    "powers of a power": (
        {"covariates": TABLE, "formula": "~ I(((income**10)**10)**10)"},
        "and of no other power",
    ),
    "a power of a column": ({"covariates": TABLE, "formula": "~ I(2**income)"}, "a power is a number"),
    "a shift": (
        {"covariates": TABLE, "formula": "~ I(income + (1 << 9999999999))"},
        "of no formula: LShift in",
    ),
    "a long text": ({"covariates": TABLE, "formula": "~ C('a' * 9999999999)"}, "arithmetic is of numbers"),
    "long texts": ({"covariates": TABLE, "formula": "~ C(state * 9999999999)"}, "arithmetic is of numbers"),
    "a long list": ({"covariates": TABLE, "formula": "~ I([1] * 9999999999)"}, "arithmetic is of numbers"),
    "a loop": ({"covariates": TABLE, "formula": "~ I([x for x in income])"}, "has what is of no formula"),
    "many columns": (
        {"covariates": TABLE, "formula": "~ bs(income, df=99999999)"},
        "for more than 60 columns",
    ),
    "many terms": (
        {"covariates": TABLE, "formula": "~ (income + state + county)**40"},
        "would have more than 10,000 terms",
    ),
    "many products": (
        {"covariates": TABLE, "formula": "~ " + "*".join(f"x{number}" for number in range(30))},
        "would have more than 10,000 terms",
    ),
    "a long formula": ({"covariates": TABLE, "formula": "~ income" + " + income" * 1000}, "2,000 characters"),
    "no table": ({"covariates": 3, "formula": "~ x"}, "covariates is no table: give a CSV or Parquet file"),
    "no file": ({"covariates": "nowhere.csv", "formula": "~ x"}, "nowhere.csv: the file cannot be read"),
    "over": ({"covariates": TABLE, "formula": "~ income", "over": "county"}, "covariates and over do not go"),
    "adjacency": ({"formula": "~ C(county)", "adjacency": TABLE}, "covariates and adjacency do not go"),
}


@pytest.mark.parametrize(("asked", "says"), WRONG.values(), ids=WRONG.keys())
def test_what_does_not_fit_is_refused_by_name(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        design(**asked).of_pool(np.arange(N), "")


@pytest.mark.parametrize(
    ("formula", "n_columns"),
    [
        ("~ I(income**2) + I(income**-0.5)", 2),
        ("~ poly(income, 2) + log(income / 1000)", 3),
        ("~ np.where(state == 'A', 1, 0) * income", 3),
        ("~ I((state == 'A') * income)", 1),
        ("~ bs(income, df=4, degree=3) + C(state)", 6),
        ("~ C(state, contr.treatment(base='B')) + income", 3),
        ("~ (income + state)**2", 5),
    ],
)
def test_formulas_that_are_wanted_are_worked_out(formula: str, n_columns: int) -> None:
    assert len(design(covariates=TABLE, formula=formula).names) == n_columns


def test_a_column_of_any_name_is_quoted_and_called_what_it_is() -> None:
    assert design(covariates={**TABLE, "open (x)": INCOME}, formula="~ `open (x)`").names == ("open (x)",)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **further: Any) -> Any:
        if name.partition(".")[0] == "formulaic":
            raise ImportError(name)
        return real(name, *rest, **further)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"suffice\[covariates\]"):
        design(covariates=TABLE, formula="~ income")


@pytest.mark.slow
def test_a_covariate_that_says_what_the_size_says_is_named() -> None:
    statistic = released()
    size = np.maximum(np.rint(np.exp(np.random.default_rng(2).normal(5.0, 1.0, N))), 5.0).astype(np.int64)
    true = np.random.default_rng(3).binomial(size, TRUTH)
    values = np.stack([size - true, true], axis=1)
    statistic = dataclasses.replace(statistic, values=values.astype(object))
    table = {**TABLE, "people": size.tolist()}
    both = pooled(statistic, "logit-normal", covariates=table, formula="~ income + log(people)")
    (line,) = [line for line in both.conflict.lines() if "hardly told apart" in line]
    assert line.startswith("the covariate log(people) goes with log(1 + size)")
    # Control: a covariate that does not go with it.
    alone = pooled(statistic, "logit-normal", covariates=table, formula="~ income")
    assert alone.pools[0].beside_size is None
    assert not any("hardly told apart" in line for line in alone.conflict.lines())
    # Coefficients stay where hyperparameters are plugged in: cells are not drawn to one location.
    (pool,) = both.distribution.pools  # type: ignore[attr-defined]
    fixed = pool.plug_in()
    assert np.corrcoef(fixed.mean("probability"), INCOME)[0, 1] > 0.5
    assert np.mean(fixed.sd("probability")) < np.mean(pool.sd("probability"))
    with pytest.raises(UsageError, match="new cells"):
        pool.population_draws(np.zeros(3), RNG)
