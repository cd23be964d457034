"""Exhaustive neighbours on tiny domains, through the real compile, chunk and combine path.

Every data set of up to three rows over a small universe of records is summed by the engine; every pair of
neighbours is compared. The declared sensitivity is never exceeded, is attained where the proof says so, and
a halved one is caught.
"""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.pipeline.chunk import chunk, chunk_job
from suffice.pipeline.exact import to_python
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.moments import moment_map
from suffice.pipeline.plan import compile_plan
from suffice.pipeline.sensitivity import (
    Design,
    NeighboringRelation,
    minimal_moments,
    minimal_products,
    rotated_moments,
)
from suffice.pipeline.sources.parquet import open_source
from suffice.pipeline.spec import load_spec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.plan import StatisticPlan

Row = tuple[Any, ...]
DAYS = [dt.date(2013, 1, 31), dt.date(2013, 2, 1), None]


@dataclass(frozen=True)
class Case:
    """A column's universe of values, and the statistic over it."""

    type: pa.DataType
    values: Sequence[Any]
    entry: dict[str, Any]

    @property
    def several(self) -> bool:
        """Whether a value is one of v and one of u."""
        return isinstance(self.values[0], tuple)


BITS = {"lattice_bits": 2}
JOINT = ["multivariate_normal", "linear_regression"]
NEW = sorted(set(FAMILIES) - {"bernoulli", "categorical", "poisson", "normal", *JOINT})
CASES: dict[str, Case] = {
    "bernoulli": Case(pa.int64(), [0, 1, 2, None], {"family": "bernoulli"}),
    "bernoulli-nulls": Case(pa.float64(), [0.0, 1.0, None], {"family": "bernoulli", "nulls": {"value": 1}}),
    "bernoulli-boolean": Case(
        pa.bool_(), [True, False, None], {"family": "bernoulli", "nulls": {"value": 0}}
    ),
    "categorical": Case(
        pa.string(), ["x", "y", "z", None], {"family": "categorical", "categories": ["x", "y"]}
    ),
    "categorical-other": Case(
        pa.string(), ["x", "y", None], {"family": "categorical", "categories": ["x", "y"], "other": "true"}
    ),
    "categorical-one": Case(pa.string(), ["x", "z"], {"family": "categorical", "categories": ["x"]}),
    "poisson": Case(pa.float64(), [-1.0, 0.0, 2.5, 3.0, np.inf, np.nan], {"family": "poisson", "upper": 3}),
    "poisson-nulls": Case(
        pa.int32(), [0, 1, 9, None], {"family": "poisson", "upper": 3, "nulls": {"value": 2}}
    ),
    "normal": Case(
        pa.float64(),
        [-9.0, -1.0, -0.25, 0.0, 1.0, np.nan],
        {"family": "normal", "lower": -1, "upper": 1, "lattice_bits": 2},
    ),
    "normal-nulls": Case(
        pa.float64(),
        [*(step / 4 for step in range(-4, 5)), None],
        {"family": "normal", "lower": -1, "upper": 1, "lattice_bits": 2, "nulls": {"value": "-0.25"}},
    ),
    "binomial": Case(pa.int64(), [-1, 0, 2, 9, None], {"family": "binomial", "trials": 3}),
    "geometric": Case(pa.float64(), [-np.inf, 0.0, 1.5, 3.0, np.nan], {"family": "geometric", "upper": 3}),
    "negative_binomial": Case(
        pa.int64(), [0, 2, 9, None], {"family": "negative_binomial", "successes": "0.5", "upper": 3}
    ),
    "exponential": Case(
        pa.float64(), [-1.0, 0.0, 0.7, 2.0, np.inf, np.nan], {"family": "exponential", "upper": 2, **BITS}
    ),
    "gamma": Case(
        pa.float64(), [-1.0, 0.0, 0.7, 3.0, np.nan], {"family": "gamma", "shape": 3, "upper": 2, **BITS}
    ),
    "weibull": Case(
        pa.float64(),
        [-np.inf, -1.0, 0.0, 0.7, 2.0, np.inf, np.nan],
        {"family": "weibull", "shape": "1.5", "upper": 2, **BITS},
    ),
    "pareto": Case(
        pa.float64(),
        [-np.inf, -1.0, 0.0, 2.0, 3.0, np.inf, np.nan],
        {"family": "pareto", "minimum": 2, "upper": 9, **BITS},
    ),
    "laplace": Case(
        pa.float64(),
        [-np.inf, -2.0, 1.0, 1.7, 4.0, np.inf, np.nan],
        {"family": "laplace", "location": 1, "half_range": 2, **BITS},
    ),
    "normal_known_mean": Case(
        pa.float64(),
        [-np.inf, -2.0, 1.0, 1.7, 4.0, np.inf, np.nan],
        {"family": "normal_known_mean", "mean": 1, "half_range": 2, **BITS},
    ),
    "normal_known_variance": Case(
        pa.float64(),
        [-np.inf, 1.0, 1.7, 4.0, np.nan],
        {"family": "normal_known_variance", "variance": 1, "lower": 1, "upper": 3, **BITS},
    ),
    "lognormal": Case(
        pa.float64(),
        [-np.inf, -1.0, 0.0, 0.25, 1.0, 1.3, 4.0, np.inf, np.nan],
        {"family": "lognormal", "lower": "0.25", "upper": 4, **BITS},
    ),
}
CASES |= {
    f"{name}-nulls": Case(case.type, case.values, {**case.entry, "nulls": {"value": "1"}})
    for name, case in CASES.items()
    if name in NEW
}
CASES["lognormal-nulls"] = Case(
    pa.float64(),
    [*(float(np.exp(step / 4 * np.log(4.0))) for step in range(-4, 5)), None],
    {**CASES["lognormal"].entry, "nulls": {"value": "1"}},
)
PAIRS = [
    (1.0, 1.0),
    (-1.0, 1.0),
    (-9.0, 9.0),
    (0.0, 0.0),
    (1.0, -0.25),
    (-0.25, -0.25),
    (0.25, np.nan),
    (None, 1.0),
]
BOUNDS: dict[str, Any] = {"lower": -1, "upper": 1}
for suffix, bounds in (("", BOUNDS), ("-nulls", {**BOUNDS, "nulls": {"value": "-0.25"}})):
    regression = {"family": "linear_regression", "predictors": {"v": bounds}, **BITS}
    CASES |= {
        f"multivariate_normal{suffix}": Case(
            pa.float64(),
            PAIRS,
            {"family": "multivariate_normal", "columns": {"v": bounds, "u": bounds}, **BITS},
        ),
        f"linear_regression{suffix}": Case(pa.float64(), PAIRS, {**regression, "outcome": {"u": bounds}}),
        f"linear_regression-origin{suffix}": Case(
            pa.float64(),
            PAIRS,
            {**regression, "outcome": {"u": {**bounds, "lower": "-0.3"}}, "intercept": "false"},
        ),
    }
