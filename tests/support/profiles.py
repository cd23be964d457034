"""Deployment profiles for tests: as files, and at the fixed place that only an administrator writes."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from suffice.profile import finding

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.making import Workspace


def profile_text(**keys: Any) -> str:
    """Return a profile as TOML; texts and lists of texts are written alike in JSON."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def write_profile(path: Path, **keys: Any) -> Path:
    """Write a profile that only its owner may write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(profile_text(**keys), encoding="utf-8")
    path.chmod(0o644)
    return path


def pinning(workspace: Workspace, **keys: Any) -> dict[str, Any]:
    """Return the keys of a profile that pins a place's ledger, store and folder of specs."""
    pinned = {
        "ledger": workspace.ledger,
        "stores": [workspace.store],
        "clusters": ["threads"],
        "spec_folders": [str(workspace.directory)],
        **keys,
    }
    return {key: value for key, value in pinned.items() if value is not None}


def at_fixed_place(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Let a file stand where the administrator's profile would, and this user be the administrator."""
    monkeypatch.setattr(finding, "FIXED_PLACE", path)
    monkeypatch.setattr(finding, "_ADMINISTRATORS", frozenset({0, os.getuid()}))
