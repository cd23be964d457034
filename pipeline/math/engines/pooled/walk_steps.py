r"""The step of a walk, integrated over, and the points on which the walk goes.

Model. The standard deviation s of steps (``walk``) is shared by all series of a pool, with a half-normal
hyperprior of the scale :math:`\kappa`,

.. math:: p(s \mid y) \propto p(s) \prod_i p(y_i \mid s). \qquad (1)

Method. The integral is a Gauss-Legendre rule in log s. The normal approximation of each cell's likelihood
says where to put it, and where to put the points, by Kalman's filter of ``_FIRST`` steps; exact evidence
weighs the rule, and moves its ends until the posterior lies inside, first of some series, then of all. Steps
that move a series by next to nothing over its length are one step, ``least``, with the prior mass below it.

Symbols: s: ``step``; p(s | y) on the rule: ``weight``; :math:`\kappa`: ``scale``.

References
----------
Durbin, Koopman. Time Series Analysis by State Space Methods. 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.typing import Floats

STEP_SCALE = 0.3
"""Of the hyperprior of steps: of odds or rates, a third from one time to the next."""
LOG_STEP_SD = float(np.pi / np.sqrt(8.0))
"""Of the logarithm of a half-normal number, whatever its scale."""
_FIRST = np.geomspace(1e-3, 3.0, 33)
_NODES = {100: 24, 2000: 16, None: 11}
_ROUNDS = 8
_NEGLIGIBLE = 1e-6
_HIGHEST = 6.0
"""Scales of the hyperprior, beyond which it has nothing."""
_IMMATERIAL = 0.02
_WIDE = 5.0
_FINE = 1.2
_TAILS = 5.5
"""Standard deviations of a position on either side that points hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximation:
    """Kalman's filter and smoother of a local level, at several steps.

    Attributes
    ----------
    log_evidence : ndarray of shape (n_steps, n_series), float64
    mean, variance : ndarray of shape (n_steps, n_series, n_times), float64
        Given all cells.
    """

    log_evidence: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, mean: Floats, precision: Floats, steps: Floats, prior: LocationPrior) -> Self:
        """Run both ways.

        Parameters
        ----------
        mean, precision : ndarray of shape (n_series, n_times), float64
            Of the likelihood of every time.
        steps : ndarray of shape (n_steps,), float64
        prior : LocationPrior
            Of the first position; its variance.
        """
        n_series, n_times = mean.shape
        shape = (len(steps), n_series, n_times)
        before, after, m, v = (np.empty(shape) for _ in range(4))
        of_step = steps[:, None] ** 2
        level = np.full(shape[:2], prior.centre)
        variance = np.full(shape[:2], 1.0 / prior.precision)
        total = np.zeros(shape[:2])
        for time in range(n_times):
            before[:, :, time] = variance
            q = precision[:, time]
            gap = mean[:, time] - level
            # 1 / (v + 1 / q), also where q is 0.
            told = q / (1.0 + variance * q)
            total += 0.5 * np.log(np.where(q > 0.0, told, 1.0)) - 0.5 * told * gap**2
            level = level + variance * told * gap
            variance = variance / (1.0 + variance * q)
            m[:, :, time], v[:, :, time] = level, variance
            after[:, :, time] = variance
            variance = variance + of_step
        for time in reversed(range(n_times - 1)):
            gain = after[:, :, time] / before[:, :, time + 1]
            m[:, :, time] += gain * (m[:, :, time + 1] - m[:, :, time])
            v[:, :, time] += gain**2 * (v[:, :, time + 1] - before[:, :, time + 1])
        return cls(log_evidence=total, mean=m, variance=v)


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Evenly spaced points of each series.

    Attributes
    ----------
    low : ndarray of shape (n_series,), float64
    spacing : float
    n_points : int
    """

    low: Floats
    spacing: float
    n_points: int

    @property
    def grid(self) -> Floats:
        """(n_series, n_points)."""
        return self.low[:, None] + self.spacing * np.arange(self.n_points)

    def longer(self, n: int) -> Points:
        """Return these with so many more at either end."""
        return replace(self, low=self.low - n * self.spacing, n_points=self.n_points + 2 * n)

    def are_fine_for(self, sd: float) -> bool:
        """Whether they are about as close together as a posterior is wide."""
        return self.spacing <= _FINE * sd


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPosterior:
    """Nodes of (1).

    Attributes
    ----------
    step, weight : ndarray of shape (n_nodes,), float64
        Weights add up to 1.
    settled : bool
        Whether the posterior lies within the ends of the rule.
    """

    step: Floats
    weight: Floats
    settled: bool

    @property
    def mean(self) -> float:
        """Of s."""
        return float(self.weight @ self.step)

    @property
    def sd(self) -> float:
        """Of s."""
        return float(np.sqrt(np.sum(self.weight * (self.step - self.mean) ** 2)))

    @property
    def log_sd(self) -> float:
        """The posterior standard deviation of log s."""
        return float(np.sqrt(np.sum(self.weight * (np.log(self.step) - self.log_mean) ** 2)))

    @property
    def log_mean(self) -> float:
        """The posterior mean of log s."""
        return float(self.weight @ np.log(self.step))

    def kept(self) -> StepPosterior:
        """Return the nodes that have a weight."""
        rows = np.flatnonzero(self.weight > _NEGLIGIBLE * np.max(self.weight))
        weight = self.weight[rows]
        return StepPosterior(step=self.step[rows], weight=weight / np.sum(weight), settled=self.settled)


def log_hyperprior(step: Floats, scale: float) -> Floats:
    """Log density of a half-normal step, but for a constant."""
    return np.asarray(-0.5 * (step / scale) ** 2)


def first_ends(approximation: Approximation, scale: float) -> tuple[float, float]:
    """Return ends of log s by the normal approximation."""
    log_step = np.log(_FIRST)
    log_weight = np.sum(approximation.log_evidence, axis=1) + log_hyperprior(_FIRST, scale) + log_step
    weight = np.exp(log_weight - np.max(log_weight))
    weight /= np.sum(weight)
    mean = float(weight @ log_step)
    sd = float(np.sqrt(weight @ (log_step - mean) ** 2))
    # Jumps are steps to the approximation: smaller ones come into question.
    return mean - _WIDE * sd - 1.0, mean + _WIDE * sd + 0.4


def approximated(
    mean: Floats, precision: Floats, prior: LocationPrior, steps: Floats | None = None
) -> Approximation:
    """Return the approximation at `steps`, or at the first ones."""
    return Approximation.of(mean, precision, _FIRST if steps is None else steps, prior)


def weighed(
    evidence: Callable[[Floats], Floats],
    ends: tuple[float, float],
    *,
    scale: float,
    least: float,
    n_cells: int,
) -> tuple[StepPosterior, tuple[float, float]]:
    """Weigh the rule by exact evidence, and move its ends until the posterior lies inside.

    Parameters
    ----------
    evidence : callable
        Gets steps, and returns log evidence of all series together, (n_steps,).
    ends : (float, float)
        Of log s.
    scale : float
    least : float
        The step below which none is told apart.
    n_cells : int
        Decides the number of nodes.
    """
    n = next(number for most, number in _NODES.items() if most is None or n_cells <= most)
    nodes, of_nodes = np.polynomial.legendre.leggauss(n)
    bottom, top = float(np.log(least)), float(np.log(_HIGHEST * scale))
    result = StepPosterior(step=np.array([least]), weight=np.ones(1), settled=False)
    for _ in range(_ROUNDS):
        low, high = max(min(ends[0], top - 1.0), bottom), min(max(ends[1], bottom + 1.0), top)
        half = (high - low) / 2.0
        log_step = (low + high) / 2.0 + half * nodes
        log_rule = np.log(half * of_nodes) + log_step
        if low == bottom:
            # All smaller steps: ds over 0..least.
            log_step, log_rule = np.append(log_step, bottom), np.append(log_rule, bottom)
        step = np.exp(log_step)
        log_weight = evidence(step) + log_hyperprior(step, scale) + log_rule
        weight = np.exp(log_weight - np.max(log_weight))
        result = StepPosterior(step=step, weight=weight / np.sum(weight), settled=True)
        mean = result.log_mean
        sd = max(result.log_sd, 0.4 * half / n)
        density = weight[:n] / of_nodes
        density /= np.max(density)
        is_inside = (low == bottom or density[0] < 1e-3) and (high == top or density[n - 1] < 1e-3)
        is_fine = sd > 1.3 * half / n
        if is_inside and is_fine:
            return result, (low, high)
        # At an end the standard deviation is larger than it seems.
        ends = (
            mean - 5.5 * sd - (0 if density[0] < 1e-3 else half),
            mean + 4.5 * sd + (0 if density[n - 1] < 1e-3 else half),
        )
    return StepPosterior(step=result.step, weight=result.weight, settled=False), ends


def points_of(
    mean: Floats,
    precision: Floats,
    prior: LocationPrior,
    ends: tuple[float, float],
    *,
    apart: float,
    least_points: int,
    most_points: int,
    wider: float,
) -> Points:
    """Return points that hold every series, and are fine enough for its narrowest posterior.

    Parameters
    ----------
    mean, precision : ndarray of shape (n_series, n_times), float64
    prior : LocationPrior
    ends : (float, float)
        Of log s.
    apart : float
        How far apart points are, at most, in standard deviations of the narrowest posterior.
    least_points, most_points : int
    wider : float
        By which the range is multiplied, from 1 on.
    """
    # The widest steps of the rule have next to no weight.
    low_end, high_end = ends[0], ends[1] - 0.3 * (ends[1] - ends[0])
    smooth = approximated(mean, precision, prior, np.exp(np.linspace(low_end, high_end, 3)))
    sd = np.sqrt(smooth.variance)
    low = np.min(smooth.mean - _TAILS * sd, axis=(0, 2))
    high = np.max(smooth.mean + _TAILS * sd, axis=(0, 2))
    # A cell that is told by itself, after a jump or before one.
    is_told = precision > 2.0
    of_cell = np.where(is_told, 5.0 / np.sqrt(np.maximum(precision, 2.0)), 0.0)
    low = np.minimum(low, np.min(np.where(is_told, mean - of_cell, np.inf), axis=1))
    high = np.maximum(high, np.max(np.where(is_told, mean + of_cell, -np.inf), axis=1))
    width = wider * float(np.max(high - low)) + 0.2
    wanted = int(np.ceil(width / (apart * float(np.min(sd)))))
    n_points = int(np.clip(wanted, least_points, most_points))
    return Points(low=(low + high - width) / 2.0, spacing=width / (n_points - 1), n_points=n_points)


def narrowest(mean: Floats, precision: Floats, prior: LocationPrior, log_step: float) -> float:
    """Return about the least standard deviation of a position at a step."""
    at_step = approximated(mean, precision, prior, np.exp([log_step]))
    return float(np.sqrt(np.min(at_step.variance)))


def least_step(points: Points, n_times: int) -> float:
    """Return a step that moves a series over its length by next to nothing."""
    return float(_IMMATERIAL * points.spacing / np.sqrt(n_times))
