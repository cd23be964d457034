"""Writers that race for one key, each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import ObjectExistsError
from suffice.storage.local_files import LocalFiles

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier


def race(root: str, n_rounds: int, writer: int, barrier: Barrier, won: Any) -> None:
    """Put one object a round; report the rounds that this writer won."""
    files = LocalFiles(Path(root))
    for number in range(n_rounds):
        barrier.wait(timeout=60)
        try:
            files.put_new(f"name/all/round-{number}/manifest.json", f"{writer}".encode() * 100_000)
        except ObjectExistsError:
            continue
        won.put((number, writer))
