"""What a page shows of a histogram: its column's density, distribution function and quantiles, by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.pages.column_figures import column_figure
from suffice.pages.drawing import DrawnInterval
from suffice.pipeline.ask.posterior.shown_columns import MOST_CELLS, SHOWN, cell_names

if TYPE_CHECKING:
    import numpy as np

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.engines.histogram.column_law import ColumnLaw

MOST_COLUMNS = 20
"""Cells whose quantiles a page shows; of more, as many that are evenly spaced."""
QUANTILE = "quantile"
"""What the intervals are of."""
ENTRIES = tuple(f"{100 * q:g} % quantile" for q in SHOWN)
READING = (
    "Above: the density, a step for each bin in its order, and the share of values up to each number, both "
    "within 95 % intervals."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnView:
    """The columns of some cells.

    Attributes
    ----------
    svg : str
        Densities and distribution functions; empty for more than ``MOST_CELLS`` cells.
    intervals : list of list of DrawnInterval
        Of every cell, of each of the quantiles ``SHOWN``; not finite where a quantile is refused.
    rows : list of dict
        The same as a table.
    notes : tuple of str
        What has to be said beside them.
    """

    svg: str
    intervals: list[list[DrawnInterval]]
    rows: list[dict[str, Any]]
    notes: tuple[str, ...]


def column_view(posterior: Posterior, *, mass: float, draws: int, rng: np.random.Generator) -> ColumnView:
    """Work out what a page shows of the columns behind a noise-aware posterior of a histogram.

    Parameters
    ----------
    posterior : Posterior
        Of at most ``MOST_COLUMNS`` cells.
    mass : float
        Of bands and intervals; halves lie within them.
    draws, rng
        Of the columns.
    """
    law = posterior.column(draws=draws, rng=rng)
    words = posterior.about.words(posterior.statistic)
    axis = ", ".join(filter(None, (posterior.about.label(posterior.statistic), words.unit)))
    is_drawn = posterior.n_groups <= MOST_CELLS
    names = cell_names(posterior, len(law.lower))
    intervals, rows, notes = _quantiles(posterior, law, mass)
    return ColumnView(
        svg=column_figure(law, names, axis=axis, mass=mass) if is_drawn else "",
        intervals=intervals,
        rows=rows,
        notes=notes,
    )


def _quantiles(
    posterior: Posterior, law: ColumnLaw, mass: float
) -> tuple[list[list[DrawnInterval]], list[dict[str, Any]], tuple[str, ...]]:
    """Return intervals and table rows, by cell and quantile, and what to say of those that are refused."""
    whole = [law.quantile(q, mass) for q in SHOWN]
    halves = [law.quantile(q, 0.5) for q in SHOWN]
    cells = range(posterior.n_groups)
    intervals = [
        [
            DrawnInterval(
                low=float(of.lower[cell]),
                lower_half=float(half.lower[cell]),
                middle=float(of.median[cell]),
                upper_half=float(half.upper[cell]),
                high=float(of.upper[cell]),
            )
            for of, half in zip(whole, halves, strict=True)
        ]
        for cell in cells
    ]
    rows = [
        {
            **{column: keys[cell] for column, keys in posterior.groups.items()},
            "quantity": entry,
            "median": None if of.refused[cell] else float(of.median[cell]),
            "lower": float(of.lower[cell]),
            "upper": float(of.upper[cell]),
        }
        for cell in cells
        for entry, of in zip(ENTRIES, whole, strict=True)
    ]
    n_refused = sum(int(of.refused.sum()) for of in whole)
    refused = (
        f"{n_refused} of {len(rows)} quantiles are refused: their intervals span half of what the number can "
        "be; narrower bins, tighter bounds or more epsilon would answer"
    )
    return intervals, rows, (refused,) if n_refused else ()
