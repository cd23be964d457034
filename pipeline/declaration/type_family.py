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
