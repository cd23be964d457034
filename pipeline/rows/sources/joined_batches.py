"""Batches of few rows, as small files have them, joined to fewer: each costs who takes it some .2 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FEW_ROWS = 1 << 14
"""Batches of at most so many rows are joined; files of no more are read without dictionaries."""
_MOST_BYTES = 1 << 24


def joined(batches: Iterable[pa.RecordBatch], block_rows: int) -> Iterator[pa.RecordBatch]:
    """Join small batches that follow one another and are typed alike; give the others as they are.

    Dictionaries are not joined: Arrow would go by their indices, which it does not check.

    Parameters
    ----------
    batches : iterable
        Of rows, or of what stands for them.
    block_rows : int
        Most rows of a batch.
    """
    most = min(block_rows, 2 * FEW_ROWS)
    held: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    for batch in batches:
        is_small = (
            isinstance(batch, pa.RecordBatch)
            and batch.num_columns > 0
            and 2 * batch.num_rows <= most
            and not any(map(pa.types.is_dictionary, batch.schema.types))
        )
        size = batch.get_total_buffer_size() if is_small else 0
        is_full = n_rows + batch.num_rows > most or n_bytes + size > _MOST_BYTES
        if held and (not is_small or is_full or batch.schema != held[0].schema):
            yield pa.concat_batches(held)
            held, n_rows, n_bytes = [], 0, 0
        if is_small:
            held.append(batch)
            n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + size
        else:
            yield batch
    if held:
        yield pa.concat_batches(held)
