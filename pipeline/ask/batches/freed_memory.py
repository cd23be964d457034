"""Memory that was freed goes back to the machine, and is not kept beside what the next part takes.

The C library keeps freed memory in pieces between what is still used. With threads that work on part after
part, the pieces grow with the number of parts, although what is used does not.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def return_freed_memory() -> None:
    """Give back what the C library holds of freed memory, where it is one that can (glibc)."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # of another C library, or system
        return None
