"""Posteriors of a mean and a variance under any prior of both, by quadrature over (mean, log variance).

In: `prior_on_grid` says where a prior has its mass; `likelihood` is that of a data set, by its `slices`.
Out: `distribution`, the posterior on rectangles; `product` of a prior and data sets.
May import: engines of one layer below: normal, one_sum; engines/multinomial and below.
"""
