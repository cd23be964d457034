"""The splits of a spec's source, small ones too."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pytest

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources import contract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.rows.sources.contract import Pin, Split
    from suffice.pipeline.spec.spec import Spec


HELD: deque[Pin] = deque(maxlen=4)
"""The last pins: splits are read while their pin is open."""


def splits_of(spec: Spec, split_values: int = contract.SPLIT_VALUES) -> tuple[Split, ...]:
    """Return the splits of a spec's source; of one value each, they are as small as can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract, "SPLIT_VALUES", split_values)
        HELD.append(sources.pin(spec))
        return sources.splits(HELD[-1])


def row_count(splits: Sequence[Split]) -> int:
    """Return the number of rows in splits."""
    return sum(split.n_rows for split in splits)
