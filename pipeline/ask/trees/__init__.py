"""Counts on a public tree of keys, which add up in every draw.

In: a `KeyTree`, and a noisy statistic of each of its levels, or of its leaves alone.
Out: `CountTree`: tables, intervals, joint draws, shares, ratios and ranks; least squares beside them.
May import: posterior and below. Never a trusted room.
"""
