"""Exact counts are drawn from their law: every branch, and a law that is nearly right is found out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from suffice.pipeline.ask.models.noisy_counts import draw_latent_counts

DRAWS = 40_000
CASES = [
    (released, expected, scale)
    for scale in (0.2, 1.0, 5.0, 50.0)
    for released in (-5, 0, 1, 3, 40, 300)
    for expected in (0.02, 0.3, 0.9, 6.0, 45.0, 330.0)
]
THRESHOLD = float(np.sqrt(np.log(2.0 * len(CASES) / 1e-7) / (2.0 * DRAWS)))
"""Of the distance of distribution functions: Massart's bound, 1e-7 over all cases together."""


def distance(drawn: np.ndarray, released: int, expected: float, scale: float) -> float:
    n = np.arange(max(drawn.max(), 900) + 1)
    log_weight = n * np.log(expected) - gammaln(n + 1.0) - np.abs(n - released) / scale
    chance = np.exp(log_weight - log_weight.max())
    empirical = np.cumsum(np.bincount(drawn, minlength=len(n))) / len(drawn)
    return float(np.max(np.abs(empirical - np.cumsum(chance) / chance.sum())))


@pytest.mark.slow
@pytest.mark.parametrize("scale", sorted({scale for _, _, scale in CASES}))
def test_draws_follow_their_law(scale: float) -> None:
    own = [(released, expected) for released, expected, other in CASES if other == scale]
    released, expected = (np.repeat(np.array(each), DRAWS) for each in zip(*own, strict=True))
    drawn = draw_latent_counts(released, expected, scale, np.random.default_rng())
    for place, (y, mu) in enumerate(own):
        of_case = drawn[place * DRAWS : (place + 1) * DRAWS]
        assert distance(of_case, y, mu, scale) < THRESHOLD
    # The controls: an expected count of 45 that is taken for 54, and a noise for one a fifth wider.
    none = drawn[own.index((0, 45.0)) * DRAWS :][:DRAWS]
    assert distance(none, 0, 54.0, scale) > THRESHOLD
    if scale in {1.0, 5.0}:
        near = drawn[own.index((300, 330.0)) * DRAWS :][:DRAWS]
        assert distance(near, 300, 330.0, 1.2 * scale) > THRESHOLD


def test_without_noise_nothing_is_latent() -> None:
    released = np.array([0, 3, 900])
    assert draw_latent_counts(released, np.ones(3), 0.0, np.random.default_rng()).tolist() == [0, 3, 900]


def test_large_counts() -> None:
    """Beyond the table of factorials: the mean of a normal count behind normal noise, within 6 errors."""
    released, expected, scale = np.full(4000, 2_000_000), np.full(4000, 2_001_000.0), 1e6
    drawn = draw_latent_counts(released, expected, scale, np.random.default_rng())
    # Noise so wide has no say but for its tilt, which is by a factor of exp(-/+1e-6) here.
    assert abs(drawn.mean() - 2_001_000.0) < 6.0 * np.sqrt(2_001_000.0 / 4000) + 3.0
    assert drawn.std() == pytest.approx(np.sqrt(2_001_000.0), rel=0.1)
