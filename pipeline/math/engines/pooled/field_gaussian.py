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

A map may have a covariate v with a coefficient b, so that :math:`\eta_c = m_l + b v_c + a u_c`: one more
level, the last of them, that all cells share. With :math:`e = v - a C a \tau v` in the place of 1 - a k, and

.. math::
    w_l = \sum_{c \in l} \tau_c e_c, \qquad
    \pi_b = \tau_b + \sum_c \tau_c v_c e_c - \sum_l w_l^2 / \pi_l, \qquad (5)

b has the precision :math:`\pi_b`, levels given b have that of (3), and move by :math:`-w_l / \pi_l` with it.
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
        Of levels themselves; the last of a covariate's coefficient, where a map has one.
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
    _precision: Floats
    _slant: Slant | None

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
        v = field_map.covariate
        columns = [scale * nu, scale * tau, np.ones_like(tau)]
        columns += [] if v is None else [scale * tau * v[mapped]]
        factor = field_map.precision.factor(scale**2 * tau)
        solved = factor.solve(np.stack(columns, axis=1))
        flat = solved[:, 2]
        total: Floats = np.bincount(component, flat).astype(np.float64)
        # (2).
        g, k, *of_v = (
            column - flat * (np.bincount(component, column) / total)[component]
            for column in np.delete(solved, 2, axis=1).T
        )
        diagonal = factor.variances() - flat**2 / total[component]
        n_levels, n_cells = field_map.n_levels, field_map.n_cells
        # (3).
        shrunk, explained = np.ones(n_cells), np.zeros(n_cells)
        shrunk[mapped] -= scale * k
        explained[mapped] = scale * g
        precision = sites.level_tau[:n_levels] + np.bincount(level, sites.tau * shrunk, n_levels)
        if np.min(precision) <= 0.0 or np.min(total) <= 0.0:
            message = "no normal law"
            raise np.linalg.LinAlgError(message)
        left = sites.nu - sites.tau * explained
        moved = sites.level_nu[:n_levels] + np.bincount(level, left, n_levels)
        level_mean, level_variance = moved / precision, 1.0 / precision
        of_levels = float(np.sum(moved**2 / precision)) - float(np.sum(np.log(precision)))
        slant = None
        if v is not None:
            # (5).
            slant = Slant.of(v, scale, of_v[0], sites, field_map, shrunk, precision)
            moved_b = sites.level_nu[-1] + float(v @ left) - float(slant.border @ level_mean)
            of_levels += moved_b**2 / slant.precision - float(np.log(slant.precision))
            level_mean = np.append(
                level_mean - slant.along * moved_b / slant.precision, moved_b / slant.precision
            )
            level_variance = np.append(
                level_variance + slant.along**2 / slant.precision, 1.0 / slant.precision
            )
        # (4).
        mean = explained + shrunk * level_mean[level]
        variance = shrunk**2 / precision[level]
        if slant is not None:
            mean += slant.residual * level_mean[-1]
            variance += slant.of_b**2 / slant.precision
        variance[mapped] += scale**2 * diagonal
        log_integral = 0.5 * (
            scale * float(nu @ g) + of_levels - factor.log_determinant - float(np.sum(np.log(total)))
        )
        return cls(
            mean=mean,
            variance=variance,
            level_mean=level_mean,
            level_variance=level_variance,
            log_integral=log_integral,
            _map=field_map,
            _factor=factor,
            _scale=scale,
            _flat=flat,
            _total=total,
            _shrunk=shrunk,
            _precision=precision,
            _slant=slant,
        )

    @property
    def n_dimensions(self) -> int:
        """Of the law: constraints take one for each component."""
        return len(self._map.mapped) - self._map.n_components + len(self.level_mean)

    def distance(self, sums: Floats, levels: Floats, sites: Sites) -> Floats:
        """Return squared distances from the mean, in the law's own metric: minus twice its log density.

        Parameters
        ----------
        sums, levels : ndarray of shape (draws, n_cells) and (draws, n_levels), float64
        sites : Sites
            The observations that the law is of.
        """
        gap, of_levels = sums - self.mean, levels - self.level_mean
        of_field = gap - of_levels[:, self._map.level]
        if self._map.covariate is not None:
            of_field -= of_levels[:, -1:] * self._map.covariate
        u = (of_field[:, self._map.mapped] / self._scale).T
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
        level = rng.standard_normal((len(self._precision), draws)) / np.sqrt(self._precision)[:, None]
        drawn = self.mean[:, None] + self._shrunk[:, None] * level[self._map.level]
        if self._slant is not None:
            b = rng.standard_normal(draws) / self._slant.precision**0.5
            drawn += self._slant.of_b[:, None] * b
            level = np.concatenate([level - self._slant.along[:, None] * b, b[None]])
        drawn[mapped] += self._scale * u
        levels: Floats = (self.level_mean[:, None] + level).T
        return drawn.T, levels

    def times(self, columns: Floats) -> Floats:
        """Return the covariance of sums times columns, (n_cells, n_columns)."""
        component, mapped, level = self._map.component, self._map.mapped, self._map.level
        solved = self._factor.solve(columns[mapped])
        totals = np.stack([np.sum(solved[component == each], axis=0) for each in range(len(self._total))])
        solved -= self._flat[:, None] * (totals / self._total[:, None])[component]
        of_levels = np.zeros((len(self._precision), columns.shape[1]))
        np.add.at(of_levels, level, self._shrunk[:, None] * columns)
        result = self._shrunk[:, None] * (of_levels / self._precision[:, None])[level]
        if self._slant is not None:
            result += np.outer(self._slant.of_b, self._slant.of_b @ columns / self._slant.precision)
        result[mapped] += self._scale**2 * solved
        return np.asarray(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slant:
    """A covariate's coefficient, beside levels.

    Attributes
    ----------
    residual, of_b : ndarray of shape (n_cells,), float64
        e of (5), and how sums move with b when levels follow.
    border, along : ndarray of shape (n_levels,), float64
        w of (5), and how levels move against b.
    precision : float
        Of b, by (5).
    """

    residual: Floats
    of_b: Floats
    border: Floats
    along: Floats
    precision: float

    @classmethod
    def of(
        cls,
        v: Floats,
        scale: float,
        solved: Floats,
        sites: Sites,
        field_map: FieldMap,
        shrunk: Floats,
        level_precision: Floats,
    ) -> Slant:
        """Work out (5), with C a tau v solved for."""
        residual = v.copy()
        residual[field_map.mapped] -= scale * solved
        border = np.bincount(field_map.level, sites.tau * residual, field_map.n_levels).astype(np.float64)
        along = border / level_precision
        precision = float(sites.level_tau[-1] + np.sum(sites.tau * v * residual) - border @ along)
        if precision <= 0.0:
            message = "no normal law"
            raise np.linalg.LinAlgError(message)
        of_b = residual - shrunk * along[field_map.level]
        return cls(residual=residual, of_b=of_b, border=border, along=along, precision=precision)
