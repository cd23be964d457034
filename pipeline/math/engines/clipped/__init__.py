"""Likelihoods of counts that were clipped to a public bound.

In: the distribution of one clipped record.
Out: that of sums of them, by Fourier inversion and, far out, by a saddle point.
May import: engines/multinomial, priors and below.
"""
