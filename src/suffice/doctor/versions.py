"""Which Python and which suffice run, and whether what a release needs can be imported."""

from __future__ import annotations

import platform
import sqlite3
import sys
from importlib.metadata import metadata, version
from typing import TYPE_CHECKING

from suffice.doctor.contract import ok, problem, warning
from suffice.doctor.pins import installed_version
from suffice.errors import MissingExtraError
from suffice.releasing.run import require_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings

_SHOWN = ("numpy", "pyarrow", "sqlalchemy", "psycopg", "dask", "opendp", "numba", "prefect")


def check(_: Settings) -> Iterator[Fact]:
    """Look at versions."""
    here = (
        f"suffice {version('suffice')}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )
    supported = metadata("suffice")["Requires-Python"]
    yield ok(f"{here}, {platform.system()} {platform.machine()}")
    if not _is_supported(supported):
        yield problem(f"Python is outside of {supported}", "install suffice on a Python that it supports")
    yield ok(", ".join(f"{name} {installed}" for name in _SHOWN if (installed := installed_version(name))))
    try:
        require_engine()
    except MissingExtraError as error:
        yield warning("this host cannot release: the engine is not installed", str(error))
    else:
        yield ok("this host can release: the engine is installed")


def _is_supported(specifier: str) -> bool:
    """Hold this Python against ``>=3.11,<3.14``."""
    here = sys.version_info[:2]
    for part in filter(None, specifier.split(",")):
        bound = tuple(map(int, part.strip("<>= ").split(".")[:2]))
        if (part.startswith(">=") and here < bound) or (part.startswith("<") and here >= bound):
            return False
    return True
