"""Closed-form distributions, prior and posterior in one file each, and numerical helpers; they know no noise.

In: arrays of parameters, one row a cell.
Out: means, standard deviations, quantiles and draws.
May import: released and below.
"""
