"""Releases of one quantile, drawn, as ``docs/how-to/release-one-quantile.md`` reads them.

The whole road, what readers find, and what they refuse.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import PriorError, ReleaseCorruptError, UsageError
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.terms.released.sample import ReleasedQuantile
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases.release_store import open_release
from support.making import ORIGINS, make_workspace
from support.releases import make_plan
from support.samples import drawn, drawn_quantile

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release

STATISTICS = {
    "noisy": {"family": "bernoulli", "column": "cancelled"},
    "p90": drawn_quantile("stops", sample={"draws": "3"}),
    "drawn": drawn("cancelled"),
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Release:
    workspace = make_workspace(tmp_path_factory.mktemp("place"))
    outcome = workspace.run(statistics=STATISTICS)
    again = workspace.run(statistics=STATISTICS)
    assert (outcome.status, again.status) == ("published", "already_published")
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.account("passengers").spent == Fraction(1), "pure epsilon, charged once"
    return open_release(f"{workspace.store}/flights/all/{outcome.release.release_id}")


def test_what_was_drawn_is_bins(released: Release) -> None:
    draws = released.samples("p90")
    assert isinstance(draws, ReleasedQuantile)
    assert draws.indices.shape == (len(ORIGINS), 3)
    assert draws.parameter == "quantile 0.9"
    bins = draws.quantile.bins
    assert draws.lower.tolist() == np.array(bins.lower)[draws.indices].tolist()
    assert draws.upper.tolist() == np.array(bins.upper)[draws.indices].tolist()
    assert draws.values.tolist() == (0.5 * (draws.lower + draws.upper)).tolist()
    rows = released.table("p90", {"origin": "JFK"})
    assert [(row["origin"], row["parameter"], row["draw"]) for row in rows] == [
        ("JFK", "quantile 0.9", draw) for draw in range(3)
    ]
    at = ORIGINS.index("JFK")
    assert [row["lower"] for row in rows] == draws.lower[at].tolist()
    assert [row["upper"] for row in rows] == draws.upper[at].tolist()
    assert "rank scale" in repr(draws)


def test_the_bound_of_the_rank_is_public_and_needs_the_rows_for_levels(released: Release) -> None:
    draws = released.samples("p90")
    assert isinstance(draws, ReleasedQuantile)
    tau = 1.8 * 3 * 3  # three draws, and a third of epsilon 1
    assert draws.rank_bound() == pytest.approx(tau * math.log(8 * 19), rel=1e-6)
    assert draws.levels(3000) == pytest.approx(
        (0.9 - draws.rank_bound() / 3000, 0.9 + draws.rank_bound() / 3000)
    )
    assert draws.levels(10) == (0.0, 1.0)
    for refused in ({"rows": 0}, {"rows": 100, "level": 1.0}):
        with pytest.raises(UsageError, match=r"rows|level"):
            draws.levels(**refused)


def test_a_file_of_bins_is_keys_draws_and_indices(released: Release) -> None:
    table = pq.read_table(Path(released.uri.removeprefix("file://")) / "p90.parquet")
    assert table.column_names == ["origin", "draw", "value"]
    assert table["value"].to_numpy().reshape(-1, 3).tolist() == released.samples("p90").indices.tolist()


def test_the_manifest_states_quantile_range_and_scale(released: Release) -> None:
    entry = dict(released.manifest["statistics"][1])
    scale = int(entry.pop("scale"))
    assert entry.pop("parameters")["bins"] == {"edges": list("012345678"), "atoms": ["3"]}
    assert entry.pop("range_sensitivity") == str(18 * 2**20)
    assert Fraction(entry.pop("rank_scale")) == Fraction(scale, 10 * 2**20)
    assert scale == 3 * 3 * 18 * 2**20 + 1
    assert entry == {
        "name": "p90",
        "family": "histogram",
        "columns": ["stops"],
        "rows_of": None,
        "design": "partition_of_unity",
        "epsilon": "1/3",
        "mechanism": "exponential",
        "quantile": "0.9",
        "draws": 3,
    }


def test_readers_compile_the_same_plan_from_its_canonical_form() -> None:
    plan = make_plan(statistics=STATISTICS)
    read = read_canonical_plan(plan.canonical, plan.order)
    assert read.assemble(list(read.statistics())) == plan


@pytest.mark.parametrize("call", ["posterior", "statistic", "cells"])
def test_there_are_no_counts_in_it(released: Release, call: str) -> None:
    with pytest.raises(UsageError, match=r"p90 is a drawn quantile 0\.9: there are no counts in it"):
        getattr(released, call)("p90")


def test_verification_recomputes_the_range(released: Release, tmp_path: Path) -> None:
    verify_release(released.uri)
    folder = Path(released.uri.removeprefix("file://"))
    for each in folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["statistics"][1]["range_sensitivity"] = str(9 * 2**20)
    path.write_text(json.dumps(manifest))
    with pytest.raises(ReleaseCorruptError):
        open_release(str(tmp_path))


def test_the_posterior_says_what_it_rests_on(released: Release) -> None:
    asked: dict[str, Any] = {"n_prior": "Uniform(5, 50)", "simulations": 4000}
    posterior = suffice.quantile_posterior(released, "p90", **asked)
    assert posterior.probability.shape == (len(ORIGINS), 9)
    assert posterior.probability.sum(axis=1) == pytest.approx(1.0)
    lower, upper = posterior.interval()
    assert np.all(lower <= posterior.median()[0])
    assert np.all(posterior.median()[1] <= upper)
    again = suffice.quantile_posterior(released, "p90", **asked)
    assert again.probability.tolist() == posterior.probability.tolist()
    shown = str(posterior)
    for said in ("not of a population", "Uniform(5, 50)", "BinWalk(", "of 4,000 data sets of the prior"):
        assert said in shown
    (row,) = suffice.quantile_posterior(released, "p90", where={"origin": "JFK"}, **asked).table()
    assert (row["origin"], row["parameter"]) == ("JFK", "quantile 0.9")


@pytest.mark.parametrize(
    ("change", "error", "rule"),
    [
        ({"simulations": 50}, UsageError, "fewer than 100 of 50 data sets of the prior agree"),
        ({"simulations": 0}, UsageError, "simulations: an integer"),
        ({"prior": "Beta(1, 1)"}, PriorError, "the prior of a drawn quantile is a BinWalk"),
        ({"n_prior": "Beta(1, 1)"}, PriorError, "write one of Reciprocal, Uniform"),
        ({"statistic": "noisy"}, UsageError, "was released as noisy statistics"),
        ({"statistic": "drawn"}, UsageError, "is a posterior sample, and no draw of a quantile"),
        ({"where": {"origin": "XXX"}}, UsageError, "no cell"),
    ],
)
def test_what_the_posterior_refuses(
    released: Release, change: dict[str, object], error: type[Exception], rule: str
) -> None:
    asked = {"statistic": "p90", "n_prior": 20, "simulations": 4000, **change}
    with pytest.raises(error, match=rule):
        suffice.quantile_posterior(released, **asked)  # type: ignore[arg-type]
