"""Cone noise against its exact law, its moments and its privacy; the tests against wrong samplers."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.cone_privacy import TOO_LARGE, ConeLoss, cone_loss
from benchmarks.cone_privacy import drawn as drawn_in_parts
from benchmarks.cone_privacy import simulated as simulated_noise
from suffice.pipeline.rows.mechanism.cone.sampler import cone_noise
from suffice.pipeline.rows.mechanism.noise import discrete_laplace
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from support.cone_law import FALSE_ALARM, agrees, cell_masses, law_of_noise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Draws = NDArray[np.int64]

RATE, SIZE = Fraction(1, 2), 80
N_CELLS = 60_000
SIMULATED = 90_000
"""Draws in floating point, of which a scale of 1.05 is missed with a chance below 1e-12."""


def drawn(n_cells: int, *, rate: Fraction, columns: int, linear: bool, steps: int) -> Draws:
    made = cone_noise(rate=rate, columns=columns, linear=linear, steps=steps)
    noise = np.zeros((n_cells, made.shape.n_components), np.int64)
    with ThreadPoolExecutor(2) as threads:
        for piece in made.start(noise, threads):
            piece.result()
    return noise


@pytest.fixture(scope="module")
def one_column() -> Draws:
    return drawn(N_CELLS, rate=RATE, columns=1, linear=False, steps=1)


def test_the_law_of_a_cell_is_private_by_itself() -> None:
    """``h(a + H) >= exp(-r) h(a)`` in every cell, for the records H = (1, 0) and (1, 1) of M = 1."""
    h = cell_masses(float(RATE), SIZE)
    assert h.sum() == pytest.approx(1, abs=1e-12)
    least = math.exp(-float(RATE)) * (1 - 1e-9)
    assert (h[1:, :] >= least * h[:-1, :]).all()
    assert (h[1:, 1:] >= least * h[:-1, :-1]).all()
    assert not (h[:, 1:] >= least * h[:, :-1]).all(), "(0, 1) is no record"


@pytest.mark.slow
def test_one_column_has_its_exact_law(one_column: Draws) -> None:
    law = law_of_noise(float(RATE), SIZE)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert agrees(one_column, law)


def uniform_rows(
    n: int, dimension: int, rng: np.random.Generator, *, sphere: bool = False
) -> NDArray[np.float64]:
    g = rng.normal(size=(n, dimension + (0 if sphere else 2)))
    rows: NDArray[np.float64] = (g / np.linalg.norm(g, axis=1)[:, None])[:, :dimension]
    return rows


def simulated(
    rng: np.random.Generator, *, shape: float = 2, scale: float = 1, sphere: bool = False, kind: str = "P - Q"
) -> Draws:
    """Simulate one column in floating point, with whatever is wrong."""

    def release_once() -> Draws:
        t = rng.gamma(shape, size=SIMULATED) * scale / float(RATE)
        x = uniform_rows(SIMULATED, 2, rng, sphere=sphere)
        exact = np.stack([t, t * (x**2).sum(axis=1)], axis=1)
        rounded: Draws = np.rint(exact).astype(np.int64)
        return rounded

    p = release_once()
    return p if kind == "P" else p - p if kind == "Q = P" else p - release_once()


@pytest.mark.slow
def test_wrong_samplers_are_caught() -> None:
    """Each misses the law by many standard errors at this sample size; what is right, simulated, passes."""
    law, rng = law_of_noise(float(RATE), SIZE), np.random.default_rng()
    assert agrees(simulated(rng), law)
    assert not agrees(simulated(rng, shape=1), law), "t of Gamma(D - 1)"
    assert not agrees(simulated(rng, shape=3), law)
    assert not agrees(simulated(rng, sphere=True), law), "the sphere for the ball"
    assert not agrees(simulated(rng, kind="P"), law), "P alone"
    assert not agrees(simulated(rng, kind="Q = P"), law), "Q = P"
    for factor in (1.25, 0.8, 1.05):
        assert not agrees(simulated(rng, scale=factor), law)


@pytest.mark.slow
def test_one_column_beside_the_laplace_noise_of_opendp() -> None:
    """The orthant: ``Z_11 / M^2`` and ``(Z_00 - Z_11) / M^2`` are independent Laplace variables of scale 1.

    With M = 2^10 rounding shifts nothing that shows: two-sample tests of 200 quantile classes at 1e-6 each.
    """
    from scipy.stats import chi2_contingency

    steps, n = 1 << 10, 40_000
    cone = drawn(n, rate=Fraction(1), columns=1, linear=False, steps=steps)
    laplace = np.zeros(2 * n, np.int64)
    discrete_laplace(
        scale=float(steps * steps), l1_sensitivity=1, loss=PrivacyLoss.of_epsilon(Fraction(1))
    ).draw_into(laplace)

    def same(first: Draws, second: Draws) -> bool:
        edges = np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 201)[1:-1])
        table = [np.bincount(np.searchsorted(edges, x), minlength=200) for x in (first, second)]
        return bool(chi2_contingency(np.array(table)).pvalue > FALSE_ALARM)

    assert same(cone[:, 1], laplace[:n])
    assert same(cone[:, 0] - cone[:, 1], laplace[n:])
    assert same(cone[:, 0], laplace[:n] + laplace[n:])
    assert not same((1.1 * cone[:, 1]).astype(np.int64), laplace[:n])
    signs = np.sign(cone[:, 1]) * np.sign(cone[:, 0] - cone[:, 1])
    assert abs(signs.sum()) < norm.isf(FALSE_ALARM / 2) * math.sqrt(n)


def covariance(columns: int, *, linear: bool) -> tuple[NDArray[np.float64], list[tuple[int, int]]]:
    """Return the covariances of `cone.md`, slice, in units of ``(M^2 / rate)^2``, and the entries."""
    made = cone_noise(rate=Fraction(1), columns=columns, linear=linear, steps=1).shape
    entries, size, n = list(made.entries()), made.n_components, made.dimension
    c, second = n / (n + 2), size * (size + 1)
    out = np.zeros((size, size))
    for a, (i, j) in enumerate(entries):
        for b, (k, m) in enumerate(entries):
            if i == j and k == m:
                apart = c if 0 in {i, k} else c * c
                fourth = apart if i != k else 1.0 if i == 0 else n / (n + 4)
                means = (1.0 if i == 0 else c) * (1.0 if k == 0 else c)
                out[a, b] = 2 * (second * fourth - size * size * means)
            elif a == b:
                out[a, b] = 2 * second * (1 / (n + 2) if i == 0 else n / (n + 2) ** 2)
    return out, entries


def moments_agree(noise: NDArray[Any], expected: NDArray[np.float64]) -> bool:
    """Compare the mean of every product with its expectation; all at the false alarm together."""
    products = noise[:, :, None] * noise[:, None, :]
    z = (products.mean(axis=0) - expected) / (products.std(axis=0) / math.sqrt(len(noise)))
    return bool(np.abs(z).max() < norm.isf(FALSE_ALARM / expected.size))


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "linear"), [(2, True), (4, True), (3, False)])
def test_variances_and_covariances_are_those_of_the_proof(columns: int, linear: bool) -> None:
    """10,000 cells: a scale 1.15 times too large shows in the variances, and so do missing covariances."""
    steps = 1 << 10
    noise = drawn(10_000, rate=Fraction(2), columns=columns, linear=linear, steps=steps) * (2 / steps**2)
    expected, _ = covariance(columns, linear=linear)
    assert moments_agree(noise, expected)
    assert not moments_agree(noise * 1.15, expected)
    assert not moments_agree(noise, np.diag(np.diag(expected)))


def test_the_covariances_are_those_of_the_table() -> None:
    for columns, sds in ((2, (3.5, 3.7, 3.2, 3.1)), (4, (5.5, 7.7, 5.9, 6.7)), (7, (8.5, 15.6, 10.4, 14.1))):
        matrix, entries = covariance(columns, linear=True)
        deviations = np.sqrt(np.diag(matrix))
        measured = [deviations[entries.index(entry)] for entry in ((0, 0), (0, 1), (1, 1), (1, 2))]
        assert measured == pytest.approx(sds, abs=0.06)


def losses(columns: int, steps: int, n_draws: int, factor: Fraction) -> ConeLoss:
    return cone_loss(drawn_in_parts(columns, steps, n_draws, factor), columns=columns, steps=steps)


@pytest.mark.slow
def test_a_cone_tells_epsilon_from_more() -> None:
    """Draws in floating point: of 200,000 the power against 1.1 epsilon is above 1 - 1e-6."""
    rng = np.random.default_rng()
    wrong = cone_loss(simulated_noise(1, 1, TOO_LARGE, rng), columns=1, steps=1)
    assert wrong.power(200_000, int(np.argmin(wrong.n_moved))) > 1 - FALSE_ALARM
    right = cone_loss(simulated_noise(1, 1, Fraction(1), rng), columns=1, steps=1)
    assert right.chance > FALSE_ALARM
    assert right.power(200_000, int(np.argmin(right.n_moved))) < FALSE_ALARM


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("columns", "steps", "n_draws"),
    [(1, 1, 200_000), (1, 2, 200_000), (2, 1, 500_000), (2, 2, 500_000), (3, 1, 6_000_000)],
)
def test_no_event_tells_a_record_better_than_epsilon(columns: int, steps: int, n_draws: int) -> None:
    """The cone and the cone moved by a record: 1.1 epsilon is caught."""
    assert losses(columns, steps, n_draws, Fraction(1)).chance > FALSE_ALARM
    assert losses(columns, steps, n_draws, TOO_LARGE).chance < FALSE_ALARM
