r"""The posterior of one parameter in many cells, from tables of its likelihood and a prior on the line.

Model. Of a prior density :math:`\pi` of the position x and a tabulated log likelihood l,

.. math:: p(x \mid y) \propto \pi(x) \, e^{l(x)}. \qquad (1)

Symbols:

- x: positions; l: ``tables``
- pi: ``log_prior``, between ``edges`` smooth

Method. Both are smooth on the panels that the table's and the prior's edges make together, and integrals are
those of their nodes. Edges of a prior between which one polynomial of the table's degree is it to ``_SAME``
nats are left out before. Panels that lie ``_NATS`` below the highest are left out, but for the outermost.
Cells are integrated in blocks, so that memory is that of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution, integral_rule
from suffice.pipeline.math.engines.tabulated import DEGREE

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.inference.tabled_likelihood import LikelihoodTable
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.typing import Floats, Rows

_NATS = 45.0
_TOLERABLE = 1e-5
"""Share of a posterior that may lie where a table is not known."""
_SAME = 1e-7
_RISE = 8.0
_CELLS = 512
_LOBATTO = -np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorOnLine:
    """A prior density as it is integrated.

    Attributes
    ----------
    ends : tuple of float
        Of the support.
    edges : ndarray of shape (n_edges,), float64
        Between two of them it is smooth, or negligible.
    log_density : callable
        Positions -> log densities, but for a constant.
    """

    ends: tuple[float, float]
    edges: Floats
    log_density: Callable[[Floats], Floats]

    def coarse(self) -> PriorOnLine:
        """Return the same with no more edges than polynomials need."""
        edges = np.unique(np.clip(np.concatenate([self.ends, self.edges]), *self.ends))
        nodes, _ = integral_rule(edges[:-1], edges[1:])
        value = self.log_density(nodes)
        kept, first = [0], 0
        while first < len(edges) - 1:
            # Twice as many panels as before, while one polynomial is good for all.
            last, step = first + 1, 1
            while step:
                wanted = min(last + step, len(edges) - 1)
                if wanted > last and self._is_one(
                    edges[first], edges[wanted], nodes[first:wanted], value[first:wanted]
                ):
                    last, step = wanted, 2 * step
                else:
                    step //= 2
            kept.append(last)
            first = last
        return PriorOnLine(ends=self.ends, edges=edges[kept], log_density=self.log_density)

    def _is_one(self, left: float, right: float, nodes: Floats, value: Floats) -> bool:
        if not np.all(np.isfinite(value)) or np.ptp(value) > _RISE:
            return False
        middle, half = (left + right) / 2.0, (right - left) / 2.0
        fitted = np.polynomial.chebyshev.chebfit(_LOBATTO, self.log_density(middle + half * _LOBATTO), DEGREE)
        miss = np.polynomial.chebyshev.chebval((nodes - middle) / half, fitted) - value
        return bool(np.max(np.abs(miss)) <= _SAME)


def tabled_posterior(
    tables: LikelihoodTable, name: str, line: Line, prior: PriorOnLine, described: str
) -> GriddedDistribution:
    """Return (1) of every cell; `described` says in errors what of.

    Raises
    ------
    PriorError
        Where the posterior is where the likelihood is not known.
    """
    coarse = prior.coarse()
    at_edges = coarse.log_density(coarse.edges)
    cells = tables.table.n_cells
    parts = []
    for first in range(0, cells, _CELLS):
        part = np.arange(first, min(first + _CELLS, cells))
        parts.append(_of_cells(tables, part, name, line, coarse, at_edges, described))
    return GriddedDistribution.joined(parts)


def _of_cells(
    tables: LikelihoodTable,
    cells: Rows,
    name: str,
    line: Line,
    prior: PriorOnLine,
    at_edges: Floats,
    described: str,
) -> GriddedDistribution:
    table = tables.table.take(cells)
    count = len(cells)
    # The table's edges, within the support, and the prior's.
    end = table.start[1:] - 1
    cell = np.concatenate([table.cell, np.arange(count), np.repeat(np.arange(count), len(prior.edges))])
    place = np.concatenate([table.left, table.right[end]])
    inside = (place > prior.ends[0]) & (place < prior.ends[1])
    log_prior = np.full(len(place), -np.inf)
    log_prior[inside] = prior.log_density(place[inside])
    place = np.concatenate([place, np.tile(prior.edges, count)])
    log_prior = np.concatenate([log_prior, np.tile(at_edges, count)])
    is_edge = np.concatenate([inside, np.ones(count * len(prior.edges), dtype=bool)])
    cell, place, log_prior = cell[is_edge], place[is_edge], log_prior[is_edge]
    order = np.lexsort([place, cell])
    cell, place, log_prior = cell[order], place[order], log_prior[order]
    is_new = (np.diff(place, prepend=np.nan) != 0.0) | (np.diff(cell, prepend=-1) > 0)
    cell, place, log_prior = cell[is_new], place[is_new], log_prior[is_new]
    value = table(cell, place) + log_prior
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    top = np.maximum.reduceat(value, first)
    # From every edge to the next of the same cell.
    panel = np.flatnonzero(np.diff(cell) == 0)
    kept = np.maximum(value[panel], value[panel + 1]) > top[cell[panel]] - _NATS
    outermost = np.diff(cell[panel], prepend=-1, append=count) > 0
    panel = panel[kept | outermost[:-1] | outermost[1:]]
    left, right, cell = place[panel], place[panel + 1], cell[panel]
    nodes, weights = integral_rule(left, right)
    of_table = table.at_panels(table.panel_of(cell, (left + right) / 2.0)[:, None], nodes)
    log_value = of_table + prior.log_density(nodes)
    _require_known(tables, cells, cell, of_table, log_value, weights, described)
    return GriddedDistribution.of_panels(name, line, cell, left, right, log_value)


def _require_known(
    tables: LikelihoodTable,
    cells: Rows,
    cell: Rows,
    of_table: Floats,
    log_value: Floats,
    weights: Floats,
    described: str,
) -> None:
    """Refuse posteriors that are where a table is not known."""
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    top = np.maximum.reduceat(np.max(log_value, axis=1), first)
    share = np.exp(log_value - top[cell, None]) * weights
    lowest = (tables.table.top - tables.depth)[cells]
    unknown = np.where(of_table < lowest[cell, None], share, 0.0)
    hidden, whole = (np.add.reduceat(np.sum(each, axis=1), first) for each in (unknown, share))
    if np.any(hidden > _TOLERABLE * whole):
        message = (
            f"{described} disagree so much that the posterior is where the table of the likelihood is not "
            "known. release.posterior(name, prior=...) with the same prior and n_prior resolves more"
        )
        raise PriorError(message)
