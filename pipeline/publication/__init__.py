"""What somebody asks of releases, as one canonical request, and what answers it.

In: releases, statistics, priors, a number of draws.
Out: a request and its id; summaries, draws and diagnostics.
May import: calibration and below. Never a trusted room.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "answer": ("Answer", "notes_of"),
    "answering": ("answers",),
    "draw_columns": ("draw_columns",),
    "model_terms": ("model_text",),
    "question": ("Question", "ask", "cells_asked", "given_n_prior", "intervals_of"),
    "releases": ("manifest_sha256",),
    "request": ("Kind", "Request", "StatisticRequest"),
    "streams": ("Streams", "quantile_draws"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
