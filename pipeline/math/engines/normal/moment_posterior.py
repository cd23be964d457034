r"""Exact posteriors of a normal's mean and variance when N and the sums are latent behind Laplace noise.

Model. z is a column in half ranges about the centre, N, m and :math:`E = q / N - m^2` its number of rows,
their mean and their mean square deviation, q the sum of squares; every released component is :math:`N (A +
B m + C (m^2 + E))` plus Laplace noise. The density p(N, m, log E, y) is (3) of ``moment_weights``; the
question is

.. math:: p(\mu, \sigma^2 \mid y) = \sum_N \int \mathrm{NIG}(\mu, \sigma^2 \mid N, m, E) \,
    p(N, m, \log E \mid y) \, dm \, d\log E \qquad (1)

N = 0 is a point and N = 1 a curve (E = 0), both with their own weight. Where rows of one unit are alike, with
design effects d of which all are equally likely, N and E are as probable as before, and the parameters are
:math:`\mathrm{NIG}(\mu, \sigma^2 \mid N / d, m, E)`, averaged over d: an approximation.

Method and error: the first boxes hold all N, m and E but what the noise, or the noise and the prior, leave
less than e^-45 of the peak. Boxes are cut in two, those with most to gain first, until the bounds are close
to the density, to ``SHARE`` of the mass: no window is guessed, so none can miss the mode. Draws are exact
and independent: a box by the bound of its mass, a point in it, accepted by density over bound (2). Means are
within 0.002 sd and sds within 0.5 %: docs/decisions/0014-latent-moments-exactly.md.

.. math:: P(\text{accept}) = p(N, m, \log E, y) \, / \, \text{bound of the box} \qquad (2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaDistribution
from suffice.pipeline.math.engines.normal.marginal_quantiles import MarginalMixture
from suffice.pipeline.math.engines.normal.moment_weights import (
    LOG_ZERO,
    Boxes,
    Given,
    MomentWeights,
    integrate,
    mean_moments,
    variance_moments,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments
    from suffice.typing import Cells, Floats, Parts

    Sides: TypeAlias = NDArray[np.int64]


NATS = 45.0
SHARE = 1.0 / 250.0
"""A box is cut while the share of its cell's mass that cutting may take off its bound is above this."""
_NEGLIGIBLE = 35.0
"""Nats below the mass of a box that is nearly constant, at which another is left out."""
_RESOLVED = 1.0
"""Nats between a box's bound and the least density seen in it, up to which it is nearly constant."""
_ACCEPTED = 0.2
"""Least part of the bounds' mass that the density is to have, about."""
_FAR = 5.0
"""Nats above the highest density seen at which a bound is far too high."""


def cover(weights: MomentWeights, share: float = SHARE) -> tuple[Boxes, Floats]:
    """Boxes of all cells, cell by cell, and the log of a bound of the mass on each."""
    cells = weights.noisy.totals.n_cells
    boxes = first_boxes(weights)
    measures, middles, side = _measured(weights, boxes)
    resolved, peak = np.full((2, cells), -np.inf)
    while True:
        cell, (mass, bound, middle, least) = boxes.cell, measures
        slack = bound - least
        np.maximum.at(resolved, cell, np.where(slack <= _RESOLVED, mass - slack, -np.inf))
        np.maximum.at(peak, cell, middle)
        top, highest, worst = np.full((3, cells), -np.inf)
        np.maximum.at(top, cell, mass)
        np.maximum.at(highest, cell, bound)
        part = np.exp(mass - top[cell])
        part /= np.bincount(cell, part, cells)[cell]
        keep = mass > resolved[cell] - _NEGLIGIBLE
        # What cutting may take off: the mass times 1 - e^-(bound - least density).
        excess = np.where(keep, part * -np.expm1(-slack), 0.0)
        # Many small boxes may still have bounds far above the density: then the worst of them are cut.
        np.maximum.at(worst, cell, excess)
        accepted = np.bincount(cell, part * np.exp(middle - bound), cells)
        level = np.where(accepted < _ACCEPTED, np.minimum(share, worst / 4.0), share)
        cut = excess > level[cell]
        # Bounds far above the highest density found cannot stay: those above the middle are cut together.
        hopeless = np.maximum((highest + peak) / 2.0, peak + _FAR)
        cut |= keep & (bound > hopeless[cell]) & (slack > _RESOLVED)
        if not np.any(cut):
            break
        keep &= ~cut
        parents, kept = np.flatnonzero(cut), np.flatnonzero(keep)
        halves = _halves(boxes.take(parents), np.take(middles, parents, axis=0), side[parents])
        more = _measured(weights, halves)
        boxes = _joined([boxes.take(kept), halves])
        measures = np.concatenate([np.take(measures, kept, axis=1), more[0]], axis=1)
        middles = np.concatenate([np.take(middles, kept, axis=0), more[1]])
        side = np.concatenate([side[kept], more[2]])
    order = np.argsort(boxes.cell, kind="stable")
    return boxes.take(order), measures[0, order]


