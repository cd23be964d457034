"""Structure over a release: what rows, conditions, steps and hidden states follow from its posteriors.

In: a release, or several windows of one series; public rows to predict for.
Out: predictions, conditional distributions, transition laws, hidden states, each with intervals.
May import: pooling and below. Never a trusted room.
"""
