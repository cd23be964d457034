"""An owner's list of the SHA-256 of input files, in the format of ``sha256sum``."""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from suffice.errors import InputNotVerifiedError, StageFailedError, UsageError
from suffice.pipeline.cluster.workers import by_threads, goes_on
from suffice.pipeline.rows.sources.file_access import opened, reaches, status
from suffice.pipeline.terms.declaration.source_specs import is_url
from suffice.pipeline.terms.declaration.spec_text import read_small_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LINE = re.compile(r"(?P<escaped>\\?)(?P<digest>[0-9a-fA-F]{64}) [ *](?P<path>[^\r\0]+)")
_ESCAPES = {r"\\": "\\", r"\n": "\n", r"\r": "\r"}
_LARGEST_BYTES = 64 * 2**20
_HASHERS = 2
_HASHED_BYTES = 1 << 23
"""Read at a time."""


def read_checksums(path: str) -> dict[str, str]:
    """Return the SHA-256 of the files in a list, in hex, by their paths with links resolved.

    Parameters
    ----------
    path : str
        The list: lines of a SHA-256, two spaces and a path, which is relative to the list's folder, or a URL.

    Raises
    ------
    UsageError
        Where it cannot be read, or a line is none of this; the text names the line, not what it holds.
    """
    try:
        data = read_small_file(path, _LARGEST_BYTES)
        text = None if data is None else data.decode("utf-8")
    except (OSError, ValueError):
        message = "the list of checksums cannot be read: name a regular file of UTF-8 text"
        raise UsageError(message) from None
    if text is None:
        message = f"the list of checksums is larger than {_LARGEST_BYTES >> 20} MiB"
        raise UsageError(message)
    folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120 - as below
    listed: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        parts = _LINE.fullmatch(line)
        if parts is None:
            _refuse(number, "is not a SHA-256 in hex, two spaces and a path, as sha256sum writes it")
        name = parts["path"]
        if parts["escaped"]:
            name = re.sub(r"\\[\\nr]", lambda escape: _ESCAPES[escape[0]], name)
        place = name if is_url(name) else os.path.realpath(os.path.join(folder, name))  # noqa: PTH118
        digest = parts["digest"].lower()
        if listed.setdefault(place, digest) != digest:
            _refuse(number, "names a file that another line gives another SHA-256")
    if not listed:
        message = "the list of checksums is empty: it names every input file"
        raise UsageError(message)
    return listed


def _refuse(number: int, rule: str) -> NoReturn:
    message = f"the list of checksums: line {number} {rule}"
    raise UsageError(message)


def fits(
    paths: Sequence[str], checksums: str, address: str, is_reached: Callable[[str], bool] | None = None
) -> bool:
    """Tell whether a list names exactly these files, as far as a spec reaches, each with its SHA-256.

    Parameters
    ----------
    paths : sequence of str
        The files that the spec has, all of which are read.
    checksums : str
        The list.
    address : str
        What the spec reaches; entries of the list beyond it are others' files.
    is_reached : callable, optional
        Tells of a path or URL whether the spec reaches it, where the address alone does not.

    Raises
    ------
    InputNotVerifiedError
        Where the list cannot be read.
    """
    try:
        listed = read_checksums(checksums)
    except UsageError:  # its text is for the owner
        message = (
            "the account demands checksums of its input, and their list cannot be read: its owner names one "
            "with `suffice ledger grant DATASET ... --checksums FILE`"
        )
        raise InputNotVerifiedError(message) from None
    files = {path if is_url(path) else os.path.realpath(path) for path in paths}
    is_reached = is_reached or partial(reaches, address)
    if not files <= listed.keys() or any(map(is_reached, listed.keys() - files)):
        return False
    return all(by_threads(lambda path: _has_digest(path, listed[path]), sorted(files), _HASHERS))


def _has_digest(path: str, digest: str) -> bool:
    hashed = hashlib.sha256()
    try:
        with opened(status(path)) as file:
            while data := file.read(_HASHED_BYTES):
                hashed.update(data)
                goes_on()
    except OSError:
        return False
    return hashed.hexdigest() == digest


def require_listed(
    paths: Sequence[str],
    checksums: str,
    *,
    check: Callable[[], None],
    place: str,
    address: str,
    is_reached: Callable[[str], bool] | None = None,
) -> None:
    """Refuse files that a list does not name so, as `fits` tells, or that `check` finds changed meanwhile.

    Raises
    ------
    InputNotVerifiedError
        It names a place of the spec and the address.
    """
    try:
        is_fit = fits(paths, checksums, address, is_reached)
        check()
    except StageFailedError:  # a file changed while it was hashed
        is_fit = False
    if not is_fit:
        message = (
            f"{place}: {address}: the input is not what the account's owner listed: a file has another "
            "SHA-256, is listed and not there, or there and not listed; restore the files, or ask the owner"
        )
        raise InputNotVerifiedError(message)