def first_boxes(weights: MomentWeights) -> Boxes:
    """N = 0, N = 1 and N >= 2 of every cell, as far as the prior of N and the noise allow them."""
    noisy, rows = weights.noisy, weights.rows
    cell, part = _cells_and_parts(weights)
    ones = np.ones(len(cell))
    least, most = (float(end) for end in noisy.n_prior.support)
    reach = _reach(weights)
    # Nothing but the rows of q and of N: where |observed - row| is above the reach, no mass is left.
    row_of_q = int(np.argmax((rows[:, 1] == 0.0) & (rows[:, 2] > 0.0)))
    # C q <= y + reach, and q = N (m^2 + E): bounds of |m| and of E.
    square = (np.maximum(weights.observed[cell, row_of_q], 0.0) + reach) / rows[row_of_q, 2]
    low_n, high_n = ones * max(least, 2.0), ones * most
    row_of_n = (rows[:, 1] == 0.0) & (rows[:, 2] == 0.0)
    if np.any(row_of_n):
        row = int(np.argmax(row_of_n))
        middle, width = weights.observed[cell, row] / rows[row, 0], reach / rows[row, 0]
        low_n = np.clip(np.floor(middle - width), low_n, max(most, 2.0))
        high_n = np.clip(np.ceil(middle + width), low_n, max(most, 2.0))
    zero = ones * LOG_ZERO
    sides: list[tuple[tuple[Floats, Floats, Floats], tuple[Floats, Floats, Floats]]] = []
    if least <= 0.0:
        sides.append(((0.0 * ones, 0.0 * ones, zero), (0.0 * ones, 0.0 * ones, zero)))
    if least <= 1.0 <= most:
        width = np.sqrt(square)
        sides.append(((ones, -width, zero), (ones, width, zero)))
    if most >= 2.0:
        width, top = np.sqrt(square / low_n), np.log(square / low_n)
        # Below, the noise has no say any more, and the density in log E falls at least as sqrt(E).
        silent = -np.log(high_n * np.max(np.abs(rows[:, 2])))
        bottom = np.minimum(np.minimum(silent, np.log(noisy.prior.at(part).scale / high_n)), top) - 2.0 * NATS
        sides.append(((low_n, -width, np.maximum(bottom, LOG_ZERO)), (high_n, width, top)))
    return _joined(
        [
            Boxes(cell=cell, part=part, low=np.stack(low, axis=1), high=np.stack(high, axis=1))
            for low, high in sides
        ]
    )


def _cells_and_parts(weights: MomentWeights) -> tuple[Cells, Parts]:
    """Every cell beside every part of the prior, cell by cell."""
    cells, parts = weights.noisy.totals.n_cells, weights.noisy.prior.n_parts
    return np.repeat(np.arange(cells), parts), np.tile(np.arange(parts), cells)


