"""The normal inverse gamma distribution of a mean and a variance: as a prior, and as a posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.distributions.distribution import OfCells, Prior
from suffice.pipeline.math.distributions.inverse_gamma import InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import log_student

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.statistics.moment_columns import NormalSums
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
        cls,
        prior: NormalInverseGamma,
        sums: NormalSums,
        names: tuple[str, str] = ("mean", "variance"),
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
        within = np.maximum(sums.total_of_squares - total * average, 0.0) / 2.0
        between = prior.precision * n * (average - loc) ** 2 / (2.0 * precision)
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
        """Means."""
        if parameter == self.names[1]:
            return self._variance.mean(parameter)
        return np.where(self.concentration > 0.5, self.loc, np.nan)

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        if parameter == self.names[1]:
            return self._variance.sd(parameter)
        return np.sqrt(self._variance.mean(parameter) / self.precision)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles, of Student's t and of inverse gammas."""
        from scipy.special import stdtrit

        if parameter == self.names[1]:
            return self._variance.quantiles(parameter, q, draws, rng)
        concentration, scale = self.concentration[:, None], self.scale[:, None]
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
        mean = self.loc + np.sqrt(variance / self.precision) * rng.standard_normal(variance.shape)
        return {self.names[0]: mean, self.names[1]: variance}

    def natural(self) -> Floats:
        """Return the natural parameters, (n_cells, 4)."""
        first = self.precision * self.loc
        return np.stack(
            [self.precision, first, self.concentration, self.scale + first * self.loc / 2.0], axis=-1
        )

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution of the same names with these natural parameters."""
        precision, first, concentration, second = np.moveaxis(eta, -1, 0)
        return replace(
            self,
            loc=first / precision,
            precision=precision,
            concentration=concentration,
            scale=second - first**2 / (2.0 * precision),
        )

    def log_normaliser(self) -> Floats:
        """Return the log of the normaliser, up to a constant."""
        return self._variance.log_normaliser() - np.log(self.precision) / 2.0

    @property
    def _variance(self) -> InverseGammaDistribution:
        """The marginal distribution of the variance."""
        return InverseGammaDistribution(
            concentration=self.concentration, scale=self.scale, name=self.names[1]
        )
