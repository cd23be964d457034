"""Writers that race for one key, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING, Any

from suffice.errors import ObjectExistsError
from suffice.storage.objects.address import read_address

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier


def race(uri: str, n_rounds: int, writer: int, barrier: Barrier, won: Any, *, renames: bool) -> None:
    """Put one object a round; report the rounds that this writer won.

    With `renames` files get their names by a rename, which replaces what stands there: a mutant.
    """
    if renames:
        os.link = os.rename  # type: ignore[assignment]
    objects = read_address(uri).objects()
    for number in range(n_rounds):
        barrier.wait(timeout=60)
        try:
            objects.put_new(key(number), content(writer))
        except ObjectExistsError:
            continue
        won.put((number, writer))


def winners(uri: str, *, n_writers: int, n_rounds: int, renames: bool = False) -> list[list[int]]:
    """Let writers race, and return who won, round by round."""
    context = multiprocessing.get_context("spawn")
    barrier, won = context.Barrier(n_writers), context.SimpleQueue()
    writers = [
        context.Process(target=race, args=(uri, n_rounds, writer, barrier, won), kwargs={"renames": renames})
        for writer in range(n_writers)
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join(timeout=90)
    assert [process.exitcode for process in writers] == [0] * n_writers
    by_round: list[list[int]] = [[] for _ in range(n_rounds)]
    while not won.empty():
        number, writer = won.get()
        by_round[number].append(writer)
    return by_round


def key(number: int) -> str:
    """Return what a round is about."""
    return f"name/all/round-{number}/manifest.json"


def content(writer: int) -> bytes:
    """Return what a writer puts: long enough to be seen half written."""
    return f"{writer}".encode() * 100_000
