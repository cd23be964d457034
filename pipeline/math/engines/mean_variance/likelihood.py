r"""The likelihood of a mean and a variance behind noisy sums: a sum over what the rows may have been.

With m the mean and E the mean square deviation of N rows, :math:`\lambda = \log \sigma^2` and
:math:`\alpha = (N - 1) / 2`,

.. math::
    p(y \mid \mu, \lambda) = \sum_N \pi(N) \int p(y \mid N, m, E)\,
        N(m; \mu, e^\lambda / N)\, \frac{(N E / 2)^\alpha}{\Gamma(\alpha)}
        e^{-\alpha \lambda - N E e^{-\lambda} / 2} \, dm \, d\log E.

For every N, or the middle of a few where the noise hardly tells them apart, m and log E lie on a grid that
covers all but e^-depth of the noise, and is as fine as it and the distributions of m and E are. It does not
depend on any prior. Below a deviation that the noise does not see, the distribution of E is integrated
exactly. At large variances every part of the sum falls as its number of rows has it fall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.mean_variance.clipped_records import ClippedRecords, before_clipping
from suffice.pipeline.math.engines.mean_variance.clipped_slices import ClippedSlice
from suffice.pipeline.math.engines.mean_variance.grids import COARSE, FINE, OUTER, Grid, numbers_of_rows
from suffice.pipeline.math.engines.mean_variance.panels import PANELS

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.mean_variance.slices import Slice
    from suffice.pipeline.math.engines.normal.noisy_moments import NoisyMoments
    from suffice.typing import Floats


FEW = 8
"""Numbers of rows up to this may leave a variance without moments."""
_NUMBERS = 2**19
_NO_DEVIATION = -4.0
"""Represents log E of a single row where locations are searched."""
_LARGEST_MEAN, _LEAST_LOG = 1e70, -320.0
_FAR = 8.0
"""Where moments of clipped rows say next to nothing of a parameter: the steps in which it is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentRows:
    """The likelihood of one cell.

    Attributes
    ----------
    slices : list of Slice
    log_empty : float
        Log likelihood of no rows at all; minus infinity where there must be some.
    depth : float
        Nats of noise that the grid covers.
    clipped : list of ClippedSlice or None
        The same where records are taken for clipped to -1..1; None where they are not.
    """

    slices: list[Slice]
    log_empty: float
    depth: float
    clipped: list[ClippedSlice] | None = None

    @classmethod
    def of(cls, noisy: NoisyMoments, depth: float, room: float = math.inf, *, clips: bool = False) -> Self:
        """Lay out the grids of the one cell of some noisy moments, with room for so many densities.

        Parameters
        ----------
        clips : bool
            Whether records are taken for clipped to -1..1.

        Raises
        ------
        TooManyError
            Where there would be more.
        """
        grids: list[Grid] = []
        fineness = COARSE if clips else FINE
        for low, high in numbers_of_rows(noisy, depth, fineness):
            grids.append(Grid.of(noisy, low, high, depth, room, fineness))
            room -= grids[-1].taken
        least, _ = noisy.n_prior.support
        empty = -np.inf
        if least == 0:
            empty = float(noisy.n_prior.log_prob(np.zeros(1))[0] - noisy.totals.distance(np.zeros(3))[0])
        top = max([empty, *(float(np.max(grid.log_noise)) for grid in grids)])
        slices = [one for grid in grids if (one := grid.slice(top, depth)) is not None]
        clipped = [ClippedSlice.of(one) for one in slices] if clips else None
        return cls(slices=slices, log_empty=empty - top, depth=depth, clipped=clipped)

    def log_likelihood(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log likelihoods at positions (n, p) and (n, q), but for a constant: (n, p, q)."""
        return self._sum(self.slices, self.clipped, mean, log_variance, self.log_empty)

    def outer(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log likelihoods of what the noise leaves least of; of no rows at all, where that is beyond it."""
        empty = self.log_empty if self.log_empty < OUTER - self.depth else -np.inf
        slices = []
        for one in self.slices:
            columns = np.any(one.is_outer, axis=0)
            if np.any(columns):
                slices.append(
                    replace(
                        one,
                        mean=one.mean[columns],
                        blur=one.blur[columns],
                        weight=np.where(one.is_outer, one.weight, 0.0)[:, columns],
                    )
                )
        clipped = None if self.clipped is None else [ClippedSlice.of(one) for one in slices]
        return self._sum(slices, clipped, mean, log_variance, empty)

    def few(self, mean: Floats, log_variance: Floats) -> list[tuple[int, Floats]]:
        """Few numbers of rows, and the log likelihoods of each."""
        shape = (len(mean), mean.shape[1], log_variance.shape[1])
        found = [(0, np.full(shape, self.log_empty))]
        for number, one in enumerate(self.slices):
            if one.n <= FEW:
                clipped = None if self.clipped is None else self.clipped[number : number + 1]
                found.append((int(one.n), self._sum([one], clipped, mean, log_variance, -np.inf)))
        return found

    @staticmethod
    def _sum(
        slices: list[Slice],
        clipped: list[ClippedSlice] | None,
        mean: Floats,
        log_variance: Floats,
        start: float,
    ) -> Floats:
        found = np.full((len(mean), mean.shape[1], log_variance.shape[1]), start)
        # Beyond these, numbers would overflow; nothing is left there.
        mean = np.clip(mean, -_LARGEST_MEAN, _LARGEST_MEAN)
        log_variance = np.maximum(log_variance, _LEAST_LOG)
        if clipped is not None:
            records = ClippedRecords.of(mean[:, :, None], log_variance[:, None, :]).flat()
            for own in clipped:
                np.logaddexp(found, own.log_likelihood(records).reshape(found.shape), out=found)
            return found
        for one in slices:
            batch = max(1, _NUMBERS // (mean.shape[1] * log_variance.shape[1] * len(one.mean)))
            for first in range(0, len(mean), batch):
                part = slice(first, first + batch)
                of_slice = one.log_likelihood(mean[part], log_variance[part])
                found[part] = np.logaddexp(found[part], of_slice)
        return found

    @property
    def ladders(self) -> tuple[list[Floats], list[Floats]]:
        """Positions along both sides about what the rows may have been, wide and narrow."""
        if not self.slices:
            return [PANELS, PANELS], [PANELS, PANELS]
        some = [one for one in self.slices if one.n >= 2.0] or self.slices
        heaviest = some[int(np.argmax([np.sum(one.weight) for one in some]))]
        found = []
        level = np.maximum(heaviest.log_e, _NO_DEVIATION)
        for axis, position in enumerate((heaviest.mean, level)):
            share = np.sum(heaviest.weight, axis=axis)
            share = share / np.sum(share)
            middle = float(share @ position)
            found.append((middle, math.sqrt(float(share @ (position - middle) ** 2))))
        (mean, of_mean), (middle, of_level) = found
        sampling = math.exp(middle / 2.0) / math.sqrt(heaviest.n)
        width = math.sqrt(2.0 / max(heaviest.n - 1.0, 1.0))
        wide = (math.hypot(of_mean, sampling), math.hypot(of_level, width))
        centre, slopes = np.array([mean, middle]), np.eye(2)
        if self.clipped is not None and heaviest.n >= 2.0:
            # Of clipped rows, moments are not where the parameters are.
            centre, slopes = before_clipping((mean, middle), wide)
        first, second = (
            [
                centre[side] + min(math.hypot(*(slopes[side] * part)), _FAR) * PANELS
                for part in (wide, (sampling, width))
            ]
            for side in (0, 1)
        )
        return first, second
