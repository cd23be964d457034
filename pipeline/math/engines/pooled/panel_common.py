r"""The walk that all series of a panel have in common, given what they say of it.

Model. With :math:`\gamma_a = 0` at the time a (``panel``), steps both ways from there,

.. math::
    \gamma_t - \gamma_{t-1} \sim (1 - \pi) \, \mathrm{Normal}(0, g^2)
    + \pi \, \mathrm{Normal}(0, g^2 + 2), \qquad g \sim \mathrm{HalfNormal}(\kappa), \qquad (1)

    \log p(y \mid \gamma) \approx h' \gamma - \tfrac 1 2 \gamma' H \gamma + \text{constant}. \qquad (2)

Method. g is summed over evenly spaced logarithms; given g and which steps are jumps (``jump_sets``) all is
normal. With :math:`\gamma = V e` and :math:`V' H V = Q \Lambda Q'`, of steps e that are no jumps

.. math:: \operatorname{Cov} e = Q \frac{g^2}{1 + g^2 \Lambda} Q', \qquad
    A = Q \frac{\Lambda}{1 + g^2 \Lambda} Q', \qquad r = Q \frac 1 {1 + g^2 \Lambda} Q' V' h \qquad (3)

for every g, with V' S V and V' u of ``jump_sets`` in A and r. Of jumps w at columns J of the identity,

.. math:: \operatorname{Cov} w = (1 / \upsilon + A_{JJ})^{-1}, \qquad
    \operatorname{E} w = \operatorname{Cov}(w) \, r_J, \qquad
    e = e_0 + (I - \operatorname{Cov}(e) V' H V) J w. \qquad (4)

Of what is asked the mixture's mean and covariance are given, draws are of the mixture.

Symbols: g: ``step``; :math:`\kappa`: ``scale``; a: ``anchor``; :math:`\pi`: ``jumps``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.jump_sets import JUMP_VARIANCE, sets_of_steps

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
        n_steps = moves.shape[1]
        values, axes = np.linalg.eigh(moves.T @ precision @ moves)
        values, told = np.maximum(values, 0.0), axes.T @ (moves.T @ linear)
        log_step = np.log(_STEPS * self.scale)
        log_weights, chosen_at, step_at = [], [], []
        for each in log_step.tolist():
            step = float(np.exp(each))
            shrunk = 1.0 / (1.0 + step**2 * values)
            # (3), and the integral over steps that are no jumps.
            sets = sets_of_steps((axes * values * shrunk) @ axes.T, axes @ (shrunk * told), self.jumps)
            log_prior = each - 0.5 * (step / self.scale) ** 2 + n_steps * float(np.log1p(-self.jumps))
            log_none = 0.5 * float(np.sum(step**2 * shrunk * told**2 + np.log(shrunk)))
            log_weights += [log_prior + log_none + odds for odds in sets.log_weight.tolist()]
            chosen_at += list(sets.sets)
            step_at += [step] * len(sets.sets)
        log_weight = np.array(log_weights)
        total = float(np.logaddexp.reduce(log_weight))
        weight = np.exp(log_weight - total)
        kept = np.flatnonzero(weight > _NEGLIGIBLE * np.max(weight)).tolist()
        means, covariances = [], []
        for number in kept:
            variance = step_at[number] ** 2
            shrunk = 1.0 / (1.0 + variance * values)
            root = moves @ (axes * np.sqrt(variance * shrunk))
            mean, covariance = moves @ (axes @ (variance * shrunk * told)), root @ root.T
            columns = axes[list(chosen_at[number])].T
            if columns.shape[1]:
                # (4).
                of_jumps = np.linalg.inv(
                    np.eye(columns.shape[1]) / JUMP_VARIANCE
                    + columns.T @ ((values * shrunk)[:, None] * columns)
                )
                moved = moves @ (axes @ (shrunk[:, None] * columns))
                mean = mean + moved @ (of_jumps @ (columns.T @ (shrunk * told)))
                covariance = covariance + moved @ of_jumps @ moved.T
            means.append(mean)
            covariances.append(covariance)
        jumped = np.zeros(self.n_times)
        for number in kept:
            jumped[[place + 1 for place in chosen_at[number]]] += weight[number]
        spacing = float(log_step[1] - log_step[0])
        return CommonPosterior(
            step=np.array([step_at[number] for number in kept]),
            weight=weight[kept] / np.sum(weight[kept]),
            means=np.array(means),
            covariances=np.array(covariances),
            jumped=np.clip(jumped / float(np.sum(weight[kept])), 0.0, 1.0),
            log_integral=total + float(np.log(spacing)),
        )
