"""Real units, where the data are there: customers with up to 7,983 rows, crashes with up to 158 persons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.shuffle import bounded_sums
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.spec.plan import compile_plan
from support.hostile import categorical, make_spec, normal, poisson
from support.real_data import REAL_DATA
from support.units import KEY, partitions_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec

RETAIL = REAL_DATA / "online_retail" / "online_retail.parquet"
PERSONS = REAL_DATA / "fars" / "person_1982_2012.parquet"
MAX_ROWS = 20
COUNTRIES = ["United Kingdom", "Germany", "France", "EIRE", "Spain", "Cyprus"]
FIRST_CUSTOMER, LAST_CUSTOMER = 12346, 18287
LARGEST = 17841

retail = pytest.mark.skipif(not RETAIL.exists(), reason="online_retail is not there")
fars = pytest.mark.skipif(not PERSONS.exists(), reason="fars is not there")


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


def by(column: str, max_rows: int, **others: str) -> dict[str, Any]:
    unit = {"column": column, "max_rows": str(max_rows), **others}
    return {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}


def totals(spec: Spec, cluster: Cluster) -> dict[str, np.ndarray[Any, Any]]:
    """Return the components' totals of every statistic, given one key."""
    exact = to_python(bounded_sums(chunk_job(spec), partitions_of(spec), cluster, KEY).open_totals())
    return {
        plan.name: FAMILIES[plan.family].totals(spec.statistics[plan.name], plan.design, exact[plan.name])
        for plan in compile_plan(spec).statistics
    }


def sales(source: Path, **unit: str) -> Spec:
    return make_spec(
        source,
        {
            "quantity": normal("Quantity", "-100", "100"),
            "price": poisson("UnitPrice", "20"),
            "country": categorical("Country", COUNTRIES, other="true"),
        },
        groups={"Country": COUNTRIES},
        privacy=by("CustomerID", MAX_ROWS, **unit),
    )


@retail
@pytest.mark.parametrize("nulls", ["drop", "own_unit"])
def test_every_customer_keeps_as_many_rows_as_it_may(threads: Cluster, nulls: str) -> None:
    spec = make_spec(
        RETAIL,
        {"price": poisson("UnitPrice", "20")},
        groups={"CustomerID": {"range": [str(FIRST_CUSTOMER), str(LAST_CUSTOMER)]}},
        privacy=by("CustomerID", MAX_ROWS, nulls=nulls),
    )
    kept = to_python(bounded_sums(chunk_job(spec), partitions_of(spec), threads, KEY).open_totals())["price"][
        :, 0
    ]
    customers = pc.drop_null(pq.read_table(RETAIL, columns=["CustomerID"])["CustomerID"]).to_numpy()
    held = np.bincount(customers - FIRST_CUSTOMER, minlength=LAST_CUSTOMER - FIRST_CUSTOMER + 1)
    assert held[LARGEST - FIRST_CUSTOMER] == held.max() == 7983
    assert kept.tolist() == np.minimum(held, MAX_ROWS).tolist()


@retail
def test_rows_without_a_customer_follow_the_policy(threads: Cluster) -> None:
    dropping, separate = (totals(sales(RETAIL, nulls=nulls), threads) for nulls in ("drop", "own_unit"))
    table = pq.read_table(RETAIL, columns=["CustomerID", "Country"])
    without = table.filter(pc.is_null(table["CustomerID"]))
    expected = [pc.sum(pc.equal(without["Country"], country)).as_py() for country in COUNTRIES]
    assert sum(expected) > 130_000
    assert (separate["country"] - dropping["country"]).sum(axis=1).tolist() == expected


@retail
def test_removing_one_customer_moves_no_cell_beyond_the_bound(tmp_path: Path, threads: Cluster) -> None:
    table = pq.read_table(RETAIL, columns=["CustomerID", "Country", "Quantity", "UnitPrice"])
    spec = sales(RETAIL)
    declared = {plan.name: plan.l1_sensitivity for plan in compile_plan(spec).statistics}
    everyone = totals(spec, threads)
    positions = pc.value_counts(table.group_by(["CustomerID", "Country"]).aggregate([])["CustomerID"])
    in_two = [
        position["values"]
        for position in positions.to_pylist()
        if position["counts"] > 1 and position["values"]
    ]
    assert len(in_two) == 8
    for customer in (LARGEST, *in_two[:2]):
        rest = table.filter(pc.fill_null(pc.not_equal(table["CustomerID"], customer), True))  # noqa: FBT003
        directory = tmp_path / str(customer)
        directory.mkdir()
        pq.write_table(rest, directory / "rest.parquet", row_group_size=50_000)
        others = totals(sales(directory), threads)
        for name, total in everyone.items():
            moved = total - others[name]
            assert moved.min() >= 0, "nobody else's rows are touched"
            assert moved.sum() <= declared[name]
        assert (everyone["country"] - others["country"]).sum() <= MAX_ROWS
    largest = everyone["country"] - totals(sales(tmp_path / str(LARGEST)), threads)["country"]
    assert largest.sum() == MAX_ROWS


@fars
def test_a_crash_is_the_unit_of_its_persons(tmp_path: Path, threads: Cluster) -> None:
    years = [2008, 2009, 2010]
    table = pq.read_table(PERSONS, columns=["YEAR", "ST_CASE", "A_PERINJ", "A_PTYPE"])
    table = table.filter(pc.is_in(table["YEAR"], pa.array(years, pa.int16())))
    crash = pc.add(pc.multiply(table["YEAR"].cast(pa.int64()), 10**6), table["ST_CASE"].cast(pa.int64()))
    table = table.append_column("crash", crash)
    persons = pc.value_counts(crash)
    held = persons.field("counts").to_numpy()
    largest = persons.field("values")[int(held.argmax())].as_py()
    assert held.max() > 50
    most = 3
    by_unit = {}
    for name, rows in (("all", table), ("rest", table.filter(pc.not_equal(crash, largest)))):
        directory = tmp_path / name
        directory.mkdir()
        rng = np.random.default_rng(len(rows))
        shuffled = rows.take(pa.array(rng.permutation(len(rows))))
        pq.write_table(shuffled, directory / "persons.parquet", row_group_size=20_000)
        spec = make_spec(
            directory,
            {"injury": categorical("A_PERINJ", ["1", "6"], other="true")},
            groups={"YEAR": {"range": ["2008", "2010"]}, "A_PTYPE": {"range": ["1", "9"]}},
            privacy=by("crash", most),
        )
        by_unit[name] = totals(spec, threads)["injury"]
    assert by_unit["all"].sum() == np.minimum(held, most).sum()
    moved = by_unit["all"] - by_unit["rest"]
    assert moved.min() >= 0
    assert moved.sum() == most == compile_plan(spec).statistics[0].l1_sensitivity
