"""What somebody asks of releases, as one canonical request, and what answers it.

In: releases, statistics, priors, a number of draws.
Out: a request and its id; summaries, draws and diagnostics.
May import: calibration and below. Never a trusted room.
"""
