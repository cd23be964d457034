"""Posteriors of a mean and a variance where the number of records and two sums are latent; without MCMC.

In: `moment_weights` states the problem, and bounds the density on boxes.
Out: `moment_posterior`: by boxes (`covering`) or, of many cells, by nodes (`nested_rule`,
    with compiled loops in `node_kernel`, `node_lines`, `node_weights`, `node_tables` and `node_picks`);
    `marginal_quantiles` has the marginals.
May import: engines/multinomial, priors and below. numba is loaded late, for many cells.
"""
