"""A released sample: draws of a posterior on a public grid, cell by cell; there are no statistics in it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.noisy_statistic import wanted_cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.statistic_plan import SamplePlan, StatisticPlan
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
        if self.plan.sample is None:
            message = f"{self.plan.name} is not sampled"
            raise ValueError(message)
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


def no_statistics(name: str) -> UsageError:
    """Return the error of whoever asks a sample for what follows from statistics alone."""
    message = (
        f"{name} is a posterior sample: there are no statistics in it, so no other posterior follows "
        f"from it; its draws: suffice table, or release.samples({name!r})"
    )
    return UsageError(message)
