"""How inner loops are compiled: for exactly stated arguments, without the interpreter's lock.

Each loop is written in Python, with its types, and in C, in the folder `native`. Where the module in C was
built, as it is where there is a compiler, it is used, and numba is not imported. Otherwise numba compiles
the Python. Both give the same bits, which tests compare.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from suffice.pipeline.rows.chunk.argument_types import ArgumentType

    Loop = TypeVar("Loop", bound=Callable[..., Any])

VARIABLE = "SUFFICE_KERNELS"
NATIVE, NUMBA = "c", "numba"
_VERSION = 2
"""That of the module in C: another one was built from other sources."""


def _native() -> ModuleType | None:
    """Return the module in C; None where it was not built, or from other sources, or is not wanted."""
    if os.environ.get(VARIABLE) == NUMBA:
        return None
    try:
        native = import_module("suffice.pipeline.rows.chunk._native")
    except ImportError:
        return None
    return native if native.VERSION == _VERSION else None


MODULE = _native()


def compiled(*arguments: ArgumentType) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Take a loop from the module in C, or have numba compile it for exactly these arguments."""

    def compile_function(function: Callable[..., None]) -> Callable[..., None]:
        if MODULE is None:
            from suffice.pipeline.rows.chunk import numba_loops  # numba takes half a second

            return numba_loops.compiled(function, arguments)
        name = function.__name__.lstrip("_")
        if MODULE.SIGNATURES.get(name) != " ".join(map(str, arguments)):
            message = f"{name} in C takes other arguments: raise the version in module.c and in jit.py"
            raise TypeError(message)
        return getattr(MODULE, name)  # type: ignore[no-any-return]

    return compile_function


def called(function: Loop) -> Loop:
    """Have numba compile a function for the loops that call it; in C they have their own."""
    return _for_loops(function, inline="never")


def inlined(function: Loop) -> Loop:
    """Have numba write a function into the loops that call it; in C they have their own."""
    return _for_loops(function, inline="always")


def _for_loops(function: Loop, inline: Literal["never", "always"]) -> Loop:
    if MODULE is not None:
        return function
    from suffice.pipeline.rows.chunk import numba_loops

    return numba_loops.called(function, inline)


def how_compiled() -> str:
    """Return which loops are used: ``c`` or ``numba``."""
    return NUMBA if MODULE is None else NATIVE
