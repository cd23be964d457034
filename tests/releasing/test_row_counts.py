"""Windows whose released numbers of rows are far from their neighbours'."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from suffice.releasing.backfill import backfill
from suffice.releasing.gap_report import status
from suffice.releasing.row_counts import FALSE_ALARM, NoisyRows, Rows, compared
from support.making import make_workspace
from support.running import Runner, spec_file

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SCALES = [(0.7, (1.0,), 1), (4.0, (1.0, 1.0), 3), (2.5, (1.0, 0.5), 40)]


def noise_law(scale: float, weights: tuple[float, ...], n_cells: int) -> NDArray[np.float64]:
    """Return the probabilities of sums of noise in half units, by plain convolution."""
    q = math.exp(-1.0 / scale)
    total = np.ones(1)
    for weight in weights:
        step = round(2 * weight)
        reach = math.ceil(scale * 40)
        single = np.zeros(2 * reach * step + 1)
        single[::step] = (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))
        for _ in range(n_cells):
            total = np.convolve(total, single)
    return total


@pytest.mark.parametrize(("scale", "weights", "n_cells"), SCALES)
@pytest.mark.parametrize("chance", [1e-2, 1e-7])
def test_noise_leaves_its_reach_with_at_most_the_chance(
    scale: float, weights: tuple[float, ...], n_cells: int, chance: float
) -> None:
    law = noise_law(scale, weights, n_cells)
    ends = np.arange(len(law)) / 2 - (len(law) - 1) / 4
    reach = NoisyRows(value=0.0, scale=scale, weights=weights, n_cells=n_cells).reach(chance)
    assert law[ends > reach].sum() <= chance
    assert law[ends > 0.6 * reach].sum() > chance, "a reach that is not far too long"


def counts(*values: float) -> list[NoisyRows]:
    return [NoisyRows(value=value, scale=8.0, weights=(1.0, 1.0), n_cells=1) for value in values]


def test_a_window_far_from_its_neighbours_is_named_and_they_are_not() -> None:
    usual = [1000.0, 900.0, 1100.0, 1200.0]
    assert compared(counts(*usual, 5.0, *usual))[4] is Rows.FEW
    assert compared(counts(*usual, 9000.0, *usual))[4] is Rows.MANY
    assert compared(counts(*usual, 550.0, *usual)) == [Rows.ALIKE] * 9
    assert {*compared(counts(*usual, 5.0, *usual))} == {Rows.FEW, Rows.ALIKE}


def test_without_numbers_or_neighbours_nothing_is_said() -> None:
    assert compared([]) == []
    assert compared(counts(1000.0, 5.0)) == [None, None]
    assert compared([*counts(1000.0), None, *counts(900.0, 950.0)]) == [Rows.ALIKE, None, *[Rows.ALIKE] * 2]


def test_what_noise_may_explain_is_not_named() -> None:
    """At the very edge, half of the neighbours' rows, a verdict needs noises beyond the reach."""
    reach = counts(0.0)[0].reach(FALSE_ALARM / 7)
    edge = (1000.0 - reach) / 2 - reach
    usual = [1000.0] * 3
    assert compared(counts(*usual, edge + 1e-6, *usual))[3] is Rows.ALIKE
    assert compared(counts(*usual, edge - 1e-6, *usual))[3] is Rows.FEW


@pytest.mark.slow
def test_status_names_a_month_that_is_nearly_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days = [
        dt.date(2013, month, 1 + row % 28)
        for month, rows in ((1, 3000), (2, 2800), (3, 3), (4, 3100), (5, 2900))
        for row in range(rows)
    ]
    late = [row % 4 == 0 for row in range(len(days))]
    workspace = make_workspace(tmp_path, table=pa.table({"day": days, "late": late}))
    terms = {
        "statistics": {"late": {"family": "bernoulli", "column": "late"}},
        "groups": None,
        "window": {"column": "day", "every": "month"},
    }
    as_of = "2013-06-02T00:00:00Z"
    where: dict[str, Any] = {"store": workspace.store, "ledger": workspace.ledger}
    backfill(workspace.spec(**terms), "2013-01", "2013-05", as_of=as_of, **where)
    report = status(workspace.spec(**terms), as_of=as_of, **where)
    assert [window.rows for window in report.windows] == [
        *[Rows.ALIKE] * 2,
        Rows.FEW,
        *[Rows.ALIKE] * 2,
    ]
    assert report.ok, "it acts on nothing"
    words = ("status", spec_file(workspace, **terms), "--as-of", as_of)
    options = ("--store", workspace.store, "--ledger", workspace.ledger)
    text = Runner(capsys).text(*words, *options)
    assert "look at 2013-03: less than half of their neighbours' rows" in text
    assert "1e-06" in text
