r"""The likelihood of a family's one parameter, latent sums and latent N integrated out, as a table.

Model. Given the parameter, a release is a sum over latent pairs (N, S), of which engines have the nodes and
weights under a conjugate prior :math:`\pi`: by Bayes' theorem

.. math:: p(y \mid \theta) = Z \sum_i \omega_i \, p(\theta \mid N_i, S_i) / \pi(\theta), \qquad (1)

whose terms are :math:`\pi(N) \, p(S \mid N, \theta)` times the noise, whatever the prior. It is exact but for
the rule over pairs, which is checked by a second one.

Symbols:

- theta: the parameter; x = ``position`` on the line of its family
- omega, Z: weights of the pairs and the evidence, as in ``LatentPairs``

Method. (1) is tabulated (``tabulated``). The rule over sums has its blocks cut at further places, ``_CUTS``
in scales of the noise from every kink, and all of them halved; the one that checks has neither. Where both
differ by more than ``TOLERANCE``, noise is far wider than what records vary by, or pairs are beyond what was
resolved: a table ends there, in nats below its highest value, and one that would end within ``_SHALLOWEST``
is refused. The error of a cell is what its polynomials miss plus what the rules differ by, where that was
looked at and not fitted.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import LINES, conjugate_default
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Line, coordinate_of
from suffice.pipeline.math.engines.combined import MixtureRatio
from suffice.pipeline.math.engines.one_sum.nodes import batches, resolve
from suffice.pipeline.math.engines.tabulated import DEPTH, joined, tabulate

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.pipeline.math.engines.tabulated import Table
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats, Rows

TOLERANCE = 1e-3
"""Nats by which two rules over latent pairs may differ in a table."""
FITTED = 1e-5
"""Nats by which its polynomials may miss."""
_SHALLOWEST = 12.0
_NAMED = 5
"""Cells that a refusal names."""
_NATS = 45.0
_CUTS = (-4.1, -1.3, 0.7, 2.9)
_CHECKED = np.array([-0.83, -0.31, 0.27, 0.77])
"""Places of a panel at which the second rule is looked at."""
_OCTAVES = np.array([-1.0, -0.25, -0.0625, 0.0, 0.0625, 0.25, 1.0])
_AROUND = {Line.LOGIT: (-40.0, 36.0), Line.LOGARITHM: (-30.0, 30.0)}
_WIDTHS = 4096.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodTable:
    """Tables of all cells, with how far down and how accurate they are.

    Attributes
    ----------
    table : Table
    depth : ndarray of shape (n_cells,), float64
        Nats below the highest value within which the error holds.
    error : ndarray of shape (n_cells,), float64
        Nats.
    """

    table: Table
    depth: Floats
    error: Floats


def tabled_likelihood(statistic: NoisyStatistic, n_prior: NPrior) -> LikelihoodTable:
    """Tabulate the log likelihood of a family's one parameter in every cell.

    Raises
    ------
    UsageError
        Where the family has several parameters, or a cell's likelihood is not resolved.
    """
    plan = statistic.plan
    family = FAMILIES[plan.family]
    if family.latent is None:
        raise several_parameters(statistic)
    sums, update = family.latent(statistic, conjugate_default(family, plan.parameters), n_prior)
    none = update(np.zeros(1), np.zeros(1))
    line = LINES[family.prior]
    parts = []
    for batch in batches(sums):
        few = sums.take(batch)
        fine, rough = _ratios(_cut(few), update, none, finer=2), _ratios(few, update, none)
        parts.append(_tabulated(fine, rough, none, line))
    depth = np.concatenate([part.depth for part in parts])
    _require_resolved(statistic, n_prior, depth)
    return LikelihoodTable(
        table=joined([part.table for part in parts]),
        depth=depth,
        error=np.concatenate([part.error for part in parts]),
    )


def several_parameters(statistic: NoisyStatistic) -> UsageError:
    """Return the refusal of a family whose likelihood has no table, which names those that have one."""
    plan = statistic.plan
    having = ", ".join(name for name, family in FAMILIES.items() if family.latent is not None)
    return UsageError(
        f"{plan.name} is {plan.family}, which has several parameters: a likelihood is of one, in the "
        f"families {having}, of the probabilities of a categorical or a contingency, or of the mean and "
        "standard deviation of a normal or a lognormal; "
        "suffice.numpyro.log_likelihood has that of several"
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    """(1) of one cell."""

    ratio: MixtureRatio
    log_evidence: float
    centre: float
    width: float

    def __call__(self, position: Floats) -> Floats:
        return self.ratio(position) + self.log_evidence


def _require_resolved(statistic: NoisyStatistic, n_prior: NPrior, depth: Floats) -> None:
    """Refuse cells that are not resolved, by their keys, and say what else there is."""
    shallow = np.flatnonzero(depth < _SHALLOWEST)
    if not shallow.size:
        return
    name = statistic.plan.name
    columns = [[str(key) for key in keys] for keys in statistic.groups.values()]
    named = [
        " and ".join(f"{column}={keys[cell]}" for column, keys in zip(statistic.groups, columns, strict=True))
        for cell in shallow[:_NAMED].tolist()
    ]
    more = f" and {shallow.size - _NAMED} more" if shallow.size > _NAMED else ""
    which = f" of {', '.join(named)}{more}" if columns else ""
    others = ""
    if shallow.size < len(depth):
        others = f"release.likelihood({name!r}, where={{column: key}}) has that of any other cell. "
    message = (
        f"{name}: the likelihood{which} is not resolved to {TOLERANCE} nats under {n_prior}: the noise there "
        f"is far wider than what records vary by. {others}A larger epsilon or an n_prior that is closer to "
        f"what is known of N may help; release.posterior({name!r}, prior=...) integrates over such noise, "
        "and suffice.numpyro.log_likelihood samples under it"
    )
    raise UsageError(message)


def _ratios(sums: NoisySums, update: Any, none: Distribution, *, finer: int = 1) -> list[_Cell]:
    pairs = resolve(sums, evenly=True, nats=_NATS, finer=finer)
    order = np.argsort(pairs.cell, kind="stable")
    ends = np.searchsorted(pairs.cell[order], np.arange(sums.n_cells + 1))
    cells = []
    for cell, (start, stop) in enumerate(itertools.pairwise(ends)):
        kept = order[start:stop]
        kept = kept[pairs.weight[kept] > 0.0]
        distributions = update(pairs.n[kept], pairs.total[kept])
        weight = pairs.weight[kept]
        coordinate = coordinate_of(distributions)
        centre = float(np.sum(weight * coordinate.centre))
        spread = float(np.sum(weight * (coordinate.width**2 + (coordinate.centre - centre) ** 2)))
        ratio = MixtureRatio.of(none, distributions, np.log(weight))
        cells.append(_Cell(ratio, float(pairs.log_evidence[cell]), centre, spread**0.5))
    return cells


def _cut(sums: NoisySums) -> NoisySums:
    """Return the same with further places at which blocks of sums are cut: rows that tell nothing."""
    totals = sums.totals
    # Whole steps, as kinks of counts are.
    moved = [totals.values + np.rint(cut * totals.scale) for cut in _CUTS]
    silent = np.full(len(totals.scale) * len(_CUTS), np.inf)
    return dataclasses.replace(
        sums,
        totals=dataclasses.replace(
            totals,
            values=np.concatenate([totals.values, *moved], axis=1),
            coefficients=np.tile(totals.coefficients, (1 + len(_CUTS), 1)),
            scale=np.concatenate([totals.scale, silent]),
        ),
    )


def _tabulated(fine: list[_Cell], rough: list[_Cell], none: Distribution, line: Line) -> LikelihoodTable:
    edges = np.stack([_edges(cell, none, line) for cell in fine])

    def evaluate(cell: Rows, position: Floats) -> Floats:
        return _by_cell(fine, cell, position)

    table = tabulate(evaluate, edges, tolerance=FITTED)
    panel = np.flatnonzero(table.is_fine)
    middle, half = (table.left + table.right)[panel] / 2.0, (table.right - table.left)[panel] / 2.0
    position = middle[:, None] + half[:, None] * _CHECKED
    cell = table.cell[panel]
    value = table.at_panels(panel[:, None], position)
    differ = np.abs(_by_cell(rough, cell, position) - value)
    # What both have in common, a factor of the likelihood, matters to nobody but evidence.
    below = table.top[cell][:, None] - value
    depth = np.full(table.n_cells, DEPTH)
    np.minimum.at(depth, cell, np.min(np.where(differ > TOLERANCE, below, DEPTH), axis=1))
    is_known = below < depth[cell][:, None]
    error = table.error.copy()
    seen = np.zeros(table.n_cells)
    np.maximum.at(seen, cell, np.max(np.where(is_known, differ, 0.0), axis=1))
    return LikelihoodTable(table=table, depth=depth, error=error + seen)


def _by_cell(cells: list[_Cell], cell: Rows, position: Floats) -> Floats:
    """Values at positions (n, n_points) of rows of cells."""
    value = np.empty(position.shape)
    order = np.argsort(cell, kind="stable")
    ends = np.flatnonzero(np.diff(cell[order], prepend=-1, append=-2))
    for start, stop in itertools.pairwise(ends):
        rows = order[start:stop]
        value[rows] = cells[int(cell[rows[0]])](position[rows].ravel()).reshape(len(rows), -1)
    return value


def _edges(cell: _Cell, none: Distribution, line: Line) -> Floats:
    """Panels to begin with: the line as far as numbers go, or far on both sides of where a cell is."""
    if line in _AROUND:
        low, high = _AROUND[line]
        low, high = (low, high) if line is Line.LOGIT else (cell.centre + low, cell.centre + high)
        reach = 2.0
    else:
        prior = coordinate_of(none)
        reach = min(
            _WIDTHS * cell.width, 4.0 * float(prior.width[0]) + abs(cell.centre - float(prior.centre[0]))
        )
        low, high = cell.centre - reach, cell.centre + reach
    inner = np.clip(cell.centre + reach * _OCTAVES, low, high)
    edges = np.unique(np.concatenate([[low, high], inner, np.linspace(low, high, 17)]))
    even: Floats = np.interp(np.linspace(0.0, 1.0, 25), np.linspace(0.0, 1.0, len(edges)), edges)
    return even
