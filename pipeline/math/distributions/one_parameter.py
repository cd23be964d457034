"""Conjugate distributions of one parameter, with a coordinate on the real line where they are nearly normal.

The distribution functions of narrow gammas and betas are those of Peizer and Pratt, whose error is below
2e-4 where all concentrations are at least ``LARGE``; of wide ones they are exact.

The coordinate is the parameter's logarithm, its logit, or itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from suffice.pipeline.math.distributions.distribution import OfCells

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats

_FARTHEST = 200.0


_NEAREST_ONE = 36.0
"""The logit beyond which a probability is rounded to 1."""


_LARGEST_MEAN = 1e75


class Line(StrEnum):
    """How a parameter is mapped to the real line."""

    LOGARITHM = "logarithm"
    LOGIT = "logit"
    IDENTITY = "identity"

    @property
    def domain(self) -> tuple[float, float]:
        """Where the parameter lies."""
        ends = {Line.LOGARITHM: (0.0, math.inf), Line.LOGIT: (0.0, 1.0)}
        return ends.get(self, (-math.inf, math.inf))

    @property
    def ends(self) -> tuple[float, float]:
        """Positions beyond which the parameter's numbers would overflow or be rounded to an end."""
        ends = {Line.LOGARITHM: (-_FARTHEST, _FARTHEST), Line.LOGIT: (-_FARTHEST, _NEAREST_ONE)}
        return ends.get(self, (-_LARGEST_MEAN, _LARGEST_MEAN))

    def position(self, parameter: Floats) -> Floats:
        """Positions of parameters; infinite at the ends of the domain."""
        with np.errstate(divide="ignore"):
            if self is Line.LOGARITHM:
                return np.log(parameter)
            if self is Line.LOGIT:
                return np.log(parameter) - np.log1p(-parameter)
        return parameter

    def parameter(self, position: Floats) -> Floats:
        """Parameters at positions."""
        if self is Line.LOGARITHM:
            return np.exp(position)
        with np.errstate(over="ignore"):
            return 1.0 / (1.0 + np.exp(-position)) if self is Line.LOGIT else position

    def density(self, parameter: Floats, log_density: Callable[[Floats], Floats]) -> Floats:
        """Densities of parameters, from log densities at positions; 0 outside of the domain.

        At an end of the domain the density is that next to it: a large number where it is infinite.
        """
        low, high = self.domain
        position = np.clip(self.position(np.clip(parameter, low, high)), *self.ends)
        with np.errstate(over="ignore"):
            density = np.exp(log_density(position) - self.log_slope(position))
        return np.where((parameter < low) | (parameter > high), 0.0, density)

    def log_slope(self, position: Floats) -> Floats:
        """Log of the derivative of the parameter."""
        if self is Line.LOGARITHM:
            return position
        if self is Line.LOGIT:
            return -np.abs(position) - 2.0 * np.log1p(np.exp(-np.abs(position)))
        return np.zeros_like(position)


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


LARGE = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """Distributions in their coordinate.

    Attributes
    ----------
    centre, width : ndarray of shape (n,), float64
        About the mean and the standard deviation of every distribution.
    cdf : callable
        A position for every distribution, (n,) -> probabilities below.
    log_density : callable
        Positions that broadcast with (n,) -> log densities at these positions.
    line : Line
        How values of the parameter become positions.
    """

    centre: Floats
    width: Floats
    cdf: Callable[[Floats], Floats]
    log_density: Callable[[Floats], Floats]
    line: Line


class OneParameter(OfCells, ABC):
    """A conjugate distribution of the parameter ``name``.

    Updates add to the two fields that ``_natural`` names, where a class does not say otherwise.
    """

    __slots__ = ()
    name: str
    _natural: ClassVar[tuple[str, str]]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    def natural(self) -> Floats:
        """Return the natural parameters, (n_cells, 2)."""
        return np.stack([getattr(self, name) for name in self._natural], axis=-1)

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution of the same name with these natural parameters."""
        return replace(self, **{name: eta[..., column] for column, name in enumerate(self._natural)})

    @abstractmethod
    def coordinate(self) -> Coordinate:
        """Return the logarithm of rates and scales, the logit of probabilities, and means as they are."""

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points)."""
        coordinate = self.coordinate()
        return coordinate.line.density(points, lambda position: coordinate.log_density(position.T).T)

    def widened(self, variance: Floats) -> Self:
        """Weaken distributions so that their variances on the line rise by this much (n,)."""
        kept = 1.0 / (1.0 + variance / self.coordinate().width ** 2)
        return replace(self, **{name: kept * getattr(self, name) for name in self._natural})


def coordinate_of(distribution: Distribution) -> Coordinate:
    """Return the coordinate of a distribution that is known to have one parameter."""
    return _one(distribution).coordinate()


def widened(distribution: Distribution, variance: Floats) -> OneParameter:
    """Weaken distributions that are known to have one parameter; see ``OneParameter.widened``."""
    return _one(distribution).widened(variance)


def _one(distribution: Distribution) -> OneParameter:
    if not isinstance(distribution, OneParameter):
        raise TypeError(type(distribution).__name__)
    return distribution


def times_exp(factor: Floats, position: Floats) -> Floats:
    """Return a factor times exp(position); infinite beyond the largest number, which is as it should be."""
    with np.errstate(over="ignore"):
        return factor * np.exp(position)


def log_height(concentration: Floats) -> Floats:
    """Return a log a - a - log gamma(a)."""
    from scipy.special import gammaln

    a = np.maximum(concentration, 1e-300)
    large = np.maximum(a, 100.0)
    series = 0.5 * np.log(large / (2.0 * np.pi)) - 1.0 / (12.0 * large) + 1.0 / (360.0 * large**3)
    small = np.minimum(a, 100.0)
    exact = small * np.log(small) - small - gammaln(small)
    return np.where(a < 100.0, exact, series)


def excess(x: Floats) -> Floats:
    """Return x - log(1 + x)."""
    near = np.clip(x, -1e-4, 1e-4)
    with np.errstate(divide="ignore"):
        return np.where(near == x, near * near * (0.5 - near / 3.0), x - np.log1p(np.maximum(x, -1.0)))


def root_over(deviance: Floats, gap: Floats, scale: Floats) -> Floats:
    """Root of a deviance over the gap that it is of, and its limit where the gap vanishes."""
    near = np.abs(gap) < 1e-9 * scale
    return np.where(near, 1.0 / scale, np.sqrt(deviance) / np.where(near, 1.0, np.abs(gap)))
