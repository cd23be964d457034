"""Latent pairs of many cells by the blocks of ``nodes``, in compiled loops; these are in ``block_kernel``.

Under usual priors blocks are of N and S together, in ``plane_kernel``, where the noise is not narrow beside
whole numbers, and else ``COARSE``: decisions 187 and 177 say what these were off by, which is no bound. Of
blocks of both an error is stated, by two rules (decision 192); of blocks of S alone none is.
Under others they are ``AS_ARRAYS`` have them: answers are those of ``nodes`` and ``merged`` but for
rounding, as the same numbers decide which blocks there are, and what is merged. Where a width lies on the
very edge between two points of the lattice of merging, as ratios of counts do, rounding decides: levels of
quantiles differ by some 1e-5. A cell of very many blocks or pairs, or with next to no noise, is left to
arrays.
"""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from suffice.pipeline.math.distributions import adaptive_blocks, rule_sizes
from suffice.pipeline.math.distributions.adaptive_blocks import Blocks, nodes_of
from suffice.pipeline.math.distributions.compiled_mixtures import linear_update
from suffice.pipeline.math.distributions.distribution import widened
from suffice.pipeline.math.distributions.many_cells import BLOCKS, is_compiled, on_threads
from suffice.pipeline.math.distributions.merged import Components
from suffice.pipeline.math.engines.one_sum.nested_pairs import NestedPairs, differences, released
from suffice.pipeline.math.engines.one_sum.nodes import MOMENT_NATS, edges_of_n
from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaNegativeBinomial, GammaGamma, GammaPoisson
from suffice.pipeline.math.engines.one_sum.spread_sums import NearMoments
from suffice.pipeline.math.priors.record_count import Reciprocal, Uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]
    Integers = np.ndarray[Any, np.dtype[np.int64]]

_BATCH = 128
_MOST_CONCENTRATION, _MOST_SUMS = 50.0, 16
_LEAST_CONCENTRATION, _USUAL_CONCENTRATION = 0.5, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fineness:
    """How fine blocks and merging are.

    Parameters
    ----------
    nats : float
        Below a cell's mass, from which on blocks are left out.
    of_n, of_total : float
        Error of a block's mass, of N or S, over that of its cell.
    few, fewest : float
        Nats below a cell's mass from which on a block may have 5 nodes, and 3.
    parts : float
        Into how many a block of S is cut, beside what few N ask for.
    has_pieces : bool
        Whether a node of S stands for a piece of its block, whose spread widens what is given the node.
    light : float
        Weight up to which pairs are left out of mixtures.
    per_spread, per_width, per_octave : float
        As in ``merged``.
    """

    nats: float
    of_n: float
    of_total: float
    few: float
    fewest: float
    parts: float
    has_pieces: bool
    light: float
    per_spread: float
    per_width: float
    per_octave: float

    @property
    def numbers(self) -> Floats:
        """As ``block_kernel`` has them."""
        logs = (math.log(self.of_n), math.log(self.of_total))
        merging = (self.light, self.per_spread, self.per_width, self.per_octave)
        return np.array(
            [self.nats, *logs, self.few, self.fewest, self.parts, float(self.has_pieces), *merging]
        )


