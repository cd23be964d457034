"""The specs of an installation: what lies in the folders that its profile names."""

from __future__ import annotations

import os
from pathlib import Path

from suffice.errors import UsageError
from suffice.profile.settings import pinned_profile

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MOST_SPECS = 10_000


def pinned_specs() -> tuple[Path, ...]:
    """Return every YAML and JSON file in the profile's ``spec_folders``, at any depth, sorted.

    Names that begin with a dot are left out, and links to folders are not followed. Whether a file is a spec
    is not asked: one that is none is a problem to be told, not to be passed over.

    Raises
    ------
    UsageError
        Where no profile names such folders, one of them cannot be read, or they hold very many files.
    """
    profile = pinned_profile()
    if profile is None or profile.spec_folders is None:
        message = (
            "--all: no deployment profile names spec_folders: name specs one by one, or pin their folders "
            '(the documentation\'s page "How to pin a deployment")'
        )
        raise UsageError(message)
    found: set[Path] = set()
    for folder in profile.spec_folders:
        found |= _files(folder)
    return tuple(sorted(found))


def _files(folder: str) -> set[Path]:
    def refuse(_: OSError) -> None:
        message = f"--all: a folder below {folder}, which spec_folders names, cannot be read"
        raise UsageError(message) from None

    found: set[Path] = set()
    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found |= {
            Path(place, name) for name in names if not name.startswith(".") and Path(name).suffix in SUFFIXES
        }
        if len(found) > MOST_SPECS:
            message = f"--all: {folder} holds more than {MOST_SPECS} files: pin the folder of the specs alone"
            raise UsageError(message)
    return found
