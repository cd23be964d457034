"""Random histories: nobody loses more than is said of a unit, whatever windows its rows lie in."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import pytest

from suffice.pipeline.terms.declaration.domains import Every, period_end, period_label, period_start
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.charge import ChargeRequest, ChargeState
from suffice.storage.ledger.opening import create_ledger
from suffice.storage.ledger.person import PersonView, person_view
from support.losses import pure

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger

FEW, MANY = 6, 300
"""Histories of a normal run, and of an audit."""
GRIDS = [None, ("day", Every.MONTH), ("day", Every.WEEK), ("booked", Every.MONTH), ("day", Every.YEAR)]
FIRST_DAY = dt.date(2012, 11, 20)
DAYS = 600
DATASETS = ("people", "others")
Row = dict[str, dt.date]
"""The dates of a row, by column."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A charge that took epsilon for good, and the rows that enter its release."""

    dataset: str
    column: str | None
    window: str
    epsilon: Fraction

    def has(self, row: Row) -> bool:
        if self.column is None:
            return True
        first, past = _bounds(self.window)
        return first <= row[self.column] < past


@cache
def _bounds(window: str) -> tuple[dt.date, dt.date]:
    start = period_start(window, _every(window))
    return start, dt.date.fromordinal(period_end(start, _every(window)))


def _every(window: str) -> Every:
    return {10: Every.DAY, 8: Every.WEEK, 7: Every.MONTH, 4: Every.YEAR}[len(window)]


def history(ledger: Ledger, number: int, rng: random.Random) -> list[Held]:
    """Charge releases and amendments of several series and accounts; some fail, some stay reserved."""
    held: list[Held] = []
    datasets = [f"{dataset}{number}" for dataset in DATASETS]
    for dataset in datasets:
        ledger.grant(dataset, epsilon=Fraction(10**5), reason="tests")
    for series in range(rng.randint(1, 5)):
        dataset, grid = rng.choice(datasets), rng.choice(GRIDS)
        epsilon = Fraction(rng.randint(1, 3_000_000), 10**6)
        for window in _windows(grid, rng):
            for amendment in range(rng.choice([1, 1, 3]) if grid else 1):
                request = _request(dataset, f"series{number}-{series}", grid, window, amendment, epsilon)
                end = rng.choice(["published", "published", "returned", "spent", "reserved"])
                ended = _ended(ledger, request, "published" if amendment == 0 else end)
                if ended.drew or ended.state is ChargeState.RESERVED:
                    column = grid[0] if grid else None
                    held.append(Held(dataset=dataset, column=column, window=window, epsilon=epsilon))
                if ended.state is not ChargeState.PUBLISHED:
                    break
    return held


def _windows(grid: tuple[str, Every] | None, rng: random.Random) -> list[str]:
    if grid is None:
        return ["all"]
    days = [FIRST_DAY + dt.timedelta(days=rng.randrange(DAYS)) for _ in range(rng.randint(1, 8))]
    return sorted({period_label(day, grid[1]) for day in days})


def _request(
    dataset: str, name: str, grid: tuple[str, Every] | None, window: str, amendment: int, epsilon: Fraction
) -> ChargeRequest:
    terms = {"column": grid[0], "every": str(grid[1]), "time_zone": "UTC"} if grid else None
    plan = json.dumps({"name": name, "window": terms})
    return ChargeRequest(
        dataset=dataset,
        name=name,
        window=window,
        amendment=amendment,
        **pure(epsilon),
        neighboring="add_or_remove_one",
        unit="row",
        grid=f"{grid[0]}:{grid[1]}:UTC" if grid else None,
        source="/data",
        plan_json=plan,
        plan_hash=hashlib.sha256(plan.encode()).hexdigest(),
        store_id="0" * 32,
        store_uri="/releases",
    )


def _ended(ledger: Ledger, request: ChargeRequest, end: str) -> Charge:
    charge = ledger.reserve(request)
    if end == "reserved":
        return charge
    if end == "returned":
        return ledger.abandon(charge, reason="tests")
    charge = ledger.enter_drawing(charge)
    if end == "spent":
        return ledger.abandon(charge, reason="tests")
    return ledger.publish(ledger.stage(charge, b"{}"))


def lost(held: list[Held], rows: list[Row]) -> Fraction:
    """Return what a unit with these rows loses: every release that one of them enters."""
    return sum((each.epsilon for each in held if any(map(each.has, rows))), Fraction(0))


def n_windows(held: list[Held], rows: list[Row]) -> int:
    """Return in how many charged windows a unit has rows, of the grid in which these are most."""
    grids = {(each.column, _every(each.window)) for each in held if each.column is not None}
    counts = [
        len(
            {each.window for each in held if each.column == column and _every(each.window) is every}
            & {each.window for each in held if each.column == column and any(map(each.has, rows))}
        )
        for column, every in grids
    ]
    return max(counts, default=0)


def check(view: PersonView, held: list[Held], rng: random.Random) -> None:
    """Hold what is said against units with rows on any days, drawn and enumerated."""
    loss = view.loss
    for _ in range(30):
        rows = [
            {name: FIRST_DAY + dt.timedelta(days=rng.randrange(DAYS)) for name in ("day", "booked")}
            for _ in range(rng.randint(1, 30))
        ]
        number = max(1, n_windows(held, rows))
        assert lost(held, rows) <= loss.in_windows(number)
        assert lost(held, rows) <= loss.in_every_window
        of_each = sum((lost(held, [row]) for row in rows), Fraction(0))
        assert of_each <= loss.of_rows(len(rows), measure=PrivacyMeasure.EPSILON)
        assert of_each <= loss.of_rows(len(rows), len(rows), measure=PrivacyMeasure.EPSILON) or n_windows(
            held, rows
        ) < len(rows)
    everywhere = [FIRST_DAY + dt.timedelta(days=day) for day in range(-60, DAYS + 60)]
    in_all = [{"day": day, "booked": day} for day in everywhere]
    assert lost(held, in_all) == loss.in_every_window, "it is reached"
    entering = [(each, [row["day"] for row in in_all if each.has(row)]) for each in held]
    worst = Fraction(0)
    for year, month in itertools.product(range(2011, 2015), range(1, 13)):
        first, last = dt.date(year, month, 1), dt.date(year + 1, month, 1)
        in_these = (each for each, days in entering if any(first <= day < last for day in days))
        worst = max(worst, sum((each.epsilon for each in in_these), Fraction(0)))
    assert worst == loss.in_a_year, "the worst twelve months are reached, and no more is said"


def _try(path: Path, histories: int) -> None:
    with create_ledger(f"sqlite:///{path / 'ledger.db'}") as ledger:
        for number in range(histories):
            rng = random.Random(number)  # noqa: S311 - any histories do; a number names one that fails
            held = history(ledger, number, rng)
            for account in ledger.accounts():
                if account.dataset in {f"{dataset}{number}" for dataset in DATASETS}:
                    of_dataset = [each for each in held if each.dataset == account.dataset]
                    check(person_view(ledger, account), of_dataset, rng)


@pytest.mark.slow
def test_nobody_loses_more_than_is_said(tmp_path: Path) -> None:
    _try(tmp_path, FEW)


@pytest.mark.audit
@pytest.mark.timeout(1800)
def test_nobody_loses_more_than_is_said_in_many_histories(tmp_path: Path) -> None:
    _try(tmp_path, MANY)
