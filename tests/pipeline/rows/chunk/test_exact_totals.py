"""Exact totals are opened once, by one module, and printed, pickled and copied by none."""

from __future__ import annotations

import ast
import copy
import dataclasses
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Table, wipe

if TYPE_CHECKING:
    from pathlib import Path

SECRET = 987_654_321_987


def table() -> Table:
    return Table(low=np.array([[SECRET]]), high=np.array([[5]]))


def test_they_are_opened_once() -> None:
    made = table()
    totals = ExactTotals({"s": made})
    assert totals.open_totals()["s"] is made
    with pytest.raises(ValueError, match="opened before"):
        totals.open_totals()
    totals.wipe()
    assert made.low[0, 0] == SECRET, "who opened them has them alone"


def test_what_nobody_opened_is_overwritten() -> None:
    made = table()
    totals = ExactTotals({"s": made})
    totals.wipe()
    assert not made.low.any()
    assert made.high is not None
    assert not made.high.any()
    with pytest.raises(ValueError, match="opened before"):
        totals.open_totals()


def test_what_nobody_holds_is_overwritten() -> None:
    made = table()
    ExactTotals({"s": made})
    assert not made.low.any()


def test_they_say_nothing_and_stay_where_they_are() -> None:
    totals = ExactTotals({"s": table()})
    for value in (totals, table()):
        assert str(SECRET) not in f"{value} {value!r} {[value]}"
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="exact data"):
                take(value)
        for show in (vars, dataclasses.asdict, dataclasses.astuple):
            with pytest.raises(TypeError):
                show(value)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        iter(totals)  # type: ignore[call-overload]
    assert totals != ExactTotals(totals.open_totals())


def test_the_memory_behind_a_view_is_overwritten_too() -> None:
    whole = np.arange(1, 7).reshape(3, 2)
    wipe(whole[:-1])
    assert not whole.any()
    fixed = np.arange(1, 7)
    fixed.flags.writeable = False
    wipe(fixed)  # nothing to be done, and no error
    objects = np.array([2**80], dtype=object)
    wipe(objects)
    assert objects[0] == 0


@pytest.mark.slow
def test_only_the_mechanism_opens_them(repository: Path) -> None:
    callers = {
        path.relative_to(repository).as_posix()
        for top in ("pipeline", "storage", "flows", "src/suffice")
        for path in (repository / top).rglob("*.py")
        if not path.is_relative_to(repository / "src/suffice/pipeline")
        and any(
            isinstance(node, ast.Attribute) and node.attr == "open_totals"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    # An audit makes its rows itself, and compares their exact sums in a process of its own.
    assert callers == {"pipeline/rows/mechanism/mechanism.py", "src/suffice/auditing/running.py"}
