r"""Marginal distributions of a mean and a variance as mixtures of few components, and their quantiles.

Model: nodes i of a quadrature over the latent sums have weights :math:`\omega_i`, and given one

.. math:: \mu \mid i \sim t_{2 a_i}\bigl(m_i, \sqrt{b_i / (a_i k_i)}\bigr), \qquad
    \sigma^2 \mid i \sim \mathrm{IG}(a_i, b_i) \qquad (1)

    F(x) = \sum_i \omega_i F_i(x) \qquad (2)

The question is quantiles and densities of (2). The variance is taken by its logarithm, with location
:math:`\log (b / a)` and width :math:`1 / \sqrt a`.

Method and error: nodes of one cell that are alike, in width and in location as far as either matters,
become one component with their first two moments; F is then right to about 0.005 (mostly 0.001). Quantiles
solve F(x) = q. Densities are smoothed where nodes would show (``smoothing``).

========= ============== =========================================== ================= ===================
symbol    in the code    meaning                                     shape             unit
========= ============== =========================================== ================= ===================
omega     ``weight``     weights of components                       (n_components,)   none
m         ``loc``        location of mu, or log(b / a)               (n_components,)   half ranges, or none
          ``width``      width of mu, or 1 / sqrt(a)                 (n_components,)   half ranges, or none
2 a       ``degrees``    degrees of freedom                          (n_components,)   none
========= ============== =========================================== ================= ===================
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.merged import find_quantile
from suffice.pipeline.math.distributions.normal import log_student
from suffice.pipeline.math.distributions.smoothing import GRID, least_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaDistribution
    from suffice.pipeline.math.engines.normal.moment_weights import Nodes
    from suffice.typing import Cells, Floats

    Keys: TypeAlias = NDArray[np.int64]

_SMALLEST = 1e-7
_PER_SPREAD = 20.0
"""Locations nearer than the posterior's spread over this, or than half a width, are not told apart."""
_FARTHEST = 2**15
_TOGETHER = 256
"""Cells whose quantiles are looked for together."""
_REACH = 1e6
"""Spreads within which quantiles are looked for: Student distributions may have heavy tails."""


