"""What turns loops over cells into machine code. Only the modules of such loops import it, and these late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from numba import types

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

    def inner(function: Function) -> Function:
        """Compile for what a function is called with, by other loops."""

    def uncounted(function: Function) -> Function:
        """Compile as ``inner`` does what makes no arrays: nobody counts who else has those it is given."""

    def vectorised(function: Function) -> Function:
        """Compile as ``uncounted`` does, but with products and sums in one rounding."""

    def making_arrays(function: Function) -> Function:
        """Compile as ``vectorised`` does what makes arrays."""

    def merged(function: Function) -> Function:
        """Compile as ``vectorised`` does, into the loops that call it: calls keep these from vectors."""

    def reordered(function: Function) -> Function:
        """Compile sums whose terms may be added in another order, always the same one: by vectors."""

else:
    inner = numba.njit(nogil=True, error_model="numpy")
    uncounted = numba.njit(nogil=True, error_model="numpy", _nrt=False)
    vectorised = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"}, _nrt=False)
    making_arrays = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})
    merged = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
    reordered = numba.njit(
        nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}, _nrt=False
    )

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(function: Callable[..., None], *arguments: types.Type) -> Callable[..., None]:
    """Compile for exactly these arguments; keep the machine code on disk where that can be written."""
    signature = types.void(*arguments)
    try:
        return numba.njit(signature, cache=True, **_OPTIONS)(function)
    except (RuntimeError, OSError):  # a folder that cannot be written
        return numba.njit(signature, **_OPTIONS)(function)


def read(dimensions: int, scalar: types.Type = types.float64) -> types.Array:
    """Return the type of an array that is only read."""
    return types.Array(scalar, dimensions, "C", readonly=True)


def written(dimensions: int, scalar: types.Type = types.float64) -> types.Array:
    """Return the type of an array that is written to."""
    return types.Array(scalar, dimensions, "C")
