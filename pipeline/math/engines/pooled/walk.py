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

Of a process that returns to a level, whose K has no such form, points are as close as the best told cell is
narrow, and steps may be many of them wide. The law of a step is then known at every r-th point
(``BetweenPoints``), ``_OF_A_STEP`` or more to its standard deviation, and is a polynomial of degree five
between: in K = P C P', C is smaller by :math:`r^2`, and elements are off by 1e-4 of the highest at most.

Symbols: L: ``likelihood``, (n_series, n_times, n_points); :math:`\alpha`: ``filtered``; h: ``spacing``;
s: ``step``; :math:`\phi`: ``coefficient``; :math:`\pi`: ``jumps``.

References
----------
Rabiner. A tutorial on hidden Markov models. Proc. IEEE 77, 1989. Kitagawa. Non-Gaussian state-space modeling
of nonstationary time series. J. Amer. Statist. Assoc. 82, 1987.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Cells, Floats, Mask

JUMP_SCALE = 1.0
"""Of the Laplace law of jumps: on average a factor of e in odds or rates."""
_NARROW = 0.75
_OF_A_STEP, _FEW = 5.0, 12
"""How many points of a kernel are to a step; how many it has at least."""
_FLOOR = 1e-300
_WIDEST = 7.0
_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenPoints:
    """Every r-th point, some beyond the ends, and Lagrange's polynomials between six of them.

    Attributes
    ----------
    n_points : int
    taps : ndarray of shape (r, 6), float64
        Of points between two of these.
    """

    n_points: int
    taps: Floats

    @classmethod
    def of(cls, n_points: int, every: int) -> Self:
        """Take every so manieth."""
        return cls(n_points=n_points, taps=_taps(every))

    @property
    def _n(self) -> int:
        return -(-self.n_points // len(self.taps))

    @property
    def at(self) -> Cells:
        """Which points these are."""
        return len(self.taps) * (np.arange(self._n + 5) - 2)

    def spread(self, values: Floats) -> Floats:
        """Return P values: what is known at these, at all points."""
        row, column = values.strides
        windows = np.lib.stride_tricks.as_strided(
            values, (len(values), self._n, 6), (row, column, column), writeable=False
        )
        of_all: Floats = (windows @ self.taps.T).reshape(len(values), -1)
        return of_all[:, : self.n_points]

    def gathered(self, mass: Floats) -> Floats:
        """Return P' mass: masses of all points at these."""
        padded = np.zeros((len(mass), self._n, len(self.taps)))
        padded.reshape(len(mass), -1)[:, : self.n_points] = mass
        of_taps = padded @ self.taps
        result = np.zeros((len(mass), self._n + 5))
        for tap in range(6):
            result[:, tap : tap + self._n] += of_taps[:, :, tap]
        return result


@lru_cache(maxsize=64)
def _taps(every: int) -> Floats:
    """Return Lagrange's polynomials of six points at places between the third and the fourth."""
    place = 2.0 + np.arange(every) / every
    taps = np.ones((every, 6))
    for tap in range(6):
        for other in {0, 1, 2, 3, 4, 5} - {tap}:
            taps[:, tap] *= (place - other) / (tap - other)
    return taps


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKernel:
    """Probabilities of steps between points.

    Attributes
    ----------
    normal, jump : ndarray of shape (n_points, n_points), float64
        Of steps without and with a jump, from rows to columns; both with their shares.
        Between those of some points, where the rest is between them.
    offset : ndarray of shape (n_offsets,), int64
        Where steps without a jump go to; empty where that depends on where they begin.
    of_offset : ndarray of shape (n_offsets,), float64
    between : BetweenPoints, optional
    """

    normal: Floats
    jump: Floats
    offset: Cells
    of_offset: Floats
    between: BetweenPoints | None = None

    def of_seven_digits(self) -> StepKernel:
        """Return the same with matrices of float32: messages of that kind stay what they are."""
        return replace(self, normal=self.normal.astype(np.float32), jump=self.jump.astype(np.float32))

    @property
    def whole(self) -> Floats:
        """Both kinds of steps."""
        return self.normal + self.jump

    def moved(self, mass: Floats, steps: Floats) -> Floats:
        """Return masses (n_series, n_points) after steps of this kernel, or of its transpose.

        With matrices of several levels, series are those of the first, then those of the next.
        """
        known = mass if self.between is None else self.between.gathered(mass)
        by_level = known if steps.ndim == 2 else known.reshape(len(steps), -1, known.shape[1])
        after: Floats = (by_level @ steps).reshape(known.shape)
        return after if self.between is None else np.asarray(np.maximum(self.between.spread(after), 0.0))

    @classmethod
    def of_levels(cls, kernels: Sequence[Self]) -> Self:
        """Put kernels together that differ in the level alone."""
        normal, jump = (np.stack(each) for each in zip(*((k.normal, k.jump) for k in kernels), strict=True))
        return replace(kernels[0], normal=normal, jump=jump)

    def at_all_points(self) -> StepKernel:
        """Return the same with matrices between all points."""
        if self.between is None:
            return self
        spread = self.between.spread
        normal, jump = (np.maximum(spread(spread(each).T).T, 0.0) for each in (self.normal, self.jump))
        return replace(self, normal=normal, jump=jump, between=None)

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
        spacing, n_points = place[1] - place[0], len(place)
        every = int(step / (_OF_A_STEP * spacing))
        between = BetweenPoints.of(n_points, every) if every > 1 and n_points > _FEW * every else None
        at = place if between is None else place[0] + spacing * between.at
        gap = at - coefficient * at[:, None]
        normal = np.exp(-0.5 * (gap / step) ** 2)
        # What would leave the points is lost, as of a walk: sums are those of all points of the line.
        normal *= (1.0 - jumps) * spacing / (step * np.sqrt(2.0 * np.pi))
        jump = jumps * np.tanh(spacing / JUMP_SCALE / 2.0) * np.exp(-np.abs(gap) / JUMP_SCALE)
        none = np.zeros(0, dtype=np.int64)
        return cls(normal=normal, jump=jump, offset=none, of_offset=np.zeros(0), between=between)


def filtered(likelihood: Floats, first: Floats, kernel: StepKernel) -> tuple[Floats, Floats]:
    """Return alpha of (3), (n_times, n_series, n_points), and log evidence, (n_series,)."""
    n_series, n_times, n_points = likelihood.shape
    result = np.empty((n_times, n_series, n_points))
    total = np.zeros(n_series)
    whole = kernel.whole
    expected = first
    for time in range(n_times):
        np.multiply(expected, likelihood[:, time], out=result[time])
        mass = np.maximum(np.sum(result[time], axis=1), _FLOOR)
        result[time] /= mass[:, None]
        total += np.log(mass)
        if time + 1 < n_times:
            expected = kernel.moved(result[time], whole)
    return result, total


def log_evidence(likelihood: Floats, first: Floats, kernel: StepKernel) -> Floats:
    """Return log evidence of each series, (n_series,), as ``filtered`` does."""
    total = np.zeros(len(likelihood))
    whole = kernel.whole
    expected = first
    for time in range(likelihood.shape[1]):
        here = expected * likelihood[:, time]
        mass = np.maximum(np.sum(here, axis=1), _FLOOR)
        total += np.log(mass)
        expected = kernel.moved(here / mass[:, None], whole)
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

    def take(self, series: slice) -> Smoothed:
        """Return those of some series."""
        return Smoothed(mass=self.mass[series], of_others=self.of_others[series], jumped=self.jumped[series])


def smoothed(likelihood: Floats, first: Floats, kernel: StepKernel, is_seen: Mask) -> Smoothed:
    """Run (3) both ways; `is_seen` (n_series, n_times) says which times have a cell."""
    n_series, n_times, n_points = likelihood.shape
    whole = kernel.whole
    # alpha_{t-1} K of every time, and the part of alpha_t without a jump since the last cell.
    expected, staying = np.empty((2, n_times, n_series, n_points))
    expected[0], staying[0] = first, 0.0
    for time in range(n_times):
        alpha = expected[time] * likelihood[:, time]
        scale = 1.0 / np.maximum(np.sum(alpha, axis=1, keepdims=True), _FLOOR)
        alpha *= scale
        staying[time] *= likelihood[:, time]
        if time + 1 < n_times:
            expected[time + 1] = kernel.moved(alpha, whole)
            # What is carried over a gap is divided by what alpha is divided by.
            here = is_seen[:, time]
            since = alpha if np.all(here) else np.where(here[:, None], alpha, staying[time] * scale)
            staying[time + 1] = kernel.moved(since, kernel.normal)
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
            backward = kernel.moved(likelihood[:, time] * backward, np.swapaxes(whole, -1, -2))
            backward /= np.maximum(np.max(backward, axis=1, keepdims=True), _FLOOR)
    return Smoothed(mass=mass, of_others=of_others, jumped=jumped)


def drawn(forward: Floats, kernel: StepKernel, draws: int, rng: np.random.Generator) -> Cells:
    """Draw paths backwards given alpha of (3): numbers of points, (n_series, draws, n_times)."""
    kernel = kernel.at_all_points()
    n_times, n_series, _ = forward.shape
    result = np.empty((n_series, draws, n_times), dtype=np.int64)
    for series in range(n_series):
        ends = np.cumsum(forward[-1, series])
        result[series, :, -1] = np.searchsorted(ends, rng.random(draws) * ends[-1], side="right")
    for time in reversed(range(n_times - 1)):
        result[:, :, time] = come_from(forward[time], result[:, :, time + 1], kernel, rng)
    return np.asarray(np.minimum(result, forward.shape[2] - 1))


def come_from(alpha: Floats, after: Cells, kernel: StepKernel, rng: np.random.Generator) -> Cells:
    """Draw where steps came from that lead to some points, (n_series, draws), in proportion to alpha.

    Alpha is (n_series, n_points); the kernel is known at all points.
    """
    after = np.minimum(after, alpha.shape[1] - 1)
    rows = np.arange(len(alpha))[:, None]
    by_jump = (alpha @ kernel.jump)[rows, after]
    in_all = by_jump + (alpha @ kernel.normal)[rows, after]
    is_jump = rng.random(after.shape) * in_all < by_jump
    result = np.empty_like(after)
    if len(kernel.offset):
        result[:] = _stepped(alpha, after, kernel, rng)
    else:
        _come_from(alpha, after, kernel.normal, ~is_jump, result, rng)
    _come_from(alpha, after, kernel.jump, is_jump, result, rng)
    return np.asarray(np.minimum(result, alpha.shape[1] - 1))


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
