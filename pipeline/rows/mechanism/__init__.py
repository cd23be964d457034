"""Noise and samples, once. A trusted room.

In: exact sums, opened here and nowhere else.
Out: noisy integers, or points of a grid. Claims and proof in `mechanism.md`.
May import: reduce and below. The only room that knows OpenDP; `cone` holds the noise that OpenDP does not draw.
"""
