"""Totals before noise against an independent DuckDB query, in every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources.schema_check import check_schema
from support.duckdb_sums import duckdb_sums
from support.hostile import TEXTS, bernoulli, categorical, make_spec, normal, poisson, write_hostile
from support.real_data import REAL_DATA
from support.splits import row_count, splits_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec

MONTHS = {"from": "2012-12", "to": "2013-03", "every": "month"}
YEARS = {"from": "1969", "to": "2013", "every": "year"}
LAST_YEARS = {"from": "9998", "to": "9999", "every": "year"}
DAYS = {"from": "1969-12-31", "to": "1970-01-02", "every": "day"}

UNSEEN = "nul\0l"
"""Rows may hold it; no domain may declare it."""

KEYS: dict[str, list[Any]] = {
    "text": [["a", "b", "", "é", "x" * 300, "unseen"]],
    "wide_text": [["a", "b", "1"]],
    "view": [["A", "a ", "e\u0301"]],
    "dictionary": [["null", "a", "01", "1x"], [text for text in TEXTS if text not in {"01", UNSEEN}]],
    "digits": [["0", "1", "2"], {"range": ["-1", "2"]}],
    "tiny": [["0", "1", "-128", "128", "1.5", "x"], {"range": ["-1", "300"]}],
    "integer": [["0", "12", "9223372036854775807", "-9223372036854775808"], {"range": ["0", "2"]}],
    "unsigned": [["0", "7", "18446744073709551615", "9223372036854775808", "-1"], {"range": ["-5", "7"]}],
    "float": [["0", "2.5", "0.1", "0.30"], ["0", "1", "12"], {"range": ["-3", "2"]}],
    "single": [["0", "2.5", "0.1"], {"range": ["0", "12"]}],
    "price": [["0", "1", "2.5", "-3.00", "0.001", "99999999.99"], {"range": ["-3", "1"]}],
    "precise": [["0", "1", "2.5"], {"range": ["0", "12"]}],
    "flag": [["true", "false", "1"]],
    "day": [["2013-01-31", "1970-01-01", "x"], MONTHS, YEARS, LAST_YEARS, DAYS],
    "instant": [["2013-01-31", "2013-02-01T12:30:00"], MONTHS, YEARS, DAYS],
    "zoned": [MONTHS, DAYS],
}
CASES = [(column, domain) for column, domains in KEYS.items() for domain in domains]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    write_hostile(directory, seed=7)
    return directory


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


def assert_equals_duckdb(spec: Spec, files: list[Path], cluster: Cluster, window: str | None = None) -> None:
    pin = sources.pin(spec)
    check_schema(spec, sources.schema(pin))
    job = chunk_job(spec, window) if window else chunk_job(spec)
    ours = to_python(exact_sums(job, sources.splits(pin), cluster).open_totals())
    theirs = duckdb_sums(spec, files, window)
    assert ours.keys() == theirs.keys()
    entered = 0
    for name, sums in theirs.items():
        assert ours[name].tolist() == sums.tolist(), name
        entered += sums[:, 0].sum()
    assert entered > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "domain"), CASES, ids=[f"{column}-{n}" for n, (column, _) in enumerate(CASES)]
)
def test_keys_and_categories_of_every_type(hostile: Path, threads: Cluster, column: str, domain: Any) -> None:
    spec = make_spec(
        hostile,
        {
            "with_other": categorical(column, domain, other="true"),
            "without": categorical(column, domain),
            "measure": normal("measure", "-60", "60"),
            "dropped": bernoulli("flag"),
        },
        groups={column: domain} if column != "flag" else {"tiny": ["0", "1"]},
    )
    assert_equals_duckdb(spec, sorted(hostile.glob("*.parquet")), threads)


@pytest.mark.parametrize(
    "column", ["tiny", "integer", "unsigned", "float", "single", "price", "precise", "measure", "whole"]
)
@pytest.mark.parametrize("nulls", ["drop", {"value": "1"}], ids=["drop", "value"])
def test_numbers_of_every_type(hostile: Path, threads: Cluster, column: str, nulls: Any) -> None:
    spec = make_spec(
        hostile,
        {
            "normal": normal(column, "-3", "100", nulls=nulls),
            "fine": normal(column, "0.1", "0.3", lattice_bits="24", nulls=nulls),
            "coarse": normal(column, "-2", "2", lattice_bits="2", nulls=nulls),
            "poisson": poisson(column, "12", nulls=nulls),
            "many": poisson(column, "1000000000", nulls=nulls),
            "bernoulli": bernoulli(column, nulls=nulls),
        },
        groups={"dictionary": ["a", "b", "01"], "tiny": {"range": ["-1", "3"]}},
    )
    assert_equals_duckdb(spec, sorted(hostile.glob("*.parquet")), threads)


@pytest.mark.parametrize("column", ["tiny", "integer", "float", "price", "measure", "whole"])
@pytest.mark.parametrize("nulls", ["drop", {"value": "1"}], ids=["drop", "value"])
def test_every_scalar_family(hostile: Path, threads: Cluster, column: str, nulls: Any) -> None:
    """Where T is not linear DuckDB's own functions give the same lattice values."""
    entries: dict[str, dict[str, Any]] = {
        "binomial": {"trials": "12"},
        "geometric": {"upper": "12"},
        "negative_binomial": {"successes": "3", "upper": "12"},
        "exponential": {"upper": "0.3"},
        "gamma": {"shape": "2", "upper": "100"},
        "weibull": {"shape": "1.7", "upper": "60"},
        "pareto": {"minimum": "0.7", "upper": "90"},
        "laplace": {"location": "0.1", "half_range": "60"},
        "normal_known_mean": {"mean": "0.1", "half_range": "60", "lattice_bits": "24"},
        "normal_known_variance": {"variance": "3", "lower": "-3", "upper": "100"},
        "lognormal": {"lower": "0.1", "upper": "100"},
    }
    spec = make_spec(
        hostile,
        {
            family: {"family": family, "column": column, "nulls": nulls, **entry}
            for family, entry in entries.items()
        },
        groups={"dictionary": ["a", "b", "01"]},
    )
    assert_equals_duckdb(spec, sorted(hostile.glob("*.parquet")), threads)


