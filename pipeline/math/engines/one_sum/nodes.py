r"""Exact posteriors of one parameter when N and one sum S are latent behind discrete Laplace noise.

.. math::
    p(\theta \mid y) = \sum_N \int p(\theta \mid N, S) \, W(N, S) \, dS \Big/ \sum_N \int W(N, S) \, dS

with W as in ``noisy`` and :math:`p(\theta \mid N, S)` the conjugate posterior. No rows at all, N = 0, is a
component of its own, with S = 0.

How much denser a mixture of these is than their prior: in its coordinate every conjugate distribution of
one parameter has a density of the form

.. math:: \log p_j(x) = \log p_j(x_0) + \eta_j \cdot (T(x) - T(x_0))

with two numbers :math:`\eta_j` of its own and two functions T that all share, the prior too. So the ratios of
all distributions at all positions are one product of matrices. Where a distribution is the prior itself, its
ratio is constant, however far out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.distributions.adaptive_blocks import NATS, SLICE, Blocks, divide_by_mass, nodes_of
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import NormalDistribution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureRatio:
    """Made by ``MixtureRatio.of``.

    Attributes
    ----------
    start : ndarray of shape (n_components,), float64
        Log weights and ratios at one position.
    numbers : ndarray of shape (2, n_components), float64
        Those of all distributions less those of the prior.
    rises : callable
        Positions (n,) -> by how much the two functions are higher than at that position, (2, n).
    """

    start: Floats
    numbers: Floats
    rises: Callable[[Floats], Floats]

    @classmethod
    def of(cls, prior: Distribution, distributions: Distribution, log_weight: Floats) -> Self:
        """Take the prior, one distribution, and the components of the mixture with their log weights."""
        coordinate = coordinate_of(distributions)
        at = coordinate.centre[[int(np.argmax(log_weight))]]
        return cls(
            start=log_weight + coordinate.log_density(at) - coordinate_of(prior).log_density(at),
            numbers=_numbers(distributions, at) - _numbers(prior, at),
            rises=_rises(distributions, at),
        )

    def __call__(self, position: Floats) -> Floats:
        """Log ratio at positions (n,)."""
        log_ratio = np.empty(len(position))
        step = max(1, SLICE // len(self.start))
        for first in range(0, len(position), step):
            part = slice(first, first + step)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                terms = self.rises(position[part]).T @ self.numbers
                terms += self.start
                top = np.max(terms, axis=1)
                terms -= top[:, None]
                # Of what is between 0 and 1, seven digits are enough.
                parts = np.exp(terms.astype(np.float32))
                log_ratio[part] = top + np.log(np.sum(parts, axis=1, dtype=np.float64))
        return np.where(np.isnan(log_ratio), -np.inf, log_ratio)


def _numbers(distribution: Distribution, at: Floats) -> Floats:
    """Every distribution's two numbers."""
    if isinstance(distribution, NormalDistribution):
        precision = distribution.scale**-2.0
        return np.stack([(distribution.loc - at) * precision, precision])
    if isinstance(distribution, GammaDistribution):
        return np.stack([distribution.concentration, distribution.rate * np.exp(at)])
    if isinstance(distribution, InverseGammaDistribution):
        return np.stack([distribution.concentration, distribution.scale * np.exp(-at)])
    if isinstance(distribution, BetaDistribution):
        return np.stack([distribution.concentration1, distribution.concentration0])
    raise TypeError(type(distribution).__name__)


def _rises(distribution: Distribution, at: Floats) -> Callable[[Floats], Floats]:
    """Return the functions that they multiply."""
    if isinstance(distribution, NormalDistribution):
        return lambda position: _parabola(position - at)
    if isinstance(distribution, GammaDistribution):
        return lambda position: _exponential(position - at)
    if isinstance(distribution, InverseGammaDistribution):
        return lambda position: _exponential(at - position)
    return lambda position: _logits(position - at, at)


def _parabola(distance: Floats) -> Floats:
    return np.stack([distance, -0.5 * distance * distance])


def _exponential(distance: Floats) -> Floats:
    return np.stack([distance, -np.expm1(distance)])


def _logits(distance: Floats, at: Floats) -> Floats:
    """Rises of the logs of a probability and of its complement from the logit `at`."""
    rest = 1.0 / (1.0 + np.exp(at))
    return -np.stack([np.log1p(rest * np.expm1(-distance)), np.log1p(rest * np.exp(at) * np.expm1(distance))])


