"""A public prior of one parameter on the points of a grid, normalised there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.prior import Prior
from suffice.pipeline.math.priors.by_name import one_number
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.mixtures import Mixture, parse_mixture

if TYPE_CHECKING:
    from suffice.typing import Floats

_LEAST = -700.0
"""Logarithm of the least share of all points together that one point may have: less is 0 in float64."""


def canonical_prior(text: str) -> str:
    """Return the text of a prior of one number as releases state it: the same for every way to write it.

    Raises
    ------
    PriorError
        Where it is no prior of one number.
    """
    prior = parse_mixture(text)
    _densities(prior)
    return str(prior)


def log_prior_on_points(text: str, points: Floats) -> Floats:
    """Return the logarithms of a prior's shares of some points, which add up to 1.

    Parameters
    ----------
    text : str
        A conjugate prior, a mixture of such, or a density by its name.
    points : ndarray of shape (n,), float64
        In the parameter's unit, ascending.

    Returns
    -------
    ndarray of shape (n,), float64

    Raises
    ------
    PriorError
        Where it is no prior of one number, or its density at a point is 0 in float64, or infinite.
    """
    weights, densities = _densities(parse_mixture(text))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        parts = [
            np.log(weight) + _log_density(each, points)
            for weight, each in zip(weights, densities, strict=True)
        ]
        log_density = np.logaddexp.reduce(np.array(parts), axis=0)
    infinite = ~(log_density < np.inf)
    if infinite.any():
        message = f"prior {text}: its density is infinite at the grid's point {points[infinite][0]:.6g}"
        raise PriorError(message)
    highest = log_density.max()
    if highest > -np.inf:
        relative = log_density - highest
        shares: Floats = relative - np.log(np.sum(np.exp(relative)))
        if shares.min() >= _LEAST:
            return shares
    message = f"prior {text}: its density is 0 at the grid's point {points[log_density.argmin()]:.6g}"
    raise PriorError(message)


def _densities(prior: object) -> tuple[Floats, tuple[Density, ...]]:
    """Return weights and densities of a prior's components."""
    if isinstance(prior, Mixture):
        return np.array(prior.weights, dtype=np.float64), tuple(one_number(each) for each in prior.components)
    if isinstance(prior, Prior | Density):
        return np.ones(1), (one_number(prior),)
    message = f"prior {prior}: it is not of one number"
    raise PriorError(message)


def _log_density(density: Density, points: Floats) -> Floats:
    """Return log densities, of points outside of the support too."""
    inside = (points >= density.lower) & (points <= density.upper)
    log_density = np.full(points.shape, -np.inf)
    log_density[inside] = density.log_density(points[inside])
    return log_density
