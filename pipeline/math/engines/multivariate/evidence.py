r"""The evidence of any rows with given moments, parameters integrated out: logarithm and gradient.

Model: n rows of d columns are normal. Of the first p columns, under :math:`\mathrm{NIW}(m_0, k_0, \nu,
\Psi)`,

.. math:: \log e = \log \Gamma_p\Bigl(\frac{\nu + n}{2}\Bigr) - \frac{\nu + n}{2} \log |\Psi_n|
    - \frac p 2 \log (k_0 + n), \quad
    \Psi_n = \Psi + S + \frac{k_0 n}{k_0 + n} (\bar z - m_0)(\bar z - m_0)^T \qquad (1)

and of the last column given the others, a regression under a normal-inverse-gamma prior of the k
coefficients,

.. math:: \log e = \log \Gamma(a + n / 2) - \tfrac 1 2 \log |P_n| - (a + n / 2) \log (2 b_n), \quad
    P_n = P + X^T X, \; b_n = b + \tfrac 1 2 \text{residual} \qquad (2)

up to powers of pi and what depends on the prior alone. Both are exact; the question is their value and their
gradient by n, t and Q.

**Coordinates of an outcome** that go along with the latent scales :math:`t_k` of its coefficients. Given
these, the outcome's row of L and its average, y, are about normal with variance V, before noise is looked
at:

.. math:: V = F^T T F + (L_{yy}^2 / n) I, \qquad T = \operatorname{diag}(c_k^2 t_k) \qquad (3)

    A = V^{-1} + L_x^T \operatorname{diag}(\sigma^{-2}) L_x + M^{-2} I = U^T U, \qquad z = U y \qquad (4)

F has the predictors' part of L beside their averages and a one for the intercept; noise of standard
deviations :math:`\sigma` in S / n and averages, and an outcome's scatter of :math:`M^2` at most, add their
precisions. The distribution of z hardly depends on the scales, neither where noise hides a coefficient nor
where it is seen: chains need not narrow what they do when a scale falls by decades. Any such map is exact,
with its Jacobian.

Chains come last in every array: small matrices of many chains are then worked on entry by entry, each a
long vector, several times as fast as matrix by matrix. In the code, :math:`\bar z, S / n, Q / n` are
``mean`` (d, b), ``spread`` and ``second`` (d, d, b), in half ranges; F, V^-1, U^T are ``factors``,
``precision`` and ``lower`` (k, k, b).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

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
        # V of (3).
        variance = np.einsum("ijb,ilb->jlb", factors, weighted)
        every = np.arange(k)
        variance[every, every] += sampling
        inverse, _ = inverted(variance)
        precision = inverse.copy()
        seen = np.repeat(self.noise, repeats, axis=1)[:, None] ** -2.0 * root[:size, :size]
        # A of (4), term by term.
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
        # y = U^-1 z.
        by_coordinates = np.einsum("ijb,jb->ib", self.inverse, by_entries)
        # Of the Cholesky factor (Murray. Differentiation of the Cholesky decomposition. 2016), then of A.
        inner = -self.coordinates(entries)[:, None] * by_coordinates
        rows, columns = _above(len(entries))
        inner[rows, columns] = inner[columns, rows]
        every = np.arange(len(entries))
        inner[every, every] -= 1.0
        by_precision = np.einsum(
            "lib,ljb->ijb", self.inverse, np.einsum("lmb,mjb->ljb", inner / 2.0, self.inverse)
        )
        by_variance = -np.einsum(
            "ilb,ljb->ijb", self.precision, np.einsum("lmb,mjb->ljb", by_precision, self.precision)
        )
        # d(V^-1) = -V^-1 dV V^-1, and V = F^T T F + ...: dV = 2 F^T T dF, symmetrised.
        by_factors = 2.0 * np.einsum("ijb,jlb->ilb", self.weighted, by_variance)
        by_log_root = 2.0 * self.sampling * np.einsum("iib->b", by_variance)
        size = len(self.seen)
        by_factors[:size, :size] += 2.0 * np.einsum("ijb,jlb->ilb", self.seen, by_precision[:size, :size])
        return by_coordinates, by_factors, by_log_root


def cholesky(matrix: Floats) -> Floats:
    """Return lower roots of positive definite matrices (k, k, b), column by column."""
    lower = np.zeros_like(matrix)
    for j in range(len(matrix)):
        # L_ij = (M_ij - sum_k L_ik L_jk) / L_jj.
        column = matrix[j:, j] - np.einsum("ilb,lb->ib", lower[j:, :j], lower[j, :j])
        lower[j:, j] = column / np.sqrt(column[0])
    return lower


def inverse_of_lower(lower: Floats) -> Floats:
    """Return inverses of lower triangular matrices (k, k, b), row by row."""
    inverse = np.zeros_like(lower)
    for i in range(len(lower)):
        inverse[i, i] = 1.0 / lower[i, i]
        # Forward substitution: row i of L^-1.
        inverse[i, :i] = -np.einsum("lb,ljb->jb", lower[i, :i], inverse[:i, :i]) * inverse[i, i]
    return inverse


_SMALL = 12
"""Matrices of so many columns are inverted entry by entry; larger ones by LAPACK, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentState:
    """Moments of b chains at once: n (b,), mean (d, b), spread S / n (d, d, b), second moments Q / n.

    Where n is the same for all, it may be (1,).
    """

    n: Floats
    mean: Floats
    spread: Floats
    second: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """Derivatives of a function of moments: by n (b,), t (d, b), and Q (d, d, b), symmetric."""

    n: Floats
    total: Floats
    products: Floats

    def add(self, other: Gradient) -> None:
        """Add another function's derivatives, in place."""
        self.n[:] += other.n
        self.total[:] += other.total
        self.products[:] += other.products


