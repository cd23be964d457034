"""What people ask of a posterior: intervals, comparisons, predictions, the effect of clipping, draws.

In: a noisy statistic and a prior; `infer` chooses the method.
Out: `Posterior`.
May import: families and below. Never a trusted room.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "arviz": ("container", "write_container"),
    "bounded_records": (
        "BY_EVIDENCE",
        "IGNORED",
        "MODELLED",
        "can_be_of_bounded",
        "cells_to_model",
        "of_bounded_records",
        "refuse_to_model",
        "require_way_of_clipping",
    ),
    "cells": ("cells_of", "refuse_shared"),
    "chosen_priors": ("AnyPrior", "n_prior_for", "predictor_prior_for", "prior_for", "read_prior"),
    "checking": ("Check",),
    "clipped_cells": ("pooled_with_clipping",),
    "conflict": ("Conflict",),
    "contrasts": (
        "Contrast",
        "DIFFERENCE",
        "RATIO",
        "contrast_between",
        "finite",
        "in_words",
        "matched_cells",
        "parse_statement",
        "require_interval",
        "require_share",
        "share_between",
        "tidy_rows",
    ),
    "curves": ("curve_points", "entry_labels", "in_words", "smoothing_of"),
    "draws": ("DRAWS", "MASS", "checked_draws", "generator"),
    "in_blocks": ("block_cells",),
    "infer": (
        "disjoint_moments_posterior",
        "disjoint_posterior",
        "noise_aware_posterior",
        "plug_in_posterior",
        "posterior_of",
        "require_way_of_units",
    ),
    "matching": ("conjugate_like", "draw"),
    "method_text": ("method_text",),
    "notes": (
        "clipping_warnings",
        "conflict_lines",
        "default_lines",
        "described",
        "design_effect_text",
        "diagnostics_text",
        "draws_text",
        "model_lines",
        "plug_in_lines",
        "unsettled_warning",
    ),
    "parameter_posterior": ("ends_of", "interval_in_words"),
    "pooled_one_parameter": ("pooled_grid_distribution",),
    "posterior": (
        "METHODS",
        "NOISE_AWARE",
        "PLUG_IN",
        "Posterior",
        "summaries",
        "summarise",
    ),
    "predictive": ("Model",),
    "within_unit": ("refuse_within_unit",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
