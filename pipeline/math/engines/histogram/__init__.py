"""Posteriors of a histogram's bins behind noise: the log intensity walks over ordered bins.

In: `emission` has the chance of a noisy count given an intensity, and latent counts given both.
Out: `histogram_posterior`: draws and exact marginals of the bins' expected counts, by `bin_walk`.
May import: distributions, priors and below.
"""
