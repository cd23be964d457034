"""Releases with conditions of rows, from the spec to readers: same totals on every path, and what is said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import UsageError
from support.javascript import ask
from support.making import make_workspace

if TYPE_CHECKING:
    from support.making import Workspace

LATE = {"column": "arr_delay", "above": "15"}
STATISTICS: dict[str, Any] = {
    "cancelled": {"family": "bernoulli", "column": "cancelled", "where": {"not": LATE}},
    "arr_delay": {"family": "normal", "column": "arr_delay", "lower": "-60", "upper": "180"},
}


def released(workspace: Workspace, **changes: Any) -> tuple[str, suffice.Release]:
    release = workspace.run(**{"statistics": STATISTICS, "where": LATE, **changes}).release
    return release.uri, suffice.open_release(release.uri)


def test_readers_are_told_of_rows_that_enter(workspace: Workspace) -> None:
    uri, release = released(workspace)
    sentence = "of rows, where the spec's condition holds"
    assert release.manifest["plan"]["where"] == LATE
    assert [release.plan_of(name).rows_of for name in STATISTICS] == [sentence] * 2
    assert release.posterior("cancelled").rows_of == sentence
    asked = ask(Path(uri), [{"statistic": name, "table": {}} for name in STATISTICS])
    assert all(len(rows) > 0 for rows in asked["answers"])


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
def test_counts_are_of_rows_that_enter(workspace: Workspace, neighboring: str) -> None:
    """Noise of n has a standard deviation below 7: beyond 200 it is in one run of more than 10^12."""
    privacy = {"epsilon": "1", "neighboring": neighboring}
    if neighboring == "replace_one":
        workspace = make_workspace(workspace.directory / "other", neighboring=neighboring, unit="row")
    statistics = {"arr_delay": {**STATISTICS["arr_delay"], "nulls": {"value": "0"}}}
    _, release = released(workspace, privacy=privacy, groups=None, statistics=statistics)
    rows = pq.read_table(workspace.data)["arr_delay"].to_pylist()
    late = [delay for delay in rows if delay is not None and delay > 15]
    n = next(row["estimate"] for row in release.table("arr_delay") if row["quantity"] == "n")
    assert 0 < len(late) < len(rows)
    assert abs(n - len(late)) < 200
    assert release.manifest["n"] is None


def test_releases_under_other_conditions_are_not_pooled(workspace: Workspace) -> None:
    derived = {"airport": {"column": "origin", "trim": "true"}}
    terms: dict[str, Any] = {"derived": derived, "groups": {"airport": ["EWR", "JFK"]}}
    first = released(workspace, **terms)[1]
    there = {"not": {"column": "arr_delay", "is_null": "true"}}
    second = released(workspace, name="other", where=there, **terms)[1]
    with pytest.raises(UsageError, match="of rows where"):
        suffice.pool("cancelled", same_data=[first, second])
