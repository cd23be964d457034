"""Posteriors of a mean and a variance where the number of records and two sums are latent; without MCMC.

In: `noisy_moments` states the problem.
Out: `posterior`: `weights` bounds the density on `boxes`, `integrals` integrates over them, `sampling`
    draws from them.
May import: engines/multinomial, priors and below.
"""
