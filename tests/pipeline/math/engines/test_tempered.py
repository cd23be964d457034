"""Tempered sequential Monte Carlo, against normal distributions whose moments are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.math.engines.tempered import ISLANDS, islands, tempered

if TYPE_CHECKING:
    from suffice.typing import Floats

SIZE = 2048
MOST = 11.0
"""Errors: Student's t with 15 degrees of freedom is beyond it once in 1e8."""


def of_normal(width: float) -> tuple[Floats, Floats, float]:
    """A normal of three coordinates, of which the sum with a fourth is near 3: particles and log evidence."""

    def evaluate(position: Floats, normal: Floats) -> tuple[Floats, Floats]:
        apart = position.sum(axis=0) + normal[0] - 3.0
        return -np.sum(position**2, axis=0) / 2.0, -((apart / width) ** 2) / 2.0

    rng = np.random.default_rng(7)
    sample = tempered(rng.standard_normal((3, SIZE)), 1, evaluate, lambda position: -position, rng)
    assert sample is not None
    return sample.position, sample.normal, sample.log_evidence


@pytest.mark.parametrize("width", [0.5, 0.02])
def test_a_narrow_ridge_is_reached_and_its_evidence_known(width: float) -> None:
    """Eleven errors of means, and .5 of the evidence, are what islands may err by at this seed."""
    position, normal, log_evidence = of_normal(width)
    values = np.vstack([position, normal]).T
    # Of four coordinates x of variance 1 given that their sum is 3 but for width.
    mean, variance = 3.0 / (4.0 + width**2), 1.0 - 1.0 / (4.0 + width**2)
    r_hat, effective = islands(values)
    assert r_hat < 1.05
    assert effective > 300
    error = math.sqrt(variance / effective)
    assert np.max(np.abs(values.mean(axis=0) - mean)) < MOST * error
    assert values.std(axis=0) == pytest.approx(math.sqrt(variance), rel=MOST / math.sqrt(2.0 * effective))
    # The sum is normal of variance 4: its density at 3 but for width, times the width's normaliser.
    known = -9.0 / 2.0 / (4.0 + width**2) - 0.5 * math.log(4.0 + width**2) + math.log(width)
    assert log_evidence == pytest.approx(known, abs=0.5)
    # The control: draws that were not moved are where the reference is.
    assert abs(values.mean() - 0.0) > MOST * error


def test_what_has_no_weight_anywhere_is_not_reached() -> None:
    rng = np.random.default_rng(7)
    sample = tempered(
        rng.standard_normal((1, 160)),
        1,
        lambda x, _: (-(x[0] ** 2) / 2, np.full(160, -np.inf)),
        lambda x: -x,
        rng,
    )
    assert sample is None


def test_islands_that_disagree_are_seen() -> None:
    """Control: of independent draws nearly all count."""
    rng = np.random.default_rng(7)
    values = rng.standard_normal((SIZE, 1))
    alike, counted = islands(values)
    apart, few = islands(values + np.repeat(rng.standard_normal(ISLANDS), SIZE // ISLANDS)[:, None])
    assert alike < 1.05 < apart
    assert few < 100 < counted
