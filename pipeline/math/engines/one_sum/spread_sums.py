r"""Sums under priors that are spread over scales, and moments of the parameter with what far tails hold.

Priors that are spread over scales: the prior is a mixture of :math:`\mathrm{Gamma}(a, b_j)` with weights
:math:`w_j`. Pairs that are next to impossible may then hold most of a moment: one that is e^-22 times as
probable as others may have a square that is 10^10 times theirs. Such pairs are resolved by

.. math::
    W(N, S) \, E[\theta^2 \mid N, S] \qquad (2)

    w_j \, \theta^p \, \mathrm{Gamma}(\theta; a, b_j) \propto
        w_j b_j^{-p} \, \mathrm{Gamma}(\theta; a + p, b_j) \qquad (3)

    E[(\theta - c)^k] = \frac{\sum W \, (1 - \phi) \, m_k}{\sum W} + \frac{\sum W E[\theta^2 \mid N, S] \;
        \bigl(\phi \, m_k / E[\theta^2 \mid N, S]\bigr)}{\sum W}, \qquad
    m_k = E[(\theta - c)^k \mid N, S], \quad \phi = \frac{m_2}{v + m_2} \qquad (4)

By (3), (2) is W under the tilted prior, times the prior's second moment. The first sum of (4) is over the
pairs that hold the mass: no square in it is above v, so that none that they miss counts. The second is over
pairs that hold (2): of those that hold the mass it has next to nothing, as :math:`\phi` is small there. It is
worked out only where ``_left_out`` cannot rule out that far pairs hold more than e^-16 of a variance.

============ =================== =============================== =============== ============
symbol       in the code         meaning                         shape           unit
============ =================== =============================== =============== ============
b_j          ``rates``           rates of the prior's components (n_components,) that of T
w_j          ``weights``         their weights                   (n_components,) none
a            ``concentration``   that of all components, above 2 ()              none
k, w         ``shape, share``    of T: of a row, in the update   ()              none
theta        by ``update``       the parameter                   (n_nodes,)      parameter
c            ``centre``          about the mean of near pairs    (n_cells,)      parameter
v            ``late``            400 times about their variance  (n_cells,)      its square
============ =================== =============================== =============== ============
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias, cast

import numpy as np

from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.intervals import moments_about
from suffice.pipeline.math.engines.one_sum.nodes import batches, resolve
from suffice.pipeline.math.engines.one_sum.noisy_sum import SumSupport, log_rising_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.nodes import LatentPairs
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats

    Update: TypeAlias = Callable[[Floats, Floats], Distribution]
    FarSums: TypeAlias = Callable[[NoisySums, Update, "NearMoments"], Floats]

_NEGLIGIBLE = -16.0
"""Log of the share of a variance that may be left out: 1e-7."""
DEEP = 32.0
"""Nats within which pairs are resolved by squares: that of a mean may be e^10 times a variance."""
_LATE = 400.0
"""v of (4) over about the variance of near pairs."""
_AT_A_TIME = 1 << 13
"""Pairs that are split among components at a time."""


def moments_of_all(
    sums: NoisySums, update: Update, near: NearMoments, by_loops: FarSums | None = None
) -> tuple[Floats, Floats]:
    """Return means and standard deviations, (n_cells,), with far tails where those may matter.

    Parameters
    ----------
    sums, update
        As of ``LatentSumPosterior``.
    near : NearMoments
        Of all cells.
    by_loops : callable, optional
        As ``_far_sums``, for many cells: no numbers where it leaves cells to arrays.
    """
    means, sds = near.means.copy(), near.sds.copy()
    if near.bounded is None:
        return means, sds
    far = np.flatnonzero(_left_out(sums, update, near) > _NEGLIGIBLE)
    if not far.size:
        return means, sds
    of_far, known = sums.take(far), near.take(far)
    second_sums = np.full((len(far), 2), np.nan)
    if by_loops is not None:
        second_sums = by_loops(of_far, update, known)
    left = np.flatnonzero(np.isnan(second_sums[:, 0]))
    if left.size:
        of_left = of_far.take(left)
        second_sums[left] = np.concatenate(
            [_far_sums(of_left.take(batch), update, known.take(left[batch])) for batch in batches(of_left)]
        )
    centre, _, *bounded = near.bounded[far].T
    means[far], sds[far] = _summed(centre, *(np.stack(bounded) + second_sums.T))
    return means, sds


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMoments:
    """Moments of the pairs that hold the posterior's mass, whatever far tails add to them.

    Attributes
    ----------
    means, sds : ndarray of shape (n_cells,), float64
    log_evidence : ndarray of shape (n_cells,), float64
        As in ``LatentPairs``.
    most : ndarray of shape (n_cells,), float64
        The largest N of a cell's pairs.
    bounded : ndarray of shape (n_cells, 4), float64, or None
        c, v and the first sums of (4), k = 1 and 2; None where the prior is not spread.
    """

    means: Floats
    sds: Floats
    log_evidence: Floats
    most: Floats
    bounded: Floats | None = None

    @classmethod
    def of(cls, pairs: LatentPairs, moments: tuple[Floats, Floats], bounded: Floats | None = None) -> Self:
        """Put moments of pairs beside what else is asked of these."""
        means, sds = moments
        most = np.zeros(len(means))
        np.maximum.at(most, pairs.cell, pairs.n)
        return cls(means=means, sds=sds, log_evidence=pairs.log_evidence, most=most, bounded=bounded)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Those of consecutive cells."""
        bounded = [part.bounded for part in parts if part.bounded is not None] or None
        return cls(
            means=np.concatenate([part.means for part in parts]),
            sds=np.concatenate([part.sds for part in parts]),
            log_evidence=np.concatenate([part.log_evidence for part in parts]),
            most=np.concatenate([part.most for part in parts]),
            bounded=None if bounded is None else np.concatenate(bounded),
        )

    def take(self, cells: Cells) -> Self:
        """Those of the given cells."""
        return replace(
            self,
            means=self.means[cells],
            sds=self.sds[cells],
            log_evidence=self.log_evidence[cells],
            most=self.most[cells],
            bounded=None if self.bounded is None else self.bounded[cells],
        )


