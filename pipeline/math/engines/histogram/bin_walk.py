r"""A walk over ordered bins with a state of no records: exact recursions on a grid, and joint draws.

Model. The log intensity x of a bin, per unit of its width, is on a grid, or the bin has no records:

.. math::
    x_j - x_{j-1} \sim (1 - w) \, \mathrm{Normal}(0, s^2) + w \, \mathrm{Laplace}(0, 1.5). \qquad (1)

With the chance 1 - r the walk enters the state of no records, and leaves it with the same chance, to anywhere
on the grid; the first bin has either with the chance a half. There are five kinds of columns, pairs of w and
r: smooth ones and uneven ones (w .05 or .2), each with a tail of scattered records or one of none (r .98 or
.998), and heaped ones (w and r .5), where most records are in a few bins and next to none between these.
Every combination of a step s and a kind is as probable as the others beforehand.

Method. A grid point stands for the interval of the width h about it. The walk goes from interval to interval
by (1) between their middles, and what leaves the grid is spread over it; steps narrower than .75 h stay or
go to a neighbour, such that their variance is :math:`s^2`. With T of all states and :math:`L_j` the emission,

.. math::
    \alpha_j \propto (\alpha_{j-1} T) L_j, \qquad \beta_{j-1} \propto T (L_j \beta_j), \qquad
    p(x_j \mid y, s) \propto \alpha_j \beta_j, \qquad (2)

the evidence of s and the kind is the product of what :math:`\alpha_j` are divided by, and weighs them. Draws
go backward. All terms are positive, so that nothing cancels.

Symbols: L: ``emission``, (n_cells, n_bins, n_states), no records last; T: ``kernels``, (n_kernels, n_states,
n_states), one for every s and kind; :math:`\alpha`: ``forward``, (n_kernels, n_bins, n_cells, n_states);
s: ``STEPS``; w and r: ``KINDS``; h: ``spacing``.

References
----------
Rabiner. A tutorial on hidden Markov models. Proc. IEEE 77, 1989.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from suffice.typing import Floats

States: TypeAlias = NDArray[np.int16]
"""Numbers of grid points; the number of points for no records."""

STEPS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Standard deviations of a step of the log intensity; each has the same prior probability."""
JUMP_SCALE = 1.5
"""Of the Laplace law of jumps: spikes and heaping."""
KINDS = ((0.05, 0.98), (0.05, 0.998), (0.2, 0.98), (0.2, 0.998), (0.5, 0.5))
"""Of columns: the share of steps that are jumps, and the chance that a bin has no records where the one
before has none, and that it has where that has."""
_NARROW = 0.75
_FLOOR = 1e-300


def kernel(step: float, spacing: float, n_points: int, *, jumps: float = KINDS[0][0]) -> Floats:
    """Return (1) between grid points, rows to columns; each row adds up to 1."""
    gap = np.abs(np.arange(n_points)[:, None] - np.arange(n_points))
    ratio = step / spacing
    if ratio < _NARROW:
        normal = np.where(gap == 0, 1.0 - ratio**2, np.where(gap == 1, 0.5 * ratio**2, 0.0))
    else:
        normal = np.exp(-0.5 * (gap / ratio) ** 2)
    jump = np.exp(-gap * spacing / JUMP_SCALE)
    normal /= np.sum(normal, axis=1, keepdims=True)
    jump /= np.sum(jump, axis=1, keepdims=True)
    mixed: Floats = (1.0 - jumps) * normal + jumps * jump
    return mixed


def transition(
    step: float, spacing: float, n_points: int, *, stay: float = KINDS[0][1], jumps: float = KINDS[0][0]
) -> Floats:
    """Return T of (2): the grid's points, then the state of no records."""
    result = np.empty((n_points + 1, n_points + 1))
    result[:-1, :-1] = stay * kernel(step, spacing, n_points, jumps=jumps)
    result[:-1, -1] = 1.0 - stay
    result[-1, :-1] = (1.0 - stay) / n_points
    result[-1, -1] = stay
    return result


def transitions(steps: tuple[float, ...], spacing: float, n_points: int) -> Floats:
    """Return T of every kind and step, in this order, (n_kernels, ...)."""
    return np.stack(
        [
            transition(step, spacing, n_points, stay=stay, jumps=jumps)
            for (jumps, stay), step in itertools.product(KINDS, steps)
        ]
    )


