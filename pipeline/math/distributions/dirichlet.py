r"""Beta and Dirichlet distributions of probabilities: as priors, and of many cells as their posterior.

Model. With A the sum of all :math:`a_k`, K categories have probabilities

.. math:: p(x) = \frac{\Gamma(A)}{\prod_k \Gamma(a_k)} \prod_k x_k^{a_k - 1}, \qquad
    x_k \ge 0, \ \sum_k x_k = 1, \qquad (1)

and two have the beta density, of the first,

.. math:: p(x) = x^{a - 1} (1 - x)^{b - 1} / B(a, b). \qquad (2)

An entry of (1) is :math:`x_k \sim \mathrm{Beta}(a_k, A - a_k)`, with mean :math:`m = a_k / A` and variance
:math:`m (1 - m) / (A + 1)`. Counts add to :math:`\eta = (a_1, \dots, a_K)`, and :math:`\log Z = \sum_k \log
\Gamma(a_k) - \log \Gamma(A)`. Probabilities of count tables are independent Dirichlet vectors, a block of
entries each.

On the line. With p = a / (a + b), q = 1 - p, :math:`\delta = \operatorname{logit} x - \log(a / b)` and h of
``gamma.py``

.. math:: \log f = h(a) + h(b) - h(a + b) - a \log(1 + q (e^{-\delta} - 1))
    - b \log(1 + p (e^\delta - 1)). \qquad (3)

Draws. With independent :math:`g_k \sim \mathrm{Gamma}(a_k, 1)`,

.. math:: x_k = g_k / \sum_j g_j, \qquad
    \mathrm{Gamma}(a) \overset{d}{=} \mathrm{Gamma}(a + 1) \, U^{1 / a}. \qquad (4)

Symbols:

- a, b: ``concentration1`` and ``concentration0``, (n_cells,), > 0: pseudo-counts of true and of false
- a_k: ``concentration``, (n_cells, K), > 0
- A: ``_total()``, for every entry or (n_cells, 1)

Method. Moments and densities are closed; quantiles invert the incomplete beta ratio (DLMF 8.17.2), exact but
for rounding. ``beta_cdf`` is that ratio where a or b is below ``LARGE`` and (4) of ``distribution.py``
elsewhere, off by at most 1.9e-4. Draws are exact. ``project_simplex`` is the exact Euclidean projection.

References
----------
Marsaglia, Tsang. A simple method for generating gamma variables. ACM Trans. Math. Softw. 26, 2000. Held,
Wolfe, Crowder. Validation of subgradient optimization. Math. Program. 6, 1974.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.distribution import (
    LARGE,
    Coordinate,
    Line,
    OfCells,
    OneParameter,
    Prior,
    either,
    excess,
    log_height,
    require_number,
    root_over,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats, Rows

    Starts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, init=False)
class Beta(Prior):
    r"""Beta distribution of a probability.

    .. math:: p(x) \propto x^{a - 1} (1 - x)^{b - 1}, \quad 0 \le x \le 1

    The mean is m = a / (a + b), the variance m (1 - m) / (a + b + 1).

    Parameters
    ----------
    concentration1 : float, > 0
        a: pseudo-count of true.
    concentration0 : float, > 0
        b: pseudo-count of false.
    a, b : float, optional
        The same by the names of ``scipy.stats.beta``.
    """

    concentration1: float
    concentration0: float

    def __init__(
        self,
        concentration1: float | None = None,
        concentration0: float | None = None,
        *,
        a: float | None = None,
        b: float | None = None,
    ) -> None:
        object.__setattr__(self, "concentration1", either("Beta", "concentration1", concentration1, "a", a))
        object.__setattr__(self, "concentration0", either("Beta", "concentration0", concentration0, "b", b))
        self.__post_init__()

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        return rng.beta(self.concentration1, self.concentration0, size)

    def distribution(self) -> BetaDistribution:
        """Return it as the distribution of one cell."""
        return BetaDistribution(**self._of_one_cell())


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaDistribution(OneParameter):
    """Beta distributions of a probability.

    Attributes
    ----------
    concentration1, concentration0 : ndarray of shape (n_cells,), float64
        As in ``Beta``.
    name : str
        The parameter's.
    """

    _natural: ClassVar = ("concentration0", "concentration1")

    concentration1: Floats
    concentration0: Floats
    name: str = "probability"

    def mean(self, parameter: str) -> Floats:
        """Means, a / (a + b)."""
        return self.concentration1 / self._total()

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, the roots of m (1 - m) / (a + b + 1) with m the mean."""
        total = self._total()
        share = self.concentration1 / total
        # m (1 - m) / (A + 1), with A = a + b.
        return np.asarray(np.sqrt(share * (1.0 - share) / (total + 1.0)))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles: I_x(a, b) = q, solved for x."""
        from scipy.special import betaincinv

        alpha, total = self.concentration1[:, None], self._total()[:, None]
        return np.asarray(betaincinv(alpha, total - alpha, np.asarray(q)), dtype=np.float64)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        size = (draws, len(self.concentration1))
        # 1 - X ~ Beta(b, a).
        return {self.name: 1.0 - rng.beta(self.concentration0, self.concentration1, size)}

    def log_normaliser(self) -> Floats:
        """Return log Z = log B(a, b)."""
        from scipy.special import gammaln

        log_z: Floats = gammaln(self.concentration0) + gammaln(self.concentration1) - gammaln(self._total())
        return log_z

    def coordinate(self) -> Coordinate:
        """Return the logit, of density (3)."""
        a, b = self.concentration1, self.concentration0
        return Coordinate(
            centre=np.log(a / b),
            # The curvature of (3) at its mode is a b / (a + b).
            width=np.sqrt(1.0 / a + 1.0 / b),
            cdf=lambda position: beta_cdf(a, b, position),
            log_density=lambda position: _log_beta(a, b, position),
            line=Line.LOGIT,
        )

    def _total(self) -> Floats:
        return self.concentration0 + self.concentration1


_LARGE_LOG = 600.0
"""Beyond it exponentials are so large that 1 beside them is nothing, and soon that no number is."""


def _log_beta(a: Floats, b: Floats, position: Floats) -> Floats:
    """Log density of the logit of a beta, relative to that at its mode."""
    delta = position - np.log(a / b)
    p, q = a / (a + b), b / (a + b)
    # (3) at delta = 0: all that is large cancels in h.
    height = log_height(a) + log_height(b) - log_height(a + b)
    with np.errstate(over="ignore", divide="ignore"):
        below = np.where(delta < -_LARGE_LOG, np.log(q) - delta, np.log1p(q * np.expm1(-delta)))
        above = np.where(delta > _LARGE_LOG, np.log(p) + delta, np.log1p(p * np.expm1(delta)))
        return height - a * below - b * above


def beta_cdf(alpha: Floats, beta: Floats, logit: Floats) -> Floats:
    """Probability that a beta is below the probability with this logit."""
    from scipy.special import betainc, ndtr

    p, q = Line.LOGIT.parameter(logit), Line.LOGIT.parameter(-logit)
    a, b = np.maximum(alpha, LARGE), np.maximum(beta, LARGE)
    # Peizer and Pratt for the beta: s = a - 1/2 and t = b - 1/2 of n = a + b - 1 stand for the observed
    # parts, n p and n q for the expected ones.
    n = a + b - 1.0
    s, t = a - 0.5, b - 0.5
    gap = s * q - t * p
    # D = 2 (s log(s / n p) + t log(t / n q)) / (1 + 1 / 6 n), by x - log(1 + x) of the gap's shares of s and
    # t.
    deviance = 2.0 * (s * excess(-gap / s) + t * excess(gap / t)) / (1.0 + 1.0 / (6.0 * n))
    d = a - 1.0 / 3.0 - (n + 1.0 / 3.0) * p + 0.02 * (q / a - p / b + (q - 0.5) / (n + 1.0))
    result: Floats = ndtr(-d * root_over(deviance, gap, np.sqrt(n * p * q)))
    small = np.minimum(alpha, beta) < LARGE
    # I_p(a, b) = 1 - I_q(b, a), DLMF 8.17.4: the smaller of p and q has all its digits.
    low, high = np.flatnonzero(small & (p <= 0.5)), np.flatnonzero(small & (p > 0.5))
    result[low] = betainc(alpha[low], beta[low], p[low])
    result[high] = 1.0 - betainc(beta[high], alpha[high], q[high])
    return result


@dataclass(frozen=True, slots=True, init=False)
class Dirichlet(Prior):
    r"""Dirichlet distribution of category probabilities.

    .. math:: p(x) \propto \prod_k x_k^{a_k - 1}, \quad x_k \ge 0, \ \sum_k x_k = 1

    With A the sum of all a_k a mean is m_k = a_k / A, a variance m_k (1 - m_k) / (A + 1).

    Parameters
    ----------
    *concentration : float, > 0
        One pseudo-count per category, or a single one that every category shares.
    alpha : sequence of float, optional
        The same by the name of ``scipy.stats.dirichlet``.
    """

    concentration: tuple[float, ...]

    def __init__(self, *concentration: float, alpha: Sequence[float] | None = None) -> None:
        if alpha is not None:
            if concentration:
                message = "Dirichlet takes concentrations, or alpha= in their place"
                raise TypeError(message)
            concentration = tuple(np.atleast_1d(np.asarray(alpha)).tolist())
        if not concentration:
            message = "Dirichlet needs a concentration: Dirichlet(1), or one number per category"
            raise PriorError(message)
        object.__setattr__(self, "concentration", concentration)
        for value in concentration:
            require_number(self, "concentration", value, positive=True)

    def __str__(self) -> str:
        return f"Dirichlet({', '.join(map(written, self.concentration))})"

    def sample(self, size: int, rng: np.random.Generator, categories: int | None = None) -> Floats:
        """Return independent draws, (size, n_categories); `categories` where one number is for all."""
        concentration = np.array(self.concentration, dtype=np.float64)
        return sample_dirichlet(np.broadcast_to(concentration, (size, categories or len(concentration))), rng)

    def distribution(self, categories: int) -> DirichletDistribution:
        """Return it as the distribution of one cell."""
        concentration = np.array(self.concentration, dtype=np.float64)
        return DirichletDistribution(concentration=np.broadcast_to(concentration, (1, categories)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DirichletDistribution(OfCells):
    """Dirichlet probabilities of all categories.

    Attributes
    ----------
    concentration : ndarray of shape (n_cells, n_categories), float64
        Of every cell's Dirichlet.
    """

    concentration: Floats

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    def mean(self, parameter: str) -> Floats:
        """Means, a_k / A."""
        return self.concentration / self._total()

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, the roots of m (1 - m) / (A + 1) with m the mean."""
        total = self._total()
        share = self.concentration / total
        return np.asarray(np.sqrt(share * (1.0 - share) / (total + 1.0)))

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact marginal quantiles, of Betas; 1 where a distribution has a single entry."""
        from scipy.special import betaincinv

        # The marginal is Beta(a_k, A - a_k).
        rest = (self._total() - self.concentration)[..., None]
        alone = rest <= 0.0
        concentration = np.where(alone, 1.0, self.concentration[..., None])
        quantiles = betaincinv(concentration, np.where(alone, 1.0, rest), np.asarray(q))
        return np.where(alone, 1.0, quantiles)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Marginal densities, of Betas; 0 where a distribution has a single entry, which is 1."""
        rest = np.broadcast_to(self._total() - self.concentration, self.concentration.shape)
        alone = rest <= 0.0
        betas = BetaDistribution(
            concentration1=self.concentration.ravel(), concentration0=np.where(alone, 1.0, rest).ravel()
        )
        density = betas.density(betas.name, points.reshape(-1, points.shape[-1])).reshape(points.shape)
        return np.where(alone[..., None], 0.0, density)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws, by (4)."""
        size = (draws, *self.concentration.shape)
        return {"probability": sample_dirichlet(np.broadcast_to(self.concentration, size), rng)}

    def natural(self) -> Floats:
        """Return the natural parameters, (n_cells, n_categories)."""
        return self.concentration

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution of the same categories with these natural parameters."""
        return replace(self, concentration=eta)

    def log_normaliser(self) -> Floats:
        """Return log Z, the sum of all log Gamma(a_k) less log Gamma(A)."""
        from scipy.special import gammaln

        total = np.sum(self.concentration, axis=-1)
        log_z: Floats = np.sum(gammaln(self.concentration), axis=-1) - gammaln(total)
        return log_z

    def _total(self) -> Floats:
        """Sums of concentrations, for every entry or (n_cells, 1)."""
        # Whole columns are added: much faster than along a short axis.
        return np.asarray(np.add.reduce(self.concentration.T)[:, None])


