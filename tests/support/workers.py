"""A job that misbehaves inside a worker; it is here because workers cannot import tests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from suffice.pipeline.chunk.partition import ChunkJob


@dataclass(frozen=True, kw_only=True)
class FragileJob(ChunkJob):
    """A job that does something else first, in the process that reads.

    ``die``: kill the process. ``die once``: kill it, unless that was done before. ``raise``: fail with a
    text that quotes data.
    """

    action: str
    marker: str = ""
    canary: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Misbehave; then return the columns."""
        if self.action == "raise":
            message = f"cannot convert {self.canary}"
            raise ValueError(message)
        if self.action == "die" or not Path(self.marker).exists():
            if self.marker:
                Path(self.marker).touch()
            os._exit(1)
        return super().columns
