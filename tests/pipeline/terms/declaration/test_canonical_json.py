"""Canonical JSON: one byte sequence per document."""

from __future__ import annotations

from typing import Any

import pytest

from suffice.pipeline.terms.declaration import canonical_json


def test_documents_come_back_and_keys_are_sorted() -> None:
    document = {"b": [1, -2, None, True], "a": {"ü": 'é\n"\\', "z": 2**53 - 1}, "": []}
    data = canonical_json.encode(document)
    assert data == '{"":[],"a":{"z":9007199254740991,"ü":"é\\n\\"\\\\"},"b":[1,-2,null,true]}'.encode()
    assert canonical_json.decode(data) == document


@pytest.mark.parametrize("value", [0.5, float("nan"), 2**53, -(2**53), {1: "x"}, (1, 2), b"x", "\ud800"])
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"canonical JSON|surrogates"):
        canonical_json.encode({"x": [value]})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"a":1} ',
        b' {"a":1}',
        b'{"a":1}\n',
        b'{"a": 1}',
        b'{"b":1,"a":2}',
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"a":1.0}',
        b'{"a":1e3}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-0}',
        b'{"a":01}',
        b'{"a":9007199254740992}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":"\\u0041"}',
        b'{"a":"\\/"}',
        b'{"a":"\\ud800"}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":"\xff"}',
        b"[" * 100_000,
        '{"a":1}'.encode("utf-16"),
    ],
)
def test_bytes_that_would_not_have_been_written_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="canonical JSON"):
        canonical_json.decode(data)
