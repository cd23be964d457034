r"""Expectation propagation of a smooth field under the exact likelihoods of cells.

Model. With the sums :math:`\eta` of ``field_gaussian`` and cells' own parts of variances :math:`\sigma_k^2`
and shares :math:`\epsilon_k` (two where outliers have one of their own),

.. math::
    z_c = \eta_c + v_c, \qquad v_c \sim \sum_k \epsilon_k \mathrm{Normal}(0, \sigma_{ck}^2), \qquad
    t_c(\eta) = \int L_c(z) \, f_c(z - \eta) \, dz, \qquad

    Z = \int p(\eta) \prod_c t_c(\eta_c) \, d\eta. \qquad (1)

Method. Each :math:`t_c` is stood for by a normal factor of the precision :math:`\tau_c` (Minka 2001). Less
this factor the law of :math:`\eta_c` is the cavity :math:`\mathrm{Normal}(\mu, \omega)`: what all other cells
say. Its product with :math:`t_c` has exact moments. As z given k is then weighed by a normal law of the
variance :math:`V_k = \omega + \sigma_k^2`,

.. math::
    Z_{ck} = \epsilon_k \int L_c(z) \, \mathrm{Normal}(z; \mu, V_k) \, dz, \qquad
    \operatorname{E}(\eta | z, k) = \mu + r_k (z - \mu), \qquad
    \operatorname{Var}(\eta | z, k) = \omega (1 - r_k), \qquad r_k = \omega / V_k \qquad (2)

where the integral is a sum over the cell's measure (``residual_grid``). Factors are moved, all at once, until
cavity times factor has these moments; steps are halved where they do not settle. Levels m have their
hyperprior as a factor in the same way. Then

.. math::
    \log Z \approx G(\tau, \nu) + \sum_c \Bigl(\log Z_c - \log \int \mathrm{Normal}(\eta; \mu_c, \omega_c) \,
    e^{\nu_c \eta - \tau_c \eta^2 / 2} \, d\eta\Bigr) \qquad (3)

with the integral G of ``field_gaussian``. Each cell's posterior is its cavity times its exact likelihood: the
one approximation is that cavities are normal.

References
----------
Minka. Expectation propagation for approximate Bayesian inference. UAI, 2001. Rasmussen, Williams. Gaussian
processes for machine learning. 2006, section 3.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.field_gaussian import GaussianField, Sites
from suffice.pipeline.math.engines.pooled.hyperpriors import LevelsPrior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.pooled.field_map import FieldMap
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.typing import Floats

_ROUNDS = 100
_TOLERANCE = 3e-3
"""Of means in standard deviations, and of the logarithms of variances."""
_LEAST_STEP = 0.05
_OF_LEVEL = np.linspace(-8.0, 8.0, 65)
_FLOOR = 1e-37


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Likelihoods of cells as weights on common points: seven digits of them.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
    weight : ndarray of shape (n_cells, n_points), float32
    low, high : ndarray of shape (n_cells,), float64
        The outermost points with a weight.
    least : float
        The least variance of a law that sums over points can tell: that of nodes, squared.
    """

    points: Floats
    weight: NDArray[np.float32]
    low: Floats
    high: Floats
    least: float

    @classmethod
    def of(cls, points: Floats, weight: Floats, least: float) -> Measures:
        """Find the outermost points."""
        has_weight = weight > 0.0
        last = len(points) - 1 - np.argmax(has_weight[:, ::-1], axis=1)
        return cls(
            points=points,
            weight=weight.astype(np.float32, copy=False),
            low=points[np.argmax(has_weight, axis=1)],
            high=points[last],
            least=least,
        )

    def moments(self, mean: Floats, variances: Sequence[Floats]) -> list[tuple[Floats, Floats, Floats]]:
        """Return log integrals under several normal laws of each cell, means and variances of z."""
        gap = self.points.astype(np.float32) - mean.astype(np.float32)[:, None]
        square = gap**2
        # No weight may vanish of cells that are far from where they are expected.
        nearest = np.maximum(np.maximum(self.low - mean, mean - self.high), 0.0) ** 2
        result = []
        for variance in variances:
            weight = square - nearest.astype(np.float32)[:, None]
            weight *= (-0.5 / variance).astype(np.float32)[:, None]
            np.minimum(weight, 0.0, out=weight)
            np.exp(weight, out=weight)
            weight *= self.weight
            total = np.maximum(np.einsum("ij->i", weight).astype(np.float64), _FLOOR)
            first = np.einsum("ij,ij->i", weight, gap) / total
            second = np.einsum("ij,ij->i", weight, square) / total
            log_scale = -0.5 * nearest / variance - 0.5 * np.log(2.0 * np.pi * variance)
            result.append((np.log(total) + log_scale, mean + first, np.maximum(second - first**2, 0.0)))
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class OfComponent:
    """What cells are like where their own parts are of one component.

    Attributes
    ----------
    log_z : ndarray of shape (n_cells,), float64
        log Z_ck of (2).
    mean, variance : ndarray of shape (n_cells,), float64
        Of z.
    ratio : ndarray of shape (n_cells,), float64
        r_k of (2).
    total : ndarray of shape (n_cells,), float64
        V_k of (2).
    """

    log_z: Floats
    mean: Floats
    variance: Floats
    ratio: Floats
    total: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """Cavities times exact likelihoods.

    Attributes
    ----------
    parts : tuple of OfComponent
    share : ndarray of shape (n_components, n_cells), float64
        How probable each component is.
    log_z : ndarray of shape (n_cells,), float64
    mean, variance : ndarray of shape (n_cells,), float64
        Of sums of level and field.
    """

    parts: tuple[OfComponent, ...]
    share: Floats
    log_z: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def of(
        cls, measures: Measures, mean: Floats, variance: Floats, residuals: Sequence[tuple[float, Floats]]
    ) -> Tilted:
        """Work out (2): of cavities, and shares and variances of cells' own parts."""
        totals = [np.maximum(variance + of_part, measures.least) for _, of_part in residuals]
        parts = [
            OfComponent(
                log_z=log_integral + np.log(share),
                mean=of_z,
                variance=variance_of_z,
                ratio=variance / total,
                total=total,
            )
            for (share, _), total, (log_integral, of_z, variance_of_z) in zip(
                residuals, totals, measures.moments(mean, totals), strict=True
            )
        ]
        log_z = np.logaddexp.reduce([part.log_z for part in parts], axis=0)
        shares = np.exp([part.log_z - log_z for part in parts])
        means = np.array([mean + part.ratio * (part.mean - mean) for part in parts])
        variances = [variance * (1.0 - part.ratio) + part.ratio**2 * part.variance for part in parts]
        of_all = np.sum(shares * means, axis=0)
        return cls(
            parts=tuple(parts),
            share=shares,
            log_z=log_z,
            mean=of_all,
            variance=np.sum(shares * (variances + (means - of_all) ** 2), axis=0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagated:
    """The field at one value of the hyperparameters.

    Attributes
    ----------
    sites : Sites
    field : GaussianField
    cavity_mean, cavity_variance : ndarray of shape (n_cells,), float64
    log_evidence : float
        (3).
    settled : bool
        Whether moments agree.
    """

    sites: Sites
    field: GaussianField
    cavity_mean: Floats
    cavity_variance: Floats
    log_evidence: float
    settled: bool


def propagated(
    field_map: FieldMap,
    measures: Measures,
    *,
    scale: float,
    residuals: Sequence[tuple[float, Floats]],
    level_prior: LocationPrior | LevelsPrior,
    start: Sites,
) -> Propagated:
    """Move normal factors until they have the moments of the exact ones.

    Parameters
    ----------
    field_map : FieldMap
    measures : Measures
    scale : float
        The standard deviation a of the field.
    residuals : sequence of (share, variances)
        Components of cells' own parts, variances (n_cells,).
    level_prior : LocationPrior or LevelsPrior
    start : Sites
        Where to begin.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the start leaves no law.
    """
    sites = start
    field = GaussianField.of(field_map, scale, sites)
    step, before = 1.0, np.inf
    for _ in range(_ROUNDS):
        mu, omega = _cavity(field.mean, field.variance, sites.tau, sites.nu)
        level_mu, level_omega = _cavity(
            field.level_mean, field.level_variance, sites.level_tau, sites.level_nu
        )
        tilted = Tilted.of(measures, mu, omega, residuals)
        level_log_z, level_mean, level_variance = _of_levels(level_mu, level_omega, level_prior)
        gap = max(
            float(np.max(np.abs(tilted.mean - field.mean) / np.sqrt(tilted.variance))),
            float(np.max(np.abs(np.log(tilted.variance / field.variance)))),
            float(np.max(np.abs(np.log(level_variance / field.level_variance)))),
        )
        if gap < _TOLERANCE:
            break
        # Shorter where it swings, and longer again where it does not.
        step = max(0.6 * step, _LEAST_STEP) if gap > before else min(1.15 * step, 1.0)
        before = gap
        wanted = Sites(
            tau=1.0 / tilted.variance - 1.0 / omega,
            nu=tilted.mean / tilted.variance - mu / omega,
            level_tau=1.0 / level_variance - 1.0 / level_omega,
            level_nu=level_mean / level_variance - level_mu / level_omega,
        )
        sites, field, step = _moved(field_map, scale, sites, wanted, step)
    log_evidence = field.log_integral + float(
        np.sum(tilted.log_z - _log_factor(mu, omega, sites.tau, sites.nu))
        + np.sum(level_log_z - _log_factor(level_mu, level_omega, sites.level_tau, sites.level_nu))
    )
    return Propagated(
        sites=sites,
        field=field,
        cavity_mean=mu,
        cavity_variance=omega,
        log_evidence=log_evidence,
        settled=gap < _TOLERANCE,
    )


def _moved(
    field_map: FieldMap, scale: float, sites: Sites, wanted: Sites, step: float
) -> tuple[Sites, GaussianField, float]:
    """Take a step that leaves a normal law, and return how long it is."""
    while True:
        moved = sites.towards(wanted, step)
        try:
            field = GaussianField.of(field_map, scale, moved)
            if np.all(field.variance > 0.0) and np.all(field.variance * moved.tau < 1.0):
                return moved, field, step
        except np.linalg.LinAlgError:
            pass
        step *= 0.5
        if step < _LEAST_STEP**2:
            return sites, GaussianField.of(field_map, scale, sites), step


def _cavity(mean: Floats, variance: Floats, tau: Floats, nu: Floats) -> tuple[Floats, Floats]:
    """Return means and variances of laws less a factor of each."""
    precision = np.maximum(1.0 / variance - tau, 1e-9 / variance)
    return (mean / variance - nu) / precision, 1.0 / precision


def _log_factor(mu: Floats, omega: Floats, tau: Floats, nu: Floats) -> Floats:
    """The integrals of (3)."""
    total = 1.0 + tau * omega
    result: Floats = 0.5 * (nu**2 * omega + 2.0 * nu * mu - tau * mu**2) / total - 0.5 * np.log(total)
    return result


def _of_levels(
    mu: Floats, omega: Floats, prior: LocationPrior | LevelsPrior
) -> tuple[Floats, Floats, Floats]:
    """Return log integrals, means and variances of levels' cavities times their hyperprior."""
    if isinstance(prior, LevelsPrior):
        of_levels = _of_levels(mu[: prior.n_levels(mu)], omega[: prior.n_levels(mu)], prior.location)
        if prior.coefficient_sd is None:
            return of_levels
        # A normal law of the last one.
        total = omega[-1] + prior.coefficient_sd**2
        log_z = 0.5 * np.log(prior.coefficient_sd**2 / total) - 0.5 * mu[-1] ** 2 / total
        kept = prior.coefficient_sd**2 / total
        of_last = log_z, mu[-1] * kept, omega[-1] * kept
        return tuple(np.append(each, last) for each, last in zip(of_levels, of_last, strict=True))  # type: ignore[return-value]
    sd = np.sqrt(omega)[:, None]
    m = mu[:, None] + sd * _OF_LEVEL
    log_weight = -0.5 * _OF_LEVEL**2 + prior.log_density(m)
    highest = np.max(log_weight, axis=1)
    weight = np.exp(log_weight - highest[:, None])
    total = np.sum(weight, axis=1)
    mean = np.sum(weight * m, axis=1) / total
    variance = np.sum(weight * (m - mean[:, None]) ** 2, axis=1) / total
    step = _OF_LEVEL[1] - _OF_LEVEL[0]
    return np.log(total * step / np.sqrt(2.0 * np.pi)) + highest, mean, variance