class Evidence(Protocol):
    """The log evidence of rows with given moments, and its gradient.

    Where the prior has latent scales, so many coordinates of the whole line tell them, and their prior is in
    the evidence.
    """

    @property
    def n_latent(self) -> int:
        """Number of coordinates of latent scales."""

    @property
    def columns(self) -> tuple[int | None, ...]:
        """Which column's scatter each of them goes along with; None: with none."""

    def __call__(self, state: MomentState, latent: Floats) -> tuple[Floats, Gradient, Floats]:
        """Return the log evidence (b,), up to a constant, and its derivatives.

        Parameters
        ----------
        state : MomentState
        latent : ndarray of shape (n_latent, b), float64

        Returns
        -------
        value : ndarray of shape (b,), float64
        gradient : Gradient
        by_latent : ndarray of shape (n_latent, b), float64
        """

    def start(self, state: MomentState) -> tuple[Floats, Floats]:
        """Return coordinates of latent scales that go with such moments, and their sds, (n_latent, b)."""


class GivenScales:
    """What an evidence has of latent numbers whose prior has none: nothing."""

    __slots__ = ()

    @property
    def n_latent(self) -> int:
        """None: the scales are given."""
        return 0

    @property
    def columns(self) -> tuple[int | None, ...]:
        """Of no scale."""
        return ()

    def start(self, state: MomentState) -> tuple[Floats, Floats]:
        """Nothing."""
        nothing = np.empty((0, state.mean.shape[1]))
        return nothing, nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalEvidence(GivenScales):
    """Evidence of the first columns under a normal-inverse-Wishart prior; about 0 without first moments.

    Attributes
    ----------
    loc : ndarray of shape (size,), float64
    precision, df : float
    scale : ndarray of shape (size, size), float64
        As in ``NormalInverseWishart``, in half ranges.
    linear : bool
        Whether there are means; without, the rows are normal about 0.
    """

    loc: Floats
    precision: float
    df: float
    scale: Floats
    linear: bool

    def __call__(self, state: MomentState, latent: Floats) -> tuple[Floats, Gradient, Floats]:
        """Return the log evidence and its derivatives."""
        size = len(self.loc)
        n, df = state.n, self.df + state.n
        scale = n * (state.spread if self.linear else state.second)[:size, :size] + self.scale[:, :, None]
        if self.linear:
            precision, loc = self.precision + n, self.loc[:, None]
            mean = state.mean[:size]
            distance = mean - loc
            # Psi_n of (1).
            scale += self.precision * n / precision * outer(distance, distance)
        inverse, log_determinant = inverted(scale)
        log_gamma, digamma = multivariate_gamma(df / 2.0, size)
        # (1).
        value = log_gamma - df / 2.0 * log_determinant
        gradient = no_gradient(state)
        gradient.products[:size, :size] = -df / 2.0 * inverse
        gradient.n[:] = (digamma - log_determinant) / 2.0
        if self.linear:
            updated = (self.precision * loc + n * mean) / precision
            # By t at fixed Q: Psi_n depends on it through the updated mean (k_0 m_0 + t) / (k_0 + n).
            weighted = np.einsum("ijb,jb->ib", inverse, updated)
            value -= size / 2.0 * np.log(precision)
            gradient.n[:] -= size / 2.0 / precision + df / 2.0 * np.sum(updated * weighted, axis=0)
            gradient.total[:size] = df * weighted
        return value, gradient, latent


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionEvidence(GivenScales):
    """Evidence of the last column given the others, under a normal-inverse-gamma prior of the coefficients.

    Attributes
    ----------
    loc : ndarray of shape (k,), float64
    precision : ndarray of shape (k, k), float64
    concentration, scale : float
        As in ``NormalInverseGammaRegression``, in half ranges.
    linear : bool
        Whether there is an intercept, the last coefficient.
    """

    loc: Floats
    precision: Floats
    concentration: float
    scale: float
    linear: bool

    def squares(self) -> Floats:
        """Return about the second moments of coefficients (k,)."""
        variance = self.scale / max(self.concentration - 1.0, 0.5)
        likely: Floats = variance * np.diag(np.linalg.inv(self.precision)) + self.loc**2
        return likely

    def __call__(self, state: MomentState, latent: Floats) -> tuple[Floats, Gradient, Floats]:
        """Return the log evidence and its derivatives."""
        prior = self.precision[:, :, None], np.full(1, self.scale)
        fit = Fit.of(state, self.loc, *prior, self.concentration, linear=self.linear)
        return fit.value, fit.gradient, latent


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A regression of b chains' moments, and what its evidence changes by.

    Attributes
    ----------
    value : ndarray of shape (b,), float64
        The log evidence, but for what depends on the prior alone.
    gradient : Gradient
    inverse : ndarray of shape (k, k, b), float64
        Of the updated precision.
    apart : ndarray of shape (k, b), float64
        The updated coefficients less the prior's.
    weight : ndarray of shape (b,), float64
        The updated concentration over the updated scale.
    """

    value: Floats
    gradient: Gradient
    inverse: Floats
    apart: Floats
    weight: Floats

    @classmethod
    def of(
        cls,
        state: MomentState,
        loc: Floats,
        precision: Floats,
        scale: Floats,
        concentration: float,
        *,
        linear: bool,
    ) -> Self:
        """Fit under a prior of loc (k,), precision (k, k, b or 1), scale (b or 1,) and a concentration."""
        from scipy.special import digamma, gammaln

        n, size = state.n, len(loc)
        last = len(state.mean) - 1
        updated = np.empty((size, size, state.mean.shape[1]))
        right = np.empty(updated.shape[1:])
        updated[:last, :last], right[:last] = state.second[:last, :last], state.second[:last, last]
        if linear:
            updated[:last, last] = updated[last, :last] = state.mean[:last]
            updated[last, last], right[last] = 1.0, state.mean[last]
        updated *= n
        updated += precision
        right *= n
        pulled = np.einsum("ijb,j->ib", precision, loc)
        right += pulled
        inverse, log_determinant = inverted(updated)
        beta = np.einsum("ijb,jb->ib", inverse, right)
        # Refined once, so that nearly collinear columns cost no digits of what may be a tiny residual.
        short = right - np.einsum("ijb,jb->ib", updated, beta)
        more = np.einsum("ijb,jb->ib", inverse, short)
        # (2): y^T y + m_0^T P m_0 - beta^T P_n beta.
        residual = n * state.second[last, last] + loc @ pulled
        residual -= np.sum(beta * (right + short) + more * short, axis=0)
        beta += more
        concentration_of_all = concentration + n / 2.0
        scale_of_all = scale + np.maximum(residual, 0.0) / 2.0
        log_scale = np.log(scale_of_all) + np.log(2.0)
        weight = concentration_of_all / scale_of_all
        # d log|P_n| = tr(P_n^-1 dG), and d residual = -2 beta^T d(X^T y) + beta^T dG beta.
        by_gram = (inverse + weight * outer(beta, beta)) / -2.0
        by_cross = weight * beta
        gradient = no_gradient(state)
        gradient.products[:last, :last] = by_gram[:last, :last]
        gradient.products[:last, last] = gradient.products[last, :last] = by_cross[:last] / 2.0
        gradient.products[last, last] = -weight / 2.0
        gradient.n[:] = (digamma(concentration_of_all) - log_scale) / 2.0
        if linear:
            gradient.total[:last] = 2.0 * by_gram[:last, last]
            gradient.total[last] = by_cross[last]
            gradient.n[:] += by_gram[last, last]
        return cls(
            value=gammaln(concentration_of_all) - log_determinant / 2.0 - concentration_of_all * log_scale,
            gradient=gradient,
            inverse=inverse,
            apart=beta - loc[:, None],
            weight=weight,
        )


def no_gradient(state: MomentState) -> Gradient:
    """Return derivatives that are 0."""
    columns, chains = state.mean.shape
    return Gradient(
        n=np.zeros(chains),
        total=np.zeros((columns, chains)),
        products=np.zeros((columns, columns, chains)),
    )


@cache
def _above(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the entries above a diagonal stand, by rows."""
    rows, columns = np.triu_indices(size, 1)
    return rows, columns


