"""Structure over a release: what rows, conditions, steps and hidden states follow from its posteriors.

In: a release, or several windows of one series; public rows to predict for.
Out: predictions, conditional distributions, transition laws, hidden states, each with intervals.
May import: pooling and below. Never a trusted room.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "chain": ("Chain", "chain"),
    "chain_tables": ("Keys", "feature_names"),
    "classification": ("Classification", "Score"),
    "classifier": ("Classifier", "classifier"),
    "drawn_quantity": ("DrawnQuantity",),
    "fit_settings": ("HOLDOUT", "SPLITS", "read_settings"),
    "hidden_markov": ("hidden_markov",),
    "hidden_markov_fit": ("HiddenMarkovFit",),
    "network": ("Conditional", "Network", "network"),
    "regression": ("Prediction", "Regression", "regression"),
    "restart_diagnostics": ("LARGEST_R_HAT",),
    "state_comparison": ("StateComparison",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
