"""What is written into records is read back, and records say no more than what was encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.rows.chunk.encoding import NO_POSITION, column_reader
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.contribution.records import RecordLayout, RecordReader
from support.hostile import categorical, hostile_table, make_spec, normal, poisson
from support.units import KEY

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec


def wide_spec(directory: Path) -> Spec:
    """Return a spec whose records need several words, with the widest and the narrowest columns."""
    return make_spec(
        directory,
        {
            "fine": normal("measure", "-60", "60", lattice_bits="24"),
            "coarse": normal("measure", "-60", "60", lattice_bits="2"),
            "count": poisson("whole", "1000000000"),
            "one": categorical("text", ["a"]),
            "two": categorical("text", ["a", "b"], other="true"),
            "again": categorical("text", ["a", "b"], other="true"),
            "zero": normal("whole", "-1", "1", nulls={"value": 0}),
        },
        groups={"tiny": {"range": ["0", "3"]}, "flag": ["true", "false"]},
        privacy={
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "digits", "max_rows": "3"},
        },
    )


def test_records_hold_what_the_readers_read(tmp_path: Path) -> None:
    job = chunk_job(wide_spec(tmp_path))
    layout = RecordLayout.of(job)
    (batch,) = hostile_table(3000, seed=4).to_batches()
    reader = RecordReader(job, KEY)
    rows = reader.rows(batch)
    chosen = np.flatnonzero(rows.cells[0] >= 0).astype(np.int32)[::-1].copy()
    records = reader.records(rows, chosen)
    assert records.shape == (len(chosen), layout.n_words)
    assert (records[:, :2] == rows.units[chosen]).all()
    assert (layout.cells_of(records, 0) == job.cell_reader().read(batch)[0][chosen]).all()
    for measure in job.measures.values():
        for of in measure.reads:
            assert (layout.column(records, of) == column_reader(of).read(batch)[chosen]).all()
    assert len(layout.columns) == 6, "a column that two statistics read alike is held once"
    fields = [*layout.cells, *layout.columns.values()]
    taken = np.zeros((layout.n_words, 64), int)
    for field in fields:
        assert field.shift + field.bits <= 64
        taken[field.word, field.shift : field.shift + field.bits] += 1
    assert taken.max() == 1
    assert not taken[:2].any()
    unused = [sum(1 << bit for bit in range(64) if not taken[word, bit]) for word in range(2, layout.n_words)]
    assert not (records[:, 2:] & np.array(unused, np.uint64)).any(), "equal rows have equal records"


@pytest.mark.parametrize("order", ["integer", "unsigned", "float", "price", "day", "instant", "flag", "tiny"])
def test_places_are_in_the_columns_order(tmp_path: Path, order: str) -> None:
    spec = wide_spec(tmp_path)
    made = chunk_job(spec)
    job = type(made)(
        measures=made.measures, groups={name: {} for name in made.measures}, unit=made.unit, orders=(order,)
    )
    table = hostile_table(800, seed=9)
    (batch,) = table.to_batches()
    reader = RecordReader(job, KEY)
    rows = reader.rows(batch)
    records = reader.records(rows, np.arange(800, dtype=np.int32))
    places = RecordLayout.of(job).order(records, order)
    positions = list(zip(places.floors.tolist(), places.rests.tolist(), strict=True))
    values = table[order].to_pylist()
    values = [None if isinstance(value, float) and np.isnan(value) else value for value in values]
    known = [
        (value, position) for value, position in zip(values, positions, strict=True) if value is not None
    ]
    by_value = sorted({value for value, _ in known})
    by_position = sorted({position for _, position in known})
    number = {value: index for index, value in enumerate(by_value)}
    position_number = {position: index for index, position in enumerate(by_position)}
    assert [number[value] for value, _ in known] == [position_number[position] for _, position in known]
    assert {position for value, position in zip(values, positions, strict=True) if value is None} == {
        (NO_POSITION, 0)
    }
