r"""How much one record can change a likelihood: the constants of robustness and of draws of a posterior.

Model. Of two records x and y the likelihoods differ by

.. math:: \Delta(\theta) = \log p(x \mid \theta) - \log p(y \mid \theta). \qquad (1)

What of it does not depend on the parameter cancels from every posterior. So, over a declared set of
parameters,

.. math::
    2 C = \sup_{x, y} \bigl(\sup_\theta \Delta - \inf_\theta \Delta\bigr), \qquad
    2 L = \sup_{x \ne y} \bigl(\sup_\theta \Delta - \inf_\theta \Delta\bigr) / \rho(x, y), \qquad (2)

with a distance rho of records, within their declared bounds. Let :math:`\xi(\cdot \mid x)` be the posterior
given data with the record x, of any prior on the set. Its density over that given y is
:math:`e^{\Delta(\theta)} / E(e^\Delta \mid y)`, and the mean below lies between the extremes of what is
above, so that

.. math:: e^{-2 L \rho(x, y)} \le \xi(B \mid x) / \xi(B \mid y) \le e^{2 L \rho(x, y)}. \qquad (3)

That is Theorem 2(i) of Dimitrakakis et al.; with it their Theorem 1(i), :math:`D(\xi(\cdot \mid x) \,\|\,
\xi(\cdot \mid y)) \le 2 L \rho`. A draw of the posterior costs 2 C (Foulds et al., Theorem 2). A prior of two
points, where Delta is highest and lowest, with nearly all of its mass on one of them, comes as close to (3)
as one likes: no smaller L or C has it for all priors. The papers ask for a bound on :math:`|\Delta|` itself,
so that their L and C are these where the set is symmetric, and larger elsewhere: with factors of x alone, as
of a gamma density at 0, they may be infinite. Drawn at the temperature

.. math:: T = 2 C / \epsilon, \qquad (4)

the posterior costs epsilon (Foulds et al., (14)).

With one sum :math:`\Delta = \eta(\theta) (T(x) - T(y))` plus what does not depend on theta, so that for
:math:`\rho = |T(x) - T(y)|` and T in l..u

.. math:: 2 L = \max \eta - \min \eta, \qquad C = L (u - l). \qquad (5)

A table of probabilities within a..b has in each row of K entries the least and the largest entry

.. math:: m = \max(a, 1 - (K - 1) b), \quad M = \min(b, 1 - (K - 1) a), \qquad (6)

and :math:`\Delta` is a sum over tables of :math:`\log \theta_i / \theta_j`, each between
:math:`\mp \log M / m`. For rho the number of tables in which x and y are counted at different entries, L is
at most the largest of these numbers; C is their sum, if any two entries may be those of x and y.

A normal column with mean in a..b and variance in v..w has, with s = (x + y) / 2,

.. math:: \Delta = (x - y) (\mu - s) / \sigma^2, \qquad (7)

of which the extremes over the set are at its corners: their difference over x - y is convex in s.

Of rows of columns whose means lie within the bounds, and whose covariance has eigenvalues in v..w, Delta is
:math:`d^T P z` with d = x - y, :math:`z = \mu - (x + y) / 2` and eigenvalues of P in 1/w..1/v. That is at
most :math:`(1/v + 1/w) \, d^T z / 2 + (1/v - 1/w) |d| |z| / 2`, and with delta the diagonal of the bounds,
which neither |z| nor the distance of two means exceeds,

.. math:: 2 L \le \delta (3/v - 1/w) / 2. \qquad (8)

:math:`-\Delta` and :math:`\Delta` are at most a squared length over 2 v, and with opposite corners as x
and y, and each as the mean in its turn, they are,

.. math:: C = \delta^2 / 2 v. \qquad (9)

Of an outcome y whose residuals :math:`r = y - b \cdot x` are at most R on the set, with variance from v on,
a record's log likelihood is :math:`-r^2 / 2 \sigma^2`, and its slope in a column at most R max(1, |b|) / v:

.. math:: L \le R \max(1, |b|) / v, \qquad C \le R^2 / 2 v. \qquad (10)

Symbols:

- L, C: ``lipschitz``, ``difference``; rho: ``distance``, in words
- T(x): what a one-sum family adds up of a record; eta: the natural parameter, monotone in theta

References
----------
Dimitrakakis, Nelson, Mitrokotsa, Rubinstein. Robust and private Bayesian inference. ALT 2014 (Assumption 1,
Theorems 1(i), 2(i)). Foulds, Geumlek, Welling, Chaudhuri. On the theory and practice of privacy-preserving
Bayesian data analysis. UAI 2016 (Theorem 2, (14)).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.pipeline.families.shared.parameter_space import Natural
    from suffice.pipeline.terms.statistics.sensitivity import Constants

Intervals: TypeAlias = "Mapping[str, tuple[float, float]]"
"""Lowest and highest value of every parameter, by name."""


def is_number(value: object) -> bool:
    """Return whether a caller gave a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothness:
    r"""How much one record can change a likelihood over a set of parameters.

    Posteriors given data that differ in one record, of any prior on the set, differ by a factor of at most
    :math:`e^{2 L \rho}` at every parameter, with :math:`\rho` the distance of these records, and never by
    more than :math:`e^{2 C}` [dimitrakakis2014robust]. They are posteriors given exact data, which no release
    of `suffice` has; noise adds to what one record can change nothing but its own uncertainty.

    Attributes
    ----------
    lipschitz : float
        L, 0 or more, in nats a unit of distance; infinite where there is none.
    difference : float
        C, in nats.
    distance : str
        What distances are of.
    is_least : bool
        Whether no smaller L and C hold for all priors on the set; else they are upper bounds.
    concentration : float or None
        c: the posterior's prior leaves a share of at most :math:`e^{-c \ell}` to parameters at which L would
        have to be above :math:`\ell`, for every :math:`\ell`. None where it is not worked out. Nothing that
        rests on it is a guarantee: what the paper concludes from it is false
        (`docs/papers.md`).
    reason : str
        Why c is 0 or not worked out; empty where it is above 0.
    """

    lipschitz: float
    difference: float
    distance: str
    is_least: bool = True
    concentration: float | None = None
    reason: str = ""

    @property
    def draw_epsilon(self) -> float:
        """What one draw of a posterior given exact records would cost, 2 C [foulds2016theory]."""
        return 2.0 * self.difference

    def temperature(self, epsilon: float) -> float:
        """Return T = 2 C / epsilon, at which such a draw costs epsilon; 1 where it costs less as it is.

        Parameters
        ----------
        epsilon : float
            Above 0.

        Raises
        ------
        UsageError
            Where it is not.
        """
        if not is_number(epsilon) or not 0.0 < epsilon < math.inf:
            message = "temperature: epsilon is a number above 0"
            raise UsageError(message)
        return max(1.0, self.draw_epsilon / epsilon)

    def log_ratio(self, distance: float = math.inf) -> float:
        r"""Return the most by which log posterior densities differ, :math:`\min(2 L \rho, 2 C)`.

        It bounds the Kullback-Leibler divergence of both posteriors as well.

        Parameters
        ----------
        distance : float
            Of the two records, 0 or more; any two where it is left out.

        Raises
        ------
        UsageError
            Where it is none.
        """
        if not is_number(distance) or not distance >= 0.0:
            message = "log_ratio: distance is a number, 0 or more"
            raise UsageError(message)
        return min(2.0 * self.lipschitz * distance if distance else 0.0, self.draw_epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Smooth:
    """What a family says of its likelihood's smoothness.

    Parameters
    ----------
    over : callable
        The constants, an interval of every parameter of `names` -> the constants of robustness.
    names : callable
        The constants -> the parameters that they depend on.
    reason_against : callable
        The constants -> why there are none; empty where there are.
    """

    over: Callable[[Constants, Intervals], Smoothness]
    names: Callable[[Constants], tuple[str, ...]]
    reason_against: Callable[[Constants], str] = lambda _parameters: ""


def natural_parameter(natural: Natural, value: float, parameters: Constants) -> float:
    """Return eta of a parameter's value; infinite at ends of its range where it is so."""
    if math.isinf(value):
        # Of what has no upper end eta is monotone: far out it is at its limit, or beyond numbers.
        far = natural_parameter(natural, math.copysign(1e300, value), parameters)
        return 0.0 if abs(far) < 1e-200 else math.copysign(math.inf, far)
    log: Any = lambda number: math.log(number) if number > 0 else -math.inf  # noqa: E731
    try:
        return float(natural(Fraction(value), log, parameters)[0])
    except ZeroDivisionError:
        return -math.inf  # of a scale of 0


def of_one_sum(name: str, natural: Natural, range_of_t: Callable[[Constants], float]) -> Smooth:
    """Return (5), of a family whose records enter by one number T."""

    def over(parameters: Constants, intervals: Intervals) -> Smoothness:
        etas = [natural_parameter(natural, end, parameters) for end in intervals[name]]
        # Both ends at the same infinity are no interval.
        lipschitz = math.inf if any(map(math.isinf, etas)) else abs(etas[1] - etas[0]) / 2.0
        return Smoothness(
            lipschitz=lipschitz,
            difference=lipschitz * range_of_t(parameters),
            distance="what a record adds to the total",
        )

    return Smooth(over=over, names=lambda _parameters: (name,))


def log_ratio(categories: int, low: float, high: float) -> float:
    """Return log(M / m) of (6)."""
    least = max(low, 1.0 - (categories - 1) * high)
    largest = min(high, 1.0 - (categories - 1) * low)
    return math.log(largest / least) if least > 0.0 else math.inf


def of_tables(sizes: Callable[[Constants], Sequence[int]], *, distance: str = "tables that differ") -> Smooth:
    """Return the constants of tables of probabilities; `sizes` gives the entries in a row of each."""

    def over(parameters: Constants, intervals: Intervals) -> Smoothness:
        ratios = [log_ratio(size, *intervals["probability"]) for size in sizes(parameters)]
        return Smoothness(
            lipschitz=max(ratios),
            difference=sum(ratios),
            distance=distance,
            is_least=len(ratios) == 1,
        )

    return Smooth(over=over, names=lambda _parameters: ("probability",))


def of_mean_and_variance(mean: str, variance: str, distance: str) -> Smooth:
    """Return the constants of (7), of a column, or of its logarithm, within bounds."""

    def over(parameters: Constants, intervals: Intervals) -> Smoothness:
        lower, upper = float(parameters.lower or 0), float(parameters.upper or 0)
        means, variances = intervals[mean], intervals[variance]
        if variances[0] == 0.0 or not all(map(math.isfinite, means)):
            return Smoothness(lipschitz=math.inf, difference=math.inf, distance=distance)
        return Smoothness(
            lipschitz=max(spread_of_scores(end, means, variances) for end in (lower, upper)) / 2.0,
            difference=_difference_of_normal(lower, upper, means, variances),
            distance=distance,
        )

    return Smooth(over=over, names=lambda _parameters: (mean, variance))


def spread_of_scores(s: float, means: tuple[float, float], variances: tuple[float, float]) -> float:
    """Return the largest less the least (mu - s) / sigma^2 of (7)."""
    scores = [(mean - s) / variance for mean in means for variance in variances]
    return max(scores) - min(scores)


def _difference_of_normal(
    lower: float, upper: float, means: tuple[float, float], variances: tuple[float, float]
) -> float:
    """Return C: the largest x - y with the middle s, times what `spread_of_scores` has there, over 2."""
    middle = (lower + upper) / 2.0

    def twice(s: float) -> float:
        return 2.0 * min(upper - s, s - lower) * spread_of_scores(s, means, variances)

    # Between these both factors are linear, and their product is a parabola.
    ends = sorted({lower, middle, upper, *(float(np.clip(mean, lower, upper)) for mean in means)})
    candidates = [*ends]
    for left, right in itertools.pairwise(ends):
        first, half, last = twice(left), twice((left + right) / 2.0), twice(right)
        bend = 2.0 * (first - 2.0 * half + last)
        if bend < 0.0:
            share = (first - last - bend) / (-2.0 * bend)
            candidates.append(left + float(np.clip(share, 0.0, 1.0)) * (right - left))
    return max(map(twice, candidates)) / 2.0


def of_columns(parameters: Constants, intervals: Intervals) -> Smoothness:
    """Return the constants of (8) and (9), of columns whose covariance has eigenvalues in an interval."""
    diagonal = math.hypot(*(float(column.upper - column.lower) for column in parameters.columns))
    least, largest = intervals["covariance"]
    steep = _inverse(least)
    return Smoothness(
        lipschitz=diagonal * (3.0 * steep - _inverse(largest)) / 4.0,
        difference=steep * diagonal**2 / 2.0,
        distance="a row, in Euclidean distance",
        is_least=False,
    )


def of_residuals(parameters: Constants, intervals: Intervals) -> Smoothness:
    """Return the constants of (10), of an outcome, the last column, given its predictors."""
    *predictors, outcome = parameters.columns
    ends = intervals["coefficient"]
    low, high = intervals.get("intercept", (0.0, 0.0))
    for column in predictors:
        products = [end * float(bound) for end in ends for bound in (column.lower, column.upper)]
        low, high = low + min(products), high + max(products)
    farthest = max(float(outcome.upper) - low, high - float(outcome.lower))
    steep = _inverse(intervals["variance"][0])
    return Smoothness(
        lipschitz=farthest * steep * max(1.0, *map(abs, ends)),
        difference=farthest**2 * steep / 2.0,
        distance="a row, its columns' distances added up",
        is_least=False,
    )


def _inverse(value: float) -> float:
    return 1.0 / value if value > 0.0 else math.inf
