"""A release whose units are bounded in cells: from files to what every reader says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import suffice
from suffice.cataloguing.releases import release_facts
from suffice.cli.app import whole
from suffice.pages.release_words import limits
from suffice.pages.statistic_view import statistic_view
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.releasing.rehearsal import rehearse
from suffice.releasing.release import carry_out
from suffice.storage.operations.disclosure import disclosure
from support.making import make_workspace

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.spec import Spec
    from support.making import Workspace

UNITS, MAX_ROWS, IN_CELL = 300, 4, 2
STATISTICS: dict[str, dict[str, Any]] = {
    "late": {"family": "bernoulli", "column": "late"},
    "all": {"family": "bernoulli", "column": "late", "groups": {}},
    "within": {"family": "bernoulli", "column": "late", "within_unit": "true"},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Units of 3, 2 and 1 rows in three cells, so that 2, 2 and 1 would enter, of which 4 do."""
    who, cell = (np.repeat(np.tile(of, UNITS), np.tile([3, 2, 1], UNITS)) for of in ([0, 0, 0], [0, 1, 2]))
    who = who + np.repeat(np.arange(UNITS), 6)
    order = np.random.default_rng(7).permutation(len(who))
    table = pa.table({"who": who[order], "cell": cell[order], "late": (who % 2)[order]})
    return make_workspace(tmp_path_factory.mktemp("cells"), granted="1000", table=table, unit="column:who")


@pytest.fixture(scope="module")
def spec(place: Workspace) -> Spec:
    unit = {"column": "who", "max_rows": str(MAX_ROWS), "max_rows_per_cell": str(IN_CELL)}
    privacy = {"epsilon": "300", "neighboring": "add_or_remove_one", "unit": unit}
    groups = {"cell": {"range": ["0", "2"]}}
    return place.spec(privacy=privacy, statistics=STATISTICS, groups=groups)


@pytest.fixture(scope="module")
def release(place: Workspace, spec: Spec) -> Release:
    return carry_out(spec, store=place.store, ledger=place.ledger).release


def test_so_many_rows_enter(release: Release) -> None:
    """Noise of scale 0.04 or 0.08: above 4 with a chance below e^-50."""
    counts = [row["estimate"] for row in release.table("late") if row["quantity"] == "n"]
    assert sum(counts) == pytest.approx(MAX_ROWS * UNITS, abs=12)
    assert max(counts) <= IN_CELL * UNITS + 4
    (whole,) = (row["estimate"] for row in release.table("all") if row["quantity"] == "n")
    assert whole == pytest.approx(IN_CELL * UNITS, abs=4)


def test_every_reader_says_what_bounds_them(release: Release) -> None:
    manifest = release.manifest
    assert (manifest["max_rows"], manifest["max_rows_per_cell"]) == (MAX_ROWS, IN_CELL)
    assert [plan.l1_sensitivity for plan in map(release.plan_of, STATISTICS)][:2] == [4, 2]
    opened = suffice.open_release(release.uri)
    assert opened.plan_of("late") == release.plan_of("late")
    said = "of rows kept: at most 4 of each unit, at most 2 in a cell"
    assert opened.posterior("late").rows_of == said
    assert opened.posterior("all").rows_of == "of rows kept: at most 2 of each unit"
    views = [statistic_view(opened, name, seed=1) for name in opened]
    facts = release_facts(opened, json.dumps(manifest).encode(), views)
    said_of_rows = "at most 4 rows enter statistics of rows, at most 2 in a cell,"
    assert any(said_of_rows in of for of in limits(facts, views, is_explored=True))
    loss: Any = disclosure(manifest)["entry"]["deployment"]["privacy_loss"]
    assert "at most 4 enter the release, at most 2 a cell of a statistic," in loss["privacy_unit_details"]
    shown = CliRunner().invoke(whole(), ["show", release.uri, "--json"])
    assert json.loads(shown.stdout)["max_rows_per_cell"] == IN_CELL
    printed = CliRunner().invoke(whole(), ["show", release.uri])
    assert "max_rows_per_cell" in printed.stdout


def test_products_are_of_the_rows_in_a_cell(release: Release) -> None:
    """All rows of a unit are alike: two in a cell, of three or two, say each thing twice."""
    plan = release.plan_of("within").within_unit
    assert plan is not None
    assert plan.max_rows == IN_CELL
    posterior = release.posterior("within")
    ignored = release.posterior("within", within_unit="ignored")
    widths = [upper - lower for lower, upper in (posterior.interval(0.95), ignored.interval(0.95))]
    ratios = widths[0] / widths[1]
    assert (ratios[:2] > 1.2).all(), "the square root of two, but for noise"
    assert ratios[2] < 1.1, "one row each"


def test_a_rehearsal_and_a_plan_state_them(place: Workspace, spec: Spec) -> None:
    rehearsal = rehearse(spec, store=place.store, ledger=place.ledger)
    assert not [stage for stage in rehearsal.stages if not stage.tried]
    stated = plan_document(compile_plan(spec))
    assert (stated["max_rows"], stated["max_rows_per_cell"]) == (MAX_ROWS, IN_CELL)