AS_ARRAYS = Fineness(
    nats=MOMENT_NATS,
    of_n=rule_sizes.TOLERABLE,
    of_total=rule_sizes.TOLERABLE,
    few=adaptive_blocks.SPARSE,
    fewest=adaptive_blocks.SPARSE,
    parts=1.0,
    has_pieces=False,
    light=5e-7,
    per_spread=24.0,
    per_width=4.0,
    per_octave=3.0,
)
"""All as arrays do it."""
COARSE = Fineness(
    nats=16.0,
    of_n=1e-7,
    of_total=1e-4,
    few=0.0,
    fewest=6.0,
    parts=1.0,
    has_pieces=True,
    light=2e-6,
    per_spread=14.0,
    per_width=2.3,
    per_octave=2.3,
)
"""Half as many pairs; of priors that are neither nearly flat nor have poles that matter."""
FINER = replace(AS_ARRAYS, of_n=1e-7, of_total=1e-6, parts=3.0, has_pieces=True)
"""Of cells under usual priors whose mixture has a wide component, or what is far away."""
PLANE_NATS, PLANE_ERROR = 16.0, 1e-4
"""Of blocks of both: nats below a cell's mass beyond which they are left out, and error of one."""
_FINER_PLANE, _LEAST_ERROR = 1e-5, 3.0 * PLANE_ERROR
"""Error of a block in cells whose own is not tolerable, or whose pieces are too wide; and what is stated of a
cell at least."""
_WIDE_NOISE = 12.0
"""Scale of the noise of whole sums from which on weights are smooth between whole numbers too."""
_BLURRED = 0.07
"""Weight of a component, times the share of its variance that is between its pairs, up to which coarse blocks
stay: a bell in place of a piece is off by a tenth of this of a level, or more beside others."""

_TOLERABLE = 0.0015
"""Error that is stated, up to which blocks of both stay, as of nested rules."""
_FAR = 20.0
"""Standard deviations from a cell's mean beyond which 1e-4 of its mass may be much of its variance."""
_UNSEEN = 0.02
"""Share of a variance that light pairs have far away, of which coarse blocks may have missed as much."""


def fineness_of(sums: NoisySums) -> Fineness:
    """How fine a problem has to be resolved."""
    marginal = sums.marginal
    if isinstance(marginal, GammaPoisson | GammaGamma):
        concentrations = [marginal.concentration]
    elif isinstance(marginal, BetaNegativeBinomial):
        concentrations = [marginal.concentration1, marginal.concentration0]
    else:
        return AS_ARRAYS
    usual = min(concentrations) >= _LEAST_CONCENTRATION and max(concentrations) <= _USUAL_CONCENTRATION
    return COARSE if usual else AS_ARRAYS


def can_compile(sums: NoisySums, update: Update) -> bool:
    """Whether the loops are made for a problem, whatever was released."""
    low, high = sums.n_prior.support
    return bool(
        _model(sums) is not None
        and isinstance(sums.n_prior, Reciprocal | Uniform)
        and low < high
        and not sums.from_nothing
        and len(sums.totals.scale) <= _MOST_SUMS
        and np.all(np.isfinite(sums.totals.scale))
        and is_compiled()
        and linear_update(update) is not None
    )


def _model(sums: NoisySums) -> Floats | None:
    """Numbers of a model as ``sum_weights`` has them; None of others."""
    marginal, lattice = sums.marginal, [sums.lower, sums.step]
    if isinstance(marginal, GammaPoisson):
        numbers = [0.0, marginal.concentration, marginal.rate, 1.0, 1.0]
    elif isinstance(marginal, BetaNegativeBinomial):
        numbers = [1.0, marginal.concentration1, marginal.concentration0, marginal.successes, 1.0]
    elif isinstance(marginal, GammaGamma):
        numbers = [2.0, marginal.concentration, marginal.rate, marginal.shape, marginal.share]
    else:
        return None
    if max(numbers[1], numbers[2] if numbers[0] == 1.0 else 0.0) > _MOST_CONCENTRATION:
        return None
    return np.array(numbers + lattice, dtype=np.float64)


