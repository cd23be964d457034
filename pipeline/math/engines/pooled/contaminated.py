r"""Normal on the line but for a share of outliers: the default population.

.. math:: z \sim .95 \, \mathrm{Normal}(m, s^2) + .05 \, \mathrm{Normal}(m, s^2 + 2^2)

An outlying cell is drawn to the others by little: far from m the second component is flat. How probable it is
that a cell comes from it says which cells the population does not fit.

References
----------
Berger, Berliner. Robust Bayes and empirical Bayes analysis with epsilon-contaminated priors. Ann. Statist.
14, 1986.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.engines.pooled.normal import normal_density

if TYPE_CHECKING:
    from suffice.typing import Floats

SHARE, WIDE = 0.05, 2.0
"""The share of outliers, and what is added to their spread: a factor of seven in odds or rates."""


@dataclass(frozen=True, slots=True)
class ContaminatedPopulation:
    """A ``Population``; location m and spread s are those of the cells that are no outliers."""

    name: str
    slope: ClassVar[bool] = True
    is_contaminated: ClassVar[bool] = True

    def components(self, z: Floats, location: Floats, spread: Floats) -> list[tuple[float, Floats]]:
        """Return shares and densities: of most cells, and of outliers."""
        _, wide = self.spreads(spread)
        return [
            (1.0 - SHARE, normal_density(z, location, spread)),
            (SHARE, normal_density(z, location, wide)),
        ]

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return standard deviations of the components."""
        return [spread, np.hypot(spread, WIDE)]


OUTLYING = ContaminatedPopulation("contaminated")
"""The default population."""
