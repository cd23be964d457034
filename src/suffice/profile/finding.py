"""The profile in force: the administrator's at its fixed place, or one that is named."""

from __future__ import annotations

import os
import stat
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import PinnedError, ProfileError

if TYPE_CHECKING:
    from suffice.profile.model import DeploymentProfile

CONFIG = "SUFFICE_CONFIG"
FIXED_PLACE = Path(
    {
        "darwin": "/Library/Application Support/suffice/suffice.toml",
        "win32": r"C:\ProgramData\suffice\suffice.toml",
    }.get(sys.platform, "/etc/suffice/suffice.toml")
)
"""Where only an administrator writes. It is no variable's value: a caller may set those."""
CHOSEN: ContextVar[str | None] = ContextVar("suffice_config", default=None)
"""What ``suffice --config`` names, for the length of one command."""
_ADMINISTRATORS = frozenset({0})
_LARGEST_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileInForce:
    """A profile, and why it holds.

    Attributes
    ----------
    profile : DeploymentProfile
    path : str
    origin : str
        ``fixed place``, ``option`` or ``environment``.
    """

    profile: DeploymentProfile
    path: str
    origin: str


def find_profile() -> ProfileInForce | None:
    """Return the profile that holds, or None where there is none.

    The one at the fixed place wins over everything; else ``--config``, else ``SUFFICE_CONFIG``. It is read
    each time, so that a long-lived process follows its administrator.

    Raises
    ------
    ProfileError
        Where it cannot be read or trusted, or breaks a rule: then nothing is done without it.
    PinnedError
        Where ``--config`` names another than the one at the fixed place.
    """
    chosen = CHOSEN.get()
    content = _read(FIXED_PLACE, trusted=True)
    if content is not None:
        if chosen is not None and os.path.realpath(chosen) != os.path.realpath(FIXED_PLACE):
            message = "--config: this machine's administrator has set a profile, and no other may be named"
            raise PinnedError(message)
        path, origin = str(FIXED_PLACE), "fixed place"
    else:
        path = chosen if chosen is not None else os.environ.get(CONFIG, "")
        origin = "environment" if chosen is None else "option"
        if not path:
            return None
        content = _read(Path(path), trusted=False)
        if content is None:
            raise ProfileError(path, "there is no profile here", "name a file, as --config suffice.toml")
    from suffice.profile.model import parse_profile  # pydantic is slow to import

    return ProfileInForce(profile=parse_profile(content, path), path=path, origin=origin)


def _read(path: Path, *, trusted: bool) -> bytes | None:
    """Return a profile's bytes, None where there is no file; what may not be trusted is refused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        raise ProfileError(str(path), "the profile cannot be read", "let its readers read it") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ProfileError(str(path), "this is no file", "a profile is a file of TOML")
        if trusted and os.name == "posix":
            _check_trusted(path, status)
        content = os.read(descriptor, _LARGEST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _LARGEST_BYTES:
        raise ProfileError(str(path), "the profile is larger than 1 MiB", "it holds a few lines")
    return content


def _check_trusted(path: Path, status: os.stat_result) -> None:
    """Refuse a profile at the fixed place that others than an administrator could write or replace."""
    rule = "others than the administrator may write {}, so it pins nothing"
    if status.st_uid not in _ADMINISTRATORS or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ProfileError(str(path), rule.format("this file"), "chown root and chmod go-w, or remove it")
    for folder in Path(os.path.realpath(path)).parents:
        parent = folder.stat()
        loose = parent.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not parent.st_mode & stat.S_ISVTX
        if parent.st_uid not in _ADMINISTRATORS or loose:
            raise ProfileError(str(path), rule.format("a folder above it"), "chown root and chmod go-w it")