def sample_dirichlet(concentration: Floats, rng: np.random.Generator) -> Floats:
    """One draw for every vector along the last axis, without underflow at small concentrations."""
    if concentration.shape[-1] == 2:
        # Two categories: (2).
        first = rng.beta(concentration[..., 0], concentration[..., 1])
        return np.stack([first, 1.0 - first], axis=-1)
    # In the order in which they lie in memory: whole columns are drawn and added.
    axes = np.argsort([-abs(stride) for stride in concentration.strides], kind="stable")
    laid_out = concentration.transpose(axes)
    small = laid_out < 1.0
    if not np.any(small):
        gammas = rng.standard_gamma(laid_out).transpose(np.argsort(axes))
    else:
        gammas = rng.standard_gamma(np.where(small, laid_out + 1.0, laid_out))
        # Gamma(a) is Gamma(a + 1) times U^(1 / a): in logs, or small concentrations are all zero.
        logs = np.log(gammas)
        logs[small] += np.log1p(-rng.random(int(np.sum(small)))) / laid_out[small]
        logs = logs.transpose(np.argsort(axes))
        gammas = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    # (4), in which a common factor of all g_k cancels.
    gammas /= np.sum(gammas, axis=-1, keepdims=True)
    return gammas


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDirichlet(DirichletDistribution):
    """Independent Dirichlet distributions side by side.

    Attributes
    ----------
    concentration : ndarray of shape (n_cells, n_entries), float64
        Of every cell's distributions, one after the other.
    starts : ndarray of shape (n_blocks,), int64
        The first entry of each distribution, ascending from 0.
    """

    starts: Starts

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        size = (draws, *self.concentration.shape)
        return {"probability": sample_blocks(np.broadcast_to(self.concentration, size), self.starts, rng)}

    def at(self, cells: slice | Rows) -> Self:
        """Return the distribution of some cells."""
        return replace(self, concentration=self.concentration[cells])

    def log_normaliser(self) -> Floats:
        """Return the log of the normaliser, of all distributions of a cell."""
        from scipy.special import gammaln

        # Independent blocks: their log Z add up.
        totals = np.add.reduceat(self.concentration, self.starts, axis=-1)
        log_z: Floats = np.sum(gammaln(self.concentration), axis=-1) - np.sum(gammaln(totals), axis=-1)
        return log_z

    def _total(self) -> Floats:
        return block_totals(self.concentration, self.starts)


