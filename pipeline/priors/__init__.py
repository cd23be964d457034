"""Public priors of parameters and of the number of records.

In: text, objects, or distributions of scipy.stats.
Out: priors that are checked to be proper.
May import: distributions and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "by_name": ("named_distribution",),
    "density": ("Density", "DensityOnLine", "LEAST", "ScipyDistribution"),
    "joint_density": ("Independent", "JointDensity"),
    "mixtures": (
        "AnyDensity",
        "Mixture",
        "ScaleMixture",
        "SpreadGamma",
        "SpreadInverseGamma",
        "SpreadScale",
        "one_component",
        "parse_mixture",
    ),
    "on_points": ("canonical_prior", "log_prior_on_points"),
    "record_count": ("Fixed", "NPrior", "Reciprocal", "Uniform", "parse_n_prior"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
