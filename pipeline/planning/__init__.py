"""What a spec would be worth: from a wanted width back to an epsilon, and one mechanism beside the other.

In: a spec, and a wanted width or a true parameter.
Out: the smallest epsilon that reaches it in simulation; errors of a sample and of a Laplace release.
May import: calibration and below. Never a trusted room.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "beside_sample": ("beside_sample",),
    "smallest_epsilon": ("smallest_epsilon",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
