"""What rows of a released statistic come from: its family's model, as its entry in the spec states it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.declaration.derived_conditions import read_condition
from suffice.pipeline.terms.declaration.fields import READS_CONDITION
from suffice.pipeline.terms.declaration.scalars import as_written
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Counts, Floats

MOST_RECORDS = 10**9
"""Records that one call may have to draw one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What rows of a released statistic come from, and which quantities sums of theirs are.

    Attributes
    ----------
    entry : StatisticSpec
        The statistic's entry in the spec.
    statistic : NoisyStatistic
        Its maps from components to quantities.
    """

    entry: StatisticSpec
    statistic: NoisyStatistic = field(repr=False)

    @classmethod
    def of(cls, statistic: NoisyStatistic, entry: Mapping[str, object]) -> Model:
        """Read a statistic's entry in the canonical plan."""
        context = {READS_CONDITION: read_condition}
        read = FAMILIES[statistic.plan.family].spec.model_validate(as_written(entry), context=context)
        return cls(entry=read.under(statistic.plan.contribution), statistic=statistic)

    def quantities(
        self, parameters: Sequence[Floats], rows: int, rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Draw so many rows for every draw of the parameters, each (draws, n_cells, ...), and sum them."""
        draws, cells = parameters[0].shape[:2]
        if rows < 1:
            message = f"rows must be an integer above 0, not {rows!r}"
            raise UsageError(message)
        exact = self._sums(parameters, np.full((draws, cells), rows), rng, clipped=False)
        result: dict[str, list[Floats]] = {}
        plan = self.statistic.plan
        for quantity in plan.quantities:
            result.setdefault(quantity.name, []).append(exact.estimates(quantity).reshape(draws, cells))
        by_entry = {
            quantity.name
            for quantity in plan.quantities
            if quantity.category or quantity.component or quantity.labels
        }
        return {
            name: np.stack(values, axis=-1) if name in by_entry else values[0]
            for name, values in result.items()
        }

    def released(
        self, parameters: Sequence[Floats], sizes: Counts, rng: np.random.Generator
    ) -> NoisyStatistic:
        """Draw data sets of these numbers of rows, (draws, n_cells), and sum them as a release does.

        Returns
        -------
        NoisyStatistic
            Exact sums without noise, a cell for every draw and cell.
        """
        return self._sums(parameters, sizes, rng, clipped=True)

    def _sums(
        self, parameters: Sequence[Floats], sizes: Counts, rng: np.random.Generator, *, clipped: bool
    ) -> NoisyStatistic:
        plan = self.statistic.plan
        family = FAMILIES[plan.family]
        draws, cells = parameters[0].shape[:2]
        if family.simulate is None:
            message = f"{plan.name} is {plan.family}, of which no rows can be drawn yet"
            raise UsageError(message)
        if not family.predicts:
            message = (
                f"{plan.name} is {plan.family}: its posterior lacks what new rows depend on, such as "
                "the predictors of a regression or the first states of sequences, and so none can be drawn"
            )
            raise UsageError(message)
        if (records := int(np.sum(sizes, dtype=object))) > MOST_RECORDS:
            message = (
                f"{records} rows in {draws} draws of {cells} cells are more than {MOST_RECORDS}: ask for "
                "fewer"
            )
            raise UsageError(message)
        flat = [values.reshape(draws * cells, *values.shape[2:]) for values in parameters]
        truth = flat[0] if len(flat) == 1 else np.column_stack(flat)
        sums = family.simulate(self.entry, truth, sizes.ravel(), rng)
        return dataclasses.replace(
            self.statistic,
            values=family.totals(self.entry, plan.design, sums.clipped if clipped else sums.unclipped),
            groups={},
            further=(),
            public_n=int(sizes.flat[0]) if plan.design is Design.MINIMAL else None,
        )
