"""Which file system a path is on, and whether locks and shared memory hold there between machines."""

from __future__ import annotations

import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")

# Names of file systems that several machines see at once, or that pass writes on to another machine. Behind
# `fuse.` stands the name of the program, and every FUSE mount but these few reaches elsewhere.
_NETWORK = frozenset(
    {
        "9p",
        "acfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "gfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "pvfs2",
        "smb3",
        "smbfs",
        "vboxsf",
        "vmhgfs",
        "weka",
    }
)
_FUSE = "fuse."
_LOCAL_FUSE = frozenset({"bindfs", "fuse-overlayfs", "gocryptfs", "encfs", "cryfs", "ext4", "mergerfs"})


def network_file_system(path: Path) -> str | None:
    """Return the type of the network file system that a path is on; None where it is on none.

    Where the system lists no mounts (it is not Linux) nothing is found.

    Parameters
    ----------
    path : Path
        A file, there already or still to be made in a directory that is there.
    """
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = file_system(path.resolve(), mounts)
    return kind if kind is not None and is_network(kind) else None


def file_system(path: Path, mounts: str) -> str | None:
    """Return the type of the file system that a path is on.

    Parameters
    ----------
    path : Path
        Absolute, without symbolic links.
    mounts : str
        The text of ``/proc/self/mountinfo``.

    Returns
    -------
    str or None
        As ``ext4`` or ``fuse.sshfs``; None where no mount covers the path.
    """
    found, depth = None, -1
    for line in mounts.splitlines():
        location, _, source = line.partition(" - ")
        fields, kinds = location.split(" "), source.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = Path(_unescaped(fields[4]))
        # Of two mounts on one point the later covers the earlier.
        if path.is_relative_to(point) and len(point.parts) >= depth:
            found, depth = kinds[0], len(point.parts)
    return found


def is_network(kind: str) -> bool:
    """Tell whether a type of file system reaches other machines."""
    if kind.startswith(_FUSE):
        return kind.removeprefix(_FUSE) not in _LOCAL_FUSE
    return kind in _NETWORK


def _unescaped(text: str) -> str:
    """Undo the octal escapes of spaces, tabs, newlines and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
