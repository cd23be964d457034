"""Several releases, or several cells of one, that speak of the same parameters; and the `Release` itself.

In: releases, and what a person says of how their data are related.
Out: one posterior, a comparison, or merged cells.
May import: posterior and below. Never a trusted room.
"""
