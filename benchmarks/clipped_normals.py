"""Measure intervals of clipped normals: coverage with clipping modelled, and with it ignored.

    PYTHONPATH=tests python benchmarks/clipped_normals.py [--cells 400]
        [--only shares|near|drawn|default] [--rows N0] [--setting "40 %, one"]

``shares``: epsilon 1; means and deviations of which 1, 10 and 40 % are clipped, on one side or on both, in
every cell the same; the prior is the family's default. ``near``: the same under a prior near them.
``drawn``: about the same, but every cell has parameters of its own, drawn from the prior of its posterior, so
that intervals of an exact posterior hold as often as they say. ``default``: epsilon 0.5, deviation 5, means 0
and 5, the default prior. Bounds are -10..10 and N is private under its default. ``error`` is the median of
(posterior median - truth) / (half the central 68 % interval): 0 where posteriors lean to neither side. Times
are processor seconds.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from measuring import versions

from suffice.pipeline.ask.inference.posterior_terms import IGNORED, MODELLED
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import normal
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.mixtures import Mixture, ScaleMixture
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.typing import Floats

ENTRY = {"family": "normal", "lower": "-10", "upper": "10"}
STEPS = 1 << 16
Settings: TypeAlias = "tuple[tuple[str, float, float], ...]"
BATCH = 50
SHARES: Settings = (
    ("1 %, both", 0.0, 3.882),
    ("1 %, one", 5.0, 2.149),
    ("10 %, both", 0.0, 6.080),
    ("10 %, one", 5.0, 3.896),
    ("40 %, both", 0.0, 11.882),
    ("40 %, one", 8.0, 7.05),
)
"""What is clipped, the mean and the standard deviation."""
DEFAULT: Settings = (("sd 5, mean 0", 0.0, 5.0), ("sd 5, mean 5", 5.0, 5.0))


PRIOR = ScaleMixture(-10.0, 10.0)


def main() -> None:
    """Print a line for every setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--only", choices=("shares", "near", "drawn", "default"))
    parser.add_argument("--setting", help="one name, not all")
    parser.add_argument("--rows", type=int, help="one number of records, not all")
    arguments = parser.parse_args()
    print(versions())
    columns = f"{'modelled: mean, variance':>24}{'error':>14}{'its upper':>12}{'ignored':>16}"
    print(f"{'':14}{'N0':>7}{'clipped':>9}{columns}{'s/cell':>8}")
    settings: list[tuple[str, str, Settings, tuple[int, ...]]] = [
        ("shares", "1", SHARES, (100, 1000, 10_000)),
        ("near", "1", SHARES, (100, 1000, 10_000)),
        ("drawn", "1", SHARES, (100, 1000, 10_000)),
        ("default", "0.5", DEFAULT, (20, 100, 1000)),
    ]
    for part, epsilon, of_part, numbers in settings:
        if arguments.only not in (None, part):
            continue
        print(part)
        for name, mean, sd in of_part:
            if arguments.setting not in (None, name):
                continue
            near = NormalInverseGamma(mean, 4.0, 6.0, 5.0 * sd**2)
            prior = near if part in ("near", "drawn") else PRIOR
            for n in numbers:
                if arguments.rows in (None, n):
                    _line(name, (mean, sd), n, epsilon, arguments.cells, prior, is_drawn=part == "drawn")


def _line(
    name: str,
    parameters: tuple[float, float],
    n: int,
    epsilon: str,
    cells: int,
    prior: Mixture | NormalInverseGamma,
    *,
    is_drawn: bool,
) -> None:
    """Print one; parameters come from a prior of one component, or are the same in every cell."""
    rng = np.random.default_rng()
    held = {(way, parameter): 0 for way in (MODELLED, IGNORED) for parameter in ("mean", "variance")}
    errors: dict[str, list[Floats]] = {"mean": [], "variance": []}
    ends, clipped, seconds = [], 0, 0.0
    for start in range(0, cells, BATCH):
        size = min(BATCH, cells - start)
        mean, variance = (np.full(size, value) for value in (parameters[0], parameters[1] ** 2))
        if is_drawn and isinstance(prior, NormalInverseGamma):
            variance = prior.scale / rng.gamma(prior.concentration, 1.0, size)
            mean = rng.normal(prior.loc, np.sqrt(variance / prior.precision))
        x = rng.normal(mean[:, None], np.sqrt(variance)[:, None], (size, n)) / 10.0
        clipped += int(np.sum(np.abs(x) > 1.0))
        x = np.rint(np.clip(x, -1.0, 1.0) * STEPS).astype(np.int64)
        sums = [np.full(size, n), x.sum(axis=1), (x * x).sum(axis=1)]
        spec = normal.NormalSpec.model_validate({**ENTRY, "column": "x"}, strict=False)
        plan = statistic_plan(ENTRY, epsilon=epsilon, public_n=False)
        exact = normal.totals(spec, plan.design, np.stack(sums, axis=1).astype(object))
        statistic = noisy_statistic(plan, exact + discrete_laplace(plan.scale, (size, 3), rng))
        for way in (MODELLED, IGNORED):
            began = time.process_time()
            posterior = posterior_of(statistic, prior=prior, clipping=way)
            for parameter, truth in (("mean", mean), ("variance", variance)):
                at = posterior.distribution.quantiles(parameter, [0.025, 0.16, 0.5, 0.84, 0.975], 0, rng).T
                held[way, parameter] += int(np.sum((at[0] <= truth) & (truth <= at[-1])))
                if way == MODELLED:
                    errors[parameter].append(2.0 * (at[2] - truth) / (at[3] - at[1]))
                if (way, parameter) == (MODELLED, "variance"):
                    ends.append(at[-1])
            if way == MODELLED:
                seconds += time.process_time() - began
    shares = {key: f"{100 * count / cells:.1f}" for key, count in held.items()}
    upper = np.median(np.concatenate(ends))
    leaning = [np.median(np.concatenate(each)) for each in errors.values()]
    print(
        f"{name:14}{n:>7}{100 * clipped / cells / n:>8.1f}%"
        f"{shares[MODELLED, 'mean']:>14}{shares[MODELLED, 'variance']:>10}"
        f"{leaning[0]:>+7.2f}{leaning[1]:>+7.2f}{upper:>12.4g}"
        f"{shares[IGNORED, 'mean']:>8}{shares[IGNORED, 'variance']:>8}{seconds / cells:>8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
