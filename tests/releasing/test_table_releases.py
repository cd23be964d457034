"""Count tables through a whole release by unit: charged, published, verified, read back and posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import suffice
from suffice.releasing.release import carry_out
from suffice.storage.operations.verify_release import verify_release
from support.making import make_workspace

if TYPE_CHECKING:
    from pathlib import Path

TWO, THREE = ["0", "1"], ["0", "1", "2"]
STATISTICS: dict[str, dict[str, Any]] = {
    "joint": {"family": "contingency", "columns": {"y": TWO, "a": {"categories": ["0"], "other": "true"}}},
    "naive": {"family": "naive_bayes", "outcome": {"y": TWO}, "features": {"a": THREE}},
    "network": {
        "family": "bayesian_network",
        "nodes": {"a": {"categories": THREE, "parents": ["y"]}, "y": TWO},
    },
    "walk": {"family": "markov_chain", "column": "a", "categories": THREE, "order": "at", "transitions": "3"},
}
UNIT = {"column": "who", "max_rows": "1000"}


def test_tables_are_released_by_unit_and_read_back(tmp_path: Path) -> None:
    """With so much epsilon that there is no noise: what is read back is what DuckDB would count."""
    n_rows = 400
    rng = np.random.default_rng(7)
    y, a, who = (rng.integers(0, size, n_rows) for size in (2, 3, 50))
    table = pa.table({"y": y, "a": pa.array(a.astype(str)), "who": who, "at": np.arange(n_rows)})
    workspace = make_workspace(tmp_path, table=table, granted="1000000", unit="column:who")
    privacy = {"epsilon": "1000000", "neighboring": "add_or_remove_one", "unit": UNIT}
    spec = workspace.spec(groups=None, statistics=STATISTICS, privacy=privacy)
    release = carry_out(spec, store=workspace.store, ledger=workspace.ledger).release
    assert verify_release(release.uri).problems == ()
    opened = suffice.open_release(release.uri)
    assert [opened.statistic(name).plan for name in STATISTICS] == [
        release.statistic(name).plan for name in STATISTICS
    ]
    counts = np.zeros((2, 3))
    np.add.at(counts, (y, a), 1)
    assert opened.statistic("naive").values[0].tolist() == counts.ravel().tolist()
    assert opened.statistic("network").values[0].tolist() == counts.ravel().tolist()
    roots = [row["estimate"] for row in opened.table("network") if row["table"] == "y"]
    assert roots == counts.sum(axis=1).tolist()
    assert opened.statistic("joint").values[0].tolist() == [
        each for row in counts for each in (row[0], row[1] + row[2])
    ]
    steps = np.zeros((3, 3))
    for unit in range(50):
        path = a[who == unit][:4]
        np.add.at(steps, (path[:-1], path[1:]), 1)
    assert opened.statistic("walk").values[0].tolist() == steps.ravel().tolist()
    for name in STATISTICS:
        exact, taken = opened.posterior(name), opened.posterior(name, method="plug-in")
        assert exact.mean("probability") == pytest.approx(taken.mean("probability"), rel=1e-3)
        assert exact.sd("probability") == pytest.approx(taken.sd("probability"), rel=1e-2)
