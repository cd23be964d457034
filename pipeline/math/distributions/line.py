"""How a parameter is mapped to the real line: logarithm, logit or identity."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

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
