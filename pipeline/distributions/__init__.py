"""Closed-form distributions, prior and posterior in one file each, and numerical helpers; they know no noise.

In: arrays of parameters, one row a cell.
Out: means, standard deviations, quantiles and draws.
May import: released and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "adaptive_blocks": ("Blocks", "NATS", "SLICE", "divide", "divide_by_mass", "divide_line", "nodes_of"),
    "beta": ("Beta", "BetaDistribution"),
    "cell_blocks": ("CellBlocks", "CellProgress", "blocks_of"),
    "conjugate_mixture": ("ConjugateMixture", "states_in_turn"),
    "dirichlet": ("Dirichlet", "DirichletDistribution", "sample_dirichlet"),
    "dirichlet_blocks": ("BlockDirichlet", "Starts", "block_starts", "block_totals", "sample_blocks"),
    "distribution": ("ConjugateDistribution", "Distribution", "Labelled", "MixtureOfConjugates"),
    "draws": ("Draws", "from_draws"),
    "gamma": ("Gamma", "GammaDistribution"),
    "inverse_gamma": ("InverseGamma", "InverseGammaDistribution"),
    "laplace_sums": ("log_density_of_sum", "log_mass_of_sum", "upper_tail"),
    "line": ("Line",),
    "merged": ("Components", "FINE", "WeighedPairs"),
    "moment_projection": ("Moments", "estimate", "project"),
    "named_entries": ("Entries",),
    "normal": ("Normal", "NormalDistribution"),
    "normal_inverse_gamma": ("NormalInverseGamma", "NormalInverseGammaDistribution"),
    "normal_inverse_gamma_regression": ("NormalInverseGammaRegression", "RegressionDistribution"),
    "normal_inverse_wishart": ("NormalInverseWishart", "NormalInverseWishartDistribution"),
    "on_grid": ("Cell", "GriddedDistribution"),
    "one_parameter": ("Coordinate", "coordinate_of"),
    "partial_moments": ("moments_about", "moments_between"),
    "piecewise": ("Piece", "PiecewiseTables", "Probabilities", "worst_diagnostics"),
    "prior": ("Prior", "written"),
    "quadrature": ("POINTS", "integral_rule", "sum_rule"),
    "quantiles": ("find_quantile",),
    "regions": ("Region", "RegionOfColumns", "RegionOfRegression"),
    "rough_quantiles": ("rough_quantiles",),
    "scaling": ("Scaling", "design_of"),
    "shortest_intervals": (
        "CENTRAL",
        "HIGHEST_DENSITY",
        "Range",
        "shortest_intervals",
        "shortest_of_draws",
    ),
    "simplex": ("project_simplex",),
    "spread_density": (),
    "spread_normal_inverse_wishart": ("SpreadNormalInverseWishart", "freedom", "updated_given_scales"),
    "spread_regression": ("SpreadNormalInverseGammaRegression",),
    "spread_scales": ("CONCENTRATION", "LARGEST", "LARGEST_WEIGHTS", "VARIANCES", "WEIGHTS"),
    "within_limits": ("unrestricted", "within", "within_region"),
    "within_several": ("within_several",),
    "student": ("log_student",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