def block_totals(values: Floats, starts: Starts) -> Floats:
    """Sum every block along the last axis, and repeat its total for each of its entries."""
    lengths = np.diff(np.append(starts, values.shape[-1]))
    totals: Floats = np.repeat(np.add.reduceat(values, starts, axis=-1), lengths, axis=-1)
    return totals


def sample_blocks(concentration: Floats, starts: Starts, rng: np.random.Generator) -> Floats:
    """One draw for every block along the last axis, without underflow at small concentrations."""
    small = concentration < 1.0
    gammas = rng.standard_gamma(np.where(small, concentration + 1.0, concentration))
    if np.any(small):
        # Gamma(a) is Gamma(a + 1) times U^(1 / a): in logs, or small concentrations are all zero.
        logs = np.log(gammas)
        logs[small] += np.log1p(-rng.random(int(np.sum(small)))) / concentration[small]
        lengths = np.diff(np.append(starts, logs.shape[-1]))
        gammas = np.exp(logs - np.repeat(np.maximum.reduceat(logs, starts, axis=-1), lengths, axis=-1))
    # (4), block by block.
    return gammas / block_totals(gammas, starts)


def block_starts(tables: Sequence[CountTable]) -> Starts:
    """First entry of every distribution: each table holds one of its last variable per row of the others."""
    lengths = np.concatenate([np.full(table.size // table.shape[-1], table.shape[-1]) for table in tables])
    starts: Starts = np.cumsum(lengths) - lengths
    return starts


def project_simplex(values: Floats, total: float | Floats) -> Floats:
    """Return the nearest rows that are nowhere negative and sum to the total, one or (n_rows, 1)."""
    descending = -np.sort(-values, axis=1)
    ranks = np.arange(1.0, values.shape[1] + 1.0)
    # The nearest point of the simplex is max(v - tau, 0) with tau = (sum of the k largest v - total) / k for
    # the last k at which the k-th largest is above it (Held, Wolfe and Crowder).
    excess = (np.cumsum(descending, axis=1) - total) / ranks
    kept = np.sum(descending > excess, axis=1)
    # With a total of 0 nothing is kept: then the largest entry sets the threshold.
    threshold = np.take_along_axis(excess, np.maximum(kept - 1, 0)[:, None], axis=1)
    projected: Floats = np.maximum(values - threshold, 0.0)
    return projected
