"""What every kind of source declares in a spec; who reads it is not known here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from suffice.pipeline.declaration.fields import SpecModel

LONGEST_PATH = 4096
"""Characters that file systems take at most."""


class SourceSpec(SpecModel):
    """Where the rows are; not part of what is charged.

    Each kind has a model of its own, whose first field is required and called like the kind. A kind may have
    the field ``clustered_by``: the rows of each value of that column stand together, in a file or two. Where
    that is true, few rows travel between workers to be bounded by that column; no number depends on it.
    """

    kind: ClassVar[str]
    """The key that chooses this model in a spec, and the reader in ``pipeline/sources``."""

    def address(self, directory: Path) -> str:
        """Return the place of the rows as an owner grants it, given the spec's directory: a path or its like.

        It is made of the spec alone, holds no credentials, and does not depend on the data.
        """
        raise NotImplementedError


def source_path(value: object) -> str:
    """Check a path, a pattern or a URL of files."""
    if not isinstance(value, str) or not value.strip():
        message = "a source is a file, a directory or a pattern"
        raise ValueError(message)
    if "\0" in value or len(value) > LONGEST_PATH:
        message = f"a source is a path of at most {LONGEST_PATH} characters, none of them NUL"
        raise ValueError(message)
    return value


def absolute_pattern(directory: Path, pattern: str) -> str:
    """Return a path or pattern as an absolute one, links in its fixed part resolved."""
    full = os.path.abspath(directory / pattern)  # noqa: PTH100 - no link is followed
    parts = Path(full).parts
    fixed = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
    return str(Path(os.path.realpath(Path(*parts[:fixed])), *parts[fixed:]))
