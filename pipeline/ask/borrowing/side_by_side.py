"""Pooled cells beside each of them alone, as rows; and the populations that they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.borrowing.over_time import WalkedPosterior
from suffice.pipeline.ask.borrowing.pool import NO_SLOPE
from suffice.pipeline.ask.inference.pooled_sources import line_of
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.borrowing.pool import Pool
    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior

ALONE = "alone_"
"""Before the names of a cell's numbers where it is answered alone."""
_NUMBERS = ("mean", "sd", "lower", "upper")


def beside_alone(
    together: PooledPosterior,
    rows: Sequence[Mapping[str, Any]],
    mass: float,
    draws: int,
    rng: np.random.Generator,
    *,
    interval: str,
) -> list[dict[str, Any]]:
    """Return rows of pooled cells with what each is alone, its own share, and how probably it is an outlier.

    Parameters
    ----------
    together : PooledPosterior
    rows : sequence of dict
        Of all its cells, all entries of each, as ``summarise`` returns them.
    mass, draws, rng, interval
        Of the intervals alone, as there.

    Returns
    -------
    list of dict
        Each row, with ``own_share``, ``outside``, and ``alone_mean``, ``alone_sd``, ``alone_lower`` and
        ``alone_upper``.
    """
    alone = summarise(together.alone, mass, draws, rng, interval=interval)
    outside = np.repeat(together.outside, together.entries)
    shares = zip(together.own_shares_of(rows).tolist(), outside.tolist(), strict=True)
    return [
        {
            **row,
            "own_share": own_share,
            "outside": outside,
            **{f"{ALONE}{name}": of_cell[name] for name in _NUMBERS},
        }
        for row, of_cell, (own_share, outside) in zip(rows, alone, shares, strict=True)
    ]


def rows_beside_alone(
    together: PooledPosterior,
    mass: float = MASS,
    *,
    interval: str | None = None,
    draws: int = DRAWS,
    rng: np.random.Generator | int | None = None,
) -> list[dict[str, Any]]:
    """Return :func:`beside_alone` of all cells.

    Parameters
    ----------
    mass, interval, draws, rng
        As in ``Posterior.credible_interval``.
    """
    generator, kind = np.random.default_rng(rng), together.interval_kind(interval)
    rows = summarise(together, mass, draws, generator, interval=kind)
    return beside_alone(together, rows, mass, draws, generator, interval=kind)


def populations(together: PooledPosterior) -> list[dict[str, Any]]:
    """Return one row a population: its keys, its cells, what is known of it, and where it is.

    Returns
    -------
    list of dict
        The keys; ``population``, ``cells``; ``centre``, the parameter at the posterior mean of the location;
        ``location``, ``spread``, ``slope`` and ``spread_slope`` with their standard deviations, on the line;
        ``typical_size``, ``identified``, ``settled``; and ``in_words`` what was pooled with what. Of means
        and log standard deviations ``parameter`` says which, of categories ``category``. Where the spread has
        no slope ``spread_slope`` is 0. With neighbours ``of_map`` is the share of the variance that is the
        map's. A walk has ``series``, ``times`` and its ``step`` instead of a place and a spread, and on a map
        ``common_step``, ``spread`` and ``of_map``, too.
    """
    if isinstance(together, WalkedPosterior):
        return [
            {
                **row,
                "population": together.population,
                "settled": each.settled,
                "in_words": together.rows_of,
            }
            for each, row in zip(together.steps, together.known_of_pools(), strict=True)
        ]
    line = line_of(together.observed[0])
    return [
        {
            **pool.keys,
            **pool.of_what,
            "population": together.population,
            "cells": pool.n_cells,
            "centre": float(line.parameter(np.array(pool.location[0]))),
            "location": pool.location[0],
            "location_sd": pool.location[1],
            "spread": pool.spread[0],
            "spread_sd": pool.spread[1],
            "slope": pool.slope[0],
            "slope_sd": pool.slope[1],
            "spread_slope": (pool.spread_slope or NO_SLOPE)[0],
            "spread_slope_sd": (pool.spread_slope or NO_SLOPE)[1],
            "typical_size": pool.typical_size,
            **_of_map(pool),
            "identified": pool.identified,
            "settled": pool.settled,
            "in_words": together.rows_of,
        }
        for pool in together.pools
    ]


def _of_map(pool: Pool) -> dict[str, float]:
    return {} if pool.of_map is None else {"of_map": pool.of_map[0], "of_map_sd": pool.of_map[1]}


def pool_tables(together: PooledPosterior) -> dict[str, list[dict[str, Any]]]:
    """Return the tables that stand beside pooled cells: ``pools``, and ``coefficients`` of covariates."""
    coefficients = [dict(row) for row in together.coefficients]
    return {"pools": populations(together), **({"coefficients": coefficients} if coefficients else {})}
