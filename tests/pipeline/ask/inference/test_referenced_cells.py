"""Likelihoods of cells of one-sum families for populations, beside sums over all N and all latent sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, gamma, nbinom

from suffice.pipeline.ask.inference.referenced_cells import ReferencedCells
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.typing import Floats

X = np.linspace(-4.0, 3.0, 85)
LARGEST = 40


def noise(released: float, sums: Any, scale: float) -> Any:
    return np.exp(-np.abs(released - sums) / scale)


def binomial(p: Floats, n: int, row: list[int], scale: float) -> Floats:
    sums = np.arange(4 * n + 1)
    both = noise(row[0], sums, scale) * noise(row[1], 4 * n - sums, scale)
    return np.asarray(binom.pmf(sums, 4 * n, expit(p)[:, None]) @ both)


def geometric(p: Floats, n: int, row: list[int], scale: float) -> Floats:
    sums = np.arange(400)
    both = noise(row[0], sums, scale) * noise(row[1], 12 * n - sums, scale)
    return np.asarray(nbinom.pmf(sums, n, expit(p)[:, None]) @ both if n else np.full(len(p), both[0]))


def exponential(rate: Floats, n: int, row: list[int], scale: float) -> Floats:
    steps = 1024
    if n == 0:
        return np.full(len(rate), noise(row[0], 0.0, scale) * noise(row[1], 0.0, scale))
    # Sums from 0 to 10 bounds, by the midpoint rule.
    amount = (np.arange(2_000) + 0.5) * (10.0 * steps / 2_000)
    both = noise(row[0], amount, scale) * noise(row[1], steps * n - amount, scale)
    density = gamma.pdf(amount * 8.0 / steps, n, scale=np.exp(-rate)[:, None])
    return np.asarray(density @ both) * (8.0 / steps) * (10.0 * steps / 2_000)


CASES: dict[str, tuple[Any, Any, list[list[int]]]] = {
    "binomial": (
        {"family": "binomial", "column": "x", "trials": "4"},
        binomial,
        [[9, 31], [-3, 5], [30, 12]],
    ),
    "geometric": (
        {"family": "geometric", "column": "x", "upper": "12"},
        geometric,
        [[20, 90], [3, -8], [44, 160]],
    ),
    "exponential": (
        {"family": "exponential", "column": "x", "upper": "8", "lattice_bits": 10},
        exponential,
        [[2100, 7900], [-300, 2500]],
    ),
}


@pytest.mark.parametrize("family", list(CASES), ids=list(CASES))
def test_nodes_have_the_integrals_of_sums_over_everything(family: str) -> None:
    statistic, brute, values = CASES[family]
    plan = statistic_plan(statistic, epsilon="0.5", public_n=False)
    cells = ReferencedCells.of(noisy_statistic(plan, np.array(values)), Reciprocal(10**12))
    assert cells.has_sizes
    nodes = cells.nodes(np.arange(len(values)), Focus(centre=-0.5, width=0.2))
    slope, moved = 0.7, []

    def population(x: Floats, v: Floats) -> Floats:
        return np.exp(-0.5 * ((x - slope * (v - 2.0) + 0.5) / 0.6) ** 2)

    scale = float(plan.scale)
    for cell, row in enumerate(values):
        numbers = np.arange(LARGEST)
        likelihood = np.stack([brute(X, int(n), row, scale) / (n + 1.0) for n in numbers], axis=1)
        exact = likelihood * population(X[:, None], np.log1p(numbers))
        with_slope = nodes.weight[cell] * population(nodes.position[cell][:, None], nodes.log_size[cell])
        without = nodes.weight[cell] * population(nodes.position[cell][:, None], np.full(1, 2.0))
        (mean, sd), (answer, width), (control, _) = (
            moments(each, x)
            for each, x in ((exact, X), (with_slope, nodes.position[cell]), (without, nodes.position[cell]))
        )
        assert answer == pytest.approx(mean, abs=0.02 * sd)
        assert width == pytest.approx(sd, rel=0.02)
        moved.append(abs(control - mean) / sd)
    # Control: sizes that are forgotten move the answers.
    assert max(moved) > 0.1


def moments(weight: Floats, x: Floats) -> tuple[float, float]:
    share = np.sum(weight, axis=1) / np.sum(weight)
    mean = float(share @ x)
    return mean, float(np.sqrt(share @ (x - mean) ** 2))


def test_a_known_number_of_records_has_no_sizes() -> None:
    plan = statistic_plan(CASES["binomial"][0], epsilon="0.5", public_n=True)
    statistic = noisy_statistic(plan, np.array([[9], [30]]), public_n=20)
    cells = ReferencedCells.of(statistic, Fixed(20))
    assert not cells.has_sizes
    assert cells.nodes(np.arange(2), Focus(centre=0.0, width=0.5)).weight.shape[2] == 1
