"""Numbers in, numbers out: from declarations and partitions to exact sums, noise and posteriors.

In: specs, Arrow batches, releases.
Out: plans, noisy statistics, posteriors.
May import: errors. Rooms below are listed in the order in which they may import each other; nothing lies
    loose beside them.
"""
