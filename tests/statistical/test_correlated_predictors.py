"""Coefficients of correlated predictors, fixed and not from a prior, lie within intervals of the default."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from support.correlated_predictors import fixed_coverage

CELLS, LEAST = 60, 0.85
"""Of 60 cells fewer than 37 hold the first coefficient with a chance below 1e-6, if 85 % do."""
FALSE_ALARM = 1e-6
TOWARDS_0 = "NormalInverseGammaRegression([0, 0, 0], [9, 9, 0.01], 3, 2)"
"""The control: coefficients of a third in the columns' units, as scales far below 1 hold them to be."""


@pytest.mark.audit
def test_coefficients_of_correlated_predictors_are_held() -> None:
    """The difference of predictors is about as large as the noise: the prior decides, and must not lean."""
    rng = np.random.default_rng()
    least = binom.ppf(FALSE_ALARM, CELLS, LEAST)
    assert fixed_coverage(2, 0.8, 5000, cells=CELLS, rng=rng).held >= least
    assert fixed_coverage(2, 0.8, 5000, cells=CELLS, rng=rng, prior=TOWARDS_0).held < least
