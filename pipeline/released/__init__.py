"""What leaves the trusted side: noisy statistics, and the tables that show them.

In: a plan, and noisy values.
Out: unbiased estimates with the standard deviation of their noise.
May import: statistics and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "cells": ("Cells", "HeldCells", "StatisticsBySlices"),
    "noise_distribution": ("NoisyTotals", "log_laplace"),
    "noise_interval": ("noise_half_width",),
    "noisy_statistic": ("NoisyStatistic",),
    "sample": ("ReleasedSample", "no_statistics"),
    "text_table": ("text_table",),
    "where": ("no_such_key", "wanted_keys"),
    "withdrawal": ("Withdrawal",),
    "within_unit": ("NoisyProducts", "noisy_products", "rows_alone"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
