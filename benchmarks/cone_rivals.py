"""Hold coefficients behind noise on a cone against other private regressions, at the same epsilon.

    PYTHONPATH=tests[:BINAGG/src:DDSSP/private_pgm:DDSSP/private_pgm/src] python benchmarks/cone_rivals.py
        [--data DIR] [--predictors 1 2 4 7] [--epsilon 0.1 1] [--draws 2000] [--slow-draws 200]
        [--few-draws 40] [--rows 10000] [--sets adult flights uniform normal] [--only cone laplace ...]

Rows are those of `cone.py`: columns within -1..1, the outcome last. Each mechanism fits the same rows so many
times; an error is the mean over predictors of the distance of a coefficient from the least-squares fit of the
rows without noise. Contenders:

- cone, laplace: second moments with noise on a cone, or with the Laplace noise of `noise: laplace`; pure
  epsilon, a record added or removed, a private N. Eigenvalues of the noisy matrix are kept at half of the
  noise's own standard deviation on a square, in both alike; coefficients are those of the matrix.
- one record: the same with eigenvalues kept at 1, what one record adds.
- zero: every coefficient is 0, whatever the data. Who errs by more than this says nothing.
- diffprivlib: its LinearRegression with an intercept; pure epsilon, a public N.
- BinAgg: of the authors' package, with a column of ones; (epsilon, 1e-6).
- BinAgg, mu: the same where epsilon is turned into mu by the package's own `epsilon_to_mu`, which is a weaker
  promise: epsilon 1 becomes mu 1.23, whose delta at epsilon 1 is .21. `--few-draws` of it.
- marginals: DD-SSP after its paper, without its selection of marginals and its graphical model: tables of all
  pairs of columns with equal Gaussian noise of (epsilon, 1e-5), moments by middles of bins. 2, 4, 8 and 16
  bins a column; the best of them in hindsight.
- DD-SSP: the authors' AIM (epsilon, 1e-5) for tables of all pairs of columns, 8 bins a column, moments by
  middles of bins. It takes seconds a fit and more: `--few-draws` of it, asked for by `--only`.

diffprivlib, BinAgg and DD-SSP are left out where they are not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import sys
import time
import warnings
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from cone import SETS, rows_of
from scipy.optimize import brentq

from suffice.pipeline.terms.statistics.moment_columns import cone_map, moment_map
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from support.joint import plan_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

    Floats = NDArray[np.float64]

STEPS = 1 << 16
GOALS = {1: 1.0, 2: 2.0, 4: 2.2, 7: 2.7}
"""Errors of Laplace noise over those of noise on a cone, by predictors."""
FLOOR = 0.5
"""Of the standard deviation of noise on a square: what eigenvalues are raised to."""
BINS = (2, 4, 8, 16)
AIM_BINS = 8
RESAMPLES = 400
DEFAULT = (
    "cone", "laplace", "cone, one record", "laplace, one record", "zero",
    "diffprivlib", "BinAgg", "BinAgg, mu", "marginals",
)  # fmt: skip
DELTA_OF_BINS, DELTA_OF_TABLES = 1e-6, 1e-5


def plan(predictors: int, noise: str, epsilon: str) -> StatisticPlan:
    """Return the plan of a regression on columns within -1..1."""
    unit = {"lower": -1, "upper": 1}
    names = {f"x{column}": unit for column in range(predictors)}
    entry = {"family": "linear_regression", "predictors": names, "outcome": {"y": unit}, "noise": noise}
    return plan_of(entry, epsilon=epsilon, public_n=False)


def recovery(planned: StatisticPlan, columns: int) -> Floats:
    """Return the moments in half ranges from components, (n_moments, n_components)."""
    names = tuple(map(str, range(columns)))
    if planned.cone is not None:
        of = cone_map(names, planned.cone, n_is_public=False)
    else:
        of = moment_map(names, STEPS, linear=True, weight=None)
    pairs = list(combinations_with_replacement(range(columns + 1), 2))
    matrix = np.zeros((len(pairs), len(of.components)))
    for row, pair in enumerate(pairs):
        unit = STEPS ** sum(column > 0 for column in pair)
        for place, weight in of.moments[pair].coefficients.items():
            matrix[row, place] = float(weight / unit)
    return matrix


def noise_of(predictors: int, noise: str, epsilon: str, draws: int, rng: np.random.Generator) -> Floats:
    """Draw noise on the matrix of moments in half ranges, (n_draws, n_columns + 1, n_columns + 1)."""
    planned = plan(predictors, noise, epsilon)
    columns = predictors + 1
    drawn = simulated_noise(planned, (draws,), rng).astype(np.float64) @ recovery(planned, columns).T
    above = np.triu_indices(columns + 1)
    matrix = np.zeros((draws, columns + 1, columns + 1))
    matrix[:, above[0], above[1]] = drawn
    matrix[:, above[1], above[0]] = drawn
    return matrix


def coefficients(moments: Floats, floor: float) -> Floats:
    """Slopes of the last column on the others, eigenvalues raised to a floor, (n_draws, n_predictors)."""
    values, vectors = np.linalg.eigh(moments)
    raised = np.einsum("rij,rj,rkj->rik", vectors, np.maximum(values, floor), vectors)
    slopes: Floats = np.linalg.solve(raised[:, :-1, :-1], raised[:, :-1, -1:])[:, 1:, 0]
    return slopes


def behind_noise(
    rows: Floats, noise: str, epsilon: str, draws: int, rng: np.random.Generator, floor: float | None = None
) -> Floats:
    """Coefficients of noisy moments, (n_draws, n_predictors)."""
    z = np.column_stack([np.ones(len(rows)), rows])
    added = noise_of(rows.shape[1] - 1, noise, epsilon, draws, rng)
    sd = float(np.sqrt(np.mean(added[:, 1, 1] ** 2)))
    return coefficients(z.T @ z + added, FLOOR * sd if floor is None else floor)


def by_diffprivlib(rows: Floats, epsilon: str, draws: int, rng: np.random.Generator) -> Floats:
    """Fit with diffprivlib, (n_draws, n_predictors)."""
    from diffprivlib.models import LinearRegression

    fits = []
    for _ in range(draws):
        seed = int(rng.integers(2**31))
        model = LinearRegression(
            epsilon=float(epsilon), bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed
        )
        fits.append(model.fit(rows[:, :-1], rows[:, -1]).coef_)
    return np.array(fits)


def by_bins(rows: Floats, epsilon: str, draws: int, rng: np.random.Generator, *, own_mu: bool) -> Floats:
    """Fit with BinAgg, (n_draws, n_predictors)."""
    from binagg import dp_linear_regression
    from binagg.privacy import epsilon_to_mu, mu_from_eps_delta

    mu = epsilon_to_mu(float(epsilon)) if own_mu else mu_from_eps_delta(float(epsilon), DELTA_OF_BINS)
    x = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    bounds = [(1, 1), *[(-1, 1)] * (rows.shape[1] - 1)]
    fits = []
    for _ in range(draws):
        seed = int(rng.integers(2**31))
        fit = dp_linear_regression(x, rows[:, -1], bounds, (-1, 1), mu=mu, random_state=seed)
        fits.append(fit.coefficients[1:])
    return np.array(fits)


def by_graphical_model(rows: Floats, epsilon: str, draws: int, rng: np.random.Generator) -> Floats:
    """Fit to moments of tables that AIM estimates, (n_draws, n_predictors)."""
    import pandas as pd
    from scipy.sparse import identity

    # Neither is used by AIM but for an identity matrix, and both are bound to old versions of NumPy.
    for name in ("autodp", "hdmm", "hdmm.matrix"):
        sys.modules.setdefault(name, ModuleType(name))
    vars(sys.modules["autodp"])["privacy_calibrator"] = None
    vars(sys.modules["hdmm.matrix"])["Identity"] = lambda size: identity(size, format="csr")
    from mbi import Dataset, Domain, GraphicalModel
    from mechanisms.aim import AIM

    GraphicalModel.synthetic_data = lambda *_, **__: None
    columns = rows.shape[1]
    names = [f"x{column}" for column in range(columns)]
    data = Dataset(pd.DataFrame(placed(rows, AIM_BINS), columns=names), Domain(names, [AIM_BINS] * columns))
    workload = [(pair, 1.0) for pair in combinations(names, 2)]
    middle = middles(AIM_BINS)
    powers = np.stack([np.ones(AIM_BINS), middle, middle**2])
    fits = []
    for _ in range(draws):
        np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002
        mechanism = AIM(float(epsilon), DELTA_OF_TABLES, max_model_size=200, max_iters=1000)
        with contextlib.redirect_stdout(io.StringIO()):
            model, _nothing = mechanism.run(data, workload, len(rows), None)
        moments = np.zeros((columns + 1, columns + 1))
        for first, second in combinations(range(columns), 2):
            table = model.project((names[first], names[second])).datavector(flatten=False)
            told = powers @ table @ powers.T
            moments[0, 0] = told[0, 0]
            moments[0, first + 1], moments[0, second + 1] = told[1, 0], told[0, 1]
            moments[first + 1, first + 1], moments[second + 1, second + 1] = told[2, 0], told[0, 2]
            moments[first + 1, second + 1] = told[1, 1]
        moments += np.triu(moments, 1).T
        fits.append(coefficients(moments[None], 0.0)[0])
    return np.array(fits)


def placed(rows: Floats, bins: int) -> NDArray[np.int64]:
    """Return the bin that each value is in."""
    return np.clip(((rows + 1.0) / 2.0 * bins).astype(np.int64), 0, bins - 1)


def middles(bins: int) -> Floats:
    """Return what a bin's values are taken for; a column of two values keeps them."""
    return np.array([-1.0, 1.0]) if bins == 2 else (np.arange(bins) + 0.5) / bins * 2.0 - 1.0


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho of zCDP that gives (epsilon, delta), after `canonne2020discrete`."""

    def log_delta(rho: float) -> float:
        orders = 1.0 + np.geomspace(1e-3, 1e4, 4000)
        bound = (
            (orders - 1) * (orders * rho - epsilon) + (orders - 1) * np.log1p(-1 / orders) - np.log(orders)
        )
        return float(bound.min())

    return float(brentq(lambda rho: log_delta(rho) - math.log(delta), 1e-9, 10.0))


def by_marginals(rows: Floats, epsilon: str, draws: int, bins: int, rng: np.random.Generator) -> Floats:
    """Fit to moments of noisy tables of all pairs of columns, (n_draws, n_predictors).

    What several tables tell is the mean of what they tell.
    """
    columns = rows.shape[1]
    pairs = list(combinations(range(columns), 2))
    sigma = math.sqrt(len(pairs) / (2.0 * rho_of(float(epsilon), DELTA_OF_TABLES)))
    place, values = placed(rows, bins), middles(bins)
    a, b = np.repeat(values, bins), np.tile(values, bins)
    total = np.zeros((draws, columns + 1, columns + 1))
    times = np.zeros((columns + 1, columns + 1))
    for first, second in pairs:
        table = np.bincount(place[:, first] * bins + place[:, second], minlength=bins * bins)
        noisy = table + sigma * rng.standard_normal((draws, bins * bins))
        numbers = {
            (0, 0): 1.0 + 0.0 * a,
            (0, first + 1): a,
            (0, second + 1): b,
            (first + 1, second + 1): a * b,
        }
        numbers |= {(first + 1, first + 1): a * a, (second + 1, second + 1): b * b}
        for (i, j), weights in numbers.items():
            total[:, i, j] += noisy @ weights
            times[i, j] += 1
    moments = total / np.maximum(times, 1)
    moments += np.swapaxes(np.triu(moments, 1), 1, 2)
    sd = sigma * float(np.sqrt(np.sum(a**4) / (columns - 1)))
    return coefficients(moments, FLOOR * sd)


def contenders(
    rows: Floats, epsilon: str, draws: int, slow: int, few: int, rng: np.random.Generator
) -> Iterator[tuple[str, Callable[[], list[Floats]]]]:
    """Yield what fits, by name: the coefficients, of several settings where the best in hindsight counts."""
    yield "cone", lambda: [behind_noise(rows, "cone", epsilon, draws, rng)]
    yield "laplace", lambda: [behind_noise(rows, "laplace", epsilon, draws, rng)]
    yield "cone, one record", lambda: [behind_noise(rows, "cone", epsilon, draws, rng, 1.0)]
    yield "laplace, one record", lambda: [behind_noise(rows, "laplace", epsilon, draws, rng, 1.0)]
    yield "zero", lambda: [np.zeros((2, rows.shape[1] - 1))]
    yield "diffprivlib", lambda: [by_diffprivlib(rows, epsilon, slow, rng)]
    yield "BinAgg", lambda: [by_bins(rows, epsilon, slow, rng, own_mu=False)]
    yield "BinAgg, mu", lambda: [by_bins(rows, epsilon, few, rng, own_mu=True)]
    yield "marginals", lambda: [by_marginals(rows, epsilon, slow, bins, rng) for bins in BINS]
    yield "DD-SSP", lambda: [by_graphical_model(rows, epsilon, few, rng)]


def median_with_error(errors: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return the median and the bootstrap's standard error of its logarithm."""
    resampled = np.median(rng.choice(errors, (RESAMPLES, len(errors))), axis=1)
    return float(np.median(errors)), float(np.std(np.log(resampled)))


