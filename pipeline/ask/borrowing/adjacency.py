r"""Posteriors of cells that borrow from their neighbours on a map.

Each cell keeps its exact likelihood. What cells have in common is a smooth field on the map beside parts of
their own (BYM2), whose spread and share have public hyperpriors and are integrated over
(``math.engines.pooled.field``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.by_family import PopulationPrior
from suffice.pipeline.ask.borrowing.neighbours import Neighbours
from suffice.pipeline.ask.borrowing.pool import Pool
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
from suffice.pipeline.ask.inference.pooled_sources import pool_source
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.pooled.field import field_distribution
from suffice.pipeline.math.engines.pooled.field_error import field_error
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.pools import PooledCells
from suffice.pipeline.math.engines.pooled.populations import DICTIONARY, POPULATIONS
from suffice.pipeline.math.engines.pooled.sized_cells import SizedCells
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.field import FieldDistribution
    from suffice.pipeline.math.engines.pooled.field_error import FieldError
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells

UNRELIABLE = 0.5
"""Standard deviations that 99 of 100 cells' means may be off by."""
_NAMED = 6
_SEED = 33
"""Of the draws that measure an error; no answer rests on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPool(Pool):
    """What is known of the cells of a map; the spread is that of field and own parts together.

    Attributes
    ----------
    n_maps, n_pairs : int
        Maps with levels of their own, and pairs of cells that are neighbours.
    islands : tuple of int
        Cells without a neighbour.
    error : FieldError
        What the approximation is off by, at the most probable hyperparameters.
    """

    of_map: tuple[float, float]
    n_maps: int
    n_pairs: int
    islands: tuple[int, ...]
    error: FieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPrior(PopulationPrior):
    """The prior of cells on a map, in words.

    Attributes
    ----------
    column : str
        Whose keys are neighbours.
    """

    column: str

    def __str__(self) -> str:
        base = PopulationPrior.__str__(self).removeprefix("one population, ")
        return (
            f"a smooth field over neighbours by {self.column} (BYM2) and parts of cells' own, {base}; the "
            "field's share of the variance Uniform(0, 1)"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MapPosterior(PooledPosterior):
    """A ``PooledPosterior`` of cells that borrow from their neighbours.

    Attributes
    ----------
    group_column : str
        The group column whose keys are neighbours.
    """

    pools: tuple[MapPool, ...]
    group_column: str

    @property
    def islands(self) -> tuple[int, ...]:
        """Cells without a neighbour: they borrow from all others alike."""
        return tuple(sorted(cell for pool in self.pools for cell in pool.islands))


def map_posterior(
    statistic: NoisyStatistic,
    pooling: Pooling,
    line: Line,
    n_prior: NPrior,
    alone: Callable[[], Posterior],
) -> MapPosterior:
    """Return the posterior of cells that borrow from their neighbours.

    Parameters
    ----------
    statistic : NoisyStatistic
    pooling : Pooling
        With ``adjacency``.
    line : Line
        Of the parameter.
    n_prior : NPrior
    alone : callable
        Returns the posterior of the same cells under the default prior.

    Raises
    ------
    UsageError
        Where pairs do not fit the statistic, something else is asked for that does not go with neighbours,
        or the approximation is not reliable.
    """
    name, within = statistic.plan.name, pooling.within
    refused = [term for term in ("covariates", "formula") if getattr(pooling, term) is not None]
    if refused:
        message = f"{name}: adjacency does not go with {refused[0]}: leave one of them out"
        raise UsageError(message)
    population, neighbours = on_a_map(statistic, pooling, line)
    of_keys: dict[tuple[str | int, ...], list[int]] = {}
    for cell in range(len(statistic.values)):
        of_keys.setdefault(tuple(statistic.groups[column][cell] for column in within), []).append(cell)
    places: list[Cells] = [np.array(cells, dtype=np.int64) for cells in of_keys.values()]
    family = FAMILIES[statistic.plan.family]
    (space,) = family.parameter_spaces(statistic.plan.parameters)
    parts, pools = [], []
    for keys, cells in zip(of_keys, places, strict=True):
        kept = statistic.take(cells)
        pairs, level = neighbours.places(kept.groups, name)
        field_map = FieldMap.of(len(cells), pairs, level)
        try:
            part = field_distribution(pool_source(kept, n_prior), population, space.name, line, field_map)
        except np.linalg.LinAlgError:
            raise unreliable(name) from None
        parts.append(part)
        pools.append(_pool(dict(zip(within, keys, strict=True)), part, pairs, cells))
        if pools[-1].error.largest > UNRELIABLE:
            raise unreliable(name)
    has_slope = parts[0].model.has_slope
    together = PooledCells(pools=tuple(parts), cells=tuple(places))
    return MapPosterior(
        statistic=name,
        family=statistic.plan.family,
        method=NOISE_AWARE,
        prior=MapPrior(
            population=pooling.population,
            line=line,
            has_slope=has_slope,
            column=neighbours.column,
            has_size_law=any(isinstance(part.blocks.source, SizedCells) for part in parts),
        ),
        n_prior=n_prior,
        groups=statistic.groups,
        label_columns={},
        distribution=together,
        constants=statistic.plan.parameters,
        models_clipping=np.zeros(len(statistic.values), dtype=bool) if family.models_clipping else None,
        rows_of=_in_words(statistic, neighbours.column, pools, has_slope=has_slope),
        observed=(statistic,),
        population=pooling.population,
        pools=tuple(pools),
        group_column=neighbours.column,
        _alone=alone,
    )


def on_a_map(statistic: NoisyStatistic, pooling: Pooling, line: Line) -> tuple[Population, Neighbours]:
    """Return the population of cells' own parts, and their neighbours.

    Raises
    ------
    UsageError
        Where the population cannot be moved along the line, pairs do not fit the statistic, or cells of a
        pool have no neighbours.
    """
    name, population = statistic.plan.name, POPULATIONS[line][pooling.population]
    if not population.slope:
        can = ", ".join(each for each, law in POPULATIONS[line].items() if law.slope and each != DICTIONARY)
        message = f"{name}: population {pooling.population} has no neighbours: take {can}"
        raise UsageError(message)
    neighbours = Neighbours.of(statistic, pooling.adjacency)
    if neighbours.column in pooling.within:
        message = f"{name}: within {neighbours.column} no cell has a neighbour: leave it out"
        raise UsageError(message)
    return population, neighbours


def unreliable(name: str) -> UsageError:
    """Return the error of a map on which propagation fails its check."""
    return UsageError(
        f"{name}: expectation propagation is not reliable on this map, as its check says: pool without "
        "adjacency, or ask each cell alone"
    )


def _pool(keys: dict[str, str | int], part: FieldDistribution, pairs: Cells, cells: Cells) -> MapPool:
    """Sum up one map, or several that share hyperparameters."""
    pool, field_map = Pool.of(keys, part), part.model.field_map
    best = part.points[int(np.argmax(part.point_weight))]
    distinct = np.unique(np.sort(pairs, axis=1), axis=0)
    return MapPool(
        keys=keys,
        n_cells=pool.n_cells,
        location=pool.location,
        spread=pool.spread,
        slope=pool.slope,
        typical_size=pool.typical_size,
        size_unit=pool.size_unit,
        largest_size=pool.largest_size,
        identified=pool.identified,
        settled=pool.settled,
        of_map=part.of_map,
        n_maps=field_map.n_levels,
        n_pairs=len(distinct),
        islands=tuple(cells[field_map.islands].tolist()),
        error=field_error(part.model, best, distinct, np.random.default_rng(_SEED)),
    )


def _in_words(statistic: NoisyStatistic, column: str, pools: list[MapPool], *, has_slope: bool) -> str:
    """Say what borrowed from what, how far, by which method, and what it is off by."""
    n_pairs, n_cells = sum(pool.n_pairs for pool in pools), sum(pool.n_cells for pool in pools)
    n_maps = sum(pool.n_maps for pool in pools)
    said = [
        f"{counted(n_cells, 'cell')} pooled with their neighbours by {column}, {counted(n_pairs, 'pair')}"
    ]
    if n_maps > 1:
        said[0] += f", on {n_maps} maps"
        said[0] += f" with hyperparameters of {len(pools)} pools" if len(pools) > 1 else " of one spread"
    islands = [cell for pool in pools for cell in pool.islands]
    if islands:
        keys = list(dict.fromkeys(str(statistic.groups[column][cell]) for cell in islands))
        more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
        has = "it borrows" if len(islands) == 1 else "they borrow"
        said.append(
            f"{counted(len(islands), 'island')} ({', '.join(keys[:_NAMED])}{more}): {has} from all cells "
            "alike"
        )
    if len(pools) == 1:
        (spread, sd), (slope, slope_sd), (share, share_sd) = pools[0].spread, pools[0].slope, pools[0].of_map
        said.append(
            f"spread between cells {spread:.2g} (sd {sd:.2g}) on the log scale of odds or rates, of whose "
            f"variance {share:.2g} (sd {share_sd:.2g}) is the map's"
        )
        if has_slope:
            said[-1] += f", slope on log(1 + size) {slope:.2g} (sd {slope_sd:.2g})"
    if not has_slope:
        said.append("without a slope on the size of cells: where rates move with it, small cells are off")
    typical, largest, of_sd = (
        max(values)
        for values in zip(
            *((pool.error.typical, pool.error.largest, pool.error.of_sd) for pool in pools), strict=True
        )
    )
    said.append(
        "by expectation propagation with the exact likelihood of each cell: what others say is off by an "
        f"estimated {typical:.2f} sd, of 99 in 100 cells by up to {largest:.2f}, and its sd by "
        f"{100.0 * of_sd:.0f} %; it may be off by more, as long tails are not seen: where noise hides cells"
    )
    said.append("own_share: how much of an answer is the cell's own")
    return "; ".join(said)
