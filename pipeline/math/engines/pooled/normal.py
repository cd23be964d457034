r"""Normal on the line: a logit-normal population of probabilities, a lognormal one of rates.

.. math:: z \sim \mathrm{Normal}(m, s^2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class NormalPopulation:
    """A ``Population``; location m and spread s are its mean and standard deviation on the line."""

    name: str
    slope: ClassVar[bool] = True
    is_contaminated: ClassVar[bool] = False

    def components(self, z: Floats, location: Floats, spread: Floats) -> list[tuple[float, Floats]]:
        """Return the one component's share and densities."""
        return [(1.0, normal_density(z, location, spread))]

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return standard deviations of the components."""
        return [spread]


def normal_density(z: Floats, location: Floats, spread: Floats) -> Floats:
    """Return normal densities, (n_hyperparameters, n_points)."""
    scale = 1.0 / spread[:, None]
    density: Floats = (z - location[:, None]) * scale
    np.square(density, out=density)
    density *= -0.5
    np.exp(density, out=density)
    density *= scale / np.sqrt(2.0 * np.pi)
    return density
