r"""Coverage and error of cells whose location depends on covariates, over simulated releases.

Run it as ``python benchmarks/pooled_covariates.py [--releases 20] [--cells 100]``.

A release has K cells of lognormal sizes (median N0, a standard deviation of 1), four covariates of which two
are in the truth, and both counts have discrete Laplace noise of scale 1 / epsilon. Truths of the logit:

- linear: -2.2 + .6 x_1 - .3 x_2 + Normal(0, .3^2)
- a missing square: the same and .25 (x_1^2 - 1), which the formula does not have
- irrelevant: -2.2 + Normal(0, .5^2); all four covariates are noise
- outliers: linear, but 3 % of the cells have 2.5 more

Beside the posterior with covariates stand the pooled one without, Fay and Herriot's model of noisy direct
estimates with the same covariates (empirical logits of the noisy counts, the delta method's variances with
the noise in them, flat hyperpriors integrated over), and an oracle that knows the law of every cell. Columns:
what 95 % intervals hold (all cells, the smallest third, the worst tenth of releases; then without covariates,
and of Fay and Herriot); root mean squared errors of others over that with covariates, and of that over the
oracle's; widths of intervals likewise. At the end 1,000 cells with four covariates are timed.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pooled_coverage import ENDS, Known, NoSizes
from scipy.special import expit

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.distribution import mixture_over, pooled_distribution
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
from suffice.pipeline.math.engines.pooled.normal import normal_density
from suffice.pipeline.math.engines.pooled.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.engines.pooled.regression import Residuals
from suffice.pipeline.math.engines.pooled.regression_distribution import regression_distribution
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from suffice.typing import Floats

TRUTHS = ("linear", "a missing square", "irrelevant", "outliers")
POPULATION = POPULATIONS[Line.LOGIT][DEFAULT]


@dataclass(frozen=True)
class Simulated:
    """A release, its covariates, and what is true of it."""

    cells: CountCells
    design: Floats
    known: Floats
    sd: float
    probability: Floats
    size: Floats


def simulated(truth: str, n0: float, epsilon: float, n_cells: int, rng: np.random.Generator) -> Simulated:
    """Draw sizes, covariates, probabilities, counts and noise."""
    size = np.maximum(np.rint(np.exp(rng.normal(np.log(n0), 1.0, n_cells))), 1.0)
    x = rng.normal(size=(n_cells, 4))
    known, sd = np.full(n_cells, -2.2), 0.5
    if truth != "irrelevant":
        known, sd = known + 0.6 * x[:, 0] - 0.3 * x[:, 1], 0.3
    if truth == "a missing square":
        known = known + 0.25 * (x[:, 0] ** 2 - 1.0)
    logit = known + rng.normal(0.0, sd, n_cells)
    if truth == "outliers":
        logit = logit + 2.5 * (rng.random(n_cells) < 0.03)
    probability = expit(logit)
    true = rng.binomial(size.astype(np.int64), probability)
    success = -np.expm1(-epsilon)

    def released(count: Floats) -> NoisyCount:
        noise = rng.geometric(success, n_cells) - rng.geometric(success, n_cells)
        return NoisyCount(
            values=(count + noise)[:, None].astype(np.float64), scales=np.array([1.0 / epsilon])
        )

    cells = CountCells(true=released(true), false=released(size - true), n_prior=Reciprocal(10**12))
    design = x - np.mean(x, axis=0)
    return Simulated(cells, design / np.std(design, axis=0), known, sd, probability, size)


def fay_herriot(release: Simulated) -> tuple[Floats, Floats]:
    """Return means and 95 % intervals by normal theory, hyperparameters integrated over with flat priors."""
    b = float(release.cells.true.scales[0])
    counts = [each.values[:, 0] for each in (release.cells.true, release.cells.false)]
    true, false = (np.maximum(each, 0.0) + 0.5 for each in counts)
    y = np.log(true / false)
    # The delta method: Var(log count) = 1 / count + 2 b^2 / count^2.
    v = sum(1.0 / each + 2.0 * b**2 / each**2 for each in (true, false))
    rows = np.column_stack([np.ones(len(y)), release.design])
    log_weight, means, variances = [], [], []
    spreads = (np.arange(60) + 0.5) / 30.0
    for s in spreads:
        omega = 1.0 / (v + s**2)
        inverse = np.linalg.inv((rows.T * omega) @ rows)
        beta = inverse @ rows.T @ (omega * y)
        gap = y - rows @ beta
        log_weight.append(
            0.5 * np.sum(np.log(omega)) - 0.5 * np.sum(omega * gap**2) + 0.5 * np.linalg.slogdet(inverse)[1]
        )
        share = s**2 * omega
        means.append(rows @ beta + share * gap)
        variances.append(share * v + (1.0 - share) ** 2 * np.sum((rows @ inverse) * rows, axis=1))
    weight = np.exp(np.array(log_weight) - np.max(log_weight))
    weight /= np.sum(weight)
    nodes, of_nodes = np.polynomial.hermite_e.hermegauss(15)
    x = np.array(means)[:, :, None] + np.sqrt(variances)[:, :, None] * nodes
    mean = np.einsum("s,h,sch->c", weight, of_nodes / np.sum(of_nodes), expit(x))
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(spreads), 2000, p=weight)
    drawn = np.array(means)[chosen] + np.sqrt(variances)[chosen] * rng.normal(size=(2000, len(y)))
    return mean, expit(np.quantile(drawn, ENDS, axis=0).T)


def answers(release: Simulated) -> dict[str, tuple[Floats, Floats]]:
    """Return means and intervals of what is compared, by name."""
    arguments = (POPULATION, "probability", Line.LOGIT)
    everything = np.arange(release.cells.n_cells)
    # The oracle: what is left of positions is Normal(0, sd^2).
    hyper, _ = fitted(NoSizes(release.cells), POPULATION, Line.LOGIT)
    known = dataclasses.replace(
        hyper, slope=np.zeros(1), weight=np.ones((1, 1)),
        location=np.zeros((1, 1)), spread=np.ones((1, 1)), drawn_spread=np.ones((1, 1)),
        spread_slope=np.zeros((1, 1)),
        grid=dataclasses.replace(hyper.grid, focus=Focus(centre=0.0, width=release.sd / 2, reach=1.0)),
    )  # fmt: skip
    blocks = KeptNodes(Residuals(source=release.cells, offset=release.known), everything)
    law = Known(lambda z: normal_density(z, np.zeros(1), np.array([release.sd]))[0])
    oracle = mixture_over(known, blocks, law, "probability", Line.LOGIT)
    oracle = dataclasses.replace(oracle, position=oracle.position + release.known[:, None])
    posteriors = {
        "covariates": regression_distribution(release.cells, *arguments, release.design),
        "without": pooled_distribution(release.cells, *arguments),
        "oracle": oracle,
    }
    rng = np.random.default_rng(0)
    told = {
        name: (each.mean("probability"), each.quantiles("probability", ENDS, 0, rng))
        for name, each in posteriors.items()
    }
    return {**told, "Fay-Herriot": fay_herriot(release)}


def study(truth: str, n0: float, epsilon: float, n_cells: int, releases: int, seed: int) -> str:
    """Return a line of the table."""
    rng = np.random.default_rng(seed)
    covered: dict[str, list[Floats]] = {}
    error: dict[str, list[float]] = {}
    width: dict[str, list[float]] = {}
    small = []
    for _ in range(releases):
        release = simulated(truth, n0, epsilon, n_cells, rng)
        small.append(np.argsort(np.argsort(release.size)) < n_cells // 3)
        for name, (mean, ends) in answers(release).items():
            is_held = (ends[:, 0] <= release.probability) & (release.probability <= ends[:, 1])
            covered.setdefault(name, []).append(is_held)
            error.setdefault(name, []).append(float(np.mean((mean - release.probability) ** 2)))
            width.setdefault(name, []).append(float(np.mean(ends[:, 1] - ends[:, 0])))
    of_releases = np.sort(np.mean(covered["covariates"], axis=1))
    shares = [
        np.mean(covered["covariates"]),
        np.mean(np.array(covered["covariates"])[np.array(small)]),
        np.mean(of_releases[: max(1, releases // 10)]),
        np.mean(covered["without"]),
        np.mean(covered["Fay-Herriot"]),
        np.mean(covered["oracle"]),
    ]
    rms = {name: float(np.sqrt(np.mean(each))) for name, each in error.items()}
    wide = {name: float(np.mean(each)) for name, each in width.items()}
    ratios = [
        *(rms[name] / rms["covariates"] for name in ("without", "Fay-Herriot")),
        rms["covariates"] / rms["oracle"],
        *(wide["covariates"] / wide[name] for name in ("without", "Fay-Herriot", "oracle")),
    ]
    return " | ".join([f"{share:.3f}" for share in shares] + [f"{ratio:.2f}" for ratio in ratios])


def main() -> None:
    """Print the table, and how long 1,000 cells take."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--sizes", type=float, nargs="+", default=[30.0, 300.0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    asked = parser.parse_args()
    print(
        "| truth | N0 | epsilon | covered | small | worst tenth | without | Fay-Herriot | oracle "
        "| error without | error Fay-Herriot | error / oracle | width / without | width / Fay-Herriot "
        "| width / oracle |"
    )
    print("|---" * 15 + "|")
    start = time.process_time()
    for truth in TRUTHS:
        for n0 in asked.sizes:
            for epsilon in asked.epsilons:
                line = study(truth, n0, epsilon, asked.cells, asked.releases, asked.seed)
                print(f"| {truth} | {n0:g} | {epsilon:g} | {line} |", flush=True)
    print(f"{asked.releases} releases of {asked.cells} cells a line, {time.process_time() - start:.0f} CPU s")
    release = simulated("linear", 100.0, 0.5, 1000, np.random.default_rng(asked.seed))
    start = time.process_time()
    answer = regression_distribution(release.cells, POPULATION, "probability", Line.LOGIT, release.design)
    known = answer.hyperparameters.diagnostics
    print(f"1,000 cells, 4 covariates: {time.process_time() - start:.1f} CPU s; {known}")


if __name__ == "__main__":
    main()
