"""The two lanes of tests: quick ones, which `make test` runs, and those marked `slow`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

SLOW = 1.0
"""Seconds that a test itself may take before it belongs in the slow lane; fixtures do not count."""

SERVERS = frozenset({"prefect_server", "postgres_server", "s3_url"})
"""Fixtures that start a server for a whole session, in seconds to tens of them."""


def servers_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests of files that need a server before all others, with the order otherwise kept.

    Work is stolen from the end of a process's share: what comes first stays in one process, and so does each
    server. Of the flows' tests all come first, as they share a process with all the runs too.
    """
    ordered = list(items)
    files = {item.path for item in ordered if "flows" in item.path.parts or SERVERS & _needed(item)}
    return sorted(ordered, key=lambda item: item.path not in files)


def _needed(item: pytest.Item) -> set[str]:
    names: set[str] = set(getattr(item, "fixturenames", ()))
    # On PostgreSQL the ledger's URL asks for the server while it is set up, so no name says it.
    return names | {"postgres_server"} if names & {"ledger_url", "empty_url"} else names


def slow_without_the_mark(reports: Iterable[pytest.TestReport]) -> list[pytest.TestReport]:
    """Return the reports of tests that took `SLOW` seconds and are in the quick lane, longest first."""
    missed = (
        report
        for report in reports
        if report.when == "call" and report.duration >= SLOW and "slow" not in report.keywords
    )
    return sorted(missed, key=lambda report: -report.duration)
