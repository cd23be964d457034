"""Publishes in small parts, in a process of its own; it may be killed once some of them stand there.

python -m support.publishing_in_parts RELEASE STORE CLUSTER CELLS DRAWS [PARTS]
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from suffice.publishing import parts as publication_parts
from suffice.publishing.publish import publish
from support.many_cells import STATISTIC

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.batches.part_answer import AnswerPart
    from suffice.storage.publications.publication import Publication


def in_parts(
    release: Path | str, store: Path | str, cells: int, *, cluster: str = "threads", draws: int = 0
) -> tuple[Publication, list[int]]:
    """Publish in parts of so many cells; return the publication, and which parts were computed."""
    computed: list[int] = []
    tasks = publication_parts.StatisticParts.tasks

    def noted(self: publication_parts.StatisticParts, asked: list[AnswerPart]) -> object:
        computed.extend(part.number for part in asked)
        return tasks(self, asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publication_parts, "cells_per_part", lambda _plan, _draws: cells)
        patch.setattr(publication_parts.StatisticParts, "tasks", noted)
        return publish(release, STATISTIC, draws=draws, to=store, cluster=cluster), computed


def main() -> None:
    """Publish, and die without a word after so many files."""
    release, store, cluster, cells, draws, *after = sys.argv[1:]
    if after:
        die_after(int(after[0]))
    in_parts(release, store, int(cells), cluster=cluster, draws=int(draws))


def die_after(files: int) -> None:
    """Kill this process once so many files of a publication stand there."""
    from suffice.storage.publications.publication_store import PublicationStore

    put_file, left = PublicationStore.put_file, [files]

    def put(self: PublicationStore, *arguments: object) -> object:
        stored = put_file(self, *arguments)  # type: ignore[arg-type]
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return stored

    PublicationStore.put_file = put  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    main()
