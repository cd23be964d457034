"""From the width that a posterior shall have back to an epsilon.

In: a spec and a wanted width.
Out: the smallest epsilon that reaches it in simulation.
May import: calibration and below. Never a trusted room.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "smallest_epsilon": ("smallest_epsilon",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
