r"""Evidence of cells with a noisy count of every category, under a Dirichlet law of their probabilities.

Model. Cells have probabilities :math:`p \sim \mathrm{Dirichlet}(\alpha)`, a latent number of records N with
the prior 1 / (N + 1), and noisy counts. With independent rates :math:`r_k \sim \mathrm{Gamma}(\alpha_k,
\beta)` and :math:`p = r / \sum r`, counts are Poisson ones, independent given :math:`\alpha` and
:math:`\beta`, and N is a negative binomial count. Over :math:`q = \beta / (1 + \beta)` with the density
:math:`\omega(q) / q`,

.. math::
    \omega(q) = 1 + (\alpha_0 - 1) \sum_{n \ge 0} \frac{q^{n + 1}}{\alpha_0 + n}, \qquad
    \alpha_0 = \sum_k \alpha_k \ge 1, \qquad (1)

it is the prior of N whatever :math:`\alpha` is, as :math:`\int q^{\alpha_0 - 1} (1 - q)^N \omega(q) \, dq =
\Gamma(\alpha_0) \, N! / (\Gamma(\alpha_0 + N) (N + 1))` shows. So the evidence of a cell needs integrals of
one dimension alone, with the likelihoods A of single noisy counts (``count_likelihoods``):

.. math::
    Z(\alpha) = \int_0^1 \frac{\omega(q)}{q} \prod_k z_k \, dq, \qquad
    z_k = \int \mathrm{Gamma}(r \mid \alpha_k, \beta) \, A(r; y_k) \, dr. \qquad (2)

Method. By :math:`\tau = \alpha_0 / \beta`, about the mean number of records, and :math:`\xi = \log (r /
\tau)`, nodes of both are the same for all :math:`\alpha`: evenly spaced in (2) of ``cells``, about where
counts and where the population are. Below the lowest :math:`\xi` A is that of no records, and the gamma law
has a closed form.

Symbols: tau: ``log_scale``, (n_cells, J); xi: ``place``, (n_cells, K, J, I), with the logarithm of A and of
the nodes' weight, ``log_weight``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus, dense_nodes
from suffice.pipeline.math.engines.pooled.count_cells import CountTable

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

    from suffice.typing import Cells, Floats, Rows

_SCALES, _PLACES = 26, 44
_SMALL = 1e-4
"""Of a mean count, and of what the gamma law's exponent is next to it."""
_FLOOR = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryNodes:
    """Nodes of (2) of some cells.

    Attributes
    ----------
    log_scale, log_rule : ndarray of shape (n_cells, J), float64
        log tau, and the logs of the weights of nodes in integrals over it.
    place, exponential, log_weight : ndarray of shape (n_cells, K, J, I), float64
        xi, e^xi, and log A with the logs of the nodes' weights.
    lowest : ndarray of shape (n_cells, K, J), float64
        xi from which on nodes stand for the integral.
    log_none : ndarray of shape (n_cells, K), float64
        log A of a mean of 0.
    """

    log_scale: Floats
    log_rule: Floats
    place: Floats
    exponential: Floats
    log_weight: Floats
    lowest: Floats
    log_none: Floats

    def terms(self, alpha: Floats) -> tuple[Floats, Floats]:
        """Return the terms of z_k, (n_cells, K, J, I), and what is below them, (n_cells, K, J)."""
        from scipy.special import gammaln

        whole = float(np.sum(alpha))
        of_category = alpha[:, None, None]
        exponent = of_category * (self.place + np.log(whole))
        exponent -= whole * self.exponential
        exponent += self.log_weight - gammaln(of_category)
        lowest = self.lowest + np.log(whole)
        below = alpha[:, None] * lowest - gammaln(alpha + 1.0)[:, None] + self.log_none[:, :, None]
        return np.exp(exponent), np.exp(below)

    def log_scales(self, alpha: Floats, terms: tuple[Floats, Floats]) -> Floats:
        """Return logs of the terms of Z, (n_cells, J)."""
        whole = float(np.sum(alpha))
        z = np.sum(terms[0], axis=-1) + terms[1]
        # q = alpha_0 / (alpha_0 + tau), dq / q = tau / (alpha_0 + tau) d log tau.
        tau = np.exp(self.log_scale)
        log_mixing = _log_omega(whole)(self.log_scale) + self.log_scale - np.log(whole + tau)
        result: Floats = self.log_rule + log_mixing + np.sum(np.log(np.maximum(z, _FLOOR)), axis=1)
        return result

    def log_evidence(self, alpha: Floats) -> Floats:
        """Return log Z, (n_cells,)."""
        log_scales = self.log_scales(alpha, self.terms(alpha))
        top = np.max(log_scales, axis=1)
        result: Floats = top + np.log(np.sum(np.exp(log_scales - top[:, None]), axis=1))
        return result


