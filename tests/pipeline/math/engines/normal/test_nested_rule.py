"""Nested rules against boxes thirty times as fine, their stated error, and what they leave to boxes."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import gammaincc, stdtr

from suffice.pipeline.math.distributions.many_cells import MOMENT_NODES
from suffice.pipeline.math.engines.normal import nested_rule
from suffice.pipeline.math.engines.normal.covering import SHARE
from suffice.pipeline.math.engines.normal.moment_posterior import MomentPosterior
from suffice.pipeline.math.engines.normal.moment_weights import (
    BERNSTEIN,
    MOMENTS,
    MomentsPrior,
    MomentWeights,
    NoisyMoments,
)
from suffice.pipeline.math.engines.normal.nested_rule import can_integrate, integrate_nested, nodes_of_cells
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from suffice.typing import Floats

SPREAD = [(2.0**-k, 0.0, 4.0**-k, 3.0, 4.0 * 4.0**-k) for k in range(10)]
"""Priors of every scale, as the default one is."""
APART = [(0.2, loc, 0.01, 3.0, 1e-4 * 6.0**k) for k, loc in enumerate((-0.9, 0.4, -0.2, 0.8, 0.0))]
PRECISE = [(0.2, 0.1, 50.0, 3.0, 1e-4 * 6.0**k) for k in range(5)]
WIDE = [(1.0, 0.0, 0.05, 3.0, 3.0 * 10.0 ** (k - 1)) for k in range(10)]
"""Parts that hold little mass, and the variance's moments."""
CONJUGATE = [(1.0, 0.1, 0.5, 3.0, 0.04)]
STEEP = [(1.0, 0.0, 0.01, 12.0, 1.0)]
"""A prior that contradicts cells: most of these is where it has lost many nats."""
QUANTILES = (0.025, 0.5, 0.975)


def cells(
    sums: list[tuple[float, float, float]],
    rate: float,
    n_prior: NPrior,
    prior: list[tuple[float, float, float, float, float]],
    releases: int = 1,
) -> NoisyMoments:
    """Cells of these N, means and variances, in half ranges; noise by a fixed rule, not by the prior."""
    public = isinstance(n_prior, Fixed)
    coefficients = np.array(MOMENTS if public else BERNSTEIN)
    moments = np.array([(n, n * mean, n * (variance + mean**2)) for n, mean, variance in sums])
    pattern = np.array([0.7, -1.3, 0.4, -0.2, 1.9, -0.6])[: releases * len(coefficients)]
    values = np.tile(moments @ coefficients.T, (1, releases)) + pattern / rate
    return NoisyMoments(
        totals=NoisyTotals(
            values=values,
            scale=np.full(releases * len(coefficients), 1.0 / rate),
            coefficients=np.tile(coefficients, (releases, 1)),
            releases=releases,
        ),
        prior=MomentsPrior.of(prior),
        n_prior=n_prior,
    )


SUMS = [
    (0.0, 0.0, 0.0),
    (1.0, 0.4, 0.0),
    (3.0, 0.2, 0.1),
    (40.0, -0.3, 0.02),
    (700.0, 0.9, 1e-3),
    (2e5, 0.1, 0.3),
]
PROBLEMS = {
    "spread, little noise": cells(SUMS, 2.0, Reciprocal(10**12), SPREAD),
    "spread, much noise": cells(SUMS, 0.1, Reciprocal(10**12), SPREAD),
    "uniform": cells(SUMS[2:4], 0.5, Uniform(2, 10**7), SPREAD),
    "two releases": cells(SUMS[3:5], 0.3, Reciprocal(10**12), SPREAD, releases=2),
    "public": cells([(200.0, 0.1, 0.02), (200.0, -0.8, 0.2)], 0.2, Fixed(200), SPREAD),
    "of one record": cells([(1.0, 0.3, 0.0)], 2.0, Fixed(1), SPREAD),
    "few records": cells([(6.0, -0.3, 0.03), (6.0, 0.6, 1e-4)], 0.1, Fixed(6), SPREAD),
    "far means": cells([(130.0, 0.94, 0.04), (45.0, -0.9, 0.1)], 7.0, Reciprocal(10**12), SPREAD),
    "very many records": cells([(3e9, -0.4, 0.2), (4e11, 0.7, 1e-3)], 0.5, Reciprocal(10**12), SPREAD),
    "conjugate": cells(SUMS[2:5], 1.0, Reciprocal(10**12), CONJUGATE),
    "steep": cells([(7000.0, 0.02, 5e-4), (10.0, -0.3, 0.2)], 0.3, Reciprocal(10**12), STEEP, releases=2),
    "long tails": cells([(2034.0, -0.4, 1e-6), (2034.0, 0.7, 3e-6)], 0.4, Fixed(2034), SPREAD),
}
"""The last four: a wide inverse gamma, means that the parts shrink unlike, logarithms of 1 + x where x is
1e-9 and less, and long panels in log E."""
QUICK = ("few records", "far means", "long tails", "public", "of one record", "conjugate", "steep")


