"""The graph of tasks, and the cluster that runs it. A trusted room.

In: splits of a source.
Out: exact sums, in the calling process.
May import: contribution and below. The only room that knows Dask.
"""
