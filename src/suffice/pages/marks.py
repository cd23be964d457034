"""Marks that figures share: intervals with their medians, legends, and the room that numbers take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pages.drawing import CHARACTER, columns_of, element, label_width, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pages.scale import Scale

LEGEND = 30.0
"""Height of a legend."""


def interval(quantiles: Sequence[float], scale: Scale, y: float, kind: str) -> str:
    """Draw an interval, its middle half and its median; nothing of what is not finite."""
    if not all(math.isfinite(value) for value in quantiles):
        return ""
    lower, first, middle, third, upper = (scale.at(float(value)) for value in quantiles)
    return (
        element("line", x1=lower, x2=upper, y1=y, y2=y, class_=f"interval {kind}")
        + element("line", x1=first, x2=third, y1=y, y2=y, class_=f"half {kind}")
        + element("circle", cx=middle, cy=y, r=3.6, class_=f"median {kind}")
    )


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """Draw what kinds of lines are called, side by side."""
    parts, x = [], 0.0
    for class_, label in entries:
        parts.append(element("line", x1=x, x2=x + 22.0, y1=12.0, y2=12.0, class_=f"line {class_}"))
        parts.append(text(x + 29.0, 16.0, label, "legend", longest=24))
        x += 29.0 + CHARACTER * min(columns_of(label), 24) + 24.0
    return "".join(parts)


def beside(scale: Scale) -> float:
    """Room for the numbers on the left."""
    return label_width(scale.labels(), 14) + 14.0


def extent(values: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest of what is finite; 0 and 1 where nothing is."""
    known = [value for value in values if math.isfinite(value)]
    return (min(known), max(known)) if known else (0.0, 1.0)


def many(number: int, one: str, more: str) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else more}"
