"""What a spec would be worth: from a wanted width back to an epsilon, and one mechanism beside the other.

In: a spec, and a wanted width, a true parameter, or what is assumed of the data.
Out: the smallest epsilon that reaches it in simulation; errors of a sample and of a Laplace release; shares.
May import: calibration and below. Never a trusted room.
"""