def differences(found: MomentPosterior, reference: MomentPosterior) -> Floats:
    """In the order and the units of ``error``, (n_cells, 5)."""
    columns = []
    for parameter in range(2):
        sd = reference.sd[:, parameter]
        columns += [(found.mean - reference.mean)[:, parameter] / sd, np.log(found.sd[:, parameter] / sd)]
    error: Floats = np.abs(np.stack([*columns, found.log_evidence - reference.log_evidence], axis=1))
    return error


def check_against_finer_boxes(noisy: NoisyMoments) -> None:
    nested = MomentPosterior(noisy=noisy, nested=True)
    assert nested.by_nodes
    fine = MomentPosterior(noisy=noisy, share=SHARE / 30.0)
    assert not fine.by_nodes
    error = differences(nested, fine)
    settled = np.isfinite(nested.error[:, 4])
    assert np.all(error[settled] < nested.error[settled])
    assert np.all(error < [0.004, 0.008, 0.004, 0.008, 0.01])
    assert nested.n == pytest.approx(fine.n, rel=2e-3)
    for parameter in range(2):
        asked = nested.quantiles(parameter, QUANTILES)
        expected = fine.quantiles(parameter, QUANTILES)
        assert np.all(np.abs(asked - expected) < 0.03 * (expected[:, 2:] - expected[:, :1]))


@pytest.mark.parametrize("name", ["far means", "few records", "public"])
def test_nodes_that_are_picked_stand_for_all(name: str) -> None:
    """Quantiles of both marginals; and of both parameters together a share of draws, by boxes."""
    noisy = PROBLEMS[name]
    posterior = MomentPosterior(noisy=noisy, nested=True)
    of_mean, of_variance = (posterior.quantiles(parameter, QUANTILES) for parameter in range(2))
    mean, variance = posterior.sample(4000, np.random.default_rng(0))
    for cell, picked in enumerate(nodes_of_cells(noisy)):
        assert picked is not None
        assert 4000 < len(picked.weight) < 4200
        a = picked.log_width[:, None] ** -2.0
        below = stdtr(picked.degrees[:, None], (of_mean[cell] - picked.loc[:, None]) / picked.width[:, None])
        assert picked.weight @ below == pytest.approx(QUANTILES, abs=0.01)
        below = gammaincc(a, a * np.exp(picked.log_ratio[:, None]) / of_variance[cell])
        assert picked.weight @ below == pytest.approx(QUANTILES, abs=0.01)
        share = np.mean(mean[:, cell] ** 2 + variance[:, cell] <= 1.0)
        assert picked.weight @ picked.inside() == pytest.approx(share, abs=4.9 * 0.5 / np.sqrt(4000) + 0.005)


@pytest.mark.parametrize("name", QUICK)
def test_hard_problems_are_within_the_stated_error(name: str) -> None:
    check_against_finer_boxes(PROBLEMS[name])


@pytest.mark.slow
def test_moments_and_evidence_are_within_the_stated_error() -> None:
    check_against_finer_boxes(PROBLEMS["spread, little noise"])


