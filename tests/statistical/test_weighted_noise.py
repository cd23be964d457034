"""Chains of correlated predictors and of columns agree with weighted draws of the noise, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.correlated_predictors import fixed_release
from support.unrestricted import free
from support.weighted_noise import weighted_draws

CELLS, DRAWS, LEAST = 8, 2_000_000, 100
QUANTILES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
FALSE_ALARM = 1e-6
TOWARDS_0 = "NormalInverseGammaRegression([0, 0, 0], [9, 9, 0.01], 3, 2)"
"""The control: another prior of the coefficients."""


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("correlation", "n"), [(0.8, 5000), (0.8, 300)])
def test_chains_of_correlated_predictors_agree_with_weighted_draws(correlation: float, n: int) -> None:
    """Shares of chains' draws below the weighted draws' quantiles, by the error of both."""
    rng = np.random.default_rng()
    release = fixed_release(2, correlation, n, cells=CELLS, rng=rng)
    weighted = [weighted_draws(release, cell, DRAWS, rng) for cell in range(CELLS)]
    apart = {}
    for prior in (None, TOWARDS_0):
        posterior = free(posterior_of(release, prior=prior))
        chains = posterior.diagnostics["fewest_effective_draws"]
        # Slopes in half ranges: the outcome's bounds are twice as wide.
        slopes = posterior.distribution.sample(4000, rng)["coefficient"] / 2.0
        distances = []
        for cell, known in enumerate(weighted):
            if known.effective < LEAST:
                continue
            error = np.sqrt(QUANTILES * (1 - QUANTILES) * (1 / known.effective + 1 / chains + 1 / 4000))
            for position in range(2):
                at = known.quantiles(position, QUANTILES)
                below = np.mean(slopes[:, cell, position, None] < at, axis=0)
                distances.append(np.max(np.abs(below - QUANTILES) / error))
        apart[prior] = max(distances)
        assert len(distances) >= CELLS
    # Of weighted draws of few large weights an error is larger than normal: twice what normal ones take.
    most = 2.0 * -ndtri(FALSE_ALARM / (2 * len(QUANTILES) * 2 * CELLS))
    assert apart[None] < most
    assert apart[TOWARDS_0] > most
