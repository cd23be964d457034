"""Posteriors of probabilities where a vector of counts is latent; without MCMC.

In: `noisy_counts` states the problem.
Out: `count_posterior`: by `flat_prior` where the prior is flat, else by `convolution` on grids;
    `class_counts` for tables that share their class. Both draw by `sampling`. `marginals` has quantiles
    and densities without draws.
May import: priors and below.
"""
