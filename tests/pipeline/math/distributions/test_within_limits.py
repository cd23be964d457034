"""Tables of distribution functions between limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from suffice.pipeline.math.distributions.within_limits import Tabulated


def test_a_density_does_not_fall_to_0_where_knots_meet() -> None:
    """Of an exponential cut off at 0 and 1, with knots that are there twice, or again but for rounding."""
    law = scipy.stats.truncexpon(1.0)
    even, levels = np.linspace(0.0, 1.0, 65), law.ppf(np.linspace(0.0, 1.0, 257))
    knots = np.sort(np.concatenate([even, levels, np.nextafter(even[1:], 0.0)]))[None]
    nothing = np.full(len(knots), np.nan)
    table = Tabulated(name="rate", knots=knots, below=law.cdf(knots), moments=lambda: (nothing, nothing))
    points = np.linspace(-0.1, 1.1, 4801)[None]
    inside = (points > 0.0) & (points < 1.0)
    density = table.density("rate", points)
    assert density[inside] == pytest.approx(law.pdf(points[inside]), rel=0.005)
    assert not density[(points < 0.0) | (points > 1.0)].any()
