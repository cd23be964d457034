"""Inner loops compiled by numba, where the module in C was not built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numba
from numba import types
from numba.core.caching import InTreeCacheLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.rows.chunk.argument_types import ArgumentType

    Loop = TypeVar("Loop", bound=Callable[..., Any])


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


def compiled(function: Callable[..., None], arguments: Sequence[ArgumentType]) -> Callable[..., None]:
    """Compile for exactly these arguments; keep the machine code on disk where that can be written."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    signature = types.void(*map(_numba_type, arguments))
    try:
        return numba.njit(signature, cache=True, **options)(function)
    except (RuntimeError, OSError):
        return numba.njit(signature, **options)(function)


def called(function: Loop, inline: Literal["never", "always"]) -> Loop:
    """Compile a function for the loops that call it, or write it into them: ``never`` or ``always``."""
    return cast("Loop", numba.njit(error_model="numpy", inline=inline)(function))


def _numba_type(of: ArgumentType) -> types.Type:
    scalar = getattr(types, of.scalar)
    return types.Array(scalar, of.dimensions, "C", readonly=not of.is_written) if of.dimensions else scalar
