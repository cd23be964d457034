"""Specs that are audited: one for each kind of source and path, and any number of random ones."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.auditing.hostile_rows import Maker, window_of
from suffice.auditing.implied_columns import implied_schema
from suffice.auditing.running import Runner
from suffice.auditing.scratch_sources import contract_as_tried, implied_contract
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.spec.spec import load_spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

UNIT = {"column": "who", "max_rows": "3", "nulls": "own_unit"}
ROW = {"epsilon": "0.5", "neighboring": "add_or_remove_one"}
REPLACED = {"epsilon": "0.5", "neighboring": "replace_one"}
CARRIER = {"family": "categorical", "column": "carrier", "categories": ["UA", "DL"]}
DELAY = {"family": "normal", "column": "delay", "lower": -60, "upper": 180}
BASE: dict[str, Any] = {
    "name": "flights",
    "dataset": "passengers",
    "source": {"parquet": "rows"},
    "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": UNIT},
    "groups": {"origin": ["EWR", "JFK"]},
    "statistics": {"carrier": CARRIER, "delay": DELAY},
}
SAMPLE = {
    "family": "bernoulli",
    "column": "flag",
    "sample": {"draws": 3, "within": ["0.01", "0.99"], "grid": "50"},
}


def changed(**changes: Any) -> dict[str, Any]:
    """Return the base with other entries; None leaves one out."""
    return {key: value for key, value in {**BASE, **changes}.items() if value is not None}


SPECS: dict[str, dict[str, Any]] = {
    "units in parquet": BASE,
    "rows in parquet": changed(privacy=ROW),
    "one public number": changed(
        groups=None, privacy=REPLACED, statistics={"flag": {"family": "bernoulli", "column": "flag"}}
    ),
    "minimal sums": changed(
        groups=None,
        privacy=REPLACED,
        statistics={"delay": DELAY, "stops": {"family": "poisson", "column": "stops", "upper": 4}},
    ),
    "on a cone": changed(
        statistics={
            "pair": {
                "family": "multivariate_normal",
                "columns": {"delay": {"lower": -60, "upper": 180}, "stops": {"lower": 0, "upper": 4}},
                "noise": "cone",
            }
        }
    ),
    "csv": changed(source={"csv": "rows", "columns": {"who": "integer", "delay": "number"}}),
    "delta": changed(source={"delta": "rows"}),
    "iceberg": changed(source={"iceberg": "air.flights", "catalog": "audited"}),
    "duckdb": changed(source={"duckdb": "rows.db", "table": "main.flights"}),
    "rows in duckdb": changed(source={"duckdb": "rows.db", "table": "main.flights"}, privacy=ROW),
    "folders": changed(
        source={"parquet": "rows", "hive": {"origin": "text", "month": "integer"}},
        groups={"origin": ["EWR", "JFK"], "month": {"range": [1, 3]}},
    ),
    "windows": changed(window={"column": "day", "every": "month"}),
    "windows by names of files": changed(
        window={"column": "day", "every": "month", "files_by_window": "{yyyy}/{mm}"}
    ),
    "windows of a zone": changed(
        window={"column": "day", "every": "week", "time_zone": "America/New_York"},
        derived={"hour": {"column": "at", "part": "hour", "time_zone": "Europe/Berlin"}},
        groups={"hour": {"range": [0, 5]}},
    ),
    "a parsed window and unit": changed(
        privacy={
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "person", "max_rows": "3"},
        },
        window={"column": "day", "every": "month", "time_zone": "America/New_York"},
        derived={
            "day": {"column": "began", "parse": "timestamp", "format": "%d-%b-%y %H:%M", "pivot": 1970},
            "person": {"column": "who", "trim": "true", "case": "lower"},
        },
    ),
    "derived columns": changed(
        privacy=ROW,
        derived={
            "late": {"column": "delay", "above": 15},
            "state": {"column": "origin", "map": {"EWR": "NJ", "JFK": "NY"}, "otherwise": "elsewhere"},
        },
        groups={"state": ["NJ", "NY"], "late": ["true", "false"]},
    ),
    "a sample beside noise": changed(
        privacy=ROW, groups=None, statistics={"flag": SAMPLE, "carrier": CARRIER}
    ),
    "transitions": changed(
        statistics={
            "carrier": {
                "family": "markov_chain",
                "column": "carrier",
                "categories": ["UA", "DL"],
                "order": "leg",
                "transitions": 3,
            }
        }
    ),
    "whole units": changed(
        statistics={"delay": {**DELAY, "rows_of": "units"}, "rows": {"family": "rows_per_unit", "upper": 5}}
    ),
    "rows and units": changed(
        statistics={
            "delay": {**DELAY, "within_unit": True},
            "stops": {"family": "poisson", "column": "stops", "upper": 5, "count_clipped": True},
        }
    ),
    "texts as units": changed(
        privacy={
            "epsilon": "0.05",
            "neighboring": "replace_one",
            "unit": {"column": "who", "max_rows": "2", "type": "text"},
        }
    ),
    "two columns": changed(
        privacy=ROW,
        statistics={
            "both": {
                "family": "multivariate_normal",
                "columns": {"x": {"lower": -1, "upper": 1}, "y": {"lower": 0, "upper": 5}},
            }
        },
    ),
    "units in single cells": changed(groups=None),
    "units in rho": changed(privacy={"rho": "0.02", "neighboring": "add_or_remove_one", "unit": UNIT}),
    "replaced rows in rho": changed(privacy={"rho": "0.02", "neighboring": "replace_one"}),
    "a sample beside noise in rho": changed(
        privacy={"rho": "0.02", "neighboring": "add_or_remove_one"},
        groups=None,
        statistics={"flag": SAMPLE, "carrier": CARRIER},
    ),
    "two columns in rho": changed(
        privacy={"rho": "0.02", "neighboring": "add_or_remove_one"},
        statistics={
            "both": {
                "family": "multivariate_normal",
                "columns": {"x": {"lower": -1, "upper": 1}, "y": {"lower": 0, "upper": 5}},
            }
        },
    ),
    "rows in cells": changed(
        privacy={
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {**UNIT, "max_rows_per_cell": "1"},
        }
    ),
}
"""By what is tried."""

_STATISTICS: tuple[dict[str, Any], ...] = (
    CARRIER,
    {**CARRIER, "other": True},
    DELAY,
    {**DELAY, "lattice_bits": 4, "nulls": {"value": 0}},
    {"family": "bernoulli", "column": "flag"},
    {"family": "poisson", "column": "stops", "upper": 4},
    {"family": "binomial", "column": "stops", "trials": 3},
    {"family": "geometric", "column": "stops", "upper": 3},
    {"family": "exponential", "column": "delay", "upper": 20},
    {"family": "gamma", "column": "delay", "shape": 3, "upper": 20},
    {**DELAY, "count_clipped": True},
)
_GROUPS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"origin": ["EWR", "JFK"]},
    {"month": {"range": [1, 3]}},
    {"origin": ["EWR", "JFK"], "flagged": ["true", "false"]},
    {"day": {"from": "2013-01", "to": "2013-03", "every": "month"}},
)
_SOURCES: tuple[dict[str, Any], ...] = (
    {"parquet": "rows"},
    {"csv": "rows", "columns": {"who": "integer", "delay": "number", "stops": "integer", "day": "date"}},
    {"duckdb": "rows.db", "table": "main.flights"},
)


def random_spec(rng: np.random.Generator, measure: str = "epsilon") -> Spec:
    """Return any spec of these sources, groups, units and statistics."""
    source = dict(_SOURCES[rng.integers(len(_SOURCES))])
    if "csv" in source:
        source["columns"] = {**source["columns"], "flag": "boolean", "flagged": "boolean", "month": "integer"}
    replaces = bool(rng.integers(2))
    unit: Any = "row"
    if rng.random() < 0.6:
        nulls = ("drop", "own_unit")[rng.integers(2)]
        unit = {"column": "who", "max_rows": str(rng.integers(1, 5)), "nulls": nulls}
    loss = ("0.1", "0.5", "1", "2")[rng.integers(4)]
    chosen = rng.choice(len(_STATISTICS), size=int(rng.integers(1, 4)), replace=False)
    relation = "replace_one" if replaces else "add_or_remove_one"
    return load_spec(
        changed(
            source=source,
            privacy={measure: loss, "neighboring": relation, "unit": unit},
            groups=_GROUPS[rng.integers(len(_GROUPS))],
            statistics={f"s{number}": _STATISTICS[number] for number in chosen},
        )
    )


@contextmanager
def running(
    spec: Spec, directory: Path, seed: int = 1, *, contracted: bool = True
) -> Iterator[tuple[Runner, Maker]]:
    """Watch what a spec's releases do, in a directory; here, and not in a process of its own."""
    schema = implied_schema(spec)
    maker = Maker(spec=spec, schema=schema, rng=np.random.default_rng(seed))
    with open_cluster_for_sums("threads") as cluster:
        runner = Runner(
            spec=spec,
            window=window_of(spec),
            schema=schema,
            directory=directory,
            cluster=cluster,
            address="threads",
            contract=contract_as_tried(implied_contract(spec, schema), spec) if contracted else None,
        )
        with runner.watching():
            runner.prepare()
            yield runner, maker
