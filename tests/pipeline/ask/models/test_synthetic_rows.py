"""Synthetic rows of networks and tables against the law that they are drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice import models
from suffice.errors import UsageError
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.releases.release_store import open_release
from support.making import mapping
from support.releases import publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

NETWORK: dict[str, Any] = {
    "family": "bayesian_network",
    "nodes": {
        "a": ["0", "1"],
        "b": ["0", "1", "2"],
        "c": {"categories": ["0", "1"], "parents": ["a", "b"]},
    },
}
CUBE = {"family": "contingency", "columns": {"a": ["0", "1"], "b": ["0", "1", "2"], "c": ["0", "1"]}}
DRAWS, ROWS, SETS = 200, 2000, 50


def released(root: Path, entry: dict[str, Any], groups: dict[str, list[str]] | None = None) -> Release:
    plan = compile_plan(load_spec(mapping("data", groups=groups, statistics={"joint": entry})))
    (statistic,) = plan.statistics
    values = np.random.default_rng(4).integers(100, 900, (plan.n_cells, len(statistic.components)))
    return open_release(str(publish(root, plan, {"joint": values.astype(object)})))


@pytest.mark.parametrize("entry", [NETWORK, CUBE], ids=["network", "table"])
def test_rows_have_the_posterior_predictive_law(entry: dict[str, Any], tmp_path: Path) -> None:
    fit = models.network(released(tmp_path, entry), "joint", method="plug-in", draws=DRAWS, rng=1)
    synthetic = fit.synthesize(rows=ROWS, imputations=SETS, rng=2)
    assert list(synthetic.variables) == ["a", "b", "c"]
    asked = fit.query(("a", "b", "c")).probability
    number = np.ravel_multi_index(tuple(synthetic.codes.values()), (2, 3, 2))
    shares = np.stack([np.bincount(each, minlength=12) for each in number]) / ROWS
    mean, sd = asked.mean[0], asked.sd[0]
    spread = np.sqrt(sd**2 + mean * (1 - mean) / ROWS)
    # 6 standard errors of means, and of standard deviations, over sets.
    assert (np.abs(shares.mean(axis=0) - mean) < 6 * spread / np.sqrt(SETS)).all()
    assert (np.abs(shares.std(axis=0, ddof=1) / spread - 1) < 6 / np.sqrt(2 * SETS)).all()
    columns = synthetic.columns()
    assert columns["imputation"].tolist() == np.repeat(np.arange(1, SETS + 1), ROWS).tolist()
    assert columns["b"][:3].tolist() == [str(code) for code in synthetic.codes["b"][0, :3]]
    again = fit.synthesize(rows=ROWS, imputations=SETS, rng=2)
    assert all(np.array_equal(again.codes[name], codes) for name, codes in synthetic.codes.items())


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"rows": 0}, "rows must be an integer of at least 1"),
        ({"rows": 9, "imputations": 1}, "imputations must be an integer of at least 2"),
        ({"rows": 9, "imputations": DRAWS + 1}, "as many independent posterior draws, and there are 200"),
        ({"rows": 2_000_000}, "ask for fewer"),
        ({"rows": 9, "rng": -1}, "rng"),
    ],
    ids=["rows", "imputations", "draws", "entries", "rng"],
)
def test_what_cannot_be_drawn_is_refused(terms: dict[str, Any], said: str, tmp_path: Path) -> None:
    fit = models.network(released(tmp_path, CUBE), "joint", method="plug-in", draws=DRAWS, rng=1)
    with pytest.raises(UsageError, match=said):
        fit.synthesize(**terms)


def test_cells_and_a_variable_of_the_numbering_column_are_refused(tmp_path: Path) -> None:
    release = released(tmp_path / "cells", CUBE, {"site": ["p", "q"]})
    with pytest.raises(UsageError, match="2 cells"):
        models.network(release, "joint", method="plug-in", draws=DRAWS, rng=1).synthesize(rows=9)
    named = {"family": "contingency", "columns": {"imputation": ["0", "1"], "b": ["0", "1"]}}
    fit = models.network(released(tmp_path / "name", named), "joint", method="plug-in", draws=DRAWS, rng=1)
    with pytest.raises(UsageError, match="a variable is called 'imputation'"):
        fit.synthesize(rows=9)
