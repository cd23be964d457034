r"""The posterior of one parameter behind a noisy sum: a mixture of conjugate posteriors, and draws from it.

Model and symbols as in ``noisy_sum``; the mixture (1) is that of ``nodes``:

.. math::
    p(\theta \mid y) = \sum_i \omega_i \, p(\theta \mid N_i, S_i), \; \omega_i \propto W(N_i, S_i) \quad (1)

Moments are sums over all nodes i, mostly right to 1e-6 sd (docs/decisions/0016); quantiles are of merged
components. Over 800 random cells of five families, beside blocks refined in N and S, means were off by at
most 1.7e-4 sd, sds by 1.1e-4 (2e-4 under spread priors), log evidence by 9e-5 and levels of quantiles by
.022. Where compiled loops pay (``many_cells``), pairs of successes are by ``nested_pairs``, by rules that are
compared, those of most other sums by ``compiled_blocks``, of spread priors by ``compiled_spread``, by coarser
blocks, and quantiles by loops. Under design effects d only the likelihood in p(theta | N, S) has the power
1 / d: W stays as it is, and N and S count as N / d and S / d.

Draws rest on no quadrature; see ``tiles``. Densities are by ``sum_density``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import numpy as np

from suffice.pipeline.math.distributions.compiled_mixtures import compiled_quantiles
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import widened
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.intervals import moments_between
from suffice.pipeline.math.distributions.many_cells import BLOCKS, PAIRS, SPREAD
from suffice.pipeline.math.distributions.merged import FINE, Components, rough_quantiles
from suffice.pipeline.math.engines.one_sum.compiled_blocks import can_compile, resolve_blocks
from suffice.pipeline.math.engines.one_sum.compiled_spread import (
    can_compile_spread,
    far_sums,
    resolve_spread,
    split_pairs,
)
from suffice.pipeline.math.engines.one_sum.nested_pairs import can_resolve, differences, resolve_nested
from suffice.pipeline.math.engines.one_sum.nodes import LatentPairs, batches, resolve
from suffice.pipeline.math.engines.one_sum.noisy_sum import GammaGamma
from suffice.pipeline.math.engines.one_sum.spread_sums import (
    NearMoments,
    SpreadGammaGamma,
    moments_of_all,
    near_moments,
)
from suffice.pipeline.math.engines.one_sum.sum_density import density_at
from suffice.pipeline.math.engines.one_sum.sum_within_limits import SumWithinLimits, moments_within
from suffice.pipeline.math.engines.one_sum.tiles import tiles_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.distribution import ConjugateDistribution, Distribution
    from suffice.pipeline.math.distributions.merged import WeighedPairs
    from suffice.pipeline.math.distributions.within_limits import Tabulated
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats

    Update: TypeAlias = Callable[[Floats, Floats], Distribution]

_OF_PAIRS, _OF_PARTS = 2.0, 0.7
"""Fineness with which pairs are merged before they are split among a prior's components, and after."""
# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

