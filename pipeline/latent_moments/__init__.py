"""Exact posteriors of a normal's mean and variance when (N, t, q) is latent behind Laplace noise; no MCMC.

``noisy`` states the problem, ``weights`` is its density and a bound of it on boxes, ``boxes`` covers all of
it with boxes that are as fine as they have to be, ``moments`` integrates over them, ``sampling`` draws from
them, and ``posterior`` puts them together.
"""
