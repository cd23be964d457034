r"""Public hyperpriors of a population: of its location, spread and slopes on log size.

.. math:: m \sim \mathrm{Logistic}(m_0, \kappa), \qquad s \sim \mathrm{HalfNormal}(1), \qquad
    b \sim \mathrm{Normal}(0, (.5 / u)^2), \qquad g \sim \mathrm{Normal}(0, (.25 / u)^2). \qquad (1)

Of logits :math:`m_0` = 0 and :math:`\kappa` = 1, which is a uniform law of the probability; of logarithms,
which have no natural unit, :math:`m_0` is about where all cells are and :math:`\kappa` = 2. A half-normal law
of the spread is flat next to 0, where an inverse gamma one would decide (Gelman 2006).

Slopes are of the location, b, and of the logarithm of the spread, g. u is the standard deviation of log sizes
over the cells, or 1 where that is less: sizes are covariates, which tell nothing of the parameter by
themselves, and slopes are by their standard deviation as those of other covariates are (Gelman et al. 2008).
Where sizes span decades, small cells are otherwise logits off before any data.

References
----------
Gelman. Prior distributions for variance parameters in hierarchical models. Bayesian Anal. 1, 2006. Gelman,
Jakulin, Pittau, Su. A weakly informative default prior distribution for logistic and other regression models.
Ann. Appl. Statist. 2, 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.distribution import Line

if TYPE_CHECKING:
    from suffice.typing import Floats

SLOPE_SD = 0.5
SPREAD_SLOPE_SD = 0.25
COEFFICIENT_SD = 1.0
"""Of covariates: for each standard deviation, or from 0 to 1 of an indicator (``regression``)."""
LOG_SPREAD_SD = float(np.pi / np.sqrt(8.0))
"""Of the logarithm of a half-normal number, whatever its scale."""


def size_unit(log_size: Floats) -> float:
    """Return u of (1)."""
    return max(float(np.std(log_size)), 1.0)


def log_spread_slope_prior(of_unit: Floats) -> Floats:
    """Return the log density of g for each unit u, but for a constant."""
    result: Floats = -0.5 * (of_unit / SPREAD_SLOPE_SD) ** 2
    return result


@dataclass(frozen=True, slots=True)
class LocationPrior:
    """A logistic law of m."""

    centre: float
    scale: float

    def log_density(self, location: Floats) -> Floats:
        """But for a constant."""
        gap = np.abs(location - self.centre) / self.scale
        result: Floats = -gap - 2.0 * np.log1p(np.exp(-gap))
        return result

    @property
    def precision(self) -> float:
        """One over the variance."""
        return 3.0 / (np.pi * self.scale) ** 2


def location_prior(line: Line, middle: float) -> LocationPrior:
    """Return the hyperprior of m on a line."""
    return LocationPrior(0.0, 1.0) if line is Line.LOGIT else LocationPrior(middle, 2.0)


@dataclass(frozen=True, slots=True)
class LevelsPrior:
    """Logistic laws of the levels of maps, and Normal(0, sd^2) of a coefficient that is the last of them."""

    location: LocationPrior
    coefficient_sd: float | None

    def log_density(self, levels: Floats) -> Floats:
        """But for a constant; levels are the last axis."""
        if self.coefficient_sd is None:
            return self.location.log_density(levels)
        of_levels = self.location.log_density(levels[..., :-1])
        of_coefficient = -0.5 * (levels[..., -1:] / self.coefficient_sd) ** 2
        return np.concatenate([of_levels, of_coefficient], axis=-1)

    def n_levels(self, levels: Floats) -> int:
        """How many of these are levels of maps."""
        return len(levels) - (self.coefficient_sd is not None)

    def normal(self, n_levels: int) -> tuple[Floats, Floats]:
        """Return precisions, and precisions times means, of normal laws of the same moments."""
        precision, centre = self.location.precision, self.location.centre
        tau, nu = np.full(n_levels, precision), np.full(n_levels, precision * centre)
        if self.coefficient_sd is None:
            return tau, nu
        return np.append(tau, self.coefficient_sd**-2.0), np.append(nu, 0.0)
