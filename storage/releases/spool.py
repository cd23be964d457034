"""The spool: a private directory where drawn files are durable until they are published.

::

    SPOOL/spool.json                          the spool's id
    SPOOL/CHARGE_ID.EPOCH/<statistic>.parquet
    SPOOL/CHARGE_ID.EPOCH/manifest.json
    SPOOL/CHARGE_ID.EPOCH/complete.json       the marker: only with it are the files a release; until it is
                                              written, its second half names the process that began them

It is on a disk of the host that draws, so that no network and no store stands between noise and its being
kept; files get their room before the draw. Where the disk fails nevertheless, what is to be written is still
in memory, and is written again. What is in it is as private as exact data until its manifest stands in the
store, or a ledger on a server keeps it beside what is staged.

An entry that was begun on this machine since it started, and is not complete, proves that what was drawn into
it was never staged. That there is no entry proves nothing: a release that was published leaves none.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import SpoolError, UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.ledger.charge import SpoolName
from suffice.storage.objects.local_files import network_file_system
from suffice.storage.releases.spool_entry import SpoolEntry, spool_errors, synchronise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.releases.manifest_model import FileEntry

_IDENTITY = "spool.json"
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_ENTRY = re.compile(r"([0-9a-f]{32})\.([0-9]{1,9})", re.ASCII)
_SQLITE = "sqlite:///"
_VARIABLE = "SUFFICE_SPOOL"
"""What names a spool where no deployment profile does; for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spool:
    """An open spool.

    Attributes
    ----------
    path : Path
        Absolute.
    name : SpoolName
        Its id, and this host's name.
    """

    path: Path
    name: SpoolName

    def holds(self, charge: Charge) -> bool:
        """Tell whether a charge's drawn files, if they are anywhere, are in this spool."""
        return charge.spool is not None and charge.spool.spool_id == self.name.spool_id

    def reserve(self, charge: Charge, sizes: Mapping[str, int]) -> SpoolEntry:
        """Make room for a charge's files; what an earlier run of the same charge left is removed.

        Parameters
        ----------
        charge : Charge
            In state ``reserved``, held by this run: no other can have drawn for it.
        sizes : mapping of str to int
            Bytes by file name.

        Raises
        ------
        SpoolError
            Where there is no room.
        """
        self.remove(charge.charge_id)
        entry = SpoolEntry(path=self.path / f"{charge.charge_id}.{charge.epoch}")
        try:
            entry.allocate(sizes, run=charge.run)
        except BaseException:
            self.remove(charge.charge_id)
            raise
        return entry

    def complete(self, charge: Charge) -> SpoolEntry | None:
        """Return the files that were drawn for a charge, all of them and each as it was written, or None."""
        for epoch, entry in self._entries(charge.charge_id):
            if epoch <= charge.epoch and entry.is_complete(charge):
                return entry
        return None

    def keeping(self, charge: Charge, files: Sequence[FileEntry]) -> SpoolEntry | None:
        """Return where all of a staged charge's files are, as the ledger's manifest states them."""
        return next((entry for _, entry in self._entries(charge.charge_id) if entry.has(files)), None)

    def take_back(self, charge: Charge, run: str) -> bool:
        """Empty the files that a run drew a charge into, if they prove that none was ever staged.

        They do where they are all that is kept for it, were begun on this machine since it started, and are
        not complete. The entry itself stays until the charge has ended: whoever is killed in between can
        prove it once more.

        Returns
        -------
        bool
            Whether they prove it; they are durably gone then.

        Raises
        ------
        SpoolError
        """
        entries = self._entries(charge.charge_id)
        if len(entries) != 1 or not entries[0][1].is_begun_here(run):
            return False
        entries[0][1].empty()
        return True

    def remove(self, charge_id: str) -> None:
        """Remove whatever is kept for a charge.

        Raises
        ------
        SpoolError
        """
        for _, entry in self._entries(charge_id):
            with spool_errors(entry.path, "removed"):
                entry.unmark()
                shutil.rmtree(entry.path)
                synchronise(self.path)

    def charge_ids(self) -> tuple[str, ...]:
        """Return the ids of the charges that something is kept for, sorted."""
        with spool_errors(self.path, "listed"):
            entries = [_ENTRY.fullmatch(name) for name in os.listdir(self.path)]  # noqa: PTH208 - names, not paths
        return tuple(sorted({match[1] for match in entries if match}))

    def _entries(self, charge_id: str) -> list[tuple[int, SpoolEntry]]:
        with spool_errors(self.path, "listed"):
            entries = [_ENTRY.fullmatch(path.name) for path in self.path.glob(f"{charge_id}.*")]
        return sorted(
            ((int(match[2]), SpoolEntry(path=self.path / match[0])) for match in entries if match),
            key=lambda pair: pair[0],
        )


