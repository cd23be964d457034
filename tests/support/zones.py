"""Time zones whose days begin when a test wants them to."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt


def zone_with_midnight_at(moment: dt.datetime) -> bytes:
    """Return the TZif file of a zone, always as far from UTC, where a day begins at that moment."""
    ahead = -(moment.hour * 3600 + moment.minute * 60 + moment.second)
    offset = ahead if ahead > -12 * 3600 else ahead + 24 * 3600
    block = struct.pack(">4sc15x6I", b"TZif", b"2", 0, 0, 0, 0, 1, 4)
    block += struct.pack(">iBB", offset, 0, 0) + b"TST\0"
    return block + block + b"\n\n"
