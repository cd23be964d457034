"""The module in C of a release: built where there is a compiler, from the folder ``chunk/native``."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

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
