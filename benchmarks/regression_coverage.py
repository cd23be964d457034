"""Measure how often intervals of regressions hold the truth, and how well their chains mix.

    PYTHONPATH=tests python benchmarks/regression_coverage.py [--cells 400] [--own-prior] [ROW ...]
    PYTHONPATH=tests python benchmarks/regression_coverage.py --fixed [--cells 40]

Every cell has n rows, uniform on 4..2 N0, and a regression of its own from
NormalInverseGammaRegression(0, .5, 4, 3); its outcome is clipped to +-30, epsilon is 2, and the posterior has
the truths' prior of the coefficients, or with --own-prior the family's default, and the default prior of the
predictors. Predictors are drawn from that default, or are as the row says, with standard deviation 1. A row
a setting: the share of truths within central intervals, over all coefficients, and the worst cell's chains.

With --fixed coefficients are 1, -.5 (and .5), predictors correlated normals, and priors the defaults; see
``tests/support/correlated_predictors.py``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import versions

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.linear_regression import default_predictor_prior, simulate
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaRegression
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace, normal_rows
from support.correlated_predictors import fixed_coverage
from support.joint import plan_of, spec_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MASSES = (0.5, 0.8, 0.95)
EPSILON = "2"
BATCH = 500
"""Cells whose chains run side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A row of the table.

    Attributes
    ----------
    bound : float
        Of every predictor, on both sides.
    n0 : int
        Half the most rows of a cell.
    rows : callable or None
        A number of rows, a generator -> predictors; None: normal, drawn from the default prior.
    size : int
        Predictors.
    """

    bound: float
    n0: int
    rows: Callable[[int, np.random.Generator], Floats] | None = None
    size: int = 1


def normal(size: int, mean: float = 0.0, correlation: float = 0.0) -> Callable[..., Floats]:
    """Return normal predictors of standard deviation 1."""
    covariance = np.full((size, size), correlation) + (1.0 - correlation) * np.eye(size)
    root = np.linalg.cholesky(covariance)
    return lambda n, rng: np.asarray(mean + rng.standard_normal((n, size)) @ root.T)


def binary(n: int, rng: np.random.Generator) -> Floats:
    """0, or with a chance of a tenth 2."""
    return np.where(rng.random((n, 1)) < 0.1, 2.0, 0.0)


def skewed(n: int, rng: np.random.Generator) -> Floats:
    """Exponential, of rate 1."""
    return rng.exponential(size=(n, 1))


SETTINGS = {
    "drawn from the default, +-10, N0 40": Setting(bound=10.0, n0=40),
    "drawn from the default, +-10, N0 1,000": Setting(bound=10.0, n0=1000),
    "drawn from the default, two, +-10, N0 1,000": Setting(bound=10.0, n0=1000, size=2),
    "normal, +-10, N0 40": Setting(bound=10.0, n0=40, rows=normal(1)),
    "normal, +-10, N0 1,000": Setting(bound=10.0, n0=1000, rows=normal(1)),
    "normal, +-10, N0 10,000": Setting(bound=10.0, n0=10_000, rows=normal(1)),
    "normal, +-3.5, N0 40": Setting(bound=3.5, n0=40, rows=normal(1)),
    "mean 5, +-10, N0 1,000": Setting(bound=10.0, n0=1000, rows=normal(1, mean=5.0)),
    "{0, 2}, +-10, N0 200": Setting(bound=10.0, n0=200, rows=binary),
    "two, +-10, N0 1,000": Setting(bound=10.0, n0=1000, rows=normal(2), size=2),
    "two correlated .8, +-10, N0 1,000": Setting(
        bound=10.0, n0=1000, rows=normal(2, correlation=0.8), size=2
    ),
    "Exp(1), +-10, N0 40": Setting(bound=10.0, n0=40, rows=skewed),
    "Exp(1), +-10, N0 1,000": Setting(bound=10.0, n0=1000, rows=skewed),
}


def main() -> None:
    """Print a line for every setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="The start of its name.")
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--own-prior", action="store_true", help="Of the coefficients: the default.")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--fixed", action="store_true", help="Correlated predictors, coefficients fixed.")
    arguments = parser.parse_args()
    print(versions())
    heading = "".join(f"{100 * mass:>7.0f} %" for mass in MASSES)
    print(f"{'predictors':46}{heading}{'R-hat':>9}{'ESS':>7}{'s':>7}")
    rng = np.random.default_rng(arguments.seed)
    if arguments.fixed:
        print_fixed(arguments.cells, rng)
        return
    for name, setting in SETTINGS.items():
        if arguments.rows and not name.startswith(tuple(arguments.rows)):
            continue
        started = time.process_time()
        batches = [
            measured(setting, min(BATCH, arguments.cells - start), own_prior=arguments.own_prior, rng=rng)
            for start in range(0, arguments.cells, BATCH)
        ]
        covered = np.concatenate([part for part, _, _ in batches], axis=1).mean(axis=(1, 2))
        shares = "".join(f"{100 * share:9.1f}" for share in covered)
        r_hat, effective = max(part for _, part, _ in batches), min(part for _, _, part in batches)
        print(f"{name:46}{shares}{r_hat:9.3f}{effective:7d}{time.process_time() - started:7.0f}", flush=True)


