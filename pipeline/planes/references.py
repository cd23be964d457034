r"""Posteriors under conjugate priors as mixtures on the plane, from which the likelihood follows.

Given latent sums the mean and the log variance are normal inverse gamma. Nodes whose laws all but coincide
become one with their first two moments: what that changes is of fourth order in the distance of places that
are not told apart.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.latent_moments.boxes import cover
from suffice.pipeline.latent_moments.moments import integrate
from suffice.pipeline.latent_moments.quantiles import smeared
from suffice.pipeline.latent_moments.weights import MomentWeights
from suffice.pipeline.planes.panels import PANELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.latent_moments.moments import Nodes
    from suffice.pipeline.latent_moments.noisy import NoisyMoments

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

SHARE = 3e-4
"""How fine the boxes of latent sums are; see ``MomentPosterior``."""
_CELLS = 16
_NUMBERS = 2**20
_NEGLIGIBLE = 1e-11
_COARSE = (1e-4, 1e-3, 3e-3)
"""Weights of places of eight, four and two times the size below which they are not divided further."""
_PER_SPREAD = 16.0
_PER_WIDTH = 1.0
_PER_OCTAVE = 3.0
_FARTHEST = 128.0
_SMOOTH = 0.6
_LARGEST_MEAN, _LEAST_LOG = 1e70, -320.0
_DEEP = 16.0
"""Nats below its highest density at which a mixture no longer counts as resolved."""
_ALL = 1e-3
_LOW = 2.5
_HEAVY = 200
_PART_OF_A_ROW = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalInverseGammas:
    """Weighted laws of mean and log variance, in half ranges.

    Attributes
    ----------
    loc, precision, concentration : ndarray of shape (n_laws,), float64
        As in ``NormalInverseGamma``.
    log_variance : ndarray of shape (n_laws,), float64
        Log of scale over concentration.
    log_weight : ndarray of shape (n_laws,), float64
    """

    loc: Floats
    precision: Floats
    concentration: Floats
    log_variance: Floats
    log_weight: Floats

    @classmethod
    def single(cls, loc: float, precision: float, concentration: float, scale: float) -> NormalInverseGammas:
        """One law."""
        return cls(
            loc=np.array([loc]),
            precision=np.array([precision]),
            concentration=np.array([concentration]),
            log_variance=np.log([scale / concentration]),
            log_weight=np.zeros(1),
        )

    def beside(self, other: NormalInverseGammas, log_weight: float) -> NormalInverseGammas:
        """These laws and another one of such a weight."""
        return NormalInverseGammas(
            loc=np.append(self.loc, other.loc),
            precision=np.append(self.precision, other.precision),
            concentration=np.append(self.concentration, other.concentration),
            log_variance=np.append(self.log_variance, other.log_variance),
            log_weight=np.append(self.log_weight, log_weight),
        )

    def log_density(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log densities at places (n, p) and (n, q): (n, p, q)."""
        found = np.empty((len(mean), mean.shape[1], log_variance.shape[1]))
        batch = max(1, _NUMBERS // (mean.shape[1] * log_variance.shape[1] * len(self.loc)))
        for start in range(0, len(mean), batch):
            part = slice(start, start + batch)
            found[part] = self._log_density(mean[part], log_variance[part])
        return found

    def _log_density(self, mean: Floats, log_variance: Floats) -> Floats:
        # Beyond these, numbers would overflow; no law has anything left there.
        mean = np.clip(mean, -_LARGEST_MEAN, _LARGEST_MEAN)
        log_variance = np.maximum(log_variance, _LEAST_LOG)
        height = log_height(self.concentration) + np.log(self.precision / (2.0 * np.pi)) / 2.0
        distance = self.log_variance - log_variance[:, :, None]
        # Large numbers cancel here, before anything else is added.
        deviance = self.concentration * (np.expm1(distance) - distance)
        of_variance = height + self.log_weight - deviance - log_variance[:, :, None] / 2.0
        squares = self.precision / 2.0 * (mean[:, :, None] - self.loc) ** 2
        parts = -squares[:, :, None, :] * np.exp(-log_variance)[:, None, :, None]
        parts += of_variance[:, None]
        top = np.max(parts, axis=-1)
        parts -= top[..., None]
        log_density: Floats = top + np.log(np.sum(np.exp(parts, out=parts), axis=-1))
        return log_density

    @property
    def ladders(self) -> tuple[list[Floats], list[Floats]]:
        """Places along both sides about the mixture, and about its heaviest law."""
        weight = np.exp(self.log_weight - np.max(self.log_weight))
        weight /= np.sum(weight)
        heaviest = int(np.argmax(weight))
        widths = (np.sqrt(np.exp(self.log_variance) / self.precision), self.concentration**-0.5)
        found = []
        for centre, width in zip((self.loc, self.log_variance), widths, strict=True):
            middle = float(weight @ centre)
            spread = float(np.sqrt(weight @ (width**2 + (centre - middle) ** 2)))
            found.append([middle + spread * PANELS, centre[heaviest] + width[heaviest] * PANELS])
        return found[0], found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The posterior of one cell under a conjugate prior.

    Attributes
    ----------
    prior, posterior : NormalInverseGammas
        The prior's law, and the mixture.
    log_evidence : float
    log_empty : float
        Log probability of no rows at all: given these, the prior's law is left. Minus infinity without.
    least_rows : float
        The fewest rows there may be.
    top : float
        About the highest log density of the mixture.
    """

    prior: NormalInverseGammas
    posterior: NormalInverseGammas
    log_evidence: float
    log_empty: float
    least_rows: float
    top: float

    @classmethod
    def of(
        cls,
        prior: NormalInverseGammas,
        posterior: NormalInverseGammas,
        log_evidence: float = 0.0,
        log_empty: float = -np.inf,
        least_rows: float = 0.0,
    ) -> Reference:
        """Put all together."""
        heavy = np.argsort(-posterior.log_weight)[:_HEAVY]
        centres = posterior.loc[heavy, None], posterior.log_variance[heavy, None]
        there = posterior.log_density(*centres)
        return cls(
            prior=prior,
            posterior=posterior,
            log_evidence=log_evidence,
            log_empty=log_empty,
            least_rows=least_rows,
            top=float(np.max(there)),
        )

    def knows(self, mean: Floats, log_variance: Floats) -> NDArray[np.bool_]:
        """Whether the likelihood follows at places (n, p) and (n, q): (n, p, q).

        It does near the mixture, and where no rows explain all.
        """
        log_density = self.posterior.log_density(mean, log_variance)
        empty = self.prior.log_density(mean, log_variance) + self.log_empty
        # Where the prior itself all but excludes variances so small, that no rows are left means nothing.
        is_low = log_variance[:, None, :] < self.prior.log_variance - _LOW
        return (log_density > self.top - _DEEP) | ((empty > log_density - _ALL) & ~is_low)


def references_of(noisy: NoisyMoments) -> Iterator[Reference]:
    """The mixtures of every cell under the prior that the noisy moments state."""
    prior = NormalInverseGammas.single(noisy.loc, noisy.precision, noisy.concentration, noisy.scale)
    for start in range(0, len(noisy.values), _CELLS):
        batch = noisy.take(np.arange(start, min(start + _CELLS, len(noisy.values))))
        weights = MomentWeights.of(batch)
        nodes = integrate(weights, cover(weights, SHARE)[0])
        is_empty = nodes.given.concentration <= noisy.concentration
        empty = np.bincount(nodes.cell[is_empty], nodes.weight[is_empty], len(batch.values))
        with np.errstate(divide="ignore"):
            log_empty = np.log(empty)
        least = _least_rows(nodes, noisy.concentration, len(batch.values))
        mixtures = _merged(nodes, ~is_empty, len(batch.values), prior)
        of_cells = zip(mixtures, nodes.log_evidence, log_empty, least, strict=True)
        for mixture, log_evidence, none, rows in of_cells:
            parts = mixture if np.isneginf(none) else mixture.beside(prior, float(none))
            yield Reference.of(prior, parts, float(log_evidence), float(none), float(rows))


def _least_rows(nodes: Nodes, concentration: float, cells: int) -> Floats:
    """The fewest rows of every cell: 0 or 1 if at all possible, or else what is not negligible."""
    rows = np.rint(2.0 * (nodes.given.concentration - concentration))
    possible = nodes.weight > np.where(rows <= 1.0, 0.0, _NEGLIGIBLE)
    least = np.full(cells, np.inf)
    np.minimum.at(least, nodes.cell[possible], rows[possible])
    return least


def _merged(
    nodes: Nodes, kept: NDArray[np.bool_], cells: int, prior: NormalInverseGammas
) -> list[NormalInverseGammas]:
    """Merge nodes into laws, cell by cell; none has wider tails than the prior."""
    given = nodes.given
    log_variance = np.log(given.scale / given.concentration)
    laws = (
        smeared(given.loc, np.exp(log_variance / 2.0) / np.sqrt(given.precision)),
        smeared(log_variance, given.concentration**-0.5),
    )
    kept = kept & (nodes.weight > _NEGLIGIBLE)
    cell, weight = nodes.cell[kept], nodes.weight[kept]
    sides = [_Side.of(loc[kept], width[kept], weight, cell, cells) for loc, width in laws]
    first, index = _groups(cell, sides, weight)
    total = np.bincount(index, weight)
    (mean, of_mean), (log_variance, of_variance) = (side.merged(index, weight, cell[first]) for side in sides)
    # Updates of a conjugate prior have thinner tails than it. Merging must leave them so, or else the
    # likelihood would rise without end: rows add to the precision, and to the scale what makes it fall.
    concentration = np.maximum(1.0 / of_variance, prior.concentration)
    precision = np.maximum(np.exp(log_variance) / of_mean, prior.precision + _PART_OF_A_ROW)
    pull = prior.precision * precision / (precision - prior.precision) * (mean - prior.loc) ** 2 / 2.0
    least = prior.concentration * np.exp(prior.log_variance) + pull
    log_variance = np.maximum(log_variance, np.log(least / concentration))
    ends = np.searchsorted(cell[first], np.arange(cells + 1))
    return [
        NormalInverseGammas(
            loc=mean[own],
            precision=precision[own],
            concentration=concentration[own],
            log_variance=log_variance[own],
            log_weight=np.log(total[own]),
        )
        for own in (slice(start, stop) for start, stop in itertools.pairwise(ends))
    ]


def _groups(cell: Integers, sides: list[_Side], weight: Floats) -> tuple[Integers, Integers]:
    """The first node of every group, by cells, and the group of every node: coarse ones where little is."""
    coarse = np.full(len(cell), len(_COARSE), dtype=np.int64)
    for step, most in enumerate(_COARSE):
        left = np.flatnonzero(coarse == len(_COARSE))
        shift = len(_COARSE) - step
        columns = [column[left] >> shift for side in sides for column in (side.level, side.place)]
        _, index = np.unique(np.stack([cell[left], *columns], axis=1), axis=0, return_inverse=True)
        index = index.ravel()
        coarse[left[np.bincount(index, weight[left])[index] < most]] = step
    own = len(_COARSE) - coarse
    columns = [column >> own for side in sides for column in (side.level, side.place)]
    keys = np.stack([cell, coarse, *columns], axis=1)
    _, first, found = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, found.ravel()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Nodes along one side of the plane, and which of them are not told apart.

    Attributes
    ----------
    centre, width : ndarray of shape (n_nodes,), float64
    level, place : ndarray of shape (n_nodes,), int64
        Of widths, and of centres in steps that grow with the width.
    middle, spread, step : ndarray of shape (n_cells,), float64
        Mean and standard deviation of everything, and the least step of places.
    """

    centre: Floats
    width: Floats
    level: Integers
    place: Integers
    middle: Floats
    spread: Floats
    step: Floats

    @classmethod
    def of(cls, centre: Floats, width: Floats, weight: Floats, cell: Integers, cells: int) -> _Side:
        total = np.maximum(np.bincount(cell, weight, cells), 1e-300)
        middle = np.bincount(cell, weight * centre, cells) / total
        square = np.bincount(cell, weight * ((centre - middle[cell]) ** 2 + width**2), cells) / total
        spread = np.sqrt(square)
        # Far narrower than places are apart, widths are all one.
        least = -np.log2(_PER_SPREAD / _PER_WIDTH)
        level = np.rint(_PER_OCTAVE * np.maximum(np.log2(width / spread[cell]), least)).astype(np.int64)
        step = np.exp2(level / _PER_OCTAVE) / _PER_WIDTH * spread[cell]
        # Far out in the tails places grow, so that their number is bounded.
        place = (centre - middle[cell]) / step
        place = np.rint(place / (1.0 + np.abs(place) / _FARTHEST)).astype(np.int64)
        return cls(
            centre=centre,
            width=width,
            level=level,
            place=place,
            middle=middle,
            spread=spread,
            step=spread / _PER_SPREAD,
        )

    def merged(self, index: Integers, weight: Floats, owner: Integers) -> tuple[Floats, Floats]:
        """Centres and squared widths of what is merged, smooth, without a change of mean and spread."""
        total = np.bincount(index, weight)
        centre = np.bincount(index, weight * self.centre) / total
        square = np.bincount(index, weight * ((self.centre - centre[index]) ** 2 + self.width**2)) / total
        # Laws much narrower than they are apart would leave ripples.
        smooth = np.maximum(square, (_SMOOTH * self.step[owner]) ** 2)
        cells = len(self.middle)
        gained = np.bincount(owner, total * (smooth - square), cells)
        about = centre - self.middle[owner]
        between = np.bincount(owner, total * about**2, cells)
        shrunk = np.sqrt(np.maximum(1.0 - gained / np.maximum(between, 1e-300), 0.0))
        return self.middle[owner] + shrunk[owner] * about, smooth


def log_height(concentration: Floats) -> Floats:
    """Return a log a - a - log gamma(a)."""
    from scipy.special import gammaln  # noqa: PLC0415 - slow to import

    large = np.maximum(concentration, 100.0)
    series = 0.5 * np.log(large / (2.0 * np.pi)) - 1.0 / (12.0 * large) + 1.0 / (360.0 * large**3)
    small = np.minimum(concentration, 100.0)
    exact = small * np.log(small) - small - gammaln(small)
    return np.where(concentration < 100.0, exact, series)
