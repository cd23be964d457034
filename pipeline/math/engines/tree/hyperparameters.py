r"""Points of the hyperparameters of leaves, and their weights by the evidence of the tree.

With :math:`f(x) = \log p(y \mid x) + \log p(x)` at x = (log mean, log spread), or with a third one, the logit
of the share of leaves that are empty, answers are mixtures over a lattice about the mode :math:`\hat x`,

.. math::
    x_i = \hat x + h C i, \quad i \in \mathbb Z^d, \qquad w_i \propto e^{f(x_i)}, \qquad C C' = -H^{-1},
    \qquad (1)

with H the Hessian of f. This is the trapezoidal rule: of a normal density it errs by
:math:`2 e^{-2 \pi^2 / h^2}`, and of points half of which are left out, as the squares of one colour of a
chess board are, by the square root of that. So how far the weights of both colours are from each other says
what the rule errs by: ``error`` is the square of their difference, and the weight of points left out.

The mode is found by Newton's method from the chances of the leaves' values alone, or of the tree's where
leaves were not released. From there points are added next to those that weigh at least ``_LEAST`` of the
heaviest one. Where there are too few or too many, the lattice is laid out again by their covariance.

Trees of many leaves know their hyperparameters so well that answers are nearly the same wherever in their
posterior these are. There f is of the leaves' values alone, and 2 d points are enough, those of the rule of
degree three for a normal density,

.. math::
    x = \hat x \pm \sqrt d \, C e_k, \qquad w \propto e^{f(x) + z' z / 2}, \quad z = C^{-1} (x - \hat x),
    \qquad (2)

whose weights are equal where the density is normal. ``error`` is then how uneven the weights are, times
the largest standard deviation of a hyperparameter, which is about what means move by. The levels above move
hyperparameters little: of a million leaves whose states differ the log spread by .003. But that is four of
its standard deviations there, and the tree's evidence would leave one point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.pipeline.math.engines.tree.passes import Upward
    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Floats

STEP = 1.5
"""The step h, in standard deviations: the rule errs by 3e-4."""
FINE_STEP = 1.0
"""That of trees of few leaves, whose posteriors have an edge: no spread is too small."""
FEW_LEAVES = 50
MANY_LEAVES = 2_000
"""From here on (2) is taken."""
_LEAST = 3e-3
_ROUNDS = 4
_MOST = {2: 400, 3: 1_500}
"""Points of a lattice at most, by its dimensions."""
_CURVED = 0.3
"""Step of differences, in guessed standard deviations."""


class Passes(Protocol):
    """What passes messages up a tree at a point: a ``Passer``, or one whose pieces are tasks."""

    @property
    def tree(self) -> NoisyTree:
        """The tree."""

    @property
    def population(self) -> Population:
        """Of the leaves' counts."""

    def log_evidence_of_leaves(self, point: Floats) -> float:
        """Return the log chance of the leaves' released values alone."""

    def up(self, point: Floats) -> Upward:
        """Pass messages up to the root."""

    def ups(self, points: Floats) -> tuple[Upward, ...]:
        """Pass messages up at several points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedPoints:
    """Points of the hyperparameters.

    Attributes
    ----------
    points : ndarray, shape (n_points, d)
        (log mean, log spread), and the logit of the share of empty leaves where there is one.
    weights : ndarray, shape (n_points,)
        They add up to 1.
    log_evidence : float
        The logarithm of the chance of what was released, hyperparameters integrated over.
    error : float
        What the rule errs by, as a share.
    upwards : tuple of Upward
        Messages at every point.
    """

    points: Floats
    weights: Floats
    log_evidence: float
    error: float
    upwards: tuple[Upward, ...] = field(repr=False)


def weighed_points(passer: Passes) -> WeighedPoints:
    """Weigh points of the hyperparameters of a tree's leaves."""
    if passer.population.n_hyperparameters == 0:
        upward = passer.up(np.zeros(2))
        return WeighedPoints(
            points=np.zeros((1, 2)),
            weights=np.ones(1),
            log_evidence=upward.log_evidence,
            error=0.0,
            upwards=(upward,),
        )

    def of_tree(point: Floats) -> float:
        prior = passer.population.log_hyperprior(point)
        return prior + passer.up(point).log_evidence if prior > -np.inf else -np.inf

    def of_leaves(point: Floats) -> float:
        prior = passer.population.log_hyperprior(point)
        return prior + passer.log_evidence_of_leaves(point) if prior > -np.inf else -np.inf

    is_released = passer.tree.scales[-1] is not None
    middle, factor = newton(of_leaves if is_released else of_tree, _start(passer))
    if is_released and passer.tree.n_leaves > MANY_LEAVES:
        return _few_points(passer, of_leaves, middle, factor)
    return _lattice(passer, of_tree, middle, factor)


