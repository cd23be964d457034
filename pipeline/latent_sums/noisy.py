r"""Noisy sums, and the weight of the latent (N, S) behind them.

.. math::
    W(N, S) = \pi(N) \, p(S \mid N) \, e^{-|y_1 - A| / b} \, e^{-|y_2 - (R N - A)| / b}

with A the sum of :math:`X - \text{lowest}` in lattice steps, an affine function of S and N, R the lattice's
range, and b the noise's scale. Where N is public the first component alone is released.
Every further release of the same sums has a factor of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.latent_sums.blocks import NATS
from suffice.pipeline.latent_sums.marginals import Marginal, Support

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.n_prior import NPrior

    Floats: TypeAlias = NDArray[np.float64]
    Cells: TypeAlias = NDArray[np.int64]

_CLOSE = 4.0
"""Nats below a bound at which the best candidate passes for the mode."""
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_LOWEST_LOG = -600.0
_LONGEST_LOG = 8.0
"""Rational functions of S have poles pi away from the real logarithms of S."""
_NEAR_END = np.array([12.0, 108.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Noisy values of one release; symbols as in ``NoisySums``."""

    first: Floats
    second: Floats | None
    scale: float

    def take(self, cells: Cells) -> Sight:
        """The given cells, in the given order."""
        second = None if self.second is None else self.second[cells]
        return Sight(first=self.first[cells], second=second, scale=self.scale)

    def log_noise(self, cell: Cells, both: Floats, amount: Floats) -> Floats:
        """Log of the noise's law at A (n_rows, n_places); ``both`` is R N, (n_rows, 1)."""
        noise = amount - self.first[cell][:, None]
        np.abs(noise, out=noise)
        if self.second is not None:
            other = amount - (both - self.second[cell][:, None])
            np.abs(other, out=other)
            noise += other
        noise *= -1.0 / self.scale
        return noise


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySums:
    """Noisy sums and the law that they came from.

    Attributes
    ----------
    first : ndarray of shape (n_cells,), float64
        Noisy sums of X - lowest, in lattice steps: negative and impossible ones are normal.
    second : ndarray of shape (n_cells,), float64, or None
        Noisy sums of highest - X; None where N is public and only the first is released.
    reach : float
        R: what a record adds to both, in lattice steps.
    step, lower : float
        S = lower N + step A, in T's unit.
    scale : float, > 0
        b, in lattice steps.
    marginal : Marginal
        The law of S given N under the prior.
    n_prior : NPrior
        The prior of N; ``Fixed`` where N is public.
    again : tuple of Sight
        What other releases say of the same sums.
    """

    first: Floats
    second: Floats | None
    reach: float
    step: float
    lower: float
    scale: float
    marginal: Marginal
    n_prior: NPrior
    again: tuple[Sight, ...] = ()

    def take(self, cells: Cells) -> Self:
        """The given cells, in the given order."""
        own, *again = (seen.take(cells) for seen in self.sights)
        return replace(self, first=own.first, second=own.second, again=tuple(again))

    @property
    def sights(self) -> tuple[Sight, ...]:
        """What every release says, this one first."""
        return (Sight(first=self.first, second=self.second, scale=self.scale), *self.again)

    @property
    def finest(self) -> float:
        """The least scale of noise."""
        return min(seen.scale for seen in self.sights)

    @property
    def change_per_row(self) -> float:
        """Nats by which the noise's law changes at most where N changes by 1 and A does not."""
        return sum(self.reach / seen.scale for seen in self.sights if seen.second is not None)

    @property
    def is_sum(self) -> bool:
        """Whether sums are whole numbers of steps."""
        return self.marginal.support is Support.INTEGERS

    @property
    def fall(self) -> float:
        """Nats by which the noise's law falls per step, beyond all kinks."""
        return (1.0 if self.second is None else 2.0) * sum(1.0 / seen.scale for seen in self.sights)

    def kinks(self, cell: Cells, n: Floats) -> Floats:
        """A at which the slope of the noise's law jumps, (n_rows, n_kinks), ascending."""
        kinks = []
        for seen in self.sights:
            kinks.append(seen.first[cell])
            kinks.append(kinks[-1] if seen.second is None else self.reach * n - seen.second[cell])
        return np.sort(np.stack(kinks, axis=1), axis=1)

    def log_density(self, n: Floats, place: Floats) -> Floats:
        """Log of the probability or density of places given N; n >= 1 and places broadcast.

        A place is A itself, or its logarithm where S is above 0.
        """
        log_prob = self.marginal.log_prob(self.total(n, self.amount(place)), n)
        if self.is_sum:
            return log_prob
        # Of A, not of S: no rows at all have a probability, and it has to be weighed against densities.
        log_prob = np.add(log_prob, np.log(self.step))
        return log_prob + place if self.marginal.support is Support.POSITIVE else log_prob

    def log_noise(self, cell: Cells, n: Floats, place: Floats) -> Floats:
        """Log of the noise's law, but for its normaliser, at places (n_rows, n_places); n is (n_rows, 1)."""
        amount = self.amount(place)
        both = self.reach * n
        own, *again = self.sights
        noise = own.log_noise(cell, both, amount)
        for seen in again:
            noise += seen.log_noise(cell, both, amount)
        return noise

    def log_weight(self, cell: Cells, n: Floats, place: Floats) -> Floats:
        """Log of p(S | N) and the noise's law, at places (n_rows, n_places); n is (n_rows, 1)."""
        return self.log_density(n, place) + self.log_noise(cell, n, place)

    def log_joint(self, cell: Cells, n: Floats, place: Floats) -> Floats:
        """Log of W at places (n_rows, n_places), n (n_rows,); where n is 0, every place is S = 0."""
        rows = np.maximum(n, 1.0)[:, None]
        value = self.log_weight(cell, rows, place)
        none = n < 1.0
        if np.any(none):
            value[none] = self.log_weight_of_none(cell[none])[:, None]
        return value + self.n_prior.log_prob(n)[:, None]

    def amount(self, place: Floats) -> Floats:
        """A at a place."""
        return np.exp(place) if self.marginal.support is Support.POSITIVE else place

    def total(self, n: Floats, amount: Floats) -> Floats:
        """S, in T's unit."""
        if self.is_sum:  # the lattice is that of the counts
            return amount
        total: Floats = self.lower * n + self.step * amount
        return total

    def least_n(self, place: Floats) -> Floats:
        """The least N, not only of the integers, with which a place is possible."""
        return place * self.step / self.marginal.most_per_row if self.is_sum else np.zeros_like(place)

    def is_possible(self, n: Floats, place: Floats) -> NDArray[np.bool_]:
        """Whether so many rows can have a sum at a place; arrays of one shape."""
        possible: NDArray[np.bool_] = n >= self.least_n(place)
        return possible

    def log_weight_of_none(self, cell: Cells) -> Floats:
        """Log of the noise's law where N and A are 0."""
        none = np.zeros(len(cell))
        for seen in self.sights:
            second = 0.0 if seen.second is None else np.abs(seen.second[cell])
            none -= (np.abs(seen.first[cell]) + second) / seen.scale
        return none

    def longest(self, left: Floats) -> Floats:
        """How long a block of places may be for rational functions of S to be smooth in it."""
        if self.marginal.support is Support.INTEGERS:
            return 9.0 * left + 12.0
        return np.full_like(left, _LONGEST_LOG if self.marginal.support is Support.POSITIVE else np.inf)

    def breaks(self, cell: Cells, n: Floats) -> Floats:
        """Places (n_rows, n_places), ascending: ends beyond which W is negligible, kinks, a typical place."""
        kinks = self.kinks(cell, n)
        typical = (self.marginal.typical(n) - self.lower * n) / self.step
        margin = NATS / self.fall
        first = np.minimum(kinks[:, 0], typical) - margin
        last = np.maximum(kinks[:, -1], typical) + margin
        ends = np.stack([first, np.rint(typical) if self.is_sum else typical, last], axis=1)
        breaks = np.sort(np.concatenate([kinks, ends], axis=1), axis=1)
        if self.marginal.support is Support.POSITIVE:
            logs: Floats = np.log(np.maximum(breaks, np.exp(_LOWEST_LOG)))
            return logs
        if self.is_sum:
            most = (self.marginal.most_per_row * n / self.step)[:, None]
            breaks = np.clip(np.rint(breaks), 0.0, most)
            breaks[:, -1] += 1.0
            if np.all(np.isfinite(most)):  # near its upper end a law may be as steep as near 0
                near_end = np.clip(most + 1.0 - _NEAR_END, breaks[:, :1], breaks[:, -1:])
                breaks = np.concatenate([breaks, near_end], axis=1)
        return np.sort(breaks, axis=1)

    def profile(self, cell: Cells, n: Floats) -> Floats:
        """Log of the prior of N and of about the highest W over S: (n_rows,), finite within the support."""
        rows = np.maximum(n, 1.0)
        breaks = self.breaks(cell, rows)
        if self.is_sum:
            breaks = np.minimum(breaks, breaks[:, -1:] - 1.0)
        else:
            breaks[:, 0], breaks[:, -1] = breaks[:, 1], breaks[:, -2]
        density = self.log_density(rows[:, None], breaks)
        noise = self.log_noise(cell, rows[:, None], breaks)
        best = np.max(density + noise, axis=1)
        # Where prior and noise disagree, the mode may be at none of the breaks.
        apart = np.flatnonzero(np.max(density, axis=1) + np.max(noise, axis=1) - best > _CLOSE)
        if apart.size:
            place = breaks[apart, np.argmax((density + noise)[apart], axis=1)]
            apart = apart[~self._is_peak(cell[apart], rows[apart], place, best[apart])]
        if apart.size:
            found = self._search(cell[apart], rows[apart], breaks[apart, 0], breaks[apart, -1])
            best[apart] = np.maximum(best[apart], found)
        return np.where(n < 1.0, self.log_weight_of_none(cell), best) + self.n_prior.log_prob(n)

    def _is_peak(self, cell: Cells, n: Floats, place: Floats, value: Floats) -> NDArray[np.bool_]:
        """Whether the weight falls on both sides of a place."""
        amount, aside = self.amount(place), np.maximum(np.rint(self.finest / 16.0), 1.0)
        beside = np.stack([amount - aside, amount + aside], axis=1)
        if self.marginal.support is Support.POSITIVE:
            beside = np.log(np.maximum(beside, amount[:, None] / 16.0))
        elif self.is_sum:
            beside = np.clip(beside, 0.0, np.minimum(self.marginal.most_per_row * n, 1e300)[:, None])
        peak: NDArray[np.bool_] = np.all(self.log_weight(cell, n[:, None], beside) <= value[:, None], axis=1)
        return peak

    def _search(self, cell: Cells, n: Floats, left: Floats, right: Floats) -> Floats:
        """Highest weight between two places, by golden sections."""
        rows = n[:, None]
        width = right - left
        inner = np.stack([right - _GOLDEN * width, left + _GOLDEN * width], axis=1)
        value = self.log_weight(cell, rows, inner)
        for _ in range(40):
            rises = value[:, 0] < value[:, 1]
            left, right = np.where(rises, inner[:, 0], left), np.where(rises, right, inner[:, 1])
            width = right - left
            inner = np.stack([right - _GOLDEN * width, left + _GOLDEN * width], axis=1)
            value = self.log_weight(cell, rows, inner)
        best: Floats = np.max(value, axis=1)
        return best
