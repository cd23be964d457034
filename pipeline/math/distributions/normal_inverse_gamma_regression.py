"""The normal inverse gamma distribution of a regression: as a prior, and of many cells as a posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.distributions.design_sums import Scaling, design_of
from suffice.pipeline.math.distributions.distribution import (
    Entries,
    OfCells,
    Prior,
    freeze,
    matrix_of,
    moment_above,
    require_positive,
    vector_of,
)
from suffice.pipeline.math.distributions.inverse_gamma import InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import log_student
from suffice.pipeline.terms.statistics.moment_columns import is_linear

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.math.distributions.moment_projection import Moments
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class NormalInverseGammaRegression(Prior):
    r"""Joint prior of a regression's coefficients and the variance of its residuals.

    .. math::
        v \sim \mathrm{InverseGamma}(a, s), \qquad
        \beta \mid v \sim \mathrm{Normal}(\mu, v \Lambda^{-1})

    Parameters
    ----------
    loc : float or list of float
        The prior mean of the coefficients, in order of the predictors, the intercept (of predictors that are
        all 0) last where there is one: one for all, or one each.
    precision : float, list or list of lists, > 0
        Lambda: a multiple of the identity, a diagonal, or a positive definite matrix.
    concentration : float, > 0
        a: the shape of the variance's inverse gamma.
    scale : float, > 0
        s, in the square of the outcome's unit.
    """

    loc: Entries
    precision: Entries
    concentration: float
    scale: float

    def __post_init__(self) -> None:
        freeze(self)
        require_positive(self, "concentration", "scale")

    def of(self, size: int) -> tuple[Floats, Floats, float, float]:
        """Return loc (size,), precision (size, size), concentration and scale.

        Raises
        ------
        PriorError
            Where the prior is not one of so many coefficients.
        """
        loc, precision = vector_of(self, "loc", size), matrix_of(self, "precision", size)
        return loc, precision, float(self.concentration), float(self.scale)

    def sample(self, size: int, rng: np.random.Generator, coefficients: int) -> tuple[Floats, Floats]:
        """Return independent draws of coefficients (size, coefficients) and variances (size,)."""
        loc, precision, concentration, scale = self.of(coefficients)
        variance = scale / rng.standard_gamma(concentration, size)
        # With precision = L L^T, L^-T is a root of its inverse.
        root = np.linalg.inv(np.linalg.cholesky(precision))
        spread = rng.standard_normal((size, coefficients)) @ root
        return loc + np.sqrt(variance)[:, None] * spread, variance


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionDistribution(OfCells):
    """Coefficients, the intercept where there is one, and the variance of the residuals.

    Coefficients have Student's t for a marginal, the variance an inverse gamma.

    Attributes
    ----------
    loc : ndarray of shape (n_cells, k), float64
        The intercept last where there is one.
    covariance : ndarray of shape (n_cells, k, k), float64
        Of the coefficients, over the variance of the residuals.
    concentration, scale : ndarray of shape (n_cells,), float64
        Of the variance's inverse gamma.
    predictors : tuple of str
    intercept : bool
    """

    loc: Floats
    covariance: Floats
    concentration: Floats
    scale: Floats
    predictors: tuple[str, ...]
    intercept: bool

    @classmethod
    def updated(cls, prior: NormalInverseGammaRegression, sums: Moments, parameters: Parameters) -> Self:
        r"""Conjugate update, worked out in half ranges about the centres.

        .. math::
            \Lambda_N = \Lambda_0 + X^T X, \quad \mu_N = \Lambda_N^{-1} (\Lambda_0 \mu_0 + X^T y), \quad
            a_N = a_0 + \frac n 2, \quad s_N = s_0
                + \frac 1 2 (y^T y + \mu_0^T \Lambda_0 \mu_0 - \mu_N^T \Lambda_N \mu_N)
        """
        scaling = Scaling.of(parameters)
        prior_loc, prior_precision, concentration, prior_scale = prior.of(len(scaling.shift))
        loc, precision = scaling.to_half_ranges(prior_loc, prior_precision)
        scale = np.full(1, prior_scale / scaling.outcome**2)
        return cls.given(loc, precision[None], concentration, scale, sums, parameters)

    @classmethod
    def given(
        cls,
        loc: Floats,
        precision: Floats,
        concentration: float,
        scale: Floats,
        sums: Moments,
        parameters: Parameters,
    ) -> Self:
        """Update a prior in half ranges, (k,), (n_cells or 1, k, k), a number and (n_cells or 1,)."""
        scaling = Scaling.of(parameters)
        design = design_of(sums, parameters)
        updated = precision + design.gram
        pulled = np.einsum("ckl,l->ck", precision, loc)
        right = pulled + design.cross
        mean = np.linalg.solve(updated, right[:, :, None])[:, :, 0]
        # What is wrong in the mean counts squared here.
        fitted = np.einsum("ck,ck->c", mean, 2.0 * right - np.einsum("ckl,cl->ck", updated, mean))
        residual = np.maximum(design.outcome + pulled @ loc - fitted, 0.0) / 2.0
        covariance = scaling.matrix @ np.linalg.inv(updated) @ scaling.matrix.T / scaling.outcome**2
        return cls(
            loc=mean @ scaling.matrix.T + scaling.shift,
            covariance=covariance,
            concentration=concentration + design.n / 2.0,
            scale=scaling.outcome**2 * (scale + residual),
            predictors=tuple(column.name for column in parameters.columns[:-1]),
            intercept=is_linear(parameters),
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("coefficient", "intercept", "variance") if self.intercept else ("coefficient", "variance")

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """What each parameter is of."""
        return {"coefficient": self.predictors}

    def mean(self, parameter: str) -> Floats:
        """Means."""
        if parameter == "variance":
            return self._variance.mean(parameter)
        return self._shown(parameter, np.where(self.concentration[:, None] > 0.5, self.loc, np.nan))

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        if parameter == "variance":
            return self._variance.sd(parameter)
        a = self.concentration[:, None]
        spread = self.scale[:, None] * np.einsum("ckk->ck", self.covariance)
        return self._shown(parameter, np.sqrt(moment_above(1.0, a, spread, a - 1.0)))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles, of Student's t and of inverse gammas."""
        from scipy.special import stdtrit

        if parameter == "variance":
            return self._variance.quantiles(parameter, q, draws, rng)
        student = stdtrit(2.0 * self.concentration[:, None], np.asarray(q))
        width = np.sqrt((self.scale / self.concentration)[:, None] * np.einsum("ckk->ck", self.covariance))
        location = self.loc[:, :, None] + width[:, :, None] * student[:, None, :]
        return self._shown(parameter, location)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Marginal densities, of Student's t and of inverse gammas."""
        if parameter == "variance":
            return self._variance.density(parameter, points)
        width = np.sqrt((self.scale / self.concentration)[:, None] * np.einsum("ckk->ck", self.covariance))
        loc, width = self._shown(parameter, self.loc), self._shown(parameter, width)
        degrees = 2.0 * self.concentration.reshape(-1, *(1,) * (points.ndim - 1))
        return np.exp(log_student(degrees, loc[..., None], width[..., None], points))

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws, (draws, n_cells, number of predictors) and (draws, n_cells)."""
        variance = self._variance.sample(draws, rng)["variance"]
        root = np.linalg.cholesky(self.covariance)
        normal = rng.standard_normal((*variance.shape, self.loc.shape[1]))
        spread = np.einsum("ckl,dcl->dck", root, normal)
        coefficient = self.loc + np.sqrt(variance)[:, :, None] * spread
        slopes = coefficient[..., : len(self.predictors)]
        if not self.intercept:
            return {"coefficient": slopes, "variance": variance}
        return {"coefficient": slopes, "intercept": coefficient[..., -1], "variance": variance}

    def _shown(self, parameter: str, values: Floats) -> Floats:
        """Take the coefficients or the intercept of values (n_cells, k, ...)."""
        return values[:, -1] if parameter == "intercept" else values[:, : len(self.predictors)]

    @property
    def _variance(self) -> InverseGammaDistribution:
        """The marginal distribution of the residuals' variance."""
        return InverseGammaDistribution(concentration=self.concentration, scale=self.scale)
