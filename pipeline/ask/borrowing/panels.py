r"""Posteriors of cells over time, of places on a map where neighbours are named.

Where cells have both an order and neighbours, what they have in common is a smooth field over the map beside
parts of places' own (BYM2), a walk over time of all together, and a walk of each place, whose steps and
spreads have public hyperpriors and are integrated over (``math.engines.pooled.panel``). Each cell keeps its
exact likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.adjacency import UNRELIABLE, MapPool, on_a_map, unreliable
from suffice.pipeline.ask.borrowing.over_time import (
    WalkedPosterior,
    in_words,
    ordered_pools,
    walked_posterior,
)
from suffice.pipeline.ask.borrowing.pool import NO_SLOPE, UNIDENTIFIED
from suffice.pipeline.ask.borrowing.pooled_conflict import OUTSIDE
from suffice.pipeline.ask.borrowing.walk_known import Steps, WalkPrior, doubts, in_keys
from suffice.pipeline.math.engines.pooled.contaminated import SHARE, WIDE
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.hyperpriors import LOG_SPREAD_SD, size_unit
from suffice.pipeline.math.engines.pooled.panel_fit import LONGEST, panel_distribution
from suffice.pipeline.math.engines.pooled.panel_share import shares_about
from suffice.pipeline.math.engines.pooled.populations import DEFAULT
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.ask.borrowing.neighbours import Neighbours
    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.borrowing.walk import Walk
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.panel_distribution import PanelDistribution
    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPrior(WalkPrior):
    """The prior of places on a map over time, in words.

    Attributes
    ----------
    column : str
        Whose keys are neighbours.
    is_contaminated : bool
        Whether places may be outliers of the map.
    """

    column: str
    is_contaminated: bool

    def __str__(self) -> str:
        outliers = (
            f", {100.0 * SHARE:g} % of them with a spread of {WIDE:g} more" if self.is_contaminated else ""
        )
        walks = WalkPrior.__str__(self).partition("; first")[0]
        jumps = self.walk.share_of_jumps
        if jumps:
            shares = ", ".join(f"{each:.1g}" for each in shares_about(jumps))
            walks += f"; the share of jumps of places integrated over {shares}, equally likely"
        return (
            f"a smooth field over neighbours by {self.column} (BYM2) and parts of places' own{outliers}, in "
            f"the middle of the time; from there, of each place, a {walks}; one more walk that all places "
            "have in common, with the same hyperprior; spread HalfNormal(1), the field's share of the "
            "variance Uniform(0, 1)"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PanelPosterior(WalkedPosterior):
    """The posterior of places on a map over time, and what it rests on.

    ``pools`` say of each pool what the map's field and places' own parts are like, ``steps`` how far places
    walk by themselves and together, ``outside`` how probable it is that a place's own jump leads to a cell.

    Attributes
    ----------
    pools : tuple of MapPool
    group_column : str
        The group column whose keys are neighbours.
    """

    pools: tuple[MapPool, ...]
    group_column: str

    @property
    def is_identified(self) -> bool:
        """Whether the cells tell the step of places and the spread between them, of every pool."""
        return all(step.identified for step in self.steps) and all(pool.identified for pool in self.pools)

    @property
    def islands(self) -> tuple[int, ...]:
        """Cells of places without a neighbour: they borrow from all others alike."""
        return tuple(sorted(cell for pool in self.pools for cell in pool.islands))

    def known_of_pools(self) -> list[dict[str, Any]]:
        """Return keys and numbers of every pool, as rows: of steps, of the spread and of the map's share."""
        return [
            {
                **steps.row,
                "spread": pool.spread[0],
                "spread_sd": pool.spread[1],
                "of_map": pool.of_map[0],
                "of_map_sd": pool.of_map[1],
                "identified": steps.identified and pool.identified,
            }
            for steps, pool in zip(self.steps, self.pools, strict=True)
        ]

    def _doubts(self) -> tuple[str, ...]:
        return (
            *doubts(self.steps),
            *(
                f"the spread between places{in_keys(pool.keys)} is not identified: its hyperprior decides "
                "how much they borrow; each cell alone is shown first"
                for pool in self.pools
                if not pool.identified
            ),
        )

    def common(self) -> Table:
        """Return the walk that all places have in common: keys, ``mean`` and ``sd``, ``jump``.

        On the line (the logit of a probability, or the logarithm of a rate or a scale), from where it is in
        the middle of the time; ``jump`` is how probable it is that a jump of all places leads to a time.
        """
        rows: list[dict[str, Any]] = []
        for pool, cells, steps in zip(self._parts, self._cells, self.steps, strict=True):
            placed = pool.cells.cell
            for time in np.flatnonzero(np.any(placed >= 0, axis=0)).tolist():
                cell = int(cells[np.max(placed[:, time])])
                rows.append(
                    {
                        **steps.keys,
                        self.walk.over: self.groups[self.walk.over][cell],
                        "mean": float(pool.common[time]),
                        "sd": float(pool.common_sd[time]),
                        "jump": float(pool.common_jumped[time]),
                    }
                )
        return Table(rows, title=f"{self.statistic}: the walk of all places over {self.walk.over}")

    def outlying(self, above: float = OUTSIDE) -> Table:
        """Return the places that the map does not fit, the most probable first: keys and ``probability``.

        Parameters
        ----------
        above : float
            The least probability, in 0..1.
        """
        rows: list[dict[str, Any]] = []
        for pool, cells in zip(self._parts, self._cells, strict=True):
            for series in np.flatnonzero(pool.outlying >= above).tolist():
                cell = int(cells[np.max(pool.cells.cell[series])])
                keys = {
                    column: keys[cell] for column, keys in self.groups.items() if column != self.walk.over
                }
                rows.append({**keys, "probability": round(float(pool.outlying[series]), 4)})
        rows.sort(key=lambda row: -row["probability"])
        return Table(rows, title=f"{self.statistic}: places that the map does not fit")

    @property
    def _parts(self) -> tuple[PanelDistribution, ...]:
        parts: tuple[PanelDistribution, ...] = self.distribution.pools  # type: ignore[attr-defined]
        return parts

    @property
    def _cells(self) -> tuple[Cells, ...]:
        cells: tuple[Cells, ...] = self.distribution.cells  # type: ignore[attr-defined]
        return cells


