"""Posteriors of a mean and a variance where the number of records and two sums are latent; without MCMC.

In: `noisy_moments` states the problem.
Out: `posterior`: `weights` bounds the density on `boxes` and integrates over them; draws come from them too.
May import: engines/multinomial, priors and below.
"""
