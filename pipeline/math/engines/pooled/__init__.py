"""Parameters of cells that are drawn from one population, whose hyperparameters are integrated over.

In: `cells` has nodes of each cell's likelihood, of counts (`count_cells`), rates (`rate_cells`) and tables.
Out: `hyperparameters` weighs populations, `distribution` is every cell's exact mixture over them.
May import: count_likelihoods, tabulated, priors and below.
"""
