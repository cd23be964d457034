"""A release with units within, from rows to intervals, as people run it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from suffice.errors import UsageError
from suffice.storage.releases.release_store import open_release
from support.making import make_workspace

if TYPE_CHECKING:
    from support.running import Runner

N_UNITS = 3000


@pytest.fixture
def release(tmp_path: Path, suffice: Runner, monkeypatch: pytest.MonkeyPatch) -> str:
    """Customers of four rows each, equal to each other, of which three are kept."""
    rng = np.random.default_rng(8)
    unit = np.repeat(np.arange(N_UNITS), 4)
    table = pa.table(
        {
            "customer": unit,
            "origin": np.where(unit % 2, "JFK", "LGA"),
            "returned": np.repeat(rng.random(N_UNITS) < 0.4, 4),
            "spent": np.repeat(rng.normal(50.0, 15.0, N_UNITS), 4),
        }
    )
    table = table.take(rng.permutation(len(unit)))
    workspace = make_workspace(tmp_path, table=table, unit="column:customer", granted="100")
    monkeypatch.setenv("SUFFICE_STORE", workspace.store)
    monkeypatch.setenv("SUFFICE_LEDGER", workspace.ledger)
    privacy = {
        "epsilon": "8",
        "neighboring": "add_or_remove_one",
        "unit": {"column": "customer", "max_rows": 3},
    }
    statistics = {
        "returned": {"family": "bernoulli", "column": "returned", "within_unit": True},
        "spent": {"family": "normal", "column": "spent", "lower": 0, "upper": 100, "within_unit": True},
    }
    groups = {"origin": ["JFK", "LGA"]}
    spec = str(workspace.write_spec(privacy=privacy, statistics=statistics, groups=groups))
    suffice.json("release", spec)
    return "flights"


@pytest.mark.slow
def test_rows_that_are_equal_widen_intervals(release: str, suffice: Runner) -> None:
    for statistic in ("returned", "spent"):
        document = suffice.json("posterior", release, statistic)
        assert [cell["origin"] for cell in document["design_effect"]] == ["JFK", "LGA"]
        for cell in document["design_effect"]:
            assert 2.5 < cell["design_effect"] <= 3.0
        ignored = suffice.json("posterior", release, statistic, "--within-unit", "ignored")
        assert ignored["design_effect"] is None
        for row, narrow in zip(document["rows"], ignored["rows"], strict=True):
            assert row["sd"] > 1.2 * narrow["sd"]
    text = suffice.text("posterior", release, "returned")
    assert "rows of one unit are not independent: intervals are widened by" in text
    assert "(approximate)" in text
    assert "within_unit is modelled or ignored" in suffice.text(
        "posterior", release, "returned", "--within-unit", "never", status=2
    )


def test_what_units_add_is_in_the_table_and_the_manifest(release: str, suffice: Runner) -> None:
    estimates = {
        (row["origin"], row["quantity"]): (row["estimate"], row["noise_sd"])
        for row in suffice.json("table", release, "returned")["rows"]
    }
    n, total, n_squared, total_squared = (
        estimates["JFK", name][0] for name in ("n", "total", "n_squared_of_units", "total_squared_of_units")
    )
    noise = estimates["JFK", "n_squared_of_units"][1]
    assert n == pytest.approx(1500 * 3, abs=40 * estimates["JFK", "n"][1])
    assert n_squared == pytest.approx(1500 * 9, abs=20 * noise)
    assert total_squared == pytest.approx(3 * total, abs=40 * noise)
    uri = suffice.json("show", release)["uri"]
    (statistic, _) = json.loads((Path(uri.removeprefix("file://")) / "manifest.json").read_text())[
        "statistics"
    ]
    assert statistic["within_unit"] == {
        "max_rows": "3",
        "row_weight": "16",
        "row_components": ["false", "true"],
        "unit_total": "1",
    }
    assert suffice.json("verify", uri)["ok"]


def test_a_calibration_says_what_it_leaves_out(release: str, suffice: Runner) -> None:
    words = ("calibrate", release, "returned", "--simulations", "20", "--seed", "1")
    assert suffice.json(*words)["leaves_out_units"] is True
    assert "rows are simulated as independent" in suffice.text(*words)


def test_a_card_says_it(release: str, suffice: Runner, tmp_path: Path) -> None:
    card = tmp_path / "card.html"
    suffice.text("posterior", release, "returned", "--card", str(card))
    assert "Rows of one unit are not independent" in card.read_text()


def test_what_would_take_rows_for_independent_is_refused(release: str, suffice: Runner) -> None:
    posterior = open_release(release, store=os.environ["SUFFICE_STORE"]).posterior("returned")
    with pytest.raises(UsageError, match="replicates are of independent rows"):
        posterior.check(draws=10, rng=1)
    words = ("compare-priors", release, "returned", "--prior", "Beta(1, 1)", "--prior", "Beta(1, 9)")
    assert "rows of one unit for independent" in suffice.text(*words, status=2)
