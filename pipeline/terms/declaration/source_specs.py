"""Sources as a spec declares them, by kind: where the rows are, and how they are to be read.

Who reads them is not known here; `suffice.pipeline.rows.sources` is.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, PlainValidator, model_validator
from pydantic_core import PydanticKnownError

from suffice.buckets import BUCKET_SCHEMES, read_bucket
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.column_types import HiveColumn, read_hive
from suffice.pipeline.terms.declaration.fields import Column, SpecModel
from suffice.pipeline.terms.declaration.scalars import read_choice, read_integer, read_text
from suffice.pipeline.terms.declaration.table_names import KeyRanges, ThreePartName, TwoPartName

if TYPE_CHECKING:
    from collections.abc import Mapping

WHOLE_TABLE = "the whole table for every window"
LONGEST_PATH = 4096
"""Characters that file systems take at most."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class SourceSpec(SpecModel):
    """Where the rows are; not part of what is charged.

    Each kind has a model of its own, whose first field is required and called like the kind. A kind may have
    the field ``clustered_by``: the rows of each value of that column stand together, in a file or two. Where
    that is true, few rows travel between workers to be bounded by that column; no number depends on it.
    """

    kind: ClassVar[str]
    """The key that chooses this model in a spec, and the reader in ``pipeline/rows/sources``."""

    def window_reading(self, column: str) -> str:
        """Say what a release of one window reads, where its column is stored and not derived."""
        return f"{WHOLE_TABLE}, unless it is partitioned by {column}"

    def address(self, directory: Path) -> str:  # noqa: ARG002 - for files
        """Return the place of the rows as an owner grants it, given the spec's directory: a path or its like.

        It is made of the spec alone, holds no credentials, and does not depend on the data. A kind without
        files has the name of a table in its first field.
        """
        return f"{self.kind}:{getattr(self, self.kind)}"


def is_url(address: str) -> bool:
    """Tell whether an address is of a bucket, and not a path."""
    scheme = _SCHEME.match(address)
    return scheme is not None and scheme[1].lower() in BUCKET_SCHEMES


def source_path(value: object) -> str:
    """Check a path, a pattern or a URL of files; return a URL as owners grant it.

    ``s3://BUCKET/PREFIX``, ``gs://...``, ``az://CONTAINER/PREFIX`` or
    ``abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX``, without a ``/`` at its end.

    Raises
    ------
    ValueError
        Where it is none; the text never repeats a URL, which may hold credentials.
    """
    if not isinstance(value, str) or not value.strip():
        message = "a source is a file, a directory, a pattern or a URL"
        raise ValueError(message)
    if "\0" in value or len(value) > LONGEST_PATH:
        message = f"a source is a path of at most {LONGEST_PATH} characters, none of them NUL"
        raise ValueError(message)
    scheme = _SCHEME.match(value)
    return value if scheme is None else _url(scheme[1].lower(), value[scheme.end() :])


def absolute_pattern(directory: Path, pattern: str) -> str:
    """Return a URL as it is; or a path or pattern as an absolute one, links in its fixed part resolved."""
    if is_url(pattern):
        return pattern
    full = os.path.abspath(directory / pattern)  # noqa: PTH100 - no link is followed
    parts = Path(full).parts
    fixed = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
    return str(Path(os.path.realpath(Path(*parts[:fixed])), *parts[fixed:]))


def _url(scheme: str, rest: str) -> str:
    if scheme not in BUCKET_SCHEMES:
        message = f"{scheme}:// is no source: use a local path, or a URL of s3://, gs:// or az://"
        raise ValueError(message)
    if "?" in rest or "#" in rest:
        message = f"the {scheme}:// URL has a query or a fragment: credentials come from the environment"
        raise ValueError(message)
    authority, _, key = rest.partition("/")
    try:
        bucket = read_bucket(scheme, authority)
    except UsageError as error:
        raise ValueError(str(error)) from None
    parts = key.rstrip("/").split("/") if key else []
    if any(part in {"", ".", ".."} for part in parts):
        message = f"the {scheme}:// URL has an empty part, . or .. in its path"
        raise ValueError(message)
    return "/".join([bucket, *parts])


