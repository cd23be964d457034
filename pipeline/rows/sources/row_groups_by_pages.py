"""Row groups that are read by pages as far as that can be done, and by Arrow from there on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq


class PageReader(Protocol):
    """Reads row groups without Arrow, as far as it can."""

    def read(self, content: BinaryIO, file: pq.ParquetFile, number: int) -> Iterator[Any]:
        """Read blocks of consecutive rows of a row group, from its first on; Arrow reads those that are left.

        Blocks have a number of rows as batches have, `num_rows`. It reads an open file where it needs to.
        """


def by_pages(
    pages: PageReader,
    stored: BinaryIO,
    file: pq.ParquetFile,
    row_groups: Sequence[int],
    by_arrow: Callable[[Sequence[int]], Iterator[pa.RecordBatch]],
) -> Iterator[Any]:
    """Read row groups by pages, and by Arrow all rows from the one on at which that could not be done.

    Arrow reads row groups as one sequence of rows: where one has others than its footer says, those of the
    next ones move, which would not be so if Arrow read each for itself.
    """
    for place, number in enumerate(row_groups):
        n_read = 0
        for block in pages.read(stored, file, number):
            n_read += block.num_rows
            yield block
        if n_read == file.metadata.row_group(number).num_rows:
            continue
        for batch in by_arrow(row_groups[place:]):
            skipped = min(n_read, batch.num_rows)
            n_read -= skipped
            if skipped < batch.num_rows:
                yield batch.slice(skipped)
        return
