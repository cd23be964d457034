"""What a posterior knows by its statistic's family: ranges, kinds of intervals, clipping, and new rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.math.parameters.arguments import generator
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, ParameterPosterior

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from suffice.pipeline.ask.inference.model import Model
    from suffice.pipeline.ask.posterior.clipping_report import Clipping
    from suffice.pipeline.math.distributions.intervals import Range
    from suffice.pipeline.terms.declaration.documents import Family
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FamilyPosterior(ParameterPosterior):
    """The parameters of a family, and what follows from it alone; attributes as in ``Posterior``."""

    family: Family
    constants: Constants | None = field(default=None, repr=False)
    model: Model | None = field(default=None, repr=False)
    models_clipping: NDArray[np.bool_] | None = field(default=None, repr=False)
    before_clipping: bool = False

    @property
    def default_interval(self) -> str:
        """The kind of intervals where none is asked for, by family: ``central`` or ``highest-density``."""
        from suffice.pipeline.families import FAMILIES

        return FAMILIES[self.family].interval

    def ends_of(self, parameter: str) -> Range:
        """Return the ends of a parameter's range; infinite where it has none."""
        from suffice.pipeline.families import FAMILIES

        spaces = () if self.constants is None else FAMILIES[self.family].parameter_spaces(self.constants)
        known = {space.name: space.support.ends for space in spaces}
        return known.get(parameter, (-math.inf, math.inf))

    def _hint(self, parameter: object) -> str:
        """Of a mean that is no parameter, how it follows from them."""
        from suffice.pipeline.families import FAMILIES  # numpy is slow to import

        mean = FAMILIES[self.family].mean
        return f"; the column's mean is {mean}" if parameter == "mean" and mean else ""

    @property
    def clipping(self) -> Clipping | None:
        """What the model says of records beyond the bounds, in cells that model clipping: no data are read.

        For every cell whether it ``is_modelled``, and there the ``share`` of records that the model puts
        beyond the bounds, the ``bias`` that clipping them gives to who leaves it out of account, in posterior
        standard deviations, and ``is_warned``: what lies beyond the bounds is extrapolated. Other cells
        describe the records as the bounds leave them.
        None where nothing is clipped (Bernoulli, binomial, counts of categories), and of several columns.
        """
        from suffice.pipeline.ask.posterior.clipping_report import clipping_of  # few ask
        from suffice.pipeline.families import FAMILIES

        outside = FAMILIES[self.family].outside
        if outside is None or self.constants is None:
            return None
        means, sds = (list(map(moment, self.parameters)) for moment in (self.mean, self.sd))
        return clipping_of(
            outside, means, sds, self.constants, self.models_clipping, everywhere=self.before_clipping
        )

    def predictive(
        self, rows: int = 1, draws: int = DRAWS, rng: np.random.Generator | int | None = None
    ) -> dict[str, Floats]:
        """Draw what so many new rows of every cell would add up to, by the family's own model.

        Parameters from the posterior, rows from the model without clipping (also where the posterior
        models that of the release) or noise, and their exact sums:
        the quantities that ``Release.table`` estimates. With one row the total is the new value itself,
        rounded to the lattice, and T of it where T is not x.

        Parameters
        ----------
        rows : int, > 0
            How many new rows a draw is of.
        draws, rng
            As in ``sample``.

        Returns
        -------
        dict of str to ndarray of shape (draws, n_groups), float64
            By quantity: ``n``, ``total``, ``total_of_squares``; ``count`` is (draws, n_groups, n_categories).

        Raises
        ------
        UsageError
            Where the posterior knows no model of rows, or so many rows cannot be drawn.
        """
        if self.model is None:
            message = f"{self.statistic}: new rows are drawn from posteriors that Release.posterior returns"
            raise UsageError(message)
        source = generator(rng)
        drawn = self.sample(draws, source)
        return self.model.quantities([drawn[name] for name in self.parameters], rows, source)
