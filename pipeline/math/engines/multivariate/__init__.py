"""Posteriors of mean vectors, covariances and regressions behind noisy moments, by Hamiltonian Monte Carlo.

In: noisy first and second moments; `log_posterior` states the problem, `evidence` and `exact_moments` priors.
Out: `column_posterior`: draws by `hmc`, with R-hat and effective numbers of draws.
May import: engines/multinomial, priors and below.
"""
