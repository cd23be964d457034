"""Arrays by what they hold: one name each, for annotations."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

Rows: TypeAlias = NDArray[np.int64]
"""Numbers of rows in an array."""

Cells: TypeAlias = NDArray[np.int64]
"""Numbers of cells."""

Parts: TypeAlias = NDArray[np.int64]
"""Numbers of the parts of a mixture."""

Counts: TypeAlias = NDArray[np.int64]
"""Counts, or sums on a lattice."""

Ranks: TypeAlias = NDArray[np.int64]
"""Ranks of true parameters among posterior draws."""

Codes: TypeAlias = NDArray[np.int32]
"""Positions in a public domain; negative where a value is in none."""
