r"""Noisy sums and a prior in, a posterior distribution out; one engine per shape of latent statistic.

A release y is a function of exact statistics S of N latent records, plus discrete Laplace noise of scale b.
An engine sums or integrates out what is latent,

.. math:: p(\theta \mid y) \propto \sum_N \int p(\theta \mid N, S) \, p(N, S \mid y) \, dS, \qquad
    p(N, S \mid y) \propto \pi(N) \, p(S \mid N) \, e^{-|y - L(N, S)| / b}

Which engine a family takes (families call engines; engines know no family), and by how many posterior
standard deviations (sd) its means were measured to be off; the decision records have the measurements:

==================================== ======================================= ============================
latent statistic, and the prior      engine                                  error
==================================== ======================================= ============================
one sum, conjugate                   ``one_sum.sum_posterior``               1e-6 sd; quantiles 1e-3
the same, of many counts of true     ``one_sum.nested_pairs``                1e-3 sd; quantiles 6e-3
the same, of many other sums         ``one_sum.compiled_blocks``             as ``sum_posterior``
one sum of clipped records           ``clipped_counts``                      1e-6 sd
a mean and a variance, conjugate     ``normal.moment_posterior``             0.002 sd; of the sd 0.5 %
the same, of many cells              ``normal.nested_rule``                  stated by cell, to 0.008 sd
a mean and a variance, any prior     ``mean_variance.product``               0.01 sd
counts of categories                 ``multinomial.count_posterior``         1e-8 sd; grids 7e-5
counts by class                      ``multinomial.class_counts``            1e-6 sd
tables of a network                  ``network.decomposition``               1e-6 sd, or Monte Carlo
several columns, a regression        ``multivariate.column_posterior``       Monte Carlo
rows left out of units               ``left_out_share``                      0.01 of an interval
records of merged cells              ``unions``                              0.04 sd
means of noisy counts, no prior      ``count_likelihoods``                   1e-10 nats
probabilities of counts, no prior    ``several_counts``                      1e-6 nats, and stated
a log likelihood, as a table         ``tabulated``                           stated by the table
a mixture of priors                  ``posterior_mixture``                   none
data sets                            ``combined``                            Monte Carlo
the parameters in JAX                ``jax_sums``, ``jax_moments``           e^-45 of the noise
==================================== ======================================= ============================

In: arrays of noisy sums with the scale of their noise, and a prior.
Out: posterior distributions over all cells.
May import: priors and below. Only families import the engines in JAX, and late: it is an extra.
"""