def print_fixed(cells: int, rng: np.random.Generator) -> None:
    """Print a line for every number of predictors, correlation and number of rows."""
    heading = f"{'predictors':>10}{'correlation':>12}{'n':>6}"
    print(f"{heading}{'50/80/95 %':>18}{'towards 0':>11}{'away':>6}{'width':>7}{'CPU s':>7}")
    for n in (300, 5000):
        for size in (2, 3):
            for correlation in (0.0, 0.5, 0.8, 0.95):
                started = time.process_time()
                coverage = fixed_coverage(size, correlation, n, cells=cells, rng=rng)
                spent = (time.process_time() - started) / cells
                shares = " / ".join(f"{100 * share:.0f}" for share in coverage.shares)
                print(
                    f"{size:10}{correlation:12}{n:6}{shares:>18}{coverage.towards_0:11}{coverage.away:6}"
                    f"{coverage.width:7.1f}{spent:7.2f}",
                    flush=True,
                )


def measured(
    setting: Setting, cells: int, *, own_prior: bool, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], float, int]:
    """Return whether intervals hold the coefficients, (masses, cells, coefficients), and the diagnostics."""
    columns = [f"x{position}" for position in range(setting.size)]
    bounds = {"lower": str(-setting.bound), "upper": str(setting.bound)}
    entry: dict[str, Any] = {
        "family": "linear_regression",
        "noise": "laplace",
        "predictors": dict.fromkeys(columns, bounds),
        "outcome": {"y": {"lower": "-30", "upper": "30"}},
    }
    plan = plan_of(entry, epsilon=EPSILON, public_n=False)
    spec = spec_of(entry, epsilon=EPSILON, public_n=False).statistics["s"]
    family = FAMILIES["linear_regression"]
    prior = NormalInverseGammaRegression([0] * (setting.size + 1), [0.5] * (setting.size + 1), 4, 3)
    truth = family.truth(prior, plan.parameters, cells, rng)
    sizes = rng.integers(4, 2 * setting.n0, cells, endpoint=True)

    def world(n_data_sets: int, rng: np.random.Generator) -> Callable[[NDArray[np.int64]], Floats]:
        if setting.rows is None:
            predictors = default_predictor_prior(plan.parameters)
            return normal_rows(*predictors.sample(n_data_sets, rng, setting.size), rng)
        drawn = setting.rows
        return lambda data_set: drawn(len(data_set), rng)

    sums = simulate(spec, truth, sizes, rng, world)
    # Unclipped: what clipping does to a regression is another matter.
    totals = family.totals(spec, plan.design, sums.unclipped)
    noise = discrete_laplace(plan.scale, totals.shape, rng).astype(object)
    released = noisy_statistic(plan, totals + noise)
    posterior = posterior_of(released, prior=None if own_prior else prior, n_prior=Uniform(4, 2 * setting.n0))
    slopes = truth[:, : setting.size]
    drawn = posterior.distribution.sample(4000, rng)["coefficient"]
    covered = []
    for mass in MASSES:
        low, high = np.quantile(drawn, [(1.0 - mass) / 2.0, (1.0 + mass) / 2.0], axis=0)
        covered.append((low <= slopes) & (slopes <= high))
    diagnostics = posterior.diagnostics
    return np.stack(covered), diagnostics["largest_r_hat"], diagnostics["fewest_effective_draws"]


if __name__ == "__main__":
    main()
