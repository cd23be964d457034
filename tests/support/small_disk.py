"""A small disk that can be full or read-only: a real one where this process may mount, else its errors."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

from suffice.storage.objects.local_files import LocalFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SIZE = 24 << 20


@dataclass
class SmallDisk:
    """A directory on a disk of its own.

    Attributes
    ----------
    path : Path
    real : bool
        Whether the system itself refuses; else only what local stores write is refused, by hand.
    refusal : int
        The error number that writes of stores meet where the disk is not real; 0 for none.
    """

    path: Path
    real: bool
    refusal: int = 0

    @property
    def _filler(self) -> Path:
        return self.path / "filler"

    def fill(self) -> None:
        """Leave no block free."""
        self.refusal = errno.ENOSPC
        if not self.real:
            return
        descriptor = os.open(self._filler, os.O_CREAT | os.O_WRONLY)
        size, end = _SIZE, 0
        try:
            while size:
                try:
                    os.posix_fallocate(descriptor, end, size)
                    end += size
                except OSError:
                    size //= 2
        finally:
            os.close(descriptor)

    def free(self) -> None:
        """Let there be room again."""
        self.refusal = 0
        self._filler.unlink(missing_ok=True)

    def forbid_writing(self) -> None:
        """Make it read-only."""
        self.refusal = errno.EROFS
        self._remount("ro")

    def allow_writing(self) -> None:
        """Undo that."""
        self.refusal = 0
        self._remount("rw")

    def _remount(self, mode: str) -> None:
        if self.real:
            subprocess.run(["mount", "-o", f"remount,{mode}", str(self.path)], check=True)


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    """Mount a small disk until the block ends."""
    path.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={_SIZE}", "none", str(path)]
    try:
        mounted = subprocess.run(["mount", *options], check=False, capture_output=True)
        real = mounted.returncode == 0
    except OSError:
        real = False
    disk = SmallDisk(path=path, real=real)
    if real:
        try:
            yield disk
        finally:
            disk.allow_writing()
            subprocess.run(["umount", "--lazy", str(path)], check=True)
        return
    make_directories = LocalFiles._make_directories

    def refused(files: LocalFiles, directory: Path) -> None:
        if disk.refusal:
            raise OSError(disk.refusal, "refused")
        make_directories(files, directory)

    with patch.object(LocalFiles, "_make_directories", refused):
        yield disk
