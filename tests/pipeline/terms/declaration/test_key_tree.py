"""Public trees of keys: nodes below nodes, and tables of keys that state them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.hierarchy import Hierarchy, KeyTable, read_hierarchy
from suffice.pipeline.terms.declaration.key_tree import KeyTree

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = ("nation", "state", "county")
KEYS: tuple[tuple[str, ...], ...] = (("true",), ("CA", "NY"), ("a", "b", "c"))
PARENTS: tuple[tuple[int, ...], ...] = ((0, 0), (1, 0, 1))


def tree(**changes: Any) -> KeyTree:
    return KeyTree(**{"levels": LEVELS, "keys": KEYS, "parents": PARENTS, **changes})


def test_leaves_lie_below_a_node_of_every_level() -> None:
    assert tree().n_leaves == 3
    assert [tree().leaves_below(level).tolist() for level in range(3)] == [[0, 0, 0], [1, 0, 1], [0, 1, 2]]
    assert tree().parent_of(2).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"levels": LEVELS[:1], "keys": KEYS[:1], "parents": ()}, "at least two levels"),
        ({"levels": LEVELS[:2]}, "a tree of 2 levels has the keys of each"),
        ({"parents": PARENTS[:1]}, "a tree of 3 levels has the keys of each"),
        ({"keys": (("x", "y"), *KEYS[1:])}, "the first level, nation, is the root: one node"),
        ({"parents": (PARENTS[0], (1, 0))}, "every node of the level county has one parent"),
        ({"parents": (PARENTS[0], (1, 1, 1))}, "every node above the level county has a child in it"),
        ({"parents": (PARENTS[0], (1, 0, 2))}, "its parents are no others"),
    ],
)
def test_what_is_no_tree_is_refused(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        tree(**changes)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12), st.lists(st.integers(0, 2), min_size=4, max_size=4)
)
def test_a_table_of_keys_says_where_each_key_leads(states: list[int], nations: list[int]) -> None:
    rows = tuple((f"n{nations[state]}", f"s{state}", f"c{leaf}") for leaf, state in enumerate(states))
    table = KeyTable(levels=LEVELS, rows=rows)
    assert table.keys() == tuple(row[2] for row in rows)
    assert table.parents(0) == {f"s{state}": f"n{nations[state]}" for state in states}
    assert table.parents(1) == {row[2]: row[1] for row in rows}


def test_a_hierarchy_is_a_list_or_levels_and_a_file(tmp_path: Path) -> None:
    assert read_hierarchy(list(LEVELS), None) == Hierarchy(levels=LEVELS)
    (tmp_path / "keys.csv").write_text("state,county\nCA,a\n")
    stated = {"levels": list(LEVELS), "keys": {"file": "keys.csv"}}
    assert read_hierarchy(stated, tmp_path).table == KeyTable(levels=LEVELS[1:], rows=(("CA", "a"),))
    for directory, keys in (
        (None, {"file": "keys.csv"}),
        (tmp_path, [["CA", "a"]]),
        (tmp_path, {"file": "../x"}),
    ):
        with pytest.raises(ValueError, match=r"keys of a hierarchy are a file|not beside the spec"):
            read_hierarchy({**stated, "keys": keys}, directory)
