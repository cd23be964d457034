"""A log likelihood on the grid as polynomials on rectangles, which any number of nodes can be taken from.

Log likelihoods are far smoother than posteriors: a few rectangles are enough, and the many nodes that
priors of any form need cost next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.mean_variance.panels import (
    coefficients,
    halves,
    node_weights,
    polynomials,
    positions,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.mean_variance.panels import LogDensity
    from suffice.typing import Floats


SMOOTH, ROUGH = 1e-4, 1e-2
"""Bounds of the last coefficients of log densities, times the share of mass of a rectangle."""
_MOST_ROUNDS = 20
_MOST_RECTANGLES = 1500
_EDGE = 0.3
"""By how much of the last step between nodes a density may rise up to the edge."""
_LARGEST, _LEAST = 700.0, -1e12
_NATS, _DEEP = 60.0, 1000.0
"""Nats below the highest product that may matter; and below all of those that do not, in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Polynomials on rectangles that do not overlap.

    Attributes
    ----------
    left, right : ndarray of shape (n, 2), float64
        Lower and upper corners.
    coefficients : ndarray of shape (n, POINTS, POINTS), float64
        Of the products of Legendre polynomials along both sides.
    highest : ndarray of shape (n,), float64
        What the values do not exceed.
    """

    left: Floats
    right: Floats
    coefficients: Floats
    highest: Floats

    @classmethod
    def of(
        cls,
        log_likelihood: LogDensity,
        log_prior: LogDensity,
        left: Floats,
        right: Floats,
        tolerance: float = SMOOTH,
    ) -> Self:
        """Cut rectangles until the log likelihood is a polynomial wherever both together matter."""
        nodes = positions(left, right)
        value, prior = np.maximum(log_likelihood(*nodes), _LEAST), log_prior(*nodes)
        # Where nothing is, the depth of it does not matter, but polynomials of it would overshoot.
        product = value + prior
        least = float(np.min(value[product >= np.max(product) - _NATS])) - _DEEP
        value = np.maximum(value, least)
        for _ in range(_MOST_ROUNDS):
            rough = _roughness(value) * _importance(left, right, value, prior)[:, None]
            cut = np.any(rough > tolerance, axis=1)
            if not np.any(cut) or len(left) > _MOST_RECTANGLES:
                break
            lower, upper = halves(left[cut], right[cut], np.argmax(rough[cut], axis=1))
            nodes = positions(lower, upper)
            left, right = np.concatenate([left[~cut], lower]), np.concatenate([right[~cut], upper])
            value = np.concatenate([value[~cut], np.maximum(log_likelihood(*nodes), least)])
            prior = np.concatenate([prior[~cut], log_prior(*nodes)])
        return cls(
            left=left,
            right=right,
            coefficients=coefficients(value),
            highest=np.max(value, axis=(1, 2)) + _rise(value),
        )

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """Values at positions (n, p) and (n, q), of which each n lie in one rectangle: (n, p, q)."""
        middle = np.stack([np.mean(first, axis=1), np.mean(second, axis=1)], axis=1)
        inside = np.ones((len(middle), len(self.left)), dtype=np.bool_)
        for side in (0, 1):
            inside &= middle[:, side, None] >= self.left[:, side]
            inside &= middle[:, side, None] <= self.right[:, side]
        own = np.argmax(inside, axis=1)
        low, high = self.left[own], self.right[own]
        along_first, along_second = (
            polynomials((position - low[:, side, None]) / (high - low)[:, side, None])
            for side, position in enumerate((first, second))
        )
        value = along_first @ self.coefficients[own] @ along_second.transpose(0, 2, 1)
        bounded: Floats = np.minimum(value, self.highest[own, None, None])
        return bounded


def _roughness(value: Floats) -> Floats:
    """The size of the last coefficients along either side: (n, 2)."""
    found = np.abs(coefficients(value))
    return np.stack([np.max(found[:, -2:, :], axis=(1, 2)), np.max(found[:, :, -2:], axis=(1, 2))], axis=1)


def _rise(value: Floats) -> Floats:
    """How far a value may lie above those of all nodes, at the edges: (n,)."""
    along = np.abs(value[:, [0, -1], :] - value[:, [1, -2], :])
    across = np.abs(value[:, :, [0, -1]] - value[:, :, [1, -2]])
    return np.asarray(_EDGE * (np.max(along, axis=(1, 2)) + np.max(across, axis=(1, 2))), dtype=np.float64)


def _importance(left: Floats, right: Floats, value: Floats, prior: Floats) -> Floats:
    """About the largest share of all mass that a rectangle may have: (n,)."""
    area = np.sum(np.log(right - left), axis=1)
    with np.errstate(invalid="ignore"):
        product = value + prior + area[:, None, None]
    product = np.where(np.isnan(product), -np.inf, product)
    top = float(np.max(product))
    total = top + float(np.log(np.sum(node_weights() * np.exp(product - top))))
    highest = np.max(product, axis=(1, 2)) + np.minimum(_rise(value), _LARGEST)
    importance: Floats = np.exp(np.minimum(highest - total, 0.0))
    return importance