NEARLY_ATTAINED = {
    (name, "replace_one", shape)
    for name in CASES
    if name.startswith(tuple(JOINT))
    for shape in ("plain", "window")
} - {("linear_regression-origin-nulls", "replace_one", "plain")}
"""Bounded components need two cells for twice; a box's best neighbour is no point of a coarse lattice."""
NOT_ATTAINED = {("categorical-one", "replace_one", shape) for shape in ("plain", "window")}
"""One category in one cell: a replaced record can only enter or leave, which moves 1 of the declared 2."""


class Engine:
    """Sums data sets of rows over a spec, exactly as a release does."""

    def __init__(self, directory: Path, case: Case, neighboring: str, shape: str) -> None:
        spec = {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": str(directory)},
            "privacy": {"epsilon": "1", "neighboring": neighboring},
            "statistics": {"s": case.entry if case.several else {**case.entry, "column": "v"}},
        }
        if shape == "groups":
            spec["groups"] = {"g": ["a", "b"]}
        if shape == "window":
            spec["window"] = {"column": "t", "every": "month"}
        self.directory = directory
        self.case = case
        self.spec = load_spec(spec)
        self.plan = compile_plan(self.spec)
        self.job = chunk_job(self.spec, "2013-01" if shape == "window" else "all")
        keys = ["a", "b", "unknown", None] if shape == "groups" else ["a"]
        days = DAYS if shape == "window" else [DAYS[0]]
        self.universe: list[Row] = list(itertools.product(case.values, keys, days))

    @property
    def statistic(self) -> StatisticPlan:
        return self.plan.statistics[0]

    def vectors(self) -> NDArray[Any]:
        """Return the totals of every single record, shape (n_records, n_cells * n_components).

        One file with a row group per record: each is one partition, summed by the real kernel.
        """
        return np.array([self.totals([row]) for row in self.universe])

    def totals(self, rows: Sequence[Row]) -> NDArray[Any]:
        values, keys, days = zip(*rows, strict=True) if rows else ((), (), ())
        firsts = seconds = list(values)
        if self.case.several:
            firsts, seconds = [value for value, _ in values], [value for _, value in values]
        table = pa.table(
            {
                "v": pa.array(firsts, type=self.case.type, from_pandas=False),
                "u": pa.array(seconds, type=self.case.type, from_pandas=False),
                "g": pa.array(list(keys), type=pa.string()),
                "t": pa.array(list(days), type=pa.date32()),
            }
        )
        pq.write_table(table, self.directory / "data.parquet")
        source = open_source(self.spec)
        sums = [chunk(partition, self.job) for partition in source.partitions]
        assert len(sums) <= 1
        if not sums:
            return np.zeros(self.plan.n_cells * len(self.statistic.components), dtype=object)
        exact = to_python(sums[0])["s"]
        entry = self.spec.statistics["s"]
        return FAMILIES[entry.family].totals(entry, self.statistic.design, exact).ravel()


