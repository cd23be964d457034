"""Products of posteriors of data sets that share their parameters.

In: posteriors of each data set, as mixtures of conjugate distributions.
Out: the posterior given all of them, by labelled importance sampling.
May import: engines/multinomial, priors and below.
"""
