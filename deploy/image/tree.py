"""What a folder weighs, its hash, and one time for all of it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


def paths(root: Path) -> list[Path]:
    """Return everything below a folder, in one order; links are not followed."""
    return sorted(Path(folder) / name for folder, *names in os.walk(root) for name in [*names[0], *names[1]])


def size_of(root: Path) -> int:
    """Return the bytes of its files."""
    return sum(path.lstat().st_size for path in paths(root) if not path.is_dir())


def set_times(root: Path, epoch: int) -> None:
    """Give everything one time of change."""
    for path in [*paths(root), root]:
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def tree_hash(root: Path) -> str:
    """Return the SHA-256 of all names, modes, links and contents."""
    digest = hashlib.sha256()
    for path in paths(root):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path).encode()
        elif stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).digest()
        else:
            content = b""
        name = str(path.relative_to(root)).encode()
        digest.update(b"%d\0%s\0%o\0%d\0%s" % (len(name), name, status.st_mode, len(content), content))
    return digest.hexdigest()
