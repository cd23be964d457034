"""Releases of whole units from files to posteriors, on threads and on worker processes."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import suffice
from suffice.cli.app import whole
from suffice.errors import UsageError
from suffice.pages import card as cards
from suffice.pipeline.rows.reduce import tree
from suffice.releasing.release import carry_out
from support.making import make_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.cluster.connection import Cluster

MAX_ROWS, UPPER, UNITS, CELLS = 2, 6, 600, 3
EPSILON = "700"
"""A hundred a statistic: noise of scale 0.08 at most, so that exact totals are seen."""
STATISTICS: dict[str, dict[str, Any]] = {
    "late": {"family": "bernoulli", "column": "late", "rows_of": "units"},
    "kind": {"family": "categorical", "column": "kind", "categories": ["a", "b"], "rows_of": "units"},
    "visits": {"family": "poisson", "column": "visits", "upper": "4", "rows_of": "units"},
    "delay": {
        "family": "normal",
        "column": "delay",
        "lower": "-8",
        "upper": "8",
        "lattice_bits": "3",
        "rows_of": "units",
    },
    "rows": {"family": "rows_per_unit", "upper": str(UPPER)},
    "sizes": {"family": "rows_per_unit", "upper": str(UPPER), "histogram": "true"},
    "kept": {"family": "bernoulli", "column": "late"},
}


def data(rng: np.random.Generator) -> tuple[pa.Table, dict[str, Any]]:
    """Return rows in any order, those of a unit alike but for delays, and the columns of units."""
    rows = rng.integers(1, 10, UNITS)
    unit = {
        "cell": np.arange(UNITS) % CELLS,
        "late": rng.integers(0, 2, UNITS),
        "kind": rng.integers(0, 2, UNITS),
        "visits": rng.integers(0, 7, UNITS),
    }
    of = rng.permutation(np.repeat(np.arange(UNITS), rows))
    delay = rng.integers(-8, 9, len(of)).astype(np.float64)
    table = pa.table(
        {
            "who": of,
            "cell": unit["cell"][of],
            "late": unit["late"][of],
            "kind": np.array(["a", "b"])[unit["kind"][of]],
            "visits": unit["visits"][of],
            "delay": delay,
        }
    )
    means = np.rint(np.bincount(of, delay) / rows)
    return table, {**unit, "rows": rows, "mean": means}


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with tree.open_cluster_for_sums("local") as cluster:
        yield cluster


@pytest.fixture(scope="module", params=["threads", "local"])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, local: Cluster
) -> tuple[Release, dict[str, Any]]:
    table, of_units = data(np.random.default_rng(7))
    place = make_workspace(tmp_path_factory.mktemp("units"), granted="1000", table=table, unit="column:who")
    privacy = {
        "epsilon": EPSILON,
        "neighboring": "add_or_remove_one",
        "unit": {"column": "who", "max_rows": str(MAX_ROWS)},
    }
    spec = place.spec(
        privacy=privacy, statistics=STATISTICS, groups={"cell": {"range": ["0", str(CELLS - 1)]}}
    )
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "local":
            patch.setattr(tree, "open_cluster_for_sums", lambda *_: contextlib.nullcontext(local))
        outcome = carry_out(spec, store=place.store, ledger=place.ledger)
    return outcome.release, of_units


def by_cell(of_units: dict[str, Any], values: Any) -> np.ndarray[Any, Any]:
    return np.bincount(of_units["cell"], values, CELLS)


def estimates(release: Release, name: str, quantity: str, category: str | None = None) -> list[float]:
    rows = release.table(name)
    return [
        row["estimate"]
        for row in rows
        if (row["quantity"], row.get("category") or None) == (quantity, category)
    ]


@pytest.mark.slow
def test_totals_are_those_of_units(made: tuple[Release, dict[str, Any]]) -> None:
    """Noise above 4 has a chance of e^-50."""
    release, of_units = made
    rows = of_units["rows"]
    expected = {
        ("late", "n", None): np.ones(UNITS),
        ("late", "total", None): of_units["late"],
        ("kind", "count", "a"): of_units["kind"] == 0,
        ("visits", "total", None): np.minimum(of_units["visits"], 4),
        ("rows", "n", None): np.ones(UNITS),
        ("rows", "count", "kept"): np.minimum(rows, MAX_ROWS),
        ("rows", "count", "left out"): np.minimum(rows, UPPER) - np.minimum(rows, MAX_ROWS),
        ("sizes", "count", "3"): rows == 3,
        ("sizes", "count", "6 or more"): rows >= UPPER,
        ("kept", "n", None): np.minimum(rows, MAX_ROWS),
        ("delay", "n", None): np.ones(UNITS),
        ("delay", "total", None): of_units["mean"],
        ("delay", "total_of_squares", None): of_units["mean"] ** 2,
    }
    for (name, quantity, category), values in expected.items():
        computed = estimates(release, name, quantity, category)
        scale = 64.0 if quantity == "total_of_squares" else 8.0
        assert computed == pytest.approx(by_cell(of_units, values), abs=scale / 2), (name, quantity, category)


def test_the_share_left_out_is_of_the_release(made: tuple[Release, dict[str, Any]]) -> None:
    release, of_units = made
    posterior = release.posterior("rows")
    seen = np.minimum(of_units["rows"], UPPER)
    share = 1 - np.minimum(seen, MAX_ROWS).sum() / seen.sum()
    assert posterior.groups == {}
    assert posterior.mean("probability") == pytest.approx(np.array([[1 - share, share]]), abs=0.01)
    assert not posterior.conflict.is_said.any()
    ends = posterior.credible_interval("probability")[0, 1]
    assert 0 < ends[1] - ends[0] < 0.01
    with pytest.raises(UsageError, match=r"rows is rows_per_unit: .* not of single cells: leave where out"):
        release.posterior("rows", where={"cell": "1"})
    with pytest.raises(UsageError, match="not of single cells: ask each release"):
        suffice.roll_up(release.statistic("rows"), "cell").posterior()
    with pytest.raises(UsageError, match="no posterior from 3 cells together"):
        release.posterior("sizes")
    assert release.posterior("late").n_groups == CELLS


@pytest.mark.slow
def test_noises_of_all_cells_are_simulated(made: tuple[Release, dict[str, Any]]) -> None:
    release, _ = made
    calibration = suffice.calibrate(release, "rows", simulations=20, rng=5)
    assert calibration.simulations == 20
    with pytest.raises(UsageError, match="leave where out"):
        suffice.calibrate(release, "rows", where={"cell": "1"}, simulations=20)


def test_the_command_says_what_the_share_is_of(made: tuple[Release, dict[str, Any]]) -> None:
    release, _ = made
    result = CliRunner().invoke(whole(), ["posterior", release.uri, "rows", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["rows_of"].startswith("of rows of the release, the first 6 of each unit, of which 2 are")
    assert [row["category"] for row in document["rows"]] == ["kept", "left out"]
    plug_in = CliRunner().invoke(whole(), ["posterior", release.uri, "rows", "--method", "plug-in"])
    assert "takes each row or unit for drawn by itself" in plug_in.stdout
    told = json.loads(
        CliRunner()
        .invoke(whole(), ["posterior", release.uri, "rows", "--method", "plug-in", "--json"])
        .stdout
    )["plug_in"]
    assert all(line in plug_in.stdout for line in told)
    assert len(told) == 2
    assert "plug_in" not in document
    for method in ("noise-aware", "plug-in"):
        posterior = release.posterior("rows", method=method)
        page = cards.card(release, posterior, mass=0.9, draws=50, seed=1, rng=np.random.default_rng(1))
        assert "rows_per_unit model" not in page
        assert ("not of the shares of these data" in page) == (method == "plug-in")
        assert "The parameters are of rows of the release, the first 6 of each unit" in page
    shown = CliRunner().invoke(whole(), ["table", release.uri, "rows"])
    assert "category" in shown.stdout
    assert "left out" in shown.stdout.splitlines()[4]
