"""Products of what units add to cells: against plain Python, however the rows are laid out and cut."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import most_rows, totals_of
from suffice.pipeline.rows.chunk.accumulators import UnitAccumulator, UnitRows
from suffice.pipeline.rows.chunk.exact_sums import LIMB_MASK, to_python, zero_table
from suffice.pipeline.rows.chunk.kernels import NOTHING
from suffice.pipeline.rows.chunk.partition import accumulator, chunk_job
from suffice.pipeline.spec.plan import compile_plan, measures
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.measure import UnitProducts
from support.record_vectors import squared_change
from support.unit_engine import MAX_ROWS, WITHIN_UNITS, UnitEngine, farthest
from support.units import KEY, OTHER_KEY, by_customer, partitions_of, sum_tasks, write_row_groups

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

BITS = 3
STATISTICS: dict[str, dict[str, str]] = {
    "flag": {"family": "bernoulli", "column": "flag", "within_unit": "true"},
    "value": {
        "family": "normal",
        "column": "value",
        "lower": "-1",
        "upper": "1",
        "lattice_bits": str(BITS),
        "within_unit": "true",
    },
}
GROUPS = ["a", "b", "c"]


def make_spec(directory: Path, max_rows: int, **unit: str) -> Spec:
    return load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": str(directory)},
            "privacy": {
                "epsilon": "1",
                "neighboring": "add_or_remove_one",
                "unit": by_customer(max_rows, **unit),
            },
            "groups": {"g": GROUPS},
            "statistics": STATISTICS,
        }
    )


def naive(rows: list[dict[str, Any]], *, own_units: bool) -> dict[str, list[list[int]]]:
    """Return the components of rows and of units, from their definitions, rows unweighted."""
    largest = 1 << BITS
    parts: dict[str, dict[tuple[Any, int], list[tuple[int, int]]]] = {
        name: defaultdict(list) for name in STATISTICS
    }
    for number, row in enumerate(rows):
        unit = row["u"] if row["u"] is not None else (number,)
        if row["g"] not in GROUPS or (row["u"] is None and not own_units):
            continue
        where = (unit, GROUPS.index(row["g"]))
        if row["flag"] is not None:
            parts["flag"][where].append((1 - row["flag"], row["flag"]))
        if row["value"] is not None:
            step = round(max(-1.0, min(1.0, row["value"])) * largest)
            parts["value"][where].append((largest - step, largest + step))
    by_unit = {}
    for name, units in parts.items():
        cells = [[0] * (5 if name == "flag" else 6) for _ in GROUPS]
        for (_, cell), of_rows in units.items():
            first, last = (sum(part[side] for part in of_rows) for side in (0, 1))
            squares = [(f * f, 2 * f * s, s * s) for f, s in of_rows]
            by_row = list(of_rows) if name == "flag" else squares
            added = [sum(column) for column in zip(*by_row, strict=True)]
            for position, value in enumerate([*added, first * first, 2 * first * last, last * last]):
                cells[cell][position] += value
        by_unit[name] = cells
    return by_unit


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "u": st.sampled_from(["p", "q", "r", None]),
            "g": st.sampled_from([*GROUPS, "unknown"]),
            "flag": st.sampled_from([0, 1, None]),
            "value": st.sampled_from([-2.0, -1.0, -0.25, 0.5, 1.0, None]),
        }
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS,
    nulls=st.sampled_from(["drop", "own_unit"]),
    max_rows=st.sampled_from([2, 40]),
    random=st.randoms(use_true_random=False),
    n_buckets=st.integers(1, 3),
)
def test_sums_are_those_of_plain_python(
    tmp_path: Path, rows: list[dict[str, Any]], nulls: str, max_rows: int, random: Any, n_buckets: int
) -> None:
    """With nothing cut they are its very numbers; with a cut they do not depend on the layout."""
    spec = make_spec(tmp_path, max_rows, nulls=nulls)
    plan, job = compile_plan(spec), chunk_job(spec)
    totals = []
    for _ in range(2):
        table = pa.Table.from_pylist(
            rows,
            schema=pa.schema(
                {"u": pa.string(), "g": pa.string(), "flag": pa.int64(), "value": pa.float64()}.items()
            ),
        )
        left, sizes = len(rows), []
        while left:
            sizes.append(random.randint(1, left))
            left -= sizes[-1]
        write_row_groups(tmp_path, table, sizes)
        exact = to_python(sum_tasks(job, partitions_of(spec), KEY, n_buckets=n_buckets))
        totals.append(
            {
                statistic.name: totals_of(
                    FAMILIES[statistic.family],
                    spec.statistics[statistic.name],
                    statistic,
                    exact[statistic.name],
                ).tolist()
                for statistic in plan.statistics
            }
        )
        random.shuffle(rows)
    assert totals[0] == totals[1]
    if max_rows == 40:
        expected = naive(rows, own_units=nulls == "own_unit")
        for statistic in plan.statistics:
            shared = statistic.within_unit
            assert shared is not None
            weights = [shared.row_weight if position < shared.rows else 1 for position in range(6)]
            weighted = [
                [weight * value for weight, value in zip(weights, cell, strict=False)]
                for cell in expected[statistic.name]
            ]
            assert totals[0][statistic.name] == weighted


def test_products_are_exact_at_their_largest(tmp_path: Path) -> None:
    """A unit of 2^7 rows on the finest lattice, many times over: limbs are carried in time."""
    spec = load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": str(tmp_path)},
            "privacy": {
                "epsilon": "1000",
                "neighboring": "add_or_remove_one",
                "unit": by_customer(2**7),
            },
            "statistics": {"value": {**STATISTICS["value"], "lattice_bits": "24"}},
        }
    )
    measure = measures(spec)["value"]
    assert isinstance(measure, UnitProducts)
    assert most_rows(measure) == 2**7
    adding = accumulator(measure, 1)
    n_units, largest = 40_000, 2**24
    assert n_units * LIMB_MASK > 2**63, "a low limb would wrap without a carry"
    units = np.repeat(np.arange(n_units, dtype=np.int32), 3)
    values = np.full(3 * n_units, -largest, np.int32)
    values[0], values[-1] = NOTHING, 5
    assert isinstance(adding, UnitAccumulator)
    every_row = np.arange(3 * n_units)
    rows = UnitRows(
        units=units,
        n_units=n_units,
        cells=np.zeros(3 * n_units, np.int32),
        ranked=every_row,
        kept=every_row >= 0,
    )
    adding.add_units(rows, [values])
    ends = [(2, -2 * largest), (3, 5 - 2 * largest)]
    every = [*ends, *[(3, -3 * largest)] * (n_units - 2)]
    exact = to_python({"value": adding.table()})["value"][0].tolist()
    assert exact[3:] == [
        sum(k * k for k, _ in every),
        sum(k * x for k, x in every),
        sum(x * x for _, x in every),
    ]
    assert exact[0] == 3 * n_units - 1
    assert zero_table(measure, 1).low.shape == adding.table().low.shape


RELATIONS = ["add_or_remove_one", "replace_one"]


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", WITHIN_UNITS)
def test_no_unit_moves_rows_and_units_further_than_declared(
    tmp_path: Path, name: str, neighboring: str
) -> None:
    engine = UnitEngine(tmp_path, f"{name} within units", neighboring)
    shared = engine.plan.statistics[0].within_unit
    assert shared is not None
    assert shared.row_weight == 4 * MAX_ROWS, "with 2 rows a unit"
    unit_l1 = (4 * MAX_ROWS * MAX_ROWS + MAX_ROWS**2) * shared.unit_total
    assert engine.declared == unit_l1 * (1 if neighboring == "add_or_remove_one" else 2)
    vectors = engine.of_every_unit()
    assert farthest(vectors, neighboring) == engine.declared, "claimed tight"
    assert squared_change(vectors, neighboring) == engine.declared_squared
    units = vectors.reshape(len(vectors), -1)[:, shared.rows :]
    assert farthest(units, "add_or_remove_one") == MAX_ROWS**2 * shared.unit_total


@pytest.mark.slow
def test_cells_share_what_rows_and_units_cost(tmp_path: Path) -> None:
    """A unit's rows may lie in two cells: its products are then smaller than those of one cell."""
    engine = UnitEngine(tmp_path, "normal within units", "add_or_remove_one", "groups", OTHER_KEY)
    vectors = engine.of_every_unit()
    assert farthest(vectors, "add_or_remove_one") == engine.declared
    assert farthest(vectors, "replace_one") == 2 * engine.declared
    assert squared_change(vectors, "add_or_remove_one") == engine.declared_squared
    assert squared_change(vectors, "replace_one") == 2 * engine.declared_squared


