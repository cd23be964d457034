"""Whether a 95 % interval holds the truth in 95 of 100 cases: simulated releases, judged.

In: a release's plan, and priors.
Out: coverage, ranks and a conclusion.
May import: pooling and below. Never a trusted room.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "calibrate": ("calibrate",),
    "ranks": ("BINS",),
    "result": ("Calibration",),
    "simulated_release": (
        "GenerativeModel",
        "MOST_RECORDS",
        "generative_model_of",
        "require_drawable",
        "require_positive",
    ),
}
"""What other rooms may import, by module; empty: the module as a whole."""
