"""One customer in a file of integers and in one that pandas wrote as doubles: one unit, or a null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.contribution import unit_ids
from suffice.pipeline.spec.plan import compile_plan
from support.hostile import categorical, make_spec
from support.pandas_files import as_pandas_writes
from support.units import KEY, by_customer, partitions_of, sum_tasks

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from numpy.typing import NDArray

Files = list[list[int | None]]
"""The customers of each row, file by file; pandas writes every second file."""

MAX_ROWS = 2


def totals(directory: Path, files: Files, nulls: str = "drop") -> tuple[NDArray[Any], int]:
    """Return exact totals of the rows, and the sensitivity that is declared."""
    for path in directory.glob("*.parquet"):
        path.unlink()
    for number, ids in enumerate(files):
        table = pa.table({"u": pa.array(ids, pa.int64()), "k": pa.array(["a"] * len(ids), pa.string())})
        written = as_pandas_writes(table) if number % 2 else table
        pq.write_table(written, directory / f"{number}.parquet")
    spec = make_spec(
        directory,
        {"s": categorical("k", ["a"])},
        privacy={
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": by_customer(MAX_ROWS, nulls=nulls),
        },
    )
    sums = to_python(sum_tasks(chunk_job(spec), partitions_of(spec), KEY))["s"].ravel()
    return sums, compile_plan(spec).statistics[0].l1_sensitivity


LARGE = 2**53 + 1


def test_a_large_id_in_two_files_moves_no_more_than_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: Files = [[LARGE, LARGE, LARGE, 7], [LARGE, LARGE, LARGE, None, 7]]
    others: Files = [[7], [None, 7]]
    (with_one, declared), (without, _) = totals(tmp_path, files), totals(tmp_path, others)
    assert declared == MAX_ROWS
    assert np.abs(with_one - without).sum() == MAX_ROWS

    def split(values: NDArray[np.floating]) -> tuple[Any, Any]:
        kinds = np.where(np.isnan(values), unit_ids.IS_NULL, unit_ids.IS_UNIT)
        return unit_ids._written_out(np.nan_to_num(values).astype(np.int64)), kinds

    monkeypatch.setattr(unit_ids, "_of_floats", split)  # a mutant: whatever is whole is a unit
    moved = np.abs(totals(tmp_path, files)[0] - totals(tmp_path, others)[0]).sum()
    assert moved == 2 * MAX_ROWS, "the rounded id would be a second unit"


def test_rows_of_a_rounded_id_are_no_units_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred rows of one customer, each a unit of its own, would move the total fifty times too far."""
    files: Files = [[7], [1734567890123456789] * 100 + [None, None]]
    others: Files = [[7], [None, None]]
    (with_one, declared), (without, _) = (
        totals(tmp_path, files, "own_unit"),
        totals(tmp_path, others, "own_unit"),
    )
    assert declared == MAX_ROWS
    assert with_one.sum() == without.sum() == 3, "rows without an id are units of their own, and nothing else"

    def with_separate_units(values: NDArray[np.floating]) -> tuple[Any, Any]:
        words, kinds = of_floats(values)
        return words, np.where(kinds == unit_ids.IS_ROUNDED, unit_ids.IS_NULL, kinds)

    of_floats = unit_ids._of_floats
    monkeypatch.setattr(unit_ids, "_of_floats", with_separate_units)  # a mutant: what was rounded is a null
    moved = totals(tmp_path, files, "own_unit")[0].sum() - without.sum()
    assert moved == 100


CUSTOMERS = st.sampled_from([1, 2, 2**53 - 1, 2**53, LARGE, LARGE + 1, -LARGE, 2**63 - 1, None])
ROWS = st.lists(CUSTOMERS, max_size=8)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(ROWS, min_size=2, max_size=3),
    customer=CUSTOMERS.filter(bool),
    nulls=st.sampled_from(["drop", "own_unit"]),
)
def test_no_customer_moves_the_totals_further_than_declared(
    tmp_path: Path, files: Files, customer: int, nulls: str
) -> None:
    """The second file always has a null, so that it is one of doubles with and without the customer."""
    files[1].append(None)
    others: Files = [[unit for unit in ids if unit != customer] for ids in files]
    (with_one, declared), (without, _) = totals(tmp_path, files, nulls), totals(tmp_path, others, nulls)
    assert np.abs(with_one - without).sum() <= declared
    kept = sum(ids.count(None) for ids in files) if nulls == "own_unit" else 0
    for unit in {unit for ids in files for unit in ids if unit is not None}:
        rows = sum(
            ids.count(unit)
            for number, ids in enumerate(files)
            if abs(unit) < 2**53 or not number % 2 or None not in ids
        )
        kept += min(rows, MAX_ROWS)
    assert with_one.sum() == kept, "no unit is merged with another, and none is lost but where it was rounded"
