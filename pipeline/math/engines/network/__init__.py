"""Posteriors of a Bayesian network: one latent set of consistent tables, by MCMC.

In: noisy tables that share margins; `decomposition` says which are taken together.
Out: draws with R-hat and effective numbers of draws.
May import: engines of one layer below: pooled, multivariate; engines/multinomial and below.
"""