def _reach(weights: MomentWeights) -> Floats:
    """How many nats of noise a part of the prior can make up for, and 2 ``NATS`` on top: (n_cells n_parts,).

    The best density is only estimated, from below, which the second half allows for.
    """
    noisy = weights.noisy
    cell, part = _cells_and_parts(weights)
    prior = noisy.prior.at(part)
    least, most = (float(end) for end in noisy.n_prior.support)
    estimate = np.take(weights.estimates, cell, axis=0)
    none = np.zeros(len(cell))
    best = np.full(len(cell), -np.inf)
    for number in (estimate[:, 0], none, none + 1.0, none + 2.0):
        n = np.clip(np.rint(number), least, most)
        safe = np.maximum(n, 1.0)
        average = np.clip(estimate[:, 1] / safe, -1.0, 1.0)
        around_prior = none + np.log(prior.scale / (prior.concentration + 1.0))
        for mean in (average, none + prior.loc):
            spread = np.maximum(estimate[:, 2] / safe - mean**2, 1e-6)
            for log_e in (np.log(spread), around_prior, np.log(0.1 / (safe * np.max(noisy.totals.rate)))):
                point = np.where(n <= 1.0, LOG_ZERO, log_e)
                at = np.where(n == 0.0, 0.0, mean)
                best = np.maximum(best, weights.log_weight(cell, part, n, at, point))
    parts = noisy.prior.n_parts
    # The best of all parts is what each has to compete with.
    best = np.repeat(np.max(best.reshape(-1, parts), axis=1), parts)
    least_n, most_n = max(least, 2.0), max(most, 2.0)
    ends = np.array([[0.0, 0.0, LOG_ZERO], [1.0, 1.0, LOG_ZERO], [least_n, most_n, -LOG_ZERO]])
    each = np.repeat(np.arange(parts), len(ends))
    first, last, highest = np.tile(ends, (parts, 1)).T
    loc = np.zeros(len(each)) + noisy.prior.at(each).loc
    everything = Boxes(
        cell=np.zeros(len(each), dtype=np.int64),
        part=each,
        low=np.stack([first, loc, np.full(len(each), LOG_ZERO)], axis=1),
        high=np.stack([last, loc, highest], axis=1),
    )
    bound = np.max(weights.log_prior_bound(everything).reshape(parts, -1), axis=1)
    return np.asarray(np.maximum(bound[part] - best, 0.0) + 2.0 * NATS, dtype=np.float64)


def _measured(weights: MomentWeights, boxes: Boxes) -> tuple[Floats, Floats, Sides]:
    """Measure boxes.

    Logs (4, n_boxes) of a bound of the mass, a bound of the density, the density in the middle and the least
    one seen; where to cut each side; and the side to cut: the one along which density or bound change most.
    """
    bound = weights.log_bound(boxes)
    middle = _middles(weights, boxes)
    n, mean, log_e = middle.T
    cell, part = boxes.cell, boxes.part
    of_n = weights.log_of_n(part, n)
    at_middle = weights.log_weight(cell, part, n, mean, log_e, of_n)
    least = at_middle
    changes = np.empty_like(middle)
    for side in range(3):
        lowest = highest = at_middle
        for end in (boxes.low, boxes.high):
            point = list(middle.T)
            point[side] = end[:, side]
            density = weights.log_weight(cell, part, point[0], point[1], point[2], of_n if side else None)
            lowest, highest = np.minimum(lowest, density), np.maximum(highest, density)
        if side == 0:
            # Along N bounds may be loose where the density hardly changes.
            wide = np.flatnonzero(boxes.high[:, 0] > boxes.low[:, 0])
            few, thin = boxes.take(wide), middle[wide]
            low, high = thin.copy(), thin.copy()
            low[:, 0], high[:, 0] = few.low[:, 0], few.high[:, 0]
            highest[wide] = weights.log_bound(replace(few, low=low, high=high))
        changes[:, side] = np.where(boxes.high[:, side] > boxes.low[:, side], highest - lowest, -1.0)
        least = np.minimum(least, lowest)
    bound = np.maximum(bound, at_middle)
    measures = np.stack([bound + boxes.log_volume(), bound, at_middle, least])
    return measures, middle, np.argmax(changes, axis=1)


def _halves(boxes: Boxes, middle: Floats, side: Sides) -> Boxes:
    """Cut every box in two across one side."""
    flat = np.arange(3) == side[:, None]
    # N is counted from both ends, the others touch.
    after = np.where(np.arange(3) == 0, middle + 1.0, middle)
    return _joined(
        [
            replace(boxes, high=np.where(flat, middle, boxes.high)),
            replace(boxes, low=np.where(flat, after, boxes.low)),
        ]
    )


def _middles(weights: MomentWeights, boxes: Boxes) -> Floats:
    """Where to cut each side: in the middle of a scale that is fine about what was observed."""
    noisy = weights.noisy
    estimate = np.take(weights.estimates, boxes.cell, axis=0)
    noise = np.max(noisy.totals.scale)
    n = np.floor(_warped_middle(boxes.low[:, 0], boxes.high[:, 0], estimate[:, 0], noise))
    safe = np.maximum(n, 1.0)
    average = np.clip(estimate[:, 1] / safe, -2.0, 2.0)
    mean = _warped_middle(boxes.low[:, 1], boxes.high[:, 1], average, noise / safe)
    spread = np.maximum(estimate[:, 2] / safe - mean**2, noise / safe)
    log_e = _warped_middle(boxes.low[:, 2], boxes.high[:, 2], np.log(spread), noise / safe / spread)
    return np.asarray(np.clip(np.stack([n, mean, log_e], axis=1), boxes.low, boxes.high))


