"""Exact posteriors of latent count vectors behind discrete Laplace noise; free of MCMC.

``noisy`` states the problem and ``latent`` solves it: by ``tilts`` and ``geometric`` rows under a flat prior
with N private, else ``weights`` tabulates one-dimensional laws, ``sums`` convolves them on ``grids``, and
``sampling`` draws with ``draws``.
"""
