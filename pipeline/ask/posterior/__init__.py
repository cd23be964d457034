"""What people ask of a posterior: intervals, comparisons, predictions, the effect of clipping, draws.

In: a noisy statistic and a prior; `choice_of_engine` says which engine answers.
Out: `Posterior`.
May import: judging and below. Never a trusted room.
"""
