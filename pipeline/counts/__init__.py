"""Exact posteriors of latent count vectors behind discrete Laplace noise; free of MCMC.

``noisy`` states the problem, ``weights`` tabulates one-dimensional laws, ``sums`` convolves them,
``sampling`` draws, and ``latent`` puts them together.
"""
