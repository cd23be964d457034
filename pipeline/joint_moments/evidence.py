"""The evidence of any rows with given moments, parameters integrated out: logarithm and gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Moments of b chains at once: n (b,), mean (b, d), spread S / n (b, d, d), second moments Q / n."""

    n: Floats
    mean: Floats
    spread: Floats
    second: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """Derivatives of a function of moments: by n (b,), t (b, d), and Q (b, d, d), symmetric."""

    n: Floats
    total: Floats
    products: Floats

    def add(self, other: Gradient) -> None:
        """Add another function's derivatives, in place."""
        self.n[:] += other.n
        self.total[:] += other.total
        self.products[:] += other.products


class Evidence(Protocol):
    """The log evidence of rows with given moments, and its gradient."""

    def __call__(self, state: State) -> tuple[Floats, Gradient]:
        """Return the log evidence (b,), up to a constant, and its derivatives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalEvidence:
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

    def __call__(self, state: State) -> tuple[Floats, Gradient]:
        """Return the log evidence and its derivatives."""
        size, columns = len(self.loc), state.mean.shape[1]
        n, df = state.n, self.df + state.n
        precision = self.precision + n
        mean = state.mean[:, :size] if self.linear else np.zeros((len(n), size))
        if self.linear:
            distance = mean - self.loc
            between = (self.precision * n / precision)[:, None, None] * outer(distance, distance)
            scale = self.scale + n[:, None, None] * state.spread[:, :size, :size] + between
        else:
            scale = self.scale + n[:, None, None] * state.second[:, :size, :size]
        inverse, log_determinant = _inverse(scale)
        updated = (self.precision * self.loc + n[:, None] * mean) / precision[:, None]
        log_gamma, digamma = multivariate_gamma(df / 2.0, size)
        value = log_gamma - df / 2.0 * log_determinant
        by_n = digamma / 2.0 - log_determinant / 2.0
        gradient = _no_gradient(len(n), columns)
        gradient.products[:, :size, :size] = -df[:, None, None] / 2.0 * inverse
        if self.linear:
            weighted = np.einsum("bij,bj->bi", inverse, updated)
            value -= size / 2.0 * np.log(precision)
            by_n -= size / 2.0 / precision + df / 2.0 * np.einsum("bi,bi->b", updated, weighted)
            gradient.total[:, :size] = df[:, None] * weighted
        gradient.n[:] = by_n
        return value, gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionEvidence:
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

    def __call__(self, state: State) -> tuple[Floats, Gradient]:
        """Return the log evidence and its derivatives."""
        from scipy.special import digamma, gammaln  # noqa: PLC0415 - slow to import

        n, columns = state.n, state.mean.shape[1]
        last = columns - 1
        gram = n[:, None, None] * state.second[:, :last, :last]
        cross = n[:, None] * state.second[:, :last, last]
        if self.linear:
            ones = n[:, None] * state.mean[:, :last]
            gram = np.block([[gram, ones[:, :, None]], [ones[:, None, :], n[:, None, None]]])
            cross = np.concatenate([cross, (n * state.mean[:, last])[:, None]], axis=1)
        inverse, log_determinant = _inverse(self.precision + gram)
        right = self.precision @ self.loc + cross
        beta = np.einsum("bij,bj->bi", inverse, right)
        outcome = n * state.second[:, last, last]
        residual = outcome + self.loc @ self.precision @ self.loc - np.einsum("bi,bi->b", right, beta)
        concentration = self.concentration + n / 2.0
        scale = self.scale + np.maximum(residual, 0.0) / 2.0
        value = (
            gammaln(concentration)
            - log_determinant / 2.0
            - concentration * np.log(scale)
            - n / 2.0 * np.log(2.0)
        )
        weight = concentration / scale
        by_gram = -inverse / 2.0 - weight[:, None, None] / 2.0 * outer(beta, beta)
        by_cross = weight[:, None] * beta
        gradient = _no_gradient(len(n), columns)
        gradient.products[:, :last, :last] = by_gram[:, :last, :last]
        gradient.products[:, :last, last] = gradient.products[:, last, :last] = by_cross[:, :last] / 2.0
        gradient.products[:, last, last] = -weight / 2.0
        gradient.n[:] = (digamma(concentration) - np.log(scale) - np.log(2.0)) / 2.0
        if self.linear:
            gradient.total[:, :last] = 2.0 * by_gram[:, :last, last]
            gradient.total[:, last] = by_cross[:, last]
            gradient.n[:] += by_gram[:, last, last]
        return value, gradient


def _no_gradient(chains: int, columns: int) -> Gradient:
    return Gradient(
        n=np.zeros(chains),
        total=np.zeros((chains, columns)),
        products=np.zeros((chains, columns, columns)),
    )


def outer(left: Floats, right: Floats) -> Floats:
    """Return outer products of vectors (b, d)."""
    outer: Floats = left[:, :, None] * right[:, None, :]
    return outer


def _inverse(matrix: Floats) -> tuple[Floats, Floats]:
    """Return inverses and log determinants of positive definite matrices."""
    inverse: Floats = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    log_determinant: Floats = np.asarray(np.linalg.slogdet(matrix)[1], dtype=np.float64)
    return inverse, log_determinant


def multivariate_gamma(half: Floats, size: int) -> tuple[Floats, Floats]:
    """Return log Gamma_d(half), up to a constant, and its derivative."""
    from scipy.special import digamma, gammaln  # noqa: PLC0415 - slow to import

    arguments = half[:, None] - np.arange(size) / 2.0
    return gammaln(arguments).sum(axis=1), digamma(arguments).sum(axis=1)
