r"""Two categories on a tree: a tree each, or the rates of leaves linked by blocked sampling.

    PYTHONPATH=tests:. python benchmarks/tree_rates.py WORLD EPSILON TREES [SWEEPS]

What is given: noisy counts of both categories at every node. *Apart*: a posterior for each category, as
``CountTree`` has it. *Linked*: a leaf has a rate and a probability,

.. math::
    n_{i1} \sim \mathrm{Poisson}(\lambda_i p_i), \quad
    n_{i0} \sim \mathrm{Poisson}(\lambda_i (1 - p_i)), \quad
    \lambda_i \sim \mathrm{Gamma}(a, a / m), \quad
    \operatorname{logit} p_i \sim \mathrm N(\beta_0 + \beta_1 (\log \lambda_i - 3), \tau^2). \qquad (1)

A sweep draws (i) all counts of each category given the leaves' means, exactly, by messages up the tree and
draws down it; (ii) rates, probabilities and hyperparameters given counts, by Gibbs and Metropolis steps. The
slope is normal with standard deviation 1, :math:`\beta_0` with 3, :math:`\tau` half-normal with 1, and the
mean and spread of the rates have the hyperpriors of ``populations``.

Worlds are not of (1): sizes are lognormal with correlated states, a fifth of the leaves are empty.
``level``: probabilities logit-normal about .18 with .5; ``tied``: with a slope of .7 on the log size;
``two``: .05 or .6, at random.

A row for each quantity: coverage of 95 % intervals with its standard error over trees, mean width, root mean
squared error of medians. Shares are of the exact counts, where these are above 0.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, gammaln, xlogy

from suffice.pipeline.math.engines.tree.drawing import draw_tree
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.passes import Passer
from suffice.pipeline.math.engines.tree.populations import POPULATIONS, Population
from suffice.pipeline.math.engines.tree.posterior import TAIL, tree_posterior
from support.tree_worlds import Setting

if TYPE_CHECKING:
    from suffice.typing import Counts, Floats

SWEEPS, DRAWS = 1_200, 1_000
CENTRE = 3.0
MASS = (0.025, 0.5, 0.975)
Levels = list["Counts"]


class GivenMeans(Population):
    """Poisson counts whose means are the sizes."""

    name, n_hyperparameters = "given-means", 0

    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:  # noqa: ARG002
        """Return log probabilities."""
        weight: Floats = xlogy(counts, sizes) - sizes - gammaln(counts + 1.0)
        return weight


def drawn_counts(tree: NoisyTree, means: Floats, rng: np.random.Generator) -> Levels:
    """Draw all counts of a tree given its leaves' means."""
    upward = Passer.of(replace(tree, sizes=np.maximum(means, 1e-9)), GivenMeans(), 1e-9).up(np.zeros(2))
    drawn = [np.empty((1, tree.n_nodes(level)), np.int64) for level in range(tree.depth + 1)]
    draw_tree(upward, drawn, np.zeros(1, np.int64), rng)
    return [level[0] for level in drawn]


