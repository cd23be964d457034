"""Modules that another one imports and nobody here uses: they load when something of them is asked for."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import LazyLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

UNUSED = frozenset(
    f"numpy.{name}" for name in ("char", "core", "ctypeslib", "f2py", "ma", "rec", "strings", "testing")
)
"""SciPy takes every attribute of NumPy over, so that its special functions bring these along: f2py takes
70 ms of processor time, masked arrays 15, the others 10."""


class _LateModules:
    """Finds modules as Python does, and lets them load late."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, if it is one of these."""
        spec = PathFinder.find_spec(name, path, target) if name in UNUSED else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def postpone_unused_modules() -> None:
    """Let these load late, in a process that runs commands."""
    if _LateModules not in sys.meta_path:
        sys.meta_path.insert(0, _LateModules)
