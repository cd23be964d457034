r"""Default priors of several columns as references: their densities, and what they leave of others.

**Regression.** In half ranges, with v the latent scale and s the residuals' variance, :math:`\tau = s / v`
is InverseGamma(3, 2) whatever v is, and :math:`\beta = B \beta_z + b` with :math:`\beta_z` normal of variance
tau. Of a part A of the coefficients, :math:`G = B_A B_A^T`, a of them, at the distance :math:`d^2 = (\beta_A
- b_A)^T G^{-1} (\beta_A - b_A)`,

.. math:: p(\beta_A) = \frac{2^3\, \Gamma(3 + a / 2)}{\Gamma(3)\, (2 \pi)^{a / 2} |G|^{1/2}}
    \bigl(2 + d^2 / 2\bigr)^{-3 - a / 2}, \qquad \tau \mid \beta_A \sim \mathrm{IG}(3 + a / 2,\ 2 + d^2 / 2)
    \qquad (1)

and v does not depend on them. With the variance as well,

.. math:: p(\beta_A, s) = \int f(u)\, \mathrm{IG}(s; 3, 2 e^u)\,
    \mathrm{Normal}(\beta_A; b_A, G s e^{-u})\, du. \qquad (2)

A posterior that is a mixture over states, given each of which
:math:`\beta \mid s \sim \mathrm{Normal}(\mu, s C)`
and s is IG(a, r), is one again given that coefficients g have the values c. With :math:`m = c - \mu_g` and
:math:`D = m^T C_{gg}^{-1} m`, a state counts by

.. math:: p(\beta_g = c) = \frac{r^a\, \Gamma(a + g / 2)}{\Gamma(a)\, (2 \pi)^{g / 2} |C_{gg}|^{1/2}}
    (r + D / 2)^{-a - g / 2}, \qquad s \sim \mathrm{IG}(a + g / 2,\ r + D / 2), \qquad (3)

and the others are normal about :math:`\mu + C_{\cdot g} C_{gg}^{-1} m`. (3) over (1) is the Bayes factor for
the values (Savage and Dickey): the evidence of the sub-model in which they are known, without a run of it.

**Mean and covariance.** Means are independent of the covariance, and standard deviations of correlations
(``spread_deviations``). The correlations of a part of the columns have the law of so many.

Symbols:

- B, b: ``matrix`` (k, k) and ``shift`` (k,); h: ``half_range``
- f: ``spread_scales.density``, of u = log v on -R..0

Method. Formulas; integrals over u by 96 points of Gauss and Legendre: the integrand is wider than .5 nats.

References
----------
Dickey. The weighted likelihood ratio, linear hypotheses on normal location parameters. Annals of Mathematical
Statistics 42(1), 1971.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions import spread_deviations, spread_scales
from suffice.pipeline.math.distributions.spread_scales import CONCENTRATION, RANGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.normal_inverse_gamma import RegressionDistribution
    from suffice.pipeline.math.distributions.spread_scales import (
        SpreadNormalInverseGammaRegression,
        SpreadNormalInverseWishart,
    )
    from suffice.typing import Floats

_POINTS = 96
_SCALE = 2.0
"""Of the inverse gamma of tau."""


def _rule() -> tuple[Floats, Floats]:
    """Points u on -R..0, and the logs of their weights times f(u)."""
    at, weight = np.polynomial.legendre.leggauss(_POINTS)
    u = -RANGE * (1.0 - at) / 2.0
    return u, np.log(weight * RANGE / 2.0 * spread_scales.density(u, np.exp))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionReference:
    """The default prior of a regression.

    Attributes
    ----------
    matrix, shift : ndarray of shape (k, k) and (k,), float64
        B and b; the intercept last where there is one.
    outcome : float
        The half range of the outcome.
    """

    matrix: Floats
    shift: Floats
    outcome: float

    @classmethod
    def of(
        cls, prior: SpreadNormalInverseGammaRegression, columns: int, *, linear: bool
    ) -> RegressionReference:
        """Return it, of so many columns."""
        matrix, shift = prior.map_to_half_ranges(columns, linear=linear)
        half_range = prior.of(columns, linear=linear)[1]
        return cls(matrix=matrix, shift=shift, outcome=float(half_range[-1]))

    def log_density(self, places: Sequence[int], beta: Floats, variance: Floats | None) -> Floats:
        """Log density (n,) of the coefficients at `places`, (n, a), and the variance (n,) if there is one."""
        from scipy.special import gammaln

        size = len(places)
        squared, log_determinant = self._distance(places, beta)
        constant = -0.5 * (size * math.log(2.0 * math.pi) + log_determinant)
        if variance is None:
            half = CONCENTRATION + size / 2.0
            constant += CONCENTRATION * math.log(_SCALE) + float(gammaln(half) - gammaln(CONCENTRATION))
            # (1).
            return np.asarray(constant - half * np.log(_SCALE + squared / 2.0))
        log_terms = self._terms(size, squared, variance)
        return np.asarray(constant + np.logaddexp.reduce(log_terms, axis=1) - 2.0 * math.log(self.outcome))

    def _distance(self, places: Sequence[int], beta: Floats) -> tuple[Floats, float]:
        """Return d^2 (n,), and log |G|."""
        part = self.matrix[list(places)]
        gram = part @ part.T
        apart = beta - self.shift[list(places)]
        squared = (
            np.sum(apart * np.linalg.solve(gram, apart.T).T, axis=1) if len(places) else 0.0 * beta.sum(1)
        )
        return squared, float(np.linalg.slogdet(gram)[1]) if len(places) else 0.0

    def _terms(self, size: int, squared: Floats, variance: Floats) -> Floats:
        """Logs of the terms of (2), (n, points), but for what does not depend on u."""
        from scipy.special import gammaln

        u, log_weight = _rule()
        log_s = np.log(variance / self.outcome**2)[:, None]
        # IG(s; 3, 2 v) times a normal density of variance s / v.
        return np.asarray(
            log_weight
            + CONCENTRATION * (math.log(_SCALE) + u)
            - gammaln(CONCENTRATION)
            - (CONCENTRATION + 1.0) * log_s
            - np.exp(u - log_s) * (_SCALE + squared[:, None] / 2.0)
            + size / 2.0 * (u - log_s)
        )

    def complete(
        self, places: Sequence[int], beta: Floats, variance: Floats | None, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw the other coefficients, and the variance where there is none, given those at `places`.

        Returns
        -------
        coefficients : ndarray of shape (n, k), float64
        variance : ndarray of shape (n,), float64
        """
        n, size = len(beta), len(places)
        squared, _ = self._distance(places, beta)
        if variance is None:
            # (1).
            tau = (_SCALE + squared / 2.0) / rng.standard_gamma(CONCENTRATION + size / 2.0, n)
            variance = tau * spread_scales.sample((n,), rng) * self.outcome**2
        else:
            u, _ = _rule()
            log_terms = self._terms(size, squared, variance) + rng.gumbel(size=(n, _POINTS))
            tau = variance / self.outcome**2 / np.exp(u[np.argmax(log_terms, axis=1)])
        root = self.matrix
        # beta_z given B_A beta_z: the projection of fresh numbers is exchanged for what is given.
        fresh = np.sqrt(tau)[:, None] * rng.standard_normal((n, len(self.shift)))
        if size:
            part = root[list(places)]
            wanted = beta - self.shift[list(places)] - fresh @ part.T
            fresh = fresh + wanted @ np.linalg.solve(part @ part.T, part)
        whole = fresh @ root.T + self.shift
        whole[:, list(places)] = beta
        return whole, variance


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenCoefficients:
    """States of a regression given that some coefficients have stated values.

    Attributes
    ----------
    states : RegressionDistribution
    places : tuple of int
        Which coefficients are given; may be none.
    values : ndarray of shape (g,), float64
    solved : ndarray of shape (n_states, g), float64
        C_gg^-1 m.
    squared, log_determinant : ndarray of shape (n_states,), float64
        D, and log |C_gg|.
    """

    states: RegressionDistribution
    places: tuple[int, ...]
    values: Floats
    solved: Floats
    squared: Floats
    log_determinant: Floats

    @classmethod
    def of(
        cls, states: RegressionDistribution, places: Sequence[int], values: Sequence[float]
    ) -> GivenCoefficients:
        """Work out what all that follows needs."""
        given, at = list(places), np.array(values, dtype=np.float64)
        inner, apart = states.covariance[:, given][:, :, given], at - states.loc[:, given]
        nothing = np.zeros(len(states.loc))
        solved = np.linalg.solve(inner, apart[:, :, None])[:, :, 0].astype(np.float64) if given else apart
        return cls(
            states=states,
            places=tuple(places),
            values=at,
            solved=solved,
            squared=np.sum(apart * solved, axis=1),
            log_determinant=np.linalg.slogdet(inner)[1] if given else nothing,
        )

    def log_density(self) -> Floats:
        """Return the log of (3), (n_states,)."""
        from scipy.special import gammaln

        a, r, half = self.states.concentration, self.states.scale, len(self.places) / 2.0
        constant = (
            gammaln(a + half) - gammaln(a) - half * math.log(2.0 * math.pi) - self.log_determinant / 2.0
        )
        density: Floats = constant + a * np.log(r) - (a + half) * np.log(r + self.squared / 2.0)
        return density

    def log_density_given(self, variance: Floats) -> Floats:
        """Return the same given the variance (n_states,)."""
        size = len(self.places)
        log_scale = size * np.log(2.0 * math.pi * variance) + self.log_determinant
        density: Floats = -0.5 * (log_scale + self.squared / variance)
        return density

    def variance(self, rng: np.random.Generator) -> Floats:
        """Draw the variance, (n_states,)."""
        a, r = self.states.concentration + len(self.places) / 2.0, self.states.scale + self.squared / 2.0
        drawn: Floats = r / rng.standard_gamma(a)
        return drawn

    def coefficients(self, variance: Floats, normal: Floats) -> Floats:
        """Return all coefficients (n_states, k) that normal numbers (n_states, k) stand for."""
        given, covariance = list(self.places), self.states.covariance
        spread = np.sqrt(variance)[:, None] * normal
        whole: Floats = self.states.loc + np.einsum("nkl,nl->nk", np.linalg.cholesky(covariance), spread)
        if given:
            # Moved along C to where those that are given have their values.
            apart = (self.values - whole[:, given])[:, :, None]
            moved = np.linalg.solve(covariance[:, given][:, :, given], apart)[:, :, 0]
            whole = whole + np.einsum("nkg,ng->nk", covariance[:, :, given], moved)
            whole[:, given] = self.values
        return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsReference:
    """The default prior of means and a covariance; attributes (d,), in the columns' units, and a."""

    loc: Floats
    half_range: Floats
    concentration: float

    @classmethod
    def of(cls, prior: SpreadNormalInverseWishart, columns: int) -> ColumnsReference:
        """Return it, of so many columns."""
        loc, half_range = prior.of(columns)
        return cls(loc=loc, half_range=half_range, concentration=prior.concentration)

    def log_of_means(self, places: Sequence[int], mean: Floats) -> Floats:
        """Log density (n,) of the means at `places`, (n, a)."""
        sd = self.half_range[list(places)] / 2.0
        z = (mean - self.loc[list(places)]) / sd
        value: Floats = np.sum(-0.5 * z**2 - np.log(sd) - 0.5 * math.log(2.0 * math.pi), axis=1)
        return value

    def log_of_covariance(self, places: Sequence[int], covariance: Floats, kinds: Sequence[str]) -> Floats:
        """Log density (n,), but for a constant, of standard deviations and correlations of some columns.

        Parameters
        ----------
        places : sequence of int
        covariance : ndarray of shape (n, q, q), float64
            Of these columns.
        kinds : sequence of str
            ``sd`` or ``variance`` of each; none of all where the density is that of the correlations alone.
        """
        sd = np.sqrt(np.einsum("nii->ni", covariance))
        correlation = covariance / (sd[:, :, None] * sd[:, None, :])
        value = spread_deviations.log_density_of_correlations(correlation, self.concentration)
        if not kinds:
            return value
        of_logs = spread_deviations.log_density(sd / self.half_range[list(places)], np.log)
        # From log s to s, or to s^2.
        powers = np.array([1.0 if kind == "sd" else 2.0 for kind in kinds])
        return np.asarray(value + of_logs.sum(axis=1) - np.log(sd) @ powers)
