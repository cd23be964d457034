"""What somebody asks of releases, as one canonical request, and what answers it.

In: releases, statistics, priors, a number of draws.
Out: a request and its id; summaries, draws and diagnostics.
May import: calibration and below. Never a trusted room.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "answer": ("notes_of",),
    "draw_columns": ("draw_columns",),
    "releases": ("manifest_sha256",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
