"""The declaration of CSV files as a source."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field, PlainValidator, model_validator

from suffice.pipeline.terms.declaration.fields import Column
from suffice.pipeline.terms.declaration.scalars import read_choice, read_text
from suffice.pipeline.terms.declaration.source_spec import SourceSpec, absolute_pattern, source_path

if TYPE_CHECKING:
    from pathlib import Path


class ColumnType(StrEnum):
    """What the texts of a column are read as; one that does not read so is null.

    ``timestamp`` has no offset, and ``timestamp_with_offset`` always has one: ``Z``, or ``+01:00``.
    """

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_WITH_OFFSET = "timestamp_with_offset"


_WORDS = {"tab": "\t", "space": " ", "none": ""}
_MOST_COLUMNS = 10_000


def _sign(value: object) -> str:
    text = read_text(value)
    sign = _WORDS.get(text, text)
    if sign and (len(sign) > 1 or not sign.isascii() or sign.isalnum() or sign in "\r\n\0"):
        message = f"{text!r} is not one ASCII sign, tab, space or none"
        raise ValueError(message)
    return sign


def _column_type(value: object) -> ColumnType:
    return read_choice(read_text(value), kind=ColumnType)


class CsvSpec(SourceSpec):
    """Files of delimited text: a file, a directory (its ``*.csv``, not those below it) or a pattern.

    Each line is a record. The first line of a file names its columns, unless ``header`` does.
    """

    kind: ClassVar[str] = "csv"

    csv: Annotated[str, PlainValidator(source_path)]
    columns: dict[Column, Annotated[ColumnType, PlainValidator(_column_type)]] = Field(
        default_factory=dict, max_length=_MOST_COLUMNS
    )
    delimiter: Annotated[str, PlainValidator(_sign)] = ","
    quote: Annotated[str, PlainValidator(_sign)] = '"'
    header: Annotated[tuple[Column, ...], Field(min_length=1, max_length=_MOST_COLUMNS)] | None = None
    clustered_by: Column | None = None

    @model_validator(mode="after")
    def _signs_differ(self) -> Self:
        if not self.delimiter or self.delimiter == self.quote:
            message = "delimiter and quote are two different signs; only quote may be none"
            raise ValueError(message)
        return self

    def address(self, directory: Path) -> str:
        """Return an absolute path or pattern, links in its fixed part resolved."""
        return absolute_pattern(directory, self.csv)
