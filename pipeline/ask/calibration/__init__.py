"""Whether a 95 % interval holds the truth in 95 of 100 cases: simulated releases, judged.

In: a release's plan, and priors.
Out: coverage, ranks and a conclusion.
May import: pooling and below. Never a trusted room.
"""
