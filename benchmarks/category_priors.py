"""Cover rare and common probabilities of categories, and rates, under several priors and both intervals.

    PYTHONPATH=tests python benchmarks/category_priors.py [--cells 200] [--categories 8] [--rows 300]
    PYTHONPATH=tests python benchmarks/category_priors.py --rates
    PYTHONPATH=tests python benchmarks/category_priors.py --spread [--cells 100] [--categories 3 5 8 20]

N is private under its default prior. K categories have the true probabilities .0001 and .001, and the
others share the rest in proportion to 1, 1/2, 1/3 and so on; of two categories one has .001. Every line is
one prior: the share of cells whose 95 % interval holds the truth of the rare ones, of all others together,
and of the worst of the others, and the mean width of the intervals of .001 and of the others, central |
highest-density. Perks's prior is 1/K; 4/K counts for four records in all, and is at most 1. ``--rates`` does
the same for Bernoulli columns. ``--spread`` compares ``Dirichlet(1)`` with a mixture over concentrations, of
highest-density intervals of other truths: one category of .95 and the others alike, all in proportion to 1,
1/2, 1/3 and so on, one of .0001 and the others alike, and all alike; with processor time a cell.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
from measuring import versions

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet
from suffice.pipeline.math.distributions.intervals import shortest_intervals
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.priors.mixtures import Mixture
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats, Mask

MASS, DRAWS = 0.95, 2000
CATEGORIES, ROWS, EPSILONS = (2, 5, 8, 20, 50), (30, 300, 5000), ("0.1", "1")
RARE = (0.0001, 0.001)
SPREAD = Mixture(1, Dirichlet(1), 1, Dirichlet(0.25), 1, Dirichlet(0.0625))
RATES = (0.0001, 0.001, 0.01, 0.1, 0.5)


def main() -> None:
    """Print a line for every setting and prior."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--categories", type=int, nargs="*", default=CATEGORIES)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--spread", action="store_true")
    arguments = parser.parse_args()
    rng = np.random.default_rng()
    print(versions())
    if arguments.rates:
        print_rates(arguments.rows, arguments.cells, rng)
        return
    if arguments.spread:
        print_spread(arguments.categories, arguments.rows, arguments.cells, rng)
        return
    names = ("held .0001", "held .001", "held others", "worst other", "width .001", "width others")
    print("".join(f"{name:>6}" for name in ("K", "N", "eps")) + f"{'prior':>7}" + _line(names))
    for k in arguments.categories:
        truth = probabilities(k)
        for n in arguments.rows:
            for epsilon in EPSILONS:
                statistic = released(truth, n, epsilon, arguments.cells, rng)
                for name, concentration in (
                    ("1", 1.0),
                    ("1/2", 0.5),
                    ("4/K", min(1.0, 4.0 / k)),
                    ("1/K", 1.0 / k),
                ):
                    columns = summary(statistic, Dirichlet(concentration), truth, rng)
                    print(f"{k:6}{n:6}{epsilon:>6}{name:>7}" + _line(columns), flush=True)


def probabilities(k: int) -> Floats:
    """Return true probabilities (k,): the rare ones first."""
    if k == 2:
        return np.array([RARE[1], 1.0 - RARE[1]])
    others = 1.0 / np.arange(1, k - 1)
    return np.concatenate([RARE, (1.0 - sum(RARE)) * others / np.sum(others)])


def released(truth: Floats, n: int, epsilon: str, cells: int, rng: np.random.Generator) -> NoisyStatistic:
    """Counts of n records a cell, and noise."""
    categories = [f"c{number}" for number in range(len(truth))]
    entry = {"family": "categorical", "column": "x", "categories": categories}
    plan = statistic_plan(entry, epsilon=epsilon, public_n=False)
    counts = rng.multinomial(n, truth, cells)
    return noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng))


def summary(statistic: NoisyStatistic, prior: Prior, truth: Floats, rng: np.random.Generator) -> list[str]:
    """Return the columns of a line; of truths that a table lacks an empty one."""
    intervals = both_intervals(statistic, prior, rng)
    held = [np.mean((ends[..., 0] <= truth) & (truth <= ends[..., 1]), axis=0) for ends in intervals]
    width = [np.mean(ends[..., 1] - ends[..., 0], axis=0) for ends in intervals]
    others = ~np.isin(truth, RARE)
    return [
        *(_pair(held, truth == rare, "5.1%") for rare in RARE),
        _pair(held, others, "5.1%"),
        " | ".join(f"{np.min(each[others]):5.1%}" for each in held),
        _pair(width, truth == RARE[1], "5.3f"),
        _pair(width, others, "5.3f"),
    ]


