"""Files of tables: plain, whole, and with what they come from."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.data_files.source import DRAWS, Provenance, ReleaseSource
from suffice.data_files.tables import (
    columns_of,
    csv_bytes,
    csv_metadata,
    json_bytes,
    parquet_bytes,
    table_of,
)

RELEASE = ReleaseSource(label="flights@all", release_id="ab" * 8, manifest_sha256="cd" * 32)
SOURCE = Provenance(
    what=DRAWS, releases=(RELEASE,), statistic="flag", method="noise-aware", prior="Beta(1, 1)", seed=3
)
TEXTS = st.text(max_size=8, alphabet=st.characters(exclude_categories=["Cs"]))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": TEXTS,
            "label": TEXTS | st.none(),
            "draw": st.integers(-(2**63), 2**63 - 1),
            "value": st.floats(allow_nan=False) | st.none(),
        }
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@given(ROWS)
def test_every_format_holds_the_same_rows(rows: list[dict[str, Any]]) -> None:
    table = table_of(columns_of(rows))
    assert pq.read_table(io.BytesIO(parquet_bytes(table, SOURCE))).to_pylist() == rows
    text = csv_bytes(table).decode()
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["key"].removeprefix("'") for row in read] == [row["key"].removeprefix("'") for row in rows]
    assert [row["draw"] for row in read] == [str(row["draw"]) for row in rows]
    numbers = [None if row["value"] == "" else float(row["value"]) for row in read]
    assert numbers == [row["value"] for row in rows]
    document = json.loads(json_bytes(rows, SOURCE))
    finite = [
        {name: None if value in {math.inf, -math.inf} else value for name, value in row.items()}
        for row in rows
    ]
    assert document["rows"] == finite


def test_parquet_is_as_plain_as_that_of_a_release() -> None:
    table = table_of({"key": ["a", "b"] * 50, "none": [None] * 100, "value": [0.5] * 100})
    data = parquet_bytes(table, SOURCE)
    metadata = pq.read_metadata(io.BytesIO(data))
    for place in range(3):
        column = metadata.row_group(0).column(place)
        assert column.compression == "UNCOMPRESSED"
        assert not column.has_dictionary_page
        assert set(column.encodings) <= {"PLAIN", "RLE"}
        assert column.statistics is None
    assert json.loads(metadata.metadata[b"source"]) == SOURCE.document()
    assert metadata.metadata[b"suffice"] == b"written by suffice"


def test_the_metadata_of_a_csv_file_names_columns_and_source() -> None:
    table = table_of({"=key": ["a"], "draw": [1], "value": [0.5], "is_observed": [True]})
    document = json.loads(csv_metadata(table, SOURCE, "draws.csv"))
    assert document["@context"] == "http://www.w3.org/ns/csvw"
    assert document["url"] == "draws.csv"
    header = next(csv.reader(io.StringIO(csv_bytes(table).decode())))
    columns = document["tableSchema"]["columns"]
    assert [column["titles"] for column in columns] == header
    assert [column["datatype"] for column in columns] == ["string", "integer", "number", "boolean"]
    assert document["notes"][0]["source"] == SOURCE.document()


def test_a_source_says_what_is_withdrawn_and_what_is_not_calibrated() -> None:
    withdrawn = ReleaseSource(
        label="a@all", release_id="0" * 16, manifest_sha256="1" * 64, withdrawn="wrong unit"
    )
    source = Provenance(
        what=DRAWS, releases=(RELEASE, withdrawn), statistic="flag", method="plug-in: not calibrated"
    )
    assert [release.get("withdrawn") for release in source.document()["releases"]] == [None, "wrong unit"]
    attributes = source.attributes()
    assert attributes["withdrawn"] == "a@all: wrong unit"
    assert attributes["method"] == "plug-in: not calibrated"
    assert attributes["release"] == "flights@all, a@all"
    assert json.loads(attributes["source"]) == source.document()
    assert "seed" not in source.document()
