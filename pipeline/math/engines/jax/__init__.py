"""Likelihoods of noisy statistics that JAX traces: everything latent summed or integrated out.

In: a noisy statistic, the prior of N, and parameters as JAX arrays.
Out: log likelihoods of every cell; in `two_moments`, of latent numbers beside the parameters.
May import: the other engines and below. Only families import it, where they are called for: JAX is an extra.
"""
