"""Noisy sums and a prior in, a posterior distribution out; one engine per shape of latent statistic.

In: arrays of noisy sums with the scale of their noise, and a prior. Engines know no family.
Out: posterior distributions over all cells.
May import: priors and below.
"""
