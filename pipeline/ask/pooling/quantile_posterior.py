r"""The posterior of a quantile of the data, given draws of the bin that it is in.

.. math:: P(Q = b \mid g) \propto \mathrm E \Bigl[ 1(Q = b) \prod_i P(g_i \mid k) \Bigr]

the mean over data sets k of the prior, of a histogram's walk and of N, with the law of the mechanism as the
likelihood of every draw g (``engines.histogram.drawn_quantile``). It is of the cell's data, and not of a
population that they are drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.engines.histogram.drawn_quantile import quantile_weights
from suffice.pipeline.math.parameters.arguments import generator, is_integer
from suffice.pipeline.math.priors.bin_walk import BinWalk
from suffice.pipeline.math.priors.by_name import parse_prior
from suffice.pipeline.math.priors.record_count import Fixed, parse_n_prior
from suffice.pipeline.terms.released.sample import ReleasedQuantile
from suffice.pipeline.terms.released.table import Table
from suffice.pipeline.terms.statistics.drawn_quantile import LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Cells, Floats

SIMULATIONS = 100_000
"""Data sets of the prior where none are asked for: some 3 s of one core for 128 bins."""
MOST_SIMULATIONS = 10_000_000
LEAST_EFFECTIVE = 100
"""Effective data sets under which no posterior is given."""
DEFAULT_PRIOR = BinWalk(0.05, 0.1, 0.2, 0.4, 0.8)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuantilePosterior:
    """The posterior of the bin that a quantile of the data is in, in every cell.

    Attributes
    ----------
    draws : ReleasedQuantile
        What was drawn.
    prior : BinWalk
    n_prior : NPrior
        Of the records of every cell.
    probability : ndarray of float64
        Of each bin, of shape ``(n_cells, n_bins)``.
    effective : ndarray of float64
        Data sets that it rests on in effect, of shape ``(n_cells,)``.
    simulations : int
        Data sets of the prior.
    """

    draws: ReleasedQuantile
    prior: BinWalk
    n_prior: NPrior
    probability: Floats = field(repr=False)
    effective: Floats
    simulations: int

    def __repr__(self) -> str:
        return (
            f"<QuantilePosterior of {self.draws.plan.name}: the {self.draws.parameter} of the data, "
            f"{len(self.probability)} cells, prior {self.prior}, N {self.n_prior}>"
        )

    def __str__(self) -> str:
        return str(self.table())

    def bins_between(self, level: float = LEVEL) -> tuple[Cells, Cells]:
        """Return the first and the last bin of the central interval of every cell, each (n_cells,)."""
        if not 0.0 < level < 1.0:
            message = f"level: a probability above 0 and below 1, not {level!r}"
            raise UsageError(message)
        through = np.cumsum(self.probability, axis=1)
        tail = 0.5 * (1.0 - level)
        last = np.minimum(np.sum(through < 1.0 - tail, axis=1), through.shape[1] - 1)
        return np.sum(through <= tail, axis=1), last

    def interval(self, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Return the ends of the central interval of every cell, each (n_cells,), in the column's unit.

        They are edges of bins, so that the width of bins is in it: its probability is ``level`` at least.

        Raises
        ------
        UsageError
            Where the level is no probability above 0 and below 1.
        """
        first, last = self.bins_between(level)
        bins = self.draws.quantile.bins
        return np.array(bins.lower)[first], np.array(bins.upper)[last]

    def median(self) -> tuple[Floats, Floats]:
        """Return the edges of the bin that the posterior's median is in, each (n_cells,)."""
        middle = np.sum(np.cumsum(self.probability, axis=1) < 0.5, axis=1)
        bins = self.draws.quantile.bins
        return np.array(bins.lower)[middle], np.array(bins.upper)[middle]

    def table(self, level: float = LEVEL) -> Table:
        """Return one row a cell: keys, parameter, the ends of the interval, the effective data sets."""
        groups, ends = self.draws.groups, self.interval(level)
        rows: list[dict[str, Any]] = [
            {
                **{column: keys[cell] for column, keys in groups.items()},
                "parameter": self.draws.parameter,
                "lower": lower,
                "upper": upper,
                "effective": effective,
            }
            for cell, (lower, upper, effective) in enumerate(
                zip(*(each.tolist() for each in (*ends, self.effective)), strict=True)
            )
        ]
        title = f"{self.draws.plan.name}: {self.draws.parameter} of the data"
        return Table(rows, title=title, notes=self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the posterior rests on."""
        draws, least = self.draws, float(np.min(self.effective))
        given = (
            f"of the data of each cell, not of a population; given {draws.indices.shape[1]} draws of a bin: "
            f"each {draws.quantile.law}"
        )
        sampled = (
            f"by importance sampling: of {self.simulations:,} data sets of the prior {least:,.0f} are "
            "effective where fewest are"
        )
        return given, f"prior {self.prior} of the shares of bins, N {self.n_prior}", sampled


def quantile_posterior(
    release: Release,
    statistic: str,
    prior: BinWalk | str | None = None,
    *,
    n_prior: NPrior | int | str,
    where: Mapping[str, object] | None = None,
    simulations: int = SIMULATIONS,
    rng: np.random.Generator | int = 0,
) -> QuantilePosterior:
    """Return the posterior of a quantile of the data, given the draws that were released. Costs no privacy.

    Parameters
    ----------
    release : Release
    statistic : str
        One of which a quantile was drawn.
    prior : BinWalk or str, optional
        Of the shares of bins; by default that of a histogram.
    n_prior : NPrior, int or str
        The records of a cell, of which draws tell next to nothing: a number, ``"Uniform(500, 2000)"`` or
        ``"Reciprocal(100000)"``, the same for every cell. There is no default, as it decides how much a draw
        says.
    where : mapping, optional
        Keep the cells with these group keys.
    simulations : int
        Data sets of the prior: one set for all cells.
    rng : Generator or int
        Who asks again with the same number gets the same.

    Raises
    ------
    UsageError
        Where no quantile was drawn of the statistic, it has no such cell, or too few data sets are effective.
    PriorError
        Where a prior is no walk, or none of N.
    """
    draws = release.samples(statistic, where)
    if not isinstance(draws, ReleasedQuantile):
        message = f"{statistic} is a posterior sample, and no draw of a quantile"
        raise UsageError(message)
    if not is_integer(simulations, 1) or simulations > MOST_SIMULATIONS:
        message = f"simulations: an integer from 1 to {MOST_SIMULATIONS:,}, not {simulations!r}"
        raise UsageError(message)
    walk, of_n = _walk(prior), _of_n(n_prior)
    n_bins, drawn = draws.quantile.n_points, draws.indices
    counts = np.stack([np.bincount(cell, minlength=n_bins) for cell in drawn])
    # Cells with the same draws have the same posterior.
    distinct, cell = np.unique(counts, axis=0, return_inverse=True)
    weights = quantile_weights(
        distinct,
        draws.quantile.bins,
        quantile=float(draws.quantile.quantile),
        rank_scale=float(draws.quantile.rank_scale),
        steps=walk.step,
        n_prior=of_n,
        size=int(simulations),
        rng=generator(rng),
    )
    few = int(np.sum(weights.effective[cell] < LEAST_EFFECTIVE))
    if few:
        message = (
            f"{statistic}: fewer than {LEAST_EFFECTIVE} of {simulations:,} data sets of the prior agree with "
            f"the draws of {few} of {len(cell)} cells, too few for an interval: ask for more simulations, or "
            "state a prior under which such draws are less rare"
        )
        raise UsageError(message)
    return QuantilePosterior(
        draws=draws,
        prior=walk,
        n_prior=of_n,
        probability=weights.probability[cell],
        effective=weights.effective[cell],
        simulations=int(simulations),
    )


def _walk(prior: BinWalk | str | None) -> BinWalk:
    if prior is None:
        return DEFAULT_PRIOR
    read = parse_prior(prior) if isinstance(prior, str) else prior
    if not isinstance(read, BinWalk):
        message = f"the prior of a drawn quantile is a BinWalk, as BinWalk(0.1, 0.4), not {prior!r}"
        raise PriorError(message)
    return read


def _of_n(n_prior: NPrior | int | str) -> NPrior:
    if isinstance(n_prior, str):
        return parse_n_prior(n_prior)
    return Fixed(n_prior) if isinstance(n_prior, int | np.integer) else n_prior
