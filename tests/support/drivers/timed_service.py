"""A stand-in for a warehouse that shows tables as they were: versions of a table are files, by their time.

It answers only the queries that a driver of the real service would be sent: the clock, and queries of one
table at a time that is stated. All else is an error, as is a time that is no longer kept.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from pathlib import Path
from typing import Any

import duckdb
from adbc_driver_manager import ProgrammingError

ROOT = "TIMED_SERVICE"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def microseconds(moment: dt.datetime) -> int:
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def refused(text: str) -> ProgrammingError:
    return ProgrammingError(f"CANARY-3e80 {text}", status_code=1)


class Connection:
    def __init__(
        self, query: str, quote: str, clock: str, time_form: str, literals: tuple[tuple[str, str], ...]
    ) -> None:
        self.query, self.quote, self.clock, self.time_form = re.compile(query), quote, clock, time_form
        self.literals = literals
        self.database = duckdb.connect()

    def cursor(self) -> Cursor:
        return Cursor(self)

    def close(self) -> None:
        self.database.close()


class Cursor:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sql = ""

    def execute(self, query: str) -> None:
        if query == self.connection.clock:
            now = dt.datetime.now(dt.UTC).strftime(self.connection.time_form)
            self.sql = f"SELECT '{now}'"
            return
        matched = self.connection.query.fullmatch(query)
        if matched is None:
            raise refused(f"no query of one table at a time: {query}")
        time = microseconds(dt.datetime.fromisoformat(matched["time"]))
        versions = sorted(Path(os.environ[ROOT], matched["table"]).glob("*.parquet"))
        kept = [path for path in versions if int(path.stem) <= time]
        if not kept:
            raise refused("the time is not kept")
        rest = matched["rest"]
        for theirs, ours in self.connection.literals:
            rest = re.sub(theirs, ours, rest)
        text = f"SELECT {matched['columns']} FROM read_parquet('{kept[-1]}'){rest}"  # noqa: S608
        self.sql = text.replace(self.connection.quote, '"')

    def fetchone(self) -> Any:
        return self.connection.database.execute(self.sql).fetchall()[0]

    def fetch_record_batch(self) -> Any:
        return self.connection.database.sql(self.sql).to_arrow_reader(1000)

    def close(self) -> None:
        pass