def outer(left: Floats, right: Floats) -> Floats:
    """Return outer products of vectors (d, b)."""
    outer: Floats = left[:, None] * right[None, :]
    return outer


def inverted(matrix: Floats) -> tuple[Floats, Floats]:
    """Return inverses and log determinants of positive definite matrices (d, d, b).

    Where a matrix is not positive definite the logarithm is no number.
    """
    size = len(matrix)
    if size > _SMALL:
        each = np.moveaxis(matrix, 2, 0)
        sign, logarithm = np.linalg.slogdet(each)
        inverse = np.linalg.inv(each).transpose(1, 2, 0)
        return np.ascontiguousarray(inverse), np.where(sign > 0.0, logarithm, np.nan)
    # Sweeping one row and column after the other: pivots are the conditional variances.
    swept, pivots = matrix.copy(), np.empty(matrix.shape[1:])
    for k in range(size):
        pivots[k] = swept[k, k]
        column = swept[:, k] / pivots[k]
        # The sweep operator (Beaton 1964): after all columns the matrix is minus its inverse.
        swept -= outer(column, swept[k])
        swept[:, k] = swept[k] = column
        swept[k, k] = -1.0 / pivots[k]
    return np.negative(swept, out=swept), np.log(pivots).sum(axis=0)


def multivariate_gamma(half: Floats, size: int) -> tuple[Floats, Floats]:
    """Return log Gamma_d(half) of (b,), up to a constant, and its derivative.

    Two factors at a time, by Legendre's duplication formula: Gamma(a) Gamma(a - 1/2) is 4^-a Gamma(2 a - 1)
    but for a constant.
    """
    from scipy.special import digamma, gammaln

    pairs = size // 2
    # Gamma_d(a) = const prod_i Gamma(a - i / 2), i = 0..d - 1, two factors at a time.
    doubled = 2.0 * (half - np.arange(pairs)[:, None]) - 1.0
    value: Floats = gammaln(doubled).sum(axis=0) - 2.0 * pairs * np.log(2.0) * half
    derivative: Floats = 2.0 * (digamma(doubled).sum(axis=0) - pairs * np.log(2.0))
    if size % 2:
        left = half - (size - 1) / 2.0
        value, derivative = value + gammaln(left), derivative + digamma(left)
    return value, derivative
