"""One partition in, exact integer sums out. A trusted room.

In: Arrow batches.
Out: sums as integers that never wrap: independent of order and partitioning.
May import: sources and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "accumulator": ("Accumulator", "accumulator"),
    "accumulators": ("TransitionAccumulator",),
    "derived_columns": ("with_derived",),
    "exact_sums": (
        "Sums",
        "Table",
        "cell_count",
        "combine",
        "sums_nbytes",
        "to_python",
        "wipe",
        "wipe_sums",
        "zeros",
    ),
    "exact_totals": ("ExactTotals",),
    "jit": ("compiled", "read_only", "writable"),
    "kernels": ("NOTHING",),
    "partition": ("BLOCK_ROWS", "ChunkJob", "chunk", "chunk_job"),
    "row_readers": ("CellReader", "LARGEST_REST", "OrderReader", "Places", "column_reader"),
    "sql_sums": ("SumQuery", "sum_queries"),
    "unit_accumulators": ("UnitAccumulator", "UnitRows"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
