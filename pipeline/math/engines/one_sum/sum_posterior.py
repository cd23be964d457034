r"""The posterior of one parameter behind a noisy sum: a mixture of conjugate posteriors, and draws from it.

Model and symbols as in ``noisy_sum``; the mixture (1) is that of ``nodes``:

.. math::
    p(\theta \mid y) = \sum_i \omega_i \, p(\theta \mid N_i, S_i), \; \omega_i \propto W(N_i, S_i) \quad (1)

Moments are sums over all nodes i, right to 1e-6 sd (1.6e-4 many noise scales from what the prior expects,
docs/decisions/0016); quantiles are of merged components. Under design effects d only the likelihood in
p(theta | N, S) has the power 1 / d: W stays as it is, and N and S count as N / d and S / d.

Draws rest on no quadrature: pairs (N, S) are drawn by rejection. A tile is a run of consecutive N, the
largest of which is :math:`N_+`, times an interval of x, the position of ``noisy_sum`` (A or log A, in which
W is a density). For every N of the run,

.. math::
    \log W(N, S) \le h + s \, (x - x_0), \qquad x_0 \le x < x_0 + L \qquad (2)

    h = \log W(N_+, x_0) + \beta + \Delta, \qquad
    \Delta = \max_{N \le N_+, \, x} \bigl(\log W(N, x) - \log W(N_+, x)\bigr) \qquad (3)

In the code, :math:`N_+, x_0, L, s, h` are ``n``, ``left``, ``length``, ``slope`` and ``height`` of
``Tiles``, each (n_tiles,). s is the slope of the chord of log W(N_+, x); :math:`\beta` is 1.25 times its
bulge seen half way. In :math:`\Delta` the noise has its Lipschitz bound, the rest 1.25 times the most seen
at the middle and the least N of the run. So (2) is an estimate, not a theorem; where it holds, draws are
exact, but for tiles e^-18 below the highest: the chance that a draw falls in any is under 1e-6.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import numpy as np

from suffice.pipeline.math.distributions.adaptive_blocks import divide
from suffice.pipeline.math.distributions.intervals import moments_between
from suffice.pipeline.math.distributions.merged import FINE, Components, rough_quantiles
from suffice.pipeline.math.distributions.quadrature import POINTS
from suffice.pipeline.math.engines.one_sum.nodes import (
    LatentPairs,
    NearMoments,
    SpreadGammaGamma,
    batches,
    blocks_of_n,
    cut,
    moments_of_all,
    near_moments,
    ranges_of,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.distribution import ConjugateDistribution, Distribution
    from suffice.pipeline.math.distributions.merged import WeighedPairs
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats

    Update: TypeAlias = Callable[[Floats, Floats], Distribution]

NATS = 18.0
"""How far below the highest weight pairs are left out: all of them together have under 1e-6."""
_RISE = 25.0
"""Nats that a block's weight may span."""
_RUN = 0.25
"""Nats that the noise's distribution may change by in a run of N."""
_OF_N = 1.0 / 16.0
"""Length of a run over its N."""
_ACCEPTED = 0.2
"""Share of proposals below which runs are shortened."""
_FLAT = 0.1
"""Nats that a tile's weight may bulge by."""
_MOST_PARTS = 8
_BULGE = 1.25
"""How much more log W may rise between the points where it is looked at than it does at them."""
_SLACK = 1e-7
_OF_PAIRS, _OF_PARTS = 2.0, 0.7
"""Fineness with which pairs are merged before they are split among a prior's components, and after."""
_INNER = np.array([0.0, 0.5, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Tiles of all runs of some cells, cell by cell; made by ``tiles_of``.

    Attributes
    ----------
    cell, n, spread : ndarray of shape (n_tiles,)
        The tile's cell, its largest N, and how many values of N it stands for.
    left, length, slope, height : ndarray of shape (n_tiles,), float64
        Where the tile begins, how long it is, and its bound: height + slope (place - left).
    cumulative : ndarray of shape (n_tiles,), float64
        The bounds' cumulative masses, by cell, with the cell's number added.
    accepted : ndarray of shape (n_cells,), float64
        About the share of proposals that are accepted.
    """

    sums: NoisySums
    cell: Cells
    n: Floats
    spread: Floats
    left: Floats
    length: Floats
    slope: Floats
    height: Floats
    cumulative: Floats
    accepted: Floats

    def sample(self, cells: Cells, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """One pair (N, S) for every entry of ``cells``, each in T's unit."""
        n, total = np.empty(len(cells)), np.empty(len(cells))
        pending = np.arange(len(cells))
        while pending.size:
            chosen = cells[pending]
            # A tile by its mass under (2), then position and N; the factor keeps cell + u below cell + 1.
            target = chosen + rng.random(len(pending)) * (1.0 - 2.0**-38)
            tile = np.searchsorted(self.cumulative, target, side="right")
            offset = self._offsets(tile, rng)
            back = np.floor(rng.random(len(pending)) * self.spread[tile])
            count, point = self.n[tile] - back, self.left[tile] + offset
            possible = self.sums.is_possible(count, point)
            log_weight = self.sums.log_joint(chosen, np.where(possible, count, self.n[tile]), point[:, None])
            bound = self.height[tile] + self.slope[tile] * offset
            # Accepted with probability W / bound, the draws follow W itself.
            accepted = possible & (np.log1p(-rng.random(len(pending))) < log_weight[:, 0] - bound)
            done = pending[accepted]
            amount = np.where(count < 1.0, 0.0, self.sums.amount(point))
            n[done], total[done] = count[accepted], self.sums.total(count, amount)[accepted]
            pending = pending[~accepted]
        return n, total

    def _offsets(self, tile: Cells, rng: np.random.Generator) -> Floats:
        """Positions behind the tiles' left ends, by the exponential distributions of their bounds."""
        rise = self.slope[tile] * self.length[tile]
        share = rng.random(len(tile))
        steep = np.abs(rise) > 1e-9
        safe = np.where(steep, rise, 1.0)
        # Rises go from the high end, so that nothing overflows.
        # u = (1 - e^(-|r| t)) / (1 - e^-|r|) solved for t in 0..1: an exponential that falls from 0 on.
        down = -np.log1p(share * np.expm1(-np.abs(safe))) / np.abs(safe)
        position = np.where(steep, np.where(rise > 0.0, 1.0 - down, down), share)
        offset: Floats = position * self.length[tile]
        if self.sums.is_sum:
            offset = np.minimum(np.floor(offset), self.length[tile] - 1.0)
        return offset


def tiles_of(sums: NoisySums) -> Tiles:
    """Prepare exact draws from every cell."""
    longest = np.full(sums.n_cells, _RUN / max(sums.change_per_row, 1e-15))
    while True:
        tiles = _tiles(sums, longest)
        # Under a prior that ties S to N closely, runs have to be short.
        poor = (tiles.accepted < _ACCEPTED) & (longest > 1.0)
        if not np.any(poor):
            return tiles
        longest = np.where(poor, longest / 4.0, longest)


def _tiles(sums: NoisySums, longest: Floats) -> Tiles:
    """Tiles of runs of N up to so long (n_cells,)."""
    cell, n, spread = _runs(sums, longest)
    row, left, right, peak = divide(
        lambda row, point: sums.log_joint(cell[row], n[row], point),
        *ranges_of(sums, cell, n),
        group=cell,
        is_sum=sums.is_sum,
        most_rise=_RISE,
        longest=sums.longest,
        nats=NATS,
    )
    value = sums.log_joint(cell[row], n[row], _positions(sums, left, right, _INNER))
    bulge = np.abs(value[:, 1] - (value[:, 0] + value[:, 2]) / 2.0)
    # The bulge of a parabola above its chord falls by m^2 where a block is cut in m.
    parts = np.clip(np.ceil(np.sqrt(bulge / _FLAT)), 1.0, _MOST_PARTS)
    if sums.is_sum:  # these may be rough
        parts = np.where(right - left <= POINTS, POINTS / 2.0, parts)
    row, left, right = cut(row, left, right, parts, is_sum=sums.is_sum)
    order = np.argsort(row, kind="stable")
    row, left, right = row[order], left[order], right[order]
    length = right - left
    draw_cell = cell[row]
    positions = _positions(sums, left, right, _INNER)
    value = sums.log_joint(draw_cell, n[row], positions) - peak[draw_cell][:, None]
    across = np.maximum(positions[:, 2] - positions[:, 0], 1e-300)
    slope = (value[:, 2] - value[:, 0]) / across
    chord = value[:, :1] + (value[:, 2] - value[:, 0])[:, None] * _INNER
    bulge = _BULGE * np.max(np.maximum(value - chord, 0.0), axis=1) + _SLACK
    # (3).
    height = value[:, 0] + bulge + _rise(sums, n[row], spread[row], positions)
    # The integral of e^(h + s (x - x_0)) over the tile: its larger end times the mean of an exponential.
    mass = np.exp(np.maximum(height, height + slope * length)) * length * _share(slope * length)
    if sums.is_sum:
        # Rounded down, a position from the exponential is k with probability in proportion to e^(s k).
        # The sum of e^(s k) over k = 0..L-1 is s / (e^s - 1) times the integral of e^(s x) over 0..L.
        mass *= _per_integer(slope)
    mass *= spread[row]
    cells = sums.n_cells
    total = np.bincount(draw_cell, mass, cells)
    cumulative = np.cumsum(mass / total[draw_cell])
    first = np.searchsorted(draw_cell, draw_cell, side="left")
    before = np.where(first > 0, cumulative[np.maximum(first - 1, 0)], 0.0)
    cumulative = np.minimum(cumulative - before, 1.0) + draw_cell
    ends = np.searchsorted(draw_cell, np.arange(cells), side="right") - 1
    cumulative[ends] = np.arange(1.0, cells + 1.0)
    return Tiles(
        sums=sums,
        cell=draw_cell,
        n=n[row],
        spread=spread[row],
        left=left,
        length=length,
        slope=slope,
        height=height + peak[draw_cell],
        cumulative=cumulative,
        accepted=np.bincount(draw_cell, mass * np.exp(value[:, 0] - height), cells) / total,
    )


def _runs(sums: NoisySums, longest: Floats) -> tuple[Cells, Floats, Floats]:
    """Every N that matters, in runs: cell, largest N and number, each (n_runs,), cell by cell."""
    low, high = sums.n_prior.support
    if low == high:
        cells = np.arange(sums.n_cells)
        return cells, np.full(len(cells), float(low)), np.ones(len(cells))
    blocks = blocks_of_n(sums, NATS)
    run = np.maximum(np.minimum(longest[blocks.row], _OF_N * blocks.left), 1.0)
    parts = np.ceil(blocks.length / run)
    cell, first, after = cut(blocks.row, blocks.left, blocks.right, parts, is_sum=True)
    order = np.argsort(cell, kind="stable")
    return cell[order], after[order] - 1.0, (after - first)[order]


def _positions(sums: NoisySums, left: Floats, right: Floats, inner: Floats) -> Floats:
    last = right - 1.0 if sums.is_sum else right
    return left[:, None] + (last - left)[:, None] * inner


def _rise(sums: NoisySums, n: Floats, spread: Floats, positions: Floats) -> Floats:
    """How far above that of its largest N the weight of a run's others may be, (n_tiles,)."""
    rise = np.zeros(len(n))
    several = np.flatnonzero(spread > 1.0)
    if not several.size:
        return rise
    last, back, positions = n[several, None], (spread[several, None] - 1.0), positions[several]
    at_last = sums.log_density(last, positions) + sums.n_prior.log_prob(last)
    observed = np.zeros(len(several))
    for part in (0.5, 1.0):
        other = np.maximum(last - part * back, sums.least_n(positions))
        observed = np.maximum(
            observed,
            np.max(sums.log_density(other, positions) + sums.n_prior.log_prob(other) - at_last, axis=1),
        )
    # The noise changes by at most sum(R / b) nats a row: |y - (R N - A)| is Lipschitz in N.
    rise[several] = _BULGE * observed + sums.change_per_row * back[:, 0]
    return rise


def _share(rise: Floats) -> Floats:
    """Mean of an exponential that changes by this many nats, over its highest value."""
    size = np.abs(rise)
    return np.divide(-np.expm1(-size), size, out=np.ones_like(size), where=size > 1e-12)


def _per_integer(slope: Floats) -> Floats:
    """Ratio of e^(s k) to the integral of e^(s x) over k..k + 1."""
    steep = np.abs(slope) > 1e-9
    return np.divide(slope, np.expm1(slope), out=np.ones_like(slope), where=steep)


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


_NEXT_TO_NOTHING = 1e-9
_LEAST_WITHIN = 1e-4
"""Posterior mass within limits below which moments there, a difference of larger ones, are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentSumPosterior:
    """The distribution of one parameter; made by ``LatentSumPosterior.of``.

    Attributes
    ----------
    sums : NoisySums
        The noisy sums and the distribution that they came from.
    update : callable
        N and S, each (n,) -> the parameter's conjugate distribution, n cells of it.
    name : str
        The parameter's.
    merged : Components
        Of all cells.
    moments : callable
        Without arguments -> posterior means and standard deviations, each (n_cells,); it remembers them.
    near : (ndarray, ndarray)
        The same but for what is far out in tails, without any work.
    log_evidence : ndarray of shape (n_cells,), float64
        Log of the marginal likelihood but for a constant that does not depend on the prior.
    levels : ndarray of shape (n_cells, n_levels), float64, or None
        Design effects, equally likely: rows count as so many times fewer independent ones; see ``tempered``.
    """

    sums: NoisySums
    update: Update
    name: str
    merged: Components
    moments: Callable[[], tuple[Floats, Floats]]
    near: tuple[Floats, Floats]
    log_evidence: Floats
    levels: Floats | None = None

    @classmethod
    def of(cls, sums: NoisySums, update: Update) -> Self:
        """Merge the latent pairs of every cell, and sum up moments that need no others."""
        near, merged = [], []
        (name,) = update(np.zeros(1), np.zeros(1)).parameters
        for batch in batches(sums):
            of_batch = sums.take(batch)
            pairs = resolve(of_batch)
            nodes = _split(pairs, of_batch, update)
            moments = _moments(nodes, update(nodes.n, nodes.total), len(batch))
            if isinstance(of_batch.marginal, SpreadGammaGamma):  # whose nodes are merged pairs
                moments = near_moments(pairs, update, of_batch.marginal, moments[0])
            near.append(NearMoments.of(pairs, moments))
            merged.append(_merged(nodes, of_batch, update))
        known = NearMoments.joined(near)
        return cls(
            sums=sums,
            update=update,
            name=name,
            merged=Components.joined(merged, [len(batch) for batch in batches(sums)]),
            moments=functools.cache(lambda: moments_of_all(sums, update, known)),
            near=(known.means, known.sds),
            log_evidence=known.log_evidence,
        )

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.sums.n_cells

    @property
    def means(self) -> Floats:
        """Posterior means, (n_cells,)."""
        return self.moments()[0]

    @property
    def sds(self) -> Floats:
        """Posterior standard deviations, (n_cells,)."""
        return self.moments()[1]

    @property
    def latent_means(self) -> tuple[Floats, Floats]:
        """Posterior means of N and S, each (n_cells,)."""
        merged, cells = self.merged, self.sums.n_cells
        n = np.bincount(merged.cell, merged.weight * merged.n, cells).astype(np.float64, copy=False)
        total = np.bincount(merged.cell, merged.weight * merged.total, cells).astype(np.float64, copy=False)
        return n, total

    def tempered(self, levels: Floats) -> Self:
        """Return the distribution under likelihoods to the power of one over the design effects.

        N and S stay as likely as they were: N rows then count as N / d, and their sum as S / d.
        """
        merged = self.merged.tempered(levels)
        moments = _moments(merged, self._conjugate(merged.n, merged.total), self.sums.n_cells)
        return replace(self, merged=merged, moments=lambda: moments, near=moments, levels=levels)

    def moments_within(self, limits: tuple[float, float]) -> tuple[Floats, Floats] | None:
        """Means and standard deviations given that the parameter is within limits; None of tempered cells.

        Between two limits the pairs hold all of it. On a side without a limit others may hold most of a
        moment: what lies beyond the other limit is taken from the moments that there are without limits.
        NaN where next to nothing is within.
        """
        if self.levels is not None:
            return None
        is_bounded = bool(np.isfinite(limits).all())
        low, high = limits
        side = limits if is_bounded else ((-np.inf, low) if np.isfinite(low) else (high, np.inf))
        means, sds = np.empty((2, self.sums.n_cells))
        for batch in batches(self.sums):
            nodes = _resolved(self.sums.take(batch), self.update)
            centre = np.clip(self.near[0][batch], *limits) if is_bounded else self.means[batch]
            with np.errstate(invalid="ignore"):  # infinite moments are known to be none
                parts = moments_between(self.update(nodes.n, nodes.total), side, centre[nodes.cell])
                sums = np.stack([np.bincount(nodes.cell, nodes.weight * part, len(batch)) for part in parts])
                if not is_bounded:
                    # About the mean, all mass, first and second moment are 1, 0 and Var: less those beyond
                    # the limit.
                    sums = np.stack([np.ones(len(batch)), np.zeros(len(batch)), self.sds[batch] ** 2]) - sums
                mass, first, second = np.where(sums[0] > _LEAST_WITHIN, sums, np.nan)
                means[batch] = centre + first / mass
                sds[batch] = np.sqrt(second / mass - (first / mass) ** 2)
        return means, sds

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""
        return replace(
            self,
            sums=self.sums.take(cells),
            merged=self.merged.take(cells),
            moments=functools.cache(lambda: (self.means[cells], self.sds[cells])),
            near=(self.near[0][cells], self.near[1][cells]),
            log_evidence=self.log_evidence[cells],
            levels=None if self.levels is None else self.levels[cells],
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    def mean(self, parameter: str) -> Floats:
        """Means; infinite where there is none."""
        return self.means

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations; infinite where there is none."""
        return self.sds

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles of merged components; see ``merged``. They do not rest on draws."""
        return np.concatenate(
            [self.merged.take(batch).quantiles(self.update, q, len(batch)) for batch in batches(self.sums)]
        )

    def rough_quantiles(self, parameter: str, q: Sequence[float]) -> Floats:
        """About the quantiles, by which the exact ones that are wanted may be chosen."""
        return np.concatenate(
            [
                rough_quantiles(self.merged.take(batch), self.update, q, len(batch))
                for batch in batches(self.sums)
            ]
        )

    def quantiles_at(self, parameter: str, levels: Floats, near: Floats) -> Floats:
        """Quantiles at levels (n_cells, n_levels) of every cell's own; `near` has about the quantiles."""
        return np.concatenate(
            [
                self.merged.take(batch).quantiles(
                    self.update, list(levels[batch].T), len(batch), near=near[batch]
                )
                for batch in batches(self.sums)
            ]
        )

    def coarser(self) -> Self:
        """Return the same distribution, of pairs that are merged much coarser; moments are what they were."""
        return replace(self, merged=self.merged.coarser(self.update, self.sums.n_cells))

    def cdf(self, points: Floats) -> Floats:
        """Distribution functions at points (n_cells, n_points), of merged components."""
        return self.merged.cdf(self.update, points)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points): of the latent pairs again, merged much less."""
        values = np.empty(points.shape)
        for batch in batches(self.sums):
            nodes = _resolved(self.sums.take(batch), self.update)
            fine = Components.of(nodes, self.update, len(batch), fineness=FINE, negligible=_NEXT_TO_NOTHING)
            if self.levels is not None:
                fine = fine.tempered(self.levels[batch])
            values[batch] = fine.density(self.update, points[batch])
        return values

    def average(self, function: Callable[[Floats], Floats], cells: Cells) -> Floats:
        """Averages in some cells, ascending, of a function of positions on the line; see ``Components``."""
        of_cells = self.take(cells)
        averages = [
            of_cells.merged.take(batch).average(of_cells.update, function, len(batch))
            for batch in batches(of_cells.sums)
        ]
        return np.concatenate(averages)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        drawn = self.mixture(draws, rng).sample(1, rng)[self.name]
        return {self.name: drawn.reshape(draws, self.sums.n_cells)}

    def prior_distribution(self) -> ConjugateDistribution:
        """The prior, as the distribution of one cell."""
        return self._conjugate(np.zeros(1), np.zeros(1))

    def mixture(self, draws: int, rng: np.random.Generator) -> ConjugateDistribution:
        """Conjugate distributions given independent draws of N and S, draw by draw, then by cell."""
        n, total = np.empty((2, draws, self.sums.n_cells))
        for batch in batches(self.sums):
            cells = np.tile(np.arange(len(batch)), draws)
            pairs = tiles_of(self.sums.take(batch)).sample(cells, rng)
            n[:, batch], total[:, batch] = (drawn.reshape(draws, len(batch)) for drawn in pairs)
        if self.levels is not None:
            effect = drawn_levels(self.levels, draws, rng)
            n, total = n / effect, total / effect
        if isinstance(self.sums.marginal, SpreadGammaGamma):
            total = self.sums.marginal.shifted(total.ravel(), n.ravel(), rng)
        return self._conjugate(n.ravel(), total.ravel())

    def _conjugate(self, n: Floats, total: Floats) -> ConjugateDistribution:
        return cast("ConjugateDistribution", self.update(n, total))


def _moments(pairs: WeighedPairs, given: Distribution, cells: int) -> tuple[Floats, Floats]:
    """Return means and standard deviations, (n_cells,), of the distributions given pairs."""
    (name,) = given.parameters
    cell, weight, mean, sd = pairs.cell, pairs.weight, given.mean(name), given.sd(name)
    # E theta = sum_i omega_i E(theta | i).
    centre = np.bincount(cell, weight * mean, cells).astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):
        # Var theta = sum_i omega_i (Var(theta | i) + (E(theta | i) - E theta)^2).
        squares = sd**2 + (mean - centre[cell]) ** 2
    squares[np.isnan(squares)] = np.inf
    return centre, np.sqrt(np.bincount(cell, weight * squares, cells))


def _resolved(sums: NoisySums, update: Update) -> LatentPairs:
    """Return latent pairs with their weights, split."""
    return _split(resolve(sums), sums, update)


def _split(nodes: LatentPairs, sums: NoisySums, update: Update) -> LatentPairs:
    """Split pairs, under a spread prior, into one for each of its components that matters.

    S is shifted for the posterior under component j to be that of the larger sum under the first component
    (``SpreadGammaGamma``). Pairs are merged, much less than for quantiles, before they are split.
    """
    marginal = sums.marginal
    if not isinstance(marginal, SpreadGammaGamma):
        return nodes
    # Its shares depend on N beside the mean that S / N tells: pairs of other N are not taken together.
    merged = Components.of(
        nodes, update, sums.n_cells, fineness=_OF_PAIRS, negligible=_NEXT_TO_NOTHING, within_widths=True
    )
    # A pair splits by the posterior probabilities of the components of the prior, given the pair.
    shares = marginal.shares(merged.total, merged.n) * merged.weight
    pair, component = np.nonzero(shares.T > _NEXT_TO_NOTHING)
    weight = shares[component, pair]
    cell = merged.cell[pair]
    return replace(
        nodes,
        cell=cell,
        n=merged.n[pair],
        total=merged.total[pair] + marginal.shifts[component],
        weight=weight / np.bincount(cell, weight, sums.n_cells)[cell],
    )


def _merged(nodes: LatentPairs, sums: NoisySums, update: Update) -> Components:
    """Merge pairs for quantiles; under a spread prior those of few records keep their skewness."""
    if not isinstance(sums.marginal, SpreadGammaGamma):
        return Components.of(nodes, update, sums.n_cells)
    return Components.of(nodes, update, sums.n_cells, fineness=_OF_PARTS, within_widths=True)


def drawn_levels(levels: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw one of the equally likely levels of every cell, (draws, n_cells)."""
    cells, number = levels.shape
    drawn: Floats = levels[np.arange(cells), rng.integers(number, size=(draws, cells))]
    return drawn
