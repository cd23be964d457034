"""Numbers in, numbers out: from partitions to exact statistics, noise and posteriors."""
