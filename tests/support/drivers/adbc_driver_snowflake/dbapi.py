"""Stands for the driver of Snowflake."""

from __future__ import annotations

from typing import Any

from timed_service import Connection, refused  # type: ignore[import-not-found]

CLOCK = "SELECT TO_VARCHAR(CURRENT_TIMESTAMP(), 'YYYY-MM-DD\"T\"HH24:MI:SS.FF9TZHTZM')"
QUERY = (
    r'SELECT (?P<columns>.+) FROM "LAKE"\."PUBLIC"\."(?P<table>\w+)"'
    r" AT\(TIMESTAMP => '(?P<time>[^']+)'::TIMESTAMP_TZ\)(?P<rest>.*)"
)

LITERALS = ((r" \+0000'::TIMESTAMP_TZ", "+00'::TIMESTAMPTZ"), (r"::TIMESTAMP_NTZ", "::TIMESTAMP"))
"""How the service writes literals, and how the stand-in does."""


def connect(uri: str, db_kwargs: dict[str, str], *, autocommit: bool) -> Any:
    if uri != "reader:SECRET-9a@account/LAKE" or not autocommit or len(db_kwargs) != 2:
        raise refused("who are you")
    return Connection(QUERY, '"', CLOCK, "%Y-%m-%dT%H:%M:%S.%f000+0000", LITERALS)
