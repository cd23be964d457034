"""Collecting from both ends: what one process has compiled, the other reads."""

from __future__ import annotations

from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


class FromTheEnd:
    """A plugin that collects files from last to first, and hands their tests on in the usual order.

    Compiling the tests' modules, assertions and all, takes longer than everything else about collecting them.
    Two processes that go through them in one order both compile every one; from both ends they meet in the
    middle, and each reads what the other wrote.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn round what is in a directory."""
        report = yield
        if isinstance(collector, pytest.Directory):
            report.result.reverse()
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Turn round the files, and leave the tests of each in their order."""
        files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
        items[:] = chain.from_iterable(reversed(files))


def is_from_the_end(worker: str, arguments: Sequence[str]) -> bool:
    """Whether a worker of xdist is one of those: each second one, where all of a directory is collected."""
    return worker[-1:] in set("13579") and len(arguments) == 1 and Path(arguments[0]).is_dir()
