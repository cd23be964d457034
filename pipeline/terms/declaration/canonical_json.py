"""Canonical JSON: one byte sequence per document, so that a hash names a document."""

from __future__ import annotations

import json

LARGEST_INTEGER = 2**53 - 1
"""Every JSON reader keeps integers up to here exactly; larger exact numbers are written as text."""


def encode(document: object) -> bytes:
    """Write a document: UTF-8, keys sorted by code point, no spaces, no floats.

    Parameters
    ----------
    document : object
        Nested dicts with text keys, lists, text, booleans, None, and integers within +-(2**53 - 1).

    Raises
    ------
    ValueError
        Where it holds anything else.
    """
    _check(document)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def decode(data: bytes) -> object:
    """Read a document, and refuse every byte sequence that :func:`encode` would not have written.

    Raises
    ------
    ValueError
        Where `data` is no JSON, or not canonical: spaces, other key order, duplicate keys, floats.
    """
    try:
        document = json.loads(data.decode())
        canonical = encode(document)
    except (ValueError, RecursionError):
        message = "not canonical JSON: it cannot be read, or holds a number that is no exact integer"
        raise ValueError(message) from None
    if canonical != data:
        message = "not canonical JSON: spaces, key order, duplicate keys or escapes differ"
        raise ValueError(message)
    return document


def _check(document: object) -> None:
    if isinstance(document, dict):
        for key, entry in document.items():
            if not isinstance(key, str):
                message = "canonical JSON has text keys only"
                raise ValueError(message)  # noqa: TRY004 - one error type for whoever decodes
            _check(entry)
    elif isinstance(document, list):
        for entry in document:
            _check(entry)
    elif isinstance(document, int):
        if abs(document) > LARGEST_INTEGER:
            message = "canonical JSON has no integer beyond 2^53 - 1: write it as text"
            raise ValueError(message)
    elif document is not None and not isinstance(document, str):
        message = f"canonical JSON has no {type(document).__name__}"
        raise ValueError(message)
