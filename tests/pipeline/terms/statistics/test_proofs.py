"""Every claim has its place in the code, and every marked place has its claim."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def headings(path: Path) -> set[str]:
    return set(re.findall(r"^## ([a-z0-9-]+)$", path.read_text(encoding="utf-8"), re.MULTILINE))


def labels(paths: list[Path]) -> set[str]:
    return {
        label
        for path in paths
        for label in re.findall(r"# proof: ([a-z0-9-]+)$", path.read_text("utf-8"), re.MULTILINE)
    }


def test_every_label_stands_on_both_sides(repository: Path) -> None:
    proofs = sorted((repository / "pipeline").rglob("*.md"))
    claimed = [headings(path) for path in proofs]
    assert set.intersection(*claimed) == set(), "a label has one proof"
    marked = labels(sorted((repository / "pipeline").rglob("*.py")))
    assert marked == set.union(*claimed)


@pytest.mark.parametrize(
    "name",
    [
        "terms/statistics/sensitivity.md",
        "terms/statistics/l2_sensitivity.md",
        "rows/mechanism/mechanism.md",
        "rows/mechanism/cone/cone.md",
    ],
)
def test_every_claim_has_a_proof(repository: Path, name: str) -> None:
    text = (repository / "pipeline" / name).read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        assert "**Claim.**" in section
        label = section.splitlines()[0]
        if label not in {
            "privacy-map",
            "selection-map",
            "draw-once",
            "contained",
        }:  # about the order of the code, which tests check
            assert "**Proof.**" in section
