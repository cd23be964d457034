"""Rows in memory: the sums of the same rows in Parquet, one identity, and no value in any error."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.errors import SchemaError, StageFailedError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources import given_rows
from suffice.pipeline.rows.sources.contract import spec_columns
from suffice.pipeline.rows.sources.schema_check import check_columns
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration.column_types import ColumnFamily
from suffice.pipeline.terms.declaration.data_contract import DataContract, SourceForm
from support.catalogue import ANY_STATISTIC
from support.hostile import hostile_table, make_spec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Stream:
    """What has nothing but the Arrow PyCapsule interface."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


ARROW: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "batches": lambda table: pa.Table.from_batches(table.to_batches(max_chunksize=37), schema=table.schema),
    "reader": lambda table: pa.RecordBatchReader.from_batches(
        table.schema, table.to_batches(max_chunksize=50)
    ),
    "stream": Stream,
    "mapping": lambda table: {name: table.column(name) for name in reversed(table.column_names)},
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": polars,
}
PANDAS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "as it is": lambda frame: frame,
    "nullable": lambda frame: frame.convert_dtypes(dtype_backend="numpy_nullable"),
    # Arrow makes no integers of objects from 2**63 on, and refuses them.
    "objects": lambda frame: frame.astype({name: object for name in frame if name != "unsigned"}),
    "categories": lambda frame: frame.astype({"text": "category", "tiny": "category", "day": "category"}),
    "an index": lambda frame: frame.set_index(np.arange(len(frame))[::-1]),
}


def without_source(spec: Spec) -> Spec:
    return spec.model_copy(update={"source": load_spec(BARE).source})


BARE: dict[str, Any] = {
    "name": "test",
    "dataset": "test",
    "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
    "statistics": {"flag": {"family": "bernoulli", "column": "flag"}},
}


def sums_of(spec: Spec, data: Any = None, contract: DataContract | None = None) -> dict[str, list[Any]]:
    rows = None if data is None else given_rows.of(data, spec_columns(spec))
    with open_cluster_for_sums("threads") as cluster:
        pin = sources.pin(spec, "all", contract, rows)
        check_columns(spec, sources.schema(pin), contract)
        totals = to_python(exact_sums(chunk_job(spec), sources.splits(pin), cluster).open_totals())
        sources.check(pin)
    return {name: values.tolist() for name, values in totals.items()}


def digest_of(spec: Spec, data: Any) -> str:
    rows = given_rows.of(data, spec_columns(spec))
    sources.pin(spec, "all", None, rows)
    return rows.digest()


GROUPS: list[dict[str, Any]] = [
    {},
    {"tiny": {"range": ["0", "3"]}},
    {"text": ["a", "b", "null"], "flag": ["true", "false"]},
]
UNITS: list[dict[str, Any]] = [
    {},
    {
        "privacy": {
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "whole", "max_rows": "1000"},
        }
    },
]


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    statistics=st.lists(ANY_STATISTIC, min_size=1, max_size=3),
    groups=st.sampled_from(GROUPS),
    privacy=st.sampled_from(UNITS),
    n_rows=st.integers(0, 400),
    seed=st.integers(0, 2**32 - 1),
    how=st.sampled_from([name for name in ARROW if name != "polars"]),
    frame=st.sampled_from(sorted(PANDAS)),
)
def test_sums_are_those_of_the_same_rows_in_parquet(
    tmp_path_factory: pytest.TempPathFactory,
    statistics: list[dict[str, Any]],
    groups: dict[str, Any],
    privacy: dict[str, Any],
    n_rows: int,
    seed: int,
    how: str,
    frame: str,
) -> None:
    directory = tmp_path_factory.mktemp("rows")
    table = hostile_table(n_rows, seed=seed)
    entries = {f"s{number}": entry for number, entry in enumerate(statistics)}
    pq.write_table(table, directory / "rows.parquet")
    spec = make_spec(directory, entries, groups=groups, **privacy)
    assert sums_of(without_source(spec), ARROW[how](table)) == sums_of(spec)
    plain = table.to_pandas()
    written = tmp_path_factory.mktemp("pandas")
    plain.to_parquet(written / "rows.parquet")
    by_pandas = make_spec(written, entries, groups=groups, **privacy)
    assert sums_of(without_source(by_pandas), PANDAS[frame](plain)) == sums_of(by_pandas)


