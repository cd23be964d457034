r"""A lattice of hyperparameters that is followed from where their posterior is high.

Method. From the mode of an approximation, and its covariance there, of whose Cholesky factor ``STEP``
columns are a step, the lattice is followed in all directions until the posterior is e^-``_DEPTH`` of its
highest (Rue, Martino, Chopin 2009). The trapezoidal rule is then off by :math:`2 e^{-2 \pi^2 / 1.5^2}` of a
normal posterior.

References
----------
Rue, Martino, Chopin. Approximate Bayesian inference for latent Gaussian models by using integrated nested
Laplace approximations. J. R. Stat. Soc. B 71, 2009.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.typing import Floats

STEP, FINER, _DEPTH = 1.5, 1.0, 4.5
"""Of a lattice, in standard deviations; of one or two hyperparameters a finer one costs little."""
_UNSETTLED = 2.5
"""How far below the highest a point is whose neighbours may be missing."""
_MOST, _ROUNDS = 260, 3
WIDEST, NARROWEST = 2.5, 0.02
"""Standard deviations that a covariance may have along any axis."""


class Point(Protocol):
    """What is known at one value of the hyperparameters."""

    @property
    def theta(self) -> Floats:
        """Hyperparameters."""

    @property
    def log_weight(self) -> float:
        """The log posterior density of theta, but for a constant."""


AnyPoint = TypeVar("AnyPoint", bound=Point)


def mode_and_covariance(
    loss: Callable[[Floats], float], start: Sequence[float], sizes: Sequence[float]
) -> tuple[Floats, Floats]:
    """Return where a loss is least, and the inverse of its second derivatives there, within limits.

    Parameters
    ----------
    loss : callable
        Minus a log density of theta; 1e10 where there is none.
    start, sizes : sequence of float
        Where to begin, and how far to look of each.
    """
    from scipy.optimize import minimize

    first = np.array(start)
    simplex = first + np.concatenate([np.zeros((1, len(first))), np.diag(sizes)])
    mode = minimize(
        loss,
        first,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "xatol": 0.03, "fatol": 0.02, "maxfev": 200},
    ).x
    n, h = len(mode), 0.2 / 0.7 * np.array(sizes)
    unit = np.diag(h)
    hessian = np.empty((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        if i <= j:
            corners = [loss(mode + p * unit[i] + q * unit[j]) * p * q for p in (1, -1) for q in (1, -1)]
            hessian[i, j] = hessian[j, i] = sum(corners) / (4.0 * h[i] * h[j])
    values, axes = np.linalg.eigh(hessian)
    variances = 1.0 / np.clip(values, WIDEST**-2.0, NARROWEST**-2.0)
    return mode, (axes * variances) @ axes.T


def weights_of(points: Sequence[Point]) -> tuple[Floats, Floats, Floats]:
    """Return weights that add up to 1, the mean of theta, and its covariance."""
    log_weight = np.array([point.log_weight for point in points])
    weight = np.exp(log_weight - np.max(log_weight))
    weight /= np.sum(weight)
    thetas = np.array([point.theta for point in points])
    mean = weight @ thetas
    return weight, mean, (weight[:, None] * (thetas - mean)).T @ (thetas - mean)


def resolved(
    at: Callable[[Floats, AnyPoint | None], AnyPoint | None],
    is_possible: Callable[[Floats], bool],
    centre: Floats,
    covariance: Floats,
    step: float = STEP,
) -> tuple[list[AnyPoint], Floats, bool]:
    """Return points, their weights, and whether they tell the integral: the lattice is moved until they do.

    Parameters
    ----------
    at : callable
        Returns what is known at theta, given what is known next to it; None where it cannot be told.
    is_possible : callable
        Whether theta is among what is looked at.
    centre, covariance : ndarray
        About where theta is.
    step : float
        Of the lattice, in standard deviations.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where nothing is known at the centre.
    """
    points, weight, settled, _ = resolved_with_steps(at, is_possible, centre, covariance, step)
    return points, weight, settled


def resolved_with_steps(
    at: Callable[[Floats, AnyPoint | None], AnyPoint | None],
    is_possible: Callable[[Floats], bool],
    centre: Floats,
    covariance: Floats,
    step: float = STEP,
) -> tuple[list[AnyPoint], Floats, bool, Floats]:
    """Return what ``resolved`` does, and the steps of the lattice, as columns."""
    points: list[AnyPoint] = []
    weight, settled, start = np.zeros(0), False, None
    steps = np.zeros((len(centre), len(centre)))
    for round_number in range(_ROUNDS):
        root: Any = np.linalg.cholesky(covariance)
        steps = step * root
        points, is_whole = followed(at, is_possible, centre, steps, start)
        weight, mean, spread = weights_of(points)
        settled = is_whole and bool(np.min(in_steps(steps, spread)) > 0.5**2)
        if settled or round_number == _ROUNDS - 1:
            break
        start = points[int(np.argmax(weight))]
        centre, covariance = mean, next_covariance(steps, spread)
    return points, weight, settled, steps


def in_steps(steps: Floats, spread: Floats) -> Floats:
    """Return variances of the posterior in steps of the lattice, which are to be 1.5 standard deviations."""
    inverse = np.linalg.inv(steps)
    return np.asarray(np.linalg.eigvalsh(inverse @ spread @ inverse.T))


def next_covariance(steps: Floats, spread: Floats) -> Floats:
    """Return the covariance that the next lattice is of."""
    # Where a step is too long to tell, all that is known is that it is.
    values, axes = np.linalg.eigh(spread)
    covariance = (axes * np.clip(values, (0.3 * NARROWEST) ** 2, WIDEST**2)) @ axes.T
    covariance += 0.1 * steps @ steps.T * float(np.min(in_steps(steps, spread)) < 0.05)
    return np.asarray(covariance)


def followed(
    at: Callable[[Floats, AnyPoint | None], AnyPoint | None],
    is_possible: Callable[[Floats], bool],
    centre: Floats,
    steps: Floats,
    start: AnyPoint | None = None,
    highest: float = -np.inf,
    depth: float = _DEPTH,
) -> tuple[list[AnyPoint], bool]:
    """Follow the lattice, the highest points first; return whether all that matters is there.

    Parameters
    ----------
    highest : float
        A log posterior density that is reached elsewhere.
    depth : float
        How far below the highest the lattice is followed.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where nothing is known at the centre.
    """
    n = len(centre)
    first = at(centre, start)
    if first is None:
        message = "no normal law"
        raise np.linalg.LinAlgError(message)
    points, seen = [first], {(0,) * n}
    best, unsettled = max(first.log_weight, highest), -np.inf
    waiting = [(-first.log_weight, 0, (0,) * n)]
    while waiting:
        _, number, key = heapq.heappop(waiting)
        parent = points[number]
        if parent.log_weight < best - depth:
            continue
        if len(points) > _MOST:
            return points, False
        for axis, sign in itertools.product(range(n), (1, -1)):
            near = tuple(each + sign * (place == axis) for place, each in enumerate(key))
            theta = centre + steps @ np.array(near, dtype=np.float64)
            if near in seen or not is_possible(theta):
                continue
            seen.add(near)
            point = at(theta, parent)
            if point is None:
                unsettled = max(unsettled, parent.log_weight)
                continue
            points.append(point)
            best = max(best, point.log_weight)
            heapq.heappush(waiting, (-point.log_weight, len(points) - 1, near))
    return points, unsettled < best - _UNSETTLED
