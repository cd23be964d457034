"""What priors of consumers are checked for: ends, numbers, and what their functions return."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats


def is_finite(value: object) -> bool:
    """Whether a value is a finite number, of Python or NumPy."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    return is_number and math.isfinite(value)  # type: ignore[arg-type]


def ends_of(kind: str, name: str, ends: tuple[Any, ...]) -> tuple[float, float]:
    """Return the ends of an interval.

    Raises
    ------
    PriorError
        Where they are none.
    """
    try:
        lower, upper = ends
    except (TypeError, ValueError):
        message = f"{kind}: {name} must be two ends, as (0, math.inf), not {ends!r}"
        raise PriorError(message) from None
    for end in (lower, upper):
        is_number = isinstance(end, numbers.Real) and not isinstance(end, bool | np.bool_)
        if not is_number or math.isnan(end):
            message = f"{kind}: both ends of {name} must be numbers, not {end!r}"
            raise PriorError(message)
    if not lower < upper:
        message = f"{kind}: the lower end of {name} must be below the upper, not {lower!r}..{upper!r}"
        raise PriorError(message)
    return lower, upper


def called(
    prior: object, log_density: Callable[..., Any], positions: tuple[Floats, ...], rule: str
) -> Floats:
    """Call a consumer's own log density, and return what it says as numbers.

    Raises
    ------
    PriorError
        Where it raises an error, which is the cause of this one and named by its type, or returns no real
        numbers.
    """
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(log_density(*positions))
            if not np.iscomplexobj(value):
                return value.astype(np.float64)
    except Exception as error:
        message = f"prior {prior}: its log density raised {type(error).__name__}: {rule}"
        raise PriorError(message) from error
    message = f"prior {prior}: its log density is complex: {rule}, which are real"
    raise PriorError(message)


def prior_error_of_values(prior: object) -> PriorError:
    """Return the error of a prior whose log densities are no numbers."""
    message = (
        f"prior {prior}: its log density is NaN or infinite inside of the support: return a number, or -inf "
        "where there is no density, or narrow the support"
    )
    return PriorError(message)