def _warped_middle(low: Floats, high: Floats, centre: Floats, scale: Floats | float) -> Floats:
    left, right = np.arcsinh((low - centre) / scale), np.arcsinh((high - centre) / scale)
    # Linear about the estimate, logarithmic far from it.
    middle = centre + scale * np.sinh((left + right) / 2.0)
    fits = (middle > low) & (middle < high)
    return np.where(fits, middle, (low + high) / 2.0)


def _joined(parts: list[Boxes]) -> Boxes:
    return Boxes(
        cell=np.concatenate([part.cell for part in parts]),
        part=np.concatenate([part.part for part in parts]),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
    )


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsDistribution:
    """Means and variances behind latent sums, as ``centre + half_range`` times what the posterior holds.

    Attributes
    ----------
    posterior : MomentPosterior
        In half ranges about the centre.
    centre, half_range : float
        In the column's unit.
    names : (str, str)
        The mean's and the variance's.
    """

    posterior: MomentPosterior
    centre: float
    half_range: float
    names: tuple[str, str] = ("mean", "variance")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.names

    @property
    def log_evidence(self) -> Floats:
        """Log densities of the noisy statistics under the prior, (n_cells,), up to one constant."""
        return self.posterior.log_evidence

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""
        return replace(self, posterior=self.posterior.take(cells))

    def mean(self, parameter: str) -> Floats:
        """Means."""
        if parameter == self.names[0]:
            return self.centre + self.half_range * self.posterior.mean[:, 0]
        return self.half_range**2 * self.posterior.mean[:, 1]

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        if parameter == self.names[0]:
            return self.half_range * self.posterior.sd[:, 0]
        return self.half_range**2 * self.posterior.sd[:, 1]

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles, from the integrals: they rest on no draws."""
        values = self.posterior.quantiles(self.names.index(parameter), q)
        if parameter == self.names[0]:
            return self.centre + self.half_range * values
        return self.half_range**2 * values

    def density(self, parameter: str, points: Floats) -> Floats:
        """Marginal densities at points (n_cells, n_points), from the integrals."""
        if parameter == self.names[0]:
            inside = (points - self.centre) / self.half_range
            return self.posterior.marginal(0).density(inside) / self.half_range
        square = self.half_range**2
        return self.posterior.marginal(1).density(points / square) / square

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        mean, variance = self.posterior.sample(draws, rng)
        return {
            self.names[0]: self.centre + self.half_range * mean,
            self.names[1]: self.half_range**2 * variance,
        }

    def prior_distribution(self) -> NormalInverseGammaDistribution:
        """The prior, which is no mixture, as the distribution of one cell."""
        prior = self.posterior.noisy.prior
        return self._distribution(prior.loc, prior.precision, prior.concentration, prior.scale)

    def mixture(self, draws: int, rng: np.random.Generator) -> NormalInverseGammaDistribution:
        """Conjugate distributions given draws of the latent sums, draw by draw, then by cell."""
        given = self.posterior.sample_given(draws, rng)
        return self._distribution(given.loc, given.precision, given.concentration, given.scale)

    def _distribution(
        self, loc: Floats, precision: Floats, concentration: Floats, scale: Floats
    ) -> NormalInverseGammaDistribution:
        """A distribution in half ranges about the centre, in the column's unit."""
        return NormalInverseGammaDistribution(
            loc=(self.centre + self.half_range * loc).ravel(),
            precision=precision.ravel(),
            concentration=concentration.ravel(),
            scale=(self.half_range**2 * scale).ravel(),
            names=self.names,
        )


_SLOTS = 2**16


