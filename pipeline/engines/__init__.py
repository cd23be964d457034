"""Noisy sums and a prior in, a posterior distribution out; one engine per shape of latent statistic.

In: arrays of noisy sums with the scale of their noise, and a prior. Engines know no family.
Out: posterior distributions over all cells.
May import: priors and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "clipped.likelihood": ("log_product",),
    "clipped.saddle_point": ("ClippedSums", "saddle", "tilted"),
    "jax.count_vectors": ("entries", "network", "star", "vector"),
    "jax.one_sum": ("one_sum",),
    "jax.totals": ("Total",),
    "jax.two_moments": ("columns", "one_column", "regression"),
    "left_out_share": ("NoisyRowTotals", "RowShares", "draw_rows"),
    "mean_variance.distribution": ("Exists", "MeanVarianceDistribution"),
    "mean_variance.grids": ("COARSE", "FINE", "TooManyError"),
    "mean_variance.likelihood": ("LatentRows",),
    "mean_variance.panels": ("NowhereError", "Panels", "around", "node_weights"),
    "mean_variance.plug_in": ("Exact", "exists"),
    "mean_variance.prior_on_grid": ("AnyJointPrior", "DensityOnGrid"),
    "mean_variance.product": ("ContradictionError", "Product"),
    "multinomial.class_counts": ("StarCounts", "star_posterior"),
    "multinomial.distribution": ("CountsDistribution",),
    "multinomial.noisy_counts": ("NoisyCounts",),
    "multinomial.posterior": ("count_posterior",),
    "multivariate.exact_moments": ("posterior_of_moments",),
    "multivariate.hmc": ("effective_draws", "split_r_hat"),
    "multivariate.posterior": ("normal_posterior", "regression_posterior"),
    "multivariate.priors_of_columns": ("AnyNormalPrior", "AnyRegressionPrior"),
    "network.decomposition": ("joint_parts", "network_distribution", "project_nodes"),
    "network.pooled": ("pooled_network_distribution",),
    "network.posterior": ("NoisyTables",),
    "normal.distribution": ("MomentsDistribution",),
    "normal.noisy_moments": ("BERNSTEIN", "MOMENTS", "MomentsPrior", "NoisyMoments"),
    "normal.posterior": ("MomentPosterior",),
    "one_sum.marginals": (
        "BetaBinomial",
        "BetaNegativeBinomial",
        "GammaGamma",
        "GammaPoisson",
        "Marginal",
        "NormalNormal",
        "SpreadGammaGamma",
    ),
    "one_sum.mixture_ratio": ("MixtureRatio",),
    "one_sum.nodes": ("batches", "resolve"),
    "one_sum.noisy_sum": ("NoisySums",),
    "one_sum.posterior": ("LatentSumPosterior",),
    "pooled.importance_sampling": ("products",),
    "pooled.multinomial": ("factors_of",),
    "posterior_mixture": ("PosteriorMixture", "mixture_distribution", "weighed"),
    "union.distribution": ("CellPoints", "UnionDistribution", "evenly_spread"),
    "union.moments": ("MomentsOfCell",),
    "union.summed_noise": ("SummedNoise",),
    "union.totals": ("TotalsOfCell",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
