r"""Coverage and error of cells that borrow strength, over simulated releases.

Run it as ``python benchmarks/pooled_coverage.py [--releases 20] [--cells 100]``.

A release has K cells of lognormal sizes (median N0, a standard deviation of 1), whose probabilities come from
one of five truths, four of them not of the model; both counts have discrete Laplace noise of scale 1 /
epsilon. Beside the pooled posterior stand each cell alone (a uniform prior), the pooled one with
hyperparameters plugged in at their mode, that without a slope, and an oracle that knows the law of the
probabilities. A line gives, of 95 % intervals, the share that hold the truth: of all cells, of the smallest
third, of the worst tenth of releases; then ratios of root mean squared errors and of widths.

Few cells decide a mean squared error: of 2 % outliers, a small one that noise hides is drawn to the others,
and weighs as much as hundreds of cells. The error alone over pooled has a standard error, and that alone over
the oracle stands beside it.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.count_cells import CountCells
from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution, mixture_over
from suffice.pipeline.math.engines.pooled.hyperparameters import fitted
from suffice.pipeline.math.engines.pooled.normal import normal_density
from suffice.pipeline.math.engines.pooled.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats

SLOPE = 0.5
ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class Truth:
    """A law of logits: how it is drawn, its density, and its slope on log size."""

    draw: Callable[[int, np.random.Generator], Floats]
    density: Callable[[Floats], Floats]
    slope: float = 0.0


def _normals(*parts: tuple[float, float, float]) -> Truth:
    """Return a mixture of normal laws: shares, means and standard deviations."""
    shares, means, sds = map(np.array, zip(*parts, strict=True))

    def draw(n: int, rng: np.random.Generator) -> Floats:
        part = rng.choice(len(shares), n, p=shares)
        return np.asarray(rng.normal(means[part], sds[part]))

    return Truth(draw, lambda z: np.asarray(shares @ normal_density(z, means, sds)))


def _beta(a: float, b: float) -> Truth:
    from scipy.special import betaln

    return Truth(
        lambda n, rng: Line.LOGIT.position(rng.beta(a, b, n)),
        lambda z: np.exp(-a * np.logaddexp(0.0, -z) - b * np.logaddexp(0.0, z) - betaln(a, b)),
    )


TRUTHS = {
    "logit-normal": _normals((1.0, -2.2, 0.5)),
    "beta": _beta(4.0, 36.0),
    "bimodal": _normals((0.7, -3.0, 0.25), (0.3, -1.0, 0.25)),
    "linked to size": dataclasses.replace(_normals((1.0, -2.3, 0.3)), slope=SLOPE),
    "2 % outliers": _normals((0.98, -2.2, 0.4), (0.02, 0.8, 0.2)),
}


@dataclass(frozen=True)
class Known:
    """A population that is known: the oracle's, or a uniform prior."""

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


@dataclass(frozen=True)
class Simulated:
    """A release, and what is true of it."""

    cells: CountCells
    probability: Floats
    size: Floats


def simulated(truth: Truth, n0: float, epsilon: float, n_cells: int, rng: np.random.Generator) -> Simulated:
    """Draw sizes, probabilities, counts and noise."""
    size = np.maximum(np.rint(np.exp(rng.normal(np.log(n0), 1.0, n_cells))), 1.0)
    logit = truth.draw(n_cells, rng) + truth.slope * (np.log1p(size) - np.log1p(n0))
    probability = Line.LOGIT.parameter(logit)
    true = rng.binomial(size.astype(np.int64), probability)
    success = -np.expm1(-epsilon)

    def released(count: Floats) -> NoisyCount:
        noise = rng.geometric(success, n_cells) - rng.geometric(success, n_cells)
        return NoisyCount(
            values=(count + noise)[:, None].astype(np.float64), scales=np.array([1.0 / epsilon])
        )

    cells = CountCells(true=released(true), false=released(size - true), n_prior=Reciprocal(10**12))
    return Simulated(cells, probability, size)


