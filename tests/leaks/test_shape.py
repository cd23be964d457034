"""Nothing about a release's shape follows the data: only values, estimates and hashes differ."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from suffice.pipeline.terms.statistics.statistic_plan import DECIMAL, INT64, StatisticPlan
from suffice.storage.releases.release_parquet import encode_statistic
from support.making import mapping
from support.releases import Values, make_plan, public_n_plan, publish
from support.samples import drawn, drawn_quantile

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan

N_VECTORS = 200
WIDTH = {INT64: 8, DECIMAL: 16}
EXTREMES = {
    INT64: [0, 1, -1, 2**63 - 1, -(2**63), 10**30],
    DECIMAL: [0, 1, -1, 10**38 - 1, 1 - 10**38, 10**40],
}


def value_vectors(value_type: str, size: int) -> list[list[int]]:
    """Return constant vectors, extreme ones, and random ones of every magnitude."""
    extremes = EXTREMES[value_type]
    vectors = [[value] * size for value in extremes]
    vectors += [[extremes[index % len(extremes)] for index in range(size)]]
    rng = np.random.default_rng(2013)
    while len(vectors) < N_VECTORS:
        parts = rng.integers(-(2**62), 2**62, (2, size)).astype(object)
        magnitude = int(rng.integers(1, 63 if value_type == INT64 else 120))
        vectors.append([int(value) for value in (parts[0] * 2**62 + parts[1]) // 2 ** (124 - magnitude)])
    return vectors


def array(plan: Plan, vector: list[int]) -> Any:
    return np.array(vector, dtype=object).reshape(plan.n_cells, -1)


def blanked(data: bytes, value_type: str) -> bytes:
    """Return a file without the numbers of its two columns of numbers."""
    kept = bytearray(data)
    columns = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    for index, width in ((columns.num_columns - 2, WIDTH[value_type]), (columns.num_columns - 1, 8)):
        column = columns.column(index)
        end = column.data_page_offset + column.total_compressed_size
        length = column.num_values * width
        kept[end - length : end] = bytes(length)
    return bytes(kept)


@pytest.mark.parametrize("value_type", [INT64, DECIMAL])
def test_files_of_all_values_differ_in_their_numbers_only(value_type: str) -> None:
    plan = make_plan(groups={"origin": ["EWR", "Zürich"], "month": {"range": ["1", "12"]}})
    statistic: StatisticPlan = replace(plan.statistics[0], value_type=value_type)
    vectors = value_vectors(value_type, plan.n_cells * len(statistic.components))
    files = {encode_statistic(statistic, array(plan, vector)) for vector in vectors}
    assert len(files) > N_VECTORS - 3
    assert len({len(data) for data in files}) == 1
    assert len({blanked(data, value_type) for data in files}) == 1
    # The same comparison of what pyarrow writes by default fails.
    plain = []
    for data in files:
        sink = io.BytesIO()
        pq.write_table(pq.read_table(io.BytesIO(data)), sink)
        plain.append(sink.getvalue())
    assert len({len(data) for data in plain}) > 1


@pytest.mark.slow
def test_files_of_all_samples_differ_in_their_indices_only() -> None:
    plan = make_plan(
        groups={"origin": ["EWR", "Zürich"], "month": {"range": ["1", "12"]}},
        statistics={"drawn": drawn("cancelled", draws="3", grid="4097")},
    )
    (statistic,) = plan.statistics
    rng = np.random.default_rng(2013)
    shape = (plan.n_cells, 3)
    vectors = [np.full(shape, index) for index in (0, 1, 127, 128, 4096)]
    vectors += [rng.integers(0, rng.integers(1, 4098), shape) for _ in range(N_VECTORS)]
    files = {encode_statistic(statistic, vector) for vector in vectors}
    assert len(files) > N_VECTORS - 3
    assert len({len(data) for data in files}) == 1

    def blanked_sample(data: bytes) -> bytes:
        kept = bytearray(data)
        column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(3)
        assert column.path_in_schema == "value"
        end = column.data_page_offset + column.total_compressed_size
        kept[end - 8 * column.num_values : end] = bytes(8 * column.num_values)
        return bytes(kept)

    assert len({blanked_sample(data) for data in files}) == 1


def test_files_hold_no_statistics_no_dictionary_and_no_metadata() -> None:
    plan = make_plan(
        statistics={**mapping("")["statistics"], "drawn": drawn("cancelled"), "p90": drawn_quantile("stops")}
    )
    for statistic in plan.statistics:
        values = np.zeros((plan.n_cells, statistic.n_values), dtype=object)
        footer = pq.ParquetFile(io.BytesIO(encode_statistic(statistic, values))).metadata
        assert footer.metadata is None
        assert footer.num_row_groups == 1
        assert footer.created_by.startswith("parquet-cpp-arrow version")
        for index in range(footer.num_columns):
            column = footer.row_group(0).column(index)
            assert column.statistics is None
            assert not column.has_dictionary_page
            assert not column.has_column_index
            assert not column.has_offset_index
            assert column.compression == "UNCOMPRESSED"


def without_hashes(content: dict[str, Any]) -> dict[str, Any]:
    files = [{**file, "sha256": None} for file in content["files"]]
    return {**content, "files": files, "checksum": None}


@pytest.mark.parametrize("plan", [make_plan(), public_n_plan()])
def test_releases_of_neighbours_have_the_same_names_sizes_and_manifests(tmp_path: Path, plan: Plan) -> None:
    empty: Values = {
        statistic.name: np.zeros((plan.n_cells, len(statistic.components)), dtype=object)
        for statistic in plan.statistics
    }
    full: Values = {name: values + 2**62 for name, values in empty.items()}
    mixed: Values = {name: values.copy() for name, values in empty.items()}
    for values in mixed.values():
        values[0, 0] = -(10**39)
    shapes, manifests, contents = [], [], []
    for number, of_statistics in enumerate((empty, full, mixed)):
        directory = publish(tmp_path / str(number), plan, of_statistics)
        paths = sorted(directory.iterdir())
        shapes.append([(path.name, path.stat().st_size, path.stat().st_mode) for path in paths])
        contents.append({path.read_bytes() for path in paths})
        manifests.append(without_hashes(json.loads((directory / "manifest.json").read_bytes())))
    assert shapes[0] == shapes[1] == shapes[2]
    assert manifests[0] == manifests[1] == manifests[2]
    assert not contents[0] & contents[1]
