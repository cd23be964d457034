"""Which cells a part has: all of them once, in order, and nothing of the machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import UsageError
from suffice.pipeline.ask.batches import parts
from suffice.pipeline.ask.batches.parts import cells_per_part, parts_of
from support.many_cells import many_cells_plan


@given(n_keys=st.integers(1, 40), of_key=st.integers(1, 40), most=st.integers(1, 200))
def test_every_cell_is_in_one_part_and_keys_are_whole_where_they_fit(
    n_keys: int, of_key: int, most: int
) -> None:
    n_cells = n_keys * of_key
    found = parts_of(n_cells, n_keys, most)
    assert [cell for part in found for cell in range(part.start, part.stop)] == list(range(n_cells))
    assert [part.number for part in found] == list(range(len(found)))
    assert all(0 < part.stop - part.start <= most for part in found)
    for part in found:
        first, last = part.start // of_key, (part.stop - 1) // of_key
        assert of_key <= most or first == last, "a key that has more than a part shares none with others"
        assert of_key > most or (part.start % of_key == 0 and part.stop % of_key == 0), "keys are whole"


def test_a_part_has_fewer_cells_the_more_is_drawn_of_each() -> None:
    bernoulli, normal, categories = (
        many_cells_plan(family, 2, 2).statistics[0] for family in ("bernoulli", "normal", "categorical")
    )
    sizes = [cells_per_part(bernoulli, draws) for draws in (0, 1, 100, 4000, 10_000_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert cells_per_part(bernoulli, 0) > cells_per_part(normal, 0), "cells of a normal take longer"
    assert cells_per_part(categories, 1000) < cells_per_part(bernoulli, 1000), "each category has draws"
    assert cells_per_part(bernoulli, 4000) * 4000 <= parts.DRAWN_VALUES


def test_too_many_parts_are_refused_with_a_way_out() -> None:
    with pytest.raises(UsageError, match="at most 4000: ask for fewer draws, or for fewer cells"):
        parts_of(10_000_000, 10_000_000, 131)
    assert len(parts_of(10_000_000, 10_000_000, 32_768)) == 306
