"""A quantity that follows from parameters, as draws of it: moments, quantiles, intervals, probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.families.naive_bayes import estimated_tables
from suffice.pipeline.math.parameters.contrasts import require_share, share_between
from suffice.pipeline.math.parameters.parameter_posterior import MASS, ends_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats


def tables_of(posterior: Posterior) -> tuple[CountTable, ...]:
    """Return the tables whose probabilities a posterior is of, in the order of its entries."""
    if posterior.constants is None:
        message = f"{posterior.statistic} has no count tables"
        raise UsageError(message)
    if posterior.family == "naive_bayes":
        return estimated_tables(posterior.constants)
    return posterior.constants.tables


def drawn_tables(posterior: Posterior, draws: int, rng: np.random.Generator) -> list[Floats]:
    """Draw all tables jointly, each of shape (draws, n_cells, *table.shape).

    A table is of its last variable given the others; the only one of a contingency table is of all.
    """
    tables = tables_of(posterior)
    drawn = posterior.sample(draws, rng)["probability"]
    parts = np.split(drawn, np.cumsum([table.size for table in tables])[:-1], axis=2)
    return [part.reshape(*part.shape[:2], *table.shape) for part, table in zip(parts, tables, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnQuantity:
    """Draws of a quantity, one for each draw of the parameters that it follows from.

    Attributes
    ----------
    draws : ndarray of shape (n_draws, ...), float64
        Not a number where a draw of the parameters defines no such quantity; may be infinite.
    has_moments : bool
        Whether a mean and a standard deviation are known to exist; where not, both are not a number.
    """

    draws: Floats = field(repr=False)
    has_moments: bool = True

    @property
    def undefined_share(self) -> Floats:
        """The share of draws that define no such quantity; everything else is of the others."""
        return np.asarray(np.mean(np.isnan(self.draws), axis=0), dtype=np.float64)

    @property
    def mean(self) -> Floats:
        """Means, shaped as a draw."""
        return self._moments()[0]

    @property
    def sd(self) -> Floats:
        """Standard deviations, shaped as a draw."""
        return self._moments()[1]

    def quantile(self, q: float) -> Floats:
        """Quantiles, shaped as a draw.

        Raises
        ------
        UsageError
            Where q is not between 0 and 1.
        """
        return self._quantiles([require_share("q", q)])[..., 0]

    def credible_interval(self, mass: float = MASS) -> Floats:
        """Central credible intervals, shaped as a draw with 2 as a last axis.

        Raises
        ------
        UsageError
            Where the mass is not between 0 and 1.
        """
        return self._quantiles(ends_of(mass))

    def probability(self, *, above: float | None = None, below: float | None = None) -> Floats:
        """Probabilities that it is defined and lies in a range, shaped as a draw.

        Raises
        ------
        UsageError
            Where no bound is given, or nothing lies between them.
        """
        return share_between(self.draws, above, below)

    def summary(self, mass: float = MASS) -> dict[str, Floats]:
        """Mean, sd, median, lower and upper, each shaped as a draw."""
        ends = ends_of(mass)
        lower, median, upper = np.moveaxis(self._quantiles((ends[0], 0.5, ends[1])), -1, 0)
        mean, sd = self._moments()
        return {"mean": mean, "sd": sd, "median": median, "lower": lower, "upper": upper}

    def _moments(self) -> tuple[Floats, Floats]:
        if not self.has_moments:
            return np.full(self.draws.shape[1:], np.nan), np.full(self.draws.shape[1:], np.nan)
        is_defined = ~np.isnan(self.draws)
        count = np.where(is_defined.any(axis=0), np.sum(is_defined, axis=0), np.nan)
        mean = np.sum(self.draws, axis=0, where=is_defined) / count
        squares = np.sum(np.square(self.draws - mean), axis=0, where=is_defined)
        return mean, np.sqrt(squares / count)

    def _quantiles(self, levels: Sequence[float]) -> Floats:
        """Return quantiles of the draws that are defined, never between a number and infinity."""
        ordered = np.sort(self.draws, axis=0)  # what is not a number comes last
        count = np.sum(~np.isnan(ordered), axis=0)
        places = [np.maximum(np.ceil(level * count).astype(np.int64) - 1, 0) for level in levels]
        order_statistics = [np.take_along_axis(ordered, place[None], axis=0)[0] for place in places]
        return np.stack(order_statistics, axis=-1)
