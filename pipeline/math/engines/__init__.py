r"""Noisy sums and a prior in, a posterior distribution out; one engine per shape of latent statistic.

A release y is a function of exact statistics S of N latent records, plus discrete Laplace noise of scale b.
An engine sums or integrates out what is latent,

.. math:: p(\theta \mid y) \propto \sum_N \int p(\theta \mid N, S) \, p(N, S \mid y) \, dS, \qquad
    p(N, S \mid y) \propto \pi(N) \, p(S \mid N) \, e^{-|y - L(N, S)| / b}

Which engine a family takes (its ``posterior``; the families call them, engines know no family):

==================================== ======================================= ============================
latent statistic, and the prior      engine                                  error
==================================== ======================================= ============================
one sum, conjugate                   ``one_sum.posterior``                   quadrature, 1e-8 of moments
one sum of clipped records           ``clipped_counts``                      1e-16 of the chance, given N
a mean and a variance, conjugate     ``normal.posterior``                    boxes, 1 / 250 of the mass
a mean and a variance, any prior     ``mean_variance.product``               rectangles, 3e-5 of the mass
counts of categories                 ``multinomial.posterior``               rounding
counts by class                      ``multinomial.class_counts``            1e-8 of the mass
tables of a network                  ``network.decomposition``               rounding, or Monte Carlo
several columns, a regression        ``multivariate.posterior``              Monte Carlo
rows left out of units               ``left_out_share``                      0.001 of an interval
records of merged cells              ``unions``                              0.04 standard deviations
a mixture of priors; data sets       ``combined``                            none; Monte Carlo
the parameters in JAX                ``jax_sums``, ``jax_moments``           e^-45 of the noise
==================================== ======================================= ============================

In: arrays of noisy sums with the scale of their noise, and a prior. Engines know no family. Out: posterior
distributions over all cells. May import: priors and below. Only families import the engines in JAX, where
they are called for: it is an extra.
"""
