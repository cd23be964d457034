r"""Which steps of a normal path are jumps: sets of them, followed from none while they are probable.

Model. A path x = V e of independent steps, each a jump with the chance :math:`\pi`,

.. math:: e_k \sim (1 - \pi) \, \mathrm{Normal}(0, s^2) + \pi \, \mathrm{Normal}(0, s^2 + \varsigma^2), \qquad
    \log p(y \mid x) = h' x - \tfrac 1 2 x' H x. \qquad (1)

The variance of a jump is that of Laplace(0, 1), :math:`\varsigma^2 = 2`. Given the set A of jumps all is
normal, so that a jump in doubt is a mixture, not a wide normal law: where cells leave open whether there is
one, or where, positions have as many modes.

Method. With :math:`S = H - H C H` and :math:`u = h - H C h`, C the posterior covariance given a set, one more
jump, with the column v of V, changes the evidence and S and u by

.. math::
    \log \frac{p(y \mid A, k)}{p(y \mid A)} = \frac{\varsigma^2 r^2}{2 d} - \tfrac 1 2 \log d, \qquad
    S \to S - \frac{\varsigma^2} d S v v' S, \qquad u \to u - \frac{\varsigma^2 r} d S v, \qquad (2)

q = v' S v, r = v' u, d = 1 + :math:`\varsigma^2` q. Sets grow by one step from those that are kept: the ones
that are at least ``_NEGLIGIBLE`` as probable as the best, of at most ``_MOST_JUMPS`` jumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats

JUMP_VARIANCE = 2.0
"""That of Laplace(0, 1)."""
_NEGLIGIBLE = 2e-3
_MOST_JUMPS, _MOST_SETS = 6, 40


@dataclass(frozen=True, slots=True)
class JumpSets:
    """Sets of steps that may be jumps, none first, and log weights: prior odds times evidence."""

    sets: tuple[tuple[int, ...], ...]
    log_weight: Floats

    @property
    def share(self) -> Floats:
        """How probable each set is, of all that are kept."""
        weight = np.exp(self.log_weight - np.max(self.log_weight))
        return np.asarray(weight / np.sum(weight))


NO_JUMPS = JumpSets(sets=((),), log_weight=np.zeros(1))


def jump_sets(
    covariance: Floats,
    precision: Floats,
    linear: Floats,
    steps: Floats,
    share: float,
    negligible: float = _NEGLIGIBLE,
) -> JumpSets:
    """Return sets of jumps of (1), weighed against none.

    Parameters
    ----------
    covariance : ndarray of shape (n, n), float64
        Of the path without jumps.
    precision, linear : ndarray of shape (n, n) and (n,), float64
        H and h of (1).
    steps : ndarray of shape (n, n_steps), float64
        V.
    share : float
        The chance of a jump, in 0..1; at 0 there are none.
    negligible : float
        Of the best set: less probable ones are left out.
    """
    if not share or not steps.shape[1]:
        return NO_JUMPS
    gain = np.linalg.solve(np.eye(len(linear)) + covariance @ precision, covariance)
    s = precision - precision @ gain @ precision
    u = linear - precision @ (gain @ linear)
    return sets_of_steps(steps.T @ s @ steps, u @ steps, share, negligible)


def sets_of_steps(told: Floats, moved: Floats, share: float, negligible: float = _NEGLIGIBLE) -> JumpSets:
    """Return sets of jumps by what is said of steps where none is a jump.

    Parameters
    ----------
    told : ndarray of shape (n_steps, n_steps), float64
        V' S V.
    moved : ndarray of shape (n_steps,), float64
        V' u.
    share, negligible : float
        As of ``jump_sets``.
    """
    if not share or not len(moved):
        return NO_JUMPS
    log_odds = float(np.log(share) - np.log1p(-share))
    known: dict[tuple[int, ...], float] = {(): 0.0}
    frontier: list[tuple[tuple[int, ...], float, Floats, Floats]] = [((), 0.0, told, moved)]
    for _ in range(min(_MOST_JUMPS, len(moved))):
        best = max(known.values())
        grown: list[tuple[float, tuple[int, ...], int, int]] = []
        for place, (chosen, log_weight, a, r) in enumerate(frontier):
            # (2), of every step.
            d = 1.0 + JUMP_VARIANCE * np.maximum(np.diag(a), 0.0)
            weights = log_weight + log_odds + 0.5 * JUMP_VARIANCE * r**2 / d - 0.5 * np.log(d)
            best = max(best, float(np.max(weights)))
            for step in np.flatnonzero(weights > best + np.log(negligible)).tolist():
                if step not in chosen:
                    larger = tuple(sorted((*chosen, step)))
                    grown.append((float(weights[step]), larger, place, step))
        next_frontier: list[tuple[tuple[int, ...], float, Floats, Floats]] = []
        for weight, larger, place, step in sorted(grown, reverse=True):
            if larger in known or weight < best + np.log(negligible) or len(known) >= _MOST_SETS:
                continue
            known[larger] = weight
            _, _, a, r = frontier[place]
            scale = JUMP_VARIANCE / (1.0 + JUMP_VARIANCE * float(a[step, step]))
            along = scale * a[step]
            next_frontier.append((larger, weight, a - np.outer(along, a[step]), r - float(r[step]) * along))
        if not next_frontier:
            break
        frontier = next_frontier
    highest = max(known.values())
    kept = [
        chosen for chosen, weight in known.items() if not chosen or weight >= highest + np.log(negligible)
    ]
    return JumpSets(sets=tuple(kept), log_weight=np.array([known[chosen] for chosen in kept]))
