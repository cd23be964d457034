r"""A report of small areas: what cells have in common, what covariates explain, and what each cell adds.

The population of cells is integrated over (``borrowing``). Beside it stands the same one without covariates
and neighbours: of the variance between cells, on the line of the parameter,

.. math:: 1 - \frac{\mathrm{E}(s^2 \mid y)}{\mathrm{E}(s_0^2 \mid y)} \qquad (1)

is explained by them, with the spread s that is left and the spread :math:`s_0` without them (Fay and Herriot
1979 call the former the model's lack of fit).

References
----------
Fay, Herriot. Estimates of income for small places. J. Amer. Statist. Assoc. 74, 1979.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.covariates import coefficients_table
from suffice.pipeline.ask.borrowing.over_time import WalkedPosterior
from suffice.pipeline.ask.borrowing.pool import Pool
from suffice.pipeline.ask.borrowing.pooled_conflict import OUTSIDE
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.inference.pooled_sources import line_of
from suffice.pipeline.ask.pooling.release import Release
from suffice.pipeline.math.engines.pooled.distribution import pooled_distribution
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.math.priors.record_count import NPrior

LEAST = 10
"""Cells with the smallest shares of their own that a report lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallAreas:
    """Made by :func:`small_areas`.

    Attributes
    ----------
    posterior : PooledPosterior
        Of every cell.
    pooling : Pooling
        What cells have in common.
    before : PooledPosterior or None
        The same without covariates and neighbours; None where there are none. Its spread has no slope on the
        size of cells, as beside covariates and neighbours it has none: other spreads do not compare.
    """

    posterior: PooledPosterior
    pooling: Pooling
    before: PooledPosterior | None

    def population(self) -> Table:
        """One row a pool: its keys, cells, location, spread and slopes; and what is explained.

        ``spread_slope``, of the logarithm of the spread, stands where there is one.

        With covariates or neighbours, ``spread_before`` is the spread without them, and
        ``explained`` the share (1) of the variance between cells that they explain, not below 0.
        ``identified`` says whether the cells tell the spread. Cells that walk have a row of ``series``,
        ``cells``, ``times``, ``step`` and ``step_sd``: a walk has no population.
        """
        if isinstance(self.posterior, WalkedPosterior):
            return Table(self.posterior.known_of_pools(), title="Walks: steps, on the logit or log scale")
        before = (None,) * len(self.posterior.pools) if self.before is None else self.before.pools
        rows = [
            {
                **pool.keys,
                **pool.of_what,
                "cells": pool.n_cells,
                "location": pool.location[0],
                "location_sd": pool.location[1],
                "spread": pool.spread[0],
                "spread_sd": pool.spread[1],
                "slope": pool.slope[0],
                "slope_sd": pool.slope[1],
                **_of_spread(pool),
                **({} if without is None else _explained(pool, without)),
                "identified": pool.identified,
            }
            for pool, without in zip(self.posterior.pools, before, strict=True)
        ]
        scale = "" if self.posterior.pools[0].parameter else ", on the logit or log scale"
        return Table(rows, title=f"Populations{scale}: means (sd)", in_words=_with_sds)

    def coefficients(self) -> Table:
        """One row a covariate of each pool, as ``PooledPosterior.coefficients``."""
        return coefficients_table(self.posterior.pools)

    def cells(
        self, mass: float = MASS, *, draws: int = DRAWS, rng: np.random.Generator | int | None = None
    ) -> Table:
        """One row a cell: keys, mean, sd, interval, ``own_share``, and ``outside``: how probably an outlier.

        Parameters
        ----------
        mass : float
            Of the intervals, between 0 and 1.
        draws, rng
            As of a posterior; intervals of cells whose distributions are known rest on none.
        """
        summary = self.posterior.summary(mass, draws=draws, rng=rng)
        of_rows = np.repeat(self.posterior.outside, self.posterior.entries)
        rows = [
            {
                **{name: value for name, value in row.items() if name != "conflict"},
                "outside": round(outside, 3),
            }
            for row, outside in zip(summary, of_rows.tolist(), strict=True)
        ]
        return Table(rows, title="Cells", in_words=summary.in_words, digits=summary.digits)

    def misfits(self, cells: Table) -> Table:
        """Of such rows, those more probably outliers of their population, or after a jump, than not."""
        order = np.argsort(-self.posterior.outside, kind="stable")
        chosen = [cell for cell in order.tolist() if self.posterior.outside[cell] > OUTSIDE]
        return Table(
            self._rows_of(cells, chosen),
            title="Cells to which a jump leads"
            if isinstance(self.posterior, WalkedPosterior)
            else "Cells that the population does not fit",
            in_words=cells.in_words,
            digits=cells.digits,
        )

    def least_own(self, cells: Table, count: int = LEAST) -> Table:
        """Of such rows, those whose answers are least their own, and as good as the population."""
        order = np.argsort(self.posterior.own_share, kind="stable")[:count]
        return Table(
            self._rows_of(cells, order.tolist()),
            title="Cells whose answers are least their own",
            in_words=cells.in_words,
            digits=cells.digits,
        )

    def _rows_of(self, rows: Table, chosen: Sequence[int]) -> list[dict[str, Any]]:
        """Return all rows of each of some cells."""
        entries = self.posterior.entries
        return [row for cell in chosen for row in rows[cell * entries : (cell + 1) * entries]]

    @property
    def lines(self) -> tuple[str, ...]:
        """What is explained, in a sentence a pool; empty without covariates and neighbours."""
        said: list[str] = []
        if self.before is None:
            return ()
        for row, pool in zip(self.population(), self.posterior.pools, strict=True):
            of = ", ".join(f"{column}={key}" for column, key in pool.keys.items())
            said.append(
                f"{of + ': ' if of else ''}{self.explained_by} explain {100 * row['explained']:.0f} % of "
                f"the variance between cells: the spread is {row['spread']:.2g}, and "
                f"{row['spread_before']:.2g} without"
            )
        return tuple(said)

    @property
    def explained_by(self) -> str:
        """What is asked for besides a population, in words."""
        asked = {
            "covariates": self.pooling.formula is not None,
            "neighbours": self.pooling.adjacency is not None,
        }
        return " and ".join(name for name, is_asked in asked.items() if is_asked)

    def __str__(self) -> str:
        cells = self.cells()
        tables = (self.population(), self.coefficients(), self.misfits(cells), self.least_own(cells))
        conflicts = self.posterior.conflict.lines()
        return "\n\n".join([*map(str, filter(None, tables)), *self.lines, *conflicts])


