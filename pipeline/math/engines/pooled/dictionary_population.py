"""The name of a population without a shape; ``dictionary`` draws its densities given all cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NoReturn

if TYPE_CHECKING:
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class DictionaryPopulation:
    """A ``Population`` by its name: densities are those of ``dictionary.DrawnPopulations``."""

    name: str
    slope: ClassVar[bool] = True
    is_contaminated: ClassVar[bool] = False

    def components(self, z: Floats, location: Floats, spread: Floats) -> NoReturn:
        """Refuse: a location and a spread do not tell a shape."""
        message = "densities of a dictionary are drawn given all cells: no location and spread tell them"
        raise NotImplementedError(message)

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return standard deviations of the mixtures."""
        return [spread]
