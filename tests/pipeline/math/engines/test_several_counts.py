"""Likelihoods of probabilities from several noisy counts, against sums over all counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import special

from suffice.pipeline.math.engines.several_counts import SeveralCounts, root_of
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform

if TYPE_CHECKING:
    from suffice.typing import Floats

LARGE = 10**12


def enumerated(values: Floats, scales: Floats, probability: Floats, n_prior: NPrior) -> float:
    """The sum over all counts, of values (n_categories, n_releases): multinomial, noise, prior of N."""
    spread = int(40.0 * np.max(scales)) + 40
    logs = np.zeros(1)
    total = np.zeros(1)
    for row, share in zip(values, probability, strict=True):
        count = np.arange(max(row.max(), 0.0) + spread)
        term = special.xlogy(count, share) - special.gammaln(count + 1.0)
        for value, scale in zip(row, scales, strict=True):
            term = term - np.abs(value - count) / scale + np.log(np.tanh(0.5 / scale))
        both = logs[:, None] + term
        n = total[:, None] + count
        # Those with the same sum together: what is left depends on it alone.
        total = np.arange(n.max() + 1.0)
        logs = np.full(len(total), -np.inf)
        np.logaddexp.at(logs, n.astype(np.int64).ravel(), both.ravel())
    of_n = special.gammaln(total + 1.0) - (np.log1p(total) if isinstance(n_prior, Reciprocal) else 0.0)
    return float(special.logsumexp(logs + of_n))


CASES: list[tuple[str, list[list[float]], list[float]]] = [
    ("two", [[7], [3]], [1.25]),
    ("negative", [[-4], [2]], [1.25]),
    ("wide noise", [[60], [30]], [20.0]),
    ("hardly any noise", [[3], [1]], [0.1]),
    ("nothing", [[0], [0]], [30.0]),
    ("very different", [[500], [2]], [5.0]),
    ("three", [[20], [-1], [5]], [2.0]),
    ("a table", [[9], [4], [0], [12], [7], [-2]], [1.0]),
    ("two releases", [[20, 26], [3, -1]], [2.0, 4.0]),
]


@pytest.mark.parametrize(("values", "scales"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
@pytest.mark.parametrize("n_prior", [Reciprocal(LARGE), Uniform(0, LARGE)], ids=["reciprocal", "uniform"])
def test_it_is_the_sum_over_all_counts_to_its_error(
    values: list[list[float]], scales: list[float], n_prior: NPrior
) -> None:
    array, scale = np.array(values, np.float64), np.array(scales)
    counts = SeveralCounts.of(array[None], scale, n_prior)
    assert counts is not None
    rng = np.random.default_rng(3)
    about = np.maximum(np.mean(array, axis=1), 0.0) + 1.0
    probability = rng.dirichlet(about, 8)
    probability = np.concatenate([probability, [0.8 * about / np.sum(about) + 0.2 / len(array)]])
    value, miss = counts.log_likelihood(np.zeros(len(probability), np.int64), np.log(probability))
    exact = np.array([enumerated(array, scale, row, n_prior) for row in probability])
    assert np.all(np.abs(value - exact) <= counts.error[0] + miss + 1e-10 * np.abs(exact) + 1e-10)
    assert counts.error[0] < 3e-6
    assert np.all(miss < 1e-5)
    # Another prior of N, or noise that is a little wider, is not this one.
    other = Uniform(0, LARGE) if isinstance(n_prior, Reciprocal) else Reciprocal(LARGE)
    wider = SeveralCounts.of(array[None], 1.01 * scale + 0.05, n_prior)
    mutant = SeveralCounts.of(array[None], scale, other)
    assert wider is not None
    assert mutant is not None
    for wrong in (wider, mutant):
        apart = wrong.log_likelihood(np.zeros(len(probability), np.int64), np.log(probability))[0] - exact
        assert np.max(np.abs(apart)) > 1e-4


def test_no_probability_at_all() -> None:
    counts = SeveralCounts.of(np.array([[[4.0], [0.0]]]), np.array([1.0]), Reciprocal(LARGE))
    assert counts is not None
    with np.errstate(divide="ignore"):
        log_probability = np.log([[1.0, 0.0], [0.0, 1.0]])
    value, _ = counts.log_likelihood(np.zeros(2, np.int64), log_probability)
    exact = [
        enumerated(np.array([[4.0], [0.0]]), np.array([1.0]), row, Reciprocal(LARGE))
        for row in np.array([[1.0, 0.0], [0.0, 1.0]])
    ]
    np.testing.assert_allclose(value, exact, atol=1e-6)


def test_points_of_a_line_have_what_each_has_alone() -> None:
    values = np.array([[[300.0], [40.0]], [[2.0], [-3.0]], [[1e6], [12.0]], [[0.0], [70.0]]])
    counts = SeveralCounts.of(values, np.array([1.25]), Reciprocal(LARGE))
    assert counts is not None
    position = np.stack([np.linspace(low, low + 3.0, 17) for low in (-3.0, -6.0, -13.0, 1.0)])
    log_probability = np.stack([-np.logaddexp(0.0, position), -np.logaddexp(0.0, -position)], axis=-1)
    together = counts.of_panels(np.arange(4), log_probability)
    alone = counts.log_likelihood(np.repeat(np.arange(4), 17), log_probability.reshape(-1, 2))[0]
    np.testing.assert_allclose(together.ravel(), alone, atol=1e-9, rtol=1e-12)


@pytest.mark.parametrize(
    ("n_prior", "values", "scale"),
    [
        (Fixed(10), [5.0, 5.0], 1.0),
        (Uniform(3, LARGE), [5.0, 5.0], 1.0),
        (Reciprocal(100), [60.0, 30.0], 1.0),
        (Reciprocal(10**15), [1e10, 5.0], 1.0),
        (Reciprocal(LARGE), [5.0, 5.0], 1e9),
    ],
    ids=["fixed", "from 3 on", "near its end", "too many", "wide"],
)
def test_what_it_does_not_serve(n_prior: NPrior, values: list[float], scale: float) -> None:
    assert SeveralCounts.of(np.array(values)[None, :, None], np.array([scale]), n_prior) is None


def test_roots() -> None:
    position = np.array([-50.0, -5.0, -1.0, 0.0, 1.0, 3.0, 100.0, 1e6])
    root = root_of(position)
    np.testing.assert_allclose(root + np.log(root), position, rtol=1e-14, atol=1e-14)
