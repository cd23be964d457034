"""Cells that borrow strength: one population of cells, covariates, neighbours, and time.

In: a noisy statistic of many cells, and a `Pooling`, which says what they have in common.
Out: `PooledPosterior`.
May import: posterior and below. Never a trusted room.
"""