class Sampler:
    """The state of (1)."""

    def __init__(self, trees: tuple[NoisyTree, NoisyTree], rng: np.random.Generator) -> None:
        self.trees, self.rng = trees, rng
        n = trees[0].n_leaves
        leaves = np.maximum(np.stack([tree.values[-1] for tree in trees]).astype(float), 0.3)
        self.log_rate = np.log(leaves.sum(axis=0))
        share = float(leaves[1].sum() / leaves.sum())
        self.logit = np.full(n, math.log(share / (1.0 - share)))
        self.slope, self.tau = np.array([self.logit[0], 0.0]), 0.5
        self.log_mean, self.log_spread = float(np.log(np.exp(self.log_rate).mean())), 0.0

    def sweep(self, steps: int = 4) -> tuple[Levels, Levels]:
        """Draw once."""
        rng = self.rng
        rate, p = np.exp(self.log_rate), expit(self.logit)
        counts = (
            drawn_counts(self.trees[0], rate * (1.0 - p), rng),
            drawn_counts(self.trees[1], rate * p, rng),
        )
        no, yes = counts[0][-1], counts[1][-1]
        total = no + yes
        for _ in range(steps):
            # Probabilities: Metropolis, with steps as wide as binomial noise and the prior let them be.
            wide = 2.0 / np.sqrt(1.0 / self.tau**2 + total * expit(self.logit) * expit(-self.logit) + 0.1)
            proposed = self.logit + wide * rng.normal(size=len(total))
            back = 2.0 / np.sqrt(1.0 / self.tau**2 + total * expit(proposed) * expit(-proposed) + 0.1)
            expected = self.expected()

            def of_logit(logit: Floats, expected: Floats = expected) -> Floats:
                return (
                    -yes * np.logaddexp(0.0, -logit)
                    - no * np.logaddexp(0.0, logit)
                    - 0.5 * ((logit - expected) / self.tau) ** 2
                )

            step = (proposed - self.logit) ** 2
            ratio = of_logit(proposed) - of_logit(self.logit)
            ratio += -np.log(back) - 0.5 * step / back**2 + np.log(wide) + 0.5 * step / wide**2
            self.logit = np.where(np.log(rng.random(len(total))) < ratio, proposed, self.logit)
            # Rates: the gamma law that counts alone leave, taken or not by what probabilities say of it.
            a = math.exp(-2.0 * self.log_spread)
            # Of a small shape by that of one more, whose logarithm does not underflow.
            rates = np.log(rng.gamma(a + total + 1.0)) + np.log(rng.random(len(total))) / (a + total)
            rates -= math.log1p(a * math.exp(-self.log_mean))
            ratio = -0.5 * ((self.logit - self.expected(rates)) / self.tau) ** 2
            ratio += 0.5 * ((self.logit - self.expected()) / self.tau) ** 2
            self.log_rate = np.where(np.log(rng.random(len(total))) < ratio, rates, self.log_rate)
            self.hyperparameters()
        return counts

    def expected(self, log_rate: Floats | None = None) -> Floats:
        """Return the mean of logits; a rate below 1 counts as 1, as nothing is known of its logarithm."""
        log_rate = self.log_rate if log_rate is None else log_rate
        result: Floats = self.slope[0] + self.slope[1] * (np.maximum(log_rate, 0.0) - CENTRE)
        return result

    def hyperparameters(self) -> None:
        """Draw the slope exactly, spreads and the mean by Metropolis."""
        rng = self.rng
        x = np.stack([np.ones_like(self.log_rate), np.maximum(self.log_rate, 0.0) - CENTRE])
        precision = x @ x.T / self.tau**2 + np.diag([1.0 / 9.0, 1.0])
        factor = np.linalg.cholesky(np.linalg.inv(precision))
        self.slope = factor @ (factor.T @ (x @ self.logit / self.tau**2) + rng.normal(size=2))
        squared = float(((self.logit - self.expected()) ** 2).sum())
        n = len(self.logit)

        def of_tau(log_tau: float) -> float:
            tau = math.exp(log_tau)
            return -(n - 1) * log_tau - 0.5 * squared / tau**2 - 0.5 * tau**2

        log_tau = math.log(self.tau)
        for _ in range(3):
            proposed = log_tau + 1.5 / math.sqrt(n) * rng.normal()
            if proposed > -4.0 and math.log(rng.random()) < of_tau(proposed) - of_tau(log_tau):
                log_tau = proposed
        self.tau = math.exp(log_tau)
        total, logs = float(np.exp(self.log_rate).sum()), float(self.log_rate.sum())

        def of_rates(log_mean: float, log_spread: float) -> float:
            a = math.exp(-2.0 * log_spread)
            prior = POPULATIONS["contaminated"].log_hyperprior(np.array([log_mean, log_spread]))
            shape = n * (a * (math.log(a) - log_mean) - math.lgamma(a))
            return prior + shape + a * logs - a * math.exp(-log_mean) * total

        here = of_rates(self.log_mean, self.log_spread)
        for _ in range(3):
            mean = self.log_mean + 1.5 / math.sqrt(n) * rng.normal()
            spread = self.log_spread + 1.0 / math.sqrt(n) * rng.normal()
            there = of_rates(mean, spread)
            if math.log(rng.random()) < there - here:
                self.log_mean, self.log_spread, here = mean, spread, there


def world(
    name: str, setting: Setting, rng: np.random.Generator
) -> tuple[tuple[NoisyTree, NoisyTree], list[Counts], list[Counts]]:
    """Draw a tree with two categories, and what is released of it."""
    whole, counts, _ = setting.world(rng)
    leaves = counts[-1]
    logit = -1.5 + 0.5 * rng.normal(size=len(leaves))
    if name == "tied":
        logit += 0.7 * (np.log(np.maximum(leaves, 1)) - CENTRE)
    p = np.where(rng.random(len(leaves)) < 0.25, 0.6, 0.05) if name == "two" else expit(logit)
    yes = rng.binomial(leaves, p)
    both, trees = [], []
    for of_leaves in (leaves - yes, yes):
        levels = [of_leaves]
        for above in reversed(whole.parents):
            levels.insert(0, np.bincount(above, levels[0]).astype(np.int64))
        values = []
        for exact, scale in zip(levels, setting.scales, strict=True):
            share = -np.expm1(-1.0 / scale)
            values.append(exact + rng.geometric(share, len(exact)) - rng.geometric(share, len(exact)))
        both.append(levels)
        trees.append(NoisyTree(parents=whole.parents, values=tuple(values), scales=setting.scales))
    return (trees[0], trees[1]), both[0], both[1]


