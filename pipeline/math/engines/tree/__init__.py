"""Posteriors of counts on a tree, of which the levels were released with noise of their own.

In: `noisy_tree`, the released counts and who stands below whom; `populations`, laws of the leaves' counts.
Out: `posterior`, the exact law of all counts by messages (`messages`, `passes`), mixed over the
hyperparameters of the leaves' population (`hyperparameters`).
May import: priors and below.
"""
