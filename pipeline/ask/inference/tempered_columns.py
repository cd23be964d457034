r"""A regression under a prior that the default posterior's draws do not reach: tempered from them.

Model. States x of a cell's latent moments, which chains have drawn, have the density :math:`\rho(x)` of the
chains; given them the residuals' variance v is IG(a, r). Beside them stand standard normal numbers z, of
which the coefficients given v are a linear map. Under a prior with sub-models g of probability q

.. math:: \rho(x, v) = \rho(x)\, \mathrm{IG}(v; a(x), r(x)), \qquad
    w(x, v, z) = \sum_g q_g \, p_x(\beta_g = c_g \mid v) \, \frac{f(\theta_g)}{p_0(\theta_g)}, \qquad (1)

with :math:`\theta_g` the parameters that x, v and z stand for in sub-model g. Draws of (1) with weight w, of
which one sub-model is then chosen by its term, are draws of the posterior: summed over sub-models, so that
particles need not jump from one to another.

Symbols:

- w: ``_Weights``; g: ``SubModel``

Method. ``engines.tempered``, 4096 particles; the error from islands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.inference.reweighting import KEPT
from suffice.pipeline.math.distributions.reweighted import WeighedCell, resampled
from suffice.pipeline.math.engines.multivariate.reference import GivenCoefficients
from suffice.pipeline.math.engines.tempered import islands, tempered

if TYPE_CHECKING:
    from suffice.pipeline.ask.inference.named_columns import RegressionPrior
    from suffice.pipeline.math.engines.multivariate.column_posterior import Chains
    from suffice.typing import Floats

PARTICLES = 4096
MOST_MODELS = 32
"""Sub-models that every step looks at."""
_DEEPEST = 300.0
"""Nats below the largest density where no particle is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weights:
    """Both densities of (1), of one cell; positions are states and u.

    Attributes
    ----------
    chains : Chains
    prior : RegressionPrior
    about : float
        A number near a.
    """

    chains: Chains
    prior: RegressionPrior
    about: float

    def terms(self, position: Floats, normal: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log rho (n,), logs of the terms of w (n_models, n), and coefficients (n_models, n, k)."""
        from scipy.special import gammaln

        x, u = position[:-1], position[-1]
        with np.errstate(all="ignore"):
            density = np.nan_to_num(self.chains.target(x)[0], nan=-np.inf)
        # Where a step has left what numbers can tell, any other state stands in, and the step is refused.
        beyond = density < np.max(density) - _DEEPEST
        x = np.where(beyond, x[:, [int(np.argmax(density))]], x)
        states: Any = self.chains.given(x)
        a = states.concentration
        v = states.scale / a * np.exp(u)
        # IG(v; a, r) dv of v = (r / a) e^u.
        log_reference = np.where(beyond, -np.inf, density)
        log_reference = log_reference + a * np.log(a) - gammaln(a) - a * u - a * np.exp(-u)
        terms, betas = [], []
        for model in self.prior.models:
            given = GivenCoefficients.of(
                states, self.prior.places(model.values), tuple(model.values.values())
            )
            beta = given.coefficients(v, normal.T)
            seen = given.log_density_given(v) if model.values else 0.0
            terms.append(model.log_chance + seen + self.prior.log_ratio(model, beta, v))
            betas.append(beta)
        return log_reference, np.stack(terms), np.stack(betas)

    def slope(self, position: Floats) -> Floats:
        """Return about the gradient of log rho, but that a depends on x."""
        x, u = position[:-1], position[-1]
        return np.vstack([self.chains.target(x)[1], self.about * np.expm1(-u)])

    def __call__(self, position: Floats, normal: Floats) -> tuple[Floats, Floats]:
        """Return log rho and log w."""
        log_reference, terms, _ = self.terms(position, normal)
        return log_reference, np.logaddexp.reduce(terms)


def tempered_regression(
    chains: Chains, prior: RegressionPrior, rng: np.random.Generator
) -> WeighedCell | None:
    """Return draws of a regression in one cell; None where they would not be reliable or take too long.

    Parameters
    ----------
    chains : Chains
        Of this cell, under the default prior.
    prior : RegressionPrior
    rng : numpy.random.Generator
    """
    if len(prior.models) > MOST_MODELS:
        return None
    states = chains.states
    x = states[:, rng.choice(states.shape[1], PARTICLES, replace=states.shape[1] < PARTICLES)]
    given: Any = chains.given(x)
    weights = _Weights(chains=chains, prior=prior, about=float(np.median(given.concentration)))
    # v = r / g, so that u is log (a / g).
    u = np.log(given.concentration / rng.standard_gamma(given.concentration))
    particles = tempered(np.vstack([x, u]), len(prior.coefficients), weights, weights.slope, rng)
    if particles is None:
        return None
    _, terms, betas = weights.terms(particles.position, particles.normal)
    chosen = np.argmax(terms + rng.gumbel(size=terms.shape), axis=0)
    final: Any = chains.given(particles.position[:-1])
    beta = betas[chosen, np.arange(PARTICLES)]
    variance = final.scale / final.concentration * np.exp(particles.position[-1])
    r_hat, effective = islands(np.column_stack([beta, variance]))
    linear = "intercept" in prior.coefficients
    drawn = prior.shown(beta, variance, linear=linear)
    # Even positions take every particle about as often as any other.
    kept = rng.permutation(resampled(np.full(PARTICLES, 1.0 / PARTICLES), KEPT, rng))
    return WeighedCell(
        mean={name: values.mean(axis=0) for name, values in drawn.items()},
        sd={name: values.std(axis=0) for name, values in drawn.items()},
        drawn={name: values[kept] for name, values in drawn.items()},
        shape=-math.inf,
        effective=effective,
        log_mean=particles.log_evidence,
        r_hat=r_hat,
    )
