"""Published numbers: what a law may have done to noisy ones, in every order, and their likelihoods."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import suffice
from suffice.errors import (
    LawError,
)
from suffice.pipeline.ask.pooling.published_number import read_published
from suffice.pipeline.terms.declaration.declared_law import load_law
from support.adopted_tables import (
    RATE,
    TABLE,
    changed,
    small,
)


def applied(column: dict[str, Any], noisy: float) -> str | None:
    """Do to a noisy number what a law declares; None where it is suppressed. Not the product's code."""
    if "suppressed" in column and noisy < column["suppressed"]["below"]:
        return None
    value = max(noisy, 0.0) if column.get("clamped_at_zero") else noisy
    if "rounded" in column:
        step = column["rounded"]["to"]
        scaled = value / step
        direction, ties = column["rounded"].get("direction", "nearest"), column["rounded"].get("ties", "even")
        if direction == "down":
            scaled = math.floor(scaled)
        elif direction == "up":
            scaled = math.ceil(scaled)
        elif ties == "even":
            scaled = round(scaled)
        elif ties == "up":
            scaled = math.floor(scaled + 0.5)
        else:
            scaled = math.copysign(math.floor(abs(scaled) + 0.5), scaled)
        value = scaled * step
    return f"{value + 0.0:g}"


ROUNDED = [
    {"to": 5},
    {"to": 4},
    {"to": 4, "ties": "up"},
    {"to": 4, "ties": "away_from_zero"},
    {"to": 10, "direction": "down"},
    {"to": 10, "direction": "up"},
]


@pytest.mark.parametrize("rounded", [None, *ROUNDED], ids=str)
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("below", [None, -7, 12])
@pytest.mark.parametrize("law", [{"law": "geometric", "scale": 4}, {"law": "gaussian", "sd": 4}], ids=str)
def test_intervals_hold_exactly_the_noisy_numbers_that_are_published_so(
    rounded: Any, clamped: bool, below: int | None, law: Any
) -> None:
    column: dict[str, Any] = {"noise": law, "clamped_at_zero": clamped}
    if rounded is not None:
        column["rounded"] = rounded
    if below is not None:
        column["suppressed"] = {"below": below, "shown_as": "empty"}
    declared = load_law(changed(columns={"views": column})).columns["views"]
    # Whole numbers for whole noise; halves apart from ends of intervals otherwise.
    noisy = np.arange(-60.0, 61.0) if law["law"] == "geometric" else np.arange(-60.0, 60.0, 0.5) + 0.25
    shown = [applied(column, value) for value in noisy.tolist()]
    for text in sorted(set(shown), key=str):
        count = read_published({"views": [text]}, "views", declared, 0).count
        within = (noisy >= count.low) & (noisy <= count.high)
        assert [text == each for each in shown] == within.tolist(), (text, count)


@pytest.mark.parametrize("law", ["laplace", "geometric", "gaussian", "discrete_gaussian"])
def test_chances_of_all_that_can_be_published_add_up_to_one(law: str) -> None:
    spread = {"scale": 3} if law in {"laplace", "geometric"} else {"sd": 3}
    column = {
        "noise": {"law": law, **spread},
        "suppressed": {"below": 2, "shown_as": "empty"},
        "rounded": {"to": 4, "ties": "up"},
    }
    declared = load_law(changed(columns={"views": column})).columns["views"]
    texts = [None, *(str(4 * multiple) for multiple in range(1, 60))]
    # Noisy numbers from 2 on are rounded to 4 or more, with ties up.
    counts = [read_published({"views": [text]}, "views", declared, 0).count for text in texts]
    total = sum(np.exp(count.log_likelihood(np.array([0.0, 7.0, 30.0]))) for count in counts)

    assert total == pytest.approx(1.0, abs=1e-12)


def in_order(column: dict[str, Any], order: tuple[str, ...], count: int, noise: float) -> str | None:
    """Do to a count what a law declares, step by step; None where it is suppressed."""
    value = float(count)
    for step in order:
        if step == "noise":
            value += noise
        elif step == "threshold" and value < column["suppressed"]["below"]:
            return None
        elif step == "clamp":
            value = max(value, 0.0)
        elif step == "round":
            value = float(applied({"rounded": column["rounded"]}, value) or 0.0)
    return f"{value + 0.0:g}"


ORDERS = [
    order
    for size in (1, 2, 3)
    for steps in itertools.combinations(("threshold", "clamp", "round"), size)
    for order in itertools.permutations(("noise", *steps))
]


