"""Posteriors of one parameter where the number of records and one sum are latent; without MCMC.

In: `noisy_sum` states the problem, and has the distribution of a sum under a conjugate prior.
Out: `sum_posterior`, a mixture of conjugate distributions over `nodes` of a quadrature, merged where many.
May import: engines/multinomial, priors and below.
"""
