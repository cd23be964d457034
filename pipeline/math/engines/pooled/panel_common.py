r"""The walk that all series of a panel have in common, given what they say of it.

Model. With :math:`\gamma_a = 0` at the time a (``panel``), steps both ways from there,

.. math::
    \gamma_t - \gamma_{t-1} \sim (1 - \pi) \, \mathrm{Normal}(0, g^2)
    + \pi \, \mathrm{Normal}(0, g^2 + 2), \qquad g \sim \mathrm{HalfNormal}(\kappa), \qquad (1)

    \log p(y \mid \gamma) \approx h' \gamma - \tfrac 1 2 \gamma' H \gamma + \text{constant}. \qquad (2)

Method. g is summed over evenly spaced logarithms; given g and which steps are jumps (``jump_sets``) all is
normal. Of what is asked the mixture's mean and covariance are given, draws are of the mixture.

Symbols: g: ``step``; :math:`\kappa`: ``scale``; a: ``anchor``; :math:`\pi`: ``jumps``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.jump_sets import JUMP_VARIANCE, jump_sets

if TYPE_CHECKING:
    from suffice.typing import Floats

_STEPS = np.exp(np.linspace(np.log(0.004), np.log(5.0), 25))
"""Of scales of the hyperprior."""
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonPosterior:
    """What is known of gamma.

    Attributes
    ----------
    step, weight : ndarray of shape (n_parts,), float64
        g of each part of the mixture, and how probable it is.
    means : ndarray of shape (n_parts, n_times), float64
    covariances : ndarray of shape (n_parts, n_times, n_times), float64
    jumped : ndarray of shape (n_times,), float64
        How probable it is that a jump leads to each time.
    log_integral : float
        Of exp of (2) less its constant, under (1).
    """

    step: Floats
    weight: Floats
    means: Floats
    covariances: Floats
    jumped: Floats
    log_integral: float

    @property
    def mean(self) -> Floats:
        """Of gamma, (n_times,)."""
        return np.asarray(self.weight @ self.means)

    @property
    def covariance(self) -> Floats:
        """Of gamma, (n_times, n_times)."""
        gap = self.means - self.mean
        within = np.einsum("p,pij->ij", self.weight, self.covariances)
        return np.asarray(within + np.einsum("p,pi,pj->ij", self.weight, gap, gap))

    def drawn(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draw paths, (draws, n_times)."""
        parts = rng.choice(len(self.weight), draws, p=self.weight)
        normal = rng.standard_normal((draws, self.means.shape[1]))
        result = np.empty_like(normal)
        for part in np.unique(parts).tolist():
            rows = parts == part
            values, axes = np.linalg.eigh(self.covariances[part])
            root = axes * np.sqrt(np.maximum(values, 0.0))
            result[rows] = self.means[part] + normal[rows] @ root.T
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonWalk:
    """The law (1).

    Attributes
    ----------
    n_times, anchor : int
    scale : float
        Of the half-normal hyperprior of g.
    jumps : float
        The share of steps that are jumps, in 0..1.
    """

    n_times: int
    anchor: int
    scale: float
    jumps: float

    @property
    def moves(self) -> Floats:
        """What each step adds to each time, (n_times, n_times - 1)."""
        time, step = np.arange(self.n_times)[:, None], np.arange(self.n_times - 1)
        after = (step >= self.anchor) & (step < time)
        before = (step < self.anchor) & (step >= time)
        return np.asarray(after.astype(np.float64) - before)

    def posterior(self, precision: Floats, linear: Floats) -> CommonPosterior:
        """Return what is known of gamma by H and h of (2)."""
        moves = self.moves
        of_steps, n_steps = moves @ moves.T, moves.shape[1]
        log_step = np.log(_STEPS * self.scale)
        parts: list[tuple[float, float, Floats, Floats, tuple[int, ...]]] = []
        for each in log_step.tolist():
            step = float(np.exp(each))
            log_prior = each - 0.5 * (step / self.scale) ** 2 + n_steps * float(np.log1p(-self.jumps))
            sets = jump_sets(step**2 * of_steps, precision, linear, moves, self.jumps)
            for chosen, odds in zip(sets.sets, sets.log_weight.tolist(), strict=True):
                added = moves[:, list(chosen)]
                prior = step**2 * of_steps + JUMP_VARIANCE * added @ added.T
                matrix = np.eye(self.n_times) + prior @ precision
                covariance = np.linalg.solve(matrix, prior)
                covariance = (covariance + covariance.T) / 2.0
                if not chosen:
                    mean_none = covariance @ linear
                    log_none = 0.5 * float(linear @ mean_none) - 0.5 * float(np.linalg.slogdet(matrix)[1])
                log_weight = log_prior + log_none + odds
                parts.append((log_weight, step, covariance @ linear, covariance, chosen))
        log_weight = np.array([part[0] for part in parts])
        total = float(np.logaddexp.reduce(log_weight))
        weight = np.exp(log_weight - total)
        kept = np.flatnonzero(weight > _NEGLIGIBLE * np.max(weight)).tolist()
        jumped = np.zeros(self.n_times)
        for number in kept:
            jumped[[step + 1 for step in parts[number][4]]] += weight[number]
        spacing = float(log_step[1] - log_step[0])
        return CommonPosterior(
            step=np.array([parts[number][1] for number in kept]),
            weight=weight[kept] / np.sum(weight[kept]),
            means=np.array([parts[number][2] for number in kept]),
            covariances=np.array([parts[number][3] for number in kept]),
            jumped=np.clip(jumped / float(np.sum(weight[kept])), 0.0, 1.0),
            log_integral=total + float(np.log(spacing)),
        )
