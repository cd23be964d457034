"""How far one unit can move the scores of a sample: every unit tried, on real tables of a whole grid.

A unit's records lie in any of the cells. What it moves in a cell follows from how many of them are there,
from the sum of their T, and from what else is there: all of the first two are enumerated, and over the data
sets of `CELLS` the largest is taken. Ranges add up over cells, so the worst unit is the worst way to share
its records among them.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.spec.compiled_statistics import score_tables
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.fields import SampleEntry, sample_entry
from support.samples import sample_of, sampled_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.sample_plan import ScoreTables

CELLS = ((0, 0.0), (1, 1.0), (7, 0.3), (1000, 0.6), (10**9, 0.25), (10**13, 0.9))
"""Records of a cell, and the share of T's range that they have; of the last many scores are cut off."""
MOST_VALUES = 17
RELATIONS = ("add_or_remove_one", "replace_one")
FAMILIES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "bernoulli": ({}, ["0.005", "0.5"]),
    "poisson": ({"upper": "9"}, ["0.2", "12"]),
    "exponential": ({"upper": "100"}, ["0.01", "0.5"]),
    "normal_known_mean": ({"mean": "0.1", "half_range": "60"}, ["3", "900"]),
    "normal_known_variance": ({"variance": "3", "lower": "-3", "upper": "100"}, ["-2", "99"]),
}


def made(
    family: str, *, bits: int | None, grid: int, records: int, n_cells: int, neighboring: str
) -> tuple[int, ScoreTables]:
    """Return the range that a plan states for so many rows of a unit, and the tables of its scores."""
    entry, within = FAMILIES[family]
    sample = {"draws": "1", "within": within, "grid": str(grid)}
    lattice = {} if bits is None else {"lattice_bits": str(bits)}
    statistic = {"family": family, "column": "x", **entry, **lattice, "sample": sample}
    unit = {"column": "who", "max_rows": str(records)}
    spec = sampled_spec(
        {"x": statistic},
        privacy={"epsilon": "1000", "neighboring": neighboring, "unit": unit},
        groups={"g": {"range": ["1", str(n_cells)]}},
    )
    parsed = spec.statistics["x"]
    stated = sample_entry(parsed)
    assert isinstance(stated, SampleEntry)
    return sample_of(compile_plan(spec)).range_sensitivity, score_tables(parsed, stated)


def largest_change(tables: ScoreTables, relation: str, *, records: int, n_cells: int) -> int:
    """Return the largest range of a change, added up over cells, that any unit of so many records makes.

    A record's T has every value where these are at most `MOST_VALUES`, else both ends, those next to them,
    and three between.
    """
    width = tables.width
    values = (
        range(width + 1)
        if width < MOST_VALUES
        else (0, 1, width // 3, width // 2, width * 3 // 4, width - 1, width)
    )
    sums = [{0}]
    for _ in range(records):
        sums.append({total + value for total in sums[-1] for value in values})
    moved = np.zeros((records + 1, records + 1), np.int64)
    for n, share in CELLS:
        base = round(n * tables.width * share)
        scores = [
            np.array([tables.scores(n + count, base + total) for total in sorted(totals)], np.int64)
            for count, totals in enumerate(sums)
        ]
        for before, after in itertools.product(range(records + 1), repeat=2):
            if relation == "replace_one" or before == 0:
                moved[before, after] = max(
                    moved[before, after], _largest_range(scores[before], scores[after])
                )
    shared = [list(shares(count, n_cells)) for count in range(records + 1)]
    gone = [share for counts in (shared if relation == "replace_one" else shared[:1]) for share in counts]
    come = [share for counts in shared for share in counts]
    return max(
        sum(int(moved[before, after]) for before, after in zip(earlier, later, strict=True))
        for earlier, later in itertools.product(gone, come)
    )


def _largest_range(before: NDArray[np.int64], after: NDArray[np.int64]) -> int:
    """Return the largest range over the grid of a change from one row of scores to another."""
    changes = (after - scores for scores in before)
    return max(int((change.max(axis=1) - change.min(axis=1)).max()) for change in changes)


def shares(count: int, n_cells: int) -> Iterator[tuple[int, ...]]:
    """Give every way to divide so many records among cells, in order."""
    if n_cells == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in shares(count - first, n_cells - 1):
            yield (first, *rest)


def check(family: str, relation: str, *, bits: int | None, grid: int, records: int, n_cells: int) -> None:
    bound, tables = made(family, bits=bits, grid=grid, records=records, n_cells=n_cells, neighboring=relation)
    change = largest_change(tables, relation, records=records, n_cells=n_cells)
    rounded = 2 * records + 1  # up for each record, down in each cell, and to an even number
    rounded *= 2 if relation == "replace_one" else 1
    assert bound - rounded <= change <= bound


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("family", "bits"), [("poisson", None), ("exponential", 24)])
def test_no_unit_moves_the_scores_of_a_fine_grid_by_more_than_the_range(
    family: str, bits: int | None, relation: str
) -> None:
    """Up to 2 rows of a unit in 2 cells, 257 points; and no bound is larger than rounding makes it."""
    check(family, relation, bits=bits, grid=257, records=2, n_cells=2)


@pytest.mark.audit
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("grid", [1025, 4097])
@pytest.mark.parametrize(
    ("family", "bits"),
    [
        ("bernoulli", None),
        ("poisson", None),
        *((family, bits) for family in list(FAMILIES)[2:] for bits in (4, 16, 24)),
    ],
)
def test_no_unit_moves_the_scores_of_the_finest_grids_by_more_than_the_range(
    family: str, bits: int | None, grid: int, relation: str
) -> None:
    """Up to 3 rows of a unit in 3 cells."""
    check(family, relation, bits=bits, grid=grid, records=3, n_cells=3)