@functools.cache
def tables_of(tolerance: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the sizes that blocks may have, and rules of sums and of integrals, for an error per block."""
    rules: Any = importlib.import_module("suffice.pipeline.math.distributions.block_rules")
    tables: tuple[Floats, Floats, Floats, Floats] = rules.tables(tolerance)
    return tables


def resolve_blocks(
    sums: NoisySums, update: Update, threads: int | None = None, fineness: Fineness | None = None
) -> NestedPairs:
    """Resolve all cells; the numbers are the same for any number of threads.

    Parameters
    ----------
    sums, update
        As of ``LatentSumPosterior``, for which `can_compile` holds.
    threads : int, optional
        As many as there are processors by default.
    fineness : Fineness, optional
        Of blocks of S at each N. By default usual problems have blocks of both together, and ``FINER`` ones
        of S in cells that these leave, or whose pieces are too wide.
    """
    if fineness is not None:
        return _resolve(sums, update, threads, fineness)
    fineness = fineness_of(sums)
    if fineness is COARSE and _has_planes(sums):
        resolved = _resolve_planes(sums, update, threads, PLANE_ERROR)
        blur = _blur(resolved.merged, update, sums.n_cells)
        left = np.flatnonzero(resolved.settled & ((resolved.error > _TOLERABLE) | (blur > _BLURRED)))
        if left.size:
            finer = _resolve_planes(sums.take(left), update, threads, _FINER_PLANE)
            resolved, blur[left] = _with(resolved, left, finer), _blur(finer.merged, update, left.size)
    else:
        resolved = _resolve(sums, update, threads, fineness)
        blur = _blur(resolved.merged, update, sums.n_cells)
    coarse = blur > _BLURRED
    coarse |= (_reach(resolved, update) > _FAR) | (_unseen(resolved, update) > _UNSEEN)
    left = np.flatnonzero(coarse | ~(resolved.error <= _TOLERABLE))
    if not left.size:
        return resolved
    finer = _resolve(sums.take(left), update, threads, FINER)
    error = _error_of_finer(sums, update, threads, resolved, finer, left)
    return _with(resolved, left, replace(finer, error=error))


def _with(resolved: NestedPairs, left: Integers, finer: NestedPairs) -> NestedPairs:
    """Put what was resolved anew in place of those cells."""
    for name in ("means", "sds", "log_evidence", "most"):
        getattr(resolved.near, name)[left] = getattr(finer.near, name)
    resolved.error[left] = finer.error
    return replace(resolved, merged=resolved.merged.replaced(left, finer.merged))


def _error_of_finer(
    sums: NoisySums, update: Update, threads: int | None, first: NestedPairs, finer: NestedPairs,
    left: Integers,
) -> Floats:  # fmt: skip
    """By how much finer blocks differ from those before, or, where these have no answer, from coarse ones."""
    answers, settled = _answers(first)[left], first.settled[left]
    rest = np.flatnonzero(~settled)
    if rest.size:
        coarse = _resolve(sums.take(left[rest]), update, threads, COARSE)
        answers[rest], settled[rest] = _answers(coarse), coarse.settled
    return differences(answers, _answers(finer), settled & finer.settled)


def _answers(resolved: NestedPairs) -> Floats:
    """Means, standard deviations, log evidences, (n_cells, 3)."""
    return np.stack([resolved.near.means, resolved.near.sds, resolved.near.log_evidence], axis=1)


def _blur(merged: Components, update: Update, cells: int) -> Floats:
    """Largest share of each cell's mass (n_cells,) that a component spreads, rather than its pairs."""
    linear = linear_update(update)
    if linear is None:
        raise TypeError(type(update).__name__)
    line, by = linear
    first, second = (by[i] + by[i + 1] * merged.n + by[i + 2] * merged.total for i in (0, 3))
    # The variance of a logit or a logarithm, as `merge_pairs` has it.
    given = 1.0 / first + (1.0 / second if line == 0 else 0.0)
    blur = np.zeros(cells)
    np.maximum.at(blur, merged.cell, merged.weight * merged.scatter / (merged.scatter + given))
    return blur


def _reach(resolved: NestedPairs, update: Update) -> Floats:
    """How many standard deviations a component is away from its cell's mean at most, (n_cells,)."""
    merged, near = resolved.merged, resolved.near
    given = update(merged.n, merged.total)
    (name,) = given.parameters
    reach = np.zeros(len(near.means))
    np.maximum.at(
        reach, merged.cell, np.abs(given.mean(name) - near.means[merged.cell]) / near.sds[merged.cell]
    )
    return reach


def _unseen(resolved: NestedPairs, update: Update) -> Floats:
    """Share of each cell's variance, (n_cells,), of pairs that are too light for its mixture."""
    merged, near = resolved.merged, resolved.near
    given = cast("Distribution", widened(update(merged.n, merged.total), merged.scatter))
    (name,) = given.parameters
    squares = given.sd(name) ** 2 + (given.mean(name) - near.means[merged.cell]) ** 2
    unseen: Floats = 1.0 - np.bincount(merged.cell, merged.weight * squares, len(near.sds)) / near.sds**2
    return unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """A problem as loops have it."""

    model: Floats
    values: Floats
    reaches: Floats
    rates: Floats
    n_prior: Floats
    line: int
    update: Floats

    @classmethod
    def of(cls, sums: NoisySums, update: Update) -> Self:
        model, linear = _model(sums), linear_update(update)
        if model is None or linear is None:
            raise TypeError(type(sums.marginal).__name__)
        low, high = (float(end) for end in sums.n_prior.support)
        falls = float(isinstance(sums.n_prior, Reciprocal))
        constant = float(sums.n_prior.log_prob(np.array([low]))[0]) + falls * np.log1p(low)
        values, reaches, rates = released(sums)
        return cls(
            model=model,
            values=values,
            reaches=reaches,
            rates=rates,
            n_prior=np.array([constant, falls, low, high]),
            line=linear[0],
            update=linear[1],
        )


def _has_planes(sums: NoisySums) -> bool:
    """Whether typical sums are lines in N, and of whole sums kinks are whole and noise is wide."""
    marginal, reaches = sums.marginal, sums.totals.coefficients[:, 0]
    if isinstance(marginal, GammaGamma):
        return marginal.rate * marginal.shape / marginal.concentration / marginal.share > sums.lower
    is_whole = sums.step == 1.0 and sums.lower == 0.0 and np.all(reaches == np.rint(reaches))
    return bool(is_whole and np.min(sums.totals.scale) >= _WIDE_NOISE)


@functools.cache
def _plane_sizes(error: float) -> Floats:
    """Sizes that are allowed for rules of 1 to 5 nodes, as ``block_rules`` has them."""
    of_points = [
        rule_sizes.largest_sizes(max(points, 2), at_integers=False, tolerance=error) for points in range(1, 6)
    ]
    return np.stack([of_points, of_points])


def _resolve_planes(sums: NoisySums, update: Update, threads: int | None, error: float) -> NestedPairs:
    """By blocks of both, each right to so much of its cell; what rules differ by, and more, is the error."""
    kernel: Any = importlib.import_module(BLOCKS.module)
    given, cells = _Numbers.of(sums, update), sums.n_cells
    fineness = np.array([PLANE_NATS, math.log(error), math.log(error), COARSE.light])
    answers, counts = np.full((cells, 2, 4), np.nan), np.zeros(cells, dtype=np.int64)

    def work(batch: slice) -> Components:
        merged = np.empty((batch.stop - batch.start, kernel.MOST_MERGED, 4))
        kernel.resolve(
            given.model, given.values[batch], given.reaches, given.rates, given.n_prior, fineness,
            given.line, given.update, COARSE.numbers, _plane_sizes(error), gauss_rules(), answers[batch],
            counts[batch], merged,
        )  # fmt: skip
        if sums.is_sum:
            whole = np.all(given.values[batch] == np.rint(given.values[batch]), axis=1)
            counts[batch] = np.where(whole, counts[batch], -1)
        return _used(merged, counts[batch])

    resolved = _joined(on_threads(work, cells, _BATCH, threads), answers[:, 1], counts)
    # Rules may differ by less than they are off: of no cell less is stated than three blocks may be off.
    stated = differences(answers[:, 0], answers[:, 1], counts > 0) + _LEAST_ERROR
    return replace(resolved, error=stated)


@functools.cache
def gauss_rules() -> Floats:
    """Nodes and weights on -1 .. 1 of up to 5 points, (6, 2, 5)."""
    rules = np.zeros((6, 2, 5))
    for points in range(1, 6):
        rules[points, :, :points] = np.polynomial.legendre.leggauss(points)
    return rules


def _used(merged: Floats, counts: Integers) -> Components:
    count = np.maximum(counts, 0)
    used = np.concatenate([rows[:number] for rows, number in zip(merged, count, strict=True)])
    n, total, weight, scatter = used.T.copy()
    cell = np.repeat(np.arange(len(count)), count)
    return Components(cell=cell, n=n, total=total, weight=weight, scatter=scatter)


def _joined(parts: Sequence[Components], answers: Floats, counts: Integers) -> NestedPairs:
    cells = len(answers)
    return NestedPairs(
        near=NearMoments(
            means=answers[:, 0], sds=answers[:, 1], log_evidence=answers[:, 2], most=answers[:, 3]
        ),
        merged=Components.joined(parts, [min(_BATCH, cells - start) for start in range(0, cells, _BATCH)]),
        error=np.where(counts > 0, 0.0, np.inf),
    )


def _resolve(sums: NoisySums, update: Update, threads: int | None, fineness: Fineness) -> NestedPairs:
    numbers = fineness.numbers
    kernel: Any = importlib.import_module(f"{BLOCKS.module.rpartition('.')[0]}.block_kernel")
    given, cells = _Numbers.of(sums, update), sums.n_cells
    model, values, reaches, rates = given.model, given.values, given.reaches, given.rates
    allowed_of_n, *_ = tables_of(fineness.of_n)
    sizes, *rules = tables_of(fineness.of_total)
    answers, counts = np.full((cells, 4), np.nan), np.zeros(cells, dtype=np.int64)
    edges = edges_of_n(sums, *map(float, sums.n_prior.support))

    def work(batch: slice) -> Components:
        size = batch.stop - batch.start
        of_n, many = np.empty((size, 5, kernel.MOST_OF_N)), np.empty(size, dtype=np.int64)
        kernel.blocks_of_n(
            model,
            values[batch],
            reaches,
            rates,
            given.n_prior,
            edges[batch],
            numbers,
            allowed_of_n,
            many,
            of_n,
        )
        is_used = np.arange(kernel.MOST_OF_N) < many[:, None]
        cell = np.repeat(np.arange(size), np.maximum(many, 0))
        left, right, sizes_of_n, depth, pole = (of_n[:, column][is_used] for column in range(5))
        blocks = Blocks(
            row=cell, left=left, right=right, size=sizes_of_n, depth=depth, pole=pole, top=np.zeros(size)
        )
        # Of no cell there may be blocks.
        columns = [(cell[:0], left[:0], left[:0])]
        for of_cell, nodes, weights in nodes_of(
            blocks, is_sum=True, at_integers=sums.is_sum, tolerance=fineness.of_n
        ):
            kept = weights != 0.0
            columns.append((np.broadcast_to(of_cell[:, None], kept.shape)[kept], nodes[kept], weights[kept]))
        cell, n, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(cell, kind="stable")
        cell, n, weight = cell[order], n[order], weight[order]
        merged = np.empty((size, kernel.MOST_MERGED, 4))
        kernel.resolve(
            model, values[batch], reaches, rates, np.searchsorted(cell, np.arange(size + 1)), n,
            sums.n_prior.log_prob(n) + np.log(weight), numbers, given.line, given.update, sizes,
            *rules, answers[batch], counts[batch], merged,
        )  # fmt: skip
        counts[batch][many < 0] = -1
        return _used(merged, counts[batch])

    return _joined(on_threads(work, cells, _BATCH, threads), answers, counts)
