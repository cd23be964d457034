"""What this host has: Python, the packages that a version was made for, and random bytes for noise."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections import defaultdict
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import TYPE_CHECKING, Any

from suffice.doctor.contract import ok, problem, skipped, warning
from suffice.errors import MissingExtraError, UsageError
from suffice.releasing.run import loops_in_words, require_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings

_SHOWN = ("numpy", "pyarrow", "sqlalchemy", "psycopg", "dask", "opendp", "numba", "prefect")
_NOT_INSTALLATIONS = frozenset({"dev", "bench", "docs"})
"""Extras for those who work on suffice."""
_BYTES = 32


def examine_versions(_: Settings) -> Iterator[Fact]:
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
    except UsageError as error:
        variable, way_out = str(error).split(": ", 1)
        yield problem(f"this host cannot release: {variable} has an unknown value", way_out)
    else:
        yield ok("this host can release: the engine is installed")
        yield ok(f"the inner loops of a release are {loops_in_words()}")


def _is_supported(specifier: str) -> bool:
    """Hold this Python against ``>=3.11,<3.14``."""
    here = sys.version_info[:2]
    for part in filter(None, specifier.split(",")):
        bound = tuple(map(int, part.strip("<>= ").split(".")[:2]))
        if (part.startswith(">=") and here < bound) or (part.startswith("<") and here >= bound):
            return False
    return True


def examine_pins(_: Settings) -> Iterator[Fact]:
    """Hold installed versions against the bounds of the base, and of each extra that is there as a whole.

    Prefect runs no flow with some versions of what it admits itself; the bounds stand in our own metadata.
    """
    try:
        from packaging.requirements import Requirement  # comes with the extras that need it
    except ImportError:
        yield skipped("the package packaging is not installed, and neither is anything that has pins")
        return
    by_extra: dict[str, list[Any]] = defaultdict(list)
    for text in requires("suffice") or ():
        requirement = Requirement(text)
        extra = _extra(requirement)
        if requirement.name != "suffice" and extra not in _NOT_INSTALLATIONS:
            by_extra[extra].append(requirement)
    whole = [extra for extra, wanted in by_extra.items() if not extra or all(map(_is_there, wanted))]
    broken = 0
    for extra in whole:
        for requirement in by_extra[extra]:
            version = installed_version(requirement.name)
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                broken += 1
                wanted = f"suffice[{extra}]" if extra else "suffice"
                yield problem(
                    f"{requirement.name} is {version or 'missing'}, and {wanted} needs "
                    f"{requirement.specifier}",
                    f"pip install '{wanted}'",
                )
    if not broken:
        extras = ", ".join(sorted(filter(None, whole))) or "none"
        yield ok(f"every package is within its bounds; extras that are installed: {extras}")


def _extra(requirement: Any) -> str:
    """Return the extra that a requirement is of; empty where it is of the base."""
    marker = str(requirement.marker or "")
    return marker.rpartition('extra == "')[2].partition('"')[0] if "extra ==" in marker else ""


def _is_there(requirement: Any) -> bool:
    return installed_version(requirement.name) is not None


@cache
def installed_version(name: str) -> str | None:
    """Return the version of an installed package; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def examine_entropy(_: Settings) -> Iterator[Fact]:
    """Ask for bytes without waiting: a source that is not seeded yet would have a draw wait."""
    try:
        first, second = _random(), _random()
    except BlockingIOError:
        yield problem(
            "the system's random source is not seeded yet",
            "wait until the system has started; a virtual machine needs virtio-rng",
        )
        return
    except OSError:
        yield problem("the system's random source does not answer", "let processes call getrandom")
        return
    if first == second:
        yield problem("the system's random source repeats itself", "release nothing on this machine")
    else:
        yield ok("the system's random source is seeded")


def _random() -> bytes:
    if hasattr(os, "getrandom"):
        return os.getrandom(_BYTES, os.GRND_NONBLOCK)
    return os.urandom(_BYTES)
