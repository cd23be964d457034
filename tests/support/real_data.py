"""Where real data stand: beside the project, or where SUFFICE_SHARED_DATA says; tests skip without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL_DATA = Path(os.environ.get("SUFFICE_SHARED_DATA", BESIDE))


def real_data(name: str) -> Path:
    """Return the directory of one data set; the calling test is skipped where it is not there."""
    directory = REAL_DATA / name
    if not directory.exists():
        pytest.skip(f"{name} is not in {REAL_DATA}")
    return directory