@pytest.mark.audit
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_every_problem_is_within_the_stated_error(name: str) -> None:
    check_against_finer_boxes(PROBLEMS[name])


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(30))
def test_random_cells_are_within_the_stated_error(seed: int) -> None:
    # Cells are drawn from no prior.
    rng = np.random.default_rng(seed)
    n = np.where(rng.random(8) < 0.15, 0.0, np.floor(10.0 ** rng.uniform(0.0, 7.0, 8)))
    mean = np.where(rng.random(8) < 0.25, 1.0, rng.uniform(-1.0, 1.0, 8))
    variance = np.where(n < 2.0, 0.0, (1.0 - mean**2) * 10.0 ** rng.uniform(-6.0, 0.0, 8))
    rate, n_prior = 10.0 ** rng.uniform(-2.0, 1.0), (Reciprocal(10**12), Uniform(0, 10**7))[seed % 2]
    noisy = cells(
        list(zip(n, mean, variance, strict=True)), rate, n_prior, SPREAD, releases=1 + seed % 3 // 2
    )
    totals = noisy.totals
    values = totals.values + rng.laplace(size=totals.values.shape) / rate
    check_against_finer_boxes(replace(noisy, totals=replace(totals, values=values)))


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_every_problem_agrees_with_usual_boxes(name: str) -> None:
    nested = MomentPosterior(noisy=PROBLEMS[name], nested=True)
    boxes = MomentPosterior(noisy=PROBLEMS[name], nested=False)
    assert np.all(differences(nested, boxes) < [0.01, 0.02, 0.01, 0.02, 0.02])
    assert np.all(np.isfinite(nested.error))


def test_cells_far_from_their_prior_are_no_coarser_where_their_mass_is() -> None:
    """Hundreds of nats above the least noise; with longer panels there evidences were .07 to .09 too low."""
    prior = [(1.0, 0.3698, 0.02464, 3.096, 0.01818)]
    noisy = cells([(9e6, 1.0, 0.0), (4e6, 0.9, 1e-6)], 0.648, Reciprocal(10**12), prior, releases=2)
    nested = MomentPosterior(noisy=noisy, nested=True)
    boxes = MomentPosterior(noisy=noisy, nested=False)
    assert np.all(differences(nested, boxes) < [0.01, 0.02, 0.01, 0.02, 0.02])


def test_parts_of_little_mass_count_in_moments() -> None:
    # Boxes cover a part alone to a share of its mass, and all parts to a share of what all hold.
    noisy = cells([(2.0, 0.1, 0.02)], 1.0, Fixed(2), WIDE)
    nested = MomentPosterior(noisy=noisy, nested=True)
    alone = [MomentPosterior(noisy=replace(noisy, prior=MomentsPrior.of([part]))) for part in WIDE]
    evidence = np.array([part.log_evidence[0] for part in alone])
    share = np.exp(evidence - np.max(evidence))
    share /= np.sum(share)
    mean = share @ np.array([part.mean[0] for part in alone])
    square = share @ np.array([part.mean[0] ** 2 + part.sd[0] ** 2 for part in alone])
    sd = np.sqrt(square - mean**2)
    assert np.all(np.isfinite(nested.error))
    assert np.all(np.abs(nested.mean[0] - mean) < 0.004 * sd)
    assert nested.sd[0] == pytest.approx(sd, rel=0.01)


@pytest.mark.slow
def test_threads_change_no_digit() -> None:
    base = PROBLEMS["spread, little noise"]
    noisy = base.take(np.arange(70) % len(SUMS))
    alone, together = (integrate_nested(noisy, threads=threads) for threads in (1, 3))
    assert np.array_equal(alone.moments, together.moments)
    for mine, other in zip(alone.marginals, together.marginals, strict=True):
        assert np.array_equal(mine.loc, other.loc)
        assert np.array_equal(mine.cell, other.cell)
    assert np.array_equal(alone.moments[: len(SUMS)], alone.moments[len(SUMS) : 2 * len(SUMS)])


