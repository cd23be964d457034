"""Skeletons of specs: of delimited text they name each column; types are for a person or a sample."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from suffice.errors import SpecError, UsageError
from suffice.pipeline.rows.sources.skeleton import dbt_skeleton, skeleton
from suffice.pipeline.spec.spec import load_spec

if TYPE_CHECKING:
    from pathlib import Path

LINES = """\
day,place,amount,late,note,at
2024-01-05,north,3,0,"a, b",2024-01-05 10:00
2024-01-06,CANARY,5,1,,2024-01-06 11:30
"""


def write(folder: Path, text: str = LINES) -> Path:
    folder.mkdir()
    (folder / "a.csv").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["rows", "rows/", "rows/a.csv", "rows/*.csv"])
def test_files_of_text_are_known_by_their_names(name: str, tmp_path: Path) -> None:
    write(tmp_path / "rows")
    text = skeleton(f"{tmp_path}/{name}", relative_to=tmp_path)
    source = yaml.safe_load(text)["source"]
    assert source == {"csv": name, "columns": dict.fromkeys(["day", "place", "amount", "late", "note", "at"])}
    assert "CANARY" not in text
    stated = tmp_path / "spec.yaml"
    stated.write_text(text.replace("dataset:  ", "dataset: x").replace("epsilon:  ", 'epsilon: "1" '))
    with pytest.raises(SpecError, match=r"source\.columns\.day: the value is missing"):
        load_spec(stated)


def test_a_sample_proposes_types_and_no_value_of_it(tmp_path: Path) -> None:
    write(tmp_path / "rows", "day,place,amount,late,note,at,more\n")
    sample = tmp_path / "sample.csv"
    sample.write_text(LINES, encoding="utf-8")
    text = skeleton(str(tmp_path / "rows"), relative_to=tmp_path, sample=str(sample))
    assert yaml.safe_load(text)["source"]["columns"] == {
        "day": "date",
        "place": "text",
        "amount": "integer",
        "late": "boolean",
        "note": "text",
        "at": "timestamp",
        "more": None,
    }
    assert "  amount: {family: normal, column: amount, lower: , upper: }\n" in text
    assert "  late: {family: bernoulli, column: late}\n" in text
    assert "  # more: state what its values are" in text
    assert "window: {column: day, every: month}" in text
    assert "CANARY" not in text


def test_numbers_and_texts_named_like_a_date_may_be_read_as_a_window(tmp_path: Path) -> None:
    write(tmp_path / "rows", "dt,place,updates\n")
    stated = "{csv: rows/, columns: {dt: integer, place: text, updates: integer}}"
    text = skeleton(stated, relative_to=tmp_path)
    optional = text[text.index("# derived:") : text.index("statistics:")]
    # As a reader who wants it: the marks of comments taken away.
    wanted = text.replace(optional, re.sub(r"(?m)^# ", "", optional))
    filled = (
        wanted.replace("dataset:  ", "dataset: x")
        .replace("epsilon:  ", 'epsilon: "1" ')
        .replace("lower: , upper: ", "lower: 0, upper: 1")
        .replace("categories: ,", "categories: [a],")
    )
    path = tmp_path / "spec.yaml"
    path.write_text(filled, encoding="utf-8")
    spec = load_spec(path)
    assert spec.window is not None
    assert (spec.window.column, *spec.derived) == ("day", "day")
    without = "{csv: rows/, columns: {updates: integer, place: text}}"
    assert "window:" not in skeleton(without, relative_to=tmp_path)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1"] * 19 + ["2"], "integer"),
        (["1"] * 10 + ["2.5"] * 10, "number"),
        (["2.5"] * 18 + ["n/a"] * 2, "number"),
        (["2.5"] * 17 + ["n/a"] * 3, "text"),
        ([""] * 20, None),
        (["2024-01-05T10:00Z"], "timestamp_with_offset"),
    ],
)
def test_a_type_is_the_narrowest_of_those_that_most_values_have(
    values: list[str], kind: str | None, tmp_path: Path
) -> None:
    write(tmp_path / "rows", "x,y\n")
    sample = tmp_path / "sample.csv"
    sample.write_text("x,y\n" + "".join(f"{value},z\n" for value in values), encoding="utf-8")
    text = skeleton(str(tmp_path / "rows"), relative_to=tmp_path, sample=str(sample))
    assert yaml.safe_load(text)["source"]["columns"]["x"] == kind


def test_stated_types_stand_beside_columns_that_have_none(tmp_path: Path) -> None:
    write(tmp_path / "rows", LINES.replace(",", ";"))
    text = skeleton('{csv: rows, delimiter: ";", columns: {amount: number}}', relative_to=tmp_path)
    source = yaml.safe_load(text)["source"]
    assert source["delimiter"] == ";"
    assert source["columns"]["amount"] == "number"
    assert source["columns"]["late"] is None


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    write(tmp_path / "rows")
    with pytest.raises(UsageError, match="the first file has no column 'dya'; it has 'day', 'place'"):
        skeleton("{csv: rows, columns: {dya: date}}", relative_to=tmp_path)


def test_a_sample_is_no_file_of_the_source_and_of_text_alone(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows")
    with pytest.raises(UsageError, match="it is a file of the source"):
        skeleton(str(rows), relative_to=tmp_path, sample=str(rows / "a.csv"))
    with pytest.raises(UsageError, match="only columns of delimited text"):
        skeleton("{parquet: a.parquet}", relative_to=tmp_path, sample=str(rows / "a.csv"))


DBT = """\
version: 2

