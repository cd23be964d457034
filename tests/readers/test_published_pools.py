"""Published cells that borrow strength, read in Python, JavaScript and R: the intervals of the posterior."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.over_time import WalkedPosterior
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.publishing.publish import publish
from support.in_r import run_in_r
from support.javascript import read_publications
from support.pooled_cells import make_cells

if TYPE_CHECKING:
    from suffice import Publication
    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.pooling.release import Release

TOWNS = 3
NUMBERS = ("mean", "sd", "lower", "upper")
IN_R = """
    words <- commandArgs(TRUE)
    for (file in list.files(words[1], full.names = TRUE)) source(file)
    numbers <- function(name, values) cat(name, sprintf("%.12g", as.numeric(values)), "\\n")
    for (folder in words[-1]) {
      read <- published_pooled(folder)
      cat("keys", paste(read$cells$region, read$cells$town), sep = ";", "\\n")
      for (name in c("mean", "sd", "lower", "upper", "own_share")) numbers(name, read$cells[[name]])
      for (name in c("mean", "sd", "lower", "upper")) {
        numbers(paste0("alone_", name), read$cells[[paste0("alone_", name)]])
      }
      for (name in c("location", "spread", "slope", "spread_slope", "typical_size", "of_map", "step")) {
        numbers(name, read$populations[[name]])
      }
      numbers("covariate", read$coefficients$upper)
      stopifnot(is.logical(read$populations$identified), is.logical(read$populations$settled))
      cat("words", read$populations$in_words[1], "\\n")
    }
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return make_cells(tmp_path_factory.mktemp("cells"), TOWNS)


