"""Several releases, or several cells of one, that speak of the same parameters; and the `Release` itself.

In: releases, and what a person says of how their data are related.
Out: one posterior, a comparison, or merged cells.
May import: posterior and below. Never a trusted room.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "comparison": ("Comparison", "compare"),
    "pool": ("pool",),
    "prior_comparison": ("PriorComparison", "compare_priors"),
    "release": ("Release",),
    "roll_up": ("ONE_PARAMETER", "require_assumption", "roll_up"),
    "union": ("UnionPosterior", "quantities_of", "require_totals"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