def spool_path(ledger_url: str, named: str | None) -> Path | None:
    """Return where a ledger's spool is: as named, or beside an SQLite ledger.

    Parameters
    ----------
    ledger_url : str
    named : str or None
        A directory, as ``SUFFICE_SPOOL`` or the deployment profile names it.

    Returns
    -------
    Path or None
        Absolute; None where no spool is named and the ledger is no file.
    """
    if named:
        return Path(os.path.abspath(named))  # noqa: PTH100 - links stay as they are: they are checked when opened
    if ledger_url.startswith(_SQLITE):
        return Path(os.path.abspath(ledger_url.removeprefix(_SQLITE) + ".spool"))  # noqa: PTH100
    return None


def find_spool(path: Path | None) -> Spool | None:
    """Open the spool at a path, to publish or remove what is in it; None where none is there.

    Raises
    ------
    UsageError, SpoolError
        As :func:`open_spool`.
    """
    if path is None or not os.path.lexists(path / _IDENTITY):
        return None
    return _open(path)


def open_spool(path: Path | None) -> Spool:
    """Open the spool at a path, to keep drawn files in; it is made where none is there.

    Raises
    ------
    UsageError
        Where none is named, or the directory is on a network file system, or others may write to it.
    SpoolError
        Where it cannot be made or read.
    """
    if path is None:
        message = (
            f"a release needs a spool, where drawn files are kept until they are published: set {_VARIABLE} "
            "to a private directory on a local disk (an SQLite ledger has one beside it)"
        )
        raise UsageError(message)
    with spool_errors(path, "made"):
        path.mkdir(mode=0o700, exist_ok=True)
        synchronise(path.parent)
    _check_private(path)
    if not os.path.lexists(path / _IDENTITY):
        _make_identity(path)
    return _open(path)


def _open(path: Path) -> Spool:
    _check_private(path)
    with spool_errors(path / _IDENTITY, "read"):
        data = (path / _IDENTITY).read_bytes()
    try:
        content = canonical_json.decode(data)
    except ValueError:
        content = None
    spool_id = content.get("spool_id") if isinstance(content, dict) else None
    if not isinstance(spool_id, str) or not _ID.fullmatch(spool_id):
        message = f"{path / _IDENTITY} is damaged: it does not say which spool this is"
        raise SpoolError(message)
    return Spool(path=path, name=SpoolName(spool_id=spool_id, host=socket.gethostname() or "an unnamed host"))


def _check_private(path: Path) -> None:
    """Refuse a directory that others could write to, or that is not on a disk of this machine."""
    with spool_errors(path, "read"):
        state = path.stat()
    if not stat.S_ISDIR(state.st_mode):
        message = f"the spool {path} is no directory: name one that is private to this user"
        raise UsageError(message)
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or state.st_uid not in {os.geteuid(), 0}:
        message = f"others may write to the spool {path}: name a directory of this user's own (chmod 700)"
        raise UsageError(message)
    kind = network_file_system(path)
    if kind is not None:
        message = f"the spool {path} is on a network file system ({kind}): name a directory on a local disk"
        raise UsageError(message)


def _make_identity(path: Path) -> None:
    """Give a new spool its id, once, whoever else opens it at the same time."""
    draft = path / f".{secrets.token_hex(8)}"
    with spool_errors(path, "written"):
        try:
            descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(canonical_json.encode({"spool_id": secrets.token_hex(16)}))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(draft, path / _IDENTITY)
        finally:
            draft.unlink(missing_ok=True)
        synchronise(path)
