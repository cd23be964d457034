"""What people ask of a posterior: intervals, comparisons, predictions, the effect of clipping, draws.

In: a noisy statistic and a prior; `infer` chooses the method.
Out: `Posterior`.
May import: judging and below. Never a trusted room.
"""
