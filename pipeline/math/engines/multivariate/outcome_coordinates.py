r"""Coordinates of an outcome that go along with the latent scales of its coefficients.

Given scales :math:`t_k` of the coefficients, the outcome's row of L and its average, y, are about normal:

.. math:: V = F^T T F + (L_{yy}^2 / n) I, \qquad T = \operatorname{diag}(c_k^2 t_k),

before noise is looked at, where F has the predictors' part of L beside their averages and a one for the
intercept. Noise of standard deviations :math:`\sigma` in S / n and averages, and an outcome's scatter of
:math:`M^2` at most, add their precisions,

.. math:: A = V^{-1} + L_x^T \operatorname{diag}(\sigma^{-2}) L_x + M^{-2} I = U^T U,

and coordinates are :math:`z = U y`. Their distribution hardly depends on the scales, neither where noise
hides a coefficient nor where it is seen: chains need not narrow what they do when a scale falls by decades.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multivariate.evidence import inverted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeNoise:
    """What an outcome's coordinates depend on, cell by cell.

    Attributes
    ----------
    rows : ndarray of shape (n_cells,), float64
        About how many there are, n.
    noise : ndarray of shape (d - 1, n_cells), float64
        sigma: what noise gives the outcome's entries of S / n as standard deviations.
    noise_of_mean : ndarray of shape (n_cells,), float64
        The same of its average.
    most : ndarray of shape (n_cells,), float64
        M: about the largest root of the outcome's scatter.
    """

    rows: Floats
    noise: Floats
    noise_of_mean: Floats
    most: Floats

    def take(self, cells: NDArray[np.int64]) -> OutcomeNoise:
        """Return that of some cells."""
        return OutcomeNoise(
            rows=self.rows[cells],
            noise=self.noise[:, cells],
            noise_of_mean=self.noise_of_mean[cells],
            most=self.most[cells],
        )

    def given(self, root: Floats, mean: Floats | None, squares: Floats) -> OutcomeCoordinates:
        """Return the map given L (d, d, b), means (d, b) if there are any, and c^2 t (k, b)."""
        size, (k, chains) = len(root) - 1, squares.shape
        repeats = chains // len(self.rows)
        factors = np.zeros((k, k, chains))
        factors[:size, :size] = root[:size, :size]
        if mean is not None:
            factors[:size, size], factors[size, size] = mean[:size], 1.0
        sampling = root[size, size] ** 2 / np.repeat(self.rows, repeats)
        weighted = squares[:, None] * factors
        variance = np.einsum("ijb,ilb->jlb", factors, weighted)
        every = np.arange(k)
        variance[every, every] += sampling
        inverse, _ = inverted(variance)
        precision = inverse.copy()
        seen = np.repeat(self.noise, repeats, axis=1)[:, None] ** -2.0 * root[:size, :size]
        precision[:size, :size] += np.einsum("ijb,ilb->jlb", root[:size, :size], seen)
        precision[every[:size], every[:size]] += np.repeat(self.most, repeats) ** -2.0
        if mean is not None:
            precision[size, size] += np.repeat(self.noise_of_mean, repeats) ** -2.0
        lower = cholesky(precision)
        return OutcomeCoordinates(
            factors=factors,
            weighted=weighted,
            seen=seen,
            sampling=sampling,
            precision=inverse,
            lower=lower,
            inverse=inverse_of_lower(lower),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCoordinates:
    """The map between entries and coordinates of b chains.

    Attributes
    ----------
    factors, weighted : ndarray of shape (k, k, b), float64
        F, and T F.
    seen : ndarray of shape (d - 1, d - 1, b), float64
        The predictors' part of L over the noise's variances.
    sampling : ndarray of shape (b,), float64
        L_yy^2 / n.
    precision : ndarray of shape (k, k, b), float64
        The inverse of V.
    lower, inverse : ndarray of shape (k, k, b), float64
        The transpose of U, and its inverse.
    """

    factors: Floats
    weighted: Floats
    seen: Floats
    sampling: Floats
    precision: Floats
    lower: Floats
    inverse: Floats

    @property
    def log_jacobian(self) -> Floats:
        """The log of the determinant of entries by coordinates (b,)."""
        value: Floats = np.log(np.einsum("iib->ib", self.inverse)).sum(axis=0)
        return value

    def entries(self, coordinates: Floats) -> Floats:
        """Return y (k, b) at z (k, b)."""
        entries: Floats = np.einsum("jib,jb->ib", self.inverse, coordinates)
        return entries

    def coordinates(self, entries: Floats) -> Floats:
        """Return z (k, b) of y (k, b)."""
        coordinates: Floats = np.einsum("jib,jb->ib", self.lower, entries)
        return coordinates

    def pulled(self, entries: Floats, by_entries: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the derivatives of a function of y, and of the log Jacobian, by what y is made of.

        Returns
        -------
        by_coordinates : ndarray of shape (k, b), float64
        by_factors : ndarray of shape (k, k, b), float64
            By F, and by L where it stands for the noise.
        by_log_root : ndarray of shape (b,), float64
            By the log of L_yy.
        """
        by_coordinates = np.einsum("ijb,jb->ib", self.inverse, by_entries)
        # Of the Cholesky factor (Murray. Differentiation of the Cholesky decomposition. 2016), then of A.
        inner = -self.coordinates(entries)[:, None] * by_coordinates
        rows, columns = np.triu_indices(len(entries), 1)
        inner[rows, columns] = inner[columns, rows]
        every = np.arange(len(entries))
        inner[every, every] -= 1.0
        by_precision = np.einsum(
            "lib,ljb->ijb", self.inverse, np.einsum("lmb,mjb->ljb", inner / 2.0, self.inverse)
        )
        by_variance = -np.einsum(
            "ilb,ljb->ijb", self.precision, np.einsum("lmb,mjb->ljb", by_precision, self.precision)
        )
        by_factors = 2.0 * np.einsum("ijb,jlb->ilb", self.weighted, by_variance)
        by_log_root = 2.0 * self.sampling * np.einsum("iib->b", by_variance)
        size = len(self.seen)
        by_factors[:size, :size] += 2.0 * np.einsum("ijb,jlb->ilb", self.seen, by_precision[:size, :size])
        return by_coordinates, by_factors, by_log_root


def cholesky(matrix: Floats) -> Floats:
    """Return lower roots of positive definite matrices (k, k, b), column by column."""
    lower = np.zeros_like(matrix)
    for j in range(len(matrix)):
        column = matrix[j:, j] - np.einsum("ilb,lb->ib", lower[j:, :j], lower[j, :j])
        lower[j:, j] = column / np.sqrt(column[0])
    return lower


def inverse_of_lower(lower: Floats) -> Floats:
    """Return inverses of lower triangular matrices (k, k, b), row by row."""
    inverse = np.zeros_like(lower)
    for i in range(len(lower)):
        inverse[i, i] = 1.0 / lower[i, i]
        inverse[i, :i] = -np.einsum("lb,ljb->jb", lower[i, :i], inverse[:i, :i]) * inverse[i, i]
    return inverse
