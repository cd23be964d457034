r"""A level and a smooth field under normal observations of their sum.

Model. Of each cell c on the map l, with a the standard deviation of the field (0 of islands),

.. math:: \eta_c = m_l + a u_c, \qquad
    \log p = -\tfrac 1 2 u' Q u + \sum_c \bigl(\nu_c \eta_c - \tfrac 1 2 \tau_c \eta_c^2\bigr)
    + \sum_l \bigl(\nu_l m_l - \tfrac 1 2 \tau_l m_l^2\bigr) \qquad (1)

and u adds up to 0 on every component j.

Method. Given m, u has the precision :math:`P = Q + a^2 T` and the covariance of that under the constraints,

.. math:: C = P^{-1} - \sum_j p_j p_j' / S_j, \qquad p_j = P^{-1} 1_j, \qquad S_j = 1_j' p_j. \qquad (2)

With :math:`g = C a \nu` and :math:`k = C a \tau`, m has the precision and mean

.. math:: \pi_l = \tau_l + \sum_{c \in l} \tau_c (1 - a k_c), \qquad
    \bar m_l = \frac 1 {\pi_l} \Bigl(\nu_l + \sum_{c \in l} (\nu_c - a \tau_c g_c)\Bigr), \qquad (3)

    \operatorname{E} \eta_c = \bar m_l + a (g_c - k_c \bar m_l), \qquad
    \operatorname{Var} \eta_c = a^2 C_{cc} + (1 - a k_c)^2 / \pi_l. \qquad (4)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.block_tridiagonal import Factor
    from suffice.pipeline.math.engines.pooled.field_map import FieldMap
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """Normal observations: precisions, and precisions times values.

    Attributes
    ----------
    tau, nu : ndarray of shape (n_cells,), float64
        Of sums of level and field; precisions may be below 0.
    level_tau, level_nu : ndarray of shape (n_levels,), float64
        Of levels themselves.
    """

    tau: Floats
    nu: Floats
    level_tau: Floats
    level_nu: Floats

    def towards(self, other: Sites, share: float) -> Sites:
        """Go that share of the way to others."""
        return Sites(
            tau=self.tau + share * (other.tau - self.tau),
            nu=self.nu + share * (other.nu - self.nu),
            level_tau=self.level_tau + share * (other.level_tau - self.level_tau),
            level_nu=self.level_nu + share * (other.level_nu - self.level_nu),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianField:
    """The normal law of all sums, and the integral of (1).

    Attributes
    ----------
    mean, variance : ndarray of shape (n_cells,), float64
        Of each sum, by (4).
    level_mean, level_variance : ndarray of shape (n_levels,), float64
        By (3).
    log_integral : float
        Of (1), but for what does not depend on a and the observations.
    """

    mean: Floats
    variance: Floats
    level_mean: Floats
    level_variance: Floats
    log_integral: float
    _map: FieldMap
    _factor: Factor
    _scale: float
    _flat: Floats
    _total: Floats
    _shrunk: Floats

    @classmethod
    def of(cls, field_map: FieldMap, scale: float, sites: Sites) -> GaussianField:
        """Work out (2) to (4).

        Raises
        ------
        numpy.linalg.LinAlgError
            Where precisions below 0 leave no law.
        """
        mapped, component, level = field_map.mapped, field_map.component, field_map.level
        tau, nu = sites.tau[mapped], sites.nu[mapped]
        factor = field_map.precision.factor(scale**2 * tau)
        solved = factor.solve(np.stack([scale * nu, scale * tau, np.ones_like(tau)], axis=1))
        flat = solved[:, 2]
        total: Floats = np.bincount(component, flat).astype(np.float64)
        # (2).
        g, k = (
            column - flat * (np.bincount(component, column) / total)[component] for column in solved[:, :2].T
        )
        diagonal = factor.variances() - flat**2 / total[component]
        of_level = level[mapped]
        n_levels = field_map.n_levels
        # (3).
        precision = sites.level_tau + np.bincount(level, sites.tau, n_levels)
        precision = precision - np.bincount(of_level, scale * tau * k, n_levels)
        if np.min(precision) <= 0.0 or np.min(total) <= 0.0:
            message = "no normal law"
            raise np.linalg.LinAlgError(message)
        moved = sites.level_nu + np.bincount(level, sites.nu, n_levels)
        moved = moved - np.bincount(of_level, scale * tau * g, n_levels)
        level_mean = moved / precision
        # (4).
        mean, shrunk = level_mean[level], np.ones(field_map.n_cells)
        shrunk[mapped] -= scale * k
        mean[mapped] += scale * (g - k * level_mean[of_level])
        variance = shrunk**2 / precision[level]
        variance[mapped] += scale**2 * diagonal
        log_integral = 0.5 * (
            scale * float(nu @ g)
            + float(np.sum(moved**2 / precision))
            - factor.log_determinant
            - float(np.sum(np.log(total)) + np.sum(np.log(precision)))
        )
        return cls(
            mean=mean,
            variance=variance,
            level_mean=level_mean,
            level_variance=1.0 / precision,
            log_integral=log_integral,
            _map=field_map,
            _factor=factor,
            _scale=scale,
            _flat=flat,
            _total=total,
            _shrunk=shrunk,
        )

    @property
    def n_dimensions(self) -> int:
        """Of the law: constraints take one for each component."""
        return len(self._map.mapped) - self._map.n_components + self._map.n_levels

    def distance(self, sums: Floats, levels: Floats, sites: Sites) -> Floats:
        """Return squared distances from the mean, in the law's own metric: minus twice its log density.

        Parameters
        ----------
        sums, levels : ndarray of shape (draws, n_cells) and (draws, n_levels), float64
        sites : Sites
            The observations that the law is of.
        """
        gap, of_levels = sums - self.mean, levels - self.level_mean
        u = ((gap - of_levels[:, self._map.level])[:, self._map.mapped] / self._scale).T
        value = np.sum(u * self._map.precision.times(u), axis=0)
        result: Floats = value + gap**2 @ sites.tau + of_levels**2 @ sites.level_tau
        return result

    def drawn(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw sums together, (draws, n_cells), and levels, (draws, n_levels)."""
        component, mapped = self._map.component, self._map.mapped
        u = self._factor.drawn(rng.standard_normal((len(mapped), draws)))
        # Conditioning by kriging: draws are moved onto the constraints.
        totals = np.stack([np.sum(u[component == each], axis=0) for each in range(len(self._total))])
        u -= self._flat[:, None] * (totals / self._total[:, None])[component]
        level = rng.standard_normal((len(self.level_mean), draws)) * np.sqrt(self.level_variance)[:, None]
        drawn = self.mean[:, None] + self._shrunk[:, None] * level[self._map.level]
        drawn[mapped] += self._scale * u
        levels: Floats = (self.level_mean[:, None] + level).T
        return drawn.T, levels
