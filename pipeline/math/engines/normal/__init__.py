"""Posteriors of a mean and a variance where the number of records and two sums are latent; without MCMC.

In: `moment_weights` states the problem, and bounds the density on boxes.
Out: `moment_posterior`: boxes are cut, integrated over and drawn from; `marginal_quantiles` has
    the marginals.
May import: engines/multinomial, priors and below.
"""
