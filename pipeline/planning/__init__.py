"""From the width that a posterior shall have back to an epsilon.

In: a spec and a wanted width.
Out: the smallest epsilon that reaches it in simulation.
May import: calibration and below. Never a trusted room.
"""