def _log_variance_density(position: Floats, loc: Floats, width: Floats, least: float) -> Floats:
    r"""Densities of log v, v an inverse gamma (n,); of those narrower than `least` a normal one as wide.

    .. math:: E[\log v] = \log b - \psi(a)
    """
    from scipy.special import digamma, gammaln

    a = 1.0 / width**2
    # log b = log a + loc.
    log_density = a * (np.log(a) + loc) - gammaln(a) - a * position - a * np.exp(loc - position)
    if np.any(width < least):
        away = (position - (loc + np.log(a) - digamma(a))) / least
        wide = -0.5 * away**2 - 0.5 * math.log(2.0 * math.pi) - math.log(least)
        log_density = np.where(width < least, wide, log_density)
    density: Floats = np.exp(log_density)
    return density


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalMixture:
    """Components of all cells: Student's t of a mean, or inverse gammas of a variance, in half ranges.

    Attributes
    ----------
    cell : ndarray of shape (n_components,), int64
        The cell that a component is of.
    weight : ndarray of shape (n_components,), float64
        They sum to 1 in every cell.
    loc, width : ndarray of shape (n_components,), float64
        Of the t, or log(scale / concentration) and one over the root of the concentration.
    degrees : ndarray of shape (n_components,), float64
        Degrees of freedom of the t.
    is_variance : bool
        Which of the two.
    """

    cell: Cells
    weight: Floats
    loc: Floats
    width: Floats
    degrees: Floats
    is_variance: bool

    @classmethod
    def of_mean(cls, nodes: Nodes, cells: int) -> Self:
        """Merge the nodes' Student distributions."""
        given = nodes.given
        # (1): the marginal of the mean of a NIG.
        width = np.sqrt(given.scale / given.concentration / given.precision)
        return cls._merged(nodes, cells, given.loc, width, is_variance=False)

    @classmethod
    def of_variance(cls, nodes: Nodes, cells: int) -> Self:
        """Merge the nodes' inverse gammas."""
        given = nodes.given
        # log sigma^2 of an inverse gamma has about the mean log(b / a) and the variance 1 / a.
        loc = np.log(given.scale / given.concentration)
        return cls._merged(nodes, cells, loc, 1.0 / np.sqrt(given.concentration), is_variance=True)

    @classmethod
    def _merged(cls, nodes: Nodes, cells: int, loc: Floats, width: Floats, *, is_variance: bool) -> Self:
        loc, width = smeared(loc, width)
        kept = nodes.weight > _SMALLEST
        cell, weight, loc, width = nodes.cell[kept], nodes.weight[kept], loc[kept], width[kept]
        degrees = 2.0 * nodes.given.concentration[kept]
        centre = _averages(cell, weight, loc, cells)
        spread = np.sqrt(_averages(cell, weight, (loc - centre[cell]) ** 2 + width**2, cells))
        alike = np.rint(2.0 * np.log2(width / spread[cell])).astype(np.int64)
        step = np.maximum(0.5 * np.exp2(alike / 2.0), 1.0 / _PER_SPREAD) * spread[cell]
        position = np.clip(np.rint((loc - centre[cell]) / step), -_FARTHEST, _FARTHEST).astype(np.int64)
        tails = np.minimum(np.rint(np.log2(degrees)), 7.0).astype(np.int64)
        key = (cell * 2**9 + np.clip(alike, -200, 200) + 256) * 2**6 + (tails + 40)
        _, first, group = np.unique(
            key * 2**17 + position + _FARTHEST, return_index=True, return_inverse=True
        )
        number = len(first)
        total = np.asarray(np.bincount(group, weight, number), dtype=np.float64)
        middle = _averages(group, weight, loc, number)
        square = _averages(group, weight, (loc - middle[group]) ** 2 + width**2, number)
        return cls(
            cell=cell[first],
            weight=total,
            loc=middle,
            width=np.sqrt(square),
            # A harmonic mean: the heaviest tail counts most.
            degrees=1.0 / _averages(group, weight, 1.0 / degrees, number),
            is_variance=is_variance,
        )

    @classmethod
    def joined(cls, parts: Sequence[MarginalMixture], starts: Sequence[int]) -> MarginalMixture:
        """Mixtures of several batches of cells as one; ``starts`` has the first cell of each."""
        return MarginalMixture(
            cell=np.concatenate([part.cell + start for part, start in zip(parts, starts, strict=True)]),
            weight=np.concatenate([part.weight for part in parts]),
            loc=np.concatenate([part.loc for part in parts]),
            width=np.concatenate([part.width for part in parts]),
            degrees=np.concatenate([part.degrees for part in parts]),
            is_variance=parts[0].is_variance,
        )

    def take(self, cells: Cells) -> Self:
        """Return the mixtures of some cells, ascending."""
        number = np.full(max(np.max(self.cell, initial=-1), np.max(cells, initial=-1)) + 1, -1)
        number[cells] = np.arange(len(cells))
        kept = number[self.cell] >= 0
        weight, loc, width, degrees = (
            column[kept] for column in (self.weight, self.loc, self.width, self.degrees)
        )
        cell = number[self.cell[kept]]
        return replace(self, cell=cell, weight=weight, loc=loc, width=width, degrees=degrees)

    def replaced(self, cells: Cells, others: MarginalMixture) -> Self:
        """Return the mixtures with those of some cells, ascending, put in."""
        kept = ~np.isin(self.cell, cells)
        cell = np.concatenate([self.cell[kept], np.asarray(cells)[others.cell]])
        order = np.argsort(cell, kind="stable")
        weight, loc, width, degrees = (
            np.concatenate([getattr(self, name)[kept], getattr(others, name)])[order]
            for name in ("weight", "loc", "width", "degrees")
        )
        return replace(self, cell=cell[order], weight=weight, loc=loc, width=width, degrees=degrees)

    @classmethod
    def of_conjugates(
        cls, given: Sequence[NormalInverseGammaDistribution], share: Floats, *, is_variance: bool
    ) -> Self:
        """Distributions of the same cells as one, with shares (n_parts, n_cells): nothing is merged."""
        loc, precision, concentration, scale = (
            np.stack([getattr(part, name) for part in given]).ravel()
            for name in ("loc", "precision", "concentration", "scale")
        )
        if is_variance:
            loc, width = np.log(scale / concentration), 1.0 / np.sqrt(concentration)
        else:
            width = np.sqrt(scale / concentration / precision)
        return cls(
            cell=np.tile(np.arange(share.shape[1]), len(given)),
            weight=share.ravel(),
            loc=loc,
            width=width,
            degrees=2.0 * concentration,
            is_variance=is_variance,
        )

    def density(self, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points), smoothed where nodes would show; see ``smoothing``."""
        values = np.empty(points.shape)
        centre = _averages(self.cell, self.weight, self.loc, len(points))
        square = (self.loc - centre[self.cell]) ** 2 + self.width**2
        spread = np.sqrt(_averages(self.cell, self.weight, square, len(points)))
        ends = np.searchsorted(self.cell, np.arange(len(points) + 1))
        for cell, (first, last) in enumerate(itertools.pairwise(ends)):

            def on_line(
                position: Floats, share: float, cell: int = cell, in_cell: slice = slice(first, last)
            ) -> Floats:
                least = share * spread[cell]
                loc, width, degrees = self.loc[in_cell], self.width[in_cell], self.degrees[in_cell]
                at = position[:, None]
                if self.is_variance:
                    part = _log_variance_density(at, loc, width, least)
                else:
                    part = np.exp(log_student(degrees, loc, np.maximum(width, least), at))
                density: Floats = part @ self.weight[in_cell]
                return density

            share = least_share(functools.partial(on_line, centre[cell] + spread[cell] * GRID))
            if self.is_variance:
                above = np.maximum(points[cell], np.finfo(np.float64).tiny)
                # The density of v is that of log v over v.
                values[cell] = np.where(points[cell] > 0.0, on_line(np.log(above), share) / above, 0.0)
            else:
                values[cell] = on_line(points[cell], share)
        return values

    def quantiles(self, q: Sequence[float], cells: int) -> Floats:
        """Quantiles of every cell, (n_cells, len(q))."""
        starts = range(0, cells, _TOGETHER)
        ends = np.searchsorted(self.cell, np.append(starts, cells)).tolist()
        quantiles = np.empty((cells, len(q)))
        # Cell by cell, as components stand: those of a batch stay in caches.
        for start, (first, last) in zip(starts, itertools.pairwise(ends), strict=True):
            columns = (self.weight, self.loc, self.width, self.degrees)
            weight, loc, width, degrees = (column[first:last] for column in columns)
            batch = replace(
                self, cell=self.cell[first:last] - start, weight=weight, loc=loc, width=width, degrees=degrees
            )
            quantiles[start : start + _TOGETHER] = batch.quantiles_together(q, min(cells - start, _TOGETHER))
        return np.exp(quantiles) if self.is_variance else quantiles

    def quantiles_together(self, q: Sequence[float], cells: int) -> Floats:
        """Quantiles of the mean, or of the variance's logarithm, all cells together."""
        centre = _averages(self.cell, self.weight, self.loc, cells)
        square = _averages(self.cell, self.weight, (self.loc - centre[self.cell]) ** 2 + self.width**2, cells)
        spread = np.sqrt(square)
        # Heavy tails go on for ever: quantiles beyond a million spreads are not looked for.
        ends = centre - _REACH * spread, centre + _REACH * spread
        quantiles = np.empty((cells, len(q)))
        for column, level in enumerate(q):
            rough = find_quantile(self._roughly_below, *ends, centre, spread, level)
            quantiles[:, column] = find_quantile(
                self._below, *ends, centre, spread, level, guess=(rough, spread)
            )
        return quantiles

    def _roughly_below(self, cells: Cells) -> Callable[[Floats], Floats]:
        """What ``_below`` has, by normal distributions: to some thousandths in a tenth of the time."""
        from scipy.special import ndtr

        kept = self.take(cells)
        cell, weight, loc = kept.cell, kept.weight, kept.loc
        if self.is_variance:
            # Wilson and Hilferty: the cube root of a gamma is normal.
            deviates, middle = 3.0 / kept.width, 1.0 - kept.width**2 / 9.0
        else:
            # Wallace: t as a function of a normal deviate, but for a term that is small.
            scale, over = 1.0 / kept.width, 1.0 / kept.degrees

        def below(at: Floats) -> Floats:
            distance = at[cell] - loc
            if self.is_variance:
                deviate = deviates * (middle - np.exp(np.minimum(-distance, 600.0) / 3.0))
            else:
                deviate = distance * scale
                deviate *= (1.0 - over / 4.0) / np.sqrt(1.0 + deviate**2 * over / 2.0)
            return np.asarray(np.bincount(cell, weight * ndtr(deviate), len(at)), dtype=np.float64)

        return below

    def _below(self, cells: Cells) -> Callable[[Floats], Floats]:
        """Distribution functions of some cells, of one mean or one log variance each."""
        from scipy.special import gammaincc, stdtr

        kept = self.take(cells)
        cell, weight, loc, width, degrees = kept.cell, kept.weight, kept.loc, kept.width, kept.degrees
        concentration = 1.0 / width**2

        def below(at: Floats) -> Floats:
            distance = at[cell] - loc
            if self.is_variance:
                # P(sigma^2 <= s) = P(Gamma(a) >= b / s), with b / s = a e^-(log s - log(b / a)).
                part = gammaincc(concentration, concentration * np.exp(np.minimum(-distance, 600.0)))
            else:
                part = stdtr(degrees, distance / width)
            return np.asarray(np.bincount(cell, weight * part, len(at)), dtype=np.float64)

        return below


