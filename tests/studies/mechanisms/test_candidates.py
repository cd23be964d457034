"""Candidate posteriors by Hellinger distance: sensitivities, claims, and what is lost, all enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from studies.mechanisms.candidates import (
    candidate_mechanism,
    global_sensitivity,
    hellinger,
    local_sensitivities,
    smooth_sensitivities,
    smoothness,
)
from studies.mechanisms.count_simplex import count_simplex
from suffice.errors import UsageError

THREE = (7.0, 4.0, 5.0)
TWO = (7.0, 4.0)


def _distance(prior: tuple[float, ...], left: tuple[int, ...], right: tuple[int, ...]) -> float:
    """Hellinger's distance from log gamma numbers, written out."""

    def log_beta(parameters: list[float]) -> float:
        return sum(map(math.lgamma, parameters)) - math.lgamma(sum(parameters))

    first = [a + x for a, x in zip(prior, left, strict=True)]
    second = [a + x for a, x in zip(prior, right, strict=True)]
    middle = [(x + y) / 2 for x, y in zip(first, second, strict=True)]
    return math.sqrt(max(0.0, -math.expm1(log_beta(middle) - (log_beta(first) + log_beta(second)) / 2)))


def test_everything_is_as_written_out_for_a_small_simplex() -> None:
    """Five records, three categories: every pair of neighbours and every candidate in plain loops."""
    n_records, epsilon, delta = 5, 0.8, 0.3
    sets = [each for each in itertools.product(range(n_records + 1), repeat=3) if sum(each) == n_records]
    simplex = count_simplex(n_records, 3)
    assert [tuple(each) for each in simplex.counts.tolist()] == sets
    steps = {
        (x, y): sum(abs(a - b) for a, b in zip(x, y, strict=True)) // 2
        for x, y in itertools.product(sets, repeat=2)
    }
    distance = {(x, y): _distance(THREE, x, y) for x, y in steps}
    pairs = [pair for pair, step in steps.items() if step == 1]
    listed = {
        (sets[a], sets[b]) for rows, others in simplex.neighbours for a, b in zip(rows, others, strict=True)
    }
    assert listed | {(y, x) for x, y in listed} == set(pairs)
    assert 2 * len(listed) == len(pairs)
    distances = hellinger(THREE, simplex.counts, simplex.counts)
    np.testing.assert_allclose(distances, [[distance[x, y] for y in sets] for x in sets], atol=2e-8)
    local = {
        x: max(abs(distance[x, r] - distance[y, r]) for z, y in pairs if z == x for r in sets) for x in sets
    }
    np.testing.assert_allclose(local_sensitivities(THREE, simplex), list(local.values()), atol=1e-8)
    beta = math.log(1 - epsilon / (2 * math.log(delta / (2 * n_records))))
    assert smoothness(epsilon, delta, n_records) == pytest.approx(beta, rel=1e-12)
    smooth = {x: max(local[y] * math.exp(-beta * steps[x, y]) for y in sets) for x in sets}
    np.testing.assert_allclose(smooth_sensitivities(THREE, simplex, beta), list(smooth.values()), atol=1e-8)
    scales = {"global": dict.fromkeys(sets, max(local.values())), "local": local, "smooth": smooth}
    for name, scale in scales.items():
        chance = {}
        for x in sets:
            weights = {r: math.exp(-epsilon * distance[x, r] / (2 * scale[x])) for r in sets}
            chance[x] = {r: weight / sum(weights.values()) for r, weight in weights.items()}
        loss = max(abs(math.log(chance[x][r] / chance[y][r])) for x, y in pairs for r in sets)
        mechanism = candidate_mechanism(
            THREE,
            n_records,
            epsilon=epsilon,
            sensitivity=name,  # type: ignore[arg-type]
            delta=delta if name == "smooth" else None,
        )
        assert mechanism.certified_loss == pytest.approx(loss, abs=1e-6)
        expected = [sum(chance[x][r] * distance[x, r] for r in sets) for x in sets]
        rows = np.arange(len(sets))
        np.testing.assert_allclose(mechanism.expected_distances(rows), expected, atol=1e-6)


def test_the_global_sensitivity_is_one_number_for_every_size() -> None:
    """.233629480709; the Notes' .239992747797 pairs (3, 8) with (4, 7), which takes a count of -1."""
    for n_records in (1, 2, 3, 10, 40, 100):
        assert global_sensitivity(THREE, n_records) == pytest.approx(0.233629480709, abs=6e-13)
    impossible = _distance((3.0, 8.0, 5.0), (0, 0, 0), (1, -1, 0))
    assert impossible == pytest.approx(0.239992747797, abs=6e-13)
    assert min(7 - 4, 4 - 4, 3 - 4) == -1  # the category with parameter 4 cannot end at 3


def test_local_sensitivities_of_a_hundred_records() -> None:
    simplex = count_simplex(100, 3)
    assert len(simplex.counts) == 5151
    local = local_sensitivities(THREE, simplex)
    assert local[simplex.row_of((34, 33, 33))] == pytest.approx(0.08209, abs=5e-6)
    assert local[simplex.row_of((50, 30, 20))] == pytest.approx(0.09405, abs=5e-6)
    assert local.min() == pytest.approx(0.08100, abs=5e-6)


