"""PYTHONPATH=tests python -m support.fuzzing MINUTES [FOLDER]: go on with the corpus of `tests/fuzz`.

It takes clang and its libFuzzer. What is met is kept in the folder, else in `build/fuzz/corpus`. Where
nothing broke, the least of it that reaches as much is packed into `tests/fuzz/corpus.gz` at the end; 0
minutes only pack. An input that breaks a kernel is left in `build/fuzz`: as the argument of
`build/fuzz/fuzzer`, it does so again.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from suffice.pipeline.rows.chunk import paged_columns
from support.kernel_calls import encoded, fitting
from support.paged_files import base_files, table
from support.sanitisers import FUZZ, KERNELS, REPOSITORY, fuzzer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CORPUS = FUZZ / "corpus.gz"
_COLUMN = len(KERNELS)
_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "ZSTD": 2}
_WIDTHS = {"BYTE_ARRAY": 0, "INT32": 1, "FLOAT": 1, "INT64": 2, "DOUBLE": 2}
_MOST_SEED_BYTES = 1 << 13


def packed(inputs: Iterable[bytes]) -> bytes:
    """Return inputs joined and compressed."""
    return gzip.compress(joined(inputs), mtime=0)


def joined(inputs: Iterable[bytes]) -> bytes:
    """Return inputs as replay.c reads them, each after its length."""
    return b"".join(len(each).to_bytes(4, "little") + each for each in inputs)


def unpacked(corpus: bytes) -> Iterator[bytes]:
    """Yield what `packed` packed."""
    content, at = gzip.decompress(corpus), 0
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "little")
        yield content[at + 4 : at + 4 + size]
        at += 4 + size


def is_column(each: bytes) -> bool:
    """Tell whether an input is a column, as kernels.c does."""
    return each[0] % 8 >= _COLUMN


def seeds(folder: Path) -> Iterator[bytes]:
    """Yield calls of every kernel, and columns as Arrow writes them."""
    yield from (encoded(name, arguments) for name, arguments in fitting())
    for path in (*base_files(folder), *_stored_files(folder)):
        yield from _columns(path)


def _stored_files(folder: Path) -> Iterator[Path]:
    """Write files that are not compressed, of both versions, with dictionaries, without, and with both."""
    for version in ("1.0", "2.0"):
        for most_bytes in (0, 20, 1 << 20):
            path = folder / f"stored {version} {most_bytes}.parquet"
            pq.write_table(
                table(60, most_bytes, 0.3),
                path,
                compression="none",
                data_page_version=version,
                use_dictionary=most_bytes > 0,
                dictionary_pagesize_limit=max(most_bytes, 1),
                data_page_size=64,
                write_batch_size=8,
                write_statistics=False,
            )
            yield path


def _columns(path: Path) -> Iterator[bytes]:
    """Yield columns of a file, as many whole pages of them as are few bytes."""
    metadata, content = pq.read_metadata(path), np.frombuffer(path.read_bytes(), np.uint8)
    pages = np.empty((100, 10), np.int64)
    for number in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            chunk, column = metadata.row_group(number).column(place), metadata.schema.column(place)
            begin = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
            codec, width = _CODECS[chunk.compression], _WIDTHS[chunk.physical_type]
            window = content[begin : begin + min(chunk.total_compressed_size, _MOST_SEED_BYTES)]
            paged_columns.native().page_headers(window, codec, pages)
            kind = codec | column.max_definition_level << 2 | width << 3
            yield bytes([_COLUMN, kind]) + window[: pages[0, 1]].tobytes()


def main(minutes: int, corpus: Path = REPOSITORY / "build/fuzz/corpus") -> int:
    """Fuzz from the corpus and the seeds on, and pack what is worth keeping; return an exit code."""
    folder = REPOSITORY / "build/fuzz"
    least = folder / "least"
    shutil.rmtree(least, ignore_errors=True)
    for needed in (least, corpus):
        needed.mkdir(parents=True, exist_ok=True)
    program = fuzzer(folder)
    with tempfile.TemporaryDirectory() as files:
        for each in (*unpacked(CORPUS.read_bytes()), *seeds(Path(files))):
            (corpus / sha1(each, usedforsecurity=False).hexdigest()).write_bytes(each)
    limits = [f"-max_total_time={60 * minutes}", "-max_len=8192", "-timeout=30", "-rss_limit_mb=2048"]
    options = [*limits, "-print_final_stats=1", f"-dict={FUZZ / 'words.dict'}", f"-artifact_prefix={folder}/"]
    if minutes and subprocess.run([program, *options, corpus], check=False).returncode:
        return 1
    subprocess.run([program, "-merge=1", least, corpus], check=True, capture_output=True)
    kept = sorted((path.read_bytes() for path in least.iterdir()), key=lambda each: (len(each), each))
    CORPUS.write_bytes(packed(kept))
    sys.stdout.write(f"{len(kept)} inputs in {CORPUS.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *map(Path, sys.argv[2:])))
