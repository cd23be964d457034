r"""The distribution of a parameter behind noisy sums of clipped records, by quadrature, under any prior.

Model. A record clipped to 0..C stands on a lattice of R steps: it is k C / R with the chance
:math:`\pi_k(\theta)`, k = 0..R. Counts are on such a lattice; others stand as the two values about them. With
S the sum of N records, R N - S what they lack to the bound, and b the noise's scale in steps

.. math:: p(y \mid \theta) = \sum_N \pi(N) \sum_S P(S \mid N, \theta) \,
    e^{-|y_1 - S| / b} \, e^{-|y_2 - (R N - S)| / b} \cdot \text{const}, \qquad (1)

which is exact on the lattice (``engines.clipped_counts``). Where N is public there is no second factor.
With data sets of the same parameter, each of its own N,

.. math:: p(\theta \mid y_1, \dots, y_J) \propto p(\theta) \prod_j p(y_j \mid \theta). \qquad (2)

The lattice adds at most :math:`C^2 / 4 R^2` to a record's variance: to that of N records as little of the
noise's variance, :math:`2 b^2` in the unit of C, as :math:`\epsilon` = ``_BESIDE_NOISE`` where

.. math:: R^2 \ge N C^2 / (8 b^2 \epsilon). \qquad (3)

Symbols:

- theta: the parameter; x = ``position``, its logarithm or logit
- pi_k: ``chances``, (n, R + 1)
- R: ``reach``
- N: a whole number on the support of ``n_prior``
- y_1, y_2: ``ClippedSums.first`` and ``second``, (n_cells,), in steps; the second where N is private
- b: ``scale``, > 0, in steps

Method. Numerical: (2) is integrated over x on panels that saddle points of (1) find. Of several data sets the
weight by saddle points stands where it is more than 100 nats below the highest. A posterior has the moments
that its prior has.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.ask.inference.any_prior import LINES
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.adaptive_blocks import divide
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution
from suffice.pipeline.math.engines.clipped_counts import ClippedSums, log_product, saddle, tilted
from suffice.pipeline.math.priors.composed import OfOneNumber, OnLine, composed_on_line
from suffice.pipeline.math.priors.density import DensityOnLine
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.math.priors.record_count import Fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.families.shared.clipped_record import ClippedRecord
    from suffice.pipeline.math.distributions.distribution import Line, Prior
    from suffice.pipeline.math.distributions.quadrature import Cell
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Cells, Floats


_NATS = 50.0
"""How far below its highest density the tails of a conjugate prior end."""
_FARTHEST_PLACE = 690.0
"""Beyond it the logarithm of a rate has no exponential."""
_OCTAVES = np.exp2(np.arange(0.0, 40.0))
_AROUND = np.array([-8.0, -3.0, 0.0, 3.0, 8.0])
_RISE = 16.0
_LONGEST = 2.0
_NOTHING = -1e100
_DEEP = 100.0
"""Nats below the mode of a product beyond which it is evaluated only roughly."""
_BESIDE_NOISE = 0.005
"""Of the noise's variance, what a coarse lattice may add to that of a sum."""
_SURE = 4.0
"""Standard deviations of N's noise above its estimate up to which that holds."""
_RESOLVED = 64.0
"""Radians by which the highest frequency of a coarse lattice turns within the noise's scale: with c of them,
no more than 2 / (pi c) of a likelihood is left out at a kink of the noise's density, and less elsewhere."""
_FEWEST = 8
"""Steps of a lattice."""
_ELEMENTS = 1 << 21
"""Chances held at a time while panels are found: some hundred megabytes with what rests on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorOnLine:
    """A proper prior on the line, but for a constant.

    Attributes
    ----------
    log_density : callable
        Positions (n,) -> log densities.
    edges : ndarray of shape (n_edges,), float64
        Ascending; outside of them nothing matters.
    """

    log_density: Callable[[Floats], Floats]
    edges: Floats


def clipped_distribution(
    parts: Sequence[NoisyStatistic], prior: Prior | Mixture | OfOneNumber, n_priors: Sequence[NPrior]
) -> GriddedDistribution:
    """Return the distribution of a family's one parameter given noisy sums of clipped records.

    Parameters
    ----------
    parts : sequence of NoisyStatistic
        One, or several of disjoint data with one parameter in common, cell by cell.
    prior : Prior, Mixture, or another of one number that has no point masses
        It counts once.
    n_priors : sequence of NPrior
        Of every part's own number of records.

    Raises
    ------
    PriorError
        Where a density is improper or leaves the parameter's domain, or the prior has point masses.
    """
    statistic = parts[0]
    family = FAMILIES[statistic.plan.family]
    line = LINES[family.prior]
    (name,) = nothing_observed(statistic, family.default_prior(statistic.plan.parameters)).parameters
    line_prior = prior_on_line(statistic, prior, line)
    distribution = GriddedDistribution.of(name, line, _cells(parts, line_prior, n_priors, line))
    # Records at the bound rule out no larger rate: a posterior has the moments that its prior has.
    alone = GriddedDistribution.of(
        name, line, [(line_prior.edges[:-1], line_prior.edges[1:], line_prior.log_density)]
    )
    return replace(
        distribution,
        means=np.where(np.isfinite(alone.means), distribution.means, alone.means),
        sds=np.where(np.isfinite(alone.sds), distribution.sds, alone.sds),
    )


def reaches(parts: Sequence[NoisyStatistic], n_priors: Sequence[NPrior]) -> Cells:
    """Return in how many steps a clipped record is taken, (n_cells,): as few as the noise allows, by (3)."""
    plan = parts[0].plan
    record = _record_of(plan)
    finest = record.reach(plan.parameters)
    needed = np.full(len(parts[0].values), float(finest) if record.is_exact else min(finest, _FEWEST))
    if not record.is_exact:
        for part, n_prior in zip(parts, n_priors, strict=True):
            width = float(1 << (part.plan.parameters.lattice_bits or 0))
            wide = part.plan.scale / width
            n = np.full(len(needed), float(n_prior.support[0]))
            if part.values.shape[1] > 1:
                # N is (y_1 + y_2) / R, with two Laplace numbers: sd 2 b / R, as b is ``wide`` times C.
                n = np.sum(part.values.astype(np.float64), axis=1) / width + _SURE * 2.0 * wide
            n = np.clip(n, float(n_prior.support[0]), float(n_prior.support[1]))
            # (3), with the noise in units of C.
            needed = np.maximum(needed, np.sqrt(n / (8.0 * _BESIDE_NOISE)) / wide)
    # Whole halvings, so that cells share few lattices.
    halvings = np.floor(np.log2(np.maximum(finest / needed, 1.0)))
    return np.ceil(finest / np.exp2(halvings)).astype(np.int64)


def _record_of(plan: StatisticPlan) -> ClippedRecord:
    record = FAMILIES[plan.family].clipped_record
    assert record is not None  # noqa: S101 - the caller has looked
    return record


def noisy_counts(statistic: NoisyStatistic, n_prior: NPrior, reach: int) -> ClippedSums:
    """Return the raw noisy sums and their distribution, in steps of which a record's bound has so many.

    What was released is rounded to a step, which is little beside what one clipped record varies by.
    """
    plan = statistic.plan
    bits = plan.parameters.lattice_bits
    step = 1.0 if bits is None else (1 << bits) / reach
    values = statistic.values.astype(np.float64) / step
    first = np.rint(values[:, 0])
    low, high = n_prior.support
    return ClippedSums(
        first=first,
        second=np.rint(np.sum(values, axis=1)) - first if values.shape[1] > 1 else None,
        reach=reach,
        scale=plan.scale / step,
        # Characteristic functions beyond ``_RESOLVED`` over the noise's scale are left out.
        highest=np.pi if bits is None else min(_RESOLVED * step / plan.scale, np.pi),
        low=float(low),
        high=float(high),
    )


def _cells(
    parts: Sequence[NoisyStatistic], prior: PriorOnLine, n_priors: Sequence[NPrior], line: Line
) -> list[Cell]:
    """Panels and log densities, cell by cell; those on one lattice together."""
    steps = reaches(parts, n_priors)
    cells_by_row: dict[int, Cell] = {}
    for reach in np.unique(steps).tolist():
        rows = np.flatnonzero(steps == reach)
        batch_parts = [part.take(rows) for part in parts]
        cells_by_row |= zip(
            rows.tolist(), _cells_in_steps(batch_parts, prior, n_priors, line, reach), strict=True
        )
    return [cells_by_row[row] for row in range(len(steps))]


def _cells_in_steps(
    parts: Sequence[NoisyStatistic], prior: PriorOnLine, n_priors: Sequence[NPrior], line: Line, reach: int
) -> Iterator[Cell]:
    """Panels and log densities, cell by cell; panels are found for many cells at a time."""
    plan = parts[0].plan
    record = _record_of(plan)
    counts = [noisy_counts(part, given, reach) for part, given in zip(parts, n_priors, strict=True)]

    def chances(position: Floats) -> Floats:
        return record.chances(line.parameter(position), plan.parameters, reach)

    per_cell = 5 * (len(prior.edges) + len(counts) * len(_AROUND)) * (counts[0].reach + 1)
    step = max(1, _ELEMENTS // per_cell)
    cells = np.arange(len(parts[0].values))
    for start in range(0, len(cells), step):
        batch = [part.take(cells[start : start + step]) for part in counts]
        row, left, right = _panels(batch, prior, chances)
        ends = np.searchsorted(row, np.arange(len(batch[0].first) + 1))
        for cell, (first, last) in enumerate(itertools.pairwise(ends)):
            cell_parts = [part.take(np.array([cell])) for part in batch]

            def log_density(position: Floats, cell_parts: Sequence[ClippedSums] = cell_parts) -> Floats:
                return _log_density(cell_parts, n_priors, chances(position), prior.log_density(position))

            yield left[first:last], right[first:last], log_density


def _log_density(
    sums: Sequence[ClippedSums], n_priors: Sequence[NPrior], chance: Floats, log_prior: Floats
) -> Floats:
    """The log of the prior and all likelihoods of one cell, (n_rows,), but for a constant."""
    if len(sums) == 1:
        return log_product(sums[0], n_priors[0], chance, log_prior)
    rows = np.zeros(len(chance), dtype=np.int64)
    depths = np.stack([saddle(part.take(rows), chance).log_weight for part in sums])
    # (2) by saddle points, to tell where it matters.
    together = log_prior + np.sum(depths, axis=0)
    together -= np.max(together)
    log_density: Floats = np.maximum(together, _NOTHING)
    near = together > -_DEEP
    log_density[near] = log_prior[near]
    for part, depth, n_prior in zip(sums, depths, n_priors, strict=True):
        # What the others make improbable need not be resolved: to each they are part of the prior.
        others = (together - depth)[near]
        log_density[near] += log_product(part, n_prior, chance[near], others) - others
    log_density[near] -= np.max(log_density[near])
    return log_density


def _panels(
    counts: Sequence[ClippedSums], prior: PriorOnLine, chances: Callable[[Floats], Floats]
) -> tuple[Cells, Floats, Floats]:
    """Panels beyond which nothing matters, ascending cell by cell: the cell, left and right."""
    cells = np.arange(len(counts[0].first))
    half = float(_positions(np.array([counts[0].reach / 2.0]), prior, chances)[0])
    edges = np.broadcast_to(prior.edges, (len(cells), len(prior.edges)))
    for part in counts:
        centre, width = _fit(part, prior, chances)
        edges = np.concatenate([edges, centre[:, None] + width[:, None] * _AROUND], axis=1)
    edges = np.sort(np.clip(edges, prior.edges[0], prior.edges[-1]), axis=1)

    def evaluate(row: Cells, position: Floats) -> Floats:
        flat, rows = position.ravel(), np.repeat(row, position.shape[1])
        chance, value = chances(flat), prior.log_density(flat)
        for part in counts:
            # (2) by saddle points.
            value = value + saddle(part.take(rows), chance).log_weight
        return np.maximum(value, _NOTHING).reshape(position.shape)

    row, left, right, _ = divide(
        evaluate,
        np.repeat(cells, edges.shape[1] - 1),
        edges[:, :-1].ravel(),
        edges[:, 1:].ravel(),
        group=cells,
        is_sum=False,
        most_rise=_RISE,
        longest=lambda left: _LONGEST + np.abs(left - half) / 2.0,
    )
    order = np.lexsort((left, row))
    return row[order], left[order], right[order]


def _fit(
    counts: ClippedSums, prior: PriorOnLine, chances: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Positions at which records have the mean that was released, and about how well these are known."""
    n = np.full(len(counts.first), counts.low)
    if counts.second is not None:
        n = np.clip((counts.first + counts.second) / counts.reach, max(counts.low, 1.0), counts.high)
    n = np.maximum(n, 1.0)
    target = np.clip(counts.first / n, 0.25 / n, counts.reach - 0.25 / n)
    middle = _positions(target, prior, chances)
    _, _, mean, variance = tilted(chances(middle), np.zeros(len(n)))
    # The delta method: an error of the mean over its derivative by x.
    slope = np.abs(_mean(chances(middle + 0.01)) - mean) / 0.01
    # The variance of a sum of n records and of Laplace noise, 2 b^2.
    error = np.sqrt(n * variance + 2.0 * counts.scale**2) / n
    with np.errstate(divide="ignore"):
        return middle, np.minimum(error / np.maximum(slope, 1e-300), 10.0)


