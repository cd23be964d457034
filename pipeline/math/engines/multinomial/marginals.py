r"""Quantiles and densities of category probabilities from their law, without draws, each with its error.

Model as in ``count_posterior``: a category's probability is a mixture of betas over pairs of its count and
the sum of the others (``count_pairs``), whose distribution function is tabulated (``marginal_table``). Where
the posterior of N reaches beyond what one tilt resolves, as in ``count_posterior``, pairs are those of
several pieces of its range,

.. math:: P(m, R \mid y) = \sum_i P(N \in I_i \mid y) \, P(m, R \mid y, N \in I_i) \qquad (1)

Error. Two rules are compared, with panels of two widths. Stated is by how much their distribution functions
differ at most, no less than what the table's own mean and standard deviation are off, and than ``_FEWEST``:

.. math:: \epsilon = \max\left(\max_z |F(z) - F'(z)|, \; \phi(0) \frac{|\Delta \mu|}{\sigma}, \;
    \phi(1) \frac{|\Delta \sigma|}{\sigma}\right) \qquad (2)

with mean and standard deviation from the engine, which knows them to 1e-6: a normal distribution with these
errors is off by as much. (2) is an estimate and no bound; random cells hold it. Cells that no rule of
``RULES`` settles have larger errors than ``TOLERANCE``; who asks takes draws of these.

Cells are worked out in blocks, so that memory does not grow with their number but for what is returned.

======= ============== ==================================== ========================= ====
symbol  in the code    meaning                              shape                     unit
======= ============== ==================================== ========================= ====
w       ``weight``     posterior probability of a pair      (n_pairs,)                none
eps     ``error``      error of a distribution function     (n_cells, n_categories)   none
======= ============== ==================================== ========================= ====
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.multinomial import noisy_counts
from suffice.pipeline.math.engines.multinomial.convolution import CountSums
from suffice.pipeline.math.engines.multinomial.count_pairs import (
    Pairs,
    links_are_level,
    pairs_by_rules,
    pairs_of_known_sum,
)
from suffice.pipeline.math.engines.multinomial.marginal_table import (
    NODES,
    Grid,
    MarginalTable,
    Padded,
    densities,
)
from suffice.pipeline.math.priors.record_count import Fixed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.typing import Cells, Floats, Mask, Rows

TOLERANCE = 6e-3
"""Error of a distribution function up to which a table is taken."""
_FEWEST = 3e-3
"""The least error that is stated: of what is left out, and of cubics between nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How fine pairs are.

    Attributes
    ----------
    coarseness : tuple of float
        How wide panels are, beside ``count_pairs.WIDTH``: of the rule, and of what it is compared with.
    nats : float
        How far below their peaks rows end.
    points : int
        Points of the grid of a sum.
    panels : int
        The most panels of a row.
    """

    coarseness: tuple[float, ...]
    nats: float
    points: int
    panels: int


RULES = (
    Rule(coarseness=(1.0, 1.4), nats=16.0, points=2**11, panels=40),
    Rule(coarseness=(0.05, 0.4), nats=25.0, points=2**15, panels=120),
)
"""The second is for cells that the first one does not settle: small counts are all nodes of their own."""
_SMOOTH = Rule(coarseness=(0.05,), nats=20.0, points=2**12, panels=80)
"""So fine that densities show no nodes."""
_AT_ONCE, _NUMBERS, _TILTS, _CACHED, _PAIRS = 2**18, 2**16, 2**12, 2**16, 2**21
"""Points of grids, and parts times nodes, that are worked with at a time."""
_NEAR = 1e-15
_NARROW = 64
"""Numbers of records within which the bounds of N are near."""
_MOST_ROUNDS = 12
_NEGLIGIBLE = np.log(1e-6)
"""Log of the weight, beside the highest, of an N beyond what is resolved that becomes a piece of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixtures:
    """Pairs of many rows, and where those of every row begin, (n_rows + 1,)."""

    pairs: Pairs
    first: Rows

    @classmethod
    def of(cls, pieces: Sequence[tuple[Rows, Pairs, Floats]], rows: int) -> Self:
        """Join the pairs of pieces: rows, pairs and the log evidence of every row."""
        if len(pieces) == 1:
            ((_, pairs, _),) = pieces
        else:
            top = np.full(rows, -np.inf)
            for row, _, log_evidence in pieces:
                np.maximum.at(top, row, log_evidence)
            # (1), but for the sum of the weights.
            columns = [
                (row[each.row], each.a, each.b, each.weight * np.exp(log_evidence - top[row])[each.row])
                for row, each, log_evidence in pieces
            ]
            row, a, b, weight = map(np.concatenate, zip(*columns, strict=True))
            order = np.argsort(row, kind="stable")
            pairs = Pairs.of(row[order], a[order], b[order], weight[order])
        return cls(pairs=pairs, first=np.searchsorted(pairs.row, np.arange(rows + 1)))

    def take(self, rows: Rows) -> Padded:
        """The mixtures of some rows."""
        number = self.first[rows + 1] - self.first[rows]
        place = np.arange(int(np.max(number)))
        index = self.first[rows][:, None] + np.minimum(place, number[:, None] - 1)
        weight = np.where(place < number[:, None], self.pairs.weight[index], 0.0)
        return Padded(a=self.pairs.a[index], b=self.pairs.b[index], weight=weight)

    def groups(self, has_foot: Mask) -> Iterator[Rows]:
        """Rows with as many panels and about as many pairs, so many that all fit into memory together."""
        number = np.diff(self.first)
        for panels, chosen in ((2, ~has_foot), (4, has_foot)):
            order = np.flatnonzero(chosen)
            order = order[np.argsort(number[order], kind="stable")]
            start = 0
            while start < len(order):
                most = 1.4 * number[order[start]] + 8.0
                stop = int(np.searchsorted(number[order], most, side="right"))
                stop = min(stop, start + max(1, min(int(_NUMBERS // most), _CACHED // (panels * NODES))))
                yield order[start:stop]
                start = stop


def marginal_quantiles(
    counts: noisy_counts.NoisyCounts, mean: Floats, sd: Floats, q: Sequence[float]
) -> tuple[Floats, Floats]:
    """Quantiles of every probability, (n_cells, n_categories, n_q), and the error (2) of their levels.

    Parameters
    ----------
    counts : NoisyCounts
        Of two categories or more.
    mean, sd : ndarray of shape (n_cells, n_categories), float64
        Of the probabilities.
    q : sequence of float, in (0, 1)
    """
    values, error = np.empty((*counts.shape, len(q))), np.full(counts.shape, np.inf)
    low, high = counts.n_prior.support
    # Between near bounds of N every pair counts: a panel cannot lie half outside.
    rules = RULES[1:] if 0 < high - low < _NARROW else RULES
    open_ = np.arange(counts.totals.n_cells)
    for rule in rules:
        values[open_], error[open_] = _by_rule(counts.take(open_), rule, mean[open_], sd[open_], q)
        open_ = np.flatnonzero(~np.all(error <= TOLERANCE, axis=1))
        if not open_.size:
            break
    return values, error


def _by_rule(
    counts: noisy_counts.NoisyCounts, rule: Rule, mean: Floats, sd: Floats, q: Sequence[float]
) -> tuple[Floats, Floats]:
    """Quantiles and errors by one rule; errors are infinite where the posterior of N is not resolved."""
    values, error = np.full((*counts.shape, len(q)), np.nan), np.full(counts.shape, np.inf)
    work = np.empty(_CACHED)
    categories = counts.shape[1]
    for cells, (fine, coarse) in _mixtures(counts, rule):
        rows = len(cells) * categories
        of_rows, off = np.empty((rows, len(q))), np.empty(rows)
        given = counts.take(cells)
        centre, spread, kink = mean[cells].ravel(), sd[cells].ravel(), _kinks(given, mean[cells], sd[cells])
        powers = _powers(given)
        grids = Grid.of(fine.pairs, kink)
        for group in fine.groups(np.any(grids.reaches, axis=1)):
            grid = grids.take(group)
            z, _ = grid.line(grid.at())
            line, thin = _on_line(fine.take(group), z, grid, work), z[:, :, ::2]
            table = MarginalTable.of(grid, line, powers[group])
            # Rules are compared at every other node, which are nodes of a rule themselves.
            fewer, other = (
                MarginalTable.of(grid, each, powers[group]).below
                for each in (line[:, :, ::2], _on_line(coarse.take(group), thin, grid, work))
            )
            of_rows[group] = table.quantiles(q)
            table_mean, table_sd = table.moments()
            # (2), with phi(0) = 0.399 and phi(1) = 0.242.
            off_mean = 0.399 * np.abs(table_mean - centre[group]) / spread[group]
            off_sd = 0.242 * np.abs(table_sd / spread[group] - 1.0)
            difference = np.max(np.abs(fewer - other), axis=(1, 2))
            off[group] = np.maximum(np.maximum(off_mean, off_sd), np.maximum(difference, _FEWEST))
        values[cells], error[cells] = of_rows.reshape(len(cells), categories, -1), off.reshape(len(cells), -1)
    return values, error


def marginal_densities(counts: noisy_counts.NoisyCounts, points: Floats) -> Floats:
    """Densities of every probability at points (n_cells, n_categories, n_points), of two categories or more.

    Raises
    ------
    PriorError
        Where the posterior of N of a cell is not resolved.
    """
    values = np.empty(points.shape)
    work = np.empty(max(_CACHED, points.shape[2]))
    for cells, (fine,) in _mixtures(counts, _SMOOTH, must_resolve=True):
        # Next to 0 and 1, whose logits have no end, densities are those of where they begin.
        at = np.clip(points[cells].reshape(-1, points.shape[2]), _NEAR, 1.0 - _NEAR)
        reference = Grid.of(fine.pairs, np.full(len(at), 0.5)).reference
        density = np.empty(at.shape)
        step = max(1, _CACHED // points.shape[2])
        for start in range(0, len(at), step):
            rows = np.arange(start, min(start + step, len(at)))
            parts, r = fine.take(rows), reference[rows]

            def log_density(z: Floats, parts: Padded = parts, r: Floats = r) -> Floats:
                return np.log(densities(parts, z, r, work))

            density[rows] = Line.LOGIT.density(at[rows], log_density)
        values[cells] = density.reshape(len(cells), -1, points.shape[2])
    return values


def _on_line(parts: Padded, z: Floats, grid: Grid, work: Floats) -> Floats:
    """Densities on the line, shaped as the nodes z."""
    return densities(parts, z.reshape(len(z), -1), grid.reference, work).reshape(z.shape)


def _kinks(counts: noisy_counts.NoisyCounts, mean: Floats, sd: Floats) -> Floats:
    """Probabilities (n_rows,) at which counts are what the first release has."""
    noisy = np.maximum(counts.totals.by_release[:, 0], 0.0)
    a = counts.concentration + noisy
    total = np.maximum(np.sum(noisy, axis=1, keepdims=True), a)
    share = a / (total + counts.total_concentration)
    # Far from the mean there is no kink worth a panel's end.
    return np.where(np.abs(share - mean) < sd, share, mean).ravel()


def _powers(counts: noisy_counts.NoisyCounts) -> Floats:
    """The prior's concentrations of a category and of all others, (n_rows, 2)."""
    concentration = counts.concentration
    each = np.stack([concentration, counts.total_concentration - concentration], axis=1)
    return np.tile(each, (counts.totals.n_cells, 1))


def _mixtures(
    counts: noisy_counts.NoisyCounts, rule: Rule, *, must_resolve: bool = False
) -> Iterator[tuple[Cells, list[Mixtures]]]:
    """Mixtures of consecutive cells by panels of each width; batches that are not resolved are left out."""
    cells, categories = counts.shape
    scale = float(1.0 / np.max(counts.rates))
    points = min(4.0 * rule.nats * scale * np.sqrt(categories) + 64.0, 2.0 * rule.points)
    # A panel has two nodes: so many pairs at most has a batch of cells, and a cell.
    at_once = max(1, min(int(_AT_ONCE // (points * categories)), _PAIRS // (4 * categories * rule.panels**2)))
    most = math.isqrt(_PAIRS // (4 * categories))
    rule = replace(rule, panels=max(2, min(rule.panels, most)))
    tilt = np.zeros(cells)
    if not counts.is_pair:
        for chunk in _in_turn(cells, _TILTS // categories):
            tilt[chunk] = noisy_counts.balanced_tilt(counts.take(chunk))
    todo = _in_turn(cells, at_once)
    while todo:
        batch = todo.pop(0)
        try:
            pieces = list(_pieces(counts.take(batch), tilt[batch], rule))
        except PriorError:
            if must_resolve:
                raise
            # One cell must not stand in the way of the others.
            if len(batch) > 1:
                todo[:0] = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
            continue
        rows = len(batch) * categories
        yield (
            batch,
            [
                Mixtures.of([(row, pairs[number], evidence) for row, pairs, evidence in pieces], rows)
                for number in range(len(rule.coarseness))
            ],
        )


def _in_turn(cells: int, at_once: int) -> list[Cells]:
    """Consecutive cells, so many at a time."""
    step = max(1, at_once)
    return [np.arange(start, min(start + step, cells)) for start in range(0, cells, step)]


def _pieces(
    counts: noisy_counts.NoisyCounts, tilt: Floats, rule: Rule
) -> Iterator[tuple[Rows, list[Pairs], Floats]]:
    """Rows of pieces of the range of N, their pairs by panels of each width, and their log evidence."""
    cells, categories = counts.shape
    todo, support = np.arange(cells), counts.support
    if counts.is_pair:
        yield (
            np.arange(2 * cells),
            pairs_of_known_sum(counts, rule.coarseness, rule.panels),
            np.zeros(2 * cells),
        )
        return
    best = np.full(cells, -np.inf)
    for turn in range(_MOST_ROUNDS):
        part = counts.take(todo, support)
        if turn:
            tilt = noisy_counts.balanced_tilt(part)
        sums = CountSums.of(part, tilt, nats=rule.nats, most_points=rule.points)
        rows = (todo[:, None] * categories + np.arange(categories)).ravel()
        if isinstance(counts.n_prior, Fixed) or (turn == 0 and np.all(links_are_level(sums))):
            yield rows, pairs_by_rules(sums, None, rule.coarseness, rule.panels), np.zeros(len(rows))
            return
        of_n = sums.posterior_of_n()
        np.maximum.at(best, todo, of_n.log_peak)
        yield (
            rows,
            pairs_by_rules(sums, of_n, rule.coarseness, rule.panels),
            np.repeat(of_n.log_evidence, categories),
        )
        low, high = support.T
        # What the FFT does not resolve may still matter: those N become pieces of their own.
        below, above = (log_end > best[todo] + _NEGLIGIBLE for log_end in (of_n.log_first, of_n.log_last))
        support = np.concatenate(
            [
                np.stack([low, of_n.first - 1.0], axis=1)[below],
                np.stack([of_n.last + 1.0, high], axis=1)[above],
            ]
        )
        todo = np.concatenate([todo[below], todo[above]])
        if not todo.size:
            return
