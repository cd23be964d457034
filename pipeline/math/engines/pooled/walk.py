r"""A random walk with jumps on evenly spaced points: exact forward and backward recursions, and joint draws.

Model. Of a series with positions :math:`x_t` and likelihoods :math:`L_t`,

.. math::
    x_t - x_{t-1} \sim (1 - \pi) \, \mathrm{Normal}(0, s^2) + \pi \, \mathrm{Laplace}(0, 1), \qquad
    x_1 \sim p. \qquad (1)

A time without a cell has the likelihood 1, so that the walk takes one step more over a gap. A process of
first order that returns to a level m has

.. math::
    x_t - m - \phi (x_{t-1} - m) \sim \text{the same law}, \qquad
    x_1 - m \sim (1 - \pi) \, \mathrm{Normal}\bigl(0, \tfrac{s^2}{1 - \phi^2}\bigr)
    + \pi \, \mathrm{Laplace}(0, 1). \qquad (2)

Method. On points that are h apart, with the matrix K of steps (``StepKernel``),

.. math::
    \alpha_t \propto (\alpha_{t-1} K) \, L_t, \qquad \beta_{t-1} \propto K (L_t \, \beta_t), \qquad
    p(x_t \mid y) \propto \alpha_t \, \beta_t, \qquad
    p(x_t \mid y_{-t}) \propto (\alpha_{t-1} K) \, \beta_t, \qquad (3)

and the evidence is the product of what :math:`\alpha_t` are divided by (Rabiner 1989). All terms are
positive, so that nothing cancels. A step that is wide on the points is a normal law on them; one narrower
than ``_NARROW`` h stays, or goes to a neighbour, such that its variance is :math:`s^2`. Beyond the points
there is nothing: the walk is one that stays among them.

Symbols: L: ``likelihood``, (n_series, n_times, n_points); :math:`\alpha`: ``filtered``; h: ``spacing``;
s: ``step``; :math:`\phi`: ``coefficient``; :math:`\pi`: ``jumps``.

References
----------
Rabiner. A tutorial on hidden Markov models. Proc. IEEE 77, 1989. Kitagawa. Non-Gaussian state-space modeling
of nonstationary time series. J. Amer. Statist. Assoc. 82, 1987.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats, Mask

JUMP_SCALE = 1.0
"""Of the Laplace law of jumps: on average a factor of e in odds or rates."""
_NARROW = 0.75
_FLOOR = 1e-300
_WIDEST = 7.0
_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKernel:
    """Probabilities of steps between points.

    Attributes
    ----------
    normal, jump : ndarray of shape (n_points, n_points), float64
        Of steps without and with a jump, from rows to columns; both with their shares.
    offset : ndarray of shape (n_offsets,), int64
        Where steps without a jump go to; empty where that depends on where they begin.
    of_offset : ndarray of shape (n_offsets,), float64
    """

    normal: Floats
    jump: Floats
    offset: Cells
    of_offset: Floats

    @classmethod
    def of(cls, step: float, spacing: float, n_points: int, jumps: float) -> Self:
        """Return the matrices of (1) on points."""
        ratio = step / spacing
        most = 1 if ratio < _NARROW else min(int(np.ceil(_WIDEST * ratio)), n_points - 1)
        offset = np.arange(-most, most + 1)
        if ratio < _NARROW:
            of_offset = np.array([0.5 * ratio**2, 1.0 - ratio**2, 0.5 * ratio**2])
        else:
            of_offset = np.exp(-0.5 * (offset / ratio) ** 2)
            of_offset /= np.sum(of_offset)
        gap = np.arange(n_points)[:, None] - np.arange(n_points)
        of_gap = np.zeros(2 * n_points - 1)
        of_gap[offset + n_points - 1] = (1.0 - jumps) * of_offset
        # Laplace's law on the points.
        decay = spacing / JUMP_SCALE
        jump = jumps * np.tanh(decay / 2.0) * np.exp(-decay * np.abs(gap))
        return cls(normal=of_gap[gap + n_points - 1], jump=jump, offset=offset, of_offset=of_offset)

    @classmethod
    def returning(cls, place: Floats, step: float, coefficient: float, jumps: float) -> Self:
        """Return the matrices of (2) on points at places from the level, which is 0.

        A step is wide on the points, ``_NARROW`` of their spacing at least.
        """
        gap = place - coefficient * place[:, None]
        normal = np.exp(-0.5 * (gap / step) ** 2)
        # What would leave the points is lost, as of a walk: sums are those of all points of the line.
        normal *= (1.0 - jumps) * (place[1] - place[0]) / (step * np.sqrt(2.0 * np.pi))
        jump = jumps * np.tanh((place[1] - place[0]) / JUMP_SCALE / 2.0) * np.exp(-np.abs(gap) / JUMP_SCALE)
        return cls(normal=normal, jump=jump, offset=np.zeros(0, dtype=np.int64), of_offset=np.zeros(0))


def filtered(likelihood: Floats, first: Floats, kernel: StepKernel) -> tuple[Floats, Floats]:
    """Return alpha of (3), (n_times, n_series, n_points), and log evidence, (n_series,)."""
    n_series, n_times, n_points = likelihood.shape
    result = np.empty((n_times, n_series, n_points))
    total = np.zeros(n_series)
    whole = kernel.normal + kernel.jump
    expected = first
    for time in range(n_times):
        np.multiply(expected, likelihood[:, time], out=result[time])
        mass = np.maximum(np.sum(result[time], axis=1), _FLOOR)
        result[time] /= mass[:, None]
        total += np.log(mass)
        if time + 1 < n_times:
            expected = result[time] @ whole
    return result, total


def log_evidence(likelihood: Floats, first: Floats, kernel: StepKernel) -> Floats:
    """Return log evidence of each series, (n_series,), as ``filtered`` does."""
    total = np.zeros(len(likelihood))
    whole = kernel.normal + kernel.jump
    expected = first
    for time in range(likelihood.shape[1]):
        here = expected * likelihood[:, time]
        mass = np.maximum(np.sum(here, axis=1), _FLOOR)
        total += np.log(mass)
        expected = (here / mass[:, None]) @ whole
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothed:
    """What (3) says of every time.

    Attributes
    ----------
    mass, of_others : ndarray of shape (n_series, n_times, n_points), float64
        Given all cells, and given all but the cell of that time; each adds up to 1.
    jumped : ndarray of shape (n_series, n_times), float64
        How probable it is that a jump lies between a cell and the one before; 0 of the first of a series.
    """

    mass: Floats
    of_others: Floats
    jumped: Floats


def smoothed(likelihood: Floats, first: Floats, kernel: StepKernel, is_seen: Mask) -> Smoothed:
    """Run (3) both ways; `is_seen` (n_series, n_times) says which times have a cell."""
    n_series, n_times, n_points = likelihood.shape
    whole = kernel.normal + kernel.jump
    # alpha_{t-1} K of every time, and the part of alpha_t without a jump since the last cell.
    expected, staying = np.empty((2, n_times, n_series, n_points))
    expected[0], staying[0] = first, 0.0
    for time in range(n_times):
        alpha = expected[time] * likelihood[:, time]
        scale = 1.0 / np.maximum(np.sum(alpha, axis=1, keepdims=True), _FLOOR)
        alpha *= scale
        staying[time] *= likelihood[:, time]
        if time + 1 < n_times:
            np.matmul(alpha, whole, out=expected[time + 1])
            # What is carried over a gap is divided by what alpha is divided by.
            here = is_seen[:, time]
            since = alpha if np.all(here) else np.where(here[:, None], alpha, staying[time] * scale)
            np.matmul(since, kernel.normal, out=staying[time + 1])
    mass, of_others = np.empty((2, n_series, n_times, n_points))
    jumped = np.zeros((n_series, n_times))
    was_seen = np.cumsum(is_seen, axis=1) > is_seen
    backward = np.ones((n_series, n_points))
    for time in reversed(range(n_times)):
        np.multiply(expected[time], backward, out=of_others[:, time])
        np.multiply(of_others[:, time], likelihood[:, time], out=mass[:, time])
        of_all = np.maximum(np.sum(mass[:, time], axis=1), _FLOOR)
        without = np.einsum("ij,ij->i", staying[time], backward) / of_all
        here = is_seen[:, time] & was_seen[:, time]
        jumped[here, time] = np.clip(1.0 - without[here], 0.0, 1.0)
        mass[:, time] /= of_all[:, None]
        of_others[:, time] /= np.maximum(np.sum(of_others[:, time], axis=1, keepdims=True), _FLOOR)
        if time:
            backward = (likelihood[:, time] * backward) @ whole.T
            backward /= np.maximum(np.max(backward, axis=1, keepdims=True), _FLOOR)
    return Smoothed(mass=mass, of_others=of_others, jumped=jumped)


def drawn(forward: Floats, kernel: StepKernel, draws: int, rng: np.random.Generator) -> Cells:
    """Draw paths backwards given alpha of (3): numbers of points, (n_series, draws, n_times)."""
    n_times, n_series, _ = forward.shape
    result = np.empty((n_series, draws, n_times), dtype=np.int64)
    for series in range(n_series):
        ends = np.cumsum(forward[-1, series])
        result[series, :, -1] = np.searchsorted(ends, rng.random(draws) * ends[-1], side="right")
    rows = np.arange(n_series)[:, None]
    for time in reversed(range(n_times - 1)):
        alpha, after = forward[time], np.minimum(result[:, :, time + 1], forward.shape[2] - 1)
        by_jump = (alpha @ kernel.jump)[rows, after]
        in_all = by_jump + (alpha @ kernel.normal)[rows, after]
        is_jump = rng.random(after.shape) * in_all < by_jump
        if len(kernel.offset):
            result[:, :, time] = _stepped(alpha, after, kernel, rng)
        else:
            _come_from(alpha, after, kernel.normal, ~is_jump, result[:, :, time], rng)
        _come_from(alpha, after, kernel.jump, is_jump, result[:, :, time], rng)
    return np.asarray(np.minimum(result, forward.shape[2] - 1))


def _stepped(alpha: Floats, after: Cells, kernel: StepKernel, rng: np.random.Generator) -> Cells:
    """Draw where steps without a jump came from, (n_series, draws)."""
    n_series, n_points = alpha.shape
    draws, n_offsets = after.shape[1], len(kernel.offset)
    most = int(kernel.offset[-1])
    padded = np.pad(alpha, ((0, 0), (most, most)))
    result = np.empty_like(after)
    at_once = max(1, _AT_ONCE // max(draws * n_offsets, 1))
    for start in range(0, n_series, at_once):
        rows = np.arange(start, min(start + at_once, n_series))[:, None, None]
        here = after[start : start + at_once]
        ends = np.cumsum(padded[rows, here[:, :, None] + np.arange(n_offsets)] * kernel.of_offset, axis=2)
        wanted = rng.random(here.shape)[:, :, None] * ends[:, :, -1:]
        result[start : start + at_once] = here - most + np.sum(ends <= wanted, axis=2)
    return np.clip(result, 0, n_points - 1)


def _come_from(
    alpha: Floats, after: Cells, steps: Floats, chosen: Mask, into: Cells, rng: np.random.Generator
) -> None:
    """Draw where steps of some paths came from, in their places."""
    series, draw = np.nonzero(chosen)
    at_once = max(1, _AT_ONCE // alpha.shape[1])
    for start in range(0, len(series), at_once):
        row, column = series[start : start + at_once], draw[start : start + at_once]
        ends = np.cumsum(alpha[row] * steps.T[after[row, column]], axis=1)
        wanted = rng.random(len(row))[:, None] * ends[:, -1:]
        into[row, column] = np.sum(ends <= wanted, axis=1)
