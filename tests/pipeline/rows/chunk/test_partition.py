"""One task: which columns it reads and what it sums."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from support.hostile import bernoulli, categorical, make_spec, normal, poisson


def sums_of(table: pa.Table, statistics: dict[str, Any], label: str = "all", **others: Any) -> dict[str, Any]:
    job = chunk_job(make_spec(Path(), statistics, **others), label)
    return {name: sums.tolist() for name, sums in to_python(sum_batches(table.to_batches(), job)).items()}


def test_a_job_reads_each_column_once_and_is_small() -> None:
    spec = make_spec(
        Path(),
        {"a": normal("x", "0", "1"), "b": poisson("x", "3"), "c": categorical("k", ["u"])},
        groups={"k": ["u", "v"], "day": {"from": "2013-01", "to": "2013-12", "every": "month"}},
        window={"column": "day", "every": "year"},
    )
    job = chunk_job(spec, "2013")
    assert job.columns == ("day", "k", "x")
    assert set(job.n_cells.values()) == {24}
    assert pickle.loads(pickle.dumps(job)) == job  # noqa: S301
    assert len(pickle.dumps(job)) < 3000


def test_every_family_by_hand() -> None:
    table = pa.table(
        {
            "k": ["u", "u", "v", None, "w", "u"],
            "x": [0.5, -9.0, None, 1.0, 1.0, float("nan")],
            "n": [2, None, 9, 1, 1, -4],
            "f": [True, None, False, True, True, True],
        }
    )
    sums = sums_of(
        table,
        {
            "normal": normal("x", "-1", "1", lattice_bits="2"),
            "imputed": normal("x", "-1", "1", lattice_bits="2", nulls={"value": "0.25"}),
            "poisson": poisson("n", "5"),
            "flag": bernoulli("f"),
            "flag_or_false": bernoulli("f", nulls={"value": "false"}),
            "key": categorical("k", ["v", "u"], other="true"),
        },
        groups={"k": ["u", "v"]},
    )
    assert sums == {
        "normal": [[2, 2 - 4, 4 + 16], [0, 0, 0]],
        "imputed": [[3, 2 - 4 + 1, 4 + 16 + 1], [1, 1, 1]],
        "poisson": [[2, 2 + 0], [1, 5]],
        "flag": [[0, 2], [1, 0]],
        "flag_or_false": [[1, 2], [1, 0]],
        "key": [[0, 3, 0], [1, 0, 0]],
    }


def test_a_group_and_a_statistic_may_share_their_column_and_the_window_too() -> None:
    days = np.array(["2013-01-31", "2013-02-01", "2013-02-28", "2014-02-01"], "datetime64[D]")
    months = {"from": "2013-01", "to": "2013-03", "every": "month"}
    sums = sums_of(
        pa.table({"day": days}),
        {"month": categorical("day", months)},
        "2013",
        groups={"day": months},
        window={"column": "day", "every": "year"},
    )
    assert sums == {"month": [[1, 0, 0], [0, 2, 0], [0, 0, 0]]}


def test_no_rows_and_empty_batches_give_zeros() -> None:
    table = pa.table({"x": pa.array([], pa.float64())})
    assert sums_of(table, {"x": normal("x", "0", "1")}) == {"x": [[0, 0, 0]]}
    batch = pa.RecordBatch.from_arrays([pa.array([], pa.float64())], ["x"])
    job = chunk_job(make_spec(Path(), {"x": normal("x", "0", "1")}))
    assert to_python(sum_batches([batch, batch], job))["x"].tolist() == [[0, 0, 0]]
