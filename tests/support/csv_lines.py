"""Delimited text read one character after the other: what the reader of whole blocks is compared with."""

from __future__ import annotations


def fields_of_line(line: bytes, n_fields: int, *, longest: int, quote: str = '"') -> list[str | None]:
    """Return the fields of one line, given without its newline; all None where it is malformed."""
    malformed: list[str | None] = [None] * n_fields
    line = line.removesuffix(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return malformed
    if len(line) > longest:
        return malformed
    fields: list[str | None] = []
    rest = text
    while True:
        if quote and rest.startswith(quote):
            field, rest = _quoted(rest[1:], quote)
            if field is None or (not rest.startswith((",", "\n")) and rest):
                return malformed
        else:
            field, comma, after = rest.partition(",")
            if quote and quote in field:
                return malformed
            field, rest = field or None, comma + after
        fields.append(field)
        if not rest:
            return fields if len(fields) == n_fields else malformed
        rest = rest[1:]


def _quoted(text: str, quote: str) -> tuple[str | None, str]:
    field = ""
    while quote in text:
        before, _, text = text.partition(quote)
        field += before
        if not text.startswith(quote):
            return field, text
        field, text = field + quote, text[1:]
    return None, ""