def _few_points(
    passer: Passes, of_leaves: Callable[[Floats], float], middle: Floats, factor: Floats
) -> WeighedPoints:
    """Weigh the points of (2)."""
    d = len(middle)
    away = np.sqrt(d) * np.concatenate([np.eye(d), -np.eye(d)])
    points = middle + away @ factor.T
    upwards = passer.ups(points)
    # z' z / 2 = d / 2 at all of them.
    log_ratio = np.array([of_leaves(point) for point in points]) + 0.5 * d
    weights = np.exp(log_ratio - log_ratio.max())
    normal = (2.0 * np.pi) ** (0.5 * d) * abs(np.linalg.det(factor))
    volume = float(log_ratio.max() + np.log(weights.mean() * normal))
    weights /= weights.sum()
    # What is above the leaves, given them.
    above = np.array([upward.log_evidence for upward in upwards])
    above -= np.array([passer.log_evidence_of_leaves(point) for point in points])
    log_evidence = volume + float(above.max() + np.log(weights @ np.exp(above - above.max())))
    uneven = 2.0 * d * float((weights**2).sum()) - 1.0
    heaviest = np.argsort(-weights)
    return WeighedPoints(
        points=points[heaviest],
        weights=weights[heaviest],
        log_evidence=log_evidence,
        error=uneven * float(np.sqrt((factor**2).sum(axis=1).max())),
        upwards=tuple(upwards[place] for place in heaviest),
    )


def _lattice(
    passer: Passes, of_tree: Callable[[Floats], float], middle: Floats, factor: Floats
) -> WeighedPoints:
    """Weigh the points of (1)."""
    step = FINE_STEP if passer.tree.n_leaves <= FEW_LEAVES else STEP
    for _ in range(_ROUNDS):
        lattice = step * factor
        steps, log_density = flooded(lambda place: of_tree(middle + lattice @ place), len(middle))  # noqa: B023
        weights = np.exp(log_density - log_density.max())
        weights /= weights.sum()
        points = middle + steps @ lattice.T
        if _is_enough(1.0 / float((weights**2).sum()), step, len(middle)):
            break
        middle = weights @ points
        spread = (points - middle).T * weights @ (points - middle)
        # Of a lattice that is too wide next to nothing is left of the covariance: a part of its step is.
        factor = np.linalg.cholesky(spread + 0.09 * lattice @ lattice.T)
    kept = weights >= _LEAST * weights.max()
    is_black = steps.sum(axis=1) % 2 == 0
    error = float(weights[is_black].sum() - weights[~is_black].sum()) ** 2
    area = abs(float(np.linalg.det(lattice)))
    log_evidence = float(log_density.max() + np.log(np.exp(log_density - log_density.max()).sum() * area))
    heaviest = np.flatnonzero(kept)[np.argsort(-weights[kept])]
    return WeighedPoints(
        points=points[heaviest],
        weights=weights[heaviest] / weights[heaviest].sum(),
        log_evidence=log_evidence,
        error=error + float(weights[~kept].sum()),
        upwards=passer.ups(points[heaviest]),
    )


