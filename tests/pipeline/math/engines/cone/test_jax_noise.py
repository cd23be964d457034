"""The law of noise on a cone in JAX is that of NumPy, for every number of rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from suffice.pipeline.ask.pooling.pool import observed_again
from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
from support.cone_calibration import moments_of, released

pytest.importorskip("jax")


@pytest.mark.slow
@pytest.mark.parametrize("linear", [True, False])
def test_log_densities_are_those_of_numpy(linear: bool) -> None:
    """Where N is large too: of 10^9 rows with noise of one, to nine digits."""
    import jax

    jax.config.update("jax_enable_x64", val=True)
    from suffice.pipeline.math.engines.cone.jax_noise import log_density

    rng = np.random.default_rng(7)
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


@pytest.mark.slow
def test_noise_of_several_releases_adds_up() -> None:
    """Two behind noise on a cone and one behind Laplace noise: for every N the log densities' sum."""
    import jax

    jax.config.update("jax_enable_x64", val=True)
    from suffice.pipeline.ask.numpyro.observed import n_latent
    from suffice.pipeline.math.engines.jax_moments import Coordinates, ObservedMoments

    rng = np.random.default_rng(7)
    root = np.repeat(0.3 * np.eye(2)[None], 2, axis=0)
    sums = moments_of(np.full(2, 500), np.zeros((2, 2)), root, rng)
    each = [released(sums, "0.6", rng, noise=noise) for noise in ("cone", "laplace", "cone")]
    prior = Uniform(490, 510)
    alone = [ObservedMoments.of_columns(statistic, prior) for statistic in each]
    together = ObservedMoments.of_columns(observed_again(each), prior)
    of_one = n_latent(each[0]) - n_latent(each[1])
    assert n_latent(observed_again(each)) - n_latent(each[1]) == 2 * of_one
    latent = rng.standard_normal((2, 2 * of_one))
    # Matrices of releases one after the other, in the order that pools put releases in.
    parts = [latent[:, :of_one], latent[:, :0], latent[:, of_one:]]
    if not np.array_equal(together.cone[0].values, alone[0].cone[0].values):
        parts.reverse()
    mean = rng.uniform(-0.1, 0.1, (2, 2))
    expected = sum(
        np.asarray(observed.log_noise(mean, root, Coordinates(part)))
        for observed, part in zip(alone, parts, strict=True)
    )
    assert np.asarray(together.log_noise(mean, root, Coordinates(latent))) == pytest.approx(expected)
    # Weighted by precision, an estimate of all is nearer than that of any.
    assert (together.spread_noise < np.min([each.spread_noise for each in alone], axis=0)).all()
