"""How inner loops are compiled: for exactly stated arguments, without the interpreter's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from numba import types

if TYPE_CHECKING:
    from collections.abc import Callable


def read_only(scalar: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is read, C-contiguous."""
    return types.Array(scalar, dimensions, "C", readonly=True)


def writable(scalar: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is written, C-contiguous."""
    return types.Array(scalar, dimensions, "C")


def compiled(*arguments: types.Type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Compile for exactly these arguments; keep the machine code on disk where that can be written."""

    def compile_function(function: Callable[..., None]) -> Callable[..., None]:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        signature = types.void(*arguments)
        try:
            return numba.njit(signature, cache=True, **options)(function)
        except (RuntimeError, OSError):
            return numba.njit(signature, **options)(function)

    return compile_function
