"""Likelihoods of released statistics as functions of parameters, in JAX; for ``suffice.numpyro``.

``observed`` knows which family has which; ``sums`` is of one sum, ``counts`` of vectors and tables of counts,
``moments`` of first and second moments, and ``windows`` says over which latent numbers they sum.
"""