def _positions(target: Floats, prior: PriorOnLine, chances: Callable[[Floats], Floats]) -> Floats:
    """Positions at which clipped records have these means, or the ends of the prior."""
    left, right = (np.full(len(target), end) for end in prior.edges[[0, -1]])
    falls = _mean(chances(left)) > _mean(chances(right))
    for _ in range(60):
        middle = (left + right) / 2.0
        # Bisection: the mean is monotone in x.
        below = (_mean(chances(middle)) < target) != falls
        left, right = np.where(below, middle, left), np.where(below, right, middle)
    return left


def _mean(chance: Floats) -> Floats:
    mean: Floats = chance @ np.arange(float(chance.shape[1]))
    return mean


def prior_on_line(statistic: NoisyStatistic, prior: Prior | Mixture | OfOneNumber, line: Line) -> PriorOnLine:
    """Return a prior's log density on the line, and where it is.

    Raises
    ------
    PriorError
        Where a density is improper or leaves the parameter's domain.
    """
    if isinstance(prior, OfOneNumber):
        default = FAMILIES[statistic.plan.family].default_prior(statistic.plan.parameters)
        typical = float(coordinate_of(nothing_observed(statistic, default)).centre[0])
        density = density_on_line(prior, line, typical)
        return PriorOnLine(log_density=density.log_density, edges=density.edges)
    if isinstance(prior, Mixture):
        parts = [_conjugate(statistic, component) for component in prior.components]
        log_weights = np.log(np.array(prior.weights))[:, None]
        return PriorOnLine(
            # A mixture of priors, but for the sum of its weights.
            log_density=lambda position: np.logaddexp.reduce(
                log_weights + np.stack([part.log_density(position) for part in parts])
            ),
            edges=_thinned(parts),
        )
    return _conjugate(statistic, prior)


