"""Values that stand in the data of a test, and the search for them in whatever else was written."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from support.making import flights

if TYPE_CHECKING:
    from pathlib import Path

CANARY_TEXT = "canary-7f3a9c51"
CANARY_NUMBER = 918273645

_TEXT = CANARY_TEXT.encode()
FORMS = [
    _TEXT,
    CANARY_TEXT.encode("utf-16-le"),
    _TEXT.hex().encode(),
    *(base64.b64encode(b"." * shift + _TEXT)[4:-4] for shift in range(3)),
    str(CANARY_NUMBER).encode(),
    CANARY_NUMBER.to_bytes(8, "little"),
    np.float64(CANARY_NUMBER).tobytes(),
]
"""The canaries as bytes, in every form in which they might be written."""


def canary_table() -> pa.Table:
    """Return rows in which the canaries stand as keys, categories, values and group keys."""
    table = flights(400)
    texts = np.array(table["carrier"].to_pylist(), dtype=object)
    texts[::7] = CANARY_TEXT
    origins = np.array(table["origin"].to_pylist(), dtype=object)
    origins[::11] = CANARY_TEXT
    delays = np.asarray(table["arr_delay"]).copy()
    delays[::5] = CANARY_NUMBER
    return (
        table.set_column(2, "carrier", pa.array(texts, type=pa.string()))
        .set_column(0, "origin", pa.array(origins, type=pa.string()))
        .set_column(4, "arr_delay", pa.array(delays))
        .set_column(5, "stops", pa.array(np.full(400, CANARY_NUMBER)))
    )


def holds_canary(path: Path) -> bool:
    """Scan a file's bytes, and the decoded columns of Parquet, for either canary in every form."""
    if path.suffix == ".parquet":
        try:
            columns = pa.parquet.read_table(path).to_pydict()
        except (pa.ArrowException, OSError):
            columns = {}
        if any(value in {CANARY_TEXT, CANARY_NUMBER} for column in columns.values() for value in column):
            return True
    content = path.read_bytes()
    return any(form in content for form in FORMS)
