"""Populations of cells' parameters on their line, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.beta import BetaPopulation
from suffice.pipeline.math.engines.pooled.contaminated import OUTLYING
from suffice.pipeline.math.engines.pooled.dictionary_population import DictionaryPopulation
from suffice.pipeline.math.engines.pooled.gamma import GammaPopulation
from suffice.pipeline.math.engines.pooled.normal import NormalPopulation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.typing import Floats

DEFAULT, DICTIONARY, DIRICHLET = OUTLYING.name, "dictionary", "dirichlet"
"""By what name cells are pooled where none is given, without a shape, and those of categories."""


class Population(Protocol):
    """The law of positions z, less what a slope on log size explains."""

    @property
    def name(self) -> str:
        """As it is asked for."""

    @property
    def slope(self) -> bool:
        """Whether it can be moved along the line, and so have a slope."""

    @property
    def is_contaminated(self) -> bool:
        """Whether its second component is of outliers."""

    def components(self, z: Floats, location: Floats, spread: Floats) -> list[tuple[float, Floats]]:
        """Return shares and densities of z, (n_hyperparameters, n_points), of its components."""

    def spreads(self, spread: Floats) -> list[Floats]:
        """Return standard deviations of z of the components, (n_hyperparameters,)."""


POPULATIONS: Mapping[Line, Mapping[str, Population]] = {
    Line.LOGIT: {
        each.name: each
        for each in (
            OUTLYING,
            DictionaryPopulation(DICTIONARY),
            NormalPopulation("logit-normal"),
            BetaPopulation("beta"),
        )
    },
    Line.LOGARITHM: {
        each.name: each
        for each in (
            OUTLYING,
            DictionaryPopulation(DICTIONARY),
            NormalPopulation("lognormal"),
            GammaPopulation("gamma"),
        )
    },
    Line.IDENTITY: {each.name: each for each in (OUTLYING, NormalPopulation("normal"))},
}
NAMES = (*dict.fromkeys(name for of_line in POPULATIONS.values() for name in of_line), DIRICHLET)
