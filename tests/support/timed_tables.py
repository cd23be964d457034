"""Tables in stand-ins for warehouses: how tests start a service, write, change and lose a table."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    import pyarrow as pa
    import pytest

DRIVERS = Path(__file__).parent / "drivers"
ROOT = "TIMED_SERVICE"
NAMES = {"snowflake": "LAKE.PUBLIC.flights", "bigquery": "lake-1.public.flights"}
PASSWORD_URI = "reader:SECRET-9a@account/LAKE"  # noqa: S105 - nobody's


def start_service(request: pytest.FixtureRequest) -> dict[str, str]:
    """Make the drivers importable, here and in other processes; return the environment of the service."""
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    patch.syspath_prepend(str(DRIVERS))
    patch.setenv("PYTHONPATH", os.pathsep.join([str(DRIVERS), os.environ.get("PYTHONPATH", "")]))
    patch.setenv(ROOT, str(request.getfixturevalue("tmp_path_factory").mktemp("service")))
    return {}


def write_timed(kind: str, table: pa.Table) -> dict[str, Any]:
    """Write a version of the table; return the entry of a spec."""
    directory = _directory()
    directory.mkdir(exist_ok=True)
    pq.write_table(table, directory / f"{time.time_ns() // 1000}.parquet")
    return {kind: NAMES[kind]}


def change_timed() -> None:
    """Write a version with other rows."""
    newest = pq.read_table(max(_directory().glob("*.parquet")))
    write_timed("snowflake", newest.filter(pc.field("flag")))


def lose_timed() -> None:
    """Keep no version of the pinned time any more."""
    for path in _directory().glob("*.parquet"):
        path.unlink()


def _directory() -> Path:
    return Path(os.environ[ROOT], "flights")
