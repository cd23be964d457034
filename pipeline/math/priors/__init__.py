"""Public priors of parameters and of the number of records.

In: text, objects, or distributions of scipy.stats.
Out: priors that are checked to be proper.
May import: distributions and below.
"""
