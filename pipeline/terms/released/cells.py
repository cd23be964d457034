"""The cells of a statistic, of which some are asked for at a time: held in memory, or read when they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


class Cells(Protocol):
    """Selected cells of one statistic, in the order of the release."""

    @property
    def plan(self) -> StatisticPlan:
        """The statistic's plan."""

    @property
    def n_first_keys(self) -> int:
        """How many keys of the first group column there are among the cells; 1 without groups."""

    def __len__(self) -> int:
        """Return how many there are."""

    def slice(self, start: int, stop: int) -> NoisyStatistic:
        """Return consecutive ones."""


@runtime_checkable
class StatisticsBySlices(Protocol):
    """Statistics of a release that can be read some cells at a time."""

    def cells(self, statistic: str, where: Mapping[str, object] | None) -> Cells:
        """Return the cells of a statistic with some keys, as :meth:`NoisyStatistic.where` keeps them."""


@dataclass(frozen=True, slots=True)
class HeldCells:
    """Cells that are in memory.

    Parameters
    ----------
    statistic : NoisyStatistic
    """

    statistic: NoisyStatistic

    @property
    def plan(self) -> StatisticPlan:
        """The statistic's plan."""
        return self.statistic.plan

    @property
    def n_first_keys(self) -> int:
        """How many keys of the first group column there are; 1 without groups."""
        first = next(iter(self.statistic.groups.values()), [0])
        return len(set(first))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.statistic.values)

    def slice(self, start: int, stop: int) -> NoisyStatistic:
        """Return consecutive ones."""
        return self.statistic.take(np.arange(start, stop))