def test_smoothness_of_the_notes() -> None:
    for n_outcomes, beta in (
        (100, 0.069940710811),
        (120, 0.067779110017),
        (150, 0.065308796422),
        (5151, 0.041399909267),
    ):
        assert smoothness(0.8, 0.8, n_outcomes) == pytest.approx(beta, abs=6e-13)


@pytest.mark.parametrize(
    ("prior", "n_records", "epsilon", "losses"),
    [
        (THREE, 40, 0.8, {"global": 0.40158, "local": 0.77865, "smooth": 0.50466}),
        (TWO, 300, 0.5, {"global": 0.26007, "local": 0.36780, "smooth": 0.31357}),
    ],
)
def test_what_is_lost(
    prior: tuple[float, ...], n_records: int, epsilon: float, losses: dict[str, float]
) -> None:
    for name, loss in losses.items():
        mechanism = candidate_mechanism(
            prior,
            n_records,
            epsilon=epsilon,
            sensitivity=name,  # type: ignore[arg-type]
            delta=0.8 if name == "smooth" else None,
        )
        assert mechanism.certified_loss == pytest.approx(loss, abs=6e-6)
        assert mechanism.certified_loss <= epsilon
        rows = np.array([0, len(mechanism.simplex.counts) // 2])
        np.testing.assert_allclose(np.exp(mechanism.log_chances(rows)).sum(axis=1), 1.0, rtol=1e-12)


def test_local_sensitivity_can_lose_more_than_its_epsilon() -> None:
    """A prior that is nearly 0, 300 records, epsilon 2: what global sensitivity never does."""
    prior = (0.01, 0.01)
    local = candidate_mechanism(prior, 300, epsilon=2.0, sensitivity="local")
    whole = candidate_mechanism(prior, 300, epsilon=2.0, sensitivity="global")
    assert local.certified_loss > 2.0
    assert whole.certified_loss <= 2.0


def test_every_output_says_what_it_is() -> None:
    rng = np.random.default_rng(1)
    for name, words in (
        ("local", "no guarantee"),
        ("global", "epsilon 0.5, proved"),
        ("smooth", "the proof does not hold"),
    ):
        mechanism = candidate_mechanism(
            TWO,
            20,
            epsilon=0.5,
            sensitivity=name,  # type: ignore[arg-type]
            delta=0.8 if name == "smooth" else None,
        )
        draw = mechanism.draw((12, 8), rng=rng)
        assert draw.counts.sum() == 20
        np.testing.assert_array_equal(draw.posterior, np.array(TWO) + draw.counts)
        for output in (mechanism, draw):
            assert output.label == "not a release"
            assert output.csv().startswith("# not a release\n")
            assert str(output).startswith("not a release\n")
            for text in (str(output), output.csv(), repr(output)):
                assert words in text
            for text in (str(output), output.csv()):
                assert f"enumeration of neighbours: {mechanism.certified_loss:.6g}" in text


def test_draws_follow_the_chances() -> None:
    """1,500 draws of 21 candidates: chi-square below its 1e-7 quantile; at twice the epsilon it is above."""
    from scipy import stats

    rng = np.random.default_rng(2)
    size, epsilon = 1_500, 6.0
    mechanism = candidate_mechanism(TWO, 20, epsilon=epsilon, sensitivity="global")
    row = mechanism.simplex.row_of((12, 8))
    draws = [int(mechanism.draw((12, 8), rng=rng).counts[0]) for _ in range(size)]
    seen = np.bincount(draws, minlength=21)

    def statistic(log_chances: np.ndarray) -> float:
        expected = size * np.exp(log_chances)
        return float(((seen - expected) ** 2 / expected).sum())

    limit = stats.chi2.isf(1e-7, 20)
    assert statistic(mechanism.log_chances(row)[0]) < limit
    twice = candidate_mechanism(TWO, 20, epsilon=2 * epsilon, sensitivity="global")
    assert statistic(twice.log_chances(row)[0]) > limit


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(UsageError, match="delta"):
        candidate_mechanism(TWO, 10, epsilon=1.0, sensitivity="smooth")
    with pytest.raises(UsageError, match="delta"):
        candidate_mechanism(TWO, 10, epsilon=1.0, sensitivity="local", delta=0.1)
    with pytest.raises(UsageError, match="delta"):
        candidate_mechanism(TWO, 10, epsilon=1.0, sensitivity="smooth", delta=1.0)
    with pytest.raises(UsageError, match="epsilon"):
        candidate_mechanism(TWO, 10, epsilon=math.nan, sensitivity="global")
    with pytest.raises(UsageError, match="prior_1"):
        candidate_mechanism((1.0, 0.0), 10, epsilon=1.0, sensitivity="global")
    with pytest.raises(UsageError, match="two categories"):
        candidate_mechanism((1.0,), 10, epsilon=1.0, sensitivity="global")
    with pytest.raises(UsageError, match="counts"):
        count_simplex(10, 2).row_of((5, 6))