def sample_sums(
    weights: MomentWeights, boxes: Boxes, mass: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Parts]:
    """Draws of (N, m, log E), (n_cells, draws, 3), and the part of the prior of each, (n_cells, draws).

    m and E are the mean and the mean square deviation of the rows.
    ``boxes`` stand cell by cell, ``mass`` is the log of a bound of the mass on each. Where N is 0 or 1, log E
    stands for an E of 0.
    """
    cells = weights.noisy.totals.n_cells
    bound = mass - boxes.log_volume()
    starts = np.searchsorted(boxes.cell, np.arange(cells))
    top = np.maximum.reduceat(mass, starts)
    share = np.exp(mass - top[boxes.cell])
    share /= np.bincount(boxes.cell, share, cells)[boxes.cell]
    # Cell i owns i..i + 1 of this: one search finds the box of any cell.
    ends = np.cumsum(share)
    ends += boxes.cell - (ends[starts] - share[starts])[boxes.cell]
    lasts = np.append(starts[1:], len(mass)) - 1
    result, part = np.empty((cells * draws, 3)), np.empty(cells * draws, dtype=np.int64)
    for start in range(0, len(result), _SLOTS):
        pending = np.arange(start, min(start + _SLOTS, len(result)))
        while pending.size:
            cell = pending // draws
            chosen = np.searchsorted(ends, cell + rng.random(len(cell)), side="right")
            chosen = np.clip(chosen, starts[cell], lasts[cell])
            chosen_boxes = boxes.take(chosen)
            point = _points(chosen_boxes, rng)
            log_weight = weights.log_weight(cell, chosen_boxes.part, *point.T)
            # (2).
            accepted = np.log1p(-rng.random(len(cell))) < log_weight - bound[chosen]
            result[pending[accepted]], part[pending[accepted]] = point[accepted], chosen_boxes.part[accepted]
            pending = pending[~accepted]
    return result.reshape(cells, draws, 3), part.reshape(cells, draws)


