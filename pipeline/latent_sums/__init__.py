"""Exact posteriors of one parameter when the number of rows and one sum are latent behind noise; no MCMC.

``marginals`` has the laws of a sum under a conjugate prior, ``noisy`` states the problem, ``blocks`` and
``rules`` resolve one-dimensional weights, and ``latent`` puts them together.
"""
