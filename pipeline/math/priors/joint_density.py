"""Any public prior of a normal's mean and variance: two priors, or one log density of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.priors.density import Density, called, ends_of, prior_error_of_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.density import ScipyDistribution
    from suffice.typing import Floats


_OF_VARIANCE = ("variance", "sd")


@dataclass(frozen=True, slots=True, init=False)
class Independent:
    """Independent priors of a normal's mean and of its variance, or of its standard deviation.

    ``Independent(mean=scipy.stats.norm(0, 10), sd=scipy.stats.halfnorm(scale=5))``

    Parameters
    ----------
    mean : frozen distribution of scipy.stats, Density, Prior or str
        Of the mean, in the column's unit; of a lognormal column, of the mean of its logarithm.
    variance, sd : the same
        One of the two: the prior of the variance, or that of its root. They are different parameters:
        ``variance=scipy.stats.halfnorm()`` is another prior than ``sd=scipy.stats.halfnorm()``.

    Raises
    ------
    PriorError
        Where not exactly one of ``variance`` and ``sd`` is given, or a part is no prior of one number.
    """

    mean: Density
    spread: Density
    of: str

    def __init__(
        self,
        *,
        mean: Density | ScipyDistribution | Prior | str | None = None,
        variance: Density | ScipyDistribution | Prior | str | None = None,
        sd: Density | ScipyDistribution | Prior | str | None = None,
    ) -> None:
        from suffice.pipeline.math.priors.by_name import one_number  # it parses with this

        example = "Independent(mean=Normal(0, 10), sd=HalfNormal(5))"
        if mean is None:
            message = f"Independent lacks the prior of the mean: write it as {example}"
            raise PriorError(message)
        of, spread = _one_of("Independent", variance, sd, example)
        object.__setattr__(self, "mean", one_number(mean))
        object.__setattr__(self, "spread", one_number(spread))
        object.__setattr__(self, "of", of)

    def __str__(self) -> str:
        return f"Independent(mean={self.mean}, {self.of}={self.spread})"


@dataclass(frozen=True, slots=True, init=False)
class JointDensity:
    """Any prior of a normal's mean and variance, or standard deviation, by its log density.

    ``JointDensity(lambda mean, sd: -abs(mean) / sd - sd, mean=(-math.inf, math.inf), sd=(0, math.inf))``

    Parameters
    ----------
    log_density : callable
        Means and variances (or standard deviations), two arrays (n,) of numbers inside of the support ->
        log densities (n,) of both together, but for a constant; ``-inf`` where there is none.
    mean : (float, float)
        Ends of the mean's support, in the column's unit; infinite where it has none.
    variance, sd : (float, float)
        One of the two: what the density's second argument is, and the ends of its support.

    Raises
    ------
    PriorError
        Where not exactly one of ``variance`` and ``sd`` is given, or a support is no interval.
    """

    log_density: Callable[[Floats, Floats], Any] = field(repr=False)
    mean: tuple[float, float]
    spread: tuple[float, float]
    of: str

    def __init__(
        self,
        log_density: Callable[[Floats, Floats], Any],
        *,
        mean: tuple[float, float] | None = None,
        variance: tuple[float, float] | None = None,
        sd: tuple[float, float] | None = None,
    ) -> None:
        if not callable(log_density):
            message = f"JointDensity: log_density must be a function of two arrays, not {log_density!r}"
            raise PriorError(message)
        example = "JointDensity(log_density, mean=(-math.inf, math.inf), sd=(0, math.inf))"
        if mean is None:
            message = f"JointDensity lacks the support of the mean: write it as {example}"
            raise PriorError(message)
        of, spread = _one_of("JointDensity", variance, sd, example)
        object.__setattr__(self, "log_density", log_density)
        object.__setattr__(self, "mean", ends_of("JointDensity", "mean", mean))
        object.__setattr__(self, "spread", ends_of("JointDensity", of, spread))
        object.__setattr__(self, "of", of)
        if self.spread[0] < 0.0:
            message = f"JointDensity: {of} lies in 0..inf, and its support must too, not {self.spread!r}"
            raise PriorError(message)

    def __str__(self) -> str:
        mean, spread = ("..".join(f"{end:g}" for end in ends) for ends in (self.mean, self.spread))
        return f"JointDensity on mean {mean}, {self.of} {spread}"

    def __call__(self, mean: Floats, spread: Floats) -> Floats:
        """Log densities, checked: numbers or minus infinity, one for every pair.

        Raises
        ------
        PriorError
            Where they are anything else.
        """
        way_out = "it takes two arrays (n,) of numbers inside of its support and returns n log densities"
        value = called(self, self.log_density, (mean.ravel(), spread.ravel()), way_out)
        if value.shape != (mean.size,):
            message = (
                f"prior {self}: its log density of {mean.size} pairs has the shape {value.shape}: {way_out}"
            )
            raise PriorError(message)
        if np.any(np.isnan(value) | (value == np.inf)):
            raise prior_error_of_values(self)
        return value.reshape(mean.shape)


def _one_of(kind: str, variance: Any, sd: Any, example: str) -> tuple[str, Any]:
    """What the second prior is of, and that prior."""
    given = [(of, value) for of, value in zip(_OF_VARIANCE, (variance, sd), strict=True) if value is not None]
    if not given:
        message = f"{kind} lacks variance= or sd=, what the spread is: write it as {example}"
        raise PriorError(message)
    if len(given) > 1:
        message = f"{kind} takes variance= or sd=, not both: write it as {example}"
        raise PriorError(message)
    return given[0]