def both_intervals(
    statistic: NoisyStatistic, prior: Prior, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return central and highest-density intervals of the probability."""
    distribution = posterior_of(statistic, prior=prior).distribution
    central = distribution.quantiles("probability", ends_of(MASS), DRAWS, rng)
    return central, shortest_intervals(distribution, "probability", MASS, (0.0, 1.0), DRAWS, rng)


def print_rates(rows: list[int], cells: int, rng: np.random.Generator) -> None:
    """Print the share of cells that hold a rate, and the mean width, for every setting and prior."""
    print(f"{'N':>6}{'eps':>6}{'prior':>16}" + _line([f"held {rate}" for rate in RATES] + ["width .001"]))
    for n in rows:
        for epsilon in EPSILONS:
            plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon=epsilon, public_n=False)
            true = rng.binomial(n, np.repeat(RATES, cells))
            counts = np.stack([n - true, true], axis=1)
            statistic = noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng))
            truth = np.repeat(RATES, cells)
            for prior in (Beta(1, 1), Beta(0.5, 0.5), Beta(0.25, 0.25)):
                intervals = both_intervals(statistic, prior, rng)
                held = [(ends[..., 0] <= truth) & (truth <= ends[..., 1]) for ends in intervals]
                width = [ends[..., 1] - ends[..., 0] for ends in intervals]
                columns = [_pair(held, truth == rate, "5.1%") for rate in RATES]
                columns.append(_pair(width, truth == RARE[1], "5.3f"))
                print(f"{n:6}{epsilon:>6}{prior!s:>16}" + _line(columns), flush=True)


def print_spread(categories: list[int], rows: list[int], cells: int, rng: np.random.Generator) -> None:
    """Print the share of cells that hold the first category, and all, by two priors."""
    names = ("held first", "held all", "width first", "width all", "ms a cell")
    print(f"{'K':>6}{'N':>6}{'eps':>6}{'truth':>10}{'prior':>8}" + _line(names))
    for k in categories:
        for n in rows:
            for epsilon in EPSILONS:
                for name, truth in spread_truths(k).items():
                    statistic = released(truth, n, epsilon, cells, rng)
                    for prior_name, prior in (("1", Dirichlet(1)), ("mixture", SPREAD)):
                        began = time.process_time()
                        distribution = posterior_of(statistic, prior=prior).distribution
                        ends = shortest_intervals(distribution, "probability", MASS, (0.0, 1.0), DRAWS, rng)
                        spent = 1e3 * (time.process_time() - began) / cells
                        held = np.mean((ends[..., 0] <= truth) & (truth <= ends[..., 1]), axis=0)
                        width = np.mean(ends[..., 1] - ends[..., 0], axis=0)
                        columns = [f"{held[0]:.1%}", f"{np.mean(held):.1%}", f"{width[0]:.3f}"]
                        columns += [f"{np.mean(width):.3f}", f"{spent:.2f}"]
                        print(f"{k:6}{n:6}{epsilon:>6}{name:>10}{prior_name:>8}" + _line(columns), flush=True)


def spread_truths(k: int) -> dict[str, Floats]:
    """Return true probabilities (k,) by their names: the one that counts first."""
    in_proportion = 1.0 / np.arange(1, k + 1)
    return {
        "dominant": np.array([0.95, *[0.05 / (k - 1)] * (k - 1)]),
        "Zipf": in_proportion / np.sum(in_proportion),
        "rare": np.array([RARE[0], *[(1.0 - RARE[0]) / (k - 1)] * (k - 1)]),
        "uniform": np.full(k, 1.0 / k),
    }


def _pair(values: list[Floats], chosen: Mask, form: str) -> str:
    return " | ".join(f"{np.mean(each[chosen]):{form}}" for each in values) if np.any(chosen) else ""


def _line(columns: list[str] | tuple[str, ...]) -> str:
    return "".join(f"{column:>19}" for column in columns)


if __name__ == "__main__":
    main()
