"""Rules of windows and units as accounts name them: one text for one rule, and no text for two."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import SpecError
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.row_rules import (
    column_or_rule,
    entry_of,
    in_words,
    is_rule,
    read_entry,
    read_rule,
    read_unit,
    read_window_grid,
    rule_text,
)

TEXTS = st.fixed_dictionaries(
    {"column": st.sampled_from(["id", "a b", "Größe", "day:month:UTC"])},
    optional={
        "normalize": st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]),
        "trim": st.just(True),  # noqa: FBT003 - a value
        "case": st.sampled_from(["lower", "upper"]),
    },
).filter(lambda entry: len(entry) > 1)
PARSED = st.one_of(
    st.builds(
        lambda column, parse, pivot: {
            "column": column,
            "parse": parse,
            "format": "%d-%b-%y %H:%M",
            "pivot": pivot,
        },
        st.sampled_from(["raw", "x{y}", "day:month"]),
        st.sampled_from(["date", "timestamp"]),
        st.integers(1, 9900),
    ),
    st.fixed_dictionaries(
        {
            "column": st.just("raw"),
            "parse": st.just("timestamp"),
            "epoch": st.sampled_from(["days", "seconds"]),
        }
    ),
)


@pytest.mark.slow
@given(first=st.one_of(TEXTS, PARSED), second=st.one_of(TEXTS, PARSED))
def test_two_rules_have_two_texts_and_one_has_one(first: dict[str, Any], second: dict[str, Any]) -> None:
    texts = [column_or_rule("new", {"new": read_entry(entry)}) for entry in (first, second)]
    assert (texts[0] == texts[1]) == (first == second)
    for text in texts:
        assert rule_text(entry_of(read_rule(text))) == text
        assert is_rule(text)
        assert read_unit(f"column:{text}") == f"column:{text}"


@given(entry=PARSED, every=st.sampled_from(["day", "month"]), zone=st.sampled_from(["", ":Europe/Berlin"]))
def test_a_grid_of_a_rule_is_read_as_it_is_written(entry: dict[str, Any], every: str, zone: str) -> None:
    grid = read_window_grid(f"{json.dumps(entry)}:{every}{zone}")
    assert read_window_grid(grid) == grid
    column, period, time_zone = grid.rsplit(":", 2)
    assert (column, period) == (column_or_rule("new", {"new": read_entry(entry)}), every)
    assert time_zone == (zone.removeprefix(":") or "UTC")
    assert in_words(grid).endswith(f"):{every}:{time_zone}")


@pytest.mark.parametrize(
    "text",
    ["row", "column:id", "column:{id}x", "day:month:UTC", "column:{not a rule}", "", "{", "{}:month:UTC"],
)
def test_what_is_no_rule_reads_as_it_is(text: str) -> None:
    assert in_words(text) == text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("column:{column: id, above: 3}", "derived in another way"),
        ("column:{column: id, case: title}", "case"),
        ("column:{column: id", "not valid YAML"),
        ("column:{column: id, case: lower, more: 1}", "unknown key"),
    ],
)
def test_a_unit_of_no_rule_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        read_unit(text)


@pytest.mark.parametrize("place", ["window", "unit"])
def test_no_stored_column_can_be_called_as_a_rule(place: str) -> None:
    """Else a spec could mean a stored column by the text that an owner granted as a rule."""
    called = rule_text({"column": "raw", "parse": "date", "format": "%Y-%m-%d"})
    entry: dict[str, Any] = {
        "name": "n",
        "dataset": "n",
        "privacy": {"epsilon": 1, "neighboring": "add_or_remove_one"},
        "statistics": {"x": {"family": "bernoulli", "column": "x"}},
    }
    if place == "window":
        entry["window"] = {"column": called, "every": "month"}
    else:
        entry["privacy"]["unit"] = {"column": called, "max_rows": 1}
    with pytest.raises(SpecError, match="called as rules of derived ones"):
        load_spec(entry)
