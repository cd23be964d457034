r"""Integrals over boxes: Gauss nodes in every box, the discrete Gauss rule along N.

Given the latent sums the parameters are normal inverse gamma, with :math:`b_N = R + N E / 2` and
:math:`k_N, m_N, a_N` of the conjugate update, so moments are averages of closed forms over the nodes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.noisy_moments import MomentsPrior
    from suffice.pipeline.math.engines.normal.weights import Boxes, MomentWeights
    from suffice.typing import Cells, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Normal inverse gamma distributions given latent sums: arrays of one shape, in half ranges."""

    loc: Floats
    precision: Floats
    concentration: Floats
    scale: Floats

    @classmethod
    def of(cls, prior: MomentsPrior, n: Floats, mean: Floats, log_e: Floats) -> Given:
        """Update the prior, of the part that each point belongs to, with N, m and log E."""
        precision = prior.precision + n
        shift = n / precision * (mean - prior.loc)
        between = prior.precision * shift * (mean - prior.loc) / 2.0
        return cls(
            loc=prior.loc + shift,
            precision=precision,
            concentration=prior.concentration + n / 2.0,
            scale=prior.scale + between + n * np.exp(log_e) / 2.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Points with weights that stand for a density on boxes, cell by cell."""

    cell: Cells
    weight: Floats
    n: Floats
    given: Given
    log_evidence: Floats


def integrate(weights: MomentWeights, boxes: Boxes, levels: Floats | None = None) -> Nodes:
    """Nodes whose weights sum to 1 in every cell; ``log_evidence`` is the log of their sum before.

    With ``levels`` (n_cells, n_levels), equally likely design effects d, the distributions given the latent
    sums are those of N / d records with the same mean and mean square deviation.
    """
    cells = weights.noisy.totals.n_cells
    middle, half = (boxes.low + boxes.high) / 2.0, (boxes.high - boxes.low) / 2.0
    # Two points: exact for cubic polynomials over the integers of a side, and over an interval.
    half[:, 0] = np.sqrt(np.maximum((2.0 * half[:, 0] + 1.0) ** 2 - 1.0, 0.0) / 12.0)
    half[:, 1:] /= np.sqrt(3.0)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    points = (middle[:, None] + signs * half[:, None]).reshape(-1, 3)
    cell, part = np.repeat(boxes.cell, len(signs)), np.repeat(boxes.part, len(signs))
    log_weight = weights.log_weight(cell, part, *points.T) + np.repeat(boxes.log_volume(), len(signs))
    top = np.full(cells, -np.inf)
    np.maximum.at(top, cell, log_weight)
    weight = np.exp(log_weight - top[cell])
    total = np.bincount(cell, weight, cells)
    n, mean, log_e = points.T
    share = weight / total[cell]
    if levels is not None:  # level by level, so that a box's nodes stay together
        number = levels.shape[1]
        n = np.tile(n, number) / levels[cell].T.ravel()
        mean, log_e, part, share = (np.tile(column, number) for column in (mean, log_e, part, share / number))
        cell = np.tile(cell, number)
    return Nodes(
        cell=cell,
        weight=share,
        n=n,
        given=Given.of(weights.noisy.prior.at(part), n, mean, log_e),
        log_evidence=top + np.log(total) - np.log(len(signs)),
    )


def mean_moments(nodes: Nodes, cells: int) -> tuple[Floats, Floats]:
    """Posterior mean and standard deviation of the mean; infinite where there is no second moment."""
    given = nodes.given
    mean = _averages(nodes, given.loc, cells)
    within = _over(given.scale / given.precision, given.concentration - 1.0)
    between = (given.loc - mean[nodes.cell]) ** 2
    return mean, np.sqrt(_averages(nodes, within + between, cells))


def variance_moments(nodes: Nodes, cells: int) -> tuple[Floats, Floats]:
    """Posterior mean and standard deviation of the variance; infinite where there are none."""
    given = nodes.given
    centre = _over(given.scale, given.concentration - 1.0)
    within = _over(centre**2, given.concentration - 2.0)
    mean = _averages(nodes, centre, cells)
    between = np.full_like(centre, np.inf)
    own = mean[nodes.cell]
    np.subtract(centre, own, out=between, where=np.isfinite(own))
    return mean, np.sqrt(_averages(nodes, within + between**2, cells))


def _over(values: Floats, degrees: Floats) -> Floats:
    """Moments of distributions with so many degrees to spare; infinite where there are none to spare."""
    return np.divide(values, degrees, out=np.full_like(values, np.inf), where=degrees > 0.0)


def _averages(nodes: Nodes, values: Floats, cells: int) -> Floats:
    parts = np.multiply(nodes.weight, values, out=np.zeros_like(values), where=nodes.weight > 0.0)
    return np.asarray(np.bincount(nodes.cell, parts, cells), dtype=np.float64)
