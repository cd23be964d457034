"""CSV files: splits at ends of lines, headers, other signs, and names that are never shown."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import SchemaError, SpecError, StageFailedError, UsageError
from suffice.pipeline.rows.sources import csv_files, delimited_lines
from suffice.pipeline.rows.sources.csv_files import pin, read, schema, splits
from suffice.pipeline.rows.sources.inspecting import columns_of_texts, proposed_contract
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.contract_fit import check_contract
from suffice.pipeline.spec.spec import load_spec
from support.csv_lines import fields_of_line
from support.hostile import categorical, normal

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.source_specs import CsvSpec

CANARY = "CANARY-51c2"


def spec_of(path: Path, **source: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {"csv": str(path), "columns": {"x": "number"}, **source},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"x": normal("x", "0", "1"), "k": categorical("k", ["a"])},
        }
    )


def rows_read(spec: Spec, *columns: str) -> list[tuple[Any, ...]]:
    parts = splits(pin(spec))
    batches = [batch for split in parts for batch in read(split, columns, 3)]
    assert sum(split.n_rows for split in parts) == sum(batch.num_rows for batch in batches)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.slow
@given(
    lines=st.lists(st.lists(st.sampled_from([b"a", b",", b'"', b"\xff", b"bb"]), max_size=5).map(b"".join)),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
    ends=st.booleans(),
)
@settings(max_examples=60)
def test_every_line_is_in_one_split(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], sizes: tuple[int, int, int], *, ends: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.csv"
    data = b"".join(line + b"\n" for line in lines)
    path.write_bytes(b"x,k\n" + (data if ends or not lines or not lines[-1] else data[:-1]))
    with pytest.MonkeyPatch.context() as patch:
        for module, name, size in zip(
            (csv_files, csv_files, delimited_lines),
            ("RANGE_BYTES", "COUNT_BYTES", "BLOCK_BYTES"),
            sizes,
            strict=True,
        ):
            patch.setattr(module, name, size)
        found = rows_read(spec_of(path, columns={}), "x", "k")
    assert found == [tuple(fields_of_line(line, 2, longest=1 << 20)) for line in lines]


def test_a_stray_quote_costs_its_own_record(tmp_path: Path) -> None:
    lines = [f'{number},"a"' for number in range(10_002)]
    lines[7] = '7,"a'
    lines[3_008] = '3008,"a'
    (tmp_path / "a.csv").write_text("x,k\n" + "\n".join(lines))
    found = rows_read(spec_of(tmp_path), "x", "k")
    assert len(found) == 10_002
    assert [number for number, row in enumerate(found) if row != (float(number), "a")] == [7, 3_008]


def test_a_byte_order_mark_returns_and_other_signs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfx\tk\r\n1\t'a\tb'\r\n\t''\r\n")
    assert rows_read(spec_of(tmp_path, delimiter="tab", quote="'"), "x", "k") == [(1.0, "a\tb"), (None, "")]


def test_columns_of_files_without_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,a,z\n2,b,z\n")
    spec = spec_of(tmp_path, header=["x", "k", "rest"])
    assert rows_read(spec, "k", "x") == [("a", 1.0), ("b", 2.0)]


def test_a_file_without_its_line_of_names_shows_no_record(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"1,{CANARY}\n2,b\n")
    spec = spec_of(tmp_path)
    pinned = pin(spec)
    assert CANARY not in repr([part.columns for part in schema(pinned)])
    with pytest.raises(SchemaError) as caught:
        check_schema(spec, schema(pinned))
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("head", [b"", b'"x,k\n', b"\xff,k\n1,2\n", b"x" * (2 << 20)])
def test_a_first_line_that_names_nothing_is_refused(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(head)
    with pytest.raises(UsageError, match=r"^source\.csv: the first line of .* does not name columns"):
        pin(spec_of(tmp_path))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"delimiter": ";;"}, "one ASCII sign"),
        ({"delimiter": "none"}, "two different signs"),
        ({"delimiter": "a"}, "one ASCII sign"),
        ({"quote": ","}, "two different signs"),
        ({"columns": {"x": "decimal"}}, "not one of text, number"),
        ({"header": []}, "header"),
        ({"encoding": "latin-1"}, "unknown key"),
    ],
)
def test_what_breaks_a_rule_of_the_declaration(tmp_path: Path, source: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        spec_of(tmp_path, **source)


TEXT = b"x,k\n1,a\n2,b\n3,\n"


def compressed(data: bytes, suffix: str) -> bytes:
    """Return data in two parts, as `cat` joins compressed files."""
    codec = pa.Codec({"gz": "gzip", "zst": "zstd", "bz2": "bz2"}[suffix])
    if suffix == "bz2":  # Arrow writes none at once
        return bz2.compress(data[:9]) + bz2.compress(data[9:])
    return b"".join(codec.compress(part, asbytes=True) for part in (data[:9], data[9:]))


@pytest.mark.parametrize("suffix", ["gz", "zst", "bz2"])
def test_compressed_files_are_read_by_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(csv_files, "RANGE_BYTES", 1)
    monkeypatch.setattr(csv_files, "COUNT_BYTES", 5)
    (tmp_path / "a.csv").write_bytes(TEXT)
    (tmp_path / f"b.CSV.{suffix}").write_bytes(compressed(TEXT, suffix))
    rows = [(1.0, "a"), (2.0, "b"), (3.0, None)]
    assert rows_read(spec_of(tmp_path), "x", "k") == rows * 2
    assert rows_read(spec_of(tmp_path / f"b.CSV.{suffix}"), "x", "k") == rows
    without = spec_of(tmp_path / f"b.CSV.{suffix}", header=["x", "k"])
    assert rows_read(without, "k", "x") == [("k", None), *((k, x) for x, k in rows)]


def test_a_damaged_compressed_file_ends_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(TEXT * 100_000)[:-9])
    with pytest.raises(StageFailedError, match="cannot be read"):
        splits(pin(spec_of(path)))
    path.write_bytes(CANARY.encode())
    with pytest.raises(UsageError, match="cannot be read as its name says, by gzip") as caught:
        pin(spec_of(path))
    assert CANARY not in str(caught.value)


def test_a_compressed_file_under_a_plain_name(tmp_path: Path) -> None:
    """Where each line is a record, what a file begins with is data: nothing is refused."""
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(TEXT))
    with pytest.raises(UsageError, match=r"let it end in \.gz"):
        pin(spec_of(path))
    assert all(row == (None, None) for row in rows_read(spec_of(path, header=["x", "k"]), "x", "k"))


def test_a_file_beside_itself_would_count_twice(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TEXT))
    with pytest.raises(UsageError, match="one file by their names"):
        pin(spec_of(tmp_path))
    assert len(rows_read(spec_of(tmp_path / "*.gz"), "x")) == 3


def test_a_contract_says_whether_files_are_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TEXT))
    spec = spec_of(tmp_path / "*.csv*")
    contract = proposed_contract(spec, columns_of_texts(spec, cast("CsvSpec", spec.source)))
    assert contract.source.compression == "by_suffix"
    with pytest.raises(UsageError, match="one file by their names"):
        pin(spec, contract=contract)
    plain = replace(contract, source=replace(contract.source, compression="none"))
    assert [split.n_rows for split in splits(pin(spec, contract=plain))] == [3]
    check_contract(spec, plain)
    with pytest.raises(SchemaError, match="files are not compressed"):
        check_contract(spec_of(tmp_path / "a.csv.gz"), plain)
    (tmp_path / "a.csv").unlink()
    (tmp_path / "a.csv.gz").write_bytes(b"no gzip")
    assert splits(pin(spec, contract=contract)) == ()
