r"""Laws of the leaves' counts, given hyperparameters.

A count is Poisson behind a gamma rate of mean m and shape a, which is negative binomial:

.. math::
    \mathrm{NB}(n; m, a) = \frac{\Gamma(n + a)}{\Gamma(a) \, n!}
    \Bigl(\frac{a}{a + m}\Bigr)^a \Bigl(\frac{m}{a + m}\Bigr)^n. \qquad (1)

The tail of (1) falls by a fixed factor a count, and draws a leaf that is far larger than the others to them.
A share of outliers has a tail that does not:

.. math:: \mathrm{W}(n; m) = \frac{m}{(n + m)(n + m + 1)}, \qquad P(N \ge n) = \frac{m}{n + m}, \qquad (2)

a log-logistic law of median m, rounded down. By name there is this law with a share e of leaves that are
empty whatever their rate, which is even on (0, 1) beforehand,

.. math:: \pi(n) = e \, 1(n = 0) + (1 - e) (.95 \, \mathrm{NB}(n; m, a) + .05 \, \mathrm{W}(n; m)), \qquad (3)

which a negative binomial law cannot say where other leaves are large. By name there is also 1 / (n + 1),
which has no hyperparameters, and is no probability: evidence is then known but for a constant.

The coefficient of variation of the rates is :math:`s = a^{-1/2}`. Public hyperpriors: log m is logistic about
log 30 with scale 3, so that half of it is within a factor of 27; s is half-normal with standard deviation 2.
Known sizes multiply m.

Symbols:

- n: a count; m, s: ``mean``, ``spread``, of (1)
- x: the point (log m, log s), and the logit of e in (3)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import gammaln

from suffice.errors import PriorError

if TYPE_CHECKING:
    from suffice.typing import Floats

OUTLIERS = 0.05
"""The share of leaves that are drawn from the law with the heavy tail, as in pools of cells."""
_MIDDLE, _SCALE = math.log(30.0), 3.0
_SPREAD = 2.0
_LEAST_SPREAD = 1e-3
"""Below it a negative binomial law is Poisson in all digits of what it is used for."""


class Population(ABC):
    """A law of counts of leaves.

    Attributes
    ----------
    name : str
        As a caller asks for it.
    n_hyperparameters : int
        0, 2 or 3.
    """

    name: ClassVar[str]
    n_hyperparameters: ClassVar[int]

    @abstractmethod
    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:
        """Return log weights of counts, >= 0, at a point of the hyperparameters; sizes broadcast."""

    def log_hyperprior(self, point: Floats) -> float:
        """Return the log density of the point (log m, log s)."""
        log_mean, log_spread = float(point[0]), float(point[1])
        z = abs(log_mean - _MIDDLE) / _SCALE
        logistic = -z - 2.0 * math.log1p(math.exp(-z)) - math.log(_SCALE)
        if log_spread > 100.0:
            return -math.inf
        spread = math.exp(log_spread)
        half_normal = 0.5 * math.log(2.0 / math.pi) - math.log(_SPREAD) - 0.5 * (spread / _SPREAD) ** 2
        return logistic + half_normal + log_spread


class NegativeBinomial(Population):
    """Counts behind gamma rates, (1)."""

    name = "negative-binomial"
    n_hyperparameters = 2

    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:
        """Return log probabilities."""
        mean = math.exp(point[0]) * sizes
        a = max(math.exp(point[1]), _LEAST_SPREAD) ** -2.0
        # (1); logs of ratios by log1p, since a may be far above m, or far below.
        weight: Floats = (
            gammaln(counts + a)
            - gammaln(a)
            - gammaln(counts + 1.0)
            - a * np.log1p(mean / a)
            - counts * np.log1p(a / mean)
        )
        return weight


class Contaminated(NegativeBinomial):
    """A share of outliers, (2), among counts behind gamma rates."""

    name = "contaminated"

    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:
        """Return log probabilities."""
        mean = math.exp(point[0]) * sizes
        outlying = np.log(mean) - np.log(counts + mean) - np.log(counts + mean + 1.0)
        usual = super().log_weight(counts, point, sizes)
        weight: Floats = np.logaddexp(math.log1p(-OUTLIERS) + usual, math.log(OUTLIERS) + outlying)
        return weight


class ZeroInflated(Contaminated):
    """Leaves that are empty whatever their rate, among the others, (3)."""

    name = "zero-inflated"
    n_hyperparameters = 3

    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:
        """Return log probabilities."""
        log_empty, log_other = -np.logaddexp(0.0, -point[2]), -np.logaddexp(0.0, point[2])
        others = log_other + super().log_weight(counts, point, sizes)
        weight: Floats = np.where(counts == 0.0, np.logaddexp(log_empty, others), others)
        return weight

    def log_hyperprior(self, point: Floats) -> float:
        """Return the log density of the point: e is even, and its logit logistic."""
        even = -np.logaddexp(0.0, -point[2]) - np.logaddexp(0.0, point[2])
        return super().log_hyperprior(point) + float(even)


class Reciprocal(Population):
    """Weights 1 / (n + 1)."""

    name = "reciprocal"
    n_hyperparameters = 0

    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:  # noqa: ARG002
        """Return log weights."""
        weight: Floats = -np.log1p(counts)
        return weight


POPULATIONS: dict[str, Population] = {
    population.name: population
    for population in (Contaminated(), ZeroInflated(), NegativeBinomial(), Reciprocal())
}
DEFAULT, ZERO_INFLATED, RECIPROCAL = Contaminated.name, ZeroInflated.name, Reciprocal.name


def named_population(name: str) -> Population:
    """Return the population of a name.

    Raises
    ------
    PriorError
        Where there is none of the name.
    """
    if name == "flat":
        message = (
            "a flat prior on leaves puts nearly all weight on large sums, and is not offered: "
            f"take one of {', '.join(POPULATIONS)}"
        )
        raise PriorError(message)
    if name not in POPULATIONS:
        message = f"there is no population of leaves {name!r}: take one of {', '.join(POPULATIONS)}"
        raise PriorError(message)
    return POPULATIONS[name]
