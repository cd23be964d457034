"""What every conjugate prior is: a value of checked numbers, and its text.

Priors are written and parametrised as in NumPyro: positional or keyword arguments, checked on construction,
and ``parse_prior(str(prior)) == prior``. Every prior is proper: a cell may be empty, and an improper prior
would then leave an improper posterior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from suffice.errors import PriorError


@dataclass(frozen=True, slots=True)
class Prior:
    """A conjugate prior; every field is a finite number, and above 0 unless it is a ``loc``."""

    def __post_init__(self) -> None:
        for field in fields(self):
            require_number(self, field.name, getattr(self, field.name), positive=field.name != "loc")

    def __str__(self) -> str:
        values = ", ".join(written(getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({values})"

    def _of_one_cell(self) -> dict[str, Any]:
        """The fields as arrays (1,)."""
        return {field.name: np.array([getattr(self, field.name)], dtype=np.float64) for field in fields(self)}


def require_number(prior: Prior, name: str, value: float, *, positive: bool) -> None:
    """Refuse what is no finite number, or no positive one where the prior would be improper.

    Raises
    ------
    PriorError
    """
    kind = type(prior).__name__
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{kind}: {name} must be a number, not {value!r}"
        raise PriorError(message)
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite or (positive and float(value) <= 0.0):
        rule = "a finite number above 0 (the prior must be proper)" if positive else "a finite number"
        message = f"{kind}: {name} must be {rule}, not {value!r}"
        raise PriorError(message)


def written(value: object) -> str:
    """Return the text of a number, or of a list of numbers or lists."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 1e15):
        return repr(value)
    return str(int(value))  # type: ignore[call-overload]
