"""How long a worker may stand still."""

from __future__ import annotations

STALL_SECONDS = 600.0
"""How long a worker may end none of its tasks, unless the operator says otherwise."""

LONGEST_STALL = 86_400
"""The most seconds that an operator may say: a day."""
