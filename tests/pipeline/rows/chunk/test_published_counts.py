"""NIST's excerpt of the American Community Survey 2019: others' exact counts, others' errors at epsilon 1.

NIST published, for four private synthetic data sets of the same ten columns, every column's counts in the
data and in the synthetic data: 306 pairs.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.pipeline.families.categorical import CategoricalSpec
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.spec.plan import compile_plan
from suffice.storage.ledger.opening import create_ledger
from support.hostile import categorical
from support.noise_distribution import distribution_of_sum
from support.real_data import real_data
from support.splits import row_count, splits_of

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

N_RECORDS = 27_253
Published = dict[str, dict[tuple[str, str], tuple[int, int]]]


@pytest.fixture(scope="module")
def nist() -> Path:
    return real_data("nist_acs2019")


@pytest.fixture(scope="module")
def published(nist: Path) -> Published:
    """Counts in the data and in the synthetic data, by run and (column, value)."""
    runs: Published = {}
    with (nist / "reference" / "univariate_counts_all.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["variable"], row["value"]
            runs.setdefault(row["algorithm"], {})[key] = int(row["count_target"]), int(row["count_dp"])
    return runs


@pytest.fixture(scope="module")
def prepared(nist: Path, published: Published, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ten columns, with ages in NIST's intervals, ``N`` where there is no value."""
    rows = pq.read_table(nist / "national2019_raw_strings.parquet")
    intervals = [value for column, value in published["aim"] if column == "AGEP"]
    ages = [next(text for text in intervals if holds(text, int(age))) for age in rows["AGEP"].to_pylist()]
    columns = dict.fromkeys(column for column, _ in published["aim"])
    table = pa.table({column: ages if column == "AGEP" else rows[column] for column in columns})
    path = tmp_path_factory.mktemp("nist") / "persons.parquet"
    pq.write_table(table, path, row_group_size=5_000)
    return path


def holds(interval: str, age: int) -> bool:
    """Tell whether ``(5,9]``, ``[0,5]`` or ``(79,]`` holds an age."""
    lower, upper = interval[1:-1].split(",")
    above = int(lower) <= age if interval[0] == "[" else int(lower) < age
    return above and (not upper or age <= int(upper))


def spec_of(path: Path, published: Published) -> suffice.Spec:
    """One categorical statistic a column, equal shares of epsilon 1."""
    categories: dict[str, list[str]] = {}
    for column, value in published["aim"]:
        categories.setdefault(column, []).append(value)
    statistics: dict[str, dict[str, Any]] = {
        column.lower(): categorical(column, values) for column, values in categories.items()
    }
    return suffice.load_spec(
        {
            "name": "persons",
            "dataset": "persons",
            "source": {"parquet": str(path)},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": statistics,
        }
    )


def test_the_published_counts_are_reproduced_exactly(prepared: Path, published: Published) -> None:
    spec = spec_of(prepared, published)
    splits = splits_of(spec)
    assert row_count(splits) == N_RECORDS
    with open_cluster_for_sums("threads") as cluster:
        sums = to_python(exact_sums(chunk_job(spec), splits, cluster).open_totals())
    ours = {
        (entry.column, str(value)): int(count)
        for name, entry in spec.statistics.items()
        if isinstance(entry, CategoricalSpec)
        for value, count in zip(entry.categories, sums[name][0], strict=True)
    }
    theirs = [(key, exact) for run in published.values() for key, (exact, _) in run.items()]
    assert len(theirs) == 306
    assert [(key, ours[key]) for key, _ in theirs] == theirs


def test_single_years_of_age_add_up_to_the_published_intervals(nist: Path, published: Published) -> None:
    spec = suffice.load_spec(
        {
            "name": "ages",
            "dataset": "persons",
            "source": {"parquet": str(nist / "national2019_typed.parquet")},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "groups": {"SEX": {"range": ["1", "2"]}},
            "statistics": {"age": categorical("AGEP", {"range": ["0", "99"]})},
        }
    )
    with open_cluster_for_sums("threads") as cluster:
        sums = to_python(exact_sums(chunk_job(spec), splits_of(spec), cluster).open_totals())["age"]
    years = sums.sum(axis=0)
    assert sums.sum(axis=1).tolist() == [published["aim"]["SEX", sex][0] for sex in ("1", "2")]
    for (column, value), (exact, _) in published["aim"].items():
        if column == "AGEP":
            assert sum(count for age, count in enumerate(years) if holds(value, age)) == exact


def test_a_release_at_epsilon_1_is_nearer_than_aim_and_mst(
    prepared: Path, published: Published, tmp_path: Path
) -> None:
    """Mean absolute error of the 77 counts; that ours is above two thirds of theirs has chance under 1e-9.

    AIM and MST spend the same epsilon on a model of all ten columns together, from which joint counts follow
    as well: the comparison is of the ten marginals alone.
    """
    spec = spec_of(prepared, published)
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    with create_ledger(ledger) as opened:
        opened.grant("persons", epsilon=spec.privacy.loss.amount, reason="a test")
    release = suffice.release(spec, store=tmp_path / "releases", ledger=ledger)
    exact = np.array([count for count, _ in published["aim"].values()])
    noisy = np.concatenate([statistic.values[0] for statistic in release.statistics.values()])
    assert len(exact) == len(noisy) == 77
    ours = np.abs(noisy - exact).sum()
    errors = {
        run: sum(abs(synthetic - count) for count, synthetic in published[run].values())
        for run in ("aim", "mst")
    }
    assert {run: round(error / 77, 1) for run, error in errors.items()} == {"aim": 27.7, "mst": 27.9}
    bound = 2 * min(errors.values()) // 3
    assert distribution_of_sum(scale_of(spec), 77)[bound + 1 :].sum() <= 1e-9
    assert ours <= bound


def scale_of(spec: suffice.Spec) -> float:
    """The noise scale of every count: ten shares of epsilon 1."""
    plan = compile_plan(spec)
    shares: set[Fraction] = {statistic.loss.amount for statistic in plan.statistics}
    assert {float(share) for share in shares} == {0.1}
    (scale,) = {statistic.scale for statistic in plan.statistics}
    return scale
