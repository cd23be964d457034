"""Any statistics, any unit column, any layout: the same bits, and no row lost below the bound."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.rows.reduce import shuffle
from suffice.pipeline.rows.reduce.shuffle import bounded_sums
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.terms.statistics.measure import UnitMeasure
from support.catalogue import ANY_STATISTIC, ENTRIES
from support.hostile import bernoulli, hostile_table, make_spec
from support.pandas_files import as_pandas_writes, enters, within_doubles
from support.units import KEY, partitions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.terms.statistics.measure import Measure

N_ROWS = 600
LARGE_BOUND = 10**9 - 1
FLAG = bernoulli("flag")
WHOLE_UNITS = st.sampled_from(["bernoulli", "categorical", "poisson", "normal"]).flatmap(
    lambda family: ENTRIES[family].map(lambda entry: {**entry, "rows_of": "units"})
) | st.sampled_from(
    [
        {"family": "rows_per_unit", "upper": "1000000000"},
    ]
)
UNITS = ["text", "dictionary", "digits", "integer", "unsigned", "float", "single", "price", "precise"]
UNITS += ["flag", "day", "instant", "zoned", "whole", "measure", "tiny"]


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return hostile_table(N_ROWS, seed=21).drop_columns(["view"])  # Arrow cannot shuffle it


def as_lists(sums: Sums) -> dict[str, Any]:
    return {name: table.tolist() for name, table in to_python(sums).items()}


def check(
    threads: Cluster,
    table: pa.Table,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    unit = data.draw(st.sampled_from(UNITS))
    statistics = data.draw(st.lists(ANY_STATISTIC | WHOLE_UNITS, min_size=1, max_size=4))
    bound = data.draw(st.sampled_from([1, 2, 5, LARGE_BOUND]))
    in_cell = data.draw(st.sampled_from([of for of in (None, 1, 3) if of is None or of < bound]))
    if in_cell is not None:
        statistics = [entry for entry in statistics if entry["family"] != "rows_per_unit"] or [FLAG]
    bounds = {"max_rows": str(bound), **({} if in_cell is None else {"max_rows_per_cell": str(in_cell)})}
    nulls = data.draw(st.sampled_from(["drop", "own_unit"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    by_pandas = data.draw(st.sets(st.integers(0, 3)))
    if by_pandas:
        table = within_doubles(table)
    totals = []
    for layout in range(2):
        directory = tmp_path_factory.mktemp("rows")
        shuffled = table.take(pa.array(rng.permutation(N_ROWS))) if layout else table
        cuts = sorted(data.draw(st.lists(st.integers(0, N_ROWS), max_size=3))) if layout else []
        for number, (start, end) in enumerate(pairwise([0, *cuts, N_ROWS])):
            part = shuffled.slice(start, end - start)
            size = data.draw(st.integers(20, N_ROWS)) if layout else N_ROWS
            if layout and number in by_pandas:
                part = as_pandas_writes(part)
            pq.write_table(part, directory / f"{number}.parquet", row_group_size=size)
        spec = make_spec(
            directory,
            {str(number): entry for number, entry in enumerate(statistics)},
            groups={"tiny": {"range": ["0", "3"]}},
            privacy={
                "epsilon": "1",
                "neighboring": "replace_one",
                "unit": {"column": unit, **bounds, "nulls": nulls},
            },
        )
        job = chunk_job(spec)
        if layout:
            clustered = data.draw(st.booleans())
            job = replace(job, is_clustered=clustered)
        with pytest.MonkeyPatch.context() as patch:
            if layout:
                patch.setattr(shuffle, "RECORD_BYTES_PER_THREAD", data.draw(st.sampled_from([4000, 10**9])))
            totals.append(as_lists(bounded_sums(job, partitions_of(spec), threads, KEY).open_totals()))
    assert totals[0] == totals[1]
    if bound == LARGE_BOUND and in_cell is None:
        of_rows: dict[str, Measure] = {
            name: of for name, of in job.measures.items() if not isinstance(of, UnitMeasure)
        }
        job = replace(job, measures=of_rows)
        kept = table.filter(enters(table[unit], nulls))
        assert {name: totals[0][name] for name in of_rows} == as_lists(sum_batches(kept.to_batches(), job))


SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=SLOW)
@given(data=st.data())
def test_any_statistics_by_any_unit(
    threads: Cluster, table: pa.Table, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    check(threads, table, tmp_path_factory, data)


@pytest.mark.audit
@pytest.mark.timeout(1800)
@settings(max_examples=500, suppress_health_check=SLOW)
@given(data=st.data())
def test_any_statistics_by_any_unit_many_times(
    threads: Cluster, table: pa.Table, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    check(threads, table, tmp_path_factory, data)
