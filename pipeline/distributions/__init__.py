"""Closed-form distributions over many cells, and numerical helpers; they know no data and no noise.

In: arrays of parameters, one row a cell.
Out: means, standard deviations, quantiles and draws.
May import: released and below.
"""
