"""Posteriors of very many cells, a batch at a time over Dask.

In: a release, what is asked of it, a cluster.
Out: parts, each the summaries and draws of some cells; memory does not grow with the number of cells.
May import: publication and below. Never a trusted room.
"""
