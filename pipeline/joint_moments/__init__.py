"""Posteriors of several columns: of a mean vector and a covariance, and of a regression.

``projection`` makes noisy moments possible, ``laws`` holds the conjugate laws, ``scaling`` changes units.
"""
