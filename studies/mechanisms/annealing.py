r"""Private annealed importance sampling (Foulds and others 2016, C.2), with its costs on a grid.

Levels :math:`\epsilon_0 > \epsilon_1 > \dots > \epsilon_n \ge 0` give :math:`f_j(\theta) = \pi(\theta)
L(\theta)^{\beta_j}`, :math:`\beta_j = \epsilon_j / (2 \Delta)`; Delta is the largest change of the log
likelihood between neighbours. A path starts with a draw of :math:`f_n` and goes on with Gibbs updates for
:math:`f_{n-1}, \dots, f_1`. Of a single variable an update is an exact draw, so the path of one chain
costs :math:`\epsilon_1 + \dots + \epsilon_n`. With its states :math:`\theta_n, \dots, \theta_1` public,
its log weight

.. math:: \log w = \sum_{j=1}^{n} (\beta_{j-1} - \beta_j) \log L(\theta_j)

changes by at most :math:`(\epsilon_0 - \epsilon_n) / 2` between neighbours, and by that where all states
are at the end of the grid that changes most. Two ways to use weights: *Laplace* noise of scale :math:`R
(\epsilon_0 - \epsilon_n) / (2 \epsilon_w)` on the log weights of R chains costs :math:`\epsilon_w`; *one
index*, drawn with chances proportional to weights, is an exponential mechanism and costs
:math:`\epsilon_0 - \epsilon_n`, with no noise. The paper's way, Laplace noise of scale :math:`2 /
\epsilon_w` on weights that add up to 1, drowns them.

``annealing_cost`` enumerates data sets of ones and zeros, neighbours that replace a record, and all paths.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from studies.mechanisms.not_a_release import NotARelease, check_positive
from studies.mechanisms.posterior_sampling import change_bound
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnealingCost(NotARelease):
    """Prices of annealing, and the largest losses that were enumerated.

    Attributes
    ----------
    path, path_loss : float
        epsilon_1 + ... + epsilon_n, and the largest log ratio of the chances of a path.
    weight_change, weight_change_found : float
        (epsilon_0 - epsilon_n) / 2, and the largest change of a log weight.
    index, index_loss : float
        epsilon_0 - epsilon_n, and the largest log ratio of the chances of one of two chains.
    """

    path: float
    path_loss: float
    weight_change: float
    weight_change_found: float
    index: float
    index_loss: float

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is paid twice."""
        return ("a path and its weight, or its index, are both paid for; so is each further chain",)

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row for each thing that is published."""
        return {
            "published": np.array(["path", "log weight given the path", "index given two paths"]),
            "price": np.array([self.path, self.weight_change, self.index]),
            "found": np.array([self.path_loss, self.weight_change_found, self.index_loss]),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnealedChains(NotARelease):
    """Paths of chains with noisy log weights, and one index drawn by exact ones; either is paid for.

    Attributes
    ----------
    states : ndarray of shape (n_chains, n_levels - 1), float64
        Points of the grid, from the flattest level on.
    noisy_log_weights : ndarray of shape (n_chains,), float64
        With Laplace noise for ``weights_epsilon``, of floats: not private by any theorem.
    index : int
        Of a chain, drawn with chances proportional to exact weights.
    paths_epsilon, weights_epsilon, index_epsilon : float
        What all paths cost; what the noisy weights cost beside them; what the index costs beside them.
    """

    states: Floats
    noisy_log_weights: Floats
    index: int
    paths_epsilon: float
    weights_epsilon: float
    index_epsilon: float

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is paid."""
        return (
            f"paths: epsilon {self.paths_epsilon:.6g}",
            f"noisy weights: {self.weights_epsilon:.6g} more; the index: {self.index_epsilon:.6g} more",
        )

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row for each chain: its last state, its noisy log weight, and whether its index was drawn."""
        drawn = np.arange(len(self.states)) == self.index
        return {
            "last_state": self.states[:, -1],
            "noisy_log_weight": self.noisy_log_weights,
            "is_drawn": drawn.astype(np.int64),
        }


def log_weights(log_likelihood: Floats, powers: Floats) -> Floats:
    """Return the log weights of paths.

    Parameters
    ----------
    log_likelihood : ndarray of shape (..., n), float64
        Of the states theta_n, ..., theta_1.
    powers : ndarray of shape (n + 1,), float64
        beta_n, ..., beta_0, ascending.

    Returns
    -------
    ndarray of shape (...), float64
    """
    weights: Floats = log_likelihood @ np.diff(powers)
    return weights


def annealing_cost(
    epsilons: Sequence[float], *, least: float = 0.1, n_points: int = 9, most_records: int = 12
) -> AnnealingCost:
    """Return prices and enumerated losses for a flat prior on a grid of chances.

    Parameters
    ----------
    epsilons : sequence of float
        epsilon_n, ..., epsilon_0: ascending, the first at least 0. A handful of levels: paths are enumerated.
    least : float
        Ends of the grid are `least` and 1 - `least`; Delta is log((1 - least) / least).
    n_points : int, >= 2
    most_records : int, >= 1
    """
    powers = _powers(epsilons, least)
    grid = np.linspace(least, 1.0 - least, n_points)
    paths = np.array(list(itertools.product(range(n_points), repeat=len(powers) - 1)))
    path_loss = weight_change = index_loss = 0.0
    for n_records in range(1, most_records + 1):
        ones = np.arange(n_records + 1.0)[:, None]
        likelihood = ones * np.log(grid) + (n_records - ones) * np.log1p(-grid)
        # Draws of levels know nothing of each other: the worst path is the worst draw of each.
        changes = [np.diff(_log_chances(power * likelihood), axis=0) for power in powers[:-1]]
        highest = sum(change.max(axis=1) for change in changes)
        lowest = sum(change.min(axis=1) for change in changes)
        path_loss = max(path_loss, float(np.max(highest)), float(-np.min(lowest)))
        weights = log_weights(likelihood[:, paths], powers)
        weight_change = max(weight_change, float(np.abs(np.diff(weights, axis=0)).max()))
        for here, there in itertools.pairwise(weights):
            index_loss = max(index_loss, _index_loss(here, there))
    return AnnealingCost(
        path=float(sum(epsilons[:-1])),
        path_loss=path_loss,
        weight_change=(epsilons[-1] - epsilons[0]) / 2.0,
        weight_change_found=weight_change,
        index=epsilons[-1] - epsilons[0],
        index_loss=index_loss,
    )


def anneal(
    ones: int,
    zeros: int,
    epsilons: Sequence[float],
    *,
    n_chains: int,
    weights_epsilon: float,
    least: float = 0.1,
    n_points: int = 81,
    rng: np.random.Generator,
) -> AnnealedChains:
    """Draw chains from a flat prior on a grid of chances to its posterior at power beta_0.

    Law and costs are those of the module; the weighted states, and the state of the drawn index, have the law
    of :math:`f_0` in the limit of many chains.

    Parameters
    ----------
    ones, zeros : int, >= 0
    epsilons, least, n_points
        As in ``annealing_cost``.
    n_chains : int, >= 1
    weights_epsilon : float, > 0
        For the noise of the log weights.
    rng : numpy.random.Generator
    """
    check_positive(weights_epsilon=weights_epsilon)
    if n_chains < 1:
        raise UsageError("n_chains must be at least 1")
    powers = _powers(epsilons, least)
    grid = np.linspace(least, 1.0 - least, n_points)
    likelihood = ones * np.log(grid) + zeros * np.log1p(-grid)
    chances = [np.exp(_log_chances(power * likelihood)) for power in powers[:-1]]
    paths = np.stack([rng.choice(n_points, size=n_chains, p=each) for each in chances], axis=-1)
    weights = log_weights(likelihood[paths], powers)
    rise = epsilons[-1] - epsilons[0]
    noise = rng.laplace(scale=n_chains * rise / (2.0 * weights_epsilon), size=n_chains)
    return AnnealedChains(
        states=grid[paths],
        noisy_log_weights=weights + noise,
        index=int(rng.choice(n_chains, p=np.exp(_log_chances(weights)))),
        paths_epsilon=n_chains * float(sum(epsilons[:-1])),
        weights_epsilon=weights_epsilon,
        index_epsilon=rise,
    )


def _powers(epsilons: Sequence[float], least: float) -> Floats:
    levels = np.array(epsilons, dtype=np.float64)
    if levels.size < 2 or not (np.isfinite(levels).all() and levels[0] >= 0 and (np.diff(levels) > 0).all()):
        raise UsageError("epsilons must be two levels or more, ascending, the first at least 0")
    powers: Floats = levels / (2.0 * change_bound(least))
    return powers


def _log_chances(scores: Floats) -> Floats:
    """Return scores less the log of the sum of their exponentials, along the last axis."""
    highest = scores.max(axis=-1, keepdims=True)
    chances: Floats = scores - highest - np.log(np.exp(scores - highest).sum(axis=-1, keepdims=True))
    return chances


def _index_loss(here: Floats, there: Floats) -> float:
    """Return the largest log ratio of the chance of the first of two chains, over all pairs of paths."""
    first, second = (np.logaddexp(0.0, each[None, :] - each[:, None]) for each in (here, there))
    return float(np.abs(first - second).max())
