"""The reference data: 1,440 groups, 5 categorical and 2 numeric columns, ids of which a tenth are repeated.

Zstd-compressed Parquet files, made once for all benchmarks. Larger data are copies of 20 million rows.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable

REGIONS = tuple(f"region {number:02d}" for number in range(20))
MONTHS = range(1, 73)
CATEGORIES = {
    f"category_{size}": tuple(f"value {code}" for code in range(size)) for size in (3, 5, 8, 12, 30)
}
ROWS_PER_FILE = 2_000_000
ROWS_PER_GROUP = 1_000_000
LARGEST_DISTINCT = 20_000_000
REPEATED_IDS = 0.1
FORMAT = 2


def cache_directory() -> Path:
    """Return where generated data are kept: SUFFICE_BENCH_DIR, or below the system's temporary directory."""
    default = Path(tempfile.gettempdir()) / "suffice-benchmarks"
    return Path(os.environ.get("SUFFICE_BENCH_DIR", default))


def reference_data(n_rows: int) -> Path:
    """Return the directory that holds `n_rows` rows, making them where they are not there yet.

    Beyond 20 million rows the same 20 million are copied as often as it takes.
    """

    def generate(directory: Path) -> None:
        for number, start in enumerate(range(0, n_rows, ROWS_PER_FILE)):
            rows = _rows(start, min(start + ROWS_PER_FILE, n_rows), n_rows)
            path = directory / f"part-{number:03d}.parquet"
            pq.write_table(rows, path, compression="zstd", row_group_size=ROWS_PER_GROUP)

    def copy(directory: Path) -> None:
        originals = sorted(reference_data(LARGEST_DISTINCT).glob("*.parquet"))
        for number in range(n_rows // LARGEST_DISTINCT):
            for original in originals:
                shutil.copyfile(original, directory / f"copy-{number:03d}-{original.name}")

    if n_rows > LARGEST_DISTINCT and n_rows % LARGEST_DISTINCT:
        message = f"more than {LARGEST_DISTINCT:,} rows are made of whole copies of them"
        raise SystemExit(message)
    return _made(f"reference-{FORMAT}-{n_rows}", generate if n_rows <= LARGEST_DISTINCT else copy)


def divided_data(n_rows: int, n_files: int) -> Path:
    """Return a directory that holds the reference data of `n_rows` rows in `n_files` files."""

    def divide(directory: Path) -> None:
        table = pq.read_table(sorted(reference_data(n_rows).glob("*.parquet")))
        borders = [n_rows * number // n_files for number in range(n_files + 1)]
        for number, start in enumerate(borders[:-1]):
            part = table.slice(start, borders[number + 1] - start)
            pq.write_table(part, directory / f"part-{number:05d}.parquet", compression="zstd")

    return _made(f"divided-{FORMAT}-{n_rows}-{n_files}", divide)


def _made(name: str, make: Callable[[Path], None]) -> Path:
    directory = cache_directory() / name
    complete = directory / "complete.json"
    if not complete.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        make(directory)
        complete.write_text(json.dumps({"name": name}))
    return directory


def _ids(first: int, last: int, n_rows: int, rng: np.random.Generator) -> pa.Array:
    """Return an id per row in no order, numbers below `n_rows`; a tenth of the rows have another row's."""
    candidates = range(n_rows * 5 // 8 + 1, 2 * n_rows + 1)
    step = next(candidate for candidate in candidates if math.gcd(candidate, n_rows) == 1)
    rows = np.arange(first, last)
    repeated = rng.random(last - first) < REPEATED_IDS
    rows[repeated] = rng.integers(0, n_rows, repeated.sum())
    return pa.array(rows * step % n_rows)


def _rows(first: int, last: int, total: int) -> pa.Table:
    """Return rows in no order, with nulls (but no null id), NaN among the amounts, undeclared values."""
    n_rows = last - first
    rng = np.random.default_rng([FORMAT, first])

    def texts(values: tuple[str, ...]) -> pa.Array:
        weights = 1.0 / np.arange(1, len(values) + 2)
        codes = rng.choice(len(values) + 1, n_rows, p=weights / weights.sum()).astype(np.int32)
        dictionary = pa.array([*values, "not declared"])
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=rng.random(n_rows) < 0.01), dictionary)

    amount = rng.normal(50, 40, n_rows).round(2)
    amount[rng.random(n_rows) < 0.01] = np.nan
    columns = {
        "region": texts(REGIONS),
        "month": pa.array(
            rng.integers(MONTHS.start, MONTHS.stop + 1, n_rows), mask=rng.random(n_rows) < 0.01
        ),
        **{column: texts(values) for column, values in CATEGORIES.items()},
        "amount": pa.array(amount, mask=rng.random(n_rows) < 0.02),
        "ratio": pa.array(rng.random(n_rows), mask=rng.random(n_rows) < 0.02),
        "unit_id": _ids(first, last, total, rng),
    }
    decoded = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in columns.items()
    }
    return pa.table(decoded)
