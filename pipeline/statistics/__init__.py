"""What is summed of a record, and how far one privacy unit can move the sums.

In: columns, bounds and categories that a declaration states.
Out: lattices, measures, blocks of components and their sensitivities, proved in `sensitivity.md`.
May import: declaration.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "beyond_bounds": ("Outside", "failures_outside", "gamma_rate_outside", "gamma_scale_outside", "normal_outside", "poisson_outside"),
    "block": ("Block", "ColumnBounds", "Parameters", "Quantity", "combination"),
    "clipped_counts": ("clipped_failures", "clipped_poisson"),
    "count_table": ("CountTable", "Label", "Labels", "Variable", "entry_names", "label_columns", "label_names", "label_rows"),
    "lattice": ("DEFAULT_BITS", "Quantiser", "require_interval"),
    "measure": ("CodeColumn", "CodeCounts", "LatticeColumn", "Measure", "MomentSums", "PowerSums", "ReadColumn", "TableCounts", "TransitionCounts", "columns_of", "orders_of"),
    "moment_columns": ("BoundedColumn", "Map", "first_moment", "is_linear", "lattice_of", "least_rows", "moment_map", "n_moments", "pair_name"),
    "normal_sums": ("NormalSums",),
    "sensitivity": ("Design", "NeighboringRelation", "minimal_counts", "minimal_moments", "minimal_products", "minimal_sum", "minimal_tables"),
    "simulated_sums": ("SimulatedSums", "code_counts", "discrete_laplace", "moment_sums", "normal_rows", "power_sums", "table_counts", "transition_counts"),
    "statistic_plan": ("DECIMAL", "INT64", "NOISE_REACH", "StatisticPlan", "discrete_laplace_sd"),
    "transforms": ("EXP", "LN2_HIGH", "LN2_LOW", "LOG_EVEN", "LOG_FIRST", "LOG_ODD", "NARROWEST_LOGS", "SMALLEST_EXPONENT", "Shape", "Transform", "log_bound", "power_bound"),
    "unit_measures": ("FirstRow", "LARGEST_UNIT_SUM", "N_PRODUCTS", "RowCounts", "UnitMean", "UnitProducts"),
    "within_unit": ("WithinUnit", "beside_rows"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