def first_state(n_points: int) -> Floats:
    """Return the law of the first bin's state, and of an atom's, (n_points + 1,)."""
    return np.append(np.full(n_points, 0.5 / n_points), 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Walks of a batch of cells given what was released; made by ``Filtered.of``.

    Attributes
    ----------
    emission : ndarray of shape (n_cells, n_bins, n_states), float64
        Up to a constant of every cell and bin.
    kernels : ndarray of shape (n_kernels, n_states, n_states), float64
    forward : ndarray of shape (n_kernels, n_bins, n_cells, n_states), float64
    log_evidence : ndarray of shape (n_kernels, n_cells), float64
        Of every kernel, with the emission's constants left out.
    """

    emission: Floats
    kernels: Floats
    forward: Floats
    log_evidence: Floats

    @classmethod
    def of(cls, emission: Floats, kernels: Floats) -> Self:
        """Run forward with every kernel."""
        n_cells, n_bins, n_states = emission.shape
        forward = np.empty((len(kernels), n_bins, n_cells, n_states))
        log_evidence = np.zeros((len(kernels), n_cells))
        for number, matrix in enumerate(kernels):
            alpha = forward[number]
            expected = np.broadcast_to(first_state(n_states - 1), (n_cells, n_states))
            for position in range(n_bins):
                np.multiply(expected, emission[:, position], out=alpha[position])
                mass = np.maximum(np.sum(alpha[position], axis=1), _FLOOR)
                alpha[position] /= mass[:, None]
                log_evidence[number] += np.log(mass)
                expected = alpha[position] @ matrix
        return cls(emission=emission, kernels=kernels, forward=forward, log_evidence=log_evidence)

    @property
    def weight(self) -> Floats:
        """The posterior probability of every kernel, (n_kernels, n_cells)."""
        weight = np.exp(self.log_evidence - np.max(self.log_evidence, axis=0))
        return np.asarray(weight / np.sum(weight, axis=0))

    def marginals(self) -> Floats:
        """Return the posterior of every bin's state over all kernels, (n_cells, n_bins, n_states)."""
        n_cells, n_bins, n_states = self.emission.shape
        result = np.zeros((n_cells, n_bins, n_states))
        for alpha, matrix, weight in zip(self.forward, self.kernels, self.weight, strict=True):
            backward = np.ones((n_cells, n_states))
            for position in reversed(range(n_bins)):
                both = alpha[position] * backward
                both *= (weight / np.maximum(np.sum(both, axis=1), _FLOOR))[:, None]
                result[:, position] += both
                backward = (self.emission[:, position] * backward) @ matrix.T
                backward /= np.maximum(np.max(backward, axis=1, keepdims=True), _FLOOR)
        return result

    def drawn(self, draws: int, rng: np.random.Generator) -> States:
        """Draw states of all bins jointly, (draws, n_cells, n_bins)."""
        n_cells, n_bins = self.emission.shape[:2]
        result = np.empty((draws, n_cells, n_bins), dtype=np.int16)
        for cell, weight in enumerate(self.weight.T):
            first = 0
            for number, count in enumerate(rng.multinomial(draws, weight / np.sum(weight))):
                if count and n_bins:
                    paths = self._backward(number, cell, int(count), rng)
                    result[first : first + count, cell] = paths
                    first += count
        # Paths of one kernel stand together: their order is to say nothing.
        return _shuffled(result, rng)

    def _backward(self, number: int, cell: int, count: int, rng: np.random.Generator) -> States:
        """Draw paths of one cell and kernel, (count, n_bins)."""
        alpha, matrix = self.forward[number, :, cell], self.kernels[number]
        n_bins, n_states = alpha.shape
        paths = np.empty((count, n_bins), dtype=np.int16)
        ends = np.cumsum(alpha[-1])
        paths[:, -1] = np.searchsorted(ends, rng.random(count) * ends[-1], side="right")
        uniform = rng.random((n_bins - 1, count)) * (1.0 - 2.0**-40)
        for position in reversed(range(n_bins - 1)):
            after, row = np.unique(paths[:, position + 1], return_inverse=True)
            # One distribution function for every state that is gone to, all on one line.
            ends = np.cumsum(alpha[position] * matrix.T[after], axis=1)
            ends /= ends[:, -1:]
            ends += np.arange(len(after))[:, None]
            taken = np.searchsorted(ends.ravel(), row + uniform[position], side="right")
            paths[:, position] = np.minimum(taken - row * n_states, n_states - 1)
        return paths


def _shuffled(paths: States, rng: np.random.Generator) -> States:
    """Return the draws of every cell in an order of their own."""
    order = np.argsort(rng.random(paths.shape[:2]), axis=0)
    shuffled: States = np.take_along_axis(paths, order[:, :, None], axis=0)
    return shuffled