def answers(release: Simulated, truth: Truth, n0: float) -> dict[str, PooledDistribution]:
    """Return the posteriors that are compared, by name."""
    population = POPULATIONS[Line.LOGIT][DEFAULT]
    hyper, blocks = fitted(release.cells, population, Line.LOGIT)
    best = np.unravel_index(np.argmax(hyper.weight), hyper.weight.shape)
    mode = np.zeros_like(hyper.weight)
    mode[best] = 1.0
    known = dataclasses.replace(
        hyper, slope=np.array([truth.slope]), weight=np.ones((1, 1)),
        location=np.zeros((1, 1)), spread=np.ones((1, 1)), drawn_spread=np.ones((1, 1)),
        grid=dataclasses.replace(hyper.grid, origin=float(np.log1p(n0))),
    )  # fmt: skip
    uniform = Known(lambda z: np.exp(-np.abs(z)) / (1.0 + np.exp(-np.abs(z))) ** 2)
    alone = dataclasses.replace(known, slope=np.zeros(1))
    flat = NoSizes(release.cells)
    return {
        "pooled": mixture_over(hyper, blocks, population, "probability", Line.LOGIT),
        "plug-in": mixture_over(
            dataclasses.replace(hyper, weight=mode), blocks, population, "probability", Line.LOGIT
        ),
        "no slope": mixture_over(
            *fitted(flat, population, Line.LOGIT), population, "probability", Line.LOGIT
        ),
        "alone": mixture_over(alone, blocks, uniform, "probability", Line.LOGIT),
        "oracle": mixture_over(known, blocks, Known(truth.density), "probability", Line.LOGIT),
    }


@dataclass(frozen=True)
class NoSizes:
    """The same cells, whose sizes are not told: no slope is taken."""

    cells: CountCells
    has_sizes: ClassVar[bool] = False

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self.cells.n_cells

    @property
    def middle(self) -> float:
        """As that of the cells."""
        return self.cells.middle

    def nodes(self, cells: np.ndarray, focus: object) -> object:
        """As those of the cells."""
        return self.cells.nodes(cells, focus)  # type: ignore[arg-type]


def study(truth: Truth, n0: float, epsilon: float, n_cells: int, releases: int, seed: int) -> str:
    """Return a line of the table."""
    rng = np.random.default_rng(seed)
    covered: dict[str, list[Floats]] = {}
    small, error, width = [], dict[str, list[float]](), dict[str, float]()
    for _ in range(releases):
        release = simulated(truth, n0, epsilon, n_cells, rng)
        is_small = np.argsort(np.argsort(release.size)) < n_cells // 3
        small.append(is_small)
        for name, answer in answers(release, truth, n0).items():
            low, high = answer.quantiles("probability", ENDS, 0, rng).T
            covered.setdefault(name, []).append((low <= release.probability) & (release.probability <= high))
            gap = answer.mean("probability") - release.probability
            error.setdefault(name, []).append(float(np.mean(gap**2)))
            width[name] = width.get(name, 0.0) + float(np.mean(high - low))
    of_releases = np.sort(np.mean(covered["pooled"], axis=1))
    worst = of_releases[: max(1, len(of_releases) // 10)]
    shares = [
        np.mean(covered["pooled"]),
        np.mean(np.array(covered["pooled"])[np.array(small)]),
        np.mean(worst),
    ]
    others = [
        np.mean(covered["plug-in"]),
        np.mean(covered["no slope"]),
        np.mean(np.array(covered["no slope"])[np.array(small)]),
    ]
    errors = [
        *ratio_of_errors(error["alone"], error["pooled"]),
        ratio_of_errors(error["alone"], error["oracle"])[0],
        ratio_of_errors(error["no slope"], error["pooled"])[0],
    ]
    widths = [width["pooled"] / width["alone"], width["pooled"] / width["oracle"]]
    return " | ".join(
        [f"{share:.3f}" for share in (*shares, *others)] + [f"{ratio:.2f}" for ratio in (*errors, *widths)]
    )


def ratio_of_errors(more: list[float], less: list[float]) -> tuple[float, float]:
    """Return the ratio of root mean squared errors over releases, and its standard error to first order."""
    a, b = np.array(more) / np.mean(more), np.array(less) / np.mean(less)
    ratio = float(np.sqrt(np.mean(more) / np.mean(less)))
    return ratio, 0.5 * ratio * float(np.std(a - b)) / max(len(more) - 1, 1) ** 0.5


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--sizes", type=float, nargs="+", default=[10.0, 100.0, 1000.0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0])
    asked = parser.parse_args()
    print(
        "| truth | N0 | epsilon | all | small | worst tenth | plug-in | no slope | no slope, small "
        "| error alone | standard error | error alone / oracle | error no slope | width / alone "
        "| width / oracle |"
    )
    print("|---" * 15 + "|")
    start = time.process_time()
    for name, truth in TRUTHS.items():
        for n0 in asked.sizes:
            for epsilon in asked.epsilons:
                line = study(truth, n0, epsilon, asked.cells, asked.releases, asked.seed)
                print(f"| {name} | {n0:g} | {epsilon:g} | {line} |", flush=True)
    print(f"{asked.releases} releases of {asked.cells} cells a line, {time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()