@pytest.mark.parametrize("how", ARROW)
def test_one_identity_whatever_holds_the_rows(how: str) -> None:
    names = ["text", "dictionary", "tiny", "integer", "float", "flag", "day", "instant", "zoned", "price"]
    table = hostile_table(300, seed=3).select(names)
    spec = load_spec(
        {**BARE, "groups": {"text": ["a"], "tiny": {"range": ["0", "3"]}, "day": ["2013-01-01"]}}
    )
    assert digest_of(spec, ARROW[how](table)) == digest_of(spec, table)
    assert digest_of(spec, table) == digest_of(spec, table.select([*reversed(names)])), "in the spec's order"
    assert digest_of(spec, table) == digest_of(spec, table.drop_columns(["integer"])), "what is read"
    assert digest_of(spec, table) != digest_of(spec, table.slice(1))
    assert digest_of(spec, table) != digest_of(spec, table.take(list(reversed(range(300)))))


def test_the_identity_is_of_values_and_not_of_widths_or_of_what_is_under_nulls() -> None:
    spec = load_spec({**BARE, "groups": {"g": {"range": ["0", "3"]}, "x": ["1"]}})
    plain = {"g": pa.array([1, None, 3], pa.int64()), "flag": pa.array([True, None, False])}
    floats = {"x": pa.array([1.0, None, 2.0])}
    first = digest_of(spec, {**plain, **floats})
    narrow = pa.array([1, 2, 3], pa.int8(), mask=np.array([False, True, False]))
    assert digest_of(spec, {**plain, **floats, "g": narrow}) == first
    assert digest_of(spec, {**plain, "x": pa.array([1.0, np.nan, 2.0])}) == first, "NaN is a null"
    assert digest_of(spec, {**plain, "x": np.array([1.0, np.nan, 2.0])}) == first
    assert digest_of(spec, {**plain, "x": pa.array([1.0, 0.0, 2.0])}) != first
    assert digest_of(spec, {**plain, **floats, "g": pa.array(["1", None, "3"])}) != first
    # A boundary between two texts is no part of a text.
    of_texts = load_spec({**BARE, "groups": {"g": ["a"]}})
    one, other = (digest_of(of_texts, {"g": g, "flag": [True, True]}) for g in (["ab", "c"], ["a", "bc"]))
    assert one != other


