r"""The evidence of moments under priors whose scales are latent: given them it is closed, as a conjugate one.

**Mean and covariance.** Rows of p columns with n, mean :math:`\bar x` and scatter S, under
:math:`\Sigma \mid v \sim \mathrm{IW}(\nu, \Psi)`, :math:`\Psi = \operatorname{diag}(v)` and
:math:`m \sim \mathrm{Normal}(c, H)`. With :math:`A = \Psi + S`, :math:`a = (\nu + n) / 2` and
:math:`\Sigma` integrated out,

.. math:: p(\bar x, S \mid m) \propto \Gamma_p(a)\, |\Psi|^{\nu / 2}\, |A|^{-a}
    \bigl(1 + n (\bar x - m)^T A^{-1} (\bar x - m)\bigr)^{-a}.

The last factor is an integral of normal densities of m,
:math:`\int w^{a - 1} e^{-w (1 + \dots)} dw / \Gamma(a)`.
With the normal prior of m integrated out, one latent w in the place of p means,

.. math:: e = \frac{\Gamma_p(a)}{\Gamma(a)} |\Psi|^{\nu / 2} |A|^{1/2 - a} |K|^{-1/2} w^{a - 1} e^{-w}
    e^{-n w (\bar x - c)^T K^{-1} (\bar x - c)}, \qquad K = A + 2 n w H.

Its coordinate is :math:`\log (w / a)`, which is about normal, and narrow where n is large.

**Regression.** Given the scale v of the residuals it is the evidence under a normal-inverse-gamma prior of
precision :math:`v I`, in half ranges, with its normaliser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions import spread_scales
from suffice.pipeline.math.distributions.spread_scales import CONCENTRATION, freedom
from suffice.pipeline.math.engines.multivariate.evidence import (
    Fit,
    Gradient,
    State,
    inverted,
    multivariate_gamma,
    no_gradient,
    outer,
)

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadNormalEvidence:
    """Evidence of the first columns under ``SpreadNormalInverseWishart``; about 0 without first moments.

    Attributes
    ----------
    loc, half_range : ndarray of shape (size,), float64
        As in the prior, in half ranges of the statistic.
    linear : bool
        Whether there are means; without, the rows are normal about 0.
    """

    loc: Floats
    half_range: Floats
    linear: bool

    @property
    def n_latent(self) -> int:
        """A scale of every column, and w where there are means."""
        return len(self.loc) + int(self.linear)

    @property
    def columns(self) -> tuple[int | None, ...]:
        """Each scale goes along with its column; w with none."""
        return (*range(len(self.loc)), *([None] if self.linear else []))

    def start(self, state: State) -> tuple[Floats, Floats]:
        """Return each column's variance for its scale, and w / a of 1."""
        size = len(self.loc)
        seen = np.einsum("iib->ib", state.spread if self.linear else state.second)[:size]
        scales = spread_scales.coordinate(np.log(seen / self.half_range[:, None] ** 2))
        sd_of_weight = np.sqrt(2.0 / (freedom(size) + state.n))
        ones = np.ones((int(self.linear), scales.shape[1]))
        return np.concatenate([scales, 0.0 * ones]), np.concatenate(
            [np.ones_like(scales), sd_of_weight * ones]
        )

    def variances(self, latent: Floats) -> Floats:
        """Return v (size, b), in squares of the prior's half ranges."""
        v: Floats = np.exp(spread_scales.log_scale(latent[: len(self.loc)])[0])
        return v

    def weight(self, n: Floats, latent: Floats) -> Floats:
        """Return w (b,)."""
        w: Floats = (freedom(len(self.loc)) + n) / 2.0 * np.exp(latent[-1])
        return w

    def __call__(self, state: State, latent: Floats) -> tuple[Floats, Gradient, Floats]:
        """Return the log evidence and its derivatives."""
        size, n = len(self.loc), state.n
        df = freedom(size)
        half = (df + n) / 2.0
        log_v, slope, log_prior, by_prior = spread_scales.log_scale(latent[:size])
        psi = np.exp(log_v) * self.half_range[:, None] ** 2
        diagonal = np.arange(size)
        scale = n * (state.spread if self.linear else state.second)[:size, :size]
        scale[diagonal, diagonal] += psi
        inverse, log_determinant = inverted(scale)
        log_gamma, digamma = multivariate_gamma(half, size)
        value = log_gamma - half * log_determinant + df / 2.0 * log_v.sum(axis=0) + log_prior.sum(axis=0)
        by_scale = -half * inverse
        gradient = no_gradient(state)
        gradient.n[:] = (digamma - log_determinant) / 2.0
        by_latent = np.empty(latent.shape)
        if self.linear:
            of_mean = self._of_mean(state, scale, latent[-1])
            value += of_mean.value + log_determinant / 2.0
            by_scale += of_mean.by_scale + inverse / 2.0
            by_latent[-1] = of_mean.by_weight
            mean = state.mean[:size]
            pulled = np.einsum("ijb,jb->ib", by_scale, mean)
            gradient.total[:size] = of_mean.by_mean / n - 2.0 * pulled
            gradient.n[:] += of_mean.by_n + np.sum(mean * (pulled - of_mean.by_mean / n), axis=0)
        gradient.products[:size, :size] = by_scale
        by_latent[:size] = slope * (df / 2.0 + psi * by_scale[diagonal, diagonal]) + by_prior
        return value, gradient, by_latent

    def _of_mean(self, state: State, scale: Floats, log_ratio: Floats) -> _OfMean:
        """Return the factor of w and the means, given A."""
        from scipy.special import digamma, gammaln

        size, n = len(self.loc), state.n
        half = (freedom(size) + n) / 2.0
        weight = half * np.exp(log_ratio)
        prior = (self.half_range / 2.0) ** 2
        diagonal = np.arange(size)
        inner = scale.copy()
        inner[diagonal, diagonal] += 2.0 * n * weight * prior[:, None]
        inverse, log_determinant = inverted(inner)
        apart = state.mean[:size] - self.loc[:, None]
        solved = np.einsum("ijb,jb->ib", inverse, apart)
        distance = np.sum(apart * solved, axis=0)
        log_weight = np.log(half) + log_ratio
        by_scale = n * weight * outer(solved, solved) - inverse / 2.0
        # Of the determinant and the distance, by n w.
        by_product = 2.0 * (prior @ by_scale[diagonal, diagonal]) - distance
        by_weight = half - weight + n * weight * by_product
        return _OfMean(
            value=half * log_weight - weight - gammaln(half) - log_determinant / 2.0 - n * weight * distance,
            by_scale=by_scale,
            by_mean=-2.0 * n * weight * solved,
            by_weight=by_weight,
            by_n=(log_weight - digamma(half)) / 2.0 + weight * by_product + by_weight / (2.0 * half),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfMean:
    """The log of a factor (b,), and its derivatives: by A, the averages, log (w / a), and n."""

    value: Floats
    by_scale: Floats
    by_mean: Floats
    by_weight: Floats
    by_n: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRegressionEvidence:
    """Evidence of the last column given the others, under ``SpreadNormalInverseGammaRegression``.

    Attributes
    ----------
    loc : ndarray of shape (k,), float64
        The prior's 0, as coefficients in half ranges of the statistic.
    root : ndarray of shape (k, k), float64
        R: beside the residuals' variance in half ranges, the precision is v R^T R.
    outcome : float
        The prior's half range of the outcome over the statistic's.
    linear : bool
        Whether there is an intercept, the last coefficient.
    """

    loc: Floats
    root: Floats
    outcome: float
    linear: bool

    @property
    def n_latent(self) -> int:
        """The scale of the residuals."""
        return 1

    @property
    def columns(self) -> tuple[int | None, ...]:
        """It goes along with the outcome."""
        return (len(self.loc) - int(self.linear),)

    def start(self, state: State) -> tuple[Floats, Floats]:
        """Return the outcome's variance for the residuals' scale."""
        seen = (state.spread if self.linear else state.second)[-1, -1] / self.outcome**2
        scale = spread_scales.coordinate(np.log(seen))[None]
        return scale, np.ones_like(scale)

    def prior(self, latent: Floats) -> tuple[Floats, Floats]:
        """Return the precision (k, k, b) and the scale (b,) of the conjugate prior, in half ranges."""
        logs, _, _, _ = spread_scales.log_scale(latent)
        return self._given(logs[0])

    def squares(self) -> Floats:
        """Return about the prior variances of coefficients (k,)."""
        likely: Floats = (self.outcome / np.diag(self.root)) ** 2
        return likely

    def __call__(self, state: State, latent: Floats) -> tuple[Floats, Gradient, Floats]:
        """Return the log evidence and its derivatives."""
        logs, slope, log_prior, by_prior = spread_scales.log_scale(latent)
        k = len(self.loc)
        precision, scale = self._given(logs[0])
        fit = Fit.of(state, self.loc, precision, scale, CONCENTRATION, linear=self.linear)
        # |v R^T R|^(1/2) and the normaliser of the inverse gamma.
        value = fit.value + (k / 2.0 + CONCENTRATION) * logs[0] + log_prior[0]
        # By log v: of the determinant of the updated precision, and of the updated scale.
        pulled = np.einsum("ijb,jb->ib", precision, fit.apart)
        seen = np.einsum("ijb,ijb->b", fit.inverse, precision)
        seen += fit.weight * np.einsum("ib,ib->b", fit.apart, pulled)
        by_scale = k / 2.0 + CONCENTRATION - fit.weight * scale - seen / 2.0
        return value, fit.gradient, slope * by_scale[None] + by_prior

    def _given(self, log_scale: Floats) -> tuple[Floats, Floats]:
        v = np.exp(log_scale)
        precision: Floats = (self.root.T @ self.root)[:, :, None] * v
        return precision, 2.0 * v * self.outcome**2
