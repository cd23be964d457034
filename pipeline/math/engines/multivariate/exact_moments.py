r"""Priors of several columns: their evidence given moments, what follows, and the plug-in posterior.

The question is the posterior of parameters given moments: latent ones that chains draw (``posterior``), or
moments taken for exact (``posterior_of_moments``, the plug-in). Conjugate priors have a closed evidence
(``evidence``). Under priors that are spread over scales, the scales are latent; given them the evidence is
closed too.

**Mean and covariance.** Rows of p columns with n, mean :math:`\bar x` and scatter S, under :math:`\Sigma
\mid v \sim \mathrm{IW}(\nu, \Psi)`, :math:`\nu = 2 a_0 + p - 1`, :math:`\Psi = \operatorname{diag}(v)`, v
flat in its logarithms, the density q of standard deviations as ``spread_deviations`` takes it, and
:math:`m \sim \mathrm{Normal}(c, H)`. With :math:`A = \Psi + S`, :math:`a = (\nu + n) / 2` and
:math:`\Sigma` integrated out,

.. math:: p(\bar x, S \mid m) \propto \Gamma_p(a)\, |\Psi|^{\nu / 2}\, |A|^{-a}
    \bigl(1 + n (\bar x - m)^T A^{-1} (\bar x - m)\bigr)^{-a} \qquad (1)

    (1 + D)^{-a} = \int w^{a - 1} e^{-w (1 + D)} dw / \Gamma(a) \qquad (2)

so that the normal prior of m can be integrated out, with one latent w in the place of p means:

.. math:: e = \frac{\Gamma_p(a)}{\Gamma(a)} |\Psi|^{\nu / 2} |A|^{1/2 - a} |K|^{-1/2} w^{a - 1} e^{-w}
    e^{-n w (\bar x - c)^T K^{-1} (\bar x - c)}, \qquad K = A + 2 n w H \qquad (3)

The coordinate of w is :math:`\log (w / a)`, which is about normal, and narrow where n is large.

**Regression.** Given the scale v of the residuals the evidence is that under a normal-inverse-gamma prior
of precision :math:`v R^T R`, in half ranges, with its normaliser :math:`v^{k / 2 + a_0}` (4).

Error: (3), but for q, and (4) are exact; scales are drawn by Hamiltonian Monte Carlo (``hmc``), with R-hat
and effective draws. In the code, v is ``psi`` or ``v`` (p, b), A ``scale``, K ``inner``, w ``weight`` (b,), a
``half``, H the square of half of ``half_range``.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions import spread_deviations, spread_scales
from suffice.pipeline.math.distributions.composite import ConjugateMixture
from suffice.pipeline.math.distributions.normal_inverse_gamma import (
    NormalInverseGammaRegression,
    RegressionDistribution,
    Scaling,
)
from suffice.pipeline.math.distributions.normal_inverse_wishart import (
    Moments,
    NormalInverseWishart,
    NormalInverseWishartDistribution,
)
from suffice.pipeline.math.distributions.spread_scales import (
    CONCENTRATION,
    SpreadNormalInverseGammaRegression,
    SpreadNormalInverseWishart,
    updated_given_scales,
)
from suffice.pipeline.math.engines.multivariate import hmc
from suffice.pipeline.math.engines.multivariate.evidence import (
    Fit,
    Gradient,
    MomentState,
    NormalEvidence,
    RegressionEvidence,
    inverted,
    multivariate_gamma,
    no_gradient,
    outer,
)
from suffice.pipeline.math.engines.multivariate.latent_scales import evidence_of
from suffice.pipeline.terms.statistics.moment_columns import is_linear

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.multivariate.evidence import Evidence
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Cells, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadNormalEvidence:
    """Evidence of the first columns under ``SpreadNormalInverseWishart``; about 0 without first moments.

    Attributes
    ----------
    loc, half_range : ndarray of shape (size,), float64
        As in the prior, in half ranges of the statistic.
    concentration : float
        a of the prior.
    linear : bool
        Whether there are means; without, the rows are normal about 0.
    """

    loc: Floats
    half_range: Floats
    concentration: float
    linear: bool

    @property
    def freedom(self) -> float:
        """Degrees of freedom nu."""
        return spread_deviations.freedom(self.concentration, len(self.loc))

    @property
    def n_latent(self) -> int:
        """A scale of every column, and w where there are means."""
        return len(self.loc) + int(self.linear)

    @property
    def columns(self) -> tuple[int | None, ...]:
        """Each scale goes along with its column; w with none."""
        return (*range(len(self.loc)), *([None] if self.linear else []))

    def start(self, state: MomentState) -> tuple[Floats, Floats]:
        """Return each column's variance for its scale, and w / a of 1."""
        size = len(self.loc)
        seen = np.einsum("iib->ib", state.spread if self.linear else state.second)[:size]
        scales = np.log(seen / self.half_range[:, None] ** 2)
        # w is about Gamma(a): log w has about the variance 1 / a = 2 / (nu + n).
        sd_of_weight = np.sqrt(2.0 / (self.freedom + state.n))
        ones = np.ones((int(self.linear), scales.shape[1]))
        return np.concatenate([scales, 0.0 * ones]), np.concatenate(
            [np.ones_like(scales), sd_of_weight * ones]
        )

    def variances(self, latent: Floats) -> Floats:
        """Return v (size, b), in squares of the prior's half ranges."""
        v: Floats = np.exp(latent[: len(self.loc)])
        return v

    def weight(self, n: Floats, latent: Floats) -> Floats:
        """Return w (b,)."""
        w: Floats = (self.freedom + n) / 2.0 * np.exp(latent[-1])
        return w

    def __call__(self, state: MomentState, latent: Floats) -> tuple[Floats, Gradient, Floats]:
        """Return the log evidence and its derivatives."""
        size, n = len(self.loc), state.n
        df, log_v = self.freedom, latent[:size]
        half = (df + n) / 2.0
        psi = np.exp(log_v) * self.half_range[:, None] ** 2
        diagonal = np.arange(size)
        scale = n * (state.spread if self.linear else state.second)[:size, :size]
        scale[diagonal, diagonal] += psi
        inverse, log_determinant = inverted(scale)
        log_gamma, digamma = multivariate_gamma(half, size)
        # (1) at D = 0, and q of standard deviations.
        rows, by_rows = spread_deviations.rows_that_count(n, self.concentration, linear=self.linear)
        deviation = np.sqrt(scale[diagonal, diagonal] / rows) / self.half_range[:, None]
        value = log_gamma - half * log_determinant + df / 2.0 * log_v.sum(axis=0)
        value += spread_deviations.log_density(deviation, np.log).sum(axis=0)
        by_log = spread_deviations.slope(deviation) / 2.0
        by_scale = -half * inverse
        by_scale[diagonal, diagonal] += by_log / scale[diagonal, diagonal]
        gradient = no_gradient(state)
        gradient.n[:] = (digamma - log_determinant) / 2.0 - by_rows / rows * by_log.sum(axis=0)
        by_latent = np.empty(latent.shape)
        if self.linear:
            of_mean = self._of_mean(state, scale, latent[-1])
            # (3): |A|^(1/2 - a) instead of |A|^-a.
            value += of_mean.value + log_determinant / 2.0
            by_scale += of_mean.by_scale + inverse / 2.0
            by_latent[-1] = of_mean.by_weight
            mean = state.mean[:size]
            # S = Q - t t^T / n: a derivative by S is one by Q, t and n.
            pulled = np.einsum("ijb,jb->ib", by_scale, mean)
            gradient.total[:size] = of_mean.by_mean / n - 2.0 * pulled
            gradient.n[:] += of_mean.by_n + np.sum(mean * (pulled - of_mean.by_mean / n), axis=0)
        gradient.products[:size, :size] = by_scale
        # A has v on its diagonal: d/d log v of (nu / 2) log v and of A.
        by_latent[:size] = df / 2.0 + psi * by_scale[diagonal, diagonal]
        return value, gradient, by_latent

    def _of_mean(self, state: MomentState, scale: Floats, log_ratio: Floats) -> _OfMean:
        """Return the factor of w and the means, given A."""
        from scipy.special import digamma, gammaln

        size, n = len(self.loc), state.n
        half = (self.freedom + n) / 2.0
        weight = half * np.exp(log_ratio)
        prior = (self.half_range / 2.0) ** 2
        diagonal = np.arange(size)
        inner = scale.copy()
        # K of (3).
        inner[diagonal, diagonal] += 2.0 * n * weight * prior[:, None]
        inverse, log_determinant = inverted(inner)
        apart = state.mean[:size] - self.loc[:, None]
        solved = np.einsum("ijb,jb->ib", inverse, apart)
        distance = np.sum(apart * solved, axis=0)
        log_weight = np.log(half) + log_ratio
        # d(x^T K^-1 x) = -x^T K^-1 dK K^-1 x, and d log|K| = tr(K^-1 dK).
        by_scale = n * weight * outer(solved, solved) - inverse / 2.0
        # Of the determinant and the distance, by n w.
        # d K / d(n w) = 2 H, and the factor n w of the distance.
        by_product = 2.0 * (prior @ by_scale[diagonal, diagonal]) - distance
        by_weight = half - weight + n * weight * by_product
        return _OfMean(
            value=half * log_weight - weight - gammaln(half) - log_determinant / 2.0 - n * weight * distance,
            by_scale=by_scale,
            by_mean=-2.0 * n * weight * solved,
            by_weight=by_weight,
            # a = (nu + n) / 2, in the power of w and in its gamma function; w = a e^x moves with n too.
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

    def start(self, state: MomentState) -> tuple[Floats, Floats]:
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

    def __call__(self, state: MomentState, latent: Floats) -> tuple[Floats, Gradient, Floats]:
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


_MOST_STATES = 1 << 19
"""Latent states kept over all cells, within the bounds for one cell below."""
_FEWEST, _MOST = 1024, 8192
_CHAINS = ((2, 128), (8, 64))
_CHAINS_OF_MANY = 16
"""Chains of a cell, of up to so many cells, and of more: where cells are few, more chains cost little."""
_FEWEST_ITERATIONS = 128
"""Draws kept of each chain at least where cells are few: of fewer, halves of chains seem to disagree."""


def lengths(n_cells: int) -> tuple[int, int]:
    """Return how many chains a cell has, and how many draws of each are kept."""
    for most_cells, n_chains in _CHAINS:
        if n_cells <= most_cells:
            return n_chains, max(_FEWEST_ITERATIONS, _MOST // n_chains)
    return _CHAINS_OF_MANY, min(_MOST, max(_FEWEST, _MOST_STATES // n_cells)) // _CHAINS_OF_MANY


def moments_of(state: MomentState, centre: Floats, half_range: Floats) -> Moments:
    """Return the moments of states, one a cell, in half ranges."""
    return Moments(
        n=np.broadcast_to(state.n, state.mean.shape[1:]),
        total=(state.n * state.mean).T,
        products=np.moveaxis(state.n * state.second, 2, 0),
        centre=centre,
        half_range=half_range,
    )


def mixture_of_states(
    distribution: ConjugateDistribution, kept: Floats, rng: np.random.Generator
) -> ConjugateMixture:
    """Return the mixture over states, and what R-hat and effective draws say of parameters drawn from it.

    Parameters
    ----------
    distribution : NormalInverseWishartDistribution or RegressionDistribution
        Of the parameters given every state: in the order of draws, then chains, then cells.
    kept : ndarray of shape (iterations, n_coordinates, n_cells, n_chains), float64
        What the chains have drawn.
    rng : numpy.random.Generator
    """
    iterations, _, n_cells, n_chains = kept.shape
    drawn = distribution.sample(1, rng)
    each = [values[0].reshape(iterations, n_chains, n_cells, -1) for values in drawn.values()]
    parameters = hmc.normal_scores(np.concatenate(each, axis=3))
    return ConjugateMixture(
        conditional=distribution,
        n_states=iterations * n_chains,
        n_cells=n_cells,
        diagnostics={
            "sampler": "MCMC (Hamiltonian Monte Carlo)",
            "chains": n_chains,
            "draws": iterations * n_chains,
            "largest_r_hat": round(float(hmc.split_r_hat(parameters).max()), 4),
            "fewest_effective_draws": math.floor(hmc.effective_draws(parameters).min()),
        },
        in_turn=True,
    )


AnyNormalPrior: TypeAlias = NormalInverseWishart | SpreadNormalInverseWishart
AnyRegressionPrior: TypeAlias = NormalInverseGammaRegression | SpreadNormalInverseGammaRegression
ConjugateDistribution: TypeAlias = NormalInverseWishartDistribution | RegressionDistribution
Update: TypeAlias = "Callable[[Moments, Floats, np.random.Generator], ConjugateDistribution]"
"""Moments, coordinates of latent scales (n_latent, n_cells), a generator -> parameters given both."""


def normal_evidence(
    prior: AnyNormalPrior, size: int, centre: Floats, half_range: Floats, *, linear: bool
) -> NormalEvidence | SpreadNormalEvidence:
    """Return the evidence of the first `size` columns under a prior in the columns' units."""
    if isinstance(prior, SpreadNormalInverseWishart):
        middle, width = prior.of(size)
        return SpreadNormalEvidence(
            loc=(middle - centre) / half_range,
            half_range=width / half_range,
            concentration=prior.concentration,
            linear=linear,
        )
    loc, precision, df, scale = prior.of(size)
    return NormalEvidence(
        loc=(loc - centre) / half_range,
        precision=precision,
        df=df,
        scale=scale / half_range / half_range[:, None],
        linear=linear,
    )


def normal_update(
    prior: AnyNormalPrior, evidence: NormalEvidence | SpreadNormalEvidence, names: tuple[str, ...]
) -> Update:
    """Return how parameters follow from moments and scales."""
    if isinstance(prior, SpreadNormalInverseWishart) and isinstance(evidence, SpreadNormalEvidence):

        def given_scales(
            moments: Moments, latent: Floats, rng: np.random.Generator
        ) -> NormalInverseWishartDistribution:
            variance, weight = evidence.variances(latent).T, evidence.weight(moments.n, latent)
            return updated_given_scales(prior, moments, names, variance, weight, rng)

        return given_scales
    if not isinstance(prior, NormalInverseWishart):
        raise TypeError(prior)
    return lambda moments, _latent, _rng: NormalInverseWishartDistribution.updated(prior, moments, names)


def regression_evidence(
    prior: AnyRegressionPrior, parameters: Constants
) -> RegressionEvidence | SpreadRegressionEvidence:
    """Return the evidence of the last column given the others under a prior in the columns' units."""
    scaling, linear = Scaling.of(parameters), is_linear(parameters)
    if isinstance(prior, SpreadNormalInverseGammaRegression):
        matrix, shift = prior.map_to_half_ranges(len(parameters.columns), linear=linear)
        _, half_range = prior.of(len(parameters.columns), linear=linear)
        outcome = float(half_range[-1]) / scaling.outcome
        return SpreadRegressionEvidence(
            loc=scaling.coefficients_in_half_ranges(shift),
            # Coefficients in half ranges are a linear map of those in the columns' units: R maps back.
            root=np.asarray(np.linalg.solve(matrix, scaling.matrix) * outcome, dtype=np.float64),
            outcome=outcome,
            linear=linear,
        )
    prior_loc, prior_precision, concentration, scale = prior.of(len(scaling.shift))
    loc, precision = scaling.to_half_ranges(prior_loc, prior_precision)
    return RegressionEvidence(
        loc=loc,
        precision=precision,
        concentration=concentration,
        scale=scale / scaling.outcome**2,
        linear=linear,
    )


def regression_update(
    prior: AnyRegressionPrior, evidence: RegressionEvidence | SpreadRegressionEvidence, parameters: Constants
) -> Update:
    """Return how parameters follow from moments and scales."""
    if isinstance(evidence, SpreadRegressionEvidence):

        def given_scales(
            moments: Moments, latent: Floats, _rng: np.random.Generator
        ) -> RegressionDistribution:
            precision, scale = evidence.prior(latent)
            return RegressionDistribution.given(
                evidence.loc, np.moveaxis(precision, 2, 0), CONCENTRATION, scale, moments, parameters
            )

        return given_scales
    if not isinstance(prior, NormalInverseGammaRegression):
        raise TypeError(prior)
    return lambda moments, _latent, _rng: RegressionDistribution.updated(prior, moments, parameters)


_LEAST_ROWS = 1e-9
"""In the place of no rows, whose averages are not defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalesTarget:
    """The log density of latent scales given the moments of every cell.

    Attributes
    ----------
    evidence : Evidence
    state : MomentState
        One a cell.
    """

    evidence: Evidence
    state: MomentState

    def take(self, cells: Cells) -> Self:
        """Return the density of some cells."""
        return replace(self, state=_indexed(self.state, cells))

    def at(self, x: Floats) -> MomentState:
        """Return the moments of every chain of b; those of a cell follow one another."""
        n_cells = len(self.state.n)
        return _indexed(self.state, np.repeat(np.arange(n_cells), x.shape[1] // n_cells))

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density (b,), up to a constant, and its gradient (n_latent, b)."""
        state = self.at(x)
        return evidence_of((self.evidence,), state, x, no_gradient(state))


def posterior_of_moments(sums: Moments, evidence: Evidence, update: Update, prior: str) -> ConjugateMixture:
    """Return the posterior under a prior with latent scales, which chains draw; the moments are given.

    Parameters
    ----------
    sums : Moments
        In half ranges, possible.
    evidence : Evidence
    update : callable
        Moments, coordinates of scales and a generator -> the parameters given both.
    prior : str
        Its text. The chains' generator rests on it and the moments: who asks again gets the same.
    """
    n = np.maximum(sums.n, _LEAST_ROWS)
    mean = (sums.total / n[:, None]).T
    second = np.moveaxis(sums.products / n[:, None, None], 0, 2)
    spread = np.moveaxis(sums.scatter / n[:, None, None], 0, 2)
    target = ScalesTarget(evidence=evidence, state=MomentState(n=n, mean=mean, spread=spread, second=second))
    content = repr((prior, sums.n.tolist(), sums.total.tolist(), sums.products.tolist())).encode()
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(content).digest()[:16], "big"))
    n_chains, iterations = lengths(len(n))
    diagonal = np.arange(len(mean))
    # A column without scatter has no scale to start from.
    visible = spread.copy()
    visible[diagonal, diagonal] += 1e-9
    base, guess = evidence.start(replace(target.state, spread=visible, second=second + visible - spread))
    start = base[:, :, None] + guess[:, :, None] * rng.standard_normal((*base.shape, n_chains))
    kept = hmc.sample_until_settled(target, start, guess, iterations, rng)
    flat = kept.transpose(1, 0, 3, 2).reshape(kept.shape[1], -1)
    # States stand in the order of draws, then chains, then cells.
    state = _indexed(target.state, np.tile(np.arange(len(n)), iterations * n_chains))
    moments = moments_of(state, sums.centre, sums.half_range)
    return mixture_of_states(update(moments, flat, rng), kept, rng)


def _indexed(state: MomentState, cells: Cells) -> MomentState:
    return MomentState(
        n=state.n[cells],
        mean=state.mean[:, cells],
        spread=state.spread[:, :, cells],
        second=state.second[:, :, cells],
    )
