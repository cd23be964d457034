"""Numbers in, numbers out: from declarations and partitions to exact sums, noise and posteriors.

From the ground up: `terms`, `math`, `families`, `spec`. Above them stand two wings that never import each
other: `rows`, which is trusted, and `ask`, which is the consumer's. `cluster` hands out work to either.
"""
