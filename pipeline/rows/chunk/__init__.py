"""One partition in, exact integer sums out. A trusted room.

In: Arrow batches.
Out: sums as integers that never wrap: independent of order and partitioning.
May import: sources and below.
"""
