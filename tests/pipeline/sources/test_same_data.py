"""The same rows in every kind of source give the same totals, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from suffice.pipeline import sources
from suffice.pipeline.chunk.exact_sums import to_python
from suffice.pipeline.chunk.partition import chunk_job
from suffice.pipeline.reduce.cluster import open_cluster
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