def test_every_family_has_its_cases() -> None:
    assert {case.entry["family"] for case in CASES.values()} == set(FAMILIES)
    assert {case.entry["family"] for case in CASES.values() if "nulls" in case.entry} >= set(NEW)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("shape", ["plain", "groups", "window"])
@pytest.mark.parametrize("neighboring", [str(relation) for relation in NeighboringRelation])
def test_no_neighbour_moves_the_totals_further_than_declared(
    tmp_path: Path, case: str, neighboring: str, shape: str
) -> None:
    engine = Engine(tmp_path, CASES[case], neighboring, shape)
    largest = largest_change(engine)
    declared = engine.statistic.l1_sensitivity
    assert largest <= declared
    assert largest > declared // 2 or (case, neighboring, shape) in NOT_ATTAINED, (
        "a halved one must be caught"
    )
    if (case, neighboring, shape) not in NOT_ATTAINED | NEARLY_ATTAINED:
        assert largest == declared, "claimed tight"


def largest_change(engine: Engine) -> int:
    """Return the largest L1 change over all neighbours; that totals are sums over records is tested below."""
    records = engine.vectors()
    if engine.plan.neighboring is NeighboringRelation.ADD_OR_REMOVE_ONE:
        return int(np.abs(records).sum(axis=1).max())
    return int(max(np.abs(first - second).sum() for first, second in itertools.combinations(records, 2)))


@pytest.mark.parametrize("shape", ["plain", "groups"])
@pytest.mark.parametrize(
    "name",
    ["bernoulli", "categorical-other", "poisson", "normal", "weibull", "lognormal", "multivariate_normal"],
)
def test_totals_are_sums_over_records(tmp_path: Path, name: str, shape: str) -> None:
    """What makes comparing single records exhaustive: a data set's totals are the sum of its records'."""
    engine = Engine(tmp_path, CASES[name], "add_or_remove_one", shape)
    records = dict(zip(engine.universe, engine.vectors(), strict=True))
    assert not engine.totals([]).any()
    pairs = list(itertools.combinations_with_replacement(engine.universe, 2))[::3]
    for rows in [*pairs, engine.universe, engine.universe * 3]:
        expected = sum((records[row] for row in rows), np.zeros(len(engine.totals([])), dtype=object))
        assert (engine.totals(rows) == expected).all()


