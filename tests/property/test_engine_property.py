"""Any rows, any order, any partitioning, any cluster: the same bits; and codes against a slow reference."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk.encoding import Encoder
from suffice.pipeline.rows.chunk.exact_sums import Sums, combine
from suffice.pipeline.rows.chunk.partition import chunk_job, sum_batches
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind, boolean_domain
from suffice.pipeline.terms.declaration.exact_numbers import parse_decimal
from support.hostile import bernoulli, categorical, hostile_table, make_spec, normal, poisson
from support.pandas_files import as_pandas_writes, within_doubles
from support.splits import splits_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from suffice.pipeline.cluster.connection import Cluster

N_ROWS = 1500
SPEC: dict[str, Any] = {
    "statistics": {
        "text": categorical("text", ["a", "b", ""], other="true"),
        "dictionary": categorical("dictionary", ["a", "null"]),
        "flag": bernoulli("flag", nulls={"value": "1"}),
        "float": normal("float", "-1", "3", lattice_bits="24"),
        "integer": normal("integer", "-100", "100", nulls={"value": "0"}),
        "unsigned": poisson("unsigned", "1000000000"),
    },
    "groups": {"tiny": {"range": ["0", "3"]}, "wide_text": ["a", "b", "1"]},
}


@pytest.fixture(scope="module", params=["threads", "local"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with open_cluster_for_sums(request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return hostile_table(N_ROWS, seed=11).drop_columns(["view"])  # Arrow cannot shuffle it


def same_bits(ours: Sums, theirs: Sums) -> bool:
    def limbs(sums: Sums) -> list[Any]:
        return [
            (name, table.low.tolist(), None if table.high is None else table.high.tolist())
            for name, table in sums.items()
        ]

    return limbs(ours) == limbs(theirs)


@pytest.mark.slow
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    order=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, N_ROWS), max_size=5),
    row_group_size=st.integers(20, N_ROWS),
    split_values=st.sampled_from([1, 3000, 10**7]),
    options=st.sampled_from([{}, {"use_dictionary": False}, {"store_schema": False}, {"data_page_size": 64}]),
    by_pandas=st.sets(st.integers(0, 5)),
)
def test_order_files_row_groups_tasks_and_clusters_change_no_bit(
    cluster: Cluster,
    table: pa.Table,
    tmp_path_factory: pytest.TempPathFactory,
    order: int,
    cuts: list[int],
    row_group_size: int,
    split_values: int,
    options: dict[str, Any],
    by_pandas: set[int],
) -> None:
    directory = tmp_path_factory.mktemp("rows")
    if by_pandas:
        table = within_doubles(table)
    shuffled = table.take(np.random.default_rng(order).permutation(N_ROWS))
    ends = [0, *sorted(cuts), N_ROWS]
    for number, (start, end) in enumerate(pairwise(ends)):
        part = shuffled.slice(start, end - start)
        if number in by_pandas:
            part = as_pandas_writes(part)
        pq.write_table(part, directory / f"{number}.parquet", row_group_size=row_group_size, **options)
    spec = make_spec(directory, **SPEC)
    job = chunk_job(spec)
    assert same_bits(
        exact_sums(job, splits_of(spec, split_values), cluster).open_totals(),
        sum_batches(table.to_batches(), job),
    )


@pytest.mark.slow
@settings(max_examples=50)
@given(cuts=st.lists(st.integers(0, N_ROWS), max_size=8), data=st.data())
def test_adding_parts_in_any_grouping_gives_the_whole(cuts: list[int], data: st.DataObject) -> None:
    table = hostile_table(N_ROWS, seed=12)
    job = chunk_job(make_spec("nowhere", **SPEC))
    ends = [0, *sorted(cuts), N_ROWS]
    parts = [
        sum_batches(table.slice(start, end - start).to_batches(max_chunksize=97), job)
        for start, end in pairwise(ends)
    ]
    while len(parts) > 1:
        size = data.draw(st.integers(2, len(parts)))
        parts = [*parts[size:], combine(parts[:size])]
    assert same_bits(parts[0], sum_batches(table.to_batches(), job))


FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, 2.0**53, -(2.0**63), 2.0**63])
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
KEYS = st.lists(
    st.sampled_from(
        ["0", "1", "2", "-1", "0.5", "0.1", "9007199254740992", "-9223372036854775808", "x", "1e-3"]
    ),
    min_size=1,
    unique=True,
)


def reference_code(keys: list[str], value: Any) -> int:
    """Find a value among the keys by exact arithmetic, one value at a time."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return -1
    for code, key in enumerate(keys):
        try:
            number = parse_decimal(key)
        except ValueError:
            continue
        wanted = Fraction(float(number)) if isinstance(value, float) else number
        if wanted == Fraction(value):
            return code
    return -1


@pytest.mark.slow
@settings(max_examples=200)
@given(keys=KEYS, values=st.lists(st.none() | FLOATS, max_size=40), offset=st.integers(0, 9))
def test_codes_of_floats(keys: list[str], values: list[float | None], offset: int) -> None:
    check_codes(keys, pa.array(values, pa.float64()), offset)


@pytest.mark.slow
@settings(max_examples=200)
@given(keys=KEYS, values=st.lists(st.none() | INTEGERS, max_size=40), offset=st.integers(0, 9))
def test_codes_of_integers(keys: list[str], values: list[int | None], offset: int) -> None:
    check_codes(keys, pa.array(values, pa.int64()), offset)


@settings(max_examples=100)
@given(
    keys=KEYS,
    values=st.lists(st.none() | st.decimals(-(10**18), 10**18, places=3), max_size=40),
    offset=st.integers(0, 9),
)
def test_codes_of_decimals(keys: list[str], values: list[Decimal | None], offset: int) -> None:
    check_codes(keys, pa.array(values, pa.decimal128(25, 3)), offset)


def check_codes(keys: list[str], column: pa.Array, offset: int) -> None:
    sliced = column.slice(offset)
    values = sliced.to_pylist()
    listed = Domain(kind=DomainKind.LIST, keys=tuple(keys))
    assert Encoder(listed).codes(sliced).tolist() == [reference_code(keys, value) for value in values]
    ranged = Domain(kind=DomainKind.RANGE, keys=range(-2, 9))
    texts = [str(key) for key in ranged]
    assert Encoder(ranged).codes(sliced).tolist() == [reference_code(texts, value) for value in values]
    truth = Encoder(boolean_domain(), 7).codes(sliced).tolist()
    assert truth == [{0: 0, 1: 1}.get(reference_code(["0", "1"], value), 7) for value in values]
    assert (
        Encoder(listed).codes(sliced.dictionary_encode()).tolist() == Encoder(listed).codes(sliced).tolist()
    )


@pytest.mark.slow
@settings(max_examples=100)
@given(
    keys=st.lists(st.text(max_size=5), min_size=1, max_size=6, unique=True),
    values=st.lists(st.none() | st.text(max_size=5), max_size=40),
    offset=st.integers(0, 9),
    kind=st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]),
)
def test_codes_of_texts(keys: list[str], values: list[str | None], offset: int, kind: pa.DataType) -> None:
    known = [*keys[:2], *values]
    column = pa.array(known, kind).slice(offset)
    expected = [keys.index(text) if text in keys else -1 for text in known[offset:]]
    domain = Domain(kind=DomainKind.LIST, keys=tuple(keys))
    assert Encoder(domain).codes(column).tolist() == expected
