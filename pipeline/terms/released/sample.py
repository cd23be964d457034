"""A released sample: draws of a posterior on a public grid, or of a quantile's bin, cell by cell.

There are no statistics in it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.noisy_statistic import wanted_cells
from suffice.pipeline.terms.statistics.drawn_quantile import LEVEL, QuantilePlan
from suffice.pipeline.terms.statistics.sample_plan import SamplePlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReleasedSample:
    """One statistic's draws in every cell, independent given the data.

    Attributes
    ----------
    plan : StatisticPlan
        Its ``sample`` is what was drawn, and at which temperature.
    indices : ndarray of int64, shape (n_cells, n_draws)
        Which point of the grid each draw is, counted from 0.
    groups : dict of str to list
        The key of each cell, by group column; int for ``range`` domains, else text.
    """

    plan: StatisticPlan
    indices: NDArray[np.int64]
    groups: Mapping[str, list[str | int]]

    def __repr__(self) -> str:
        n_cells, n_draws = self.indices.shape
        return (
            f"ReleasedSample({self.plan.name!r}: {counted(n_draws, 'draw')} of {self.parameter} in each of "
            f"{counted(n_cells, 'cell')}, prior {self.sample.prior}, temperature "
            f"{float(self.sample.temperature):.6g})"
        )

    @property
    def sample(self) -> SamplePlan:
        """What was drawn, and at which temperature.

        Raises
        ------
        ValueError
            Where the plan is of noisy components.
        """
        if not isinstance(self.plan.sample, SamplePlan):
            message = f"{self.plan.name} is no posterior sample"
            raise ValueError(message)  # noqa: TRY004 - it says of what it is
        return self.plan.sample

    @property
    def parameter(self) -> str:
        """The name of what was drawn."""
        return self.sample.parameter

    @property
    def values(self) -> Floats:
        """The draws, shape (n_cells, n_draws), in the parameter's unit."""
        return self.sample.values()[self.indices]

    def take(self, cells: NDArray[np.int64]) -> ReleasedSample:
        """Return the given cells, in the given order."""
        return dataclasses.replace(
            self,
            indices=self.indices[cells],
            groups={column: [keys[cell] for cell in cells.tolist()] for column, keys in self.groups.items()},
        )

    def where(self, where: Mapping[str, object] | None) -> ReleasedSample:
        """Keep the cells whose keys equal the given ones as text.

        Raises
        ------
        UsageError
            Where a column is no group of the release, several keys are given for one, or no cell is left.
        """
        if not where:
            return self
        return self.take(wanted_cells(where, self.groups, len(self.indices)))

    def table(self) -> list[dict[str, Any]]:
        """Return one row per cell and draw: group keys, parameter, draw (from 0), value."""
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "parameter": self.parameter,
                "draw": draw,
                "value": value,
            }
            for cell, values in enumerate(self.values.tolist())
            for draw, value in enumerate(values)
        ]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReleasedQuantile(ReleasedSample):
    """One statistic's draws of the bin that a quantile is in, in every cell, independent given the data.

    What is drawn is a bin: nothing is said of where in it the quantile is. ``values`` are the middles of
    bins, for pictures.
    """

    def __repr__(self) -> str:
        n_cells, n_draws = self.indices.shape
        return (
            f"ReleasedQuantile({self.plan.name!r}: {counted(n_draws, 'draw')} of the bin of the "
            f"{self.parameter} in each of {counted(n_cells, 'cell')}, rank scale "
            f"{float(self.quantile.rank_scale):.6g} records)"
        )

    @property
    def quantile(self) -> QuantilePlan:
        """Which quantile was drawn, among which bins, and how sharply.

        Raises
        ------
        ValueError
            Where the plan is of something else.
        """
        if not isinstance(self.plan.sample, QuantilePlan):
            message = f"{self.plan.name} is no draw of a quantile"
            raise ValueError(message)  # noqa: TRY004 - it says of what it is
        return self.plan.sample

    @property
    def parameter(self) -> str:
        """What was drawn, as ``quantile 0.9``."""
        return self.quantile.parameter

    @property
    def lower(self) -> Floats:
        """The lower edges of the bins drawn, shape (n_cells, n_draws), in the column's unit."""
        return np.array(self.quantile.bins.lower)[self.indices]

    @property
    def upper(self) -> Floats:
        """The upper edges of the bins drawn, likewise; of an atom the value itself."""
        return np.array(self.quantile.bins.upper)[self.indices]

    @property
    def values(self) -> Floats:
        """The middles of the bins drawn, likewise."""
        return 0.5 * (self.lower + self.upper)

    def rank_bound(self, level: float = LEVEL) -> float:
        """Return a number of records that a draw's rank error exceeds with at most ``1 - level``.

        Whatever the data are, over the mechanism alone: the bin drawn holds, or lies beside, a value that at
        least ``quantile * n - bound`` and at most ``quantile * n + bound`` of the cell's n records are below.

        Raises
        ------
        UsageError
            Where the level is no probability above 0 and below 1.
        """
        try:
            return self.quantile.rank_bound(level)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def levels(self, rows: float, level: float = LEVEL) -> tuple[float, float]:
        r"""Return the quantiles of a cell's data that a draw lies between, with so much probability.

        .. math:: q \pm r / n

        cut off at 0 and 1, of n records and ``rank_bound`` r. It says nothing where it is 0 and 1.

        Parameters
        ----------
        rows : float, > 0
            The records of a cell, which the draw does not tell: a public number, or one that another release
            tells.
        level : float

        Raises
        ------
        UsageError
            Where the rows are not above 0, or the level is no probability above 0 and below 1.
        """
        if not rows > 0:
            message = f"rows: the records of a cell, above 0, not {rows!r}"
            raise UsageError(message)
        share, bound = float(self.quantile.quantile), self.rank_bound(level) / rows
        return max(0.0, share - bound), min(1.0, share + bound)

    def table(self) -> list[dict[str, Any]]:
        """Return one row per cell and draw: group keys, parameter, draw (from 0), the edges of the bin."""
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "parameter": self.parameter,
                "draw": draw,
                "lower": lower,
                "upper": upper,
            }
            for cell, ends in enumerate(zip(self.lower.tolist(), self.upper.tolist(), strict=True))
            for draw, (lower, upper) in enumerate(zip(*ends, strict=True))
        ]


def released_sample(
    plan: StatisticPlan, indices: NDArray[np.int64], groups: Mapping[str, list[str | int]]
) -> ReleasedSample:
    """Return what was drawn: of a posterior, or of a quantile."""
    kind = ReleasedQuantile if isinstance(plan.sample, QuantilePlan) else ReleasedSample
    return kind(plan=plan, indices=indices, groups=groups)


def no_statistics(plan: StatisticPlan) -> UsageError:
    """Return the error of whoever asks a sample for what follows from statistics alone."""
    name = plan.name
    if isinstance(plan.sample, QuantilePlan):
        message = (
            f"{name} is a drawn {plan.sample.parameter}: there are no counts in it; its draws: suffice "
            f"table, or release.samples({name!r}); what they say of the data: suffice.quantile_posterior"
            f"(release, {name!r}, n_prior=...)"
        )
        return UsageError(message)
    message = (
        f"{name} is a posterior sample: there are no statistics in it, so no other posterior follows "
        f"from it; its draws: suffice table, or release.samples({name!r})"
    )
    return UsageError(message)
