"""Bins that are judged by the number of rows that a spec states."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from suffice.pipeline.spec.spec import load_spec

WARNED = "x: warning: "
ROWS = 6400
EPSILON = 0.5


def judged(bins: Any, assume: dict[str, Any] | None, **entry: Any) -> str:
    stated = {
        "name": "waits",
        "dataset": "waits",
        "privacy": {"epsilon": str(EPSILON), "neighboring": "add_or_remove_one"},
        "statistics": {
            "x": {"family": "histogram", "column": "x", "lower": "0", "upper": "100", "bins": bins, **entry}
        },
    }
    plan = load_spec(stated if assume is None else {**stated, "assume": assume}).plan()
    lines = [line for line in plan.judged if line.startswith(WARNED)]
    said = " ".join(str(plan).split())
    assert all(line in said for line in lines)
    return lines[0] if lines else ""


def test_without_rows_bins_are_judged_by_their_width() -> None:
    assert "25 is more than a hundredth of the range" in judged("4", None)
    assert judged("128", None) == ""
    assert judged({"body": ["0", "10"], "equal": "20", "tail": "8"}, None) == ""


@pytest.mark.parametrize(
    ("rows", "bins", "is_warned"), [(ROWS, 16, True), (ROWS, 64, False), (100, 16, False)]
)
def test_of_known_rows_bins_are_too_wide_where_they_hide_more_than_noise_does(
    rows: int, bins: int, is_warned: bool
) -> None:
    """The rank of the median within a bin, and below it, by simulation of the release itself."""
    rng, times = np.random.default_rng(1), 20_000
    line = judged(str(bins), {"rows": str(rows)})
    assert bool(line) == is_warned
    # what a bin hides: where in it a row is
    hidden = np.std(rng.uniform(0.0, rows / bins, times))
    # what is known of the rank: a binomial number of rows below the median, and the noise of half of the bins
    q = math.exp(-EPSILON)
    noise = rng.geometric(1.0 - q, (times, bins // 2)) - rng.geometric(1.0 - q, (times, bins // 2))
    known = np.std(rng.binomial(rows, 0.5, times) + noise.sum(axis=1))
    assert (hidden > known) == is_warned
    if is_warned:
        stated = re.findall(r"\((\d+)", line)
        assert [float(number) for number in stated] == pytest.approx([hidden, known], rel=0.05)
    assert bool(judged(str(bins), {"statistics": {"x": {"n": str(rows)}}})) == is_warned


def test_typical_shares_say_which_bin_is_the_fullest() -> None:
    """Of the value of an atom nothing is hidden, however many rows have it."""
    crowded, rest = "0.9", 0.1 / 63

    def assume(shares: list[Any]) -> dict[str, Any]:
        typical = {"probability": [str(share) for share in shares]}
        return {"rows": str(ROWS), "statistics": {"x": {"typical": typical}}}

    assert "its fullest bin holds 5,760" in judged("64", assume([crowded, *[rest] * 63]))
    with_atom = ["0.9", *[0.1 / 64] * 64]
    assert judged("64", assume(with_atom), atoms=["0"]) == ""
