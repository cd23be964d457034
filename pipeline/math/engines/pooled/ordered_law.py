r"""Normal laws of series over time: a level or a trend, a return to a level, and a season.

Model. Of a series at times t = 0, 1, ...

.. math::
    x_t = a_t + \gamma_{t \bmod S}, \qquad a_0 \sim \mathrm{Normal}(m_0, \upsilon), \qquad
    \gamma \sim \mathrm{Normal}\Bigl(0, \tau^2 \tfrac S {S - 1} (I - \tfrac 1 S 1 1')\Bigr), \qquad (1)

a season of S effects that add up to 0, each with the variance :math:`\tau^2`, and one of

.. math::
    a_t - a_{t-1} \sim \mathrm{Normal}(0, s^2), \qquad (2)

    a_t - a_{t-1} - b_{t-1} \sim \mathrm{Normal}(0, s^2), \qquad
    b_t - b_{t-1} \sim \mathrm{Normal}(0, r^2), \qquad b_0 \sim \mathrm{Normal}(0, \kappa^2), \qquad (3)

    a_t - m - \phi (a_{t-1} - m) \sim \mathrm{Normal}(0, s^2), \qquad
    a_0 - m \sim \mathrm{Normal}\bigl(0, \tfrac{s^2}{1 - \phi^2}\bigr), \qquad (4)

a random walk, a local linear trend (Harvey 1989) and a process that returns to a level m, which has the law
of :math:`a_0` in (2). Public hyperpriors, with the scale :math:`\kappa` of steps:

.. math:: s \sim \mathrm{HalfNormal}(\kappa), \qquad r \sim \mathrm{HalfNormal}(\kappa / 10), \qquad
    \phi \sim \mathrm{Uniform}(0, 1), \qquad \tau \sim \mathrm{HalfNormal}(1).

A share of steps of a may be jumps, of which the variance is :math:`s^2 + 2` (``jump_sets``).

Method. x is normal, given which steps are jumps; with :math:`i, j` in the place of two times, the covariances
of (2) and (3) are :math:`\upsilon + s^2 \min(i, j)` and that plus
:math:`\kappa^2 i j + r^2 \sum_k (i - k)_+ (j - k)_+`, k from 1 on.

Symbols: :math:`\theta` is (log s, and of those that there are log r, logit :math:`\phi`, log :math:`\tau`):
``theta``; :math:`\upsilon`: ``variance``; :math:`\kappa`: ``scale``; S: ``season``.

References
----------
Harvey. Forecasting, structural time series models and the Kalman filter. 1989.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.typing import Cells, Floats

SLOPES_OF_STEPS = 0.1
"""The scale of the hyperprior of r, in that of s."""
SEASON_SCALE = 1.0
_LOWEST, _HIGHEST = -9.0, 2.5
"""Logarithms of standard deviations that are looked at, over the scales of their hyperpriors."""
_LOGIT = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedLaw:
    """One of (2) to (4), with a season or without.

    Attributes
    ----------
    scale : float
        Of the half-normal hyperprior of steps.
    has_slope : bool
        Whether it is a local linear trend.
    returns : bool
        Whether it returns to a level.
    season : int or None
    """

    scale: float
    has_slope: bool = False
    returns: bool = False
    season: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What theta has, in its order."""
        terms = {"slope_step": self.has_slope, "coefficient": self.returns, "season": self.season is not None}
        return ("step", *(name for name, is_there in terms.items() if is_there))

    @property
    def _scales(self) -> dict[str, float]:
        return {"step": self.scale, "slope_step": SLOPES_OF_STEPS * self.scale, "season": SEASON_SCALE}

    @property
    def start(self) -> list[float]:
        """About where theta may be."""
        return [
            0.5 if name == "coefficient" else float(np.log(0.3 * self._scales[name])) for name in self.names
        ]

    @property
    def sizes(self) -> list[float]:
        """How far to look of each."""
        return [1.5 if name == "coefficient" else 0.7 for name in self.names]

    def values(self, theta: Floats) -> dict[str, float]:
        """Return hyperparameters themselves, by name."""
        return {
            name: float(1.0 / (1.0 + np.exp(-each)) if name == "coefficient" else np.exp(each))
            for name, each in zip(self.names, theta, strict=True)
        }

    def is_possible(self, theta: Floats) -> bool:
        """Whether hyperpriors leave anything there."""
        return all(
            abs(each) < _LOGIT
            if name == "coefficient"
            else _LOWEST < each - np.log(self._scales[name]) < _HIGHEST
            for name, each in zip(self.names, theta, strict=True)
        )

    def log_prior(self, theta: Floats) -> float:
        """Log density of theta, but for a constant."""
        total = 0.0
        for name, each in zip(self.names, theta.tolist(), strict=True):
            if name == "coefficient":
                total -= float(np.logaddexp(0.0, each) + np.logaddexp(0.0, -each))
            else:
                total += each - 0.5 * float(np.exp(2.0 * each)) / self._scales[name] ** 2
        return total

    def covariance(self, theta: Floats, n_times: int, prior: LocationPrior) -> Floats:
        """Return the covariance of x, (n_times, n_times)."""
        value, time = self.values(theta), np.arange(n_times, dtype=np.float64)
        i, j = time[:, None], time[None, :]
        result = np.full((n_times, n_times), 1.0 / prior.precision)
        if self.returns:
            phi = value["coefficient"]
            result += value["step"] ** 2 / (1.0 - phi**2) * phi ** np.abs(i - j)  # (4)
        else:
            result += value["step"] ** 2 * np.minimum(i, j)  # (2)
        if self.has_slope:
            after = np.maximum(i - time[None, 1:], 0.0)
            result += self.scale**2 * i * j + value["slope_step"] ** 2 * after @ after.T  # (3)
        if self.season is not None:
            result += self.of_season(theta, time, time)
        return result

    def moves(self, theta: Floats, n_times: int) -> Floats:
        """Return what the step to each time but the first adds to x, (n_times, n_times - 1)."""
        since = np.arange(n_times)[:, None] - np.arange(1, n_times)
        left = self.values(theta)["coefficient"] if self.returns else 1.0
        return np.where(since >= 0, left ** np.maximum(since, 0), 0.0)

    def of_season(self, theta: Floats, first: Floats | Cells, second: Floats | Cells) -> Floats:
        """Return covariances of the season's effects at two lists of times, by (1)."""
        assert self.season is not None  # noqa: S101 - who asks has one
        is_same = (first[:, None] - second[None, :]) % self.season == 0
        of_effects = (is_same - 1.0 / self.season) * self.season / (self.season - 1.0)
        result: Floats = self.values(theta)["season"] ** 2 * of_effects
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """The normal law of series given normal observations of each time.

    Attributes
    ----------
    mean, variance : ndarray of shape (n_series, n_times), float64
        Of x less its prior mean.
    covariance : ndarray of shape (n_series, n_times, n_times), float64
    log_integral : ndarray of shape (n_series,), float64
        Of the prior times exp(nu x - tau x^2 / 2).
    """

    mean: Floats
    variance: Floats
    covariance: Floats
    log_integral: Floats

    @classmethod
    def of(cls, prior: Floats, tau: Floats, nu: Floats) -> Normal:
        """Observe precisions, which may be below 0, and precisions times values, (n_series, n_times).

        The prior covariance is (n_times, n_times), or (n_series, n_times, n_times) where series differ.

        Raises
        ------
        numpy.linalg.LinAlgError
            Where that leaves no law.
        """
        n_times = prior.shape[-1]
        matrix = np.eye(n_times) + prior * tau[:, None, :]
        sign, log_determinant = np.linalg.slogdet(matrix)
        covariance = np.linalg.solve(matrix, np.broadcast_to(prior, matrix.shape))
        covariance = (covariance + covariance.transpose(0, 2, 1)) / 2.0
        variance = np.einsum("ijj->ij", covariance).copy()
        if np.min(sign) <= 0.0 or np.min(variance) <= 0.0:
            message = "no normal law"
            raise np.linalg.LinAlgError(message)
        mean = np.einsum("ijk,ik->ij", covariance, nu)
        return cls(
            mean=mean,
            variance=variance,
            covariance=covariance,
            log_integral=0.5 * (np.sum(nu * mean, axis=1) - log_determinant),
        )
