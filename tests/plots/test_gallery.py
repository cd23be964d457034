"""The gallery shows what its script draws, by commands that there are."""

from __future__ import annotations

import re
import runpy
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_every_picture_has_its_command(repository: Path) -> None:
    pictures = runpy.run_path(str(repository / "docs" / "figures" / "gallery.py"))["PICTURES"]
    page = (repository / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\(figures/gallery-(\w+)\.svg\)", page)
    assert sorted(shown) == sorted(pictures)
    folder = repository / "docs" / "figures"
    drawn = {path.stem.removeprefix("gallery-") for path in folder.glob("gallery-*.svg")}
    assert drawn == set(shown)
    commands = [shlex.split(line) for line in re.findall(r"^    suffice (.*)$", page, re.MULTILINE)]
    for name, command in pictures.items():
        words = [word for word in shlex.split(command) if word not in {"--seed", "1"}]
        assert [*words, "--plot", f"{name}.svg"] in commands