anchors:
  - &id {name: flight_id, description: "{{ doc('flight_id') }}", data_tests: [unique, not_null]}

sources:
  - name: raw
    tables:
      - name: bookings
        columns: [{name: fare, data_type: "NUMBER(38, 2)"}, {name: booked, data_type: TIMESTAMP_NTZ(9)}]

models:
  - name: fct_flights
    description:
    config: {contract: {enforced: true}}
    columns:
      - *id
      - {name: flight_date, data_type: date}
      - name: origin
        data_type: character varying(3)
        data_tests: [{accepted_values: {values: [EWR, JFK, LGA]}}]
      - {name: arr_delay, data_type: double precision}
      - {name: cancelled, data_type: boolean}
      - {name: payload, data_type: variant}

exposures:
  - name: Flights by origin
    type: application
    owner: {name: Privacy, email: privacy@example.org}
    depends_on:
      - ref('marts', 'fct_flights')
    meta: {suffice: {source: {parquet: exports/fct_flights/}}}
  - name: bookings
    type: application
    owner: {name: Privacy}
    depends_on:
      - source('raw', 'bookings')
    config: {meta: {suffice: {source: {csv: bookings.csv}}}}
  - {name: board, type: dashboard, depends_on: [ref('fct_flights')]}
"""


def test_dbt_states_columns_and_types_and_nothing_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "schema.yml"
    file.write_text(DBT, encoding="utf-8")
    text = dbt_skeleton(str(file), "Flights by origin", relative_to=tmp_path)
    spec = yaml.safe_load(text)
    assert (spec["name"], spec["source"]) == ("flights-by-origin", {"parquet": "exports/fct_flights/"})
    assert {name: entry["family"] for name, entry in spec["statistics"].items()} == {
        "origin": "categorical",
        "arr_delay": "normal",
        "cancelled": "bernoulli",
    }
    assert "# window: {column: flight_date" in text
    assert "# payload: state what its values are" in text
    assert "JFK" not in text, "values that dbt accepts may have been read off the data"
    bookings = yaml.safe_load(dbt_skeleton(str(file), "bookings", relative_to=tmp_path))
    columns = {"fare": "number", "booked": "timestamp"}
    assert bookings["source"] == {"csv": "bookings.csv", "columns": columns}
    filled = text.replace("dataset:  ", "dataset: x").replace("epsilon:  ", 'epsilon: "1" ')
    filled = filled.replace("lower: , upper: ", "lower: 0, upper: 1").replace(
        "categories: ,", "categories: [a],"
    )
    assert load_spec(yaml.safe_load(filled)).dataset == "x"


@pytest.mark.parametrize(
    ("change", "exposure", "text"),
    [
        (("", ""), None, "several exposures state"),
        (("", ""), "board", "no exposure of that name"),
        (
            ("ref('marts', 'fct_flights')", "ref('fct_flights')\n      - ref('more')"),
            "Flights by origin",
            "depend on one",
        ),
        (
            ("ref('marts', 'fct_flights')", "ref('elsewhere')"),
            "Flights by origin",
            "which lists its columns in",
        ),
        (("version: 2", "version: [2"), None, "cannot be read as dbt"),
    ],
)
def test_what_dbt_does_not_state_is_named(
    change: tuple[str, str], exposure: str | None, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "schema.yml"
    file.write_text(DBT.replace(*change), encoding="utf-8")
    with pytest.raises(UsageError, match=text):
        dbt_skeleton(str(file), exposure, relative_to=tmp_path)
    file.write_text(DBT.replace("parquet: exports", "parquets: exports"), encoding="utf-8")
    with pytest.raises(SpecError, match="DATA"):
        dbt_skeleton(str(file), "Flights by origin", relative_to=tmp_path)