def _is_enough(effective: float, step: float, d: int) -> bool:
    """Tell whether the lattice fits: of a normal density (4 pi / h^2)^(d / 2) points count."""
    ideal = (4.0 * np.pi / step**2) ** (0.5 * d)
    return bool(0.5 * ideal < effective < 2.5 * ideal)


def _start(passer: Passes) -> Floats:
    """Guess the mean by the released values nearest to the leaves, a spread of 1, a fifth of leaves empty."""
    tree = passer.tree
    level = max(level for level, values in enumerate(tree.values) if values is not None)
    values = tree.values[level]
    assert values is not None  # noqa: S101  (there is such a level)
    total_size = tree.n_leaves if tree.sizes is None else float(tree.sizes.sum())
    mean = max(float(values.astype(np.float64).sum()), 1.0) / total_size
    return np.array([np.log(mean), 0.0, -1.4])[: passer.population.n_hyperparameters]


def newton(log_density: Callable[[Floats], float], start: Floats) -> tuple[Floats, Floats]:
    """Climb to a mode of d variables.

    Returns
    -------
    ndarray, shape (d,)
        The mode, about.
    ndarray, shape (d, d)
        A factor of the inverse of the negative Hessian there.
    """
    middle, factor = start, 0.3 * np.eye(len(start))
    height = log_density(middle)
    for _ in range(25):
        gradient, curvature = differences(log_density, middle, height, factor)
        values, vectors = np.linalg.eigh(curvature)
        # In units of the factor; along a direction that bends up, or hardly, go a few units.
        values = np.maximum(values, 0.05)
        move = vectors @ ((vectors.T @ gradient) / values)
        length = float(np.linalg.norm(move))
        move *= min(1.0, 4.0 / max(length, 1e-300))
        scaled = factor @ vectors / np.sqrt(values)
        while True:
            proposed = middle + factor @ move
            higher = log_density(proposed)
            if higher >= height or np.linalg.norm(move) < 1e-3:
                break
            move = move / 2.0
        if higher >= height:
            middle, height = proposed, higher
        factor = np.linalg.cholesky(scaled @ scaled.T)
        if length < 0.3 and float(values.max()) < 4.0 and float(values.min()) > 0.25:
            break
    return middle, factor


def differences(
    log_density: Callable[[Floats], float], middle: Floats, height: float, factor: Floats
) -> tuple[Floats, Floats]:
    """Return the gradient and the negative Hessian, in units of the factor, by differences."""
    h, d = _CURVED, len(middle)
    steps = h * factor.T
    up = np.array([log_density(middle + step) for step in steps])
    down = np.array([log_density(middle - step) for step in steps])
    curvature = np.diag(-(up + down - 2.0 * height) / h**2)
    for i in range(d):
        for j in range(i):
            both = log_density(middle + steps[i] + steps[j])
            neither = log_density(middle - steps[i] - steps[j])
            mixed = (both + neither - up[i] - down[i] - up[j] - down[j] + 2.0 * height) / (2.0 * h * h)
            curvature[i, j] = curvature[j, i] = -mixed
    return (up - down) / (2.0 * h), curvature


def flooded(log_density: Callable[[Floats], float], d: int) -> tuple[Floats, Floats]:
    """Evaluate places of a lattice next to all that are not far below the highest.

    Returns
    -------
    ndarray, shape (n_places, d)
        Whole numbers.
    ndarray, shape (n_places,)
    """
    start = (0,) * d
    known, fresh = {start: log_density(np.zeros(d))}, [start]
    while fresh and len(known) < _MOST[d]:
        # The highest first: from a start that is far off the way goes up.
        fresh.sort(key=known.__getitem__)
        place = fresh.pop()
        if known[place] < max(known.values()) + np.log(_LEAST):
            continue
        for axis in range(d):
            for step in (1, -1):
                neighbour = (*place[:axis], place[axis] + step, *place[axis + 1 :])
                if neighbour not in known:
                    known[neighbour] = log_density(np.array(neighbour, dtype=np.float64))
                    fresh.append(neighbour)
    return np.array(list(known), dtype=np.float64), np.array(list(known.values()))
