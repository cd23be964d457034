"""What is known of a population of pooled cells.

A spread is not identified where the standard deviation of its logarithm is above ``UNIDENTIFIED`` of what it
is under its hyperprior: what the cells have in common then rests on that. That is so of cells that are alike,
too: next to 0 the logarithm has that standard deviation however well the spread is known. What it is at most
is then said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.dictionary import DrawnPopulations
from suffice.pipeline.math.engines.pooled.moment_cells import UNIT
from suffice.pipeline.math.engines.pooled.regression import Regression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.borrowing.covariates import Coefficient
    from suffice.pipeline.math.engines.pooled.dirichlet import CategoryPool
    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.pipeline.math.engines.pooled.hyperparameters import Hyperparameters
    from suffice.pipeline.math.engines.pooled.moment_pools import MomentPool

UNIDENTIFIED = 0.6
NO_SLOPE = (0.0, 0.0)
MEANS = "means"
"""What the first population of cells with a mean and a variance is of."""
COLLINEAR = 0.75
"""R^2 from which on a slope and coefficients are not told apart: what a slope is off by is doubled."""


def in_sentence(keys: Mapping[str, object]) -> str:
    """Return keys as a sentence goes on with them; empty where there are none."""
    return f" of {', '.join(f'{column}={key}' for column, key in keys.items())}" if keys else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What is known of one population.

    Attributes
    ----------
    keys : dict of str to str or int
        What its cells have in common; empty where all cells are one pool.
    n_cells : int
    location, spread, slope : (float, float)
        Posterior mean and standard deviation, on the line: the logit of a probability, the logarithm of a
        rate or a scale. The location is that at a typical size; the slope is 0 where there is none.
    typical_size : float or None
        The number of records that location and spread are of; None where there is no slope.
    spread_slope : (float, float), optional
        Posterior mean and standard deviation of the slope of the logarithm of the spread; None where the
        spread has none.
    size_unit : float
        What hyperpriors of slopes are by: the standard deviation of log sizes, or 1 where that is less.
    largest_size : float, optional
        The number of records that larger cells count as for slopes; None where there is none so large.
    beside_size : (str, float), optional
        The covariate that says what the size of a cell says, where there is one, and the R^2 of the slope by
        coefficients.
    identified : bool
        Whether the cells tell the spread.
    settled : bool
        Whether the integral over hyperparameters is resolved.
    most_spread : float, optional
        What the spread is at most, but for a chance of .025.
    chain_gap : float, optional
        Of a population by draws: how far halves of these differ, in posterior standard deviations of a cell.
    coefficients : tuple of Coefficient
        Of covariates, where there are any: the location is that at their means, the spread what they leave.
    of_map : (float, float), optional
        Posterior mean and standard deviation of rho: the share of the variance that is a map's.
    parameter : str
        What it is the population of, where cells have several parameters; else empty. Means and their spread
        are in the column's unit, and of variances the log standard deviation has a population.
    category : str
        Of which category's probability location and spread are; else empty.
    """

    keys: dict[str, str | int]
    n_cells: int
    location: tuple[float, float]
    spread: tuple[float, float]
    slope: tuple[float, float]
    typical_size: float | None
    identified: bool
    settled: bool
    spread_slope: tuple[float, float] | None = None
    size_unit: float = 1.0
    largest_size: float | None = None
    beside_size: tuple[str, float] | None = None
    most_spread: float | None = None
    chain_gap: float | None = None
    coefficients: tuple[Coefficient, ...] = ()
    of_map: tuple[float, float] | None = None
    parameter: str = ""
    category: str = ""

    @property
    def called(self) -> str:
        """What it is the population of, as sentences go on with it; empty where nothing tells."""
        return (f" of {self.parameter}" if self.parameter else "") + in_sentence(self.keys)

    @property
    def of_what(self) -> dict[str, str]:
        """Whether it is of means or of log standard deviations, or of which category, as a row says it."""
        named = {"parameter": self.parameter, "category": self.category}
        return {name: value for name, value in named.items() if value}

    @property
    def at_most(self) -> str:
        """What the spread is at most, in words; empty where that is not known."""
        known = self.most_spread
        return "" if known is None else f" (at most {known:.2g}, but for a chance of .025)"

    @property
    def of_far_sizes(self) -> str:
        """What is said of cells that are far larger than all others; empty where there are none."""
        if self.largest_size is None:
            return ""
        largest = float(f"{self.largest_size:.2g}")
        return (
            f"cells{in_sentence(self.keys)} with more than {largest:,.0f} records count "
            "as that large in slopes on log size: they are far larger than most and would decide the slopes"
        )

    @property
    def of_collinear_size(self) -> str:
        """What is said of a covariate that goes with the size of cells; empty where none does."""
        if self.beside_size is None:
            return ""
        name, share = self.beside_size
        return (
            f"the covariate {name} goes with log(1 + size){in_sentence(self.keys)}: its coefficient and "
            f"the slope on size are hardly told apart (R^2 {share:.2f} in their posterior): neither is to "
            "be read by itself, and answers of cells rest on both together"
        )

    @classmethod
    def of(
        cls,
        keys: dict[str, str | int],
        pool: PooledDistribution,
        coefficients: tuple[Coefficient, ...] = (),
    ) -> Pool:
        """Sum up the posterior of the hyperparameters."""
        hyper = pool.hyperparameters
        location, spread, slope = (
            (hyper.mean(values), hyper.sd(values))
            for values in (hyper.location, hyper.drawn_spread, hyper.slopes)
        )
        has_slope = len(hyper.slope) > 1
        has_spread_slope = len(hyper.grid.knots) > 1
        return cls(
            keys=keys,
            n_cells=pool.n_cells,
            location=location,
            spread=spread,
            slope=slope if has_slope else NO_SLOPE,
            typical_size=float(np.expm1(hyper.grid.origin)) if has_slope else None,
            spread_slope=(hyper.mean(hyper.spread_slope), hyper.sd(hyper.spread_slope))
            if has_spread_slope
            else None,
            size_unit=hyper.size_unit,
            largest_size=float(np.expm1(hyper.grid.highest))
            if has_slope and np.isfinite(hyper.grid.highest)
            else None,
            beside_size=_beside_size(hyper, coefficients),
            identified=hyper.log_spread_sd <= UNIDENTIFIED * hyper.prior_log_spread_sd,
            most_spread=hyper.most(hyper.drawn_spread),
            settled=hyper.settled,
            chain_gap=hyper.chain_gap if isinstance(hyper, DrawnPopulations) else None,
            coefficients=coefficients,
        )

    @classmethod
    def of_moments(cls, keys: dict[str, str | int], pool: MomentPool) -> list[Pool]:
        """Sum up the populations of means, in the column's unit, and of log standard deviations."""
        unit = UNIT * pool.half_range
        (mean, mean_sd), (spread, spread_sd) = pool.sides[0].location, pool.sides[0].spread
        level, level_sd = pool.sides[1].location
        known = (
            (MEANS, (pool.centre + unit * mean, unit * mean_sd), (unit * spread, unit * spread_sd)),
            (
                "log standard deviations",
                (level + float(np.log(pool.half_range)), level_sd),
                pool.sides[1].spread,
            ),
        )
        return [
            cls(
                keys=keys,
                n_cells=pool.n_cells,
                location=location,
                spread=spread_of,
                slope=NO_SLOPE,
                typical_size=None,
                identified=side.tells_spread <= UNIDENTIFIED,
                settled=pool.settled,
                parameter=parameter,
            )
            for (parameter, location, spread_of), side in zip(known, pool.sides, strict=True)
        ]

    @classmethod
    def of_categories(
        cls, keys: dict[str, str | int], pool: CategoryPool, categories: Sequence[str]
    ) -> list[Pool]:
        """Sum up a Dirichlet population by the Beta law that it is of each category: on its logit."""
        from scipy.special import polygamma

        whole = np.sum(pool.alpha, axis=1, keepdims=True)
        location, location_sd = pool.moments_of(np.log(pool.alpha) - np.log(whole - pool.alpha))
        spread, spread_sd = pool.moments_of(
            np.sqrt(polygamma(1, pool.alpha) + polygamma(1, whole - pool.alpha))
        )
        return [
            cls(
                keys=keys,
                n_cells=pool.n_cells,
                location=(float(location[place]), float(location_sd[place])),
                spread=(float(spread[place]), float(spread_sd[place])),
                slope=NO_SLOPE,
                typical_size=None,
                identified=pool.tells_spread <= UNIDENTIFIED,
                settled=pool.settled,
                category=category,
            )
            for place, category in enumerate(categories)
        ]


def _beside_size(hyper: Hyperparameters, coefficients: Sequence[Coefficient]) -> tuple[str, float] | None:
    """Return the covariate that a slope is not told apart from, and how well coefficients foretell it."""
    if not isinstance(hyper, Regression):
        return None
    share, place = hyper.beside_slope
    return (coefficients[place].name, share) if share >= COLLINEAR else None
