"""Released statistics as likelihoods of parameters, in JAX, for models of one's own.

In: a noisy statistic or a tree, and parameters that JAX traces.
Out: log likelihoods with the noise integrated out, as the family states them.
May import: pooling and below. Never a trusted room.
"""