@pytest.fixture(scope="module")
def poolings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What cells have in common: slopes on log size, none, covariates, a map, an order, and both."""
    folder = tmp_path_factory.mktemp("tables")
    towns, pairs = folder / "towns.csv", folder / "pairs.csv"
    lines = [f"{region},{town},{town + 3 * (region == 'south')}" for region, town in cells()]
    towns.write_text("\n".join(["region,town,income", *lines]), encoding="utf-8")
    neighbours = [f"{town},{town + 1}" for town in range(1, TOWNS)]
    pairs.write_text("\n".join(["town,neighbour", *neighbours]), encoding="utf-8")
    return {
        "slopes": True,
        "none": "beta",
        "covariates": suffice.Pooling(population="logit-normal", covariates=towns, formula="~ income"),
        "map": suffice.Pooling(population="logit-normal", adjacency=pairs),
        "order": suffice.Pooling(over="town"),
        "panel": suffice.Pooling(adjacency=pairs, over="region"),
    }


def cells() -> list[tuple[str, int]]:
    return [(region, town) for region in ("north", "south") for town in range(1, TOWNS + 1)]


@pytest.fixture(scope="module")
def published(
    release: Release, poolings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Publication]:
    to, formats = tmp_path_factory.mktemp("pools"), ("parquet", "csv", "json")
    return {
        name: publish(release, "ill", pooled=pooled, draws=0, formats=formats, to=to)
        for name, pooled in poolings.items()
    }


@pytest.fixture(scope="module")
def posteriors(release: Release, poolings: dict[str, Any]) -> dict[str, Any]:
    return {name: release.posterior("ill", pooled=pooled) for name, pooled in poolings.items()}


def expected(together: PooledPosterior) -> dict[str, list[float]]:
    """Return what a reader is to find, by name: of cells, and of their population."""
    rows, alone = (summarise(each, interval="central") for each in (together, together.alone))
    known: dict[str, list[float]] = {name: [row[name] for row in rows] for name in NUMBERS}
    known |= {f"alone_{name}": [row[name] for row in alone] for name in NUMBERS}
    known["own_share"] = together.own_share.tolist()
    for pool in together.pools:
        known |= {"location": [pool.location[0]], "spread": [pool.spread[0]], "slope": [pool.slope[0]]}
        known["spread_slope"] = [0.0 if pool.spread_slope is None else pool.spread_slope[0]]
        known["typical_size"] = [] if pool.typical_size is None else [pool.typical_size]
        known["of_map"] = [] if pool.of_map is None else [pool.of_map[0]]
        known["covariate"] = [each.upper for each in pool.coefficients]
    if isinstance(together, WalkedPosterior):
        known |= {name: [] for name in ("location", "slope", "spread_slope", "typical_size")}
    known["step"] = [each.step[0] for each in getattr(together, "steps", ())]
    return known


def check(read: dict[str, list[float]], known: dict[str, list[float]]) -> None:
    for name, values in known.items():
        np.testing.assert_allclose(read.get(name, []), values, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.slow
def test_every_kind_of_pool_is_read_in_python_as_it_was_computed(
    published: dict[str, Publication], posteriors: dict[str, Any]
) -> None:
    for name, made in published.items():
        pool, known = made.pooled("ill"), expected(posteriors[name])
        columns: dict[str, list[float]] = {
            column: [row[column] for row in pool.cells] for column in known if column in pool.cells[0]
        }
        for column in pool.populations[0]:
            values = [row[column] for row in pool.populations if row[column] is not None]
            columns.setdefault(column, values)
        columns["covariate"] = [row["upper"] for row in pool.coefficients]
        check(columns, known)
        assert [(row["region"], row["town"]) for row in pool.cells] == cells()
        assert pool.populations[0]["in_words"] == posteriors[name].rows_of
        assert str(pool).startswith("ill: each together, and alone")
        document = json.loads(made.read("ill-summaries.json"))
        assert (document["rows"], document["pools"]) == (list(pool.cells), list(pool.populations))
        assert document.get("coefficients", []) == list(pool.coefficients)
    assert posteriors["slopes"].pools[0].spread_slope is not None
    assert len(published["covariates"].pooled().coefficients) == 1
    with pytest.raises(UsageError, match="name the statistic"):
        published["map"].pooled("visits")


def test_what_has_no_pooled_cells_says_so(release: Release, tmp_path: Path) -> None:
    alone = publish(release, "ill", where={"region": "north", "town": 1}, draws=0, to=tmp_path)
    with pytest.raises(UsageError, match="no pooled cells as Parquet"):
        alone.pooled()


@pytest.mark.slow
def test_every_kind_of_pool_is_read_in_javascript(
    published: dict[str, Publication], posteriors: dict[str, Any]
) -> None:
    asked = [(Path(made.uri), {"pooled": True}) for made in published.values()]
    for name, read in zip(published, read_publications(asked), strict=True):
        known = expected(posteriors[name])
        columns = {column: [cell[column] for cell in read["cells"]] for column in NUMBERS}
        columns |= {
            f"alone_{column}": [cell["alone"][column] for cell in read["cells"]] for column in NUMBERS
        }
        columns["own_share"] = [cell["ownShare"] for cell in read["cells"]]
        (population,) = read["populations"]
        columns |= {column: [value] for column, value in population.items() if value is not None}
        columns["covariate"] = [row["upper"] for row in read["coefficients"]]
        check(columns, known)
        assert [(cell["keys"]["region"], cell["keys"]["town"]) for cell in read["cells"]] == cells()


@pytest.mark.slow
def test_every_kind_of_pool_is_read_in_r(
    published: dict[str, Publication], posteriors: dict[str, Any], repository: Path, tmp_path: Path
) -> None:
    script = tmp_path / "pools.R"
    script.write_text(IN_R)
    folders = [made.uri for made in published.values()]
    lines = iter(run_in_r(script, str(repository / "readers" / "r" / "R"), *folders).splitlines())
    for name in published:
        known = expected(posteriors[name])
        assert next(lines).split(";")[1:-1] == [f"{region} {town}" for region, town in cells()]
        columns = {}
        for line in lines:
            column, *words = line.split()
            if column == "words":
                assert " ".join(words) == posteriors[name].rows_of
                break
            columns[column] = [float(word) for word in words if word != "NA"]
        check(columns, known)
