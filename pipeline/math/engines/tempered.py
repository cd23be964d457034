r"""Tempered sequential Monte Carlo: from draws of a reference to those of a density far narrower than it.

Model. With draws x of a reference density :math:`\rho`, standard normal numbers z beside them, a weight w,

.. math:: \pi_t(x, z) \propto \rho(x) \, \phi(z) \, w(x, z)^t, \qquad 0 = t_0 < t_1 < \dots < 1. \qquad (1)

From each temperature to the next particles are weighted by :math:`w^{t_{k+1} - t_k}`, resampled, and moved by
Metropolis steps that leave (1) as it is: x by a normal step of the particles' own covariance, and

.. math:: z' = \sqrt{1 - h^2} \, z + h \, \epsilon, \qquad
    a = \min\Bigl(1, \frac{\rho(x')}{\rho(x)} \frac{w(x', z')^t}{w(x, z)^t}\Bigr). \qquad (2)

The next temperature is the one at which half of the particles count. The evidence's ratio to the reference's
is the product of average weights. The particles are sixteen islands that are resampled and moved apart:
how far their means differ tells the error,

.. math:: n_{\text{eff}} = \mathrm{Var}(\theta) / (\mathrm{Var}(\text{means of islands}) / 16). \qquad (3)

Symbols:

- x: ``position``, (d, n); z: ``normal``, (q, n); n: islands, one after the other, of the same size
- log rho and log w: ``log_reference`` and ``log_weight``, both by ``evaluate``

Method. 20 steps at each temperature and 240 at the last, of three lengths, which are fitted to accept a
quarter. (3) errs by a third, as 15 degrees of freedom do.

References
----------
Del Moral, Doucet, Jasra. Sequential Monte Carlo samplers. JRSS B 68(3), 2006. Cotter, Roberts, Stuart, White.
MCMC methods for functions. Statistical Science 28(3), 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.reweighted import resampled

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Cells, Floats

    Evaluate: TypeAlias = Callable[[Floats, Floats], tuple[Floats, Floats]]

ISLANDS = 16
_STEPS, _LAST = 10, 120
_MOST_TEMPERATURES = 60
_COUNTING = 0.5
_LENGTHS = (1.0, 0.5, 0.2)
_LEAPS = 6
_ACCEPTED = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Particles:
    """Particles of (1), with the logs of both densities.

    Attributes
    ----------
    position, normal : ndarray of shape (d, n) and (q, n), float64
    log_reference, log_weight : ndarray of shape (n,), float64
    log_evidence : float
        Log of the evidence over the reference's.
    temperatures : int
        How many there were.
    """

    position: Floats
    normal: Floats
    log_reference: Floats
    log_weight: Floats
    log_evidence: float = 0.0
    temperatures: int = 0

    def take(self, chosen: Cells) -> Particles:
        """Return some particles, by place."""
        return replace(
            self,
            position=self.position[:, chosen],
            normal=self.normal[:, chosen],
            log_reference=self.log_reference[chosen],
            log_weight=self.log_weight[chosen],
        )


def tempered(
    position: Floats,
    size: int,
    evaluate: Evaluate,
    slope: Callable[[Floats], Floats],
    rng: np.random.Generator,
) -> Particles | None:
    """Return particles of the density at t = 1; None where they would not get there.

    Parameters
    ----------
    position : ndarray of shape (d, n), float64
        Draws of the reference, n a multiple of 16.
    size : int
        q, how many standard normal numbers stand beside each.
    evaluate : callable
        Positions (d, n) and normal numbers (q, n) -> log rho, up to a constant, and log w, (n,) each.
    rng : numpy.random.Generator
    """
    normal = rng.standard_normal((size, position.shape[1]))
    reference, weight = evaluate(position, normal)
    particles = Particles(position=position, normal=normal, log_reference=reference, log_weight=weight)
    done, lengths = 0.0, 1.0
    for _ in range(_MOST_TEMPERATURES):
        if np.max(particles.log_weight) == -np.inf:
            return None
        step = _next(particles.log_weight, 1.0 - done)
        particles = _resampled(particles, step, rng)
        done = min(1.0, done + step)
        is_last = done > 1.0 - 1e-12
        for _ in range(_LAST if is_last else _STEPS):
            particles, lengths = _moved(particles, done, lengths, evaluate, slope, rng)
        if is_last:
            return particles
    return None


def _next(log_weight: Floats, most: float) -> float:
    """Return the step of temperature after which half of the particles count, or `most`."""

    def counting(step: float) -> float:
        finite = np.isfinite(log_weight)
        power = np.exp(step * (log_weight[finite] - np.max(log_weight)))
        return float(np.sum(power) ** 2 / np.sum(power**2) / len(log_weight))

    # Those without any density are lost at the first step, however short it is.
    aim = min(_COUNTING, 0.95 * counting(0.0))
    if counting(most) >= aim:
        return most
    low, high = 0.0, most
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if counting(middle) > aim else (low, middle)
    return low


def _resampled(particles: Particles, step: float, rng: np.random.Generator) -> Particles:
    """Weigh by w^step and resample, every island for itself; one that has nothing takes of all."""
    log_power = step * particles.log_weight
    total = np.max(log_power)
    power = np.exp(log_power - total)
    each = len(power) // ISLANDS
    chosen = []
    for first in range(0, len(power), each):
        part = power[first : first + each]
        whole = part.sum() > 0.0
        weight = part / part.sum() if whole else power / power.sum()
        chosen.append(resampled(weight, each, rng) + (first if whole else 0))
    return replace(
        particles.take(np.concatenate(chosen)),
        log_evidence=particles.log_evidence + float(total + np.log(np.mean(power))),
        temperatures=particles.temperatures + 1,
    )


def _moved(
    particles: Particles,
    temperature: float,
    lengths: float,
    evaluate: Evaluate,
    slope: Callable[[Floats], Floats],
    rng: np.random.Generator,
) -> tuple[Particles, float]:
    """Move every particle by (2) once, and return the next length of steps."""
    n = particles.position.shape[1]
    spread = np.cov(particles.position)
    root = np.linalg.cholesky(spread + 1e-9 * np.diag(np.diag(spread)) + 1e-300 * np.eye(len(spread)))
    length = lengths * rng.choice(_LENGTHS, n)
    step = length / _LEAPS
    momentum = rng.standard_normal(particles.position.shape)
    before = np.sum(momentum**2, axis=0) / 2.0
    position = particles.position
    with np.errstate(all="ignore"):
        # Leapfrog along the slope of log rho alone; what it leaves out is in the ratio.
        momentum = momentum + step / 2.0 * (root.T @ slope(position))
        for leap in range(_LEAPS):
            position = position + step * (root @ momentum)
            momentum = momentum + (step if leap < _LEAPS - 1 else step / 2.0) * (root.T @ slope(position))
        of_momentum = before - np.sum(momentum**2, axis=0) / 2.0
    # What has run away stays where it was.
    lost = ~(np.abs(position - particles.position) < np.inf).all(axis=0) | ~np.isfinite(of_momentum)
    position = np.where(lost, particles.position, position)
    turn = np.sin(np.minimum(length, math.pi / 2.0))
    normal = np.cos(np.minimum(length, math.pi / 2.0)) * particles.normal + turn * rng.standard_normal(
        particles.normal.shape
    )
    with np.errstate(all="ignore"):
        reference, weight = evaluate(position, normal)
        log_ratio = reference - particles.log_reference + temperature * (weight - particles.log_weight)
        log_ratio = np.where(lost, -np.inf, log_ratio + of_momentum)
    accepted = np.log(rng.random(n)) < np.where(np.isfinite(log_ratio), log_ratio, -np.inf)
    moved = replace(
        particles,
        position=np.where(accepted, position, particles.position),
        normal=np.where(accepted, normal, particles.normal),
        log_reference=np.where(accepted, reference, particles.log_reference),
        log_weight=np.where(accepted, weight, particles.log_weight),
    )
    return moved, min(lengths * math.exp(accepted.mean() - _ACCEPTED), math.pi)


def islands(values: Floats) -> tuple[float, float]:
    """Return R-hat and effective draws (3) of values (n, m), the worst of m.

    Values are ranked first: means of far tails say nothing of whether islands agree.
    """
    from scipy.stats import rankdata

    n = len(values)
    # Ties, as of values with point masses, have one rank.
    ranks = rankdata(values, axis=0) / n
    apart = ranks.reshape(ISLANDS, n // ISLANDS, -1)
    between = apart.mean(axis=1).var(axis=0, ddof=1)
    within = apart.var(axis=1, ddof=1).mean(axis=0)
    r_hat = np.sqrt(1.0 + between / np.maximum(within, 1e-300))
    effective = np.minimum(n, (within + between) / np.maximum(between / ISLANDS, 1e-300))
    return float(r_hat.max()), float(effective.min())