BATCH = 256
"""Cells resolved at a time: their numbers fit into a processor's cache."""
_NATS = 22.0
"""The same as ``NATS`` where moments are all that is asked for: means lose some 1e-8 standard deviations,
these some 1e-6 of themselves where tails are heavy."""
_LEAST = 1e-290
"""Weight below which a node is none."""
_PARTS = 16
_OCTAVES = np.exp2(np.arange(2.0, 51.0, 2.0))
_SPREAD = np.array([-25.0, 0.0, 25.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Latent pairs (N, S) of some cells with their posterior probabilities.

    Attributes
    ----------
    cell : ndarray of shape (n_nodes,), int64
    n, total : ndarray of shape (n_nodes,), float64
        N, and S in T's unit.
    weight : ndarray of shape (n_nodes,), float64
        Sums to 1 over the nodes of a cell.
    log_evidence : ndarray of shape (n_cells,), float64
        Log of the sum of W over N and S.
    """

    cell: Cells
    n: Floats
    total: Floats
    weight: Floats
    log_evidence: Floats


def resolve(sums: NoisySums, *, evenly: bool = False, nats: float | None = None) -> Nodes:
    """Find nodes and weights whose sums over (N, S) are accurate for smooth functions of both.

    Where that has to be so far out in the tails as well, relative to what is there, all is resolved `evenly`;
    where it has to be so farther out than usual, within so many `nats` of the highest weight.
    """
    cells = sums.n_cells
    if nats is None:
        nats = NATS if evenly else _NATS
    cell, n, weight = rows_of(sums, nats, evenly=evenly)
    blocks = blocks_of(sums, cell, n, weight, nats, evenly=evenly)
    log_share = np.log(weight) - blocks.top[cell]
    columns = []
    for row, nodes, weights in nodes_of(blocks, is_sum=sums.is_sum):
        # Block by block, so that what depends on N alone is worked out once a block.
        node_cell, count = cell[row], n[row]
        masses = sums.log_joint(node_cell, count, nodes)
        masses += log_share[row][:, None]
        np.exp(masses, out=masses)
        masses *= weights
        used = np.flatnonzero(masses > _LEAST)
        repeated = (np.repeat(column, nodes.shape[1])[used] for column in (node_cell, count))
        columns.append((*repeated, nodes.ravel()[used], masses.ravel()[used]))
    node_cell, count, position, mass = (np.concatenate(column) for column in zip(*columns, strict=True))
    evidence = np.bincount(node_cell, mass, cells)
    amount = np.where(count < 1.0, 0.0, sums.amount(position))
    return Nodes(
        cell=node_cell,
        n=count,
        total=sums.total(count, amount),
        weight=mass / evidence[node_cell],
        log_evidence=blocks.top + np.log(evidence),
    )


def rows_of(sums: NoisySums, nats: float = _NATS, *, evenly: bool = False) -> tuple[Cells, Floats, Floats]:
    """Values of N that stand for all: cell, N and weight, each (n_rows,)."""
    low, high = sums.n_prior.support
    if low == high:
        cells = np.arange(sums.n_cells)
        return cells, np.full(len(cells), float(low)), np.ones(len(cells))
    columns = []
    # Sums over integers are kinked at integers, and would ripple if N were taken between them.
    at_integers = sums.is_sum
    blocks = blocks_of_n(sums, nats, at_integers=at_integers, evenly=evenly, approximate=True)
    for cell, nodes, weights in nodes_of(blocks, is_sum=True, at_integers=at_integers):
        used = weights != 0.0
        node_cell = np.broadcast_to(cell[:, None], used.shape)
        columns.append((node_cell[used], nodes[used], weights[used]))
    cell, n, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
    return cell, n, weight


def blocks_of_n(
    sums: NoisySums,
    nats: float = NATS,
    *,
    at_integers: bool = False,
    evenly: bool = False,
    approximate: bool = False,
) -> Blocks:
    """Blocks of N in which the mass over S is smooth; a row is a cell.

    What they are judged by is `approximate` for who sums over them; who draws rejects what it misses.
    """
    cells = np.arange(sums.n_cells)
    low, high = (float(end) for end in sums.n_prior.support)
    edges = _edges_of_n(sums, low, high)
    return divide_by_mass(
        lambda cell, n: sums.profile(np.repeat(cell, n.shape[1]), n.ravel()).reshape(n.shape),
        np.repeat(cells, edges.shape[1] - 1),
        edges[:, :-1].ravel(),
        edges[:, 1:].ravel(),
        group=cells,
        is_sum=True,
        at_integers=at_integers,
        longest=lambda left: 9.0 * np.maximum(left, 1.0),
        nats=nats,
        evenly=evenly,
        approximate=approximate,
    )


def _edges_of_n(sums: NoisySums, low: float, high: float) -> Floats:
    """Edges (n_cells, n_edges) of blocks of N: every second octave, kinks, the noise's scale."""
    octaves = np.concatenate([np.arange(2.0), _OCTAVES])
    edges = np.broadcast_to(octaves, (sums.n_cells, len(octaves)))
    reach = float(np.max(sums.totals.coefficients[:, 0]))
    if reach:
        # Where all of N has to be in one sum for it to be what was released, a spike there crosses a kink.
        values = sums.totals.by_release
        wide = np.ceil(sums.totals.scale_by_release[:, :1] / reach)
        near = np.sum(values, axis=2, keepdims=True) / reach + wide * _SPREAD
        kinks = np.concatenate([near, values / reach], axis=2)
        edges = np.concatenate([edges, np.ceil(kinks).reshape(sums.n_cells, -1)], axis=1)
    ends = np.broadcast_to(np.array([low, high + 1.0]), (len(edges), 2))
    edges = np.concatenate([edges, ends], axis=1)
    clipped: Floats = np.sort(np.clip(edges, low, high + 1.0), axis=1)
    return clipped


def ranges_of(sums: NoisySums, cell: Cells, n: Floats) -> tuple[Cells, Floats, Floats]:
    """Ranges of S that matter, between kinks: row, left, right."""
    with_rows = np.flatnonzero(n >= 1.0)
    breaks = sums.breaks(cell[with_rows], n[with_rows])
    # Rows without any records have their only sum, and are a block by themselves.
    none = np.flatnonzero(n < 1.0)
    return (
        np.concatenate([np.repeat(with_rows, breaks.shape[1] - 1), none]),
        np.concatenate([breaks[:, :-1].ravel(), np.zeros(len(none))]),
        np.concatenate([breaks[:, 1:].ravel(), np.ones(len(none))]),
    )


def blocks_of(
    sums: NoisySums,
    cell: Cells,
    n: Floats,
    weight: Floats,
    nats: float = _NATS,
    *,
    evenly: bool = False,
) -> Blocks:
    """Blocks of S in every row, of cells whose rows have these weights."""
    log_weights = np.log(weight)
    blocks = divide_by_mass(
        lambda row, position: sums.log_joint(cell[row], n[row], position) + log_weights[row][:, None],
        *ranges_of(sums, cell, n),
        group=cell,
        is_sum=sums.is_sum,
        longest=sums.longest,
        nats=nats,
        evenly=evenly,
    )
    if len(n) > sums.n_cells:
        return blocks
    # With one N the nodes of S alone have to resolve the distribution of the parameter.
    whole = np.arange(len(blocks.row))
    part, left, right = cut(whole, blocks.left, blocks.right, _PARTS, is_sum=sums.is_sum)
    return replace(blocks.take(part), left=left, right=right)


def cut(
    row: Cells, left: Floats, right: Floats, parts: Floats | float, *, is_sum: bool
) -> tuple[Cells, Floats, Floats]:
    """Cut every block into so many equal parts; into single integers where there are fewer."""
    length = right - left
    parts = np.minimum(parts, length) if is_sum else np.broadcast_to(parts, length.shape)
    number = parts.astype(np.int64)
    first, length, parts = (np.repeat(column, number) for column in (left, length, parts))
    index = np.arange(len(first)) - np.repeat(np.cumsum(number) - number, number)
    begin, end = first + length * index / parts, first + length * (index + 1) / parts
    if is_sum:
        begin, end = np.floor(begin), np.floor(end)
    return np.repeat(row, number), begin, end


def batches(sums: NoisySums) -> Iterator[Cells]:
    """Consecutive cells to be resolved together; more of them where N is known."""
    low, high = sums.n_prior.support
    size = BATCH if low < high else 4 * BATCH
    for start in range(0, sums.n_cells, size):
        yield np.arange(start, min(start + size, sums.n_cells))
