"""Parameters of cells that are drawn from one population, whose hyperparameters are integrated over.

In: `cells` says what is asked of a likelihood; `count_cells` and `rate_cells` answer for noisy counts.
Out: `hyperparameters` weighs populations, `distribution` is every cell's exact mixture over them.
May import: count_likelihoods, priors and below.
"""
