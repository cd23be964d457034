"""Posteriors of mean vectors, covariances and regressions behind noisy moments, by Hamiltonian Monte Carlo.

In: noisy first and second moments.
Out: draws with R-hat and effective numbers of draws.
May import: engines/multinomial, priors and below.
"""