@pytest.mark.slow
def test_cells_that_a_far_prior_contradicts_are_left_to_boxes() -> None:
    # Beside where noise takes least, all that the prior leaves is below e^-700.
    totals = NoisyTotals(
        values=np.array(
            [[5329075.9115, 3293816.3909, 508962.1447, 5329051.2113, 3293794.9913, 508966.8340]],
        ),
        scale=np.full(6, 1.0 / 0.648),
        coefficients=np.tile(BERNSTEIN, (2, 1)),
        releases=2,
    )
    prior = MomentsPrior.of([(1.0, 0.3698, 0.02464, 3.096, 0.01818)])
    noisy = NoisyMoments(totals=totals, prior=prior, n_prior=Reciprocal(10**12))
    nested = MomentPosterior(noisy=noisy, nested=True)
    assert nested.by_nodes
    assert np.all(np.isnan(nested.error))
    # All there is, on a grid.
    steps = 6.0, 5e-8, 0.006
    n, mean, log_e = (
        side.ravel()
        for side in np.meshgrid(
            np.arange(9132060.0, 9132180.0, steps[0]),
            np.arange(-0.52781, -0.52777, steps[1]),
            np.arange(-9.8, -9.2, steps[2]),
        )
    )
    zero = np.zeros(len(n), dtype=np.int64)
    log_weight = MomentWeights.of(noisy).log_weight(zero, zero, n, mean, log_e)
    top = np.max(log_weight)
    weight = np.exp(log_weight - top)
    log_evidence = top + np.log(np.sum(weight) * np.prod(steps)) + 6.0 * np.log(0.648 / 2.0)
    assert nested.log_evidence[0] == pytest.approx(log_evidence, abs=0.01)
    assert nested.n[0] == pytest.approx(weight @ n / np.sum(weight), abs=0.5)


@pytest.mark.slow
def test_cells_that_no_rule_settles_are_left_to_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = PROBLEMS["spread, little noise"].take(np.arange(2, 5))
    boxes = MomentPosterior(noisy=noisy, nested=False)
    monkeypatch.setattr(nested_rule, "TOLERANCE", (1e-30,) * 5)
    nested = MomentPosterior(noisy=noisy, nested=True)
    assert np.array_equal(nested.mean, boxes.mean)
    assert np.array_equal(nested.log_evidence, boxes.log_evidence)
    assert np.array_equal(nested.quantiles(1, QUANTILES), boxes.quantiles(1, QUANTILES))
    assert np.all(np.isnan(nested.error))


def test_one_place_chooses() -> None:
    importlib.import_module(MOMENT_NODES.module)
    few = PROBLEMS["spread, much noise"]
    many = few.take(np.arange(MOMENT_NODES.fewest) % len(SUMS))
    assert MomentPosterior(noisy=many).by_nodes
    assert not MomentPosterior(noisy=few).by_nodes
    assert not MomentPosterior(noisy=many, share=SHARE / 2.0).by_nodes
    assert not MomentPosterior(noisy=many, levels=np.ones((MOMENT_NODES.fewest, 2))).by_nodes
    sharp = replace(few, prior=MomentsPrior.of([(1.0, 0.0, 1.0, 1e5, 1.0)]))
    assert can_integrate(few)
    assert can_integrate(replace(few, prior=MomentsPrior.of(CONJUGATE)))
    for prior in (APART, PRECISE):
        assert not can_integrate(replace(few, prior=MomentsPrior.of(prior)))
    assert not can_integrate(sharp)


def test_what_is_taken_keeps_its_integrals() -> None:
    posterior = MomentPosterior(noisy=PROBLEMS["spread, much noise"], nested=True)
    some = np.array([1, 3, 4])
    expected = posterior.quantiles(0, QUANTILES)[some]
    taken = posterior.take(some)
    assert "_integrals" in taken.__dict__
    assert np.array_equal(taken.mean, posterior.mean[some])
    assert taken.quantiles(0, QUANTILES) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_few_cells_load_no_compiled_code() -> None:
    # The names that tests import have loaded it here already: another process has not.
    program = f"""
import sys
import numpy as np
from suffice.pipeline.math.engines.normal.moment_posterior import MomentPosterior
from suffice.pipeline.math.engines.normal.moment_weights import BERNSTEIN, MomentsPrior, NoisyMoments
from suffice.pipeline.math.priors.record_count import Reciprocal
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
totals = NoisyTotals(
    values=np.full(({MOMENT_NODES.fewest - 1}, 3), 20.0),
    scale=np.ones(3),
    coefficients=np.array(BERNSTEIN),
    releases=1,
)
prior = MomentsPrior.of([(1.0, 0.0, 0.5, 3.0, 0.04)])
posterior = MomentPosterior(noisy=NoisyMoments(totals=totals, prior=prior, n_prior=Reciprocal(10**6)))
print(np.ptp(posterior.take(np.arange(3)).mean[:, 0]), posterior.by_nodes, "numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.0", "False", "False"]
