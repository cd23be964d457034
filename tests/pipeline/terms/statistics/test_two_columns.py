"""Two columns with linear terms: the bound on every lattice point, the way back, and what the noise is."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.spec.compiled_statistics import block_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.moment_columns import moment_map, rotated_map, two_column_map
from suffice.pipeline.terms.statistics.sensitivity import Design, two_column_moments
from support.record_vectors import squared_change
from support.several import lattice_sums, plan_of, spec_of, with_nulls
from support.units import KEY, by_customer, partitions_of, sum_tasks, write_row_groups

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.moment_columns import Map

UNIT = {"lower": -1, "upper": 1}
ENTRIES: dict[str, dict[str, Any]] = {
    "normal": {"family": "multivariate_normal", "columns": {"x": UNIT, "y": UNIT}},
    "regression": {"family": "linear_regression", "predictors": {"x": UNIT}, "outcome": {"y": UNIT}},
}
NAMES = ("x", "y")


def components(steps: int, points: NDArray[Any], released: Map | None = None) -> NDArray[Any]:
    """Return what records (n, 2) add, (n, 6)."""
    ones = np.concatenate([np.ones((len(points), 1), int), points], axis=1)
    first, second = np.triu_indices(3)
    matrix = (released or two_column_map(NAMES, steps)).matrix.astype(np.int64)
    return np.asarray((ones[:, first] * ones[:, second]) @ matrix.T)


def square(steps: int) -> NDArray[Any]:
    """Return all lattice points."""
    return np.array(list(itertools.product(range(-steps, steps + 1), repeat=2)))


def test_the_bound_is_that_of_every_lattice_point() -> None:
    for steps in range(1, 65):
        points = square(steps)
        added = np.abs(components(steps, points))
        norms = added.sum(axis=1)
        assert int(norms.max()) == two_column_moments(steps) == 17 * steps**2
        ends = points[norms == norms.max()].tolist()
        assert sorted(ends) == [[-steps, 0], [0, -steps], [0, steps], [steps, 0]]
        assert int(added.max()) == two_column_map(NAMES, steps).largest_value


@pytest.mark.parametrize(("wide", "slack"), [(4, 5), (3, 6)])
def test_other_weights_would_exceed_the_bound(wide: int, slack: int) -> None:
    """A control: 4 M s in place of 3 M s, or 6 (M^2 - U^2) in place of 5, adds more than 17 M^2."""
    steps, points = 16, square(16)
    plus, minus = points.sum(axis=1), points[:, 0] - points[:, 1]
    norm = slack * (2 * steps**2 - (points**2).sum(axis=1))
    for both in (plus, minus):
        norm += np.abs(2 * both**2 + wide * steps * both) + np.abs(2 * both**2 - wide * steps * both)
    assert norm.max() > two_column_moments(steps)


@pytest.mark.parametrize("steps", [1, 2, 4, 8, 16])
def test_no_replaced_record_moves_more_than_twice_the_bound(steps: int) -> None:
    added = components(steps, square(steps))
    largest = max(int(np.abs(added - vector).sum(axis=1).max()) for vector in added)
    assert 17 * steps**2 < largest <= 34 * steps**2


@given(st.integers(0, 24), st.lists(st.tuples(*[st.integers(-(2**24), 2**24)] * 2), min_size=1, max_size=5))
def test_moments_come_back_exactly_and_no_record_exceeds_the_bound(
    bits: int, rows: list[tuple[int, int]]
) -> None:
    steps = 1 << bits
    inside = np.array([[x % (2 * steps + 1) - steps for x in row] for row in rows], dtype=object)
    released = two_column_map(NAMES, steps)
    matrix = released.matrix
    for row in inside:
        (moments,) = lattice_sums(row[None]) @ matrix.T
        assert sum(abs(int(number)) for number in moments) <= two_column_moments(steps)
    (sums,) = lattice_sums(inside)
    total = sums @ matrix.T
    for pair, moment in zip(itertools.combinations_with_replacement(range(3), 2), sums, strict=True):
        back = released.moments[pair].coefficients.items()
        assert sum((weight * int(total[position]) for position, weight in back), Fraction(0)) == moment


@pytest.mark.parametrize("name", ENTRIES)
def test_noise_is_that_of_the_design(name: str) -> None:
    """Variances times epsilon^2 in half ranges; 34 times as much under replace_one as 17."""
    plan = plan_of(ENTRIES[name])
    assert plan.design is Design.BOUNDED
    assert plan.l1_sensitivity == 17 * 4**16
    variances = {
        (quantity.name, quantity.component): plan.quantity_noise_sd(quantity) ** 2
        for quantity in plan.quantities
    }
    of_square, of_value, of_product = 578 * (1 / 50 + 1 / 64), 578 / 36, 578 / 64
    expected: dict[tuple[str, str | None], Any] = {
        ("n", None): pytest.approx(of_square),
        **{("total", column): pytest.approx(of_value) for column in NAMES},
        **{("total_of_squares", column): pytest.approx(of_square) for column in NAMES},
        ("total_of_products", "x, y"): pytest.approx(of_product),
    }
    assert variances == expected
    # The rotated design of the same two columns: 5, 5, 5 and 7.1 half ranges over epsilon.
    rotated = rotated_map(NAMES, 1, linear=True)
    squares = [
        2 * 25 * sum(weight**2 for weight in rotated.moments[pair].coefficients.values())
        for pair in ((0, 0), (0, 1), (1, 1), (1, 2))
    ]
    assert squares == [25, 25, 25, 50]
    assert all(ours < theirs for ours, theirs in zip((of_square, of_value, of_square), squares, strict=False))
    assert of_product < squares[3] / 5


def test_what_is_released_otherwise_stays_as_it_is() -> None:
    """With three columns, without an intercept, and beside a public number of rows."""
    twice = compile_plan(spec_of(ENTRIES["normal"], privacy={"epsilon": "1", "neighboring": "replace_one"}))
    assert twice.statistics[0].l1_sensitivity == 34 * 4**16
    minimal = plan_of(ENTRIES["normal"], minimal=True)
    assert minimal.design is Design.MINIMAL
    assert minimal.l1_sensitivity == math.floor(Fraction(4**16, 3) * (Fraction(1, 2) + 3) ** 2)
    origin = plan_of({**ENTRIES["regression"], "intercept": False, "noise": "laplace"})
    assert origin.l1_sensitivity == 3 * 4**16
    three = moment_map(("x", "y", "z"), 4, linear=True, weight=None)
    assert three.components == rotated_map(("x", "y", "z"), 4, linear=True).components


def test_components_say_what_they_are() -> None:
    assert plan_of(ENTRIES["regression"]).components == (
        "sum(2 * (x + y)^2 + 3 * 2^m * (x + y))",
        "sum(2 * (x + y)^2 - 3 * 2^m * (x + y))",
        "sum(2 * (x - y)^2 + 3 * 2^m * (x - y))",
        "sum(2 * (x - y)^2 - 3 * 2^m * (x - y))",
        "sum(5 * (4^m - x^2))",
        "sum(5 * (4^m - y^2))",
    )


DOCUMENTED = {
    "2, with first moments": (2, True),
    "2, a regression without an intercept": (2, False),
    "3": (3, True),
    "5": (5, True),
}


def test_the_documented_noise_is_that_of_the_maps(repository: Path) -> None:
    text = (repository / "docs/reference/families.md").read_text(encoding="utf-8")
    for row, (size, linear) in DOCUMENTED.items():
        released = moment_map(tuple("abcde"[:size]), 1, linear=linear, weight=None)
        sds = {
            pair: math.sqrt(2.0 * sum(float(weight) ** 2 for weight in moment.coefficients.values()))
            * (released.record_l1 or 0)
            for pair, moment in released.moments.items()
        }
        products = sorted({f"{sd:.1f}" for (i, j), sd in sds.items() if 0 < i < j}, key=float)
        first = f"{sds[0, 1]:.1f}" if linear else ""
        last = products[0] if len(products) == 1 else f"{products[0]} (the last one {products[1]})"
        line = f"| {row} | {sds[0, 0]:.1f} | {first} | {sds[1, 1]:.1f} | {last} |".replace("|  |", "| |")
        assert line in text


MAX_ROWS = 2
CORNERS = [(1.0, 0.0), (0.0, -9.0), (1.0, 1.0), (None, 1.0)]
"""The records of a unit: two that attain the bound, one of them clipped, and one that does not enter."""


@pytest.mark.slow
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("nulls", [False, True])
def test_a_unit_moves_the_totals_by_what_its_kept_rows_add(
    tmp_path: Path, neighboring: str, nulls: bool
) -> None:
    entry = {**(with_nulls(ENTRIES["normal"]) if nulls else ENTRIES["normal"]), "lattice_bits": 2}
    spec = load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": str(tmp_path)},
            "privacy": {"epsilon": "1", "neighboring": neighboring, "unit": by_customer(MAX_ROWS)},
            "groups": {"g": ["a", "b"]},
            "statistics": {"s": entry},
        }
    )
    plan = compile_plan(spec)
    (statistic,) = plan.statistics
    job = chunk_job(spec, "all")
    universe = list(itertools.product(CORNERS, ["a", "b"]))

    def totals(records: tuple[Any, ...]) -> NDArray[Any]:
        rows = [("B", *record) for record in records] + [("A", (1.0, 1.0), "a")] * 3
        units, values, keys = zip(*rows, strict=True)
        table = pa.table(
            {
                "u": pa.array(list(units), pa.string()),
                "x": pa.array([x for x, _ in values], pa.float64()),
                "y": pa.array([y for _, y in values], pa.float64()),
                "g": pa.array(list(keys), pa.string()),
                "t": pa.array([dt.date(2013, 1, 31)] * len(rows), pa.date32()),
            }
        )
        write_row_groups(tmp_path, table, [len(rows)])
        exact = to_python(sum_tasks(job, partitions_of(spec), KEY, n_buckets=1))["s"]
        return FAMILIES[statistic.family].totals(spec.statistics["s"], statistic.design, exact).ravel()

    vectors = np.array(
        [
            totals(records)
            for size in range(MAX_ROWS + 2)
            for records in itertools.combinations_with_replacement(universe, size)
        ]
    )
    others = vectors[:1] if neighboring == "add_or_remove_one" else vectors
    largest = int(max(np.abs(vectors - other).sum(axis=1).max() for other in others))
    assert statistic.l1_sensitivity == MAX_ROWS * 17 * 4**2 * len({neighboring, "add_or_remove_one"})
    assert largest == statistic.l1_sensitivity
    block = block_of(spec.statistics["s"], n_may_be_public=False)
    assert squared_change(vectors, neighboring) == block.l2_squared(plan.neighboring, MAX_ROWS)
