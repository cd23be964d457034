"""The name of a population without a shape; ``dictionary`` draws its densities given all cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from suffice.pipeline.math.engines.pooled.normal import normal_density

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class DictionaryPopulation:
    """A ``Population`` by its name: densities are those of ``dictionary.DrawnPopulations``."""

    name: str
    slope: ClassVar[bool] = True
    is_contaminated: ClassVar[bool] = False

    def components(self, z: Floats, location: Floats, spread: Floats) -> list[tuple[float, Floats]]:
        """Return normal densities of the same moments."""
        return [(1.0, normal_density(z, location, spread))]

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return standard deviations of the mixtures."""
        return [spread]
