"""Posteriors of a Bayesian network: one latent set of consistent tables, by MCMC.

In: noisy tables that share margins; `decomposition` says which are taken together.
Out: `table_posterior`: draws of `table_network`, with R-hat and effective numbers of draws.
May import: engines/combined, multivariate; engines/multinomial and below.
"""
