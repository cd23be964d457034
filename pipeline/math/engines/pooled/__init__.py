"""Parameters of cells that are drawn from one population, whose hyperparameters are integrated over.

In: `cells` says what is asked of a likelihood; `count_cells` and `rate_cells` answer for noisy counts,
`moment_cells` for means and variances, `category_cells` for categories.
Out: `hyperparameters` weighs populations, `distribution` is every cell's exact mixture over them;
`moment_pools` and `dirichlet` are the same of means and variances, and of categories.
May import: mean_variance, count_likelihoods, priors and below.
"""