_NEXT_TO_NOTHING = 1e-9
_FINER = 3
"""Into how many a block of S is cut for ``misses``."""
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
    error : ndarray of shape (n_cells,), float64
        That a second rule states, an estimate and no bound: the largest of that of the mean, in standard
        deviations, of these, in shares of themselves, and of the log evidence, in nats. NaN where there was
        no second rule: `misses` has an error of any cell.
    by_loops : bool
        Whether pairs under a spread prior are by loops: the same for all cells, and for those taken of them.
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
    error: Floats
    by_loops: bool
    levels: Floats | None = None

    @classmethod
    def of(cls, sums: NoisySums, update: Update) -> Self:
        """Merge the latent pairs of every cell, and sum up moments that need no others."""
        (name,) = update(np.zeros(1), np.zeros(1)).parameters
        many = _of_many(sums, update)
        known, merged, error = many or (*_of_blocks(sums, update), np.full(sums.n_cells, np.nan))
        by_loops = SPREAD.pay(sums.n_cells) and can_compile_spread(sums)
        far = far_sums if by_loops else None
        return cls(
            sums=sums,
            update=update,
            name=name,
            merged=merged,
            moments=functools.cache(lambda: moments_of_all(sums, update, known, far)),
            near=(known.means, known.sds),
            log_evidence=known.log_evidence,
            error=error,
            by_loops=by_loops,
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

    def misses(self) -> Floats:
        """By how much each cell's answers are off finer blocks, (n_cells,), worked out anew; as `error`.

        The blocks are those of arrays, out into the tails, each of S in three: this takes tens of
        milliseconds a cell, so that it is for some of many cells (`take`). Means and standard deviations are
        those of `near`; NaN where these are infinite.
        """
        finer, _ = _of_blocks(self.sums, self.update, finer=_FINER)
        answers = np.stack([*self.near, self.log_evidence], axis=1)
        moments = (finer.means, finer.sds)
        if self.levels is not None:
            # Design effects divide pairs, whose weights stay: of these there is the evidence.
            moments = self.near
        return differences(
            np.stack([*moments, finer.log_evidence], axis=1), answers, np.isfinite(answers[:, 2])
        )

    def tempered(self, levels: Floats) -> Self:
        """Return the distribution under likelihoods to the power of one over the design effects.

        N and S stay as likely as they were: N rows then count as N / d, and their sum as S / d.
        """
        merged = self.merged.tempered(levels)
        given = widened(self._conjugate(merged.n, merged.total), merged.scatter)
        moments = _moments(merged, cast("Distribution", given), self.sums.n_cells)
        error = np.full_like(self.error, np.nan)
        return replace(self, merged=merged, moments=lambda: moments, near=moments, error=error, levels=levels)

    def restricted(
        self, limits: tuple[float, float], below: Floats, tabulate: Callable[[Cells], Tabulated]
    ) -> Distribution:
        """Return the distribution within limits, where its distribution function is `below` (n_cells, 2)."""
        given = self._conjugate(np.zeros(1), np.zeros(1))
        if isinstance(given, BetaDistribution | GammaDistribution):
            return SumWithinLimits.of(self, limits, below, tabulate, lambda: moments_within(self, limits))
        if not isinstance(given, InverseGammaDistribution) or self.levels is not None:
            return tabulate(np.arange(self.n_cells))

        def moments() -> tuple[Floats, Floats]:
            # Widened parts would have other means, or none at all: moments are those of pairs. Where a pair's
            # are infinite without limits, they are those of the table.
            means, sds = self._moments_of_pairs(limits)
            unknown = np.flatnonzero(~(np.isfinite(means) & np.isfinite(sds)))
            if unknown.size:
                table = tabulate(unknown)
                means[unknown], sds[unknown] = table.mean(self.name), table.sd(self.name)
            return means, sds

        return SumWithinLimits.of(self, limits, below, tabulate, moments)

    def moments_within(self, limits: tuple[float, float]) -> tuple[Floats, Floats] | None:
        """Means and standard deviations given that the parameter is within limits; None of tempered cells.

        Between two limits the pairs hold all of it. On a side without a limit others may hold most of a
        moment: what lies beyond the other limit is taken from the moments that there are without limits.
        NaN where next to nothing is within.
        """
        return self._moments_of_pairs(limits) if self.levels is None else None

    def _moments_of_pairs(self, limits: tuple[float, float]) -> tuple[Floats, Floats]:
        is_bounded = bool(np.isfinite(limits).all())
        low, high = limits
        side = limits if is_bounded else ((-np.inf, low) if np.isfinite(low) else (high, np.inf))
        means, sds = np.empty((2, self.sums.n_cells))
        for batch in batches(self.sums):
            nodes = _resolved(self.sums.take(batch), self.update, by_loops=self.by_loops)
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
            error=self.error[cells],
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
        return self.quantiles_at(parameter, self._of_all(q))

    def rough_quantiles(self, parameter: str, q: Sequence[float]) -> Floats:
        """About the quantiles, by which the exact ones that are wanted may be chosen."""
        return self.rough_quantiles_at(self._of_all(q))

    def quantiles_at(self, parameter: str, levels: Floats, near: Floats | None = None) -> Floats:
        """Quantiles at levels (n_cells, n_levels) of every cell's own; `near` has about the quantiles."""
        compiled = self._compiled(levels, near=near)
        if compiled is not None:
            return compiled
        return np.concatenate(
            [
                self.merged.take(batch).quantiles(
                    self.update, list(levels[batch].T), len(batch), near=None if near is None else near[batch]
                )
                for batch in batches(self.sums)
            ]
        )

    def rough_quantiles_at(self, levels: Floats) -> Floats:
        """About the quantiles at levels (n_cells, n_levels) of every cell's own, ascending."""
        compiled = self._compiled(levels, rough=True)
        if compiled is not None:
            return compiled
        return np.concatenate(
            [
                rough_quantiles(self.merged.take(batch), self.update, levels[batch])
                for batch in batches(self.sums)
            ]
        )

    def _of_all(self, q: Sequence[float]) -> Floats:
        return np.broadcast_to(np.asarray(q, dtype=np.float64), (self.n_cells, len(q)))

    def _compiled(self, levels: Floats, *, near: Floats | None = None, rough: bool = False) -> Floats | None:
        """Quantiles by compiled loops; None where cells are few, or neither counts nor positive sums."""
        if not (self.sums.is_sum or isinstance(self.sums.marginal, GammaGamma | SpreadGammaGamma)):
            return None
        return compiled_quantiles(self.merged, self.update, levels, near=near, rough=rough)

    def coarser(self) -> Self:
        """Return the same distribution, of pairs that are merged much coarser; moments are what they were."""
        return replace(self, merged=self.merged.coarser(self.update, self.sums.n_cells))

    def cdf(self, points: Floats) -> Floats:
        """Distribution functions at points (n_cells, n_points), of merged components."""
        return self.merged.cdf(self.update, points)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points), by ``sum_density``; of tempered cells those of pairs."""
        if self.levels is None:
            return density_at(self.sums, self.update, self.log_evidence, points)
        values = np.empty(points.shape)
        for batch in batches(self.sums):
            nodes = _resolved(self.sums.take(batch), self.update, by_loops=self.by_loops)
            fine = Components.of(nodes, self.update, len(batch), fineness=FINE, negligible=_NEXT_TO_NOTHING)
            values[batch] = fine.tempered(self.levels[batch]).density(self.update, points[batch])
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


def _of_blocks(sums: NoisySums, update: Update, finer: int = 1) -> tuple[NearMoments, Components]:
    """Resolve cells by blocks that are divided until they fit, and further, into so many, if `finer`."""
    near, merged = [], []
    for batch in batches(sums):
        of_batch = sums.take(batch)
        pairs = resolve(of_batch, evenly=finer > 1, finer=finer)
        nodes = _split(pairs, of_batch, update)
        moments = _moments(nodes, update(nodes.n, nodes.total), len(batch))
        if isinstance(of_batch.marginal, SpreadGammaGamma):  # whose nodes are merged pairs
            near.append(near_moments(pairs, update, of_batch.marginal, moments))
        else:
            near.append(NearMoments.of(pairs, moments))
        merged.append(_merged(nodes, of_batch, update))
    return NearMoments.joined(near), Components.joined(merged, [len(batch) for batch in batches(sums)])


def _of_many(sums: NoisySums, update: Update) -> tuple[NearMoments, Components, Floats] | None:
    """Resolve many cells by compiled loops, and by arrays those that these do not settle; None of few.

    Errors are NaN where no second rule states one.
    """
    if PAIRS.pay(sums.n_cells) and can_resolve(sums, update):
        nested = resolve_nested(sums, update)
    elif BLOCKS.pay(sums.n_cells) and can_compile(sums, update):
        nested = resolve_blocks(sums, update)
    elif SPREAD.pay(sums.n_cells) and can_compile_spread(sums):
        nested = resolve_spread(sums, update)
    else:
        return None
    left = np.flatnonzero(~nested.settled)
    error = np.where(nested.settled & (nested.error > 0.0), nested.error, np.nan)
    if not left.size:
        return nested.near, nested.merged, error
    near, merged = _of_blocks(sums.take(left), update)
    # The numbers of these cells mean nothing yet.
    for name in ("means", "sds", "log_evidence", "most", "bounded"):
        if getattr(near, name) is not None:
            getattr(nested.near, name)[left] = getattr(near, name)
    return nested.near, nested.merged.replaced(left, merged), error


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


def _resolved(sums: NoisySums, update: Update, *, by_loops: bool) -> WeighedPairs:
    """Return latent pairs with their weights, split; by arrays those of cells that loops leave."""
    if not by_loops:
        return _split(resolve(sums), sums, update)
    pairs, left = split_pairs(sums, update)
    if not left.size:
        return pairs
    of_left = sums.take(left)
    return pairs.replaced(left, _among_components(resolve(of_left), of_left, update))


def _split(nodes: LatentPairs, sums: NoisySums, update: Update) -> WeighedPairs:
    """Split pairs under a spread prior; those under others are as they are."""
    is_spread = isinstance(sums.marginal, SpreadGammaGamma)
    return _among_components(nodes, sums, update) if is_spread else nodes


def _among_components(nodes: LatentPairs, sums: NoisySums, update: Update) -> Components:
    """Split pairs into one for each of the components of their prior that matters.

    S is shifted for the posterior under component j to be that of the larger sum under the first component
    (``SpreadGammaGamma``). Pairs are merged, much less than for quantiles, before they are split.
    """
    marginal = cast("SpreadGammaGamma", sums.marginal)
    # Its shares depend on N beside the mean that S / N tells: pairs of other N are not taken together.
    merged = Components.of(
        nodes, update, sums.n_cells, fineness=_OF_PAIRS, negligible=_NEXT_TO_NOTHING, within_widths=True
    )
    # A pair splits by the posterior probabilities of the components of the prior, given the pair.
    shares = marginal.shares(merged.total, merged.n) * merged.weight
    pair, component = np.nonzero(shares.T > _NEXT_TO_NOTHING)
    weight = shares[component, pair]
    cell = merged.cell[pair]
    return Components(
        cell=cell,
        n=merged.n[pair],
        total=merged.total[pair] + marginal.shifts[component],
        weight=weight / np.bincount(cell, weight, sums.n_cells)[cell],
        scatter=merged.scatter[pair],
    )


def _merged(nodes: WeighedPairs, sums: NoisySums, update: Update) -> Components:
    """Merge pairs for quantiles; under a spread prior those of few records keep their skewness."""
    if not isinstance(sums.marginal, SpreadGammaGamma):
        return Components.of(nodes, update, sums.n_cells)
    return Components.of(nodes, update, sums.n_cells, fineness=_OF_PARTS, within_widths=True)


def drawn_levels(levels: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw one of the equally likely levels of every cell, (draws, n_cells)."""
    cells, number = levels.shape
    drawn: Floats = levels[np.arange(cells), rng.integers(number, size=(draws, cells))]
    return drawn