def density_on_line(prior: OfOneNumber, line: Line, typical: float) -> OnLine:
    """Return a prior that is a density, or composed of densities alone, on the line.

    Raises
    ------
    PriorError
        Where it has point masses, beside which clipping is not modelled.
    """
    on_line = composed_on_line(prior, line, typical)
    if isinstance(on_line, DensityOnLine):
        return on_line
    if on_line.together is None or len(on_line.atoms):
        message = (
            f"prior {prior}: clipping is not modelled beside point masses: ask with clipping='ignored', or "
            "give a prior without them"
        )
        raise PriorError(message)
    return on_line.together


def _conjugate(statistic: NoisyStatistic, prior: Prior) -> PriorOnLine:
    distribution = coordinate_of(nothing_observed(statistic, prior))
    centre, width = float(distribution.centre[0]), float(distribution.width[0])

    def log_density(position: Floats) -> Floats:
        return distribution.log_density(position[:, None])[:, 0]

    positions = np.concatenate([centre - width * _OCTAVES[::-1], [centre], centre + width * _OCTAVES])
    positions = positions[positions < _FARTHEST_PLACE]
    value = log_density(positions)
    kept = np.flatnonzero(value > np.max(value) - _NATS)
    first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, len(positions) - 1)
    return PriorOnLine(log_density=log_density, edges=positions[first : last + 1])


def _thinned(parts: Sequence[PriorOnLine]) -> Floats:
    """The edges of all, but for those nearer to the last one than any of a single component are."""
    edges = np.unique(np.concatenate([part.edges for part in parts]))
    # Edges of a component are in octaves of its width: no nearer than its densest are of use.
    apart = min(float(np.min(np.diff(part.edges))) for part in parts)
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if edge - kept[-1] >= apart and edges[-1] - edge >= apart / 2.0:
            kept.append(edge)
    return np.array([*kept, edges[-1]])


def nothing_observed(statistic: NoisyStatistic, prior: Prior) -> Any:
    """The prior, as the distribution of one cell."""
    latent: Any = FAMILIES[statistic.plan.family].latent
    return latent(statistic, prior, Fixed(0))[1](np.zeros(1), np.zeros(1))