def sample_parameters(given: Given, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw mean and variance, in half ranges, given the latent sums."""
    variance = given.scale / rng.standard_gamma(given.concentration)
    mean = given.loc + np.sqrt(variance / given.precision) * rng.standard_normal(variance.shape)
    return mean, variance


def _points(boxes: Boxes, rng: np.random.Generator) -> Floats:
    """Draw one point in every box, uniformly; N is an integer."""
    sides = boxes.high - boxes.low
    sides[:, 0] += 1.0
    point: Floats = boxes.low + sides * rng.random(sides.shape)
    point[:, 0] = np.minimum(np.floor(point[:, 0]), boxes.high[:, 0])
    return point


_CELLS, _TOGETHER = 32, 96
"""Cells, and parts of the prior in all of them, that are worked on together: their boxes stay in caches."""


@dataclass(frozen=True, kw_only=True)
class MomentPosterior:
    """The posterior of every cell, in half ranges about the centre.

    Attributes
    ----------
    noisy : NoisyMoments
        What it is the posterior of.
    share : float
        How fine the boxes are: no box that could be halved has more of its cell's mass. Where the prior is
        a mixture this counts by its parts, so that each is about as fine as it would be alone.
    levels : ndarray of shape (n_cells, n_levels), float64, or None
        Design effects, equally likely: rows count as that many times fewer independent ones.
    """

    noisy: NoisyMoments
    share: float = SHARE
    levels: Floats | None = None

    @property
    def n(self) -> Floats:
        """Posterior means of N, (n_cells,), over the design effect where there are levels."""
        return self._integrals[4]

    @property
    def mean(self) -> Floats:
        """Posterior means of mean and variance, (n_cells, 2); NaN or infinite where there are none."""
        return self._integrals[0]

    @property
    def sd(self) -> Floats:
        """Posterior standard deviations of mean and variance, (n_cells, 2); infinite where there are none."""
        return self._integrals[1]

    @property
    def log_evidence(self) -> Floats:
        """Log densities of the noisy components, in records, under the prior: (n_cells,)."""
        return self._integrals[2]

    def take(self, cells: Cells) -> Self:
        """Return the posterior of some cells, ascending; what is integrated already stays known."""
        levels = None if self.levels is None else self.levels[cells]
        taken = replace(self, noisy=self.noisy.take(cells), levels=levels)
        if "_integrals" in self.__dict__:
            mean, sd, log_evidence, (of_mean, of_variance), n = self._integrals
            marginals = of_mean.take(cells), of_variance.take(cells)
            # Where a cached property looks first.
            taken.__dict__["_integrals"] = mean[cells], sd[cells], log_evidence[cells], marginals, n[cells]
        return taken

    def quantiles(self, parameter: int, q: Sequence[float]) -> Floats:
        """Quantiles of the mean (0) or the variance (1), (n_cells, len(q)), from the integrals."""
        return self.marginal(parameter).quantiles(q, self.noisy.totals.n_cells)

    def marginal(self, parameter: int) -> MarginalMixture:
        """The distribution of the mean (0) or the variance (1) of every cell."""
        return self._integrals[3][parameter]

    @cached_property
    def _integrals(self) -> tuple[Floats, Floats, Floats, tuple[MarginalMixture, MarginalMixture], Floats]:
        """Means, standard deviations, log evidence, marginal distributions and N: draws need none of them."""
        shape = (self.noisy.totals.n_cells, 2)
        mean, sd, log_evidence, n = np.empty(shape), np.empty(shape), np.empty(shape[0]), np.empty(shape[0])
        means, variances, starts = [], [], []
        for cells in _batches(self.noisy):
            weights = MomentWeights.of(self.noisy.take(cells))
            levels = None if self.levels is None else self.levels[cells]
            nodes = integrate(weights, self._cover(weights)[0], levels)
            mean[cells, 0], sd[cells, 0] = mean_moments(nodes, len(cells))
            mean[cells, 1], sd[cells, 1] = variance_moments(nodes, len(cells))
            log_evidence[cells] = nodes.log_evidence + np.sum(np.log(self.noisy.totals.rate / 2.0))
            n[cells] = np.bincount(nodes.cell, nodes.weight * nodes.n, len(cells))
            means.append(MarginalMixture.of_mean(nodes, len(cells)))
            variances.append(MarginalMixture.of_variance(nodes, len(cells)))
            starts.append(int(cells[0]))
        # The smallest N has positive probability, so its tails decide which moments there are.
        least = self.noisy.least_concentration
        mean[:, 0] = np.where(least > 0.5, mean[:, 0], np.nan)
        mean[:, 1] = np.where(least > 1.0, mean[:, 1], np.inf)
        sd = np.where(np.array([least > 1.0, least > 2.0]), sd, np.inf)
        return (
            mean,
            sd,
            log_evidence,
            (MarginalMixture.joined(means, starts), MarginalMixture.joined(variances, starts)),
            n,
        )

    def sample_given(self, draws: int, rng: np.random.Generator) -> Given:
        """Conjugate distributions given independent draws of the latent sums: arrays (draws, n_cells)."""
        parts = np.empty((4, draws, self.noisy.totals.n_cells))
        for cells in _batches(self.noisy):
            weights = MomentWeights.of(self.noisy.take(cells))
            given = self._given(weights, cells, draws, rng)
            parts[:, :, cells] = [given.loc, given.precision, given.concentration, given.scale]
        loc, precision, concentration, scale = parts
        return Given(loc=loc, precision=precision, concentration=concentration, scale=scale)

    def sample(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Independent joint draws of mean and variance, each (draws, n_cells)."""
        mean = np.empty((draws, self.noisy.totals.n_cells))
        variance = np.empty_like(mean)
        for cells in _batches(self.noisy):
            weights = MomentWeights.of(self.noisy.take(cells))
            mean[:, cells], variance[:, cells] = sample_parameters(
                self._given(weights, cells, draws, rng), rng
            )
        return mean, variance

    def _given(self, weights: MomentWeights, cells: Cells, draws: int, rng: np.random.Generator) -> Given:
        """Conjugate distributions given draws of the latent sums of some cells: arrays (draws, n_cells)."""
        sums, part = sample_sums(weights, *self._cover(weights), draws, rng)
        n, mean, log_e = np.moveaxis(sums.swapaxes(0, 1), -1, 0)
        if self.levels is not None:
            levels = self.levels[cells]
            # Under a design effect d the likelihood counts as that of N / d rows.
            n = n / levels[np.arange(len(cells)), rng.integers(levels.shape[1], size=n.shape)]
        return Given.of(weights.noisy.prior.at(part.T), n, mean, log_e)

    def _cover(self, weights: MomentWeights) -> tuple[Boxes, Floats]:
        """Boxes of some cells, and the log of a bound of the mass on each."""
        return cover(weights, self.share / weights.noisy.prior.n_parts)


def _batches(noisy: NoisyMoments) -> Iterator[Cells]:
    """Consecutive cells that fit into memory together."""
    cells = np.arange(noisy.totals.n_cells)
    step = min(_CELLS, max(1, _TOGETHER // noisy.prior.n_parts))
    for start in range(0, len(cells), step):
        yield cells[start : start + step]
