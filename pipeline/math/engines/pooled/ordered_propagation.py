r"""Expectation propagation of series over time under the exact likelihoods of cells.

Model. x has a law of ``ordered_law``, and a cell at time t the likelihood :math:`L_t(x_t)`.

Method. As ``field_propagation``, without parts of cells' own: each L is stood for by a normal factor of the
precision :math:`\tau_t`; less this factor the law of :math:`x_t` is the cavity
:math:`\mathrm{Normal}(\mu_t, \omega_t)`, and

.. math::
    Z_t = \int L_t(x) \, \mathrm{Normal}(x; \mu_t, \omega_t) \, dx, \qquad
    \log Z \approx G(\tau, \nu) + \sum_t \Bigl(\log Z_t - \log \int \mathrm{Normal}(x; \mu_t, \omega_t) \,
    e^{\nu_t x - \tau_t x^2 / 2} \, dx\Bigr) \qquad (1)

where integrals over L are sums over evenly spaced points. Factors are moved, all at once, until cavity times
factor has the moments of cavity times L. Each cell's posterior is its cavity times its exact likelihood: the
one approximation is that cavities are normal.

Of a series the error is what means and standard deviations change by when the other cells, too, are weighed
by :math:`r_t(x) = \log L_t(x) - \nu_t x + \tau_t x^2 / 2`, over draws of a t law about the normal one
(``field_error``). Where noise hides cells, tails are longer than those of normal cavities: standard
deviations of three counts of 1 to 14 under noise of scale 6 are too small by .17 to .26, as the check says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.ordered_law import Normal
from suffice.pipeline.math.engines.pooled.regression_target import degrees

if TYPE_CHECKING:
    from suffice.typing import Floats, Mask

_ROUNDS, _TOLERANCE, _LEAST_STEP = 60, 1e-3, 0.05
_FLOOR, _JITTER = 1e-300, 1e-12
_EFFECTIVE, _NEAR = 0.05, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """Cavities times exact likelihoods, (n_series, n_times): log Z_t of (1), means and variances."""

    log_z: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, points: Floats, likelihood: Floats, mu: Floats, omega: Floats) -> Tilted:
        """Sum over points (n_series, n_points), of likelihoods (n_series, n_times, n_points)."""
        gap = points[:, None, :] - mu[:, :, None]
        square = gap**2
        weight = np.exp(square * (-0.5 / omega)[:, :, None])
        weight *= likelihood
        total = np.maximum(np.sum(weight, axis=2), _FLOOR)
        first = np.einsum("ijk,ijk->ij", weight, gap) / total
        second = np.einsum("ijk,ijk->ij", weight, square) / total
        spacing = points[0, 1] - points[0, 0]
        return cls(
            log_z=np.log(total * spacing) - 0.5 * np.log(2.0 * np.pi * omega),
            mean=mu + first,
            variance=np.maximum(second - first**2, 1e-12),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PropagatedSeries:
    """Some series at one value of the hyperparameters.

    Attributes
    ----------
    tau, nu : ndarray of shape (n_series, n_times), float64
        Factors, of x less its prior mean.
    law : Normal
    mu, omega : ndarray of shape (n_series, n_times), float64
        Cavities, of x less its prior mean.
    tilted : Tilted
    log_evidence : ndarray of shape (n_series,), float64
        (1).
    apart : ndarray of shape (n_series,), float64
        How far moments are apart: means in standard deviations, or logarithms of variances.
    """

    tau: Floats
    nu: Floats
    law: Normal
    mu: Floats
    omega: Floats
    tilted: Tilted
    log_evidence: Floats
    apart: Floats

    @property
    def settled_series(self) -> Mask:
        """Of which series moments agree."""
        return np.asarray(self.apart < 3.0 * _TOLERANCE)

    @property
    def settled(self) -> bool:
        """Whether they do of all."""
        return bool(np.all(self.settled_series))


def propagated(
    prior: Floats,
    points: Floats,
    likelihood: Floats,
    is_seen: Mask,
    start: tuple[Floats, Floats],
    rounds: int = _ROUNDS,
) -> PropagatedSeries:
    """Move normal factors until they have the moments of the exact ones.

    Parameters
    ----------
    prior : ndarray of shape (n_times, n_times) or (n_series, n_times, n_times), float64
        The covariance of x.
    points : ndarray of shape (n_series, n_points), float64
        Less the prior mean.
    likelihood : ndarray of shape (n_series, n_times, n_points), float64
    is_seen : ndarray of shape (n_series, n_times), bool
        Which times have a cell.
    start : (tau, nu)
        Where to begin.
    rounds : int
        How often factors may be moved; 1 leaves them where they are.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the start leaves no law.
    """
    tau, nu = (np.where(is_seen, each, 0.0) for each in start)
    law = Normal.of(prior, tau, nu)
    step, before = 1.0, np.inf
    for turn in range(rounds):
        precision = np.maximum(1.0 / law.variance - tau, 1e-9 / law.variance)
        mu, omega = (law.mean / law.variance - nu) / precision, 1.0 / precision
        tilted = Tilted.of(points, likelihood, mu, omega)
        far = np.abs(tilted.mean - law.mean) / np.sqrt(tilted.variance)
        far = np.maximum(far, np.abs(np.log(tilted.variance / law.variance)))
        apart = np.max(np.where(is_seen, far, 0.0), axis=1)
        gap = float(np.max(apart))
        if gap < _TOLERANCE or turn == rounds - 1:
            break
        if gap > before:
            step = max(0.7 * step, _LEAST_STEP)
        before = gap
        wanted = (
            np.where(is_seen, 1.0 / tilted.variance - precision, 0.0),
            np.where(is_seen, tilted.mean / tilted.variance - mu * precision, 0.0),
        )
        tau, nu, law, step = _moved(prior, (tau, nu), wanted, law, step)
    factor = 1.0 + tau * omega
    of_factor = 0.5 * (nu**2 * omega + 2.0 * nu * mu - tau * mu**2) / factor - 0.5 * np.log(factor)
    of_cells = np.sum(np.where(is_seen, tilted.log_z - of_factor, 0.0), axis=1)
    return PropagatedSeries(
        tau=tau,
        nu=nu,
        law=law,
        mu=mu,
        omega=omega,
        tilted=tilted,
        log_evidence=law.log_integral + of_cells,
        apart=apart,
    )


def _moved(
    prior: Floats, sites: tuple[Floats, Floats], wanted: tuple[Floats, Floats], law: Normal, step: float
) -> tuple[Floats, Floats, Normal, float]:
    """Take a step that leaves a normal law, and return how long it is."""
    length = step
    while length > _LEAST_STEP**2:
        tau, nu = (here + length * (there - here) for here, there in zip(sites, wanted, strict=True))
        try:
            moved = Normal.of(prior, tau, nu)
            if np.all(moved.variance * tau < 1.0):
                return tau, nu, moved, length
        except np.linalg.LinAlgError:
            pass
        length *= 0.5
    return *sites, law, length


def errors(
    at: PropagatedSeries,
    points: Floats,
    likelihood: Floats,
    is_seen: Mask,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Mask]:
    """Return what propagation is off by: of means in standard deviations, of standard deviations as a share.

    Both are (n_series, n_times). Last comes whether all times of a series were weighed, (n_series,); where
    fewer than ``_EFFECTIVE`` of the draws would count it is those within ``_NEAR`` times.
    """
    n_series, n_times = at.mu.shape
    off, of_sd, is_of_all = np.zeros((n_series, n_times)), np.zeros((n_series, n_times)), []
    for series in range(n_series):
        root = np.linalg.cholesky(at.law.covariance[series] + _JITTER * np.eye(n_times))
        # Draws of a t law: its tails reach where the likelihood of a cell that noise hides does.
        away = rng.standard_normal((draws, n_times))
        freedom = degrees(n_times)
        away *= np.sqrt(freedom / rng.chisquare(freedom, draws))[:, None]
        x = at.law.mean[series] + away @ root.T
        square = np.sum(away**2, axis=1, keepdims=True)
        of_normal = 0.5 * (freedom + n_times) * np.log1p(square / freedom) - 0.5 * square
        log_ratio = np.zeros((draws, n_times))
        with np.errstate(divide="ignore"):
            log_l = np.maximum(np.log(likelihood[series]), -700.0)
        for time in np.flatnonzero(is_seen[series]).tolist():
            log_ratio[:, time] = np.interp(x[:, time], points[series], log_l[time])
        log_ratio += np.where(is_seen[series], 0.5 * at.tau[series] * x**2 - at.nu[series] * x, 0.0)
        whole = np.sum(log_ratio, axis=1, keepdims=True) + of_normal
        weight = np.exp(whole - np.max(whole))
        is_of_all.append(bool(np.sum(weight) ** 2 > _EFFECTIVE * draws * np.sum(weight**2)))
        if not is_of_all[-1]:
            before = np.concatenate([np.zeros((draws, 1)), np.cumsum(log_ratio, axis=1)], axis=1)
            times = np.arange(n_times)
            near = before[:, np.minimum(times + _NEAR + 1, n_times)] - before[:, np.maximum(times - _NEAR, 0)]
            near += of_normal
            weight = np.exp(near - np.max(near, axis=0))
        of_cell = log_ratio + of_normal
        alone = np.exp(of_cell - np.max(of_cell, axis=0))
        (mean, sd), (mean_alone, sd_alone) = _moments(x, weight), _moments(x, alone)
        off[series], of_sd[series] = (mean - mean_alone) / sd_alone, sd / sd_alone - 1.0
    return off, of_sd, np.array(is_of_all)


def _moments(x: Floats, weight: Floats) -> tuple[Floats, Floats]:
    weight = weight / np.sum(weight, axis=0)
    mean = np.sum(weight * x, axis=0)
    return mean, np.sqrt(np.sum(weight * (x - mean) ** 2, axis=0))
