r"""Normal inverse gamma distributions of a mean and a variance, and of a regression.

Model of a column, with n records of sum t and sum of squares q:

.. math:: v \sim \mathrm{InverseGamma}(a, s),
    \qquad m \mid v \sim \mathrm{Normal}(\mu, \sqrt{v / \kappa}), \qquad (1)

.. math:: \eta = (\kappa, \ \kappa \mu, \ a, \ s + \kappa \mu^2 / 2), \qquad
    \log Z = \log \Gamma(a) - a \log s - \tfrac 1 2 \log \kappa. \qquad (2)

Records add (n, t, n / 2, q / 2) to :math:`\eta`. The marginal of v is the inverse gamma of (1), that of m
Student's t of 2 a degrees of freedom about :math:`\mu`, of width :math:`\sqrt{s / a \kappa}`.

Model of a regression of y on the rows of X, a column of ones for the intercept being the last of k:

.. math:: v \sim \mathrm{InverseGamma}(a, s),
    \qquad \beta \mid v \sim \mathrm{Normal}(\mu, v \Lambda^{-1}), \qquad (3)

.. math:: \Lambda_N = \Lambda + X^T X, \quad r = \Lambda \mu + X^T y, \quad \mu_N = \Lambda_N^{-1} r, \quad
    a_N = a + \tfrac n 2, \quad
    s_N = s + \tfrac 1 2 (y^T y + \mu^T \Lambda \mu - \mu_N^T \Lambda_N \mu_N). \qquad (4)

A coefficient is Student's t of 2 a degrees of freedom, of width :math:`\sqrt{(s / a) (\Lambda^{-1})_{jj}}`.
Both are updated in half ranges h about the middles c of the public bounds, where no large numbers cancel.
Coefficients go from there to the columns' units by

.. math:: \beta = B \beta_z + d, \qquad B_{jj} = h_y / h_j, \quad B_{kk} = h_y, \quad B_{kj} = -c_j h_y / h_j,
    \quad d_k = c_y. \qquad (5)

Symbols:

- mu: ``loc``, (n_cells,) or (n_cells, k), any number, in the unit of m or beta
- kappa: ``precision`` of a mean, (n_cells,), > 0, in records
- Lambda: ``precision`` of coefficients, (k, k), positive definite; ``covariance`` is its inverse
- a, s: ``concentration`` and ``scale``, (n_cells,), > 0; s in the square of the unit of m or y
- B, d, h_y: ``Scaling.matrix``, ``shift`` and ``outcome``

Method. Conjugate formulas, right but for rounding.

References
----------
O'Hagan, Forster. Kendall's advanced theory of statistics 2B: Bayesian inference. 2004.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

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
from suffice.pipeline.math.distributions.gamma import InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import log_student
from suffice.pipeline.terms.statistics.moment_columns import is_linear, lattice_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.math.distributions.normal_inverse_wishart import Moments
    from suffice.pipeline.terms.statistics.moment_columns import NormalSums
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class NormalInverseGamma(Prior):
    r"""Joint prior of a normal's mean and variance.

    .. math::
        v \sim \mathrm{InverseGamma}(a, s), \qquad m \mid v \sim \mathrm{Normal}(\mu, \sqrt{v / \kappa})

    Parameters
    ----------
    loc : float
        The prior mean of the mean, in the column's unit.
    precision : float, > 0
        kappa: how many rows the prior mean weighs.
    concentration : float, > 0
        a: the shape of the variance's inverse gamma.
    scale : float, > 0
        s, in the square of the column's unit.
    """

    loc: float
    precision: float
    concentration: float
    scale: float

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws of mean and variance, (size, 2)."""
        variance = self.scale / rng.standard_gamma(self.concentration, size)
        return np.stack([rng.normal(self.loc, np.sqrt(variance / self.precision)), variance], axis=1)

    def distribution(self) -> NormalInverseGammaDistribution:
        """Return it as the distribution of one cell."""
        return NormalInverseGammaDistribution(**self._of_one_cell())


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalInverseGammaDistribution(OfCells):
    """Means and variances; the mean's marginal is Student's t, the variance's an inverse gamma.

    Attributes
    ----------
    loc, precision, concentration, scale : ndarray of shape (n_cells,), float64
        As in ``NormalInverseGamma``, in the column's unit.
    names : (str, str)
        The mean's and the variance's.
    """

    loc: Floats
    precision: Floats
    concentration: Floats
    scale: Floats
    names: tuple[str, str] = ("mean", "variance")

    @classmethod
    def updated(
        cls, prior: NormalInverseGamma, sums: NormalSums, names: tuple[str, str] = ("mean", "variance")
    ) -> Self:
        r"""Conjugate update, worked out in half ranges about the centre.

        .. math::
            \kappa_N = \kappa_0 + n, \quad m_N = \frac{\kappa_0 m_0 + t}{\kappa_N}, \quad
            a_N = a_0 + \frac n 2, \quad s_N = s_0 + \frac 1 2 \left(q - \frac{t^2} n\right)
                + \frac{\kappa_0 n (t / n - m_0)^2}{2 \kappa_N}
        """
        n, total = sums.n, sums.total
        loc = (prior.loc - sums.centre) / sums.half_range
        precision = prior.precision + n
        average = np.divide(total, n, out=np.zeros_like(n), where=n > 0.0)
        # q - t^2 / n, the records about their average, and the average about the prior mean: together they
        # are s_N by (2).
        within = np.maximum(sums.total_of_squares - total * average, 0.0) / 2.0
        between = prior.precision * n * (average - loc) ** 2 / (2.0 * precision)
        # A variance goes back to the column's unit by h^2.
        square = sums.half_range**2
        return cls(
            loc=sums.centre + sums.half_range * (prior.precision * loc + total) / precision,
            precision=precision,
            concentration=prior.concentration + n / 2.0,
            scale=prior.scale + square * (within + between),
            names=names,
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.names

    def mean(self, parameter: str) -> Floats:
        """Means: mu of m, NaN for a <= 1/2; s / (a - 1) of v, infinite for a <= 1."""
        if parameter == self.names[1]:
            return self._variance.mean(parameter)
        return np.where(self.concentration > 0.5, self.loc, np.nan)

    def sd(self, parameter: str) -> Floats:
        """Standard deviations: the root of s / (a - 1) kappa of m; that of an inverse gamma of v."""
        if parameter == self.names[1]:
            return self._variance.sd(parameter)
        # Var m = E v / kappa, for E m given v does not depend on v.
        return np.sqrt(self._variance.mean(parameter) / self.precision)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles, of Student's t and of inverse gammas."""
        from scipy.special import stdtrit

        if parameter == self.names[1]:
            return self._variance.quantiles(parameter, q, draws, rng)
        concentration, scale = self.concentration[:, None], self.scale[:, None]
        # v integrated out of (1): Student's t.
        width = np.sqrt(scale / concentration / self.precision[:, None])
        location: Floats = self.loc[:, None] + width * stdtrit(2.0 * concentration, np.asarray(q))
        return location

    def density(self, parameter: str, points: Floats) -> Floats:
        """Marginal densities, of Student's t and of inverse gammas."""
        if parameter == self.names[1]:
            return self._variance.density(parameter, points)
        width = np.sqrt(self.scale / self.concentration / self.precision)
        degrees = 2.0 * self.concentration
        return np.exp(log_student(degrees[:, None], self.loc[:, None], width[:, None], points))

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        variance = self._variance.sample(draws, rng)[self.names[1]]
        # (1), from left to right.
        mean = self.loc + np.sqrt(variance / self.precision) * rng.standard_normal(variance.shape)
        return {self.names[0]: mean, self.names[1]: variance}

    def natural(self) -> Floats:
        """Return the natural parameters (2), (n_cells, 4)."""
        # (2).
        first = self.precision * self.loc
        return np.stack(
            [self.precision, first, self.concentration, self.scale + first * self.loc / 2.0], axis=-1
        )

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution of the same names with these natural parameters."""
        precision, first, concentration, second = np.moveaxis(eta, -1, 0)
        return replace(
            self,
            # (2), solved for mu and s.
            loc=first / precision,
            precision=precision,
            concentration=concentration,
            scale=second - first**2 / (2.0 * precision),
        )

    def log_normaliser(self) -> Floats:
        """Return log Z of (2), up to a constant."""
        return self._variance.log_normaliser() - np.log(self.precision) / 2.0

    @property
    def _variance(self) -> InverseGammaDistribution:
        """The marginal distribution of the variance."""
        return InverseGammaDistribution(
            concentration=self.concentration, scale=self.scale, name=self.names[1]
        )


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
        # With Lambda = L L^T, L^-T is a root of its inverse.
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
    def updated(cls, prior: NormalInverseGammaRegression, sums: Moments, parameters: Constants) -> Self:
        """Conjugate update (4), worked out in half ranges about the centres."""
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
        parameters: Constants,
    ) -> Self:
        """Update a prior in half ranges, (k,), (n_cells or 1, k, k), a number and (n_cells or 1,)."""
        scaling = Scaling.of(parameters)
        design = design_of(sums, parameters)
        # Lambda_N, and with it r and mu_N, of (4).
        updated = precision + design.gram
        pulled = np.einsum("ckl,l->ck", precision, loc)
        right = pulled + design.cross
        mean = np.linalg.solve(updated, right[:, :, None])[:, :, 0]
        # mu_N^T Lambda_N mu_N as mu_N^T (2 r - Lambda_N mu_N): an error of mu_N counts squared only.
        fitted = np.einsum("ck,ck->c", mean, 2.0 * right - np.einsum("ckl,cl->ck", updated, mean))
        residual = np.maximum(design.outcome + pulled @ loc - fitted, 0.0) / 2.0
        # Of beta over v in the columns' units: B Lambda_N^-1 B^T / h_y^2 by (5), as v is h_y^2 times that in
        # half ranges.
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
        """Means: mu of coefficients, NaN for a <= 1/2; s / (a - 1) of v, infinite for a <= 1."""
        if parameter == "variance":
            return self._variance.mean(parameter)
        return self._shown(parameter, np.where(self.concentration[:, None] > 0.5, self.loc, np.nan))

    def sd(self, parameter: str) -> Floats:
        """Standard deviations: the root of s / (a - 1) (Lambda^-1)_jj of coefficients."""
        if parameter == "variance":
            return self._variance.sd(parameter)
        a = self.concentration[:, None]
        # Var beta_j = E v (Lambda^-1)_jj with E v = s / (a - 1).
        spread = self.scale[:, None] * np.einsum("ckk->ck", self.covariance)
        return self._shown(parameter, np.sqrt(moment_above(1.0, a, spread, a - 1.0)))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles, of Student's t and of inverse gammas."""
        from scipy.special import stdtrit

        if parameter == "variance":
            return self._variance.quantiles(parameter, q, draws, rng)
        # v integrated out of (3): Student's t.
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
        # beta = mu + sqrt(v) L z with L L^T = Lambda^-1.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    r"""The affine map of a regression's coefficients from half ranges to the columns' units.

    .. math:: \beta = A \beta_z + s

    Attributes
    ----------
    matrix : ndarray of shape (k, k), float64
        A; the intercept, where there is one, is the last coefficient.
    shift : ndarray of shape (k,), float64
        s.
    outcome : float
        The outcome's half range.
    """

    matrix: Floats
    shift: Floats
    outcome: float

    @classmethod
    def of(cls, parameters: Constants) -> Self:
        """Return the map of a statistic."""
        linear = is_linear(parameters)
        lattices = [lattice_of(column, linear=linear) for column in parameters.columns]
        *centres, outcome_centre = (float(centre) for centre, _ in lattices)
        *half_ranges, outcome = (float(half_range) for _, half_range in lattices)
        slopes = outcome / np.array(half_ranges)
        if not linear:
            return cls(matrix=np.diag(slopes), shift=np.zeros(len(slopes)), outcome=outcome)
        matrix = np.diag([*slopes, outcome])
        # y = h_y y_z + c_y and x_j = h_j z_j + c_j: what the centres add goes to the intercept.
        matrix[-1, :-1] = -slopes * np.array(centres)
        shift = np.zeros(len(matrix))
        shift[-1] = outcome_centre
        return cls(matrix=matrix, shift=shift, outcome=outcome)

    def coefficients_in_half_ranges(self, coefficient: Floats) -> Floats:
        """Return coefficients (..., k) in half ranges."""
        solved = np.linalg.solve(self.matrix, (coefficient - self.shift)[..., None])[..., 0]
        return np.asarray(solved, dtype=np.float64)

    def to_half_ranges(self, loc: Floats, precision: Floats) -> tuple[Floats, Floats]:
        """Return a normal mean and its precision beside the residual variance in half ranges."""
        # The quadratic form (beta - mu)^T Lambda (beta - mu) / v is the same in both units.
        scaled = self.matrix.T @ precision @ self.matrix / self.outcome**2
        return self.coefficients_in_half_ranges(loc), (scaled + scaled.T) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionSums:
    """X^T X (n_cells, k, k), X^T y (n_cells, k) and y^T y (n_cells,), in half ranges, and n (n_cells,)."""

    gram: Floats
    cross: Floats
    outcome: Floats
    n: Floats


def design_of(sums: Moments, parameters: Constants) -> RegressionSums:
    """Return a regression's sums: the predictors', and those of a column of ones for the intercept."""
    products = sums.products
    if is_linear(parameters):
        ones = np.concatenate([sums.total, sums.n[:, None]], axis=1)
        # The column of ones stands between the predictors and the outcome.
        order = [*range(products.shape[1] - 1), products.shape[1], products.shape[1] - 1]
        full = np.zeros((len(products), len(order), len(order)))
        full[:, :-1, :-1] = products
        full[:, -1, :] = full[:, :, -1] = ones
        products = full[:, order][:, :, order]
    return RegressionSums(
        gram=products[:, :-1, :-1], cross=products[:, :-1, -1], outcome=products[:, -1, -1], n=sums.n
    )
