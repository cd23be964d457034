"""Each line is a record, whatever bytes it has, and one line says nothing about the next."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.sources import delimited_lines
from suffice.pipeline.rows.sources.delimited_lines import LineFormat, columns_of, fields_of, line_blocks
from support.csv_lines import fields_of_line

LONGEST = 9
PARTS = [b"a", b"b", b",", b",", b'"', b'"', b"\r", b"\xc3", b"\xa9", "é".encode(), b"\0", b" "]
LINES = st.lists(st.sampled_from(PARTS), max_size=12).map(b"".join)
FILES = st.lists(LINES, max_size=8)


@pytest.fixture(autouse=True)
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited_lines, "LONGEST_LINE", LONGEST)


def records(data: bytes, form: LineFormat, block_bytes: int, start: int = 0) -> list[list[str | None]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited_lines, "BLOCK_BYTES", block_bytes)
        found = []
        for block in line_blocks(io.BytesIO(data), start, len(data)):
            columns = columns_of(block, form, range(form.n_fields))
            for column in columns:
                column.validate(full=True)
            found += [
                list(record) for record in zip(*(column.to_pylist() for column in columns), strict=True)
            ]
        return found


def expected(lines: list[bytes], form: LineFormat) -> list[list[str | None]]:
    return [fields_of_line(line, form.n_fields, longest=LONGEST, quote=form.quote) for line in lines]


@pytest.mark.slow
@given(
    lines=FILES,
    n_fields=st.integers(1, 3),
    quote=st.sampled_from(['"', ""]),
    block_bytes=st.sampled_from([1, 2, 7, 1000]),
    ends=st.booleans(),
)
@settings(max_examples=200)
def test_hostile_bytes_are_read_as_one_line_after_the_other(
    lines: list[bytes], n_fields: int, quote: str, block_bytes: int, *, ends: bool
) -> None:
    form = LineFormat(delimiter=",", quote=quote, n_fields=n_fields)
    data = b"".join(line + b"\n" for line in lines)
    if lines and lines[-1] and not ends:
        data = data[:-1]
    assert records(data, form, block_bytes) == expected(lines, form)


@pytest.mark.slow
@given(lines=FILES, line=LINES, position=st.integers(0, 8), block_bytes=st.sampled_from([1, 7, 1000]))
@settings(max_examples=200)
def test_neighbours_differ_in_one_record(
    lines: list[bytes], line: bytes, position: int, block_bytes: int
) -> None:
    form = LineFormat(delimiter=",", quote='"', n_fields=2)
    one, other = (
        records(b"".join(each + b"\n" for each in some), form, block_bytes)
        for some in (lines, [*lines[:position], line, *lines[position:]])
    )
    assert len(other) == len(one) + 1
    del other[min(position, len(lines))]
    assert one == other


def test_a_reader_whose_quotes_cross_lines_would_fail() -> None:
    """The same comparison tells a reader that carries the state of a quote."""
    data = b'a,"b\nc,d\ne,"f\n'
    form = LineFormat(delimiter=",", quote='"', n_fields=2)
    carried = [["a", "b\nc,d\ne,"]]
    assert records(data, form, 100) == [[None, None], ["c", "d"], [None, None]] != carried


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (b"a,b\n", ["a", "b"]),
        (b"a,b", ["a", "b"]),
        (b'",""b",\r\n', [',"b', None]),
        (b'"",x', ["", "x"]),
        (b'a,"b', None),
        (b"\xff,b", None),
        (b"", None),
    ],
)
def test_the_fields_of_one_line(line: bytes, fields: list[str | None] | None) -> None:
    assert fields_of(line, ",", '"') == fields
