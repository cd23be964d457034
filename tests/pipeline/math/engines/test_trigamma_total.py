"""Totals of shapes that give logarithms of gamma laws a variance together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import polygamma

from suffice.pipeline.math.engines.pooled.trigamma_total import total_of


@pytest.mark.parametrize("share", [None, 0.5, 0.1, 1e-6], ids=["one", "halves", "a tenth", "next to nothing"])
def test_trigamma_functions_of_shapes_add_up_to_the_variance(share: float | None) -> None:
    spread = np.exp(np.linspace(np.log(1e-4), np.log(20.0), 200))
    shares = [np.ones(200)] if share is None else [np.full(200, share), np.full(200, 1.0 - share)]
    total = total_of(spread, shares)
    variance = np.sum([polygamma(1, total * each) for each in shares], axis=0)
    np.testing.assert_allclose(variance, spread**2, rtol=1e-9)
