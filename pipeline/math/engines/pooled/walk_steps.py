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
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.typing import Cells, Floats

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
    centre : ndarray of shape (n_series,), float64
        The middle one.
    spacing : float
    reach : ndarray of shape (n_series,), int64
        How many points are on either side of it.
    """

    centre: Floats
    spacing: float
    reach: Cells

    @property
    def most(self) -> int:
        """How many points the widest series has."""
        return 2 * int(np.max(self.reach)) + 1

    def grid(self, series: Cells) -> Floats:
        """Return points of some series, (n_series, n_points): of each as many as the widest has."""
        reach = int(np.max(self.reach[series]))
        return self.centre[series, None] + self.spacing * np.arange(-reach, reach + 1)

    @property
    def ends(self) -> tuple[float, float]:
        """The least point and the highest of all."""
        reach = self.spacing * self.reach
        return float(np.min(self.centre - reach)), float(np.max(self.centre + reach))

    def longer(self, n: Cells) -> Points:
        """Return these with so many more at either end of each series."""
        return replace(self, reach=self.reach + n)

    def are_fine_for(self, sd: float) -> bool:
        """Whether they are about as close together as a posterior is wide."""
        return self.spacing <= _FINE * sd


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkNode:
    """Hyperparameters at one node.

    Attributes
    ----------
    step : float
    coefficient : float
        What is left of a distance from the level after a time; 1 of a random walk.
    levels : ndarray of shape (n_levels,), float64, or None
        From the middle point of each series, evenly spaced; None of a random walk, which has none.
    """

    step: float
    coefficient: float = 1.0
    levels: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPosterior:
    """Nodes of (1).

    Attributes
    ----------
    nodes : tuple of WalkNode
    weight : ndarray of shape (n_nodes,), float64
        Adds up to 1.
    settled : bool
        Whether the posterior lies within the ends of the rule.
    """

    nodes: tuple[WalkNode, ...]
    weight: Floats
    settled: bool

    @classmethod
    def of_steps(cls, step: Floats, weight: Floats, *, settled: bool) -> Self:
        """Of a random walk."""
        return cls(nodes=nodes_of(step), weight=weight / np.sum(weight), settled=settled)

    @property
    def step(self) -> Floats:
        """Steps of all nodes."""
        return np.array([node.step for node in self.nodes])

    @property
    def coefficient(self) -> tuple[float, float]:
        """Posterior mean and standard deviation of the coefficient."""
        each = np.array([node.coefficient for node in self.nodes])
        mean = float(self.weight @ each)
        return mean, float(np.sqrt(self.weight @ (each - mean) ** 2))

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
        nodes = tuple(self.nodes[row] for row in rows.tolist())
        return StepPosterior(nodes=nodes, weight=weight / np.sum(weight), settled=self.settled)


def nodes_of(step: Floats) -> tuple[WalkNode, ...]:
    """Return the nodes of random walks."""
    return tuple(WalkNode(step=each) for each in step.tolist())


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
    evidence: Callable[[Sequence[WalkNode]], Floats],
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
        Gets nodes, and returns log evidence of all series together, (n_nodes,).
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
    result = StepPosterior.of_steps(np.array([least]), np.ones(1), settled=False)
    for _ in range(_ROUNDS):
        low, high = max(min(ends[0], top - 1.0), bottom), min(max(ends[1], bottom + 1.0), top)
        half = (high - low) / 2.0
        log_step = (low + high) / 2.0 + half * nodes
        log_rule = np.log(half * of_nodes) + log_step
        if low == bottom:
            # All smaller steps: ds over 0..least.
            log_step, log_rule = np.append(log_step, bottom), np.append(log_rule, bottom)
        step = np.exp(log_step)
        log_weight = evidence(nodes_of(step)) + log_hyperprior(step, scale) + log_rule
        weight = np.exp(log_weight - np.max(log_weight))
        result = StepPosterior.of_steps(step, weight, settled=True)
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
    return replace(result, settled=False), ends


def points_of(
    mean: Floats,
    precision: Floats,
    smooth: tuple[Floats, Floats],
    *,
    apart: float,
    least_points: int,
    most_points: int,
) -> Points:
    """Return points that hold each series, and are fine enough for the narrowest posterior of all.

    Parameters
    ----------
    mean, precision : ndarray of shape (n_series, n_times), float64
    smooth : tuple of ndarray of shape (n_thetas, n_series, n_times), float64
        Means and variances of positions at some hyperparameters in question.
    apart : float
        How far apart points are, at most, in standard deviations of the narrowest posterior.
    least_points, most_points : int
        Of the widest series.
    """
    middle, sd = smooth[0], np.sqrt(smooth[1])
    low = np.min(middle - _TAILS * sd, axis=(0, 2))
    high = np.max(middle + _TAILS * sd, axis=(0, 2))
    # A cell that is told by itself, after a jump or before one.
    is_told = precision > 2.0
    of_cell = np.where(is_told, 5.0 / np.sqrt(np.maximum(precision, 2.0)), 0.0)
    low = np.minimum(low, np.min(np.where(is_told, mean - of_cell, np.inf), axis=1))
    high = np.maximum(high, np.max(np.where(is_told, mean + of_cell, -np.inf), axis=1))
    half = (high - low) / 2.0 + 0.1
    wanted = int(np.ceil(float(np.max(half)) / (apart * float(np.min(sd)))))
    spacing = float(np.max(half)) / int(np.clip(wanted, least_points // 2, most_points // 2))
    reach = np.ceil(half / spacing - 1e-9).astype(np.int64)
    return Points(centre=(low + high) / 2.0, spacing=spacing, reach=reach)


def smoothed_at(
    mean: Floats, precision: Floats, prior: LocationPrior, ends: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Return means and variances of positions at some steps between ends of log s."""
    # The widest steps of the rule have next to no weight.
    low, high = ends[0], ends[1] - 0.3 * (ends[1] - ends[0])
    smooth = approximated(mean, precision, prior, np.exp(np.linspace(low, high, 3)))
    return smooth.mean, smooth.variance


def narrowest(mean: Floats, precision: Floats, prior: LocationPrior, log_step: float) -> float:
    """Return about the least standard deviation of a position at a step."""
    at_step = approximated(mean, precision, prior, np.exp([log_step]))
    return float(np.sqrt(np.min(at_step.variance)))


def least_step(points: Points, n_times: int) -> float:
    """Return a step that moves a series over its length by next to nothing."""
    return float(_IMMATERIAL * points.spacing / np.sqrt(n_times))