def near_moments(
    pairs: LatentPairs, update: Update, marginal: SpreadGammaGamma, about: tuple[Floats, Floats]
) -> NearMoments:
    """Return moments of pairs, given about what their means and standard deviations are."""
    centre, late = about[0], _LATE * about[1] ** 2
    parts = _about(pairs, update, marginal, centre[pairs.cell])
    kept = pairs.weight / (1.0 + parts[1] / late[pairs.cell])
    # (4), the first sum.
    bounded = _by_cell(pairs, kept, parts, len(centre))
    whole = _by_cell(pairs, pairs.weight, parts, len(centre))
    return NearMoments.of(pairs, _summed(centre, *whole), np.stack([centre, late, *bounded], axis=1))


def tilted_sums(sums: NoisySums, update: Update) -> tuple[NoisySums, float]:
    """Return sums under the prior times the parameter's square, and what that square is under the prior."""
    marginal = cast("SpreadGammaGamma", sums.marginal)
    # Of an inverse gamma the parameter is one over the rate: its square is the rate to the power of -2.
    power = 2 if isinstance(update(np.zeros(1), np.zeros(1)), GammaDistribution) else -2
    none = np.zeros(1)
    # (2) = tilted W times E[theta^2] under the prior, which is that given no records.
    _, prior = _about(_Pairs(n=none, total=none), update, marginal, none)
    return replace(sums, marginal=marginal.tilted(power), from_nothing=True), float(prior[0])


def _far_sums(sums: NoisySums, update: Update, near: NearMoments) -> Floats:
    """Return the second sums of (4), k = 1 and 2, (n_cells, 2)."""
    tilted, prior = tilted_sums(sums, update)
    pairs = resolve(tilted, nats=DEEP)
    cell = pairs.cell
    centre, late, *_ = cast("Floats", near.bounded).T
    first, second = _about(pairs, update, cast("SpreadGammaGamma", sums.marginal), centre[cell])
    # E theta^2 from moments about c, of terms above 0 but for the middle one, which is no larger than those.
    square = second + centre[cell] * (2.0 * first + centre[cell])
    # (4), the second sum.
    weight = pairs.weight * (prior * np.exp(pairs.log_evidence - near.log_evidence))[cell]
    weight *= second / (late[cell] + second) / square
    return np.stack(_by_cell(pairs, weight, (first, second), len(centre)), axis=1)


