"""Joint distributions of parameters over many cells: exact moments, marginal quantiles, independent draws.

Every distribution answers for all cells at once. ``quantiles`` has the quantiles along a last axis of its
own.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

from suffice.pipeline.distributions.dirichlet_draws import sample_dirichlet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.distributions.conjugate_priors import NormalInverseGamma
    from suffice.pipeline.distributions.natural_parameters import ConjugateDistribution
    from suffice.pipeline.statistics.normal_sums import NormalSums
    from suffice.typing import Floats


class Distribution(Protocol):
    """What a posterior needs of the distribution of its parameters."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters' names."""

    def mean(self, parameter: str) -> Floats:
        """Means, (n_cells,) or (n_cells, n_categories)."""

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, shaped as the means."""

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles, shaped as the means with len(q) as a last axis."""

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws, each shaped as the means with draws as a first axis."""


class MixtureOfConjugates(Distribution, Protocol):
    """A distribution that is a mixture of conjugate ones, one for every value of latent statistics."""

    def prior_distribution(self) -> ConjugateDistribution:
        """The prior, as the distribution of one cell."""

    def mixture(self, draws: int, rng: np.random.Generator) -> ConjugateDistribution:
        """One conjugate distribution per draw of the latent statistics, draw by draw, then by cell."""


@runtime_checkable
class Labelled(Protocol):
    """A distribution some of whose parameters have a last axis of named entries."""

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """The entries' names, by parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirichletDistribution:
    """Dirichlet probabilities; ``shown`` is the only category of interest, or None for all.

    Attributes
    ----------
    concentration : ndarray of shape (n_cells, n_categories), float64
        Of every cell's Dirichlet.
    """

    concentration: Floats
    shown: int | None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        own, total = self._own()
        return own / total

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        own, total = self._own()
        share = own / total
        return np.asarray(np.sqrt(share * (1.0 - share) / (total + 1.0)))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles, of Betas."""
        from scipy.special import betaincinv  # noqa: PLC0415 - slow to import

        own, total = (part[..., None] for part in self._own())
        return np.asarray(betaincinv(own, total - own, np.asarray(q)), dtype=np.float64)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        size = (draws, *self.concentration.shape)
        drawn = sample_dirichlet(np.broadcast_to(self.concentration, size), rng)
        return {"probability": _shown(drawn, self.shown)}

    def _own(self) -> tuple[Floats, Floats]:
        """Concentrations of what is shown, and their sums over all categories."""
        # Whole columns are added: much faster than along a short axis.
        total = np.add.reduce(self.concentration.T)
        if self.shown is None:
            return self.concentration, total[:, None]
        return self.concentration[:, self.shown], total


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaDistribution:
    """Gamma distributions of one parameter.

    Attributes
    ----------
    concentration, rate : ndarray of shape (n_cells,), float64
        As in ``Gamma``.
    name : str
        The parameter's.
    """

    concentration: Floats
    rate: Floats
    name: str = "rate"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.concentration / self.rate

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return np.sqrt(self.concentration) / self.rate

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles."""
        from scipy.special import gammaincinv  # noqa: PLC0415 - slow to import

        quantiles: Floats = gammaincinv(self.concentration[:, None], np.asarray(q)) / self.rate[:, None]
        return quantiles

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        size = (draws, len(self.rate))
        return {self.name: rng.standard_gamma(self.concentration, size) / self.rate}


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalInverseGammaDistribution:
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
        if parameter == self.names[0]:
            return np.where(self.concentration > 0.5, self.loc, np.nan)
        return _above(self.concentration, 1.0, self.scale / np.maximum(self.concentration - 1.0, 1e-100))

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        over = np.maximum(self.concentration - 1.0, 1e-100)
        if parameter == self.names[0]:
            return _above(self.concentration, 1.0, np.sqrt(self.scale / over / self.precision))
        twice = np.sqrt(np.maximum(self.concentration - 2.0, 1e-100))
        return _above(self.concentration, 2.0, self.scale / over / twice)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles, of Student's t and of inverse gammas."""
        from scipy.special import gammainccinv, stdtrit  # noqa: PLC0415 - slow to import

        levels = np.asarray(q)
        concentration, scale = self.concentration[:, None], self.scale[:, None]
        if parameter == self.names[1]:
            variance: Floats = scale / gammainccinv(concentration, levels)
            return variance
        width = np.sqrt(scale / concentration / self.precision[:, None])
        location: Floats = self.loc[:, None] + width * stdtrit(2.0 * concentration, levels)
        return location

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        size = (draws, len(self.loc))
        variance = self.scale / rng.standard_gamma(self.concentration, size)
        mean = self.loc + np.sqrt(variance / self.precision) * rng.standard_normal(size)
        return {self.names[0]: mean, self.names[1]: variance}


def _shown(values: Floats, shown: int | None) -> Floats:
    """One category's entries along the last axis, or all of them."""
    return values if shown is None else values[..., shown]


def _above(concentration: Floats, least: float, moment: Floats) -> Floats:
    """A moment where it exists; infinity elsewhere."""
    return np.where(concentration > least, moment, np.inf)