def ratio(above: tuple[float, float], below: tuple[float, float]) -> str:
    """Return the ratio of two medians with its standard error."""
    value = above[0] / below[0]
    return f"{value:.2f} ({value * math.hypot(above[1], below[1]):.2f})"


def compared(
    rows: Floats, epsilon: str, given: Any, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Return medians of the errors and their standard errors, by contender."""
    z = np.column_stack([np.ones(len(rows)), rows])
    fit = np.linalg.lstsq(z[:, :-1], z[:, -1], rcond=None)[0][1:]
    medians = {}
    for name, fitted in contenders(rows, epsilon, given.draws, given.slow_draws, given.few_draws, rng):
        if name not in given.only:
            continue
        try:
            every = [np.abs(slopes - fit).mean(axis=1) for slopes in fitted()]
        except ImportError:
            continue
        medians[name] = median_with_error(min(every, key=lambda errors: float(np.median(errors))), rng)
    return medians


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--predictors", type=int, nargs="+", default=[1, 2, 4, 7])
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "1"])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--slow-draws", type=int, default=200)
    parser.add_argument("--few-draws", type=int, default=40)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--only", nargs="+", default=DEFAULT)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [
        name
        for name, _ in contenders(np.zeros((1, 2)), "1", 1, 1, 1, np.random.default_rng())
        if name in given.only
    ]
    print(f"{given.rows:,} rows; cone: median error; others: their median over that (standard error)\n")
    print("| epsilon | predictors | rows | " + " | ".join(names) + " |")
    print("|---|---|---|" + "---|" * len(names))
    for epsilon in given.epsilon:
        for predictors in given.predictors:
            for name in given.sets:
                rng = np.random.default_rng(predictors)
                rows = rows_of(name, given.data, predictors, rng, given.rows)
                medians = compared(rows, epsilon, given, rng)
                ours = medians["cone"]
                cells = [f"{ours[0]:.4f}"] + [
                    ratio(medians[other], ours) if other in medians else ""
                    for other in names
                    if other != "cone"
                ]
                print(f"| {epsilon} | {predictors} | {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{time.process_time():.0f} CPU s")


if __name__ == "__main__":
    main()
