"""One count query of three columns in Tumult Analytics, under the interpreter of an environment of its own.

`run.py` starts this file with SUFFICE_TUMULT_PYTHON. Each line of standard input asks the query once more,
and is answered by a line with the number of rows and the seconds that it took.
"""

from __future__ import annotations

import json
import os
import sys
import time

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def main() -> None:
    """Open a session over the files, then answer one query per line."""
    task = json.loads(sys.argv[1])
    started = time.perf_counter()
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    spark = (
        SparkSession.builder.master(f"local[{task['threads']}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", str(task["threads"]))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(float("inf")),
        source_id="rows",
        dataframe=spark.read.parquet(task["files"]),
        protected_change=AddOneRow(),
    )
    query = QueryBuilder("rows").groupby(KeySet.from_dict(task["keys"])).count()
    print(json.dumps({"ready": time.perf_counter() - started}), flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        rows = session.evaluate(query, PureDPBudget(1)).collect()
        print(json.dumps({"rows": len(rows), "seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    main()
