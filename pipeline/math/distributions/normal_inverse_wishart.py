r"""Normal inverse Wishart distributions of d means and their covariance: as a prior, and of many cells.

Model.

.. math:: \Sigma \sim \mathrm{InverseWishart}(\nu, \Psi),
    \qquad m \mid \Sigma \sim \mathrm{Normal}(\mu, \Sigma / \kappa), \qquad (1)

the inverse Wishart density being proportional to :math:`|\Sigma|^{-(\nu + d + 1) / 2} e^{-\mathrm{tr}(\Psi
\Sigma^{-1}) / 2}`. With n records of sum t and scatter S about their average :math:`\bar z`,

.. math:: \kappa_N = \kappa + n, \quad \mu_N = \frac{\kappa \mu + t}{\kappa_N}, \quad \nu_N = \nu + n, \quad
    \Psi_N = \Psi + S + \frac{\kappa n}{\kappa_N} (\bar z - \mu)(\bar z - \mu)^T. \qquad (2)

Marginals. With :math:`f = \nu - d + 1`, a mean is Student's t of f degrees of freedom and width
:math:`\sqrt{\Psi_{ii} / f \kappa}`, a variance is InverseGamma(f / 2, :math:`\Psi_{ii} / 2`), and

.. math:: E \Sigma_{ij} = \frac{\Psi_{ij}}{f - 2}, \qquad
    \mathrm{Var} \Sigma_{ij} = \frac{f \Psi_{ij}^2 + (f - 2) \Psi_{ii} \Psi_{jj}}{(f - 1)(f - 2)^2 (f - 4)}.
    \qquad (3)

Draws. With :math:`\Psi = L L^T` and A lower triangular, :math:`A_{ii}^2 \sim \chi^2_{\nu - i}` for i =
0..d-1, standard normal below,

.. math:: \Sigma = R R^T, \qquad R = L A^{-T}, \qquad m = \mu + R z / \sqrt \kappa. \qquad (4)

Noisy moments. A release gives n, sums t and products Q of :math:`z = (x - c) / h`, each in -1..1, plus noise.
Rows can have

.. math:: n \ge 0, \qquad |t_i| \le n, \qquad S = Q - t t^T / n \succeq 0,
    \qquad S_{ii} \le n - t_i^2 / n, \qquad (5)

and ``project`` returns moments that do.

Symbols:

- mu: ``loc``, (n_cells, d), in the columns' units
- kappa, nu: ``precision`` > 0, in records, and ``df`` > d - 1, (n_cells,)
- Psi: ``scale``, (n_cells, d, d), positive definite, in products of the columns' units
- f: ``_freedom``, (n_cells, 1)
- n, t, Q, S: ``Moments.n``, ``total``, ``products`` and ``scatter``, without a unit but for records
- c, h: ``centre`` and ``half_range``, (d,), h > 0, in the columns' units

Method. Conjugate formulas, right but for rounding. Covariances have no marginal in closed form: their
quantiles are those of draws. The projection is not the nearest point of (5), but a point of it that leaves
possible moments as they are.

References
----------
Bartlett. On the theory of statistical regression. Proc. R. Soc. Edinb. 53, 1933. Gelman et al. Bayesian data
analysis, section 3.6. 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions import distribution
from suffice.pipeline.math.distributions.gamma import InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import log_student
from suffice.pipeline.terms.statistics.moment_columns import is_linear, lattice_of, pair_name
from suffice.pipeline.terms.statistics.sensitivity import Quantity, combination

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


_BLOCK_NUMBERS = 1 << 24
"""Quantiles of draws are taken over blocks of cells of so many numbers."""


@dataclass(frozen=True, slots=True)
class NormalInverseWishart(distribution.Prior):
    r"""Joint prior of the mean and the covariance of several columns.

    .. math::
        \Sigma \sim \mathrm{InverseWishart}(\nu, \Psi), \qquad
        m \mid \Sigma \sim \mathrm{Normal}(\mu, \Sigma / \kappa)

    The covariance is :math:`\Psi / (\nu - d - 1)` on average.

    Parameters
    ----------
    loc : float or list of float
        The prior mean of the means, in the columns' units: one for all, or one per column.
    precision : float, > 0
        kappa: how many rows the prior mean weighs.
    df : float, > d - 1
        nu: the degrees of freedom.
    scale : float, list or list of lists, > 0
        Psi, in products of the columns' units: a multiple of the identity, a diagonal, or a positive
        definite matrix.
    """

    loc: distribution.Entries
    precision: float
    df: float
    scale: distribution.Entries

    def __post_init__(self) -> None:
        distribution.freeze(self)
        distribution.require_positive(self, "precision", "df")

    def of(self, size: int) -> tuple[Floats, float, float, Floats]:
        """Return loc (size,), precision, df and scale (size, size).

        Raises
        ------
        PriorError
            Where the prior is not one of so many columns.
        """
        if self.df <= size - 1:
            message = f"NormalInverseWishart: df must be above {size - 1} for {size} columns, not {self.df!r}"
            raise PriorError(message)
        loc, scale = distribution.vector_of(self, "loc", size), distribution.matrix_of(self, "scale", size)
        return loc, float(self.precision), float(self.df), scale

    def sample(self, size: int, rng: np.random.Generator, columns: int) -> tuple[Floats, Floats]:
        """Return independent draws of means (size, columns) and covariances (size, columns, columns)."""
        loc, precision, df, scale = self.of(columns)
        mean, covariance = sample_normal_inverse_wishart(
            loc[None], np.array([precision]), np.array([df]), scale[None], size, rng
        )
        return mean[:, 0], covariance[:, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalInverseWishartDistribution(distribution.OfCells):
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
        """Conjugate update (2), worked out in half ranges about the centres."""
        prior_loc, prior_precision, df, prior_scale = prior.of(len(names))
        # Psi_ij goes back to the columns' units by h_i h_j.
        unit = sums.half_range[:, None] * sums.half_range
        loc = (prior_loc - sums.centre) / sums.half_range
        n, total = sums.n, sums.total
        precision = prior_precision + n
        average = np.divide(total, n[:, None], out=np.zeros_like(total), where=n[:, None] > 0.0)
        # The term of (2) by which the prior mean and the average differ.
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
        """Means: mu of m, NaN for f <= 1 unless m is given; Psi / (f - 2) of Sigma, infinite for f <= 2."""
        if parameter == "mean":
            return np.where((self._freedom > 1.0) | self._is_given, self.loc, np.nan)
        freedom = self._freedom[:, :, None]
        return _entries(parameter, distribution.moment_above(2.0, freedom, self.scale, freedom - 2.0))

    def sd(self, parameter: str) -> Floats:
        """Standard deviations: the root of Psi_ii / (f - 2) kappa of m; (3) of Sigma, infinite for f <= 4."""
        diagonal = np.einsum("cii->ci", self.scale)
        f = self._freedom
        if parameter == "mean":
            # Var m_i = E Sigma_ii / kappa; of a mean that is given 0, also where Sigma has no mean.
            kappa = np.where(self._is_given, 1.0, self.precision[:, None])
            variance = distribution.moment_above(2.0, f, diagonal, (f - 2.0) * kappa)
            return np.where(self._is_given, 0.0, np.sqrt(variance))
        # (3).
        products = diagonal[:, :, None] * diagonal[:, None, :]
        f = f[:, :, None]
        spread = f * self.scale**2 + (f - 2.0) * products
        variance = distribution.moment_above(4.0, f, spread, (f - 1.0) * (f - 2.0) ** 2 * (f - 4.0))
        return np.sqrt(_entries(parameter, variance))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles of means and variances; of covariances those of draws."""
        from scipy.special import gammainccinv, stdtrit

        levels, freedom = np.asarray(q), self._freedom[:, :, None]
        if parameter == "covariance":
            return self._quantiles_of_draws(q, draws, rng)
        diagonal = np.einsum("cii->ci", self.scale)[:, :, None]
        if parameter == "variance":
            # Sigma_ii is inverse gamma: Q(f / 2, Psi_ii / 2 Sigma_ii) = q.
            variance: Floats = diagonal / 2.0 / gammainccinv(freedom / 2.0, levels)
            return variance
        # Sigma integrated out of (1): Student's t of f degrees of freedom.
        width = np.sqrt(diagonal / (freedom * self.precision[:, None, None]))
        location: Floats = self.loc[:, :, None] + width * stdtrit(freedom, levels)
        return location

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities of means and variances; None of covariances."""
        if parameter == "covariance":
            return None
        freedom = np.broadcast_to(self._freedom, self.loc.shape)
        diagonal = np.einsum("cii->ci", self.scale)
        if parameter == "variance":
            given = InverseGammaDistribution(
                concentration=freedom.ravel() / 2.0, scale=diagonal.ravel() / 2.0
            )
            flat = points.reshape(-1, points.shape[-1])
            return given.density(given.name, flat).reshape(points.shape)
        width = np.sqrt(diagonal / (freedom * self.precision[:, None]))
        return np.exp(log_student(freedom[..., None], self.loc[..., None], width[..., None], points))

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
    def _is_given(self) -> NDArray[np.bool_]:
        """Whether kappa is infinite, (n_cells, 1): m is mu."""
        return np.isinf(self.precision)[:, None]

    @property
    def _freedom(self) -> Floats:
        """Degrees of freedom of every marginal, (n_cells, 1)."""
        freedom: Floats = (self.df - self.loc.shape[1] + 1.0)[:, None]
        return freedom

    def _quantiles_of_draws(self, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles of independent covariances, over blocks of cells, so that memory stays bounded."""
        step = max(1, _BLOCK_NUMBERS // (draws * self.loc.shape[1] ** 2))
        blocks = (self.at(slice(start, start + step)) for start in range(0, len(self.df), step))
        parts = [np.quantile(block.sample(draws, rng)["covariance"], q, axis=0) for block in blocks]
        return np.moveaxis(np.concatenate(parts, axis=1), 0, -1)


def _entries(parameter: str, matrix: Floats) -> Floats:
    """Take the diagonal, or the entries above it, of the last two axes."""
    if parameter == "variance":
        diagonal: Floats = np.einsum("...ii->...i", matrix)
        return diagonal
    rows, columns = np.triu_indices(matrix.shape[-1], 1)
    above: Floats = matrix[..., rows, columns]
    return above


def sample_normal_inverse_wishart(
    loc: Floats, precision: Floats, df: Floats, scale: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw means (draws, n_cells, d) and covariances (draws, n_cells, d, d), by Bartlett's factors."""
    size = loc.shape[1]
    shape = (draws, len(loc))
    bartlett = np.zeros((*shape, size, size))
    below = np.tril_indices(size, -1)
    # Bartlett's factor A: a Wishart of nu degrees of freedom and scale I is A A^T.
    bartlett[..., below[0], below[1]] = rng.standard_normal((*shape, len(below[0])))
    freedom = df[:, None] - np.arange(size)
    diagonal = np.arange(size)
    bartlett[..., diagonal, diagonal] = np.sqrt(2.0 * rng.standard_gamma(freedom / 2.0, (*shape, size)))
    # (4): the inverse of A A^T between L and L^T.
    root = np.swapaxes(np.linalg.solve(bartlett, np.swapaxes(np.linalg.cholesky(scale), 1, 2)), -1, -2)
    spread = np.einsum("dcij,dcj->dci", root, rng.standard_normal((*shape, size)))
    return loc + spread / np.sqrt(precision)[:, None], root @ np.swapaxes(root, -1, -2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Moments of z = (x - centre) / half_range; without first moments, of z = x / half_range.

    Attributes
    ----------
    n : ndarray of shape (n_cells,), float64
        Rows.
    total : ndarray of shape (n_cells, d), float64
        Sums of z; 0 where first moments are not released.
    products : ndarray of shape (n_cells, d, d), float64
        Sums of z z^T.
    centre, half_range : ndarray of shape (d,), float64
        In the columns' units.
    """

    n: Floats
    total: Floats
    products: Floats
    centre: Floats
    half_range: Floats

    def take(self, order: NDArray[np.int64]) -> Moments:
        """Return those of some cells, in an order."""
        return replace(self, n=self.n[order], total=self.total[order], products=self.products[order])

    @property
    def scatter(self) -> Floats:
        """Sums of squares and products about the means, (n_cells, d, d); 0 where there are no rows."""
        return self.products - _outer_over_n(self.total, self.n)


def estimate(statistic: NoisyStatistic) -> Moments:
    """Return the unbiased estimates of the moments, possible or not."""
    columns, linear = statistic.plan.parameters.columns, is_linear(statistic.plan.parameters)
    lattices = [lattice_of(column, linear=linear) for column in columns]
    maps = {(quantity.name, quantity.component): quantity for quantity in statistic.plan.quantities}
    n_map, names, size = maps["n", None], [column.name for column in columns], len(columns)
    nothing = Quantity(name="nothing", coefficients={})
    totals = [maps.get(("total", name), nothing) for name in names]
    n = statistic.estimates(n_map)
    total, products = np.zeros((len(n), size)), np.zeros((len(n), size, size))
    # Combined in exact fractions: far from zero, a difference of rounded sums would lose its digits.
    for i in range(size):
        centre, half_range = lattices[i]
        if linear:
            # z = (x - c) / h: sum z = sum x / h - n c / h.
            parts = [(1 / half_range, totals[i]), (-centre / half_range, n_map)]
            total[:, i] = statistic.estimates(combination("total", parts))
        for j in range(i + 1):
            other, other_half_range = lattices[j]
            # z_i z_j = (x_i x_j - c_i x_j - c_j x_i + c_i c_j) / h_i h_j, summed.
            unit = half_range * other_half_range
            key = (
                ("total_of_squares", names[i])
                if i == j
                else ("total_of_products", pair_name(names[j], names[i]))
            )
            parts = [
                (1 / unit, maps[key]),
                (-centre / unit, totals[j]),
                (-other / unit, totals[i]),
                (centre * other / unit, n_map),
            ]
            products[:, i, j] = products[:, j, i] = statistic.estimates(combination("product", parts))
    return Moments(
        n=n,
        total=total,
        products=products,
        centre=_floats([centre for centre, _ in lattices]),
        half_range=_floats([half_range for _, half_range in lattices]),
    )


def project(statistic: NoisyStatistic) -> Moments:
    """Return possible moments, (5).

    Negative eigenvalues of the scatter become 0; where its diagonal is then above its limit, rows and columns
    are shrunk together, which keeps it positive semidefinite and so brings every product below n as well.
    """
    raw = estimate(statistic)
    n = np.maximum(raw.n, 0.0)
    # (5), from left to right.
    total = np.clip(raw.total, -n[:, None], n[:, None])
    # The nearest positive semidefinite matrix in the Frobenius norm.
    values, vectors = np.linalg.eigh(raw.products - _outer_over_n(total, n))
    scatter = (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    diagonal = np.einsum("cii->ci", scatter)
    # z_i^2 <= 1: the diagonal of Q is at most n.
    most = n[:, None] - np.einsum("cii->ci", _outer_over_n(total, n))
    # D S D with a diagonal D <= 1 stays positive semidefinite, and |S_ij| <= sqrt(S_ii S_jj).
    shrink = np.sqrt(
        np.divide(np.maximum(most, 0.0), diagonal, out=np.ones_like(diagonal), where=diagonal > most)
    )
    scatter = scatter * shrink[:, :, None] * shrink[:, None, :]
    return Moments(
        n=n,
        total=total,
        products=scatter + _outer_over_n(total, n),
        centre=raw.centre,
        half_range=raw.half_range,
    )


def _outer_over_n(total: Floats, n: Floats) -> Floats:
    # t t^T / n, and 0 where there are no rows.
    share = np.divide(total, n[:, None], out=np.zeros_like(total), where=n[:, None] > 0.0)
    return total[:, :, None] * share[:, None, :]


def _floats(numbers: list[Fraction]) -> Floats:
    return np.array([float(number) for number in numbers])