@pytest.mark.parametrize("groups", [{}, {"dictionary": ["a", "b", "01"]}, {"tiny": {"range": ["-70", "69"]}}])
@pytest.mark.parametrize("nulls", ["drop", {"value": "1"}], ids=["drop", "value"])
def test_several_columns_together(
    hostile: Path, threads: Cluster, groups: dict[str, Any], nulls: Any
) -> None:
    """By products of matrices and row by row; nulls, NaN and infinities among complete rows."""
    bounds = {"lower": "-3", "upper": "100", "nulls": nulls}
    numbers = ["integer", "float", "single", "price", "measure", "whole"]
    some = dict.fromkeys(numbers, bounds)
    spec = make_spec(
        hostile,
        {
            "few": {"family": "multivariate_normal", "columns": dict.fromkeys(numbers[:2], bounds)},
            "many": {"family": "multivariate_normal", "columns": some},
            "fine": {"family": "multivariate_normal", "columns": some, "lattice_bits": "24"},
            "no_intercept": {
                "family": "linear_regression",
                "outcome": {"unsigned": {"lower": "0.3", "upper": "12"}},
                "predictors": some,
                "intercept": "false",
            },
        },
        groups=groups,
    )
    assert_equals_duckdb(spec, sorted(hostile.glob("*.parquet")), threads)


