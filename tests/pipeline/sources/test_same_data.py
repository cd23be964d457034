"""The same rows in every kind of source give the same totals, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from suffice.pipeline import sources
from suffice.pipeline.chunk.exact_sums import to_python
from suffice.pipeline.chunk.partition import chunk_job
from suffice.pipeline.chunk.sql_sums import sum_queries
from suffice.pipeline.reduce.cluster import open_cluster
from suffice.pipeline.reduce.push_down import pushed_sums
from suffice.pipeline.reduce.tree import exact_sums
from suffice.pipeline.sources import SOURCES
from suffice.pipeline.sources.schema_check import check_schema
from suffice.pipeline.spec.spec import load_spec
from support.hostile import bernoulli, categorical, normal, poisson
from support.same_rows import same_rows
from support.source_makers import MAKERS, maker_of

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

SPECS: dict[str, dict[str, Any]] = {
    "numbers by city": {
        "groups": {"city": ["Oslo", "Łódź", "null", "4"]},
        "statistics": {
            "x": normal("real", "-10", "10"),
            "single": normal("single", "-10", "10"),
            "whole": poisson("whole", "9", nulls={"value": "1"}),
            "price": normal("price", "-0.5", "99.95"),
            "long": normal("long_price", "0", "1000000"),
            "flag": bernoulli("flag"),
        },
    },
    "months of instants": {
        "window": {"column": "instant", "every": "month"},
        "statistics": {"colour": categorical("colour", ["red", "green", "€"], other=True)},
    },
    "days, and keys of numbers": {
        "window": {"column": "day", "every": "month"},
        "groups": {"price": ["0", "0.5", "12.25", "-0.5"], "whole": {"range": ["-2", "7"]}},
        "statistics": {"flag": bernoulli("flag", nulls={"value": "false"})},
    },
    "units": {
        "privacy": {
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "unit", "max_rows": "100"},
        },
        "statistics": {"x": normal("real", "-10", "10")},
    },
}


def totals(spec: Spec, window: str) -> dict[str, list[Any]]:
    pin = sources.pin(spec, window)
    check_schema(spec, sources.schema(pin))
    with open_cluster("threads") as cluster:
        found = to_python(exact_sums(chunk_job(spec, window), sources.splits(pin), cluster).open_totals())
    sources.close(pin)
    return {name: sums.tolist() for name, sums in found.items()}


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind != "parquet"])
def test_totals_are_those_of_the_same_rows_in_parquet(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    maker = maker_of(kind)
    for name, value in {**maker.environment, **maker.prepare(request)}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "here").mkdir()
    (tmp_path / "parquet").mkdir()
    table = same_rows(3000)
    entries = maker.write(tmp_path / "here", table), MAKERS["parquet"].write(tmp_path / "parquet", table)
    for what, parts in SPECS.items():
        specs = [
            load_spec(
                {
                    "name": "test",
                    "dataset": "test",
                    "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
                    "source": entry,
                    **parts,
                }
            )
            for entry in entries
        ]
        window = "2013-01" if specs[0].window else "all"
        ours, theirs = (totals(spec, window) for spec in specs)
        assert ours == theirs, what
        assert any(any(map(any, sums)) for sums in theirs.values()), what


@pytest.mark.parametrize("what", ["numbers by city", "months of instants"])
def test_totals_that_duckdb_sums_are_those_of_the_same_rows_in_parquet(what: str, tmp_path: Path) -> None:
    table = same_rows(3000)
    parts = dict(SPECS[what])
    statistics = parts["statistics"].items()  # decimals of many digits are refused
    parts["statistics"] = {name: each for name, each in statistics if name not in {"price", "long"}}
    terms = {
        "name": "test",
        "dataset": "test",
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        **parts,
    }
    summed, read = (
        load_spec({**terms, "source": entry})
        for entry in (
            {**MAKERS["duckdb"].write(tmp_path, table), "push_down": "true"},
            MAKERS["parquet"].write(tmp_path, table),
        )
    )
    window = "2013-01" if read.window else "all"
    pin = sources.pin(summed, window)
    job = chunk_job(summed, window)
    queries = sum_queries(job, sources.schema(pin)[0].columns)
    found = to_python(pushed_sums(job, queries, pin, n_threads=2).open_totals())
    wanted = totals(read, window)
    assert {name: sums.tolist() for name, sums in found.items()} == wanted
    assert any(any(map(any, sums)) for sums in wanted.values())