def _of_spread(pool: Pool) -> dict[str, float]:
    if pool.spread_slope is None:
        return {}
    return {"spread_slope": pool.spread_slope[0], "spread_slope_sd": pool.spread_slope[1]}


def _with_sds(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Put standard deviations in the columns of their means, so that a terminal holds a row."""
    return [
        {
            name: f"{value:.2g} ({row[f'{name}_sd']:.2g})" if f"{name}_sd" in row else value
            for name, value in row.items()
            if not name.endswith("_sd")
        }
        for row in rows
    ]


def _explained(pool: Pool, without: Pool) -> dict[str, float]:
    """(1), and what it rests on."""
    left, whole = (mean**2 + sd**2 for mean, sd in (pool.spread, without.spread))
    return {
        "spread_before": without.spread[0],
        "spread_before_sd": without.spread[1],
        "explained": max(0.0, 1.0 - left / whole),
    }


def small_areas(
    release: Release,
    statistic: str,
    pooled: bool | str | Sequence[str] | Pooling = True,
    *,
    where: Mapping[str, object] | None = None,
    n_prior: NPrior | int | str | None = None,
) -> SmallAreas:
    """Report what the cells of a statistic have in common, and how far each one's answer is its own.

    Costs no privacy.

    Parameters
    ----------
    release : Release
        As ``suffice.open_release`` returns it.
    statistic : str
        Of several cells, with one probability, rate or scale each.
    pooled : bool, str, sequence of str or Pooling
        As of ``Release.posterior``: a population, group columns, or a ``Pooling`` with covariates.
    where : mapping, optional
        Keep the cells with these group keys.
    n_prior : NPrior, int or str, optional
        Of a private number of records.

    Raises
    ------
    UsageError
        Where cells cannot be pooled so.
    """
    if not isinstance(release, Release):
        message = f"small areas are of a release, as suffice.open_release returns it, not of {release!r}"
        raise UsageError(message)
    chosen = release.statistic(statistic)
    pooling = Pooling.of(chosen, pooled, line_of(chosen))
    plain = replace(pooling, covariates=None, formula=None, adjacency=None)

    def posterior(asked: Pooling) -> PooledPosterior:
        terms: dict[str, Any] = {"where": where, "n_prior": n_prior, "pooled": asked}
        together = release.posterior(statistic, **terms)
        assert isinstance(together, PooledPosterior)  # noqa: S101 - it was asked to pool
        return together

    # A walk has no spread that neighbours explain some of.
    before = None if plain == pooling or pooling.over is not None else _without_spread_slope(posterior(plain))
    return SmallAreas(posterior=posterior(pooling), pooling=pooling, before=before)


def _without_spread_slope(together: PooledPosterior) -> PooledPosterior:
    """Work populations out again with a spread that is the same for all sizes, where it is not."""
    if all(pool.spread_slope is None for pool in together.pools):
        return together
    cells: Any = together.distribution
    parts = [
        pooled_distribution(part.blocks.source, part.population, part.name, part.line, has_spread_slope=False)
        for part in cells.pools
    ]
    return replace(
        together,
        distribution=replace(cells, pools=tuple(parts)),
        pools=tuple(Pool.of(pool.keys, part) for pool, part in zip(together.pools, parts, strict=True)),
        prior=replace(together.prior, has_spread_slope=False),
        rows_of=None,
    )
