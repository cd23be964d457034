"""Collecting from different ends: what one process has compiled, the others read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


class InAnotherOrder:
    """A plugin that collects what is in a directory in another order, and hands tests on in the usual one.

    Compiling the tests' modules, assertions and all, takes longer than everything else about collecting them.
    Processes that go through them in one order all compile every one; from different ends each reads what
    the others wrote.
    """

    def __init__(self, turned: Callable[[list[Any]], list[Any]]) -> None:
        self._turned = turned

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn round what is in a directory."""
        report = yield
        if isinstance(collector, pytest.Directory):
            report.result[:] = self._turned(report.result)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Bring the files back into the order of their names, and leave the tests of each in theirs."""
        items.sort(key=lambda item: item.path.parts)


def from_the_end(entries: list[Any]) -> list[Any]:
    """Return the last entry first."""
    return entries[::-1]


def from_the_middle(entries: list[Any]) -> list[Any]:
    """Return the second half before the first one."""
    middle = len(entries) // 2
    return entries[middle:] + entries[:middle]


def order_of(worker: str, arguments: Sequence[str]) -> InAnotherOrder | None:
    """Return in which order a worker of xdist collects all of a directory; None for the usual one."""
    if not worker or len(arguments) != 1 or not Path(arguments[0]).is_dir():
        return None
    turned = (None, from_the_end, from_the_middle)[int(worker.removeprefix("gw")) % 3]
    return turned and InAnotherOrder(turned)
