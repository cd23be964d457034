"""Lines of delimited text as columns of text: each line is a record, read by itself.

The state of a quote never crosses the end of a line, so one line says nothing about the next. A malformed
line is a row of nulls: a wrong number of fields, quotes that do not enclose a field, bytes that are no
UTF-8, or more of them than `LONGEST_LINE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import masked_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Positions = NDArray[np.int64]
    Flags = NDArray[np.bool_]

LONGEST_LINE = 1 << 20
"""Bytes of a line, without its end; one that is longer is malformed."""
BLOCK_BYTES = 1 << 20
"""Bytes that are read at a time; a block has at most that and a longest line."""

_NEWLINE, _RETURN = b"\n\r"
_MALFORMED = b"\xff\n"
"""What stands for a line that is too long to be held: no UTF-8 either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How a line is divided.

    Parameters
    ----------
    delimiter : str
        One ASCII sign between fields.
    quote : str
        One ASCII sign around fields that may hold delimiters; doubled inside them. Empty: there is none.
    n_fields : int
        Fields of a line, at least one.
    """

    delimiter: str
    quote: str
    n_fields: int


def line_blocks(file: BinaryIO, start: int, stop: int) -> Iterator[bytes]:
    """Read the lines that stand in a range of a file: blocks of whole lines, each with its end.

    Parameters
    ----------
    file : BinaryIO
        The file.
    start, stop : int
        Where the first line begins, and where the last one ends.
    """
    file.seek(start)
    left = stop - start
    begun, is_too_long = b"", False
    while left > 0:
        read = file.read(min(BLOCK_BYTES, left))
        if not read:
            break
        left -= len(read)
        end = read.rfind(b"\n") + 1
        if not end:
            begun += b"" if is_too_long else read
            if len(begun) > LONGEST_LINE + 1:  # its last byte may belong to the end
                begun, is_too_long = b"", True
            continue
        if is_too_long:
            first = read.index(b"\n") + 1
            yield _MALFORMED + read[first:end]
        else:
            yield begun + read[:end]
        begun, is_too_long = read[end:], False
    if is_too_long:
        yield _MALFORMED
    elif begun:
        yield begun + b"\n"


def fields_of(line: bytes, delimiter: str, quote: str) -> list[str | None] | None:
    """Return the fields of one line; None where it is malformed."""
    signs = np.frombuffer(line, np.uint8)
    delimiters = np.flatnonzero(signs == ord(delimiter))
    if quote:
        quotes = np.flatnonzero(signs == ord(quote))
        delimiters = delimiters[~_is_quoted(delimiters, quotes, np.zeros(1, np.int64))]
    form = LineFormat(delimiter=delimiter, quote=quote, n_fields=len(delimiters) + 1)
    block = line if line.endswith(b"\n") else line + b"\n"
    fields = [text[0].as_py() for text in columns_of(block, form, range(form.n_fields))]
    return None if all(field is None for field in fields) else fields


def columns_of(block: bytes, form: LineFormat, positions: Sequence[int]) -> list[pa.Array]:
    """Return columns of whole lines as text; malformed lines and empty fields are null.

    An empty field in quotes is an empty text.

    Parameters
    ----------
    block : bytes
        Lines, each with its end: a newline, or a carriage return and a newline.
    form : LineFormat
        How they are divided.
    positions : sequence of int
        Which fields are returned.
    """
    signs = np.frombuffer(block, np.uint8)
    newlines = np.flatnonzero(signs == _NEWLINE)
    starts = np.concatenate([[0], newlines[:-1] + 1])
    ends = newlines - ((newlines > starts) & (signs[newlines - 1] == _RETURN))
    bad = (ends - starts > LONGEST_LINE) | _is_not_utf8(block, signs, starts, newlines)
    delimiters = np.flatnonzero(signs == ord(form.delimiter))
    if form.quote:
        quotes = np.flatnonzero(signs == ord(form.quote))
        bad |= _is_misquoted(signs, quotes, starts, ends, form)
        delimiters = delimiters[~_is_quoted(delimiters, quotes, starts)]
    lines, counts = _lines_of(delimiters, starts)
    bad |= counts != form.n_fields - 1
    good = np.flatnonzero(~bad)
    between = delimiters[~bad[lines]].reshape(len(good), form.n_fields - 1)
    # Field j begins after edge j, and ends at edge j + 1.
    edges = np.column_stack([starts[good] - 1, between, ends[good]])
    texts = [
        _texts(block, edges[:, position] + 1, edges[:, position + 1], good, form, len(newlines))
        for position in positions
    ]
    doubled = form.quote * 2
    if form.quote and doubled.encode() in block:
        texts = [pc.replace_substring(text, doubled, form.quote) for text in texts]
    return texts


def _texts(
    block: bytes, starts: Positions, ends: Positions, lines: Positions, form: LineFormat, n_lines: int
) -> pa.Array:
    """Return one field of some lines as a column of all lines, without the quotes around it."""
    is_filled = ends > starts
    if form.quote:
        is_enclosed = is_filled & (np.frombuffer(block, np.uint8)[starts] == ord(form.quote))
        starts, ends = starts + is_enclosed, ends - is_enclosed
    # The block seen as fields and what stands between them: every other piece is a field.
    offsets = np.column_stack([starts, ends]).astype(np.int32)
    pieces = pa.StringArray.from_buffers(max(0, offsets.size - 1), pa.py_buffer(offsets), pa.py_buffer(block))
    chosen = np.zeros(n_lines, np.int32)
    chosen[lines] = np.arange(len(lines), dtype=np.int32) * 2
    is_null = np.ones(n_lines, np.bool_)
    is_null[lines] = ~is_filled
    return pieces.take(masked_array(chosen, is_null))


def _lines_of(positions: Positions, starts: Positions) -> tuple[Positions, Positions]:
    """Return the lines of ascending positions, and how many of them each line has."""
    counts = np.diff(np.searchsorted(positions, starts), append=len(positions))
    return np.repeat(np.arange(len(starts)), counts), counts


def _rank(positions: Positions, quotes: Positions, starts: Positions) -> Positions:
    """Return how many quotes stand before these ascending positions in their own lines."""
    lines, _ = _lines_of(positions, starts)
    return np.searchsorted(quotes, positions) - np.searchsorted(quotes, starts)[lines]


def _is_quoted(positions: Positions, quotes: Positions, starts: Positions) -> Flags:
    """Tell which positions stand inside of quotes of their own line."""
    if not len(quotes):
        return np.zeros(len(positions), np.bool_)
    is_odd: Flags = _rank(positions, quotes, starts) % 2 == 1
    return is_odd


def _is_misquoted(
    signs: Bytes, quotes: Positions, starts: Positions, ends: Positions, form: LineFormat
) -> Flags:
    """Tell which lines have quotes that do not enclose a whole field."""
    bad = np.zeros(len(starts), np.bool_)
    if not len(quotes):
        return bad
    lines, counts = _lines_of(quotes, starts)
    rank = np.arange(len(quotes)) - np.repeat(np.cumsum(counts) - counts, counts)
    opens = rank % 2 == 0
    delimiter, quote = ord(form.delimiter), ord(form.quote)
    before, after = signs[quotes - 1], signs[quotes + 1]  # a block ends with a newline
    # An opening quote begins a field or follows a closing one, as half of a doubled quote; so the other way.
    begins = (quotes == starts[lines]) | (before == delimiter) | ((before == quote) & (rank > 0))
    finishes = (
        (quotes + 1 == ends[lines]) | (after == delimiter) | ((after == quote) & (quotes + 1 < ends[lines]))
    )
    bad[lines[np.where(opens, ~begins, ~finishes)]] = True
    is_bad: Flags = bad | (counts % 2 == 1)
    return is_bad


def _is_not_utf8(block: bytes, signs: Bytes, starts: Positions, newlines: Positions) -> Flags:
    """Tell which lines hold bytes that are no UTF-8."""
    bad = np.zeros(len(starts), np.bool_)
    if _is_utf8(block):
        return bad
    beyond_ascii = np.flatnonzero(signs >= 0x80)
    for line in np.unique(np.searchsorted(newlines, beyond_ascii)).tolist():
        bad[line] = not _is_utf8(block[starts[line] : newlines[line]])
    return bad


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
