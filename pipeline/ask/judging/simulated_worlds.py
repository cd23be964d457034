"""What a prior says of a record where no formula does: means of data sets drawn from the family's own model.

Of several columns and of networks. A world's mean is that of a data set of at most ``MOST_RECORDS`` records,
and no more than the cell has: it varies more than it should, which errs towards no conflict. The generator
is the same every time: what is said of a posterior must not change when it is asked again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.ask.inference.matching import draw
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.worlds import Worlds
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.block import Quantity
    from suffice.typing import Cells, Floats


MOST_RECORDS = 64
WORLDS = 2048
_SEED = 20170


@dataclass(slots=True, kw_only=True)
class SimulatedWorlds:
    """Worlds of a statistic's quantities, drawn once for each number of records."""

    posterior: Judged
    statistic: NoisyStatistic
    _drawn: dict[tuple[int, bool], NoisyStatistic] = field(default_factory=dict)

    @classmethod
    def of(cls, posterior: Judged, statistic: NoisyStatistic) -> Self | None:
        """Return nothing where no data of the family can be drawn."""
        if posterior.model is None or FAMILIES[posterior.family].simulate is None:
            return None
        return cls(posterior=posterior, statistic=statistic)

    def worlds(self, quantity: Quantity, n: Floats, *, is_clipped: bool) -> Iterator[tuple[Cells, Worlds]]:
        """Return cells (n_cells,) that share worlds, and these."""
        power = np.floor(np.log(np.clip(n, 1.0, MOST_RECORDS)) / np.log(4.0) + 1e-9).astype(np.int64)
        for own in np.unique(power).tolist():
            exact = self._sums(4**own, is_clipped=is_clipped)
            yield np.flatnonzero(power == own), Worlds.drawn(exact.estimates(quantity) / 4.0**own).merged()

    def _sums(self, records: int, *, is_clipped: bool) -> NoisyStatistic:
        """Exact sums of data sets of so many records, a world a cell."""
        if (records, is_clipped) not in self._drawn:
            plan, model = self.statistic.plan, self.posterior.model
            family = FAMILIES[plan.family]
            assert model is not None  # noqa: S101 - checked by ``of``
            assert family.simulate is not None  # noqa: S101
            rng = np.random.default_rng(_SEED)
            truth = draw(self.posterior.prior, family, plan.parameters, WORLDS, rng)
            found = family.simulate(model.entry, truth, np.full(WORLDS, records), rng)
            sums = found.clipped if is_clipped else found.unclipped
            self._drawn[records, is_clipped] = dataclasses.replace(
                self.statistic,
                values=family.totals(model.entry, plan.design, sums),
                groups={},
                further=(),
                public_n=records if plan.design is Design.MINIMAL else None,
            )
        return self._drawn[records, is_clipped]
