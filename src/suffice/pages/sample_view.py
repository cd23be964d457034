"""What a page shows of a released sample: its draws as points, and nothing that would need sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pages.statistic_view import SAMPLE, StatisticView
from suffice.pipeline.terms.declaration.exact_numbers import format_number

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.sample import ReleasedSample

MOST_CELLS, MOST_DRAWS = 60, 40
"""Of a picture: more cells are evenly spaced in declared order, and of more draws the first are shown."""


def sample_view(sample: ReleasedSample) -> StatisticView:
    """Return what a page shows of a sample."""
    n_cells, n_draws = sample.indices.shape
    cells = np.arange(n_cells)
    said = []
    if n_cells > MOST_CELLS:
        cells = np.linspace(0, n_cells - 1, MOST_CELLS).round().astype(np.int64)
        said.append(f"{MOST_CELLS} of {n_cells:,} cells, evenly spaced in declared order")
    if n_draws > MOST_DRAWS:
        said.append(f"the first {MOST_DRAWS} of {n_draws:,} draws of each")
    drawn, shown = sample.sample, cells.tolist()
    lower, upper = map(format_number, drawn.within)
    return StatisticView(
        name=sample.plan.name,
        family=sample.plan.family,
        kind=SAMPLE,
        shown_of=sample.parameter,
        entries=("",),
        keys=[{column: keys[cell] for column, keys in sample.groups.items()} for cell in shown],
        n_cells=n_cells,
        intervals=[],
        within=(float(drawn.within[0]), float(drawn.within[1])),
        is_tempered=drawn.is_tempered,
        draws=sample.values[cells, :MOST_DRAWS].tolist(),
        rows=sample.take(cells).table(),
        facts={
            "draws": f"{n_draws} of each cell, by the exponential mechanism",
            "grid": f"{drawn.grid} points of {lower} to {upper}",
            "prior": drawn.prior,
            "temperature": f"{float(drawn.temperature):.6g}",
        },
        selection=", ".join(said),
    )