def posterior_over(
    statistic: NoisyStatistic,
    pooling: Pooling,
    line: Line,
    stated_n_prior: Any,
    alone: Callable[[], Posterior],
    *,
    declared: Sequence[str | int] | None = None,
    parts: Sequence[tuple[NoisyStatistic, Cells]] | None = None,
) -> WalkedPosterior:
    """Return the posterior of cells over time, on a map where neighbours are named.

    Parameters
    ----------
    statistic, line, stated_n_prior, alone, declared, parts
        As of ``walked_posterior``.
    pooling : Pooling
        With ``over``, and perhaps ``adjacency``.

    Raises
    ------
    UsageError
        Where something else is asked for that does not go with it, or it cannot be worked out.
    """
    walk: Any = pooling.over
    name = statistic.plan.name
    given = [each for each in ("covariates", "formula") if getattr(pooling, each) is not None]
    given += ["population"] if pooling.population != DEFAULT and pooling.adjacency is None else []
    if given:
        message = f"{name}: {given[0]} does not go with over={walk}: leave one of them out"
        raise UsageError(message)
    if pooling.adjacency is None:
        return walked_posterior(
            statistic, walk, pooling.within, line, stated_n_prior, alone, declared=declared, parts=parts
        )
    return _panel(statistic, pooling, walk, line, stated_n_prior, alone, declared=declared, parts=parts)


