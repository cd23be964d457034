"""What is computed: the specs, and the same answers by ourselves and by others.

Every function reads the files and returns a checksum, so that a contender that computes something else is
found out. Lattice values are those of the spec: ``rint(((x - centre) / half_range) * 2**16)``, clipped.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from generate import CATEGORIES, MONTHS, REGIONS

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.mechanism.mechanism import privatize
from suffice.pipeline.rows.reduce.tree import exact_sums
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster

NUMBERS = {"amount": (-60, 180), "ratio": (0, 1)}
STEPS = 1 << 16
GROUPS: dict[str, Any] = {
    "region": list(REGIONS),
    "month": {"range": [str(MONTHS[0]), str(MONTHS[-1])]},
}
TEXTS = ("region", *CATEGORIES)
COLUMNS = (*TEXTS, "month", *NUMBERS)


def n_threads() -> int:
    """Return how many threads every contender gets."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_spec(
    directory: Path | str, groups: dict[str, Any], statistics: dict[str, Any], unit: Any = "row"
) -> Spec:
    """Return a spec over the reference data."""
    return load_spec(
        {
            "name": "benchmark",
            "dataset": "benchmark",
            "source": {"parquet": str(directory)},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit},
            "groups": groups,
            "statistics": statistics,
        }
    )


def counted(column: str) -> dict[str, Any]:
    """Return the entry of a categorical statistic."""
    return {
        "family": "categorical",
        "column": column,
        "categories": list(CATEGORIES[column]),
        "other": "true",
    }


def reference_spec(directory: Path, unit: Any = "row") -> Spec:
    """Return the spec of the goals: 1,440 groups, 5 categorical and 2 normal statistics."""
    normal = {
        name: {"family": "normal", "column": name, "lower": str(lower), "upper": str(upper)}
        for name, (lower, upper) in NUMBERS.items()
    }
    return make_spec(directory, GROUPS, {**{name: counted(name) for name in CATEGORIES}, **normal}, unit)


def one_count_spec(directory: Path, column: str = "category_5") -> Spec:
    """Return the spec of one count query of three columns."""
    return make_spec(directory, GROUPS, {column: counted(column)})


def ours(spec: Spec, cluster: Cluster) -> int:
    """Compute the exact statistics."""
    sums = to_python(exact_sums(chunk_job(spec), sources.splits(sources.pin(spec)), cluster).open_totals())
    return sum(int(table.sum()) for table in sums.values())


def ours_with_noise(spec: Spec, cluster: Cluster) -> int:
    """Compute the exact statistics and add the noise."""
    plan = compile_plan(spec)
    sums = exact_sums(chunk_job(spec), sources.splits(sources.pin(spec)), cluster)
    return sum(block.size for _, block in privatize(sums, spec, plan))


def duckdb_queries(directory: Path) -> list[str]:
    """Return one query per statistic; sums of lattice values are HUGEINT."""
    files, inside = _duckdb_rows(directory)
    counts = [
        f"FROM {files} SELECT region, month, {column}, count(*) WHERE {inside} GROUP BY ALL"
        for column in CATEGORIES
    ]
    sums = [
        f"FROM (FROM {files} SELECT region, month, {_duckdb_lattice(column)} AS x "
        f"WHERE {inside} AND NOT isnan({column})) "
        "SELECT region, month, count(x), sum(x), sum(x * x) GROUP BY ALL"
        for column in NUMBERS
    ]
    return counts + sums


def duckdb_grouping_sets(directory: Path) -> list[str]:
    """Return two queries: all counts by GROUPING SETS, and all sums."""
    files, inside = _duckdb_rows(directory)
    sets = ", ".join(f"(region, month, {column})" for column in CATEGORIES)
    lattice = ", ".join(
        f"CASE WHEN NOT isnan({column}) THEN {_duckdb_lattice(column)} END AS {column}" for column in NUMBERS
    )
    sums = ", ".join(f"count({column}), sum({column}), sum({column} * {column})" for column in NUMBERS)
    return [
        (
            f"FROM {files} SELECT region, month, {', '.join(CATEGORIES)}, count(*) "
            f"WHERE {inside} GROUP BY GROUPING SETS ({sets})"
        ),
        (
            f"FROM (FROM {files} SELECT region, month, {lattice} WHERE {inside}) "
            f"SELECT region, month, {sums} GROUP BY ALL"
        ),
    ]


