"""Measure intervals of the families with one sum whose clipping is modelled: coverage of 50, 80 and 95 %.

    PYTHONPATH=tests python benchmarks/clipped_sums.py [--family exponential ...] [--cells 400]
        [--slow 200] [--rows 30 300 5000] [--epsilon 0.1 1] [--share 0 5 20 40] [--skewed] [--no-oracle]

Of every family, under its default prior, N private: the share of intervals that hold the parameter of the
records before clipping, with clipping ``modelled``, with it ``ignored``, and modelled without noise (epsilon
1000, ``oracle``). The truth is the same in every cell, and not from the prior: the parameter of which that
share of records, in percent, lies beyond the bound, or next to none. ``--slow`` is the number of cells where
one takes more than a twentieth of a second. With ``--skewed`` records are no more of the model: lognormal,
with a median of .17 of the bound, beyond which 4 % lie, and the truth is the parameter of their mean of T
before clipping. Seconds are of a processor, for a modelled posterior and three intervals.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
from measuring import versions

from suffice.pipeline.ask.inference.posterior_terms import IGNORED, MODELLED
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.statistics.simulated_sums import power_sums
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats

    Draw = Callable[[np.random.Generator, int], Floats]

ENTRIES: dict[str, dict[str, str]] = {
    "exponential": {"upper": "10"},
    "gamma": {"shape": "2", "upper": "10"},
    "weibull": {"shape": "1.5", "upper": "10"},
    "pareto": {"minimum": "1", "upper": "100"},
    "laplace": {"location": "0", "half_range": "10"},
    "normal_known_mean": {"mean": "0", "half_range": "10"},
    "poisson": {"upper": "10"},
    "geometric": {"upper": "10"},
    "negative_binomial": {"successes": "3", "upper": "10"},
}
MASSES = (0.5, 0.8, 0.95)
NO_NOISE = "1000"
NEXT_TO_NONE = 1e-5
MANY = 200_000
QUICK = 0.05
"""Seconds."""
FIRST = 20
"""Cells by which a setting's time is told."""


def parameter_of(family: str, share: float) -> float:
    """The parameter of which this share of records lies beyond the bound, by bisection on its logarithm."""
    of_family = FAMILIES[family]
    plan = statistic_plan({"family": family, **ENTRIES[family]}, epsilon="1", public_n=False)
    assert of_family.outside is not None  # noqa: S101 - of every family here
    is_probability = family in ("geometric", "negative_binomial")
    low, high = -12.0, 0.0 if is_probability else 12.0
    rises = family in ("laplace", "normal_known_mean", "poisson")
    for _ in range(60):
        middle = (low + high) / 2.0
        beyond = float(of_family.outside(np.array([np.exp(middle)]), plan.parameters).share[0])
        low, high = (middle, high) if (beyond < share) == rises else (low, middle)
    return float(np.exp(middle))


def draw_of(family: str, truth: float) -> Draw:
    """Return records of the model, with this parameter."""
    of_family = FAMILIES[family]
    entry = {"family": family, "column": "x", **ENTRIES[family]}
    spec = of_family.spec.model_validate(entry, strict=False)
    from importlib import import_module

    drawn = import_module(f"suffice.pipeline.families.{family}").draw
    return lambda rng, n: drawn(spec, np.full(n, truth), rng)


def skewed(family: str) -> tuple[Draw, float]:
    """Return records that are not of the model, and the parameter that their mean of T is of."""
    entry = ENTRIES[family]
    bound = float(entry.get("upper", entry.get("half_range", 0)))
    is_count = family in ("poisson", "geometric", "negative_binomial")

    def draw(rng: np.random.Generator, n: int) -> Floats:
        x = 0.17 * bound * rng.lognormal(0.0, 1.0, n)
        return np.rint(x) if is_count else x

    x = draw(np.random.default_rng(), 4_000_000)
    mean = float(np.mean(x))
    shape = float(entry.get("shape", 1))
    if family in ("geometric", "negative_binomial"):
        successes = float(entry.get("successes", 1))
        return draw, successes / (successes + mean)
    truth = {
        "exponential": lambda: 1.0 / mean,
        "gamma": lambda: shape / mean,
        "weibull": lambda: 1.0 / float(np.mean(x**shape)),
        "pareto": lambda: 1.0 / float(np.mean(np.log(np.maximum(x, 1.0)))),
        "laplace": lambda: mean,
        "normal_known_mean": lambda: float(np.mean(x**2)),
        "poisson": lambda: mean,
    }[family]()
    return draw, truth


