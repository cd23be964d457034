r"""Whether a population fits its cells: each cell under the population of all others.

A cell is held out, and its released values are compared with what the others' population expects
(``engines.pooled.left_out``): a tail, and a place u that is uniform if the population is right.

Three questions, each at a third of ``FALSE_ALARM``, so that of releases whose population is right fewer than
that have a line at all:

- cells: tails, by Holm's method over all cells;
- keys of group columns: :math:`\sum_c \Phi^{-1}(u_c) / \sqrt m` over the m cells of a key is standard normal;
  both sides, by Holm's method over all keys;
- the population as a whole: u by the test of Kolmogorov and Smirnov.

Places of held-out cells are slightly drawn apart from each other, as all are compared with the same others:
both sums and distances are then smaller than of independent ones, and the tests no less safe.

Of more than ``MOST`` cells, half of these are the farthest out by a normal approximation, and half evenly
spaced ones; the last two questions are of the latter. Sizes are not judged: a released number of records is.

References
----------
Holm. A simple sequentially rejective multiple test procedure. Scand. J. Stat. 6, 1979. Marshall,
Spiegelhalter. Approximate cross-validatory predictive checks in disease mapping models. Stat. Med. 22, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypedDict

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.engines.pooled.left_out import Movable, left_out, places, standard_scores
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.math.engines.pooled.pools import PooledCells
    from suffice.typing import Cells, Floats, Mask

FALSE_ALARM = 0.01
MOST = 200
EXACT, NORMAL = "exact", "normal approximation"
_SEED = 0
_NAMED = 6
_FEWEST = 20
"""Cells below which their places are not tested together."""


class KeyTail(TypedDict):
    """How far out the cells of a key are together."""

    column: str
    key: str | int
    cells: int
    score: float
    tail: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationCheck:
    """How cells lie under the population of all others; made by ``of``.

    Attributes
    ----------
    groups : dict of str to list
        The key of every cell, by group column.
    method : str
        ``exact``, or ``normal approximation`` of likelihoods of families whose alternatives are not known.
    log_predictive : ndarray of shape (n_cells,), float64
        The log probability, or its density, of what each cell released under the population of all others.
    tails : ndarray of shape (n_cells,), float64
        Two-sided, at most 1; not a number of cells that are not judged.
    place : ndarray of shape (n_cells,), float64
        u in 0..1, uniform if the population is right; not a number as above.
    is_rough : ndarray of shape (n_cells,), bool
        Cells that weigh too much for the others to be told from all.
    keys : tuple of KeyTail
        Of every key with two cells or more, tails by Holm's method over all keys.
    uniformity : float or None
        The chance of places as uneven, if the population is right; None of fewer than 20 cells.
    """

    groups: Mapping[str, list[str | int]] = field(repr=False)
    method: str
    log_predictive: Floats = field(repr=False)
    tails: Floats = field(repr=False)
    place: Floats = field(repr=False)
    is_rough: Mask = field(repr=False)
    keys: tuple[KeyTail, ...]
    uniformity: float | None

    @classmethod
    def of(
        cls, distribution: PooledCells, groups: Mapping[str, list[str | int]], *, most: int = MOST
    ) -> Self:
        """Hold every cell out; judge the tails of at most so many.

        Raises
        ------
        UsageError
            Where cells are not pooled by populations.
        """
        pools = getattr(distribution, "by_one_population", ())
        if not pools:
            message = (
                "a check of the population is of cells with one parameter that are pooled by one population, "
                "without covariates, an order or neighbours: compare ways to pool by suffice.compare_pooled"
            )
            raise UsageError(message)
        n = distribution.n_cells
        log_predictive, tails, place = np.zeros(n), np.full(n, np.nan), np.full(n, np.nan)
        is_rough, is_even = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        rng = np.random.default_rng(_SEED)
        methods = set()
        for pool, cells in zip(pools, distribution.cells, strict=True):
            known = left_out(pool)
            log_predictive[cells], is_rough[cells] = known.log_predictive, known.is_rough
            scores = standard_scores(pool)
            even, chosen = _chosen(scores, len(cells) if n <= most else max(most * len(cells) // n, 2))
            is_even[cells[even]] = True
            if isinstance(pool.blocks.source, Movable):
                methods.add(EXACT)
                below, here, above = places(pool, known, chosen)
            else:
                methods.add(NORMAL)
                below, here, above = _by_scores(scores[chosen])
            tails[cells[chosen]] = np.minimum(2.0 * np.minimum(below, above) + 2.0 * here, 1.0)
            place[cells[chosen]] = below + rng.random(len(chosen)) * here
        return cls(
            groups=groups,
            method=NORMAL if NORMAL in methods else EXACT,
            log_predictive=log_predictive,
            tails=tails,
            place=place,
            is_rough=is_rough,
            keys=tuple(_of_keys(groups, np.where(is_even, place, np.nan))),
            uniformity=_uniformity(place[is_even]),
        )

    @property
    def adjusted(self) -> Floats:
        """Tails by Holm's method over all cells; 1 of cells that are not judged."""
        return holm(np.where(np.isnan(self.tails), 1.0, self.tails))

    @property
    def is_misfit(self) -> Mask:
        """Which cells the population of all others does not expect."""
        return np.asarray(self.adjusted < FALSE_ALARM / 3.0)

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return a sentence for each question whose answer is that the population does not fit."""
        cells = np.flatnonzero(self.is_misfit)
        cells = cells[np.argsort(self.tails[cells], kind="stable")]
        keys = [each for each in self.keys if each["tail"] < FALSE_ALARM / 3.0]
        is_uneven = self.uniformity is not None and self.uniformity < FALSE_ALARM / 3.0
        said = []
        if cells.size:
            called = "; ".join(names[cell] for cell in cells[:_NAMED].tolist())
            said.append(
                f"left out: the population of all others does not expect what {counted(len(cells), 'cell')} "
                f"of {len(self.tails)} released ({called}{_more(len(cells))})"
            )
        if keys:
            called = "; ".join(
                f"{each['column']}={each['key']} {'above' if each['score'] > 0.0 else 'below'} it"
                for each in keys[:_NAMED]
            )
            said.append(
                f"left out: cells of a key lie apart from the population ({called}{_more(len(keys))})"
            )
        if is_uneven:
            said.append(
                "left out: cells do not lie as the population says: its shape or its slope is off; compare "
                "others by name"
            )
        if said:
            how = "" if self.method == EXACT else f", by a {NORMAL} of likelihoods"
            said[-1] += f" (fewer than 1 in {1 / FALSE_ALARM:.0f} releases that fit has such a line{how})"
        return said

    def rows(self) -> list[dict[str, Any]]:
        """One row a cell: keys, log_predictive, place, tail, and whether it is a misfit."""
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "log_predictive": float(self.log_predictive[cell]),
                "place": _number(self.place[cell]),
                "tail": _number(self.tails[cell]),
                "misfit": bool(misfit),
            }
            for cell, misfit in enumerate(self.is_misfit)
        ]


def _chosen(scores: Floats, most: int) -> tuple[Cells, Cells]:
    """Return evenly spaced cells, and these with the ones that are farthest out."""
    n = len(scores)
    if n <= most:
        return np.arange(n), np.arange(n)
    even = np.unique(np.linspace(0, n - 1, most // 2).round().astype(np.int64))
    return even, np.union1d(even, np.argsort(-np.abs(scores), kind="stable")[: most // 2])


def _by_scores(scores: Floats) -> tuple[Floats, Floats, Floats]:
    from scipy.special import ndtr

    return ndtr(scores), np.zeros_like(scores), ndtr(-scores)


def _of_keys(groups: Mapping[str, list[str | int]], place: Floats) -> list[KeyTail]:
    """Return how far out cells of every key are together."""
    from scipy.special import ndtr, ndtri

    score = ndtri(np.clip(place, 1e-12, 1.0 - 1e-12))
    rows: list[tuple[str, str | int, int, float]] = []
    for column, keys in groups.items():
        of_key: dict[str | int, list[int]] = {}
        for cell, key in enumerate(keys):
            if not np.isnan(score[cell]):
                of_key.setdefault(key, []).append(cell)
        if len(of_key) > 1:
            rows += [
                (column, key, len(cells), float(np.sum(score[cells]) / len(cells) ** 0.5))
                for key, cells in of_key.items()
                if len(cells) > 1
            ]
    tails = holm(2.0 * ndtr(-np.abs(np.array([row[-1] for row in rows]))))
    return [
        KeyTail(column=column, key=key, cells=n, score=z, tail=tail)
        for (column, key, n, z), tail in zip(rows, tails.tolist(), strict=True)
    ]


def _uniformity(place: Floats) -> float | None:
    """Return the chance of places as uneven under a uniform law: a bound, as of both sides together."""
    from scipy.special import smirnov

    n = len(place)
    if n < _FEWEST:
        return None
    steps = np.arange(n + 1) / n
    at = np.sort(place)
    distance = max(float(np.max(steps[1:] - at)), float(np.max(at - steps[:-1])))
    return min(2.0 * float(smirnov(n, distance)), 1.0)


def holm(chances: Floats) -> Floats:
    """Return chances adjusted for how many there are, by Holm's method."""
    order = np.argsort(chances, kind="stable")
    steps = chances[order] * (len(chances) - np.arange(len(chances)))
    adjusted = np.empty_like(chances)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(chances) else steps
    return adjusted


def _more(n: int) -> str:
    return f" and {n - _NAMED} more" if n > _NAMED else ""


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