SECRET = "zq-secret-817"  # noqa: S105 - a value of a row
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a path": ("visits.parquet", UsageError, "source="),
    "a series": (pd.Series([True], name="flag"), UsageError, "Series"),
    "a list": ([{"flag": True}], UsageError, "a list"),
    "objects of two kinds": (
        pd.DataFrame({"flag": [True, SECRET, None]}),
        SchemaError,
        "'flag' is of dtype object, and its values are not all numbers",
    ),
    "a list of two kinds": ({"flag": [True, SECRET]}, SchemaError, "'flag' is a list"),
    "nested values": (pd.DataFrame({"flag": [[True], [False]]}), SchemaError, "'flag' is nested"),
    "bytes": (pd.DataFrame({"flag": [b"1", b"0"]}), SchemaError, "'flag' is binary"),
    "periods": (
        pd.DataFrame({"flag": pd.period_range("2013-01", periods=2, freq="M")}),
        SchemaError,
        "'flag' is of dtype period",
    ),
    "texts where truth values are needed": (pd.DataFrame({"flag": [SECRET]}), SchemaError, "'flag' is text"),
    "no such column": (pd.DataFrame({"flags": [True]}), SchemaError, "no column 'flag'"),
    "twice": (
        pd.DataFrame([[True, False]], columns=["flag", "flag"]),
        SchemaError,
        "occurs 2 times",
    ),
    "in the index": (
        pd.DataFrame({"flag": [True], "x": [1]}).set_index("flag"),
        SchemaError,
        "data.reset_index()",
    ),
    "of different lengths": ({"flag": [True], "g": [1, 2]}, UsageError, "different lengths"),
    "huge integers": (pd.DataFrame({"flag": [2**70, 1]}), SchemaError, "'flag'"),
    "complex numbers": (pd.DataFrame({"flag": [1j]}), SchemaError, "'flag' is of dtype complex"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_by_column_and_rule(what: str) -> None:
    data, kind, text = REFUSED[what]
    groups = {"groups": {"g": ["1"]}} if what == "of different lengths" else {}
    with pytest.raises(kind) as caught:
        sums_of(load_spec({**BARE, **groups}), data)
    assert text in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


VIEWS = pa.array(["1", None, "0"], pa.string_view())
ARRAYS = {
    **{
        str(kind): pa.nulls(3, kind)
        for kind in (pa.null(), pa.list_(pa.int8()), pa.binary_view(), pa.duration("s"), pa.time32("s"))
    },
    **{str(kind): pa.array([1, None, 0], kind) for kind in (pa.float16(), pa.uint64(), pa.date64())},
    **{
        str(kind): pa.array([Decimal(1), None, Decimal(0)], kind)
        for kind in (pa.decimal128(5, 2), pa.decimal256(60, 3))
    },
    "decimal32": pa.array([Decimal("1.0"), None, Decimal("0.0")], pa.decimal32(5, 1)),
    "struct": pa.array([{"a": 1}, None, {"a": 0}]),
    "run ends": pa.RunEndEncodedArray.from_arrays([2, 3], [True, False]),
    "views": VIEWS,
    "a dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1], pa.uint32()), pa.array(["1", "0"], pa.string_view())
    ),
    "a dictionary of numbers": pa.array([1, None, 0]).dictionary_encode(),
    "a dictionary of truth values": pa.array([True, None, False]).dictionary_encode(),
    "complex": np.array([1j, 2, 0]),
    "structured": np.zeros(3, dtype=[("a", int)]),
    "two dimensions": np.zeros((3, 2)),
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("family", [None, "boolean", "integer", "text"])
def test_every_type_is_read_or_refused_by_a_typed_error(kind: str, family: str | None) -> None:
    spec = load_spec({**BARE, "groups": {"x": ["1", "0"]}})
    contract = None if family is None else contract_of(flag="boolean", x=family)
    rows = {"flag": [True, False, True], "x": ARRAYS[kind]}
    if family is not None:
        sums_of(spec, rows, contract)
        return
    try:
        sums_of(spec, rows)
    except SchemaError as error:
        assert "'x'" in str(error)  # noqa: PT017 - or it is read


def test_a_stream_is_read_once() -> None:
    table = pa.table({"flag": [True, False]})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert sums_of(load_spec(BARE), reader) == sums_of(load_spec(BARE), table)
    with pytest.raises((UsageError, SchemaError)):
        sums_of(load_spec(BARE), Stream(None))


def test_rows_that_change_meanwhile_are_noticed() -> None:
    flags = np.array([1.0, 0.0, 1.0])
    rows = given_rows.of({"flag": flags}, ("flag",))
    pin = sources.pin(load_spec(BARE), "all", None, rows)
    sources.check(pin)
    flags[1] = 1.0
    with pytest.raises(StageFailedError, match="changed since the release began"):
        sources.check(pin)


def test_rows_are_neither_shown_nor_copied() -> None:
    rows = given_rows.of(pd.DataFrame({"flag": [SECRET]}), ("flag",))
    pin = sources.pin(load_spec({**BARE, "groups": {"flag": ["a"]}}), "all", None, rows)
    assert SECRET not in repr((rows, pin, pin.private, *sources.splits(pin)))
    assert rows.digest() not in repr((rows, pin, pin.private))
    for held in (rows, pin, pin.private, sources.splits(pin)[0].pieces[0]):
        with pytest.raises(TypeError):
            pickle.dumps(held)
        with pytest.raises(TypeError):
            copy.deepcopy(held)


def contract_of(unit: str = "row", **columns: str) -> DataContract:
    families = {name: ColumnFamily(family) for name, family in columns.items()}
    return DataContract(columns=families, unit=unit, source=SourceForm(kind="data"))


def test_by_a_contract_no_type_is_refused_and_each_value_counts_for_itself() -> None:
    spec = load_spec({**BARE, "groups": {"day": ["2013-01-01", "2013-01-02"]}})
    contract = contract_of(flag="boolean", day="date")
    day = dt.date(2013, 1, 1)
    plain = {"flag": [True, False, True, True], "day": [day, day, day, None]}
    wanted = sums_of(spec, plain)
    mixed = {
        "flag": [1, "false", True, b"odd"],
        "day": ["2013-01-01", day, dt.datetime(2013, 1, 1), 7],  # noqa: DTZ001 - of no zone
    }
    assert sums_of(spec, pd.DataFrame(mixed), contract) == wanted
    assert sums_of(spec, {"day": [day]}, contract) == sums_of(spec, {**plain, "flag": [None] * 4}, contract)
    assert sums_of(spec, pd.DataFrame({"flag": [], "other": []}), contract) == sums_of(
        spec, pa.table({"flag": pa.array([], pa.bool_()), "day": pa.array([], pa.date32())})
    )


@pytest.mark.parametrize(
    ("family", "values", "wanted"),
    [
        (
            "integer",
            [1, "1", 1.0, Decimal("1.00"), True, "x", 2**70, 1.5],
            [1, 1, 1, 1, None, None, None, None],
        ),
        (
            "floating",
            ["0.5", Decimal("0.5"), 0.5, np.float32(0.5), "x", dt.date(2013, 1, 1)],
            [0.5] * 4 + [None] * 2,
        ),
        ("text", ["1", 1, 1.0, Decimal(1), True, 1.5, b"1"], ["1", "1", "1", "1", "true", None, None]),
        ("boolean", [True, 1, "true", 0, 2, "yes"], [True, True, True, False, None, None]),
    ],
)
def test_values_of_several_types_read_as_the_contract_says(
    family: str, values: list[Any], wanted: list[Any]
) -> None:
    spec = load_spec({**BARE, "groups": {"column": ["1"]}})
    contract = contract_of(flag="boolean", column=family)
    rows = given_rows.of(
        {"column": [*values, object()], "flag": [True] * (len(values) + 1)}, spec_columns(spec)
    )
    (split,) = sources.splits(sources.pin(spec, "all", contract, rows))
    (batch,) = sources.read(split, ("column",), 100)
    read = batch.column(0).to_pylist()[:-1]
    if family == "integer":  # a truth value is 1 where a column holds nothing else
        assert read[:4] + read[5:] == wanted[:4] + wanted[5:]
    else:
        assert read == wanted


def test_a_unit_that_is_there_and_does_not_read_enters_nothing() -> None:
    unit = {"column": "who", "max_rows": "5", "nulls": "own_unit"}
    spec = load_spec({**BARE, "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}})
    contract = contract_of("column:who", flag="boolean", who="integer")
    odd = {"flag": [True] * 5, "who": [1, "2", b"odd", None, "three"]}
    assert sums_of(spec, odd, contract) == {"flag": [[0, 3]]}
    assert sums_of(spec, {"flag": [True] * 5}, contract) == {"flag": [[0, 0]]}, "nobody can tell whose"


def test_without_a_source_and_without_rows_nothing_is_pinned() -> None:
    with pytest.raises(UsageError, match=r"names no source.*data=frame"):
        sources.pin(load_spec(BARE))


def test_a_file_of_text_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="source="):
        given_rows.of(tmp_path / "rows.csv", ("flag",))