@pytest.mark.parametrize(
    ("statistic", "unit", "rule"),
    [
        ({"family": "poisson", "column": "c", "upper": "3"}, by_customer(3), "use one of: bernoulli, normal"),
        (STATISTICS["flag"], "row", "every row is one"),
        ({**STATISTICS["flag"], "rows_of": "units"}, by_customer(3), "leave one of the two out"),
        (STATISTICS["flag"], by_customer(1), "nothing is within a unit"),
        (STATISTICS["value"], by_customer(2**29), "up to max_rows 268435456 only"),
    ],
)
def test_what_has_no_units_within_is_refused(
    tmp_path: Path, statistic: dict[str, str], unit: object, rule: str
) -> None:
    spec = {
        "name": "n",
        "dataset": "d",
        "source": {"parquet": str(tmp_path)},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit},
        "statistics": {"s": {**statistic, "within_unit": "true"}},
    }
    with pytest.raises(SpecError, match=rule):
        load_spec(spec)


def test_saying_no_is_saying_nothing(tmp_path: Path) -> None:
    assert '"within_unit":true' in make_spec(tmp_path, 3).canonical_plan()
    entry = {"family": "bernoulli", "column": "flag"}
    plans = [
        load_spec(
            {
                "name": "n",
                "dataset": "d",
                "source": {"parquet": str(tmp_path)},
                "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
                "statistics": {"s": {**entry, **how}},
            }
        ).plan_hash()
        for how in ({}, {"within_unit": "false"})
    ]
    assert plans[0] == plans[1]


@pytest.mark.parametrize("max_rows", [2, 3, 4, 5, 20, 1000])
def test_rows_and_units_cost_a_quarter_more_at_most(tmp_path: Path, max_rows: int) -> None:
    for statistic in compile_plan(make_spec(tmp_path, max_rows)).statistics:
        shared = statistic.within_unit
        assert shared is not None
        assert 4 * max_rows <= shared.row_weight < 8 * max_rows
        rows = shared.row_weight * max_rows * shared.unit_total
        assert rows < statistic.l1_sensitivity <= 1.25 * rows
