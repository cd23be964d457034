"""Gradients held to slopes by differences that are refined until they state their own error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.differentiate import derivative

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats

RELATIVE = 1e-4
"""What gradients may differ by; wrong terms change them by far more."""
SLOPES = {"rtol": RELATIVE / 100, "atol": RELATIVE / 100}


def assert_gradient(density: Callable[[Floats], Floats], x: Floats, gradient: Floats) -> None:
    """Fail unless each entry of a gradient is the slope of the density along its coordinate.

    Parameters
    ----------
    density
        A log density of each column of its argument, alone.
    x
        Where; a column each point.
    gradient
        Of the shape of ``x``.

    Notes
    -----
    One step for all slopes is too long next to a bend and too short for large values: steps are halved until
    central differences of order 8 agree (`scipy.differentiate.derivative`).
    """
    columns = np.arange(x.shape[1])
    for place, expected in enumerate(gradient):

        def along(values: Any, column: Any, place: int = place) -> Any:
            values, column = np.broadcast_arrays(values, column)
            moved = x[:, column.ravel().astype(int)].copy()
            moved[place] = values.ravel()
            return np.asarray(density(moved)).reshape(values.shape)

        slope = derivative(
            along,
            x[place],
            args=(columns,),
            initial_step=1e-2,
            tolerances={"rtol": RELATIVE / 100, "atol": RELATIVE / 100},
        )
        assert slope.success.all(), f"no slope along coordinate {place}: {slope}"
        np.testing.assert_allclose(expected, slope.df, rtol=RELATIVE, atol=RELATIVE)