def apart(trees: tuple[NoisyTree, NoisyTree], rng: np.random.Generator) -> tuple[Levels, Levels]:
    """Draw from a posterior for each category, (n_draws, n_nodes) by level."""
    first, second = (tree_posterior(tree, POPULATIONS["contaminated"], tail=TAIL) for tree in trees)
    return list(first.draws(DRAWS, rng)), list(second.draws(DRAWS, rng))


def linked(
    trees: tuple[NoisyTree, NoisyTree], rng: np.random.Generator, sweeps: int
) -> tuple[Levels, Levels]:
    """Draw by blocked sampling, a sixth of the sweeps left out."""
    sampler = Sampler(trees, rng)
    kept = [sampler.sweep() for _ in range(sweeps)][sweeps // 6 :]
    depth = trees[0].depth
    no, yes = ([np.stack([draw[k][at] for draw in kept]) for at in range(depth + 1)] for k in (0, 1))
    return no, yes


def effective(draws: Floats) -> float:
    """Return the effective number of a chain's draws, from its autocorrelations while these are positive."""
    x = draws - draws.mean()
    n = len(x)
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2
    r = np.fft.irfft(spectrum)[:n]
    if r[0] <= 0.0:
        return float(n)
    r = r / r[0]
    pairs = r[: n - n % 2].reshape(-1, 2).sum(axis=1)
    last = int(np.argmax(pairs < 0.0)) if (pairs < 0.0).any() else len(pairs)
    return float(n / max(2.0 * pairs[:last].sum() - 1.0, 1.0))


def main() -> None:
    """Run a world."""
    name, epsilon, n_trees = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    sweeps = int(sys.argv[4]) if len(sys.argv) > 4 else SWEEPS
    setting = Setting(shares=(1, 2, 4), epsilon=epsilon)
    rng = np.random.default_rng()
    rows: dict[tuple[str, str], list[Floats]] = {}
    seconds = {"apart": 0.0, "linked": 0.0}
    chain = []
    for _ in range(n_trees):
        trees, no, yes = world(name, setting, rng)
        for method in seconds:
            begin = time.process_time()
            drawn = apart(trees, rng) if method == "apart" else linked(trees, rng, sweeps)
            seconds[method] += time.process_time() - begin
            if method == "linked":
                chain.append(np.median([effective(leaf) for leaf in drawn[1][-1].T.astype(float)]))
            for level, place in (("root", 0), ("state", 1), ("leaf", 2)):
                whole, exact = drawn[0][place] + drawn[1][place], no[place] + yes[place]
                share = np.where(whole > 0, drawn[1][place] / np.maximum(whole, 1), np.nan)
                true = np.where(exact > 0, yes[place] / np.maximum(exact, 1), np.nan)
                sizes = [(level, exact > 0)]
                if level == "leaf":
                    sizes = [("leaf < 20", (exact > 0) & (exact < 20)), ("leaf >= 20", exact >= 20)]
                for of, draws, truth in (
                    ("share", share, true),
                    ("rarer", drawn[1][place], yes[place]),
                    ("all", whole, exact),
                ):
                    low, middle, high = np.nanquantile(draws, MASS, axis=0, method="inverted_cdf")
                    held = (low <= truth) & (truth <= high)
                    for size, chosen in sizes:
                        summed = [
                            held[chosen].sum(),
                            (high - low)[chosen].sum(),
                            ((middle - truth)[chosen] ** 2).sum(),
                            chosen.sum(),
                        ]
                        rows.setdefault((f"{size}, {of}", method), []).append(np.array(summed, float))
    print(f"{name}, epsilon {epsilon}: {n_trees} trees; coverage, width, root mean squared error")
    for (what, method), several in rows.items():
        inside, width, squared, number = np.array(several).T
        coverage = inside.sum() / number.sum()
        error = np.sqrt(((inside - coverage * number) ** 2).sum()) / number.sum()
        digits = 4 if "share" in what else 2
        print(
            f"{what:18} {method:7} {int(number.sum()):6d} {coverage:.3f} ({error:.3f}) "
            f"{width.sum() / number.sum():9.{digits}f} {np.sqrt(squared.sum() / number.sum()):9.{digits}f}"
        )
    cost = {method: round(total / n_trees, 2) for method, total in seconds.items()}
    print(cost, "CPU s a tree; effective draws of a leaf's rarer count", round(float(np.median(chain))))


if __name__ == "__main__":
    main()
