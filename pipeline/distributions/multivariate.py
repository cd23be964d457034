"""Conjugate distributions of several parameters over many cells."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.distributions.scaling import Scaling, design_of
from suffice.pipeline.distributions.wishart_draws import sample_normal_inverse_wishart
from suffice.pipeline.statistics.moment_columns import is_linear, pair_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.distributions.moment_projection import Moments
    from suffice.pipeline.distributions.multivariate_priors import (
        NormalInverseGammaRegression,
        NormalInverseWishart,
    )
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


_BLOCK_NUMBERS = 1 << 24
"""Quantiles of draws are taken over blocks of cells of so many numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalInverseWishartDistribution:
    """Means, variances and covariances of several columns.

    Means have Student's t for a marginal, variances an inverse gamma; quantiles of covariances are those of
    draws. Covariances are of the pairs i < j, by rows of the upper triangle.

    Attributes
    ----------
    loc : ndarray of shape (n_cells, d), float64
    precision, df : ndarray of shape (n_cells,), float64
    scale : ndarray of shape (n_cells, d, d), float64
        As in ``NormalInverseWishart``, in the columns' units.
    names : tuple of str
        The columns'.
    """

    loc: Floats
    precision: Floats
    df: Floats
    scale: Floats
    names: tuple[str, ...]

    @classmethod
    def updated(cls, prior: NormalInverseWishart, sums: Moments, names: tuple[str, ...]) -> Self:
        r"""Conjugate update, worked out in half ranges about the centres.

        .. math::
            \kappa_N = \kappa_0 + n, \quad \mu_N = \frac{\kappa_0 \mu_0 + t}{\kappa_N}, \quad
            \nu_N = \nu_0 + n, \quad \Psi_N = \Psi_0 + S
                + \frac{\kappa_0 n}{\kappa_N} (t / n - \mu_0)(t / n - \mu_0)^T
        """
        prior_loc, prior_precision, df, prior_scale = prior.of(len(names))
        unit = sums.half_range[:, None] * sums.half_range
        loc = (prior_loc - sums.centre) / sums.half_range
        n, total = sums.n, sums.total
        precision = prior_precision + n
        average = np.divide(total, n[:, None], out=np.zeros_like(total), where=n[:, None] > 0.0)
        distance = average - loc
        between = (prior_precision * n / precision)[:, None, None]
        scale = sums.scatter + between * distance[:, :, None] * distance[:, None, :]
        mean = (prior_precision * loc + total) / precision[:, None]
        return cls(
            loc=sums.centre + sums.half_range * mean,
            precision=precision,
            df=df + n,
            scale=prior_scale + unit * scale,
            names=names,
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("mean", "variance", "covariance")

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """What each parameter is of."""
        pairs = tuple(pair_name(*pair) for pair in combinations(self.names, 2))
        return {"mean": self.names, "variance": self.names, "covariance": pairs}

    def mean(self, parameter: str) -> Floats:
        """Means."""
        if parameter == "mean":
            return np.where(self._freedom > 1.0, self.loc, np.nan)
        freedom = self._freedom[:, :, None]
        return _entries(parameter, _above(freedom, 2.0, self.scale, freedom - 2.0))

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        diagonal = np.einsum("cii->ci", self.scale)
        f = self._freedom
        if parameter == "mean":
            return np.sqrt(_above(f, 2.0, diagonal, (f - 2.0) * self.precision[:, None]))
        # Entries of an inverse Wishart, with f = df - d + 1.
        products = diagonal[:, :, None] * diagonal[:, None, :]
        f = f[:, :, None]
        spread = f * self.scale**2 + (f - 2.0) * products
        variance = _above(f, 4.0, spread, (f - 1.0) * (f - 2.0) ** 2 * (f - 4.0))
        return np.sqrt(_entries(parameter, variance))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles of means and variances; of covariances those of draws."""
        from scipy.special import gammainccinv, stdtrit  # noqa: PLC0415 - slow to import

        levels, freedom = np.asarray(q), self._freedom[:, :, None]
        if parameter == "covariance":
            return quantiles_of_draws(self._block, len(self.df), self.loc.shape[1], q, draws, rng)
        diagonal = np.einsum("cii->ci", self.scale)[:, :, None]
        if parameter == "variance":
            variance: Floats = diagonal / 2.0 / gammainccinv(freedom / 2.0, levels)
            return variance
        width = np.sqrt(diagonal / (freedom * self.precision[:, None, None]))
        location: Floats = self.loc[:, :, None] + width * stdtrit(freedom, levels)
        return location

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws, (draws, n_cells, d) and (draws, n_cells, d (d - 1) / 2)."""
        mean, covariance = sample_normal_inverse_wishart(
            self.loc, self.precision, self.df, self.scale, draws, rng
        )
        return {
            "mean": mean,
            "variance": np.einsum("...ii->...i", covariance),
            "covariance": _entries("covariance", covariance),
        }

    @property
    def _freedom(self) -> Floats:
        """Degrees of freedom of every marginal, (n_cells, 1)."""
        freedom: Floats = (self.df - self.loc.shape[1] + 1.0)[:, None]
        return freedom

    def at(self, cells: slice | NDArray[np.int64]) -> Self:
        """Return the distribution of some cells."""
        return dataclasses.replace(
            self,
            loc=self.loc[cells],
            precision=self.precision[cells],
            df=self.df[cells],
            scale=self.scale[cells],
        )

    def _block(self, cells: slice, draws: int, rng: np.random.Generator) -> Floats:
        return self.at(cells).sample(draws, rng)["covariance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionDistribution:
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
        own = design_of(sums, parameters)
        updated = precision + own.gram
        mean = np.linalg.solve(updated, (precision @ loc + own.cross)[:, :, None])[:, :, 0]
        fitted = np.einsum("ck,ckl,cl->c", mean, updated, mean)
        residual = np.maximum(own.outcome + loc @ precision @ loc - fitted, 0.0) / 2.0
        covariance = scaling.matrix @ np.linalg.inv(updated) @ scaling.matrix.T / scaling.outcome**2
        return cls(
            loc=mean @ scaling.matrix.T + scaling.shift,
            covariance=covariance,
            concentration=concentration + own.n / 2.0,
            scale=prior_scale + scaling.outcome**2 * residual,
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
            return _above(self.concentration, 1.0, self.scale, self.concentration - 1.0)
        return self._shown(parameter, np.where(self.concentration[:, None] > 0.5, self.loc, np.nan))

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        a = self.concentration
        if parameter == "variance":
            return np.sqrt(_above(a, 2.0, self.scale**2, (a - 1.0) ** 2 * (a - 2.0)))
        spread = self.scale[:, None] * np.einsum("ckk->ck", self.covariance)
        return self._shown(parameter, np.sqrt(_above(a[:, None], 1.0, spread, a[:, None] - 1.0)))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles, of Student's t and of inverse gammas."""
        from scipy.special import gammainccinv, stdtrit  # noqa: PLC0415 - slow to import

        levels, a = np.asarray(q), self.concentration[:, None]
        if parameter == "variance":
            variance: Floats = self.scale[:, None] / gammainccinv(a, levels)
            return variance
        width = np.sqrt((self.scale / self.concentration)[:, None] * np.einsum("ckk->ck", self.covariance))
        location = self.loc[:, :, None] + width[:, :, None] * stdtrit(2.0 * a, levels)[:, None, :]
        return self._shown(parameter, location)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws, (draws, n_cells, number of predictors) and (draws, n_cells)."""
        size = (draws, len(self.scale))
        variance = self.scale / rng.standard_gamma(self.concentration, size)
        root = np.linalg.cholesky(self.covariance)
        spread = np.einsum("ckl,dcl->dck", root, rng.standard_normal((*size, self.loc.shape[1])))
        coefficient = self.loc + np.sqrt(variance)[:, :, None] * spread
        slopes = coefficient[..., : len(self.predictors)]
        if not self.intercept:
            return {"coefficient": slopes, "variance": variance}
        return {"coefficient": slopes, "intercept": coefficient[..., -1], "variance": variance}

    def at(self, cells: slice | NDArray[np.int64]) -> Self:
        """Return the distribution of some cells."""
        return dataclasses.replace(
            self,
            loc=self.loc[cells],
            covariance=self.covariance[cells],
            concentration=self.concentration[cells],
            scale=self.scale[cells],
        )

    def _shown(self, parameter: str, values: Floats) -> Floats:
        """Take the coefficients or the intercept of values (n_cells, k, ...)."""
        return values[:, -1] if parameter == "intercept" else values[:, : len(self.predictors)]


def quantiles_of_draws(
    block: Callable[[slice, int, np.random.Generator], Floats],
    n_cells: int,
    size: int,
    q: Sequence[float],
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Return quantiles of independent draws over blocks of cells, so that memory stays bounded."""
    step = max(1, _BLOCK_NUMBERS // (draws * size**2))
    parts = [
        np.quantile(block(slice(start, start + step), draws, rng), q, axis=0)
        for start in range(0, n_cells, step)
    ]
    return np.moveaxis(np.concatenate(parts, axis=1), 0, -1)


def _entries(parameter: str, matrix: Floats) -> Floats:
    """Take the diagonal, or the entries above it, of the last two axes."""
    if parameter == "variance":
        diagonal: Floats = np.einsum("...ii->...i", matrix)
        return diagonal
    rows, columns = np.triu_indices(matrix.shape[-1], 1)
    above: Floats = matrix[..., rows, columns]
    return above


def _above(freedom: Floats, least: float, numerator: Floats, denominator: Floats) -> Floats:
    """Return a moment where it exists; infinity elsewhere."""
    exists = np.broadcast_to(freedom > least, np.broadcast_shapes(numerator.shape, denominator.shape))
    moment: Floats = np.divide(numerator, denominator, out=np.full(exists.shape, np.inf), where=exists)
    return moment