@lru_cache(maxsize=8)
def _log_omega(whole: float) -> CubicSpline:
    """Return log omega of (1) as a function of log tau.

    The sum is q times the integral of s^(alpha_0 - 1) / (1 - q s) over 0..1, here by log(-alpha_0 log s), in
    which it is smooth over distances of 1.
    """
    from scipy.interpolate import CubicSpline  # consumers only

    u, log_tau = np.arange(-60.0, 5.0, 0.5), np.arange(-80.0, 80.0, 0.5)[:, None]
    v, q = np.exp(u), 1.0 / (1.0 + np.exp(log_tau) / whole)
    s = np.exp(-v / whole)
    # 1 - q s, neither of whose parts cancels.
    left = -np.expm1(-v / whole) + s * (1.0 / (1.0 + whole * np.exp(-log_tau)))
    series = 0.5 * np.sum(v * np.exp(-v) * q / whole / left, axis=1)
    return CubicSpline(log_tau[:, 0], np.log1p((whole - 1.0) * series))


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryCells:
    """Cells with noisy counts of K categories; N has the prior 1 / (N + 1), whose upper end is far.

    Attributes
    ----------
    values : ndarray of shape (n_cells, K, n_releases), float64
    scales : ndarray of shape (n_releases,), float64
    table : CountTable
        Of distinct counts.
    row : ndarray of shape (n_cells, K), int64
        The count of each.
    """

    values: Floats
    scales: Floats
    table: CountTable
    row: Rows

    @classmethod
    def of(cls, values: Floats, scales: Floats) -> CategoryCells:
        """Tabulate."""
        flat = values.reshape(-1, values.shape[2])
        _, first, row = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        table = CountTable.of(NoisyCount(values=flat[first], scales=scales))
        return cls(values=values, scales=scales, table=table, row=row.reshape(values.shape[:2]))

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.values)

    @property
    def n_categories(self) -> int:
        """K."""
        return int(self.values.shape[1])

    @property
    def shares(self) -> Floats:
        """About the shares of categories in all cells together, (K,)."""
        total = np.maximum(np.sum(np.mean(self.values, axis=2), axis=0), float(np.min(self.scales)) + 0.5)
        return np.asarray(total / np.sum(total))

    def nodes(self, cells: Cells, alpha: Floats) -> CategoryNodes:
        """Nodes of some cells, dense where populations about one of this `alpha` may be."""
        b, whole = float(np.min(self.scales)), float(np.sum(alpha))
        count = np.maximum(np.mean(self.values[cells], axis=2), b + 0.5)
        size = np.maximum(np.sum(np.mean(self.values[cells], axis=2), axis=1), b + 0.5)
        error = np.sqrt(size + 2.0 * self.n_categories * b**2) / size
        # Populations of small concentrations have rates far below their scale.
        log_scale, log_rule = dense_nodes(
            np.log(size) - 22.0,
            np.log(size) + np.log1p(30.0 * error) + 60.0 / whole,
            np.log(size),
            np.minimum(error, 1.0),
            n=_SCALES,
        )
        shape = (len(cells), _SCALES)
        places, weights, lowest = [], [], []
        for category, (each, share) in enumerate(zip(alpha, alpha / whole, strict=True)):
            of_count = count[:, category]
            centre = (np.log(of_count)[:, None] - log_scale).ravel()
            width = np.repeat(np.minimum(np.sqrt(of_count + 2.0 * b**2) / of_count, 2.0), _SCALES)
            focus = Focus(centre=float(np.log(share)), width=min(float(each) ** -0.5, 2.0))
            low = np.minimum(np.log(_SMALL) - log_scale, np.log(_SMALL / whole)).ravel()
            high = np.full_like(low, np.log(share) + np.log1p(80.0 / each + 12.0 * each**-0.5))
            low = np.minimum(low, high - 1.0)
            lowest.append(low.reshape(shape))
            x, log_dx = dense_nodes(low, high, centre, width, n=_PLACES, focus=focus)
            mean = np.exp(x + log_scale.reshape(-1, 1)).reshape(len(cells), -1)
            places.append(x.reshape(*shape, _PLACES))
            log_a = self.table(self.row[cells, category], mean).reshape(*shape, _PLACES)
            weights.append(log_a + log_dx.reshape(*shape, _PLACES))
        none = self.table(self.row[cells].ravel(), np.zeros((len(cells) * self.n_categories, 1)))
        place = np.stack(places, axis=1)
        return CategoryNodes(
            log_scale=log_scale,
            log_rule=log_rule,
            place=place,
            exponential=np.exp(place),
            log_weight=np.stack(weights, axis=1),
            lowest=np.stack(lowest, axis=1),
            log_none=none.reshape(len(cells), self.n_categories),
        )