def held(
    family: str, draw: Draw, truth: float, cells: int, rows: int, epsilon: str, clipping: str
) -> tuple[Floats, float, float, float]:
    """Intervals that hold the truth, (3,); shares of cells modelled, and of records clipped; seconds."""
    rng = np.random.default_rng()
    of_family, entry = FAMILIES[family], {"family": family, "column": "x", **ENTRIES[family]}
    spec = of_family.spec.model_validate(entry, strict=False)
    plan = statistic_plan({"family": family, **ENTRIES[family]}, epsilon=epsilon, public_n=False)
    sums = power_sums(of_family.measure(spec), np.full(cells, rows), lambda record: draw(rng, len(record)))
    exact = of_family.totals(spec, plan.design, sums.clipped)
    noise = discrete_laplace(plan.scale, exact.shape, rng)
    began = time.process_time()
    posterior = posterior_of(noisy_statistic(plan, exact + noise), clipping=clipping)
    (name,) = posterior.parameters
    ends = np.stack([posterior.credible_interval(name, mass) for mass in MASSES])
    seconds = (time.process_time() - began) / cells
    inside = np.sum((ends[..., 0] <= truth) & (truth <= ends[..., 1]), axis=1).astype(np.float64)
    modelled = 0.0 if posterior.models_clipping is None else float(np.mean(posterior.models_clipping))
    return inside, modelled, sums.n_clipped / cells / rows, seconds


def said(counts: Floats, cells: int) -> str:
    """Percentages at 50, 80 and 95 %."""
    return "/".join(f"{100.0 * count / cells:.0f}" for count in counts)


def line(
    family: str, share: str, draw: Draw, truth: float, rows: int, epsilon: str, sizes: tuple[int, int, bool]
) -> None:
    """Print one setting."""
    counts, modelled, clipped, seconds = held(family, draw, truth, FIRST, rows, epsilon, MODELLED)
    cells = sizes[0] if seconds < QUICK else sizes[1]
    more = cells - FIRST
    if more > 0:
        further, share_modelled, clipped, seconds = held(family, draw, truth, more, rows, epsilon, MODELLED)
        counts, modelled = counts + further, share_modelled
    ignored = held(family, draw, truth, cells, rows, epsilon, IGNORED)[0]
    oracle = said(held(family, draw, truth, cells, rows, NO_NOISE, MODELLED)[0], cells) if sizes[2] else ""
    print(
        f"{family:18}{share:>8}{100 * clipped:>8.1f}%{rows:>6}{epsilon:>5}{cells:>6}"
        f"{said(counts, cells):>12}{said(ignored, cells):>12}{oracle:>12}"
        f"{100 * modelled:>9.0f}%{seconds:>8.3f}",
        flush=True,
    )


def main() -> None:
    """Print a line for every setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", nargs="*", choices=tuple(ENTRIES), default=tuple(ENTRIES))
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--slow", type=int, default=200)
    parser.add_argument("--rows", nargs="*", type=int, default=(30, 300, 5000))
    parser.add_argument("--epsilon", nargs="*", default=("0.1", "1"))
    parser.add_argument("--share", nargs="*", type=int, default=(0, 5, 20, 40))
    parser.add_argument("--skewed", action="store_true")
    parser.add_argument("--no-oracle", action="store_true")
    arguments = parser.parse_args()
    sizes = (arguments.cells, arguments.slow, not arguments.no_oracle)
    print(versions())
    print(
        f"{'':18}{'beyond':>8}{'clipped':>9}{'N0':>6}{'eps':>5}{'cells':>6}"
        f"{'modelled':>12}{'ignored':>12}{'oracle':>12}{'in cells':>10}{'s/cell':>8}"
    )
    for family in arguments.family:
        worlds = (
            [("skewed", *skewed(family))]
            if arguments.skewed
            else [
                (f"{share} %", draw_of(family, truth), truth)
                for share in arguments.share
                for truth in [parameter_of(family, share / 100.0 or NEXT_TO_NONE)]
            ]
        )
        for share, draw, truth in worlds:
            for rows in arguments.rows:
                for epsilon in arguments.epsilon:
                    line(family, share, draw, truth, rows, epsilon, sizes)


if __name__ == "__main__":
    main()
