"""Who may read and write what a release relies on: spool, ledger, keys, and the folder of counts."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.doctor.contract import ok, problem, skipped, warning
from suffice.errors import SufficeError
from suffice.monitoring.records import COUNTS_FOLDER, counts_folder, read_counts
from suffice.storage.releases.spool import find_spool, spool_path
from suffice.storage.signatures.signing import SIGNING_KEY, pinned_keys, signer_from_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings

_SQLITE = "sqlite:///"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def examine_permissions(place: Settings) -> Iterator[Fact]:
    """Look at modes and owners; keys are read and never shown."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        yield warning("this user is root", "run releases as a user of their own, who owns the spool alone")
    for look in (_spool, _ledger, _signing, _reading, _counts):
        yield from _guarded(look, place)


def _guarded(look: Callable[[Settings], Iterator[Fact]], place: Settings) -> Iterator[Fact]:
    """Give what one look finds; an error of one does not keep the others from looking."""
    try:
        yield from look(place)
    except SufficeError as error:
        yield problem(f"{type(error).__name__}: {error}", "mend what it names")


def _spool(place: Settings) -> Iterator[Fact]:
    path = spool_path(place.ledger, place.spool)
    if path is None:
        yield skipped("no spool is named")
        return
    spool = find_spool(path)
    if spool is not None and os.access(path, os.W_OK | os.X_OK):
        yield ok(f"the spool {path} is private to this user")
    elif spool is None and _can_make(path):
        yield ok(f"there is no spool at {path} yet; the first release makes it")
    else:
        yield problem(
            f"this user cannot write the spool {path}", "let the user who releases own it, mode 700"
        )


def _can_make(path: Path) -> bool:
    """Tell whether a spool can be made at a place where none is: in its folder, or in the empty one there."""
    place = path if path.is_dir() else path.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def _ledger(place: Settings) -> Iterator[Fact]:
    if not place.ledger.startswith(_SQLITE):
        yield skipped('roles of a database guard the ledger: the documentation\'s page "Who may do what"')
        return
    path = Path(place.ledger.removeprefix(_SQLITE))
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        yield skipped("there is no file of a ledger")
        return
    if mode & _OTHERS:
        yield problem("others may write to the ledger's file", f"chmod go-w {path}")
    elif not os.access(path, os.W_OK):
        yield warning("this user reads the ledger and cannot write it", "that is right for an auditor alone")
    else:
        yield ok("the ledger's file is this user's to write, and no other's")


def _signing(_: Settings) -> Iterator[Fact]:
    signer = signer_from_environment()
    if signer is None:
        yield warning(
            f"releases are not signed: {SIGNING_KEY} is not set",
            'the documentation\'s page "How to sign, verify and audit releases"',
        )
    else:
        yield ok(f"releases are signed by the key {signer.public_key.key_id}")


def _reading(_: Settings) -> Iterator[Fact]:
    keys = pinned_keys()
    if keys is None:
        yield skipped("no public key is pinned: readers here demand no signature")
    else:
        yield ok(f"readers here demand a signature by one of {len(keys)} keys")


def _counts(_: Settings) -> Iterator[Fact]:
    named = counts_folder()
    if named is None:
        yield skipped(f"refusals are not counted: {COUNTS_FOLDER} is not set")
        return
    read_counts()
    if (named.is_dir() and os.access(named, os.W_OK | os.X_OK)) or (not named.exists() and _can_make(named)):
        yield ok("refusals are counted")
    else:
        yield problem(f"this user cannot write the folder that {COUNTS_FOLDER} names", "let it, mode 755")