class ParquetSpec(SourceSpec):
    """Parquet files: a file, a directory (its ``*.parquet``, not those below it), a pattern, or a URL.

    With ``hive`` the files of a directory's folders ``KEY=VALUE`` are read too, and their values are columns.
    """

    kind: ClassVar[str] = "parquet"

    parquet: Annotated[str, PlainValidator(source_path)]
    clustered_by: Column | None = None
    hive: Annotated[dict[str, HiveColumn], PlainValidator(read_hive)] = Field(default_factory=dict)

    def window_reading(self, column: str) -> str:
        """Say what a release of one window reads: where folders are of its column, those of the window."""
        return f"the window's folders of {column}" if column in self.hive else WHOLE_TABLE

    @model_validator(mode="after")
    def _names_a_directory(self) -> Any:
        if self.hive and any(sign in self.parquet for sign in "*?["):
            message = "hive folders are those of one directory or URL: name it without *, ? and ["
            raise ValueError(message)
        return self

    def address(self, directory: Path) -> str:
        """Return a URL; or an absolute path or pattern, links in its fixed part resolved."""
        return absolute_pattern(directory, self.parquet)


class CsvType(StrEnum):
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


class Declared(StrEnum):
    """What the owner of a sample says that it is."""

    PUBLIC = "public"
    SYNTHETIC = "synthetic"


def declared_sample(sample: str | os.PathLike[str] | None, sample_is: str | None) -> tuple[str, Declared]:
    """Return a sample's path and what it is declared to be.

    Raises
    ------
    UsageError
        Where one of the two is left out, or it is declared to be something else.
    """
    if sample is None or sample_is not in set(Declared):
        message = (
            "a sample is a file that its owner declares: give --sample FILE, and --sample-is public or "
            "--sample-is synthetic"
        )
        raise UsageError(message)
    return os.fspath(sample), Declared(sample_is)


_WORDS = {"tab": "\t", "space": " ", "none": ""}
_MOST_COLUMNS = 10_000


def _sign(value: object) -> str:
    text = read_text(value)
    sign = _WORDS.get(text, text)
    if sign and (len(sign) > 1 or not sign.isascii() or sign.isalnum() or sign in "\r\n\0"):
        message = f"{text!r} is not one ASCII sign, tab, space or none"
        raise ValueError(message)
    return sign


def _csv_type(value: object) -> CsvType:
    return read_choice(read_text(value), kind=CsvType)


class CsvSpec(SourceSpec):
    """Files of delimited text: a file, a directory (its ``*.csv``, not those below it) or a pattern.

    Each line is a record. The first line of a file names its columns, unless ``header`` does.
    """

    kind: ClassVar[str] = "csv"

    csv: Annotated[str, PlainValidator(source_path)]
    columns: dict[Column, Annotated[CsvType, PlainValidator(_csv_type)]] = Field(
        default_factory=dict, max_length=_MOST_COLUMNS
    )
    delimiter: Annotated[str, PlainValidator(_sign)] = ","
    quote: Annotated[str, PlainValidator(_sign)] = '"'
    header: Annotated[tuple[Column, ...], Field(min_length=1, max_length=_MOST_COLUMNS)] | None = None
    clustered_by: Column | None = None

    def window_reading(self, column: str) -> str:  # noqa: ARG002 - files of text are read whole
        """Say what a release of one window reads."""
        return WHOLE_TABLE

    @model_validator(mode="after")
    def _signs_differ(self) -> Self:
        if not self.delimiter or self.delimiter == self.quote:
            message = "delimiter and quote are two different signs; only quote may be none"
            raise ValueError(message)
        return self

    def address(self, directory: Path) -> str:
        """Return an absolute path or pattern, links in its fixed part resolved."""
        return absolute_pattern(directory, self.csv)


def _root(value: object) -> str:
    text = source_path(value)
    if any(sign in text for sign in "*?["):
        message = "a Delta table is one directory or URL: name it without *, ? and ["
        raise ValueError(message)
    return text


def _version(value: object) -> int:
    version = read_integer(value)
    if version < 0:
        message = "a version is an integer from 0 on"
        raise ValueError(message)
    return version


class DeltaSpec(SourceSpec):
    """A Delta table: the directory or URL that holds ``_delta_log``.

    Without ``version`` it is read as it is when a release begins.
    """

    kind: ClassVar[str] = "delta"

    delta: Annotated[str, PlainValidator(_root)]
    version: Annotated[int, PlainValidator(_version)] | None = None
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:
        """Return a URL, or an absolute path, links resolved."""
        return absolute_pattern(directory, self.delta)


_IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,255}(\.[A-Za-z0-9_-]{1,255}){1,15}", re.ASCII)
_CATALOG = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)


def _identifier(value: object) -> str:
    text = read_text(value)
    if not _IDENTIFIER.fullmatch(text):
        message = "an Iceberg table is NAMESPACE.TABLE, of letters, digits, _ and -"
        raise ValueError(message)
    return text


def _catalog(value: object) -> str:
    text = read_text(value)
    if not _CATALOG.fullmatch(text):
        message = "a catalog is a name of letters, digits, _ and -; where it is says the environment"
        raise ValueError(message)
    return text


