"""Type families: what a column is, whatever its exact type and wherever it is stored."""

from __future__ import annotations

from enum import StrEnum


class TypeFamily(StrEnum):
    """What a column is to the schema check.

    ``numeric``: integers, floating-point numbers and decimals. ``null``: a column without a value in its
    file, which serves wherever another family does.
    """

    NUMERIC = "numeric"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NULL = "null"


ANY_FAMILY = frozenset(TypeFamily)
BOOLEANS = frozenset({TypeFamily.BOOLEAN})
DATES = frozenset({TypeFamily.DATE, TypeFamily.TIMESTAMP})
NUMBERS = frozenset({TypeFamily.NUMERIC})
TEXTS = frozenset({TypeFamily.TEXT})
TIMESTAMPS = frozenset({TypeFamily.TIMESTAMP})


class ColumnFamily(StrEnum):
    """What a contract says that a column holds: a family, not a type. ``int32`` and ``int64`` are one.

    ``timestamp`` has no time zone, ``timestamp_with_zone`` is an instant.
    """

    INTEGER = "integer"
    FLOATING = "floating"
    DECIMAL = "decimal"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_WITH_ZONE = "timestamp_with_zone"

    @property
    def read_as(self) -> TypeFamily:
        """What it is to statistics and derived columns."""
        return _READ_AS[self]


_READ_AS = {
    ColumnFamily.INTEGER: TypeFamily.NUMERIC,
    ColumnFamily.FLOATING: TypeFamily.NUMERIC,
    ColumnFamily.DECIMAL: TypeFamily.NUMERIC,
    ColumnFamily.TEXT: TypeFamily.TEXT,
    ColumnFamily.BOOLEAN: TypeFamily.BOOLEAN,
    ColumnFamily.DATE: TypeFamily.DATE,
    ColumnFamily.TIMESTAMP: TypeFamily.TIMESTAMP,
    ColumnFamily.TIMESTAMP_WITH_ZONE: TypeFamily.TIMESTAMP,
}
