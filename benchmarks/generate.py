"""The reference data: 1,440 groups, 5 categorical and 2 numeric columns, in zstd-compressed Parquet files."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

REGIONS = tuple(f"region {number:02d}" for number in range(20))
MONTHS = range(1, 73)
CATEGORIES = {
    f"category_{size}": tuple(f"value {code}" for code in range(size)) for size in (3, 5, 8, 12, 30)
}
ROWS_PER_FILE = 2_000_000
ROWS_PER_GROUP = 1_000_000
FORMAT = 1


def cache_directory() -> Path:
    """Return where generated data are kept: SUFFICE_BENCH_DIR, or below the system's temporary directory."""
    default = Path(tempfile.gettempdir()) / "suffice-benchmarks"
    return Path(os.environ.get("SUFFICE_BENCH_DIR", default))


def reference_data(n_rows: int) -> Path:
    """Return the directory that holds `n_rows` rows, making them where they are not there yet."""
    directory = cache_directory() / f"reference-{FORMAT}-{n_rows}"
    complete = directory / "complete.json"
    if not complete.exists():
        directory.mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, n_rows, ROWS_PER_FILE)):
            rows = _rows(min(ROWS_PER_FILE, n_rows - start), seed=number)
            path = directory / f"part-{number:03d}.parquet"
            pq.write_table(rows, path, compression="zstd", row_group_size=ROWS_PER_GROUP)
        complete.write_text(json.dumps({"rows": n_rows}))
    return directory


def _rows(n_rows: int, *, seed: int) -> pa.Table:
    """Return rows in no order; nulls in every column, NaN in the amounts, values that are not declared."""
    rng = np.random.default_rng([FORMAT, seed])

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
    }
    decoded = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in columns.items()
    }
    return pa.table(decoded)
