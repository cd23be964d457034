"""What leaves the trusted side: noisy statistics, and the tables that show them.

In: a plan, and noisy values.
Out: unbiased estimates with the standard deviation of their noise.
May import: statistics and below.
"""
