"""Stands for the driver of BigQuery."""

from __future__ import annotations

from typing import Any

from timed_service import Connection, refused  # type: ignore[import-not-found]

CLOCK = "SELECT FORMAT_TIMESTAMP('%FT%H:%M:%E6SZ', CURRENT_TIMESTAMP(), 'UTC')"
QUERY = (
    r"SELECT (?P<columns>.+) FROM `lake-1`\.`public`\.`(?P<table>\w+)`"
    r" FOR SYSTEM_TIME AS OF TIMESTAMP '(?P<time>[^']+)'(?P<rest>.*)"
)
LITERALS = ((r"TIMESTAMP '", "TIMESTAMPTZ '"), (r"DATETIME '", "TIMESTAMP '"))
"""How the service writes literals, and how the stand-in does."""
OPTIONS = {"adbc.bigquery.sql.project_id": "lake-1", "adbc.bigquery.sql.dataset_id": "public"}


def connect(*, db_kwargs: dict[str, str], autocommit: bool) -> Any:
    if db_kwargs != OPTIONS or not autocommit:
        raise refused("who are you")
    return Connection(QUERY, "`", CLOCK, "%Y-%m-%dT%H:%M:%S.%fZ", LITERALS)
