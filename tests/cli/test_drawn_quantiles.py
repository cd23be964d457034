"""A drawn quantile on the command line, on pages and in catalogues: what shows it, and what refuses it."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cli.test_samples import GROUPS, REFUSED, publish_under
from support.releases import make_plan
from support.samples import drawn_quantile, quantile_of

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan
    from support.running import Runner


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(name="first", groups=GROUPS, statistics={"drawn": drawn_quantile("stops")})


@pytest.fixture(scope="module")
def store(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("quantiles") / "store"
    drawn = np.arange(plan.n_cells * 2, dtype=object).reshape(-1, 2)
    publish_under(root, plan, {"drawn": drawn}, release_id=f"{5:016x}")
    return root


@pytest.mark.parametrize("command", [("posterior",), ("quantiles",), ("calibrate",)])
def test_what_needs_counts_refuses_it_by_name(command: tuple[str, ...], store: Path, suffice: Runner) -> None:
    said = suffice.json(*command, *REFUSED[command], "--store", str(store), status=2)["error"]
    assert said["message"].startswith("drawn is a drawn quantile 0.9: there are no counts in it; its draws")


def test_show_does_not_advise_what_is_refused(store: Path, suffice: Runner) -> None:
    said = suffice.text("show", "first", "--store", str(store))
    assert "drawn" in said
    assert "suffice quantiles" not in said


def test_table_gives_the_ends_of_bins_and_the_bound(store: Path, plan: Plan, suffice: Runner) -> None:
    told = suffice.json("table", "first", "drawn", "--store", str(store))
    bound = quantile_of(plan).rank_bound()
    assert (told["quantile"], told["rank_bound"]) == ("0.9", pytest.approx(bound))
    bins = quantile_of(plan).bins
    assert [(row["lower"], row["upper"]) for row in told["rows"]] == [
        *zip(bins.lower[:8], bins.upper[:8], strict=True)
    ]
    said = suffice.text("table", "first", "drawn", "--store", str(store))
    assert f"within {math.ceil(bound):,} records of that rank" in " ".join(said.split())


def test_pictures_pages_and_catalogues_show_it(store: Path, suffice: Runner, tmp_path: Path) -> None:
    picture = tmp_path / "drawn.svg"
    suffice.text("table", "first", "drawn", "--store", str(store), "--plot", str(picture))
    assert "Middles of the bins drawn for the quantile 0.9" in picture.read_text()
    suffice.text("catalogue", str(store), "--out", str(tmp_path / "site"))
    texts = {path.name: path.read_text() for path in (tmp_path / "site").rglob("*.html")}
    assert any("a circle for the middle of each bin" in text for text in texts.values())
    (csv_file,) = (tmp_path / "site").rglob("drawn.csv")
    with csv_file.open() as file:
        first = next(csv.DictReader(file))
    assert first["quantile 0.9 draw 0"] == "0.5"
