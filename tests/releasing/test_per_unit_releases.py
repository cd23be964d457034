"""Columns of units, as `per_unit` states them, from files that grow to amended releases, and calibrated."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.releasing.rehearsal import rehearse
from support.making import make_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release
    from support.making import Workspace

UNITS, KEPT, STEPS = 60, 2, 3
EPSILON = "600"
"""A hundred a statistic: noise above 4.5, of any of the sums here, has a chance below 1e-7."""
SPEC: dict[str, Any] = {
    "privacy": {
        "epsilon": EPSILON,
        "neighboring": "add_or_remove_one",
        "unit": {"column": "who", "max_rows": str(KEPT)},
    },
    "window": {"column": "day", "every": "month", "amend": ["7 days"]},
    "groups": None,
    "where": {"column": "amount", "above": "0"},
    "per_unit": {
        "visits": "count",
        "spend": {"sum": "amount", "lower": "0", "upper": "4", "total": {"lower": "0", "upper": "7"}},
        "first": {"min": "day", "type": "date"},
        "last": {"max": "place"},
    },
    "derived": {
        "is_early": {"column": "first", "below": "2013-01-10"},
        "often": {"column": "visits", "bins": ["1", "3", "100"]},
    },
    "statistics": {
        "visits": {"family": "poisson", "column": "visits", "upper": "8", "rows_of": "units"},
        "spend": {
            "family": "normal",
            "column": "spend",
            "lower": "0",
            "upper": "8",
            "lattice_bits": "3",
            "rows_of": "units",
            "where": {"column": "last", "at_least": "2"},
        },
        "early": {"family": "bernoulli", "column": "is_early", "rows_of": "units"},
        "often": {"family": "categorical", "column": "often", "categories": ["1", "3"], "rows_of": "units"},
        "steps": {
            "family": "markov_chain",
            "column": "kind",
            "categories": ["a", "b"],
            "order": "place",
            "transitions": str(STEPS),
        },
        "kept": {"family": "bernoulli", "column": "is_a"},
    },
}
SPEC["derived"]["is_a"] = {"column": "kind", "equals": "a"}


def rows(rng: np.random.Generator, n_rows: int, day: str) -> pa.Table:
    """Return rows of two weeks from a day on; a fifth of them do not enter."""
    return pa.table(
        {
            "who": rng.integers(0, UNITS, n_rows),
            "day": np.datetime64(day) + rng.integers(0, 14, n_rows),
            "amount": rng.integers(-1, 6, n_rows).astype(np.float64),
            "place": rng.permutation(n_rows),
            "kind": rng.choice(["a", "b"], n_rows),
        }
    )


def expected(table: pa.Table) -> dict[tuple[str, str], float]:
    """Return what plain Python sums, unit by unit, of all rows that enter."""
    of: dict[int, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        if row["amount"] > 0:
            of.setdefault(row["who"], []).append(row)
    spend = {
        unit: min(sum(min(row["amount"], 4) for row in its), 7)
        for unit, its in of.items()
        if max(row["place"] for row in its) >= 2
    }
    visits = [len(its) for its in of.values()]
    first = [min(row["day"] for row in its) for its in of.values()]
    return {
        ("visits", "n"): len(of),
        ("visits", "total"): sum(min(count, 8) for count in visits),
        ("spend", "n"): len(spend),
        ("spend", "total"): sum(spend.values()),
        ("early", "total"): sum(day.isoformat() < "2013-01-10" for day in first),
        ("often", "1"): sum(count < 3 for count in visits),
        ("often", "3"): sum(count >= 3 for count in visits),
        ("steps", "count"): sum(min(count - 1, STEPS) for count in visits),
        ("kept", "n"): sum(min(count, KEPT) for count in visits),
    }


def released(release: Release) -> dict[tuple[str, str], float]:
    """Return the same sums as they were released."""
    sums: dict[tuple[str, str], float] = {}
    for name in ("visits", "spend", "early", "often", "steps", "kept"):
        for row in release.table(name):
            key = (name, row["category"] if name == "often" else row["quantity"])
            sums[key] = sums.get(key, 0) + row["estimate"]
    return {(name, str(key)): value for (name, key), value in sums.items()}


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    table = rows(np.random.default_rng(7), 200, "2013-01-03")
    return make_workspace(tmp_path, granted="10000", table=table, unit="column:who")


def test_units_are_amended_as_rows_come_late(place: Workspace) -> None:
    """A late row changes its unit's values, and adds no unit to those that are there."""
    spec = place.spec(**SPEC)
    where: dict[str, Any] = {"store": place.store, "ledger": place.ledger}
    early = pa.concat_tables([pq.read_table(path) for path in sorted(place.data.glob("*.parquet"))])
    suffice.backfill(spec, "2013-01", "2013-01", **where, as_of="2013-02-01T00:00Z")
    late = rows(np.random.default_rng(8), 80, "2013-01-10")
    pq.write_table(late, place.data / "late.parquet")
    done = suffice.backfill(spec, "2013-01", "2013-01", **where, as_of="2013-02-08T00:00Z", by_calendar=True)
    assert done.named("published") == ("2013-01.1",)
    for edition, table in (("2013-01.0", early), ("2013-01.1", pa.concat_tables([early, late]))):
        release = suffice.open_release(f"flights@{edition}", store=place.store)
        estimates = released(release)
        for key, value in expected(table).items():
            assert estimates[key] == pytest.approx(value, abs=4.5), (edition, key)
    assert expected(early) != expected(pa.concat_tables([early, late])), "a control"
    assert place.account().spent == 2 * int(EPSILON)


def test_a_rehearsal_reads_generated_rows_of_units(place: Workspace) -> None:
    rehearsal = rehearse(place.spec(**SPEC), window="2013-01", store=place.store, ledger=place.ledger)
    assert rehearsal.failure is None
    assert "4096 generated rows" in str(rehearsal.stages)
    assert place.account().spent == 0


@pytest.mark.slow
def test_calibration_takes_columns_of_units(place: Workspace) -> None:
    """Units count as records there: each family's posterior is tested where it is."""
    spec = place.spec(**{**SPEC, "privacy": {**SPEC["privacy"], "epsilon": "12"}})
    release = suffice.release(spec, place.store, place.ledger, window="2013-01")
    for statistic in ("spend", "early", "often"):
        result = suffice.calibrate(release, statistic, simulations=4)
        assert (result.simulations, result.loss.epsilon) == (4, Fraction(2))
