"""Derived columns are row-wise: neighbours move sums over them as far as declared, and no further."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.spec.plan import Plan, compile_plan
from support.hostile import bernoulli, categorical, make_spec, normal
from support.splits import splits_of

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

DERIVED: dict[str, Any] = {
    "is_late": {"column": "delay", "above": "15"},
    "region": {"column": "code", "map": {"a": "north", "b": "south"}, "otherwise": "abroad"},
    "hour": {"column": "time", "part": "hour", "time_zone": "Europe/Berlin"},
    "gain": {"difference": ["taxi", "delay"], "lower": "-8", "upper": "8"},
    "either": {"any_of": ["is_late", {"column": "taxi", "below": "0"}]},
}
STATISTICS = {
    "is_late": bernoulli("is_late"),
    "either": bernoulli("either", nulls={"value": "1"}),
    "hour": categorical("hour", {"range": ["0", "23"]}, other="true"),
    "gain": normal("gain", "-8", "8", lattice_bits="4"),
}
UNIVERSE = [
    *itertools.product(
        [None, np.nan, -np.inf, 15.0, 15.5, 1e308],
        ["a", "b", "x", None],
        [None, dt.datetime(2013, 3, 31, 1, tzinfo=dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC)],
        [-(2**63), 20, None],
    )
]
TYPES = {
    "delay": pa.float64(),
    "code": pa.string(),
    "time": pa.timestamp("us", "UTC"),
    "taxi": pa.int64(),
}


def totals(
    directory: Path, spec: Spec, plan: Plan, rows: list[tuple[Any, ...]]
) -> dict[str, np.ndarray[Any, Any]]:
    columns = zip(*rows, strict=True)
    arrays = {
        name: pa.array(list(values), kind, from_pandas=False)
        for (name, kind), values in zip(TYPES.items(), columns, strict=True)
    }
    pq.write_table(pa.table(arrays), directory / "data.parquet")
    (split,) = splits_of(spec)
    sums = to_python(chunk(split, chunk_job(spec)))
    return {
        statistic.name: FAMILIES[statistic.family]
        .totals(spec.statistics[statistic.name], statistic.design, sums[statistic.name])
        .ravel()
        for statistic in plan.statistics
    }


@pytest.mark.slow
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
def test_no_neighbour_moves_sums_of_derived_columns_further_than_declared(
    tmp_path: Path, neighboring: str
) -> None:
    spec = make_spec(
        tmp_path,
        STATISTICS,
        derived=DERIVED,
        groups={"region": ["north", "south", "abroad"]},
        privacy={"epsilon": "1", "neighboring": neighboring},
    )
    plan = compile_plan(spec)
    alone = [totals(tmp_path, spec, plan, [row]) for row in UNIVERSE]
    together = totals(tmp_path, spec, plan, UNIVERSE)
    for statistic in plan.statistics:
        vectors = np.array([change[statistic.name] for change in alone])
        assert vectors.sum(axis=0).tolist() == together[statistic.name].tolist(), "sums over records"
        if neighboring == "add_or_remove_one":
            largest = np.abs(vectors).sum(axis=1).max()
        else:
            distinct = np.unique(vectors.astype(np.int64), axis=0)
            largest = max(np.abs(a - b).sum() for a, b in itertools.combinations(distinct, 2))
        assert largest == statistic.l1_sensitivity, statistic.name
