"""What pictures of a histogram's column show: which cells, which quantiles, which part of the column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.engines.histogram.column_law import ColumnLaw

MOST_CELLS = 6
"""Cells with a density and a distribution function each."""
SHOWN = (0.1, 0.5, 0.9)
"""Quantiles whose intervals are drawn."""
REACH = (0.005, 0.985)
"""Quantiles beyond which no more of the column is shown than a tenth of what lies between them."""


def shows_column(posterior: Posterior) -> bool:
    """Whether a posterior is one of a column's distribution, behind the noise."""
    return posterior.family == "histogram" and posterior.method == "noise-aware"


def cell_names(posterior: Posterior, n_bins: int) -> list[str]:
    """Return what the cells are called; one empty text where there is one."""
    if not posterior.groups:
        return [""]
    last = f", {posterior.categories[0]}"
    return [name.removesuffix(last) for name in posterior.entry_names("probability")[::n_bins]]


def seen(law: ColumnLaw, mass: float) -> tuple[float, float]:
    """Return the part of the column in which nearly all of it lies, in every cell."""
    bounds = float(law.lower[0]), float(law.upper[-1])
    low, high = (
        np.nan_to_num(law.quantile(q, mass).median, nan=end) for q, end in zip(REACH, bounds, strict=True)
    )
    first, last = float(np.min(low)), float(np.max(high))
    room = 0.1 * (last - first)
    return max(bounds[0], first - room), min(bounds[1], last + room)
