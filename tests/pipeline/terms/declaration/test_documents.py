"""Documents of dataclasses: what is written, and what the schema says of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict

import jsonschema
import pytest

from scripts.schemas.typed import schema_of
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import (
    Also,
    Count,
    Instant,
    Measured,
    Rows,
    counts_by,
    document,
    printed,
)


class Entry(TypedDict):
    name: str
    note: NotRequired[str]


@dataclass(frozen=True, kw_only=True)
class Part:
    size: Count
    limit: Fraction | None = None


@dataclass(frozen=True, kw_only=True)
class Extra:
    length: float


@printed(
    "kind name=part.size limit=part.limit other=another.size note? half ends *extra when rows failure counts"
)
@dataclass(frozen=True, kw_only=True)
class Whole:
    part: Part
    another: Part | None
    extra: Extra
    note: str | None
    ends: tuple[Fraction, Fraction]
    when: Instant
    failure: UsageError
    counts: Annotated[dict[str, int], counts_by(["a", "b"])]
    kind: ClassVar[Literal["whole"]] = "whole"

    @property
    def half(self) -> Measured:
        return math.inf

    def rows(self) -> Annotated[list[dict[str, Any]], Rows(mean=float)]:
        return [{"month": 1, "mean": 0.5}]


WHOLE = Whole(
    part=Part(size=3),
    another=None,
    extra=Extra(length=0.5),
    note=None,
    ends=(Fraction(1, 3), Fraction(5, 2)),
    when=datetime(2026, 1, 31, 8, tzinfo=UTC),
    failure=UsageError("no"),
    counts={"a": 1, "b": 2},
)


def test_a_document_has_the_keys_that_are_stated_in_their_order() -> None:
    written = document(WHOLE)
    assert list(written.items()) == [
        ("kind", "whole"),
        ("name", 3),
        ("limit", None),
        ("other", None),
        ("half", None),
        ("ends", ["1/3", "2.5"]),
        ("length", 0.5),
        ("when", "2026-01-31T08:00:00Z"),
        ("rows", [{"month": 1, "mean": 0.5}]),
        ("failure", {"type": "UsageError", "message": "no", "exit_status": UsageError.exit_status}),
        ("counts", {"a": 1, "b": 2}),
    ]
    assert document(WHOLE, "name=note") == {"name": None}
    assert document({"x": (WHOLE.part,)}) == {"x": [{"size": 3, "limit": None}]}


def test_its_schema_takes_it_and_nothing_else() -> None:
    schema = jsonschema.Draft202012Validator(schema_of(Whole))
    written = document(WHOLE)
    schema.validate(written)
    schema.validate({**written, "note": "x", "other": 1})
    for wrong in (
        {"note": None},
        {"kind": "part"},
        {"name": -1},
        {"ends": ["1"]},
        {"ends": ["1", "x"]},
        {"rows": [{"month": 1}]},
        {"counts": {"a": 1}},
        {"more": 1},
    ):
        assert not schema.is_valid({**written, **wrong}), wrong
    assert not schema.is_valid({key: value for key, value in written.items() if key != "half"})


def test_a_typed_dictionary_is_a_closed_object() -> None:
    schema = jsonschema.Draft202012Validator(schema_of(Entry))
    assert schema.is_valid({"name": "x"})
    assert not schema.is_valid({"note": "x"})
    assert not schema.is_valid({"name": "x", "more": 1})


@printed("*first *second sides path")
@dataclass(frozen=True, kw_only=True)
class Pair:
    first: Entry | None
    second: Part
    sides: dict[Literal["left", "right"], Annotated[Count, Also(minimum=1)]]
    path: Path


def test_what_is_spread_may_lack_and_what_is_named_is_whole() -> None:
    schema = jsonschema.Draft202012Validator(schema_of(Pair))
    sides: Any = {"left": 1, "right": 2}
    for first in (None, Entry(name="x")):
        written = document(Pair(first=first, second=Part(size=1), sides=sides, path=Path("a")))
        assert written == {**(first or {}), "size": 1, "limit": None, "sides": sides, "path": "a"}
        schema.validate(written)
        for wrong in ({"left": 1}, {**sides, "middle": 1}, {**sides, "left": 0}):
            assert not schema.is_valid({**written, "sides": wrong}), wrong


def test_what_does_not_tell_is_refused() -> None:
    with pytest.raises(TypeError, match="does not tell"):
        schema_of(set[int])
    with pytest.raises(ValueError, match="is no key"):
        document(WHOLE.part, "a=b=c")
