r"""The posterior density of a regression's coefficients at one spread and slope, tabulated and looked up.

Model. Positions of cells are less :math:`w_c \cdot \beta_0`, so that their locations are
:math:`m_c = m + w_c \cdot (\beta - \beta_0)`, and

.. math:: \log p(m, \beta \mid y, s, b) = \sum_c \ell_c(m_c) + \log p(m) + \log p(\beta) \qquad (1)

Method. :math:`\ell_c` is known at places that are the same of all cells, ``_STEP`` spreads apart, and between
them is the cubic through four. Derivatives are central differences over a step of these. The mode only says
where to look: few steps of Newton's method are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import cubic
from suffice.pipeline.math.engines.pooled.hyperpriors import COEFFICIENT_SD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid
    from suffice.typing import Floats

_STEP = 0.3
_MOST_PLACES = 1500
_NEWTON = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Places at which densities of a population of one spread are known, for locations of all cells.

    Attributes
    ----------
    low, step : float
    n : int
    spread : float
    parts : list of ndarray of shape (n, n_points), float64
        Densities of the components on the grid of residuals, times their shares.
    whole : ndarray of shape (n, n_points), float64
        Of the population.
    """

    low: float
    step: float
    n: int
    spread: float
    parts: list[Floats]
    whole: Floats

    @classmethod
    def of(
        cls, population: Population, grid: ResidualGrid, ends: tuple[float, float], spread: float
    ) -> Places:
        """Tabulate the population at places between two ends."""
        low, high = ends
        n = int(np.clip(np.ceil((high - low) / (_STEP * spread)) + 1, 8, _MOST_PLACES))
        step = (high - low) / (n - 1)
        at = low + step * np.arange(n, dtype=np.float64)
        components = population.components(grid.points, at, np.full(n, spread))
        parts = [share * each for share, each in components]
        return cls(low=low, step=step, n=n, spread=spread, parts=parts, whole=np.asarray(sum(parts)))

    def taps(self, location: Floats) -> tuple[Any, Floats]:
        """Return the first of four places about each location, and where it is after it, in steps."""
        place = np.clip((location - self.low) / self.step, 0.0, self.n - 1.0)
        first = np.clip(place.astype(np.int64) - 1, 0, self.n - 4)
        return first, place - first

    def looked_up(self, table: Floats, location: Floats) -> Floats:
        """Return values of cells (n_cells, n_places) at locations (n_cells, n_chosen)."""
        first, share = self.taps(location)
        flat, start = table.ravel(), first + np.arange(len(table))[:, None] * self.n
        result: Floats = np.sum(
            [flat.take(start + tap) * weight for tap, weight in enumerate(cubic(share))], axis=0
        )
        return result

    def spread_out(self, values: Floats, location: Floats) -> Floats:
        """Return values of cells at locations as weights of the places, (n_cells, n_places)."""
        first, share = self.taps(location)
        start = first + np.arange(len(values))[:, None] * self.n
        total = np.zeros(len(values) * self.n)
        for tap, weight in enumerate(cubic(share)):
            total += np.bincount((start + tap).ravel(), (values * weight).ravel(), total.size)
        return total.reshape(len(values), self.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """(1) at one pair of s and b.

    Attributes
    ----------
    table : ndarray of shape (n_cells, n_places), float64
        Of the places.
    places : Places
    rows : ndarray of shape (n_cells, n_theta), float64
        1 and w_c.
    prior : LocationPrior
    centre : ndarray of shape (n_coefficients,), float64
        beta_0; theta is (m, beta - beta_0).
    """

    table: Floats
    places: Places
    rows: Floats
    prior: LocationPrior
    centre: Floats

    def log_density(self, theta: Floats) -> Floats:
        """(1) of draws (n_draws, n_theta), but for a constant."""
        value = np.sum(self.places.looked_up(self.table, self.rows @ theta.T), axis=0)
        gap = (theta[:, 1:] + self.centre) / COEFFICIENT_SD
        result: Floats = value + self.prior.log_density(theta[:, 0]) - 0.5 * np.sum(gap**2, axis=1)
        return result

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gradient, and minus the matrix of second derivatives where likelihoods are concave."""
        location = self.rows @ theta
        # Central differences over a step, of the cubics themselves.
        h = self.places.step
        shifted = location[:, None] + np.array([-h, 0.0, h])
        low, middle, high = self.places.looked_up(self.table, shifted).T
        slope = (high - low) / (2.0 * h)
        curvature = np.maximum((2.0 * middle - low - high) / h**2, 0.0)
        gap = (theta[0] - self.prior.centre) / self.prior.scale
        gradient = self.rows.T @ slope
        gradient[0] -= np.tanh(gap / 2.0) / self.prior.scale
        gradient[1:] -= (theta[1:] + self.centre) / COEFFICIENT_SD**2
        of_prior = np.full(len(theta), COEFFICIENT_SD**-2.0)
        # Far out a logistic law is a line; a tenth of its precision keeps the matrix definite there.
        bend = 0.5 / (self.prior.scale * np.cosh(np.clip(gap / 2.0, -300.0, 300.0))) ** 2
        of_prior[0] = max(bend, 0.1 * self.prior.precision)
        minus = self.rows.T @ (curvature[:, None] * self.rows) + np.diag(of_prior)
        return gradient, minus

    def mode(self, theta: Floats) -> tuple[Floats, Floats, float]:
        """Return about where it is highest, the matrix there, and the log density, by Newton's method."""
        value = float(self.log_density(theta[None])[0])
        for _ in range(_NEWTON):
            gradient, minus = self.derivatives(theta)
            step = np.linalg.solve(minus, gradient)
            for halving in (1.0, 0.5, 0.25, 0.0625):
                tried = theta + halving * step
                of_tried = float(self.log_density(tried[None])[0])
                if of_tried > value:
                    break
            else:
                break
            gain, theta, value = of_tried - value, tried, of_tried
            if gain < 1e-3:
                break
        return theta, self.derivatives(theta)[1], value


def degrees(n_theta: int) -> float:
    """Return the degrees of freedom of proposals: of many numbers, heavy tails would waste most draws."""
    return max(5.0, 2.0 * n_theta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A multivariate t law of theta.

    Attributes
    ----------
    centre : ndarray of shape (n_theta,), float64
    root : ndarray of shape (n_theta, n_theta), float64
        Lower triangular; times its transpose it is the scale matrix.
    """

    centre: Floats
    root: Floats

    @classmethod
    def of(cls, centre: Floats, scale: Floats) -> Proposal:
        """Take the root of a scale matrix."""
        root: Any = np.linalg.cholesky(scale)
        return cls(centre=centre, root=root)

    @property
    def log_size(self) -> float:
        """The logarithm of the determinant of the root."""
        return float(np.sum(np.log(np.diag(self.root))))

    def log_density(self, theta: Floats) -> Floats:
        """Log densities of draws (n_draws, n_theta), but for a constant."""
        n = len(self.centre)
        steps = np.linalg.solve(self.root, (theta - self.centre).T)
        tail = np.log1p(np.sum(steps**2, axis=0) / degrees(n))
        result: Floats = -self.log_size - 0.5 * (degrees(n) + n) * tail
        return result


def mixed(proposals: Sequence[Proposal], steps: Floats) -> tuple[Floats, Floats]:
    """Turn steps of unit scale into draws, an equal share of each law; and the mixture's log density."""
    parts = np.split(steps, len(proposals))
    theta = np.concatenate(
        [each.centre + part @ each.root.T for each, part in zip(proposals, parts, strict=True)]
    )
    log_density = np.logaddexp.reduce([each.log_density(theta) for each in proposals], axis=0)
    return theta, np.asarray(log_density - np.log(len(proposals)))
