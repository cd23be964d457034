"""Populations that cells of a release are drawn from: the model, a world that it is not, and real columns.

Real columns are flights, and, of some families and where their files are at hand, adults and crashes.

A population is a pool of records, and its truth is that of the pool: nothing is drawn from a prior. Each
family has an entry and some five pools in every world, so that truths form a grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from support import honest_people
from support.honest_flights import (
    both_delays,
    by_group,
    cancelled_a_day,
    carriers,
    delayed,
    flight_column,
    late_of_five,
    of_origin,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from support.honest_flights import Column

MODEL, SKEWED, FLIGHTS, PEOPLE = "model", "wrong", "flights", "people"
WORLDS = (MODEL, SKEWED, FLIGHTS, PEOPLE)
SIZE = 50_000
"""Records of a pool that is generated."""
MOST_TRANSITIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Populations:
    """The entry of a statistic and the pools of records that its cells hold, one after the other.

    Attributes
    ----------
    entry : mapping
        Without its family.
    pools : tuple
        A record a row: values; codes, by column where there are several; steps or rows of one unit.
    says : str
        What the records are.
    max_rows : int
        Rows of a unit that enter, of families that need a unit.
    """

    entry: Mapping[str, Any]
    pools: tuple[Any, ...] = field(repr=False)
    says: str
    max_rows: int = 1


def populations(family: str, world: str) -> Populations:
    """Return the populations of a family in a world, one of its ``worlds_of``."""
    if world == PEOPLE:
        entry, pools, says = _PEOPLE[family]
        return Populations(entry=entry, pools=tuple(pools()), says=says)
    rng = np.random.default_rng(0)  # pools are public and fixed: chance is in what is drawn from them
    return _OF[family](world, rng)


def worlds_of(family: str) -> tuple[str, ...]:
    """Return the worlds that there are of a family, on this machine."""
    is_there = family in _PEOPLE and honest_people.are_at_hand()
    return WORLDS if is_there else tuple(world for world in WORLDS if world != PEOPLE)


# One column of numbers.


def _values(
    entry: dict[str, Any],
    model: Callable[[np.random.Generator, float], Column],
    grid: tuple[float, ...],
    wrong: tuple[str, Callable[[np.random.Generator, float], Column]],
    flights: tuple[dict[str, Any], str, Callable[[], list[Column]]],
) -> Callable[[str, np.random.Generator], Populations]:
    def of(world: str, rng: np.random.Generator) -> Populations:
        if world == FLIGHTS:
            other, says, pools = flights
            return Populations(entry=other, pools=tuple(pools()), says=says)
        says, draw = ("the model", model) if world == MODEL else wrong
        return Populations(entry=entry, pools=tuple(draw(rng, truth) for truth in grid), says=says)

    return of


def _lognormal(sd: float) -> Callable[[np.random.Generator, float], Column]:
    return lambda rng, mean: mean * rng.lognormal(-(sd**2) / 2, sd, SIZE)


def _codes(shares: list[list[float]]) -> tuple[Column, ...]:
    return tuple(
        np.repeat(np.arange(len(row)), np.round(np.array(row) / sum(row) * 1_000_000).astype(int))
        for row in shares
    )


def _two_rates(rng: np.random.Generator, mean: float) -> Column:
    """Half of all records with a rate of a quarter of the mean, half with the rest."""
    rate = mean * np.where(rng.random(SIZE) < 0.5, 0.25, 1.75)
    return rng.poisson(rate)


# Codes, tables, units.


def _bernoulli(world: str, _rng: np.random.Generator) -> Populations:
    if world == FLIGHTS:
        pools = tuple(by_group("carrier", "late", five=True))
        return Populations(entry={"column": "x"}, pools=pools, says="late departures, by carrier")
    shares = (0.5, 0.2, 0.05, 0.01) if world == MODEL else (0.002, 0.0005, 0.999)
    return Populations(
        entry={"column": "x"}, pools=_codes([[1 - p, p] for p in shares]), says="shares " + _listed(shares)
    )


def _categorical(world: str, _rng: np.random.Generator) -> Populations:
    if world == FLIGHTS:
        return Populations(
            entry={"column": "x", "categories": carriers()},
            pools=tuple(by_group("origin", "carrier")),
            says="16 carriers, by origin; the rarest 32 of 336,776",
        )
    grid: list[list[float]] = (
        [[1] * 4, [4, 3, 2, 1], [27, 9, 3, 1]]
        if world == MODEL
        else [[0.7, 0.2, 0.05, 0.03, 0.01, 0.008, 0.0019, 0.0001]]
    )
    names = list("abcdefgh")[: len(grid[0])]
    says = "four common categories" if world == MODEL else "eight categories, the rarest .0001"
    return Populations(entry={"column": "x", "categories": names}, pools=_codes(grid), says=says)


def _joint(*names: str) -> Callable[[str, np.random.Generator], dict[str, Column]]:
    """Codes of three dependent yes or no columns: by a chain of causes, or by their parity."""

    def of(world: str, rng: np.random.Generator) -> dict[str, Column]:
        first = (rng.random(SIZE) < (0.4 if world == MODEL else 0.03)).astype(int)
        if world == MODEL:
            second = (rng.random(SIZE) < np.where(first, 0.7, 0.2)).astype(int)
            third = (rng.random(SIZE) < np.where(first, 0.1, 0.5)).astype(int)
        else:  # the third follows both, so that no star holds
            second = (rng.random(SIZE) < np.where(first, 0.6, 0.02)).astype(int)
            third = np.where(rng.random(SIZE) < 0.9, first ^ second, 1 - (first ^ second))
        return dict(zip(names, (first, second, third), strict=True))

    return of


_YES_NO = {"categories": ["0", "1"]}


def _tables(
    entry: dict[str, Any], names: tuple[str, str, str], real: tuple[str, str, str]
) -> Callable[[str, np.random.Generator], Populations]:
    def of(world: str, rng: np.random.Generator) -> Populations:
        if world == FLIGHTS:
            pools = tuple(
                dict(zip(names, columns, strict=True))
                for columns in zip(*(by_group("origin", column) for column in real), strict=True)
            )
            return Populations(entry=entry, pools=pools, says=f"{', '.join(real)}, by origin")
        says = "the model" if world == MODEL else "a rare cause, and a feature that depends on both others"
        return Populations(entry=entry, pools=(_joint(*names)(world, rng),), says=says)

    return of


def _markov_chain(world: str, rng: np.random.Generator) -> Populations:
    entry = {"column": "x", "categories": ["a", "b"], "order": "when", "transitions": str(MOST_TRANSITIONS)}
    if world == FLIGHTS:
        late = flight_column("late")
        order = np.lexsort((flight_column("when"), flight_column("tailnum")))
        plane, late = flight_column("tailnum")[order], late[order]
        starts = np.arange(0, len(late) - MOST_TRANSITIONS, MOST_TRANSITIONS + 1)
        starts = starts[plane[starts] == plane[starts + MOST_TRANSITIONS]]
        walks = late[starts[:, None] + np.arange(MOST_TRANSITIONS + 1)]
        return Populations(entry=entry, pools=(walks,), says="late or not, five flights of one aeroplane")
    leaves = np.tile([0.3, 0.6], (SIZE, 1))
    if world == SKEWED:  # units of two kinds: some move often, some hardly ever
        leaves = np.where(rng.random((SIZE, 1)) < 0.5, [0.05, 0.02], [0.5, 0.7])
    at = rng.integers(0, 2, SIZE)
    steps = [at]
    for _ in range(MOST_TRANSITIONS):
        at = np.where(rng.random(SIZE) < leaves[np.arange(SIZE), at], 1 - at, at)
        steps.append(at)
    says = "the model" if world == MODEL else "units of two kinds"
    return Populations(entry=entry, pools=(np.stack(steps, axis=1),), says=says)


def _histogram(world: str, rng: np.random.Generator) -> Populations:
    """Positions of eight equal bins from 0 to 8."""
    if world == FLIGHTS:
        values = tuple(pool / 90.0 for pool in of_origin("air_time")())
        says = "air time in bins of an hour and a half, by origin"
    elif world == MODEL:
        values, says = tuple(rng.gamma(2.0, scale, SIZE) for scale in (0.5, 1.0, 2.0)), "gamma"
    else:
        tail = rng.lognormal(0.5, 1.0, SIZE)
        values, says = (tail, np.where(rng.random(SIZE) < 0.6, 0.0, tail)), "lognormal, and a spike at 0"
    pools = tuple(np.clip(np.floor(each), 0, 7).astype(int) for each in values)
    return Populations(entry={**_X, "lower": "0", "upper": "8", "bins": "8"}, pools=pools, says=says)


def _rows_per_unit(world: str, rng: np.random.Generator) -> Populations:
    if world == FLIGHTS:
        pool = np.bincount(flight_column("tailnum") * 12 + flight_column("month") - 1)
        pools: tuple[Column, ...] = (pool[pool > 0],)
        says = "flights of an aeroplane in a month"
    elif world == MODEL:
        pools, says = (1 + rng.poisson(3, SIZE), 1 + rng.poisson(9, SIZE)), "1 + Poisson"
    else:
        pools, says = (np.ceil(rng.pareto(1.2, SIZE) + 1e-9).astype(int),), "a long tail"
    return Populations(entry={"upper": "40"}, pools=pools, says=says, max_rows=5)


# Several columns.


def _pair(world: str, rng: np.random.Generator) -> Column:
    """Two columns, the second near half of the first plus 1; of the wrong world lognormal, cut at 6."""
    first = rng.standard_normal(SIZE)
    if world == SKEWED:
        first = rng.lognormal(0, 0.7, SIZE) - 1
    noise = rng.standard_normal(SIZE) if world == MODEL else rng.lognormal(0, 0.7, SIZE) - 1.28
    return np.stack([first, 1 + 0.5 * first + noise], axis=1)


def _multivariate_normal(world: str, rng: np.random.Generator) -> Populations:
    if world == FLIGHTS:
        bounds = {"lower": "-60", "upper": "180"}
        pools = both_delays()
        return Populations(entry={"columns": {"x": bounds, "y": bounds}}, pools=pools, says="both delays")
    bounds = {"lower": "-6", "upper": "6"}
    says = "the model" if world == MODEL else "lognormal columns"
    return Populations(entry={"columns": {"x": bounds, "y": bounds}}, pools=(_pair(world, rng),), says=says)


def _linear_regression(world: str, rng: np.random.Generator) -> Populations:
    bounds = {"lower": "-6", "upper": "6"}
    pools: tuple[Column, ...] = (_pair(world, rng),)
    says = "the model" if world == MODEL else "lognormal predictor and residuals"
    if world == FLIGHTS:
        bounds, pools = {"lower": "-60", "upper": "180"}, both_delays()
        says = "arrival delay on departure delay, by origin"
    return Populations(entry={"outcome": {"y": bounds}, "predictors": {"x": bounds}}, pools=pools, says=says)


def _listed(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


_X = {"column": "x"}
_WAITS = ({**_X, "upper": "180"}, "delays above 0, bound 180", delayed())
_COUNTS_A_DAY = ({**_X, "upper": "40"}, "cancelled flights of a carrier a day", cancelled_a_day)

_OF: dict[str, Callable[[str, np.random.Generator], Populations]] = {
    "bernoulli": _bernoulli,
    "categorical": _categorical,
    "contingency": _tables(
        {"columns": {"a": _YES_NO, "b": _YES_NO}}, ("a", "b", "c"), ("late", "evening", "long")
    ),
    "naive_bayes": _tables(
        {"outcome": {"y": _YES_NO}, "features": {"a": _YES_NO, "b": _YES_NO}},
        ("y", "a", "b"),
        ("late", "evening", "long"),
    ),
    "bayesian_network": _tables(
        {"nodes": {"a": _YES_NO, "b": {**_YES_NO, "parents": ["a"]}, "c": {**_YES_NO, "parents": ["a"]}}},
        ("a", "b", "c"),
        ("late", "evening", "long"),
    ),
    "markov_chain": _markov_chain,
    "rows_per_unit": _rows_per_unit,
    "histogram": _histogram,
    "binomial": _values(
        {**_X, "trials": "5"},
        lambda rng, share: rng.binomial(5, share, SIZE),
        (0.5, 0.2, 0.05, 0.01),
        ("beta-binomial", lambda rng, share: rng.binomial(5, rng.beta(2 * share, 2 - 2 * share, SIZE))),
        ({**_X, "trials": "5"}, "late flights of five of one aeroplane", late_of_five),
    ),
    "poisson": _values(
        {**_X, "upper": "40"},
        lambda rng, rate: rng.poisson(rate, SIZE),
        (0.1, 1.0, 4.0, 15.0),
        ("two rates", _two_rates),
        _COUNTS_A_DAY,
    ),
    "geometric": _values(
        {**_X, "upper": "40"},
        lambda rng, mean: rng.geometric(1 / (1 + mean), SIZE) - 1,
        (0.1, 1.0, 4.0, 10.0),
        ("two rates", _two_rates),
        _COUNTS_A_DAY,
    ),
    "negative_binomial": _values(
        {**_X, "successes": "2.5", "upper": "40"},
        lambda rng, mean: rng.negative_binomial(2.5, 2.5 / (2.5 + mean), SIZE),
        (0.1, 1.0, 4.0, 12.0),
        ("two rates", _two_rates),
        ({**_X, "successes": "2.5", "upper": "40"}, *_COUNTS_A_DAY[1:]),
    ),
    "exponential": _values(
        {**_X, "upper": "100"},
        lambda rng, mean: rng.exponential(mean, SIZE),
        (1.0, 3.0, 10.0, 20.0, 33.0),
        ("lognormal, sd of logarithms 1.2", _lognormal(1.2)),
        _WAITS,
    ),
    "gamma": _values(
        {**_X, "shape": "2", "upper": "100"},
        lambda rng, mean: rng.gamma(2.0, mean / 2.0, SIZE),
        (1.0, 3.0, 10.0, 20.0, 33.0),
        ("lognormal, sd of logarithms 1", _lognormal(1.0)),
        ({**_X, "shape": "2", "upper": "180"}, *_WAITS[1:]),
    ),
    "weibull": _values(
        {**_X, "shape": "1.7", "upper": "100"},
        lambda rng, scale: scale * rng.weibull(1.7, SIZE),
        (2.0, 5.0, 10.0, 25.0, 45.0),
        ("lognormal, sd of logarithms 1", _lognormal(1.0)),
        ({**_X, "shape": "1.7", "upper": "700"}, "air time, by origin", of_origin("air_time")),
    ),
    "pareto": _values(
        {**_X, "minimum": "1", "upper": "1000"},
        lambda rng, shape: 1 + rng.pareto(shape, SIZE),
        (0.7, 1.0, 2.0, 4.0),
        ("1 plus lognormal", lambda rng, shape: 1 + rng.lognormal(0, 1.5, SIZE) / shape),
        (
            {**_X, "minimum": "15", "upper": "1500"},
            "delays above 15, by carrier",
            delayed(15.0),
        ),
    ),
    "laplace": _values(
        {**_X, "location": "0", "half_range": "100"},
        lambda rng, scale: rng.laplace(0, scale, SIZE),
        (1.0, 3.0, 10.0, 20.0, 33.0),
        ("lognormal less its median", lambda rng, scale: scale * (rng.lognormal(0, 0.8, SIZE) - 1)),
        ({**_X, "location": "0", "half_range": "120"}, "arrival delay, by origin", of_origin("arr_delay")),
    ),
    "normal": _values(
        {**_X, "lower": "0", "upper": "100"},
        lambda rng, mean: rng.normal(mean, 10, SIZE),
        (30.0, 50.0, 60.0),
        ("lognormal, sd of logarithms .8; nothing below 0", lambda rng, mean: _lognormal(0.8)(rng, mean / 4)),
        ({**_X, "lower": "0", "upper": "700"}, "air time, by origin", of_origin("air_time")),
    ),
    "normal_known_mean": _values(
        {**_X, "mean": "0", "half_range": "100"},
        lambda rng, sd: rng.normal(0, sd, SIZE),
        (1.0, 3.0, 10.0, 20.0, 33.0),
        ("Student's t, 3 degrees of freedom", lambda rng, sd: sd * rng.standard_t(3, SIZE)),
        ({**_X, "mean": "0", "half_range": "120"}, "arrival delay, by origin", of_origin("arr_delay")),
    ),
    "normal_known_variance": _values(
        {**_X, "variance": "100", "lower": "0", "upper": "100"},
        lambda rng, mean: rng.normal(mean, 10, SIZE),
        (20.0, 50.0, 70.0),
        ("exponential with this variance", lambda rng, mean: mean - 10 + rng.exponential(10, SIZE)),
        (
            {**_X, "variance": "1600", "lower": "-60", "upper": "180"},
            "arrival delay, by origin",
            of_origin("arr_delay"),
        ),
    ),
    "lognormal": _values(
        {**_X, "lower": "1", "upper": "1000"},
        lambda rng, median: median * rng.lognormal(0, 0.7, SIZE),
        (10.0, 30.0, 60.0),
        ("exponential", lambda rng, mean: rng.exponential(mean, SIZE)),
        ({**_X, "lower": "10", "upper": "700"}, "air time, by origin", of_origin("air_time")),
    ),
    "multivariate_normal": _multivariate_normal,
    "linear_regression": _linear_regression,
}

_PEOPLE: dict[str, tuple[dict[str, Any], Callable[[], list[Column]], str]] = {
    "bernoulli": ({"column": "x"}, honest_people.incomes, "more than 50,000, by education"),
    "categorical": (
        {"column": "x", "categories": honest_people.RACES},
        honest_people.races,
        "races of adults, by sex",
    ),
    "poisson": ({**_X, "upper": "40"}, honest_people.persons, "persons in a fatal crash, by weekday"),
    "exponential": ({**_X, "upper": "100000"}, honest_people.gains, "capital gains, nine in ten 0, by sex"),
    "normal": ({**_X, "lower": "0", "upper": "100"}, honest_people.ages, "ages, by marital status"),
    "lognormal": (
        {**_X, "lower": "10000", "upper": "2000000"},
        honest_people.weights,
        "weights of a census, by race",
    ),
}
