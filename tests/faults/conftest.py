"""Processes to kill and to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.forking import Forks
from support.judging import Scene, make_scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    with Forks() as running:
        yield running


@pytest.fixture
def scene(tmp_path: Path, ledger_url: str, forks: Forks) -> Scene:
    """A granted ledger on each engine, and no store yet."""
    return make_scene(tmp_path, ledger_url, forks)


@pytest.fixture
def sqlite_scene(tmp_path: Path, forks: Forks) -> Scene:
    """The same, where the engine makes no difference."""
    return make_scene(tmp_path, f"sqlite:///{tmp_path}/ledger.db", forks)
