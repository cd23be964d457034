"""Periods: counted before they are listed, and listed as the calendar has them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import SpecError
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.domains import (
    Every,
    next_period,
    period_count,
    period_label,
    period_labels,
    period_start,
)

if TYPE_CHECKING:
    import datetime as dt


@given(
    first=st.dates(),
    steps=st.integers(0, 400),
    every=st.sampled_from(Every),
)
def test_labels_are_the_calendars_and_counted(first: dt.date, steps: int, every: Every) -> None:
    start = period_start(period_label(first, every), every)
    expected = [start]
    while len(expected) <= steps:
        try:
            expected.append(next_period(expected[-1], every))
        except OverflowError:
            break
    labels = tuple(period_label(day, every) for day in expected)
    assert period_labels(labels[0], labels[-1], every) == labels
    assert period_count(labels[0], labels[-1], every) == len(labels)


DAYS = {"from": "0001-01-01", "to": "9999-12-31", "every": "day"}
VARIABLES = {f"v{number}": {"column": f"c{number}", "categories": DAYS} for number in range(9)}


@pytest.mark.parametrize(
    "changes",
    [
        {"groups": {"a": DAYS, "b": DAYS, "c": DAYS}},
        {"groups": {"a": DAYS, "b": {"range": ["1", "9"]}}},
        {
            "groups": {
                "a": {"range": ["1", "9"]},
                "b": {"from": "0001", "to": "9999", "every": "year"},
                "c": DAYS,
            }
        },
        {"statistics": {"s": {"family": "contingency", "columns": VARIABLES}}},
    ],
)
def test_ranges_of_dates_are_refused_before_they_are_listed(changes: dict[str, Any]) -> None:
    """Listing the days of one of them takes seconds; nine of them took a minute."""
    spec = {
        "name": "n",
        "dataset": "d",
        "source": {"parquet": "x"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "statistics": {"s": {"family": "bernoulli", "column": "c"}},
    }
    started = time.process_time()
    with pytest.raises(SpecError, match="at most 100000 are released together"):
        load_spec({**spec, **changes})
    assert time.process_time() - started < 0.5