class IcebergSpec(SourceSpec):
    """An Iceberg table of a catalog whose place and credentials the worker's environment holds.

    Without ``snapshot`` the table is read as it is when a release begins.
    """

    kind: ClassVar[str] = "iceberg"

    iceberg: Annotated[str, PlainValidator(_identifier)]
    catalog: Annotated[str, PlainValidator(_catalog)]
    snapshot: Annotated[int, PlainValidator(read_integer)] | None = None
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:  # noqa: ARG002 - it stands in no directory
        """Return the catalog's name and the table's."""
        return f"iceberg:{self.catalog}/{self.iceberg}"


class RowPolicies(StrEnum):
    """What becomes of a table whose row-level policies choose what the reading role sees.

    ``refused``: it is not read. ``accepted``: the rows that the role sees are read, as the owner means it.
    """

    REFUSED = "refused"
    ACCEPTED = "accepted"


class DatabaseSpec(SourceSpec):
    """A table or a view of a database, which compares a window's bounds by itself."""

    def window_reading(self, column: str) -> str:
        """Say what a release of one window reads."""
        return f"the window's rows alone, where {column} is a date or a timestamp"


class PostgresqlSpec(DatabaseSpec):
    """A table, a partitioned table or a view in PostgreSQL; who reads it has the server's URI."""

    kind: ClassVar[str] = "postgresql"

    postgresql: TwoPartName
    row_policies: Annotated[RowPolicies, PlainValidator(partial(read_choice, kind=RowPolicies))] = (
        RowPolicies.REFUSED
    )
    split_by: KeyRanges | None = None
    clustered_by: Column | None = None


class DuckdbSpec(DatabaseSpec):
    """A table or a view in a local DuckDB file, which nobody writes meanwhile."""

    kind: ClassVar[str] = "duckdb"

    duckdb: Annotated[str, PlainValidator(source_path)]
    table: TwoPartName
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:
        """Return the file's absolute path, links resolved, and the name as if it lay in it."""
        return f"{self.file(directory)}/{self.table}"

    def file(self, directory: Path) -> str:
        """Return the file's absolute path, links resolved."""
        return os.path.realpath(directory / self.duckdb)


class SnowflakeSpec(DatabaseSpec):
    """A table in Snowflake as it was at one time; who reads it has the account's URI."""

    kind: ClassVar[str] = "snowflake"

    snowflake: ThreePartName
    split_by: KeyRanges | None = None


class BigquerySpec(DatabaseSpec):
    """A table in BigQuery as it was at one time; who reads it has Google credentials."""

    kind: ClassVar[str] = "bigquery"

    bigquery: ThreePartName
    split_by: KeyRanges | None = None


class GivenSpec(SourceSpec):
    """No source: whoever runs a release hands the rows over, in memory. A spec says so by naming none."""

    kind: ClassVar[str] = "data"

    def window_reading(self, column: str) -> str:  # noqa: ARG002 - nothing is stored
        """Say what a release of one window reads."""
        return "the rows that are given, all of them"

    def address(self, directory: Path) -> str:  # noqa: ARG002 - it stands in no directory
        """Return what an owner grants: any rows that are given."""
        return f"{self.kind}:"


SOURCE_SPECS: dict[str, type[SourceSpec]] = {
    model.kind: model
    for model in (
        ParquetSpec,
        CsvSpec,
        DeltaSpec,
        IcebergSpec,
        PostgresqlSpec,
        DuckdbSpec,
        SnowflakeSpec,
        BigquerySpec,
    )
}
"""Every kind of source that can be declared, by key; `suffice.pipeline.rows.sources.SOURCES` reads them."""


def source_model(entry: Mapping[str, Any]) -> type[SourceSpec]:
    """Return the model of an entry, by the kind it names; the first kind's where it names none."""
    kind = next((kind for kind in SOURCE_SPECS if kind in entry), next(iter(SOURCE_SPECS)))
    return SOURCE_SPECS[kind]


def parse_source(entry: object) -> SourceSpec:
    """Read the entry ``source`` of a spec.

    Raises
    ------
    pydantic.ValidationError, pydantic_core.PydanticKnownError
        Where it is no mapping, or not what its kind states.
    """
    if not isinstance(entry, dict):
        raise PydanticKnownError("model_type", {"class_name": "Source"})
    if not SOURCE_SPECS.keys() & entry.keys():
        message = f"a source names its kind by a key: {', '.join(SOURCE_SPECS)}"
        raise ValueError(message)
    return source_model(entry).model_validate(entry)
