"""Measure intervals of clipped normals: coverage with clipping modelled, and with it ignored.

    PYTHONPATH=tests python benchmarks/clipped_normals.py [--cells 400] [--only shares|default]

``shares``: epsilon 1; means and deviations of which 1, 10 and 40 % are clipped, on one side or on both.
``default``: epsilon 0.5, deviation 5, means 0 and 5. Bounds are -10..10, N is private under its default, and
the prior is spread over scales: 14 components of concentration 3 whose variances go in steps of 10^0.6 up to
a half range squared, a quarter of the weight even, the rest in proportion to their roots. Each cell has fixed
parameters and N0 records; an interval of 95 % is to hold 92 to 98 % of the time, that of a variance at least
90 % under ``default``. Times are processor seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from measuring import versions

from suffice.pipeline.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.families import normal
from suffice.pipeline.posterior.infer import noise_aware_posterior
from suffice.pipeline.posterior.posterior import IGNORED, MODELLED
from suffice.pipeline.priors.mixtures import Mixture
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

ENTRY = {"family": "normal", "lower": "-10", "upper": "10"}
STEPS = 1 << 16
BATCH = 50
SHARES = (
    ("1 %, both", 0.0, 3.882),
    ("1 %, one", 5.0, 2.149),
    ("10 %, both", 0.0, 6.080),
    ("10 %, one", 5.0, 3.896),
    ("40 %, both", 0.0, 11.882),
    ("40 %, one", 8.0, 7.05),
)
"""What is clipped, the mean and the standard deviation."""
DEFAULT = (("sd 5, mean 0", 0.0, 5.0), ("sd 5, mean 5", 5.0, 5.0))


_VARIANCES = 10.0 ** (-0.6 * np.arange(14.0))
_WEIGHTS = 0.25 / 14.0 + 0.75 * np.sqrt(_VARIANCES) / np.sum(np.sqrt(_VARIANCES))
PRIOR = Mixture(
    *(
        part
        for weight, variance in zip(_WEIGHTS.tolist(), _VARIANCES.tolist(), strict=True)
        for part in (weight, NormalInverseGamma(0.0, 4.0 * variance, 3.0, 300.0 * variance))
    )
)


def main() -> None:
    """Print a line for every setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--only", choices=("shares", "default"))
    arguments = parser.parse_args()
    print(versions())
    columns = f"{'modelled: mean, variance, its upper':>34}{'ignored':>22}"
    print(f"{'':14}{'N0':>7}{'clipped':>9}{columns}{'s/cell':>8}")
    if arguments.only != "default":
        for name, mean, sd in SHARES:
            for n in (100, 1000, 10_000):
                _line(name, mean, sd, n, "1", arguments.cells)
    if arguments.only != "shares":
        for name, mean, sd in DEFAULT:
            for n in (20, 100, 1000):
                _line(name, mean, sd, n, "0.5", arguments.cells)


def _line(name: str, mean: float, sd: float, n: int, epsilon: str, cells: int) -> None:
    rng = np.random.default_rng()
    truths = {"mean": mean, "variance": sd**2}
    held = {(way, parameter): 0 for way in (MODELLED, IGNORED) for parameter in truths}
    ends, clipped, seconds = [], 0, 0.0
    for start in range(0, cells, BATCH):
        size = min(BATCH, cells - start)
        x = rng.normal(mean, sd, (size, n)) / 10.0
        clipped += int(np.sum(np.abs(x) > 1.0))
        x = np.rint(np.clip(x, -1.0, 1.0) * STEPS).astype(np.int64)
        sums = [np.full(size, n), x.sum(axis=1), (x * x).sum(axis=1)]
        spec = normal.NormalSpec.model_validate({**ENTRY, "column": "x"}, strict=False)
        plan = statistic_plan(ENTRY, epsilon=epsilon, public_n=False)
        exact = normal.totals(spec, plan.design, np.stack(sums, axis=1).astype(object))
        statistic = noisy_statistic(plan, exact + discrete_laplace(plan.scale, (size, 3), rng))
        for way in (MODELLED, IGNORED):
            began = time.process_time()
            posterior = noise_aware_posterior(statistic, prior=PRIOR, clipping=way)
            for parameter, truth in truths.items():
                low, high = posterior.distribution.quantiles(parameter, [0.025, 0.975], 0, rng).T
                held[way, parameter] += int(np.sum((low <= truth) & (truth <= high)))
                if (way, parameter) == (MODELLED, "variance"):
                    ends.append(high)
            if way == MODELLED:
                seconds += time.process_time() - began
    shares = {key: f"{100 * count / cells:.1f}" for key, count in held.items()}
    upper = np.median(np.concatenate(ends))
    print(
        f"{name:14}{n:>7}{100 * clipped / cells / n:>8.1f}%"
        f"{shares[MODELLED, 'mean']:>12}{shares[MODELLED, 'variance']:>10}{upper:>12.4g}"
        f"{shares[IGNORED, 'mean']:>12}{shares[IGNORED, 'variance']:>10}{seconds / cells:>8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
