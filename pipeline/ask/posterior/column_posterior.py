"""What a histogram's posterior says of its column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.pipeline.ask.posterior.family_posterior import FamilyPosterior
from suffice.pipeline.math.parameters.arguments import checked_draws, generator
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS

if TYPE_CHECKING:
    import numpy as np

    from suffice.pipeline.math.engines.histogram.column_law import ColumnLaw


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ColumnPosterior(FamilyPosterior):
    """The parameters of a family, and the column behind a histogram; attributes as in ``Posterior``."""

    def column(
        self, of: str = "law", *, draws: int = DRAWS, rng: np.random.Generator | int | None = None
    ) -> ColumnLaw:
        """Return the column behind a histogram: its quantiles, tail shares, mean, spread and density.

        ``release.posterior("delay").column().quantile(0.9)``. All answers rest on the same draws.

        Parameters
        ----------
        of : {"law", "rows"}
            The law that records come from, as every posterior's parameters are; or the records that were
            counted, whose own quantiles are known better.
        draws, rng
            As in ``sample``.

        Raises
        ------
        UsageError
            Where the posterior is no noise-aware one of a histogram, or `of` is neither.
        """
        from suffice.pipeline.math.engines.histogram.column_law import column_law  # few ask

        return column_law(self.distribution, checked_draws(draws), generator(rng), of=of)
