"""The plot of a posterior card: intervals of every cell as inline SVG, without any library."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.posterior.posterior import Posterior

_LABELS, _WIDTH, _LINE, _TOP = 230, 720, 20, 34
_LONGEST_LABEL = 32


def forest(posterior: Posterior, parameter: str, mass: float, draws: int, rng: np.random.Generator) -> str:
    """Return one parameter's medians, 50 % intervals and intervals of the given mass, a line a cell.

    Parameters
    ----------
    posterior : Posterior
    parameter : str
    mass : float
        Of the thin intervals.
    draws : int
        That quantiles rest on.
    rng : numpy.random.Generator
    """
    levels = ((1.0 - mass) / 2.0, 0.25, 0.5, 0.75, (1.0 + mass) / 2.0)
    quantiles = posterior.distribution.quantiles(parameter, levels, draws, rng).reshape(-1, len(levels))
    labels = _labels(posterior, parameter)
    shown = np.isfinite(quantiles).all(axis=1)
    if not shown.any():
        return ""
    low, high = float(quantiles[shown].min()), float(quantiles[shown].max())
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    height = _TOP + _LINE * len(labels) + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" font-size="12" font-family="system-ui, sans-serif">'
        f"<title>{html.escape(parameter)}: medians, 50 % and {100 * mass:g} % intervals</title>"
        f'<text x="0" y="14" font-weight="bold">{html.escape(parameter)}</text>'
    )

    def at(value: float) -> str:
        share = (value - low) / (high - low) if high > low else 0.5
        return f"{_LABELS + share * (_WIDTH - _LABELS - 20):.1f}"

    parts = [
        f'<line x1="{at(tick)}" x2="{at(tick)}" y1="{_TOP - 8}" y2="{height - 6}" stroke="#ddd"/>'
        f'<text x="{at(tick)}" y="{_TOP - 12}" text-anchor="middle" fill="#555">{tick:.6g}</text>'
        for tick in ticks
    ]
    for line, (label, row) in enumerate(zip(labels, quantiles, strict=True)):
        y = _TOP + _LINE * line + _LINE / 2
        cut = label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"
        parts.append(f'<text x="0" y="{y + 4:g}">{html.escape(cut)}</text>')
        if np.isfinite(row).all():
            first, quarter, middle, three_quarters, last = (at(float(value)) for value in row)
            parts.append(
                f'<line x1="{first}" x2="{last}" y1="{y:g}" y2="{y:g}" stroke="#357" stroke-width="1.5"/>'
                f'<line x1="{quarter}" x2="{three_quarters}" y1="{y:g}" y2="{y:g}" stroke="#357" '
                f'stroke-width="5"/><circle cx="{middle}" cy="{y:g}" r="3.5" fill="#fff" stroke="#357"/>'
            )
    return "".join([head, *parts, "</svg>"])


def _labels(posterior: Posterior, parameter: str) -> list[str]:
    cells = [
        ", ".join(f"{column}={keys[cell]}" for column, keys in posterior.groups.items())
        for cell in range(posterior.n_groups)
    ]
    _, names = posterior.labels(parameter)
    if names:
        cells = [", ".join(filter(None, (cell, name))) for cell in cells for name in names]
    return ["".join(sign if sign.isprintable() else "?" for sign in label) for label in cells]


def _ticks(low: float, high: float) -> list[float]:
    """A few round numbers that enclose an interval."""
    span = high - low if high > low else max(abs(high), 1.0)
    unit = 10.0 ** math.floor(math.log10(span))
    step = next(unit * factor for factor in (0.2, 0.5, 1.0, 2.0) if span / (unit * factor) <= 6.0)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * tick for tick in range(first, max(last, first + 1) + 1)]
