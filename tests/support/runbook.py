"""The runbook's commands, run as they stand there: other paths, and exit statuses where it states them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Runner

PAGE = "deploy/RUNBOOK.md"
_BLOCK = re.compile(r"^( *)```sh ?([\w-]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_STATUS = re.compile(r" # exit (\d+)$")


def read_blocks(text: str) -> dict[tuple[str, str, int], list[str]]:
    """Return the lines of every block, by its section, its label and its number among those."""
    blocks: dict[tuple[str, str, int], list[str]] = {}
    for section, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        for _, label, lines in _BLOCK.findall(body):
            number = sum(key[:2] == (section, label) for key in blocks)
            blocks[section, label, number] = [line.strip() for line in lines.splitlines()]
    return blocks


@dataclass
class Page:
    """Runs blocks of the runbook in this process, and remembers which.

    Attributes
    ----------
    places : dict
        What is replaced in each line, longest first.
    """

    blocks: dict[tuple[str, str, int], list[str]]
    run: Runner
    repository: Path
    places: dict[str, str]
    done: set[tuple[str, str, int]] = field(default_factory=set)

    def follow(self, section: str, label: str = "", number: int = 0) -> list[str]:
        """Run one block; return what its commands of `suffice` printed."""
        key = (section, label, number)
        self.done.add(key)
        return [said for line in self.blocks[key] if (said := self._run(line)) is not None]

    def _run(self, line: str) -> str | None:
        stated = _STATUS.search(line)
        line = _STATUS.sub("", line)
        for name in sorted(self.places, key=len, reverse=True):
            line = line.replace(name, self.places[name])
        words = shlex.split(os.path.expandvars(line))
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            os.environ[name] = value
            return None
        if words[0] == "suffice":
            return self.run.text(*words[1:], status=int(stated[1]) if stated else 0)
        subprocess.run(["bash", "-c", line], check=True, cwd=self.repository, capture_output=True)
        return None