def smeared(loc: Floats, width: Floats) -> tuple[Floats, Floats]:
    """Make each of a box's two nodes a side stand for its half of the box, not for a point.

    Points at +-h / sqrt(3) have the variance of an interval -h..h, and so have its halves, of width h, about
    +-h / 2: what one gains inside the other loses between.
    """
    boxes = loc.reshape(-1, 2, 2, 2)
    centre = boxes.mean(axis=(1, 2, 3))
    inside = np.zeros_like(centre)
    for side in (1, 2, 3):
        others = tuple({1, 2, 3} - {side})
        low, high = boxes.mean(axis=others).T
        # Two nodes a side are h / sqrt(3) from the middle: (2 h / sqrt(3))^2 / 16 = h^2 / 12, of a half box.
        inside += (high - low) ** 2 / 16.0
    centre, inside = np.repeat(centre, 8), np.repeat(inside, 8)
    # h / sqrt(3) becomes h / 2: sqrt(3 / 4) of it.
    return centre + np.sqrt(0.75) * (loc - centre), np.sqrt(width**2 + inside)


def _averages(group: Keys, weight: Floats, values: Floats, number: int) -> Floats:
    sums = np.bincount(group, weight * values, number) / np.bincount(group, weight, number)
    return np.asarray(sums, dtype=np.float64)
