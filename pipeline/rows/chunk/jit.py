"""How inner loops are compiled: for exactly stated arguments, without the interpreter's lock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba import types
from numba.core.caching import InTreeCacheLocator

if TYPE_CHECKING:
    from collections.abc import Callable


class ShippedMachineCode(InTreeCacheLocator):
    """The ``__pycache__`` beside a module, to read, in an image whose root cannot be written.

    numba's own locators ask for a folder that can be written, even to read from it. The environment of
    the images in ``deploy/image`` names this one in ``NUMBA_CACHE_LOCATOR_CLASSES``. Code that is not there,
    or of another source or processor, is compiled; `compiled` does without keeping it where the folder
    cannot be written.
    """

    def ensure_cache_path(self) -> None:
        """Be content with a folder that is there; elsewhere numba compiles without one."""
        if not Path(self.get_cache_path()).is_dir():  # type: ignore[no-untyped-call]
            raise FileNotFoundError


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
