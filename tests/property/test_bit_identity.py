"""Any statistics of any family over any rows: order, files, row groups, tasks and cluster change no bit."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from support.catalogue import ANY_STATISTIC
from support.hostile import hostile_table, make_spec
from support.pandas_files import as_pandas_writes, within_doubles
from support.splits import splits_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.cluster.connection import Cluster

GROUPS: list[dict[str, Any]] = [
    {},
    {"tiny": {"range": ["0", "3"]}},
    {"dictionary": ["a", "b", "null"], "flag": ["true", "false"]},
]
SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    """Draw rows, and how they are laid out and read."""
    n_rows = draw(st.integers(0, 700))
    return {
        "n_rows": n_rows,
        "seed": draw(st.integers(0, 2**32 - 1)),
        "order": draw(st.integers(0, 2**32 - 1)),
        "cuts": sorted(draw(st.lists(st.integers(0, n_rows), max_size=4))),
        "row_group_size": draw(st.integers(20, 700)),
        "split_values": draw(st.sampled_from([1, 3000, 10**7])),
        "by_pandas": draw(st.sets(st.integers(0, 4))),
        "options": draw(
            st.sampled_from([{}, {"use_dictionary": False}, {"store_schema": False}, {"data_page_size": 64}])
        ),
    }


@pytest.fixture(scope="module", params=["threads", "local"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with open_cluster_for_sums(request.param) as opened:
        yield opened


def check_bits(
    cluster: Cluster,
    directories: pytest.TempPathFactory,
    statistics: list[dict[str, Any]],
    groups: dict[str, Any],
    layout: dict[str, Any],
) -> None:
    directory = directories.mktemp("rows")
    n_rows = layout["n_rows"]
    table = hostile_table(n_rows, seed=layout["seed"]).drop_columns(["view"])  # Arrow cannot shuffle it
    if layout["by_pandas"]:
        table = within_doubles(table)
    shuffled = table.take(np.random.default_rng(layout["order"]).permutation(n_rows))
    for number, (start, end) in enumerate(pairwise([0, *layout["cuts"], n_rows])):
        part = shuffled.slice(start, end - start)
        pq.write_table(
            as_pandas_writes(part) if number in layout["by_pandas"] else part,
            directory / f"{number}.parquet",
            row_group_size=layout["row_group_size"],
            **layout["options"],
        )
    spec = make_spec(
        directory, {f"s{number}": entry for number, entry in enumerate(statistics)}, groups=groups
    )
    job = chunk_job(spec)
    ours = to_python(exact_sums(job, splits_of(spec, layout["split_values"]), cluster).open_totals())
    whole = to_python(sum_batches(table.to_batches(), job))
    assert ours.keys() == whole.keys()
    for name, sums in whole.items():
        assert ours[name].tolist() == sums.tolist(), name


STATISTICS = st.lists(ANY_STATISTIC, min_size=1, max_size=3)


@pytest.mark.slow
@settings(max_examples=25, **SETTINGS)
@given(statistics=STATISTICS, groups=st.sampled_from(GROUPS), layout=layouts())
def test_any_statistics_have_the_same_bits(
    cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    statistics: list[dict[str, Any]],
    groups: dict[str, Any],
    layout: dict[str, Any],
) -> None:
    check_bits(cluster, tmp_path_factory, statistics, groups, layout)


@pytest.mark.audit
@pytest.mark.timeout(1800)
@settings(max_examples=500, **SETTINGS)
@given(statistics=STATISTICS, groups=st.sampled_from(GROUPS), layout=layouts())
def test_five_hundred_combinations_have_the_same_bits(
    cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    statistics: list[dict[str, Any]],
    groups: dict[str, Any],
    layout: dict[str, Any],
) -> None:
    check_bits(cluster, tmp_path_factory, statistics, groups, layout)
