"""One count query of three columns in OpenDP, under an interpreter whose environment has opendp[polars].

`run.py` starts this file with SUFFICE_OPENDP_PYTHON. Each line of standard input asks the query once more,
and is answered by a line with the number of rows and the seconds that it took. Keys are named, as they are to
all others.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import warnings

QUERIES = 100
"""What the budget of the session is divided into; noise has the same cost at any scale."""


def main() -> None:
    """Open a session over the files, then answer one query per line."""
    task = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    columns = task["keys"]
    combinations = zip(*itertools.product(*columns.values()), strict=True)
    keys = pl.LazyFrame(dict(zip(columns, combinations, strict=True)))
    session = dp.Context.compositor(
        data=pl.scan_parquet(task["files"]),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=5.0),
        split_evenly_over=QUERIES,
        margins=[dp.polars.Margin(by=list(columns))],
    )
    print(json.dumps({"ready": time.perf_counter() - started}), flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        query = session.query().group_by(*columns).agg(dp.len(signed=True)).with_keys(keys)
        rows = query.release().collect()
        print(json.dumps({"rows": len(rows), "seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    main()
