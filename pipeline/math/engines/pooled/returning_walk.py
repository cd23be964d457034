r"""Series that return to a level: step and coefficient on a lattice, levels by sums, positions by recursions.

Model. (2) of ``walk``, jumps included, with the hyperpriors of ``ordered_law``: the step and the coefficient
are shared by all series of a pool, each has a level m of its own.

Method. The lattice of ``hyper_lattice`` is over :math:`\theta = (\log s, \operatorname{logit} \phi)`, with
the exact evidence of ``walked``. Normal approximations of likelihoods place it, and say of which levels to
take the sum at :math:`\theta`: evenly spaced ones, ``_APART`` of the narrowest posterior of a level apart, as
far as any series may have its own; they go on while one at an end counts. Points of each series are about
its own level, so that levels are as far from the middle point of each. Steps are at least ``_LEAST`` of what
points are apart: a process with smaller ones stays at its level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.hyper_lattice import resolved
from suffice.pipeline.math.engines.pooled.hyperpriors import location_prior
from suffice.pipeline.math.engines.pooled.ordered_distribution import Approximate
from suffice.pipeline.math.engines.pooled.walk_distribution import mixture, stretched
from suffice.pipeline.math.engines.pooled.walk_steps import StepPosterior, WalkNode
from suffice.pipeline.math.engines.pooled.walked import Walked

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.ordered_law import OrderedLaw
    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.pipeline.math.engines.pooled.walk_distribution import WalkDistribution
    from suffice.typing import Floats

_MOST = 1_201
_APART, _REACH, _LEAST = 0.9, 4.5, 0.75
_AT_AN_END, _FURTHER, _MOST_LEVELS = 1e-4, 4, 121


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeNode:
    """Hyperparameters, and what is known of them."""

    theta: Floats
    log_weight: float
    node: WalkNode


def returning_distribution(
    cells: CellsInOrder, name: str, line: Line, law: OrderedLaw, *, jumps: float
) -> WalkDistribution:
    """Return the posterior of every cell's parameter, step, coefficient and levels integrated over.

    Parameters
    ----------
    cells : CellsInOrder
    name : str
        The parameter's.
    line : Line
    law : OrderedLaw
        One that returns, without a season.
    jumps : float
        The share of steps that are jumps, in 0..1.
    """
    prior, n_series = location_prior(line, cells.middle), len(cells.cell)
    mean, precision = cells.moments(np.arange(n_series))
    approximate = Approximate(law=law, prior=prior, mean=mean, precision=precision)
    mode, covariance = approximate.mode()
    smooth = approximate.smooth(mode, covariance)
    points = approximate.points(smooth, _MOST)
    level = _levels(approximate, mode)[0]
    # Points are about the level of each series.
    aside = np.ceil(np.abs(points.centre - level) / points.spacing).astype(np.int64)
    points = replace(points, centre=level, reach=np.minimum(points.reach + aside, _MOST // 2))
    walked = stretched(Walked(cells, points, prior, jumps), _node(approximate, points.centre, mode, 0))
    least = float(np.log(_LEAST * points.spacing))

    def at(theta: Floats, _: LatticeNode | None) -> LatticeNode:
        log_evidence, node = _summed(walked, approximate, theta)
        return LatticeNode(theta=theta, log_weight=log_evidence + law.log_prior(theta), node=node)

    def is_possible(theta: Floats) -> bool:
        return law.is_possible(theta) and bool(theta[0] >= least)

    mode[0] = max(mode[0], least + 1e-9)
    nodes, weight, settled = resolved(at, is_possible, mode, covariance)
    steps = StepPosterior(nodes=tuple(each.node for each in nodes), weight=weight, settled=settled)
    is_fine = points.are_fine_for(float(np.sqrt(np.min(smooth[1]))))
    return mixture(walked, steps, name, line, is_fine=is_fine)


def _summed(walked: Walked, approximate: Approximate, theta: Floats) -> tuple[float, WalkNode]:
    """Return log evidence of all series, and the node whose levels hold all that counts."""
    further = 0
    while True:
        node, total, at_an_end = _node(approximate, walked.points.centre, theta, further), 0.0, 0.0
        for block in walked.blocks():
            log_joint = walked.log_joint(node, block)
            of_series = np.logaddexp.reduce(log_joint, axis=0)
            total += float(np.sum(of_series))
            at_an_end = max(at_an_end, float(np.exp(np.max(log_joint[[0, -1]] - of_series))))
        assert node.levels is not None  # noqa: S101 - nodes that return have some
        if at_an_end < _AT_AN_END or len(node.levels) >= _MOST_LEVELS:
            return total, node
        further += _FURTHER


def _node(approximate: Approximate, centre: Floats, theta: Floats, further: int) -> WalkNode:
    """Return hyperparameters and levels, from the middle points of series, some more at either end."""
    mean, sd = _levels(approximate, theta)
    apart = _APART * float(np.min(sd))
    low, high = (float(np.min(mean - centre - _REACH * sd)), float(np.max(mean - centre + _REACH * sd)))
    n_levels = int(np.clip(np.ceil((high - low) / apart) + 1 + 2 * further, 3, _MOST_LEVELS))
    half = max(high - low, 2.0 * apart) / 2.0 + further * apart
    value = approximate.law.values(theta)
    return WalkNode(
        step=value["step"],
        coefficient=value["coefficient"],
        levels=np.linspace((low + high) / 2.0 - half, (low + high) / 2.0 + half, n_levels),
    )


def _levels(approximate: Approximate, theta: Floats) -> tuple[Floats, Floats]:
    """Return means and standard deviations of levels, (n_series,), under normal likelihoods."""
    prior = approximate.prior
    n_times = approximate.mean.shape[1]
    covariance = approximate.law.covariance(theta, n_times, prior)
    # E(m | x) is a sum of x with the same weights of all series; m has one covariance with each x.
    together = np.full(n_times, 1.0 / prior.precision)
    weights = np.linalg.solve(covariance, together)
    law = approximate.at(theta)
    left = 1.0 / prior.precision - together @ weights
    mean = prior.centre + law.mean @ weights
    variance = left + np.einsum("i,nij,j->n", weights, law.covariance, weights)
    return mean, np.sqrt(np.maximum(variance, 1e-12))