def changes(size: int, steps: int, *, linear: bool, weight: Fraction | None) -> tuple[int, int]:
    """Return the largest L1 norm of a record's components over a lattice, and of a replaced one's change."""
    names = tuple("abcd"[:size])
    matrix = moment_map(names, steps, linear=linear, weight=weight).matrix.astype(np.int64)
    points = np.array(list(itertools.product(range(-steps, steps + 1), repeat=size)))
    ones = np.concatenate([np.ones((len(points), 1), int), points], axis=1)
    first, second = np.triu_indices(size + 1)
    vectors = (ones[:, first] * ones[:, second]) @ matrix.T
    largest = max(int(np.abs(vectors - vector).sum(axis=1).max()) for vector in vectors)
    return int(np.abs(vectors).sum(axis=1).max()), largest


@pytest.mark.parametrize("weight", ["1/2", "1", "2", "4"])
@pytest.mark.parametrize(("size", "steps"), [(1, 2), (1, 4), (1, 32), (2, 4), (2, 8), (3, 4)])
def test_the_box_bound_holds_on_every_pair_of_lattice_points(size: int, steps: int, weight: str) -> None:
    if Fraction(steps) < Fraction(weight):
        with pytest.raises(ValueError, match="lattice"):
            minimal_moments(steps, Fraction(weight), columns=size)
        return
    _, largest = changes(size, steps, linear=True, weight=Fraction(weight))
    declared = minimal_moments(steps, Fraction(weight), columns=size)
    assert declared / 2 < 0.9 * declared < largest <= declared
    if (size, weight, steps) in {(1, "2", 4), (1, "2", 32), (1, "1", 4), (1, "4", 32)}:
        assert largest == declared, "the best neighbour is a lattice point"
    assert changes(size, steps, linear=False, weight=Fraction(1))[1] == minimal_products(steps, columns=size)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize(("size", "steps"), [(1, 8), (2, 4), (2, 8), (3, 4), (4, 2)])
def test_the_rotated_bound_is_that_of_enumeration(size: int, steps: int, linear: bool) -> None:
    single, replaced = changes(size, steps, linear=linear, weight=None)
    declared = rotated_moments(steps, columns=size, linear=linear)
    assert single == declared
    assert declared < replaced <= 2 * declared


@pytest.mark.parametrize("weight", ["1/2", "1", "2", "16"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_no_search_on_a_fine_lattice_finds_a_larger_change(size: int, weight: str) -> None:
    """Coordinate search from many starts: it comes close to the bound and never beyond."""
    steps, rng = 1 << 16, np.random.default_rng()
    bound = minimal_moments(steps, Fraction(weight), columns=size)
    first, second = np.triu_indices(size)
    grid = np.rint(np.linspace(-1, 1, 4 * (size + 1) * 16 + 1) * steps)

    def change(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        linear = np.abs(x - y).sum(axis=-1) * (steps / float(Fraction(weight)))
        products = x[..., first] * x[..., second] - y[..., first] * y[..., second]
        return np.asarray(linear + np.abs(products).sum(axis=-1))

    best = 0.0
    for _ in range(12):
        pair = rng.choice(grid, (2, size))
        reached = -1.0
        while change(*pair) > reached:
            reached = float(change(*pair))
            for side, column in itertools.product(range(2), range(size)):
                tried = np.repeat(pair[None], len(grid), axis=0)
                tried[:, side, column] = grid
                pair = tried[np.argmax(change(tried[:, 0], tried[:, 1]))]
        best = max(best, reached)
    assert 0.98 * bound < best <= bound


def test_the_naive_range_sum_would_be_larger_and_the_separate_sum_smaller() -> None:
    """Controls for the enumeration: neither adding up ranges nor taking one component gives the number."""
    steps = 8
    ranges = 2 * steps * steps // 2 + steps**2
    assert minimal_moments(steps, Fraction(2)) < ranges
    assert minimal_moments(steps, Fraction(2)) > steps**2


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_row_that_moves_between_windows_costs_half_in_each(tmp_path: Path, name: str) -> None:
    """Under replace_one a window gains or loses a row: at most half of what its noise is calibrated for."""
    engine = Engine(tmp_path, CASES[name], "replace_one", "window")
    single = int(np.abs(engine.vectors()).sum(axis=1).max())
    assert 2 * single == engine.statistic.l1_sensitivity
    assert engine.statistic.design is not Design.MINIMAL