def run_duckdb(queries: list[str]) -> int:
    """Run queries one after the other on a fresh connection; add up what is no key."""
    import duckdb

    connection = duckdb.connect(config={"threads": n_threads()})
    total = 0
    for query in queries:
        result = connection.execute(query)
        numbers = [
            index for index, column in enumerate(result.description) if column[0].startswith(("count", "sum"))
        ]
        total += sum(int(row[index]) for row in result.fetchall() for index in numbers)
    return total


def _duckdb_rows(directory: Path) -> tuple[str, str]:
    regions = ", ".join(f"'{region}'" for region in REGIONS)
    inside = f"region IN ({regions}) AND month BETWEEN {MONTHS[0]} AND {MONTHS[-1]}"
    return f"read_parquet('{directory}/*.parquet')", inside


def _duckdb_lattice(column: str) -> str:
    centre, half = _centre_and_half(column)
    scaled = f"round_even((({column} - {centre}) / {half}) * {STEPS}, 0)"
    return f"CAST(greatest(least({scaled}, {STEPS}), {-STEPS}) AS BIGINT)"


def run_polars(directory: Path) -> int:
    """Run all aggregations in one streaming pass."""
    import polars as pl

    rows = pl.scan_parquet(f"{directory}/*.parquet").filter(
        pl.col("region").is_in(list(REGIONS)) & pl.col("month").is_between(MONTHS[0], MONTHS[-1])
    )
    frames = [rows.group_by("region", "month", column).len("count") for column in CATEGORIES]
    for column in NUMBERS:
        centre, half = _centre_and_half(column)
        scaled = (((pl.col(column) - centre) / half) * STEPS).round(mode="half_to_even")
        lattice = rows.filter(pl.col(column).is_not_nan()).select(
            "region", "month", x=scaled.clip(-STEPS, STEPS).cast(pl.Int64)
        )
        sums = lattice.group_by("region", "month").agg(
            n=pl.col("x").count(), total=pl.col("x").sum(), squares=(pl.col("x") * pl.col("x")).sum()
        )
        frames.append(sums)
    keys = {"region", "month", *CATEGORIES}
    return sum(
        int(frame[column].sum())
        for frame in pl.collect_all(frames, engine="streaming")
        for column in frame.columns
        if column not in keys
    )


def run_dask_dataframe(directory: Path) -> int:
    """Run all aggregations over one reading of the files, in threads."""
    import dask
    import dask.dataframe as dd

    frame = dd.read_parquet(f"{directory}/*.parquet", columns=list(COLUMNS))
    frame = frame[frame.region.isin(list(REGIONS)) & frame.month.between(MONTHS[0], MONTHS[-1])]
    lattice = {}
    for column in NUMBERS:
        centre, half = _centre_and_half(column)
        values = (((frame[column] - centre) / half) * STEPS).round().clip(-STEPS, STEPS)
        lattice |= {column: values, f"{column}_squared": values * values}
    frame = frame.assign(**lattice)
    groups = [frame.groupby(["region", "month", column], dropna=False).size() for column in CATEGORIES]
    numbers = frame.groupby(["region", "month"])
    sums = [numbers[column].agg(["count", "sum"]) for column in NUMBERS]
    squares = [numbers[f"{column}_squared"].sum() for column in NUMBERS]
    results = dask.compute(*groups, *sums, *squares, scheduler="threads", num_workers=n_threads())
    return sum(int(value) for result in results for value in result.to_numpy().ravel())


def decode(directory: Path) -> int:
    """Decode the same columns with pyarrow alone, texts as dictionaries, a row group per thread."""
    import pyarrow.parquet as pq

    def read(path: Path, group: int) -> int:
        with pq.ParquetFile(path, read_dictionary=list(TEXTS)) as file:
            return int(file.read_row_group(group, columns=list(COLUMNS), use_threads=False).num_rows)

    paths = sorted(directory.glob("*.parquet"))
    groups = [(path, group) for path in paths for group in range(pq.read_metadata(path).num_row_groups)]
    with ThreadPoolExecutor(n_threads()) as pool:
        return sum(pool.map(lambda workspace: read(*workspace), groups))


def _centre_and_half(column: str) -> tuple[float, float]:
    lower, upper = NUMBERS[column]
    return (lower + upper) / 2, (upper - lower) / 2