def _by_cell(pairs: LatentPairs, weight: Floats, parts: tuple[Floats, Floats], cells: int) -> list[Floats]:
    """Add up parts of moments, weighed, (n_cells,) each."""
    return [np.bincount(pairs.cell, weight * part, cells).astype(np.float64, copy=False) for part in parts]


def _summed(centre: Floats, shift: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return means and standard deviations from moments about centres near the means."""
    # Var = E (theta - c)^2 - (E theta - c)^2: both small where c is near the mean, so nothing cancels.
    return centre + shift, np.sqrt(np.maximum(spread - shift**2, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    n: Floats
    total: Floats


def _about(
    pairs: LatentPairs | _Pairs, update: Update, marginal: SpreadGammaGamma, centre: Floats
) -> tuple[Floats, Floats]:
    """Return the first two moments about centres given pairs, each (n_pairs,)."""
    moments = np.empty((2, len(pairs.n)))
    centre = np.broadcast_to(centre, len(pairs.n))
    # As many at a time as the processor's cache holds.
    for start in range(0, len(pairs.n), _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        n, total = pairs.n[part], pairs.total[part]
        moments[:, part] = marginal.moments(total, n, update(n, total), centre[part])
    return moments[0], moments[1]


def _left_out(sums: NoisySums, update: Update, near: NearMoments) -> Floats:
    """Return logs of bounds on what of variances, over themselves, is where sums are next to 0.

    There a rate is large. Of an inverse gamma large parameters go with large sums, whose weight falls
    exponentially in S while squares rise as S^2: far pairs hold nothing, and this number only says whether
    they are resolved all the same.
    """
    none = np.zeros(sums.n_cells)
    _, second = moments_about(update(near.most, none), none)
    # Of no N is the noise of a sum of 0 likelier than that of the sums alone.
    is_sum = sums.totals.coefficients[:, 0] == 0.0
    # As A goes to 0 the noise of its sum leaves e^(-|y| / b) of W. Of near pairs the largest N gives a rate
    # its largest second moment.
    log_noise = -np.abs(sums.totals.values[:, is_sum]) @ sums.totals.rate[is_sum]
    bound: Floats = log_noise + np.log(second) - near.log_evidence - 2.0 * np.log(near.sds)
    return bound


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadGammaGamma:
    r"""S given N under a mixture of :math:`\mathrm{Gamma}(a, b_j)` priors of the rate, weights :math:`w_j`.

    .. math:: p(S \mid N) = \sum_j w_j \, p_j(S \mid N), \qquad
              r \mid N, S, j \sim \mathrm{Gamma}(a + kN, b_j + w S)

    What :math:`b_j` adds is what a sum larger by :math:`(b_j - b_0) / w` would add to :math:`b_0`: given j, a
    pair (N, S) leads to the posterior that the first component has of a shifted pair.

    Parameters
    ----------
    weights, rates : tuple of float
        Of the components; rates ascend.
    """

    weights: tuple[float, ...]
    concentration: float
    rates: tuple[float, ...]
    shape: float = 1.0
    share: float = 1.0
    support: ClassVar[SumSupport] = SumSupport.POSITIVE
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log density."""
        shape, part = self.shape * n, self.share * total
        log_density: Floats = (
            (log_rising_ratio(self.concentration, shape) + np.log(shape))
            + self._log_mixed(part, shape)
            - (self.concentration * np.log(part) + np.log(total))
        )
        return log_density

    def _log_mixed(self, part: Floats, shape: Floats) -> Floats:
        """Log of the sum over components of w b^a (1 + b / (w S))^-(k N + a)."""
        power = -(self.concentration + shape)
        # The rate under which the sum is likeliest, between the components', bounds all their terms.
        # b^a (w S)^(kN - 1) / (b + w S)^(kN + a) is largest at b = a w S / (kN): no term is above this one.
        nearest = np.clip(part * self.concentration / shape, self.rates[0], self.rates[-1])
        top = self.concentration * np.log(nearest) + power * np.log1p(nearest / part)
        mixed = np.zeros(top.shape)
        term = np.empty(top.shape)
        for weight, rate in zip(self.weights, self.rates, strict=True):
            np.divide(rate, part, out=term)
            np.log1p(term, out=term)
            term *= power
            term -= top
            np.exp(term, out=term)
            term *= weight * rate**self.concentration
            mixed += term
        return np.asarray(top + np.log(mixed))

    def tilted(self, power: int) -> Self:
        r"""Return the same under the prior times a power of the rate, over its integral.

        .. math::
            w_j \, r^p \, \mathrm{Gamma}(r; a, b_j) \propto w_j b_j^{-p} \, \mathrm{Gamma}(r; a + p, b_j)
        """
        smallest = self.rates[0]
        # (3): the integral of r^p under Gamma(a, b) is proportional to b^-p.
        weights = [w * (rate / smallest) ** -power for w, rate in zip(self.weights, self.rates, strict=True)]
        whole = math.fsum(weights)
        return replace(
            self,
            weights=tuple(weight / whole for weight in weights),
            concentration=self.concentration + power,
        )

    def spread(self, total: Floats, n: Floats) -> Floats:
        """That of the logarithm of S."""
        return np.broadcast_to(1.0 / np.sqrt(self.shape * n), np.broadcast_shapes(total.shape, n.shape))

    def typical(self, n: Floats) -> Floats:
        """The mode of the logarithm of S under the heaviest component."""
        heaviest = self.rates[int(np.argmax(self.weights))]
        return heaviest * self.shape * n / self.concentration / self.share

    @property
    def shifts(self) -> Floats:
        """How much larger each component's posterior takes S for than the first one's."""
        # b_j + w S = b_0 + w (S + (b_j - b_0) / w): component j of S is component 0 of a larger sum.
        return (np.array(self.rates) - self.rates[0]) / self.share

    def shares(self, total: Floats, n: Floats) -> Floats:
        """Posterior probabilities of the components given pairs (n_pairs,): (n_components, n_pairs)."""
        none = n < 1.0  # no records, whose sum is 0, tell nothing
        terms = self._log_terms(np.where(none, 1.0, total), self.shape * n)
        terms -= np.max(terms, axis=0)
        np.exp(terms, out=terms)
        terms[:, none] = 1.0
        terms *= np.array(self.weights)[:, None]
        terms /= np.sum(terms, axis=0)
        return terms

    def moments(self, total: Floats, n: Floats, given: Distribution, centre: Floats) -> Floats:
        """Moments about centres given pairs, (2, n_pairs); `given` is what the first component leads to."""
        (name,) = given.parameters
        mean = given.mean(name)
        # Components have the same concentration, which alone decides the variance over the mean's square.
        relative = (given.sd(name) / mean) ** 2
        is_inverse, part = not isinstance(given, GammaDistribution), self.share * total
        moments = np.zeros((2, len(n)))
        for share, rate in zip(self.shares(total, n), self.rates, strict=True):
            # A rate's mean is a number over b_j + w S, that of one over the rate is a multiple of it.
            ratio = (rate + part) / (self.rates[0] + part)
            of_component = mean * ratio if is_inverse else mean / ratio
            away = of_component - centre
            # Var + (E - c)^2, weighed.
            moments[0] += share * away
            moments[1] += share * (away * away + relative * of_component * of_component)
        return moments

    def shifted(self, total: Floats, n: Floats, rng: np.random.Generator) -> Floats:
        """Shift sums as a component of every pair that is drawn by its share does, (n_pairs,)."""
        ends = np.cumsum(self.shares(total, n), axis=0)
        # Given (N, S) the component is one of j with probability `shares`; its posterior is that of a
        # shifted sum.
        drawn = np.sum(rng.random(len(total)) > ends[:-1], axis=0)
        shifted: Floats = total + self.shifts[drawn]
        return shifted

    def _log_terms(self, total: Floats, shape: Floats) -> Floats:
        """What of the components' log densities depends on their rates, component by component."""
        part = self.share * total
        power = -(self.concentration + shape)
        log_terms = np.empty((len(self.rates), *part.shape))
        for j, rate in enumerate(self.rates):
            np.divide(rate, part, out=log_terms[j])
            np.log1p(log_terms[j], out=log_terms[j])
            log_terms[j] *= power
            log_terms[j] += self.concentration * math.log(rate)
        return log_terms
