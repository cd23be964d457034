"""Noise on a cone of matrices, exactly, from random bits: the first noise here that OpenDP does not draw.

In: an exact rate and a shape. Out: integers. No floating point lies between bits and integers. Claims and
proofs in `cone.md`.
"""
