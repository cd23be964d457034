"""Logs of rising factorials over factorials in compiled loops, beside SciPy's beta function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import betaln

from suffice.pipeline.math.engines.one_sum import sum_weights

if TYPE_CHECKING:
    from suffice.typing import Floats

TOLERABLE = 1e-10
LARGE = np.geomspace(300.0, 1e4, 30)
"""Beyond, sums of logarithms have too few digits."""
COUNTS = np.concatenate([np.arange(0.0, 40.0), np.arange(0.25, 140.0, 3.7), LARGE])


def exact(a: float, counts: Floats) -> Floats:
    """Log of G(a + x) / (G(x + 1) G(a)) = 1 / ((a + x) B(a, x + 1))."""
    logs: Floats = np.asarray(-betaln(a, counts + 1.0) - np.log(a + counts), dtype=np.float64)
    return logs


@pytest.mark.parametrize("a", [0.02, 0.5, 1.0, 1.7, 2.0, 4.0, 8.0, 12.6, 13.0, 14.0, 50.0, 51.0, 100.0])
@pytest.mark.parametrize("counts", [COUNTS, LARGE], ids=["small", "large"])
def test_rising_factorials_are_exact(a: float, counts: Floats) -> None:
    """By factors of whole concentrations, by steps where counts are small, by the series elsewhere."""
    wanted, added = exact(a, counts), np.full(len(counts), 7.0)
    sum_weights._add_rising(a, -1.0, len(counts), counts, added)
    scale = np.maximum(np.abs(wanted), 1.0)
    assert np.max(np.abs(7.0 - added - wanted) / scale) < TOLERABLE
    single = np.array([sum_weights.rising(a, x) for x in counts])
    assert np.max(np.abs(single - wanted) / scale) < TOLERABLE
    assert np.max(np.abs(exact(a + 1e-6, counts) - wanted) / scale) > TOLERABLE
