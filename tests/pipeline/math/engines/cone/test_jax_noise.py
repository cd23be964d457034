"""The law of noise on a cone in JAX is that of NumPy, for every number of rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
from suffice.pipeline.terms.statistics.cone_noise import ConeNoise

pytest.importorskip("jax")


@pytest.mark.slow
@pytest.mark.parametrize("linear", [True, False])
def test_log_densities_are_those_of_numpy(linear: bool) -> None:
    """Where N is large too: of 10^9 rows with noise of one, to nine digits."""
    import jax

    jax.config.update("jax_enable_x64", val=True)
    from suffice.pipeline.math.engines.cone.jax_noise import log_density

    rng = np.random.default_rng()
    noise = ConeNoise(rate=Fraction(1), columns=3, linear=linear, steps=1 << 16)
    for rows in (100.0, 1e9):
        n = rows + np.array([[-2.0, 0.0, 3.0]] * 2)
        blank = LatentConeNoise.of(noise, np.zeros((2, noise.n_components), dtype=object))
        per_row = np.concatenate([np.ones((2, 1)), rng.uniform(-0.5, 0.5, (2, 9))], axis=1)
        values = np.rint((rows * per_row @ blank.coefficients.T) * 2.0**32)
        law = LatentConeNoise.of(noise, values.astype(object))
        x = law.draw(2, rng)
        in_jax = np.asarray(log_density(law, x.T, per_row, n))
        expected = np.stack([law((per_row * n[:, place, None]).T, x)[0] for place in range(3)], axis=1)
        assert in_jax == pytest.approx(expected, rel=1e-6, abs=1e-5)
