"""Cells that are kept by their keys: all that are asked for and none besides, and refusals with a way out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import UsageError
from suffice.pipeline.terms.released.noisy_statistic import wanted_cells

GROUPS: dict[str, list[str | int]] = {
    "origin": ["EWR", "EWR", "JFK", "JFK", "LGA"],
    "month": [1, 2, 1, 2, 1],
}


@given(st.sampled_from(["EWR", "JFK", "LGA", None]), st.sampled_from([1, "2", None]))
def test_cells_with_every_key_are_kept(origin: str | None, month: object) -> None:
    where = {name: key for name, key in (("origin", origin), ("month", month)) if key is not None}
    expected = [
        cell for cell in range(5) if all(str(GROUPS[name][cell]) == str(key) for name, key in where.items())
    ]
    if expected:
        assert wanted_cells(where, GROUPS, 5).tolist() == expected
    else:
        with pytest.raises(UsageError, match="no cell of the release has origin=LGA, month=2"):
            wanted_cells(where, GROUPS, 5)


BAD: dict[str, Any] = {
    "no group 'carrier': its groups are origin, month": {"carrier": "AA"},
    "has origin=SFO: its keys are EWR, JFK, LGA": {"origin": "SFO"},
    "takes one key for month": {"month": [1, 2]},
    "maps group columns to keys": "EWR",
}


@pytest.mark.parametrize("says", BAD)
def test_what_names_no_cell_is_refused(says: str) -> None:
    with pytest.raises(UsageError, match=says):
        wanted_cells(BAD[says], GROUPS, 5)
