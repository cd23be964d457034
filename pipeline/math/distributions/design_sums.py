"""A regression is scaled to half ranges, and back to the columns' units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.terms.statistics.moment_columns import is_linear, lattice_of

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.moment_projection import Moments
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    r"""The affine map of a regression's coefficients from half ranges to the columns' units.

    .. math:: \beta = A \beta_z + s

    Attributes
    ----------
    matrix : ndarray of shape (k, k), float64
        A; the intercept, where there is one, is the last coefficient.
    shift : ndarray of shape (k,), float64
        s.
    outcome : float
        The outcome's half range.
    """

    matrix: Floats
    shift: Floats
    outcome: float

    @classmethod
    def of(cls, parameters: Parameters) -> Self:
        """Return the map of a statistic."""
        linear = is_linear(parameters)
        lattices = [lattice_of(column, linear=linear) for column in parameters.columns]
        *centres, outcome_centre = (float(centre) for centre, _ in lattices)
        *half_ranges, outcome = (float(half_range) for _, half_range in lattices)
        slopes = outcome / np.array(half_ranges)
        if not linear:
            return cls(matrix=np.diag(slopes), shift=np.zeros(len(slopes)), outcome=outcome)
        matrix = np.diag([*slopes, outcome])
        matrix[-1, :-1] = -slopes * np.array(centres)
        shift = np.zeros(len(matrix))
        shift[-1] = outcome_centre
        return cls(matrix=matrix, shift=shift, outcome=outcome)

    def coefficients_in_half_ranges(self, coefficient: Floats) -> Floats:
        """Return coefficients (..., k) in half ranges."""
        solved = np.linalg.solve(self.matrix, (coefficient - self.shift)[..., None])[..., 0]
        return np.asarray(solved, dtype=np.float64)

    def to_half_ranges(self, loc: Floats, precision: Floats) -> tuple[Floats, Floats]:
        """Return a normal mean and its precision beside the residual variance in half ranges."""
        scaled = self.matrix.T @ precision @ self.matrix / self.outcome**2
        return self.coefficients_in_half_ranges(loc), (scaled + scaled.T) / 2.0

    def to_columns(self, loc: Floats, precision: Floats) -> tuple[Floats, Floats]:
        """Return the same of the columns' units, from half ranges."""
        inverse = np.linalg.inv(self.matrix)
        scaled = inverse.T @ precision @ inverse * self.outcome**2
        return self.matrix @ loc + self.shift, (scaled + scaled.T) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionSums:
    """X^T X (n_cells, k, k), X^T y (n_cells, k) and y^T y (n_cells,), in half ranges, and n (n_cells,)."""

    gram: Floats
    cross: Floats
    outcome: Floats
    n: Floats


def design_of(sums: Moments, parameters: Parameters) -> RegressionSums:
    """Return a regression's sums: the predictors', and those of a column of ones for the intercept."""
    products = sums.products
    if is_linear(parameters):
        ones = np.concatenate([sums.total, sums.n[:, None]], axis=1)
        # The column of ones stands between the predictors and the outcome.
        order = [*range(products.shape[1] - 1), products.shape[1], products.shape[1] - 1]
        full = np.zeros((len(products), len(order), len(order)))
        full[:, :-1, :-1] = products
        full[:, -1, :] = full[:, :, -1] = ones
        products = full[:, order][:, :, order]
    return RegressionSums(
        gram=products[:, :-1, :-1], cross=products[:, :-1, -1], outcome=products[:, -1, -1], n=sums.n
    )