def _panel(
    statistic: NoisyStatistic,
    pooling: Pooling,
    walk: Walk,
    line: Line,
    stated_n_prior: Any,
    alone: Callable[[], Posterior],
    *,
    declared: Sequence[str | int] | None,
    parts: Sequence[tuple[NoisyStatistic, Cells]] | None,
) -> PanelPosterior:
    """Return the posterior of places on a map over time; parameters are those of ``posterior_over``."""
    name = statistic.plan.name
    if walk.order != 1 or walk.season is not None or walk.kind != "walk":
        message = (
            f"{name}: over={walk} does not go with adjacency: places on a map take a walk of first order, "
            f"without a season: over={walk.over}"
        )
        raise UsageError(message)
    population, neighbours = on_a_map(statistic, pooling, line)
    if neighbours.column == walk.over:
        message = f"{name}: {walk.over} is walked over, and has no neighbours: name those of another column"
        raise UsageError(message)
    pools = ordered_pools(statistic, walk, pooling.within, stated_n_prior, declared=declared, parts=parts)
    distributions, known, steps = [], [], []
    for keys, cells, series in zip(pools.keys, pools.cells, pools.series, strict=True):
        n_series, n_times = series.cell.shape
        if n_times > LONGEST:
            message = (
                f"{name}: {n_times} times of over={walk}: places on a map take at most {LONGEST}: walk over "
                f"{walk.over} without adjacency"
            )
            raise UsageError(message)
        pairs, level = neighbours.places(_of_series(statistic, series, cells, walk.over), name)
        field_map = FieldMap.of(n_series, pairs, level)
        try:
            part = panel_distribution(
                series, population, pools.parameter, line, field_map, pairs,
                jumps=walk.share_of_jumps, scale=walk.step,
            )  # fmt: skip
        except np.linalg.LinAlgError:
            raise unreliable(name) from None
        if part.error.largest > UNRELIABLE:
            raise unreliable(name)
        distributions.append(part)
        steps.append(Steps.of(keys, part))
        known.append(_pool(keys, part, pairs, cells))
    posterior = PanelPosterior(
        **pools.terms(statistic, distributions),
        prior=PanelPrior(
            walk=walk, line=line, column=neighbours.column, is_contaminated=population.is_contaminated
        ),
        rows_of=None,
        population=pooling.population,
        pools=tuple(known),
        walk=walk,
        steps=tuple(steps),
        group_column=neighbours.column,
        _alone=alone,
    )
    of_map = _of_map(known, [part.share_of_jumps for part in distributions], neighbours)
    return replace(posterior, rows_of=in_words(posterior, pools.order, of_map))


def _of_series(
    statistic: NoisyStatistic, series: CellsInOrder, cells: Cells, over: str
) -> dict[str, list[str | int]]:
    """Return the keys of every series, by group column."""
    first = cells[np.max(series.cell, axis=1)].tolist()
    return {
        column: [keys[cell] for cell in first] for column, keys in statistic.groups.items() if column != over
    }


def _pool(keys: dict[str, str | int], part: PanelDistribution, pairs: Cells, cells: Cells) -> MapPool:
    """Sum up one map, or several that share hyperparameters."""
    field_map = part.model.field_map
    placed = part.cells.cell[field_map.islands]
    covariate = field_map.covariate
    levels = [part.level(number) for number in range(field_map.n_levels)]
    return MapPool(
        keys=keys,
        n_cells=part.n_cells,
        location=(
            float(np.mean([mean for mean, _ in levels])),
            float(np.sqrt(np.sum([sd**2 for _, sd in levels])) / len(levels)),
        ),
        spread=part.spread,
        slope=NO_SLOPE if covariate is None else part.level(-1),
        typical_size=None if part.typical_log_size is None else float(np.expm1(part.typical_log_size)),
        size_unit=1.0 if covariate is None else size_unit(covariate),
        identified=part.log_sd["spread"] <= UNIDENTIFIED * LOG_SPREAD_SD,
        settled=part.settled,
        of_map=part.of_map,
        n_maps=field_map.n_levels,
        n_pairs=len(np.unique(np.sort(pairs, axis=1), axis=0)),
        islands=tuple(cells[placed[placed >= 0]].tolist()),
        error=part.error,
    )


def _of_map(known: Sequence[MapPool], shares: Sequence[tuple[float, float]], neighbours: Neighbours) -> str:
    """Say what the map is, how far places differ, and what that rests on."""
    n_pairs, n_maps = sum(pool.n_pairs for pool in known), sum(pool.n_maps for pool in known)
    said = f"places have neighbours by {neighbours.column}, {counted(n_pairs, 'pair')}"
    said += f", on {n_maps} maps" if n_maps > 1 else ""
    n_islands = len({cell for pool in known for cell in pool.islands})
    if n_islands:
        said += f"; {counted(n_islands, 'cell')} of islands borrow from all places alike"
    if len(known) == 1:
        (spread, sd), (share, share_sd), (slope, slope_sd) = known[0].spread, known[0].of_map, known[0].slope
        if shares[0][0]:
            said += f"; share of places' steps that are jumps {shares[0][0]:.2g} (sd {shares[0][1]:.2g})"
        said += (
            f"; spread between places {spread:.2g} (sd {sd:.2g}), of whose variance {share:.2g} (sd "
            f"{share_sd:.2g}) is the map's"
        )
        if known[0].typical_size is not None:
            said += (
                f", slope on log(1 + size) {slope:.2g} (sd {slope_sd:.2g}), with the size of a place taken "
                "for known as its cells tell it"
            )
    return (
        f"{said}; the walk of all places is taken for a mixture of normal laws; own_share is beside other "
        "times, and places, too"
    )
