"""Write made-up flights of the last three whole months into a folder, a Parquet file for each month.

``python flights.py FOLDER``; needs numpy and pyarrow alone.
"""

import datetime as dt
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FLIGHTS_A_DAY = 300


def main(folder: Path) -> None:
    """Write the files; a file that is there is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng()
    end = dt.datetime.now(dt.UTC).date().replace(day=1)
    for _ in range(3):
        start = (end - dt.timedelta(days=1)).replace(day=1)
        n_rows = FLIGHTS_A_DAY * (end - start).days
        origin = rng.choice(["EWR", "JFK", "LGA"], n_rows)
        cancelled = rng.random(n_rows) < np.where(origin == "LGA", 0.03, 0.02)
        delay = np.where(cancelled, np.nan, rng.normal(7, 40, n_rows))
        table = pa.table(
            {
                "flight_date": pa.array(np.datetime64(start) + rng.integers(0, (end - start).days, n_rows)),
                "origin": pa.array(origin),
                "cancelled": pa.array(cancelled),
                "arr_delay": pa.array(delay, from_pandas=True),
            }
        )
        pq.write_table(table, folder / f"{start:%Y-%m}.parquet", compression="zstd")
        end = start


if __name__ == "__main__":
    main(Path(sys.argv[1]))
