"""Studies at their smallest size, each run once, and the page of results."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from studies.catalogue import module_of, study_named
from studies.result import Size

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from studies.result import Result


@pytest.fixture(scope="session")
def study_result(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """Run a study once, with a seed that nobody chose."""
    out = tmp_path_factory.mktemp("studies")
    kept: dict[str, Result] = {}

    def run(name: str) -> Result:
        if name not in kept:
            kept[name] = module_of(study_named(name)).run(out, secrets.randbits(32), Size.SMALLEST)
        return kept[name]

    return run


@pytest.fixture(scope="session")
def papers(repository: Path) -> str:
    return (repository / "docs" / "papers.md").read_text(encoding="utf-8")
