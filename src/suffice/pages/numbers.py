"""Numbers on pages, as texts of a few digits."""

from __future__ import annotations

import math

_MINUS = "\u2212"


def number(value: float, digits: int = 4) -> str:
    """Return a number as people read it: so many significant digits, thousands set apart.

    Examples
    --------
    >>> number(0.0123456), number(1234567.0), number(1000.5, 6), number(3.2e-9)
    ('0.01235', '1,235,000', '1,000.5', '3.2e-09')
    """
    if not math.isfinite(value):
        return "none"
    text = f"{value:.{digits}g}"
    size = abs(value)
    if size >= 1000 and size < 1e15:
        decimals = 0 if "e" in text else len(text.partition(".")[2])
        text = f"{float(text):,.{decimals}f}"
    return text.replace("-", _MINUS, 1) if text.startswith("-") else text