@pytest.mark.parametrize(
    "groups", [{}, {"dictionary": ["a", "b", "01"], "flag": ["true"]}], ids=["plain", "groups"]
)
def test_tables_of_counts(hostile: Path, threads: Cluster, groups: dict[str, Any]) -> None:
    variables: dict[str, dict[str, Any]] = {
        "colour": {"column": "text", "categories": ["a", "b", "", "01"]},
        "number": {"column": "tiny", "categories": {"range": ["-1", "3"]}, "other": "true"},
        "price": {"categories": ["0", "1", "2.5"], "other": "true"},
        "month": {"column": "day", "categories": MONTHS},
    }
    first, second, third, fourth = ({name: entry} for name, entry in variables.items())
    spec = make_spec(
        hostile,
        {
            "contingency": {"family": "contingency", "columns": {**fourth, **first, **third}},
            "one": {"family": "contingency", "columns": second},
            "naive": {"family": "naive_bayes", "outcome": first, "features": {**second, **third, **fourth}},
            "network": {
                "family": "bayesian_network",
                "nodes": {
                    **first,
                    "number": {**variables["number"], "parents": ["price", "colour"]},
                    "price": {**variables["price"], "parents": ["colour"]},
                },
            },
        },
        groups=groups,
    )
    assert_equals_duckdb(spec, sorted(hostile.glob("*.parquet")), threads)


@pytest.mark.parametrize("column", ["day", "instant", "zoned"])
@pytest.mark.parametrize(("every", "window"), [("month", "2013-01"), ("year", "2013"), ("day", "1970-01-01")])
def test_windows(hostile: Path, threads: Cluster, column: str, every: str, window: str) -> None:
    spec = make_spec(
        hostile,
        {
            "measure": normal("measure", "-60", "60"),
            "flag": bernoulli("flag", nulls={"value": "true"}),
        },
        window={"column": column, "every": every},
        groups={"text": ["a", "b"]},
    )
    assert_equals_duckdb(spec, sorted(hostile.glob("*.parquet")), threads, window)


def test_without_groups_every_row_counts(hostile: Path, threads: Cluster) -> None:
    spec = make_spec(
        hostile,
        {
            "text": {"family": "categorical", "column": "text", "categories": ["a"], "other": "true"},
            "float": {
                "family": "normal",
                "column": "float",
                "lower": "0",
                "upper": "1",
                "nulls": {"value": "0"},
            },
        },
    )
    assert_equals_duckdb(spec, sorted(hostile.glob("*.parquet")), threads)
    splits = splits_of(spec)
    sums = to_python(exact_sums(chunk_job(spec), splits, threads).open_totals())
    assert sums["text"].sum() == sums["float"][0, 0] == row_count(splits) == 4000


REAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "flights_3m/flights_3m.parquet": (
        {
            "origin": ["ATL", "ORD", "DFW", "JFK", "nowhere"],
            "date": {"from": "2001-01", "to": "2001-04", "every": "month"},
        },
        {
            "delay": normal("delay", "-60", "180"),
            "late": poisson("delay", "240", nulls={"value": "0"}),
            "destination": categorical("destination", ["LAX", "ATL", "SEA"], other="true"),
        },
    ),
    "nycflights13/flights.parquet": (
        {"origin": ["EWR", "JFK", "LGA"], "month": {"range": ["1", "12"]}},
        {
            "carrier": categorical("carrier", ["UA", "B6", "EV", "DL"], other="true"),
            "arr_delay": normal("arr_delay", "-60", "180"),
            "air_time": normal("air_time", "0", "400", nulls={"value": "150"}),
        },
    ),
    "adult/adult.parquet": (
        {"sex": ["Male", "Female"], "education-num": {"range": ["1", "16"]}},
        {
            "income": categorical("income", ["<=50K", ">50K"]),
            "age": normal("age", "17", "90"),
            "capital-gain": poisson("capital-gain", "99999"),
        },
    ),
}


@pytest.mark.slow
def test_real_data_where_they_are_present(threads: Cluster) -> None:
    for name, (groups, statistics) in REAL.items():
        if (REAL_DATA / name).exists():
            spec = make_spec(REAL_DATA / name, statistics, groups=groups)
            assert_equals_duckdb(spec, [REAL_DATA / name], threads)