@pytest.mark.parametrize(
    "rounded",
    # The last two turn the threshold, and what is just above it, into different multiples.
    [
        {"to": 4},
        {"to": 3, "ties": "up"},
        {"to": 5, "direction": "up"},
        {"to": 3, "direction": "up"},
        {"to": 12},
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_likelihoods_are_right_for_every_order(order: tuple[str, ...], rounded: Any) -> None:
    """Against the noise one by one: of every count the chance of every text that can be published."""
    column: dict[str, Any] = {"noise": {"law": "geometric", "scale": 2}, "order": list(order)}
    if "threshold" in order:
        column["suppressed"] = {"below": 6, "shown_as": "empty"}
    if "clamp" in order:
        column["clamped_at_zero"] = True
    if "round" in order:
        column["rounded"] = rounded
    declared = load_law(changed(columns={"views": column})).columns["views"]
    noise = np.arange(-90, 91)
    chance = np.tanh(0.25) * np.exp(-np.abs(noise) / 2.0)
    counts = np.arange(30)
    exact: dict[str | None, Any] = {}
    for count in counts.tolist():
        for each, weight in zip(noise.tolist(), chance.tolist(), strict=True):
            text = in_order(column, order, count, each)
            exact.setdefault(text, np.zeros(len(counts)))[count] += weight
    for text in [each for each, chances in exact.items() if chances.max() > 1e-6]:
        published = read_published({"views": [text]}, "views", declared, 0).count
        likelihood = np.exp(published.log_likelihood(counts.astype(float)))
        assert likelihood == pytest.approx(exact[text], abs=1e-9), text
        first, last = published.window()
        assert np.all(exact[text][(counts < first) | (counts > last)] < 1e-14)
        assert likelihood[min(int(published.nearest), 29)] >= (1.0 - 1e-9) * likelihood.max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "draws"),
    [
        (("round", "noise", "threshold"), 200_000),
        (("noise", "round", "threshold", "clamp"), 200_000),
        (("threshold", "noise", "clamp", "round"), 200_000),
        (("noise", "clamp", "threshold", "round"), 200_000),
    ],
)
def test_rates_are_right_for_every_order(order: tuple[str, ...], draws: int) -> None:
    """Against rates drawn from the prior whose counts are published so; five standard errors of a mean."""
    column: dict[str, Any] = {
        "noise": {"law": "geometric", "scale": 2},
        "suppressed": {"below": 6, "shown_as": "empty"},
        "clamped_at_zero": "clamp" in order,
        "order": list(order),
    }
    if "round" in order:
        column["rounded"] = {"to": 4, "ties": "up"}
    rng = np.random.default_rng(8)
    rate = rng.gamma(2.0, 6.0, draws)
    counts = rng.poisson(rate)
    noise = rng.geometric(1 - math.exp(-0.5), draws) - rng.geometric(1 - math.exp(-0.5), draws)
    texts = [
        in_order(column, order, count, each)
        for count, each in zip(counts.tolist(), noise.tolist(), strict=True)
    ]
    for text in (None, "8", "12"):
        like = rate[[each == text for each in texts]]
        if not len(like):
            continue
        posterior = small({"c": [text]}, {**RATE, "upper": 1000}, column).posterior("Gamma(2, 0.16666666667)")
        assert abs(posterior.mean()[0] - like.mean()) < 5.0 * like.std() / math.sqrt(len(like))
        assert posterior.sd()[0] == pytest.approx(like.std(), rel=0.05)


def test_the_order_is_written_down_and_shown() -> None:
    column = {
        "noise": {"law": "geometric", "scale": 4},
        "suppressed": {"below": 20, "shown_as": "absent"},
        "rounded": {"to": 1},
    }
    stated = changed(columns={"views": column | {"order": ["noise", "round", "threshold"]}})
    assert load_law(changed(columns={"views": column})).content()["columns"]["views"]["order"] == [
        "noise",
        "threshold",
        "round",
    ]
    said = str(suffice.adopt(TABLE, stated))
    assert said.index("scale 4") < said.index("rounded to 1") < said.index("suppressed below 20")
    for order in (["noise"], ["noise", "round", "threshold", "clamp"], ["noise", "noise", "round"]):
        with pytest.raises(LawError, match="order must have each of noise, threshold, round once"):
            load_law(changed(columns={"views": column | {"order": order}}))
