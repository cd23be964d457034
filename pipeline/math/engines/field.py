r"""Posterior draws of a pairwise Markov random field behind noisy tables of some of its variables.

.. math::
    p(x \mid \theta) \propto e^{\sum_i \theta_i(x_i) + \sum_{ij} \theta_{ij}(x_i, x_j)}, \qquad
    N \sim \text{flat}, \qquad n \mid N, \theta \sim \mathrm{Multinomial}(N, p), \qquad
    y = M n + \mathrm{DLap}_b

with n the exact counts of all combinations x, and a row of M for every entry of a released table. Effects
sum to 0 over each variable and are independent Normal(0, s^2) on orthonormal contrasts: the prior does not
depend on the order of categories.

A multinomial table with a flat N is a Poisson one with a flat total :math:`\mu`. With features
X = (1, contrasts), :math:`\eta = (\alpha, \theta)` and :math:`S(\eta) = \sum_x e^{X_x \eta} = \mu`, the
sufficient statistics are :math:`t = X^T n`, and the tables of one and two variables are linear in them. Their
law is that of a curved Poisson family:

.. math::
    p(t \mid \eta) = h(t) e^{t^T \eta - S(\eta)} \approx (2 \pi)^{-R / 2}
    |H(\zeta)|^{-1/2} e^{-D(\zeta, \eta)}, \qquad t = \nabla S(\zeta), \quad H = \nabla^2 S,  \qquad (1)

    D(\zeta, \eta) = (\zeta - \eta)^T t - S(\zeta) + S(\eta)

the saddlepoint approximation (Daniels 1954), in which t takes every real value that a table of positive
numbers has. With :math:`dt = |H(\zeta)| \, d\zeta`, and :math:`m = e^{X \zeta}`,

.. math::
    \log p(\eta, \zeta \mid y) = -\frac{|\theta|^2}{2 s^2} + \log S(\eta) - D(\zeta, \eta)
    + \tfrac 1 2 \log |H(\zeta)| - \frac{|y - M m|_1}{b} + \text{const}  \qquad (2)

where :math:`\log S(\eta)` makes the flat law of mu one of alpha. Draws are by Hamiltonian Monte Carlo.
Errors: that of Monte Carlo, and that of (1). It is large where an entry may well be expected to be empty, as
the exact law has an atom at 0 and this one has not. Of eight tables of two binary variables, in which no
entry's chance to be expected below 2 was above .24, means were off by at most .06 posterior standard
deviations, and these by at most 9 %; of three with a released entry of 0 or less, by up to .55 and 30 %.
Of four releases of three binary variables, of 24 to 44 rows and noise of scale .7 to 2, against sums over
every table of counts, they were off by at most .09 and 7 %, with a Monte Carlo standard error of .04; of one
with seven entries of 0 or 1, by .6.

====== ============== ========================================= ==========================
symbol in the code    meaning                                   shape
====== ============== ========================================= ==========================
X      ``features``   1 and contrasts of every combination      (J, R)
M      ``margins``    which combinations an entry counts        (K, J)
y      ``counts``     released entries                          (K,)
b      ``scales``     of their noise                            (K,)
s      ``sds``        prior standard deviations; infinite: flat (R,)
====== ============== ========================================= ==========================

References
----------
Daniels. Saddlepoint approximations in statistics. Annals of Mathematical Statistics 25, 1954.
Barndorff-Nielsen, Cox. Edgeworth and saddle-point approximations with statistical applications. JRSS B 41,
1979. Foulds, Geumlek, Welling, Chaudhuri. On the theory and practice of privacy-preserving Bayesian data
analysis. UAI 2016, section 4.2.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from suffice.pipeline.math.engines.multivariate.hmc import sample_until_settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Cells, Floats

N_CHAINS = 8
LARGEST_EXPONENT = 60.0
"""Of an expected count: a proposal beyond it is rejected."""


def contrasts(size: int) -> Floats:
    """Return orthonormal columns that sum to 0, (size, size - 1): Helmert contrasts."""
    columns = np.zeros((size, size - 1))
    for column in range(size - 1):
        columns[: column + 1, column] = 1.0
        columns[column + 1, column] = -(column + 1.0)
    unit: Floats = columns / np.linalg.norm(columns, axis=0)
    return unit


def blocks(sizes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, ...], slice]:
    """Return which columns of the features are the effects of each variable and of each pair."""
    columns, start = {}, 1
    for names in [*((variable,) for variable in range(len(sizes))), *pairs]:
        width = int(np.prod([sizes[name] - 1 for name in names]))
        columns[names] = slice(start, start + width)
        start += width
    return columns


def features(sizes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Floats:
    """Return X, (J, R): 1, contrasts of each variable, and products of contrasts of each pair.

    Combinations are in C order: the last variable runs fastest.
    """
    codes = np.array(list(itertools.product(*map(range, sizes))))
    single = [contrasts(size)[codes[:, variable]] for variable, size in enumerate(sizes)]
    products = [np.einsum("xi,xj->xij", single[i], single[j]).reshape(len(codes), -1) for i, j in pairs]
    return np.concatenate([np.ones((len(codes), 1)), *single, *products], axis=1)


def margins(sizes: Sequence[int], table: Sequence[int]) -> Floats:
    """Return M of one table over some variables, its entries in C order; (K, J), of 0 and 1."""
    codes = np.array(list(itertools.product(*map(range, sizes))))
    entry = np.ravel_multi_index(tuple(codes[:, list(table)].T), tuple(sizes[name] for name in table))
    entries = np.arange(math.prod(sizes[name] for name in table))
    return np.asarray(entries[:, None] == entry, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyField:
    """What is known of a field: its features, released counts and their noise, and the prior.

    Attributes
    ----------
    features : ndarray of shape (J, R), float64
    margins : ndarray of shape (K, J), float64
    counts : ndarray of shape (K,), float64
    scales : ndarray of shape (K,), float64, > 0
    sds : ndarray of shape (R,), float64
        The first one is infinite: alpha has no prior of its own.
    """

    features: Floats
    margins: Floats
    counts: Floats
    scales: Floats
    sds: Floats

    def log_density(self, eta: Floats, zeta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (2) and its gradients by eta and zeta; arguments (R, n_chains), densities (n_chains,)."""
        x = self.features
        log_l, log_m = x @ eta, x @ zeta
        is_far = (np.abs(log_l) > LARGEST_EXPONENT).any(axis=0) | (log_m > LARGEST_EXPONENT).any(axis=0)
        l = np.exp(np.clip(log_l, -LARGEST_EXPONENT, LARGEST_EXPONENT))  # noqa: E741 - lambda
        m = np.exp(np.clip(log_m, -LARGEST_EXPONENT, LARGEST_EXPONENT))
        total, t = l.sum(axis=0), x.T @ m
        # D(zeta, eta), and H(zeta) = X^T diag(m) X of every chain.
        distance = np.sum((zeta - eta) * t, axis=0) - m.sum(axis=0) + total
        curvature = (x.T * m.T[:, None]) @ x
        curvature += 1e-12 * np.einsum("crr->c", curvature)[:, None, None] * np.eye(x.shape[1])
        _, log_determinant = np.linalg.slogdet(curvature)
        left = self.counts[:, None] - self.margins @ m
        value = (
            -0.5 * np.sum((eta / self.sds[:, None]) ** 2, axis=0)
            + np.log(total)
            - distance
            + 0.5 * log_determinant
            - np.sum(np.abs(left) / self.scales[:, None], axis=0)
        )
        mean = x.T @ l
        by_eta = -eta / self.sds[:, None] ** 2 + mean / total + t - mean
        # d log|H| / d zeta = sum_x m_x (X_x H^-1 X_x^T) X_x.
        leverage = np.sum((x @ np.linalg.inv(curvature)) * x, axis=2).T
        slope = self.margins.T @ (np.sign(left) / self.scales[:, None])
        by_zeta = -np.einsum("crs,sc->rc", curvature, zeta - eta) + x.T @ (m * (0.5 * leverage + slope))
        return np.where(is_far, -np.inf, value), by_eta, by_zeta

    def tables(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return expected rows, (n,), and expected entries, (K, n), of parameters (R, n)."""
        expected = np.exp(self.features @ eta)
        return expected.sum(axis=0), self.margins @ expected

    def centre(self) -> tuple[Floats, Floats]:
        """Return a most probable eta under normal noise, and the precision of (eta, zeta) about it."""
        from scipy.optimize import least_squares

        x, variance = self.features, 2.0 * self.scales**2
        weight = 1.0 / np.sqrt(variance + np.maximum(self.counts, 1.0))
        start = np.zeros(x.shape[1])
        largest = max(float(self.counts.sum() / max(self.margins[:, 0].sum(), 1.0)), 1.0)
        start[0] = np.log(largest / len(x))

        def residuals(eta: Floats) -> Floats:
            m = np.exp(np.minimum(x @ eta, LARGEST_EXPONENT))
            return np.concatenate([(self.margins @ m - self.counts) * weight, eta[1:] / self.sds[1:]])

        eta = least_squares(residuals, start, x_scale=1.0, max_nfev=200).x
        m = np.exp(np.minimum(x @ eta, LARGEST_EXPONENT))
        slope = self.margins @ (m[:, None] * x)
        return eta, precision_of(x.T @ (m[:, None] * x), slope, variance, self.sds)


def precision_of(curvature: Floats, slope: Floats, variance: Floats, sds: Floats) -> Floats:
    """Return the precision of (eta, zeta) under normal noise: H, the slope of entries by zeta, and noise."""
    curvature = curvature + 1e-9 * np.eye(len(sds))
    of_noise = slope.T @ (slope / variance[:, None])
    both = np.block([[curvature + np.diag(1.0 / sds**2), -curvature], [-curvature, curvature + of_noise]])
    precision: Floats = both + 1e-9 * np.eye(len(both))
    return precision


class Noisy(Protocol):
    """A field behind noisy tables: with sums over all combinations, or along trees."""

    def tables(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return expected rows, (n,), and expected entries, (K, n), of parameters (R, n)."""
        ...

    def log_density(self, eta: Floats, zeta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (2) and its gradients by eta and zeta; arguments (R, n_chains), densities (n_chains,)."""
        ...

    def centre(self) -> tuple[Floats, Floats]:
        """Return an eta near a most probable one, and the precision of (eta, zeta) about it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whitened:
    """The density of x, where (eta, zeta) = middle + root x."""

    field: Noisy
    middle: Floats
    root: Floats

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        both = self.middle[:, None] + self.root @ x
        half = len(both) // 2
        value, by_eta, by_zeta = self.field.log_density(both[:half], both[half:])
        return value, self.root.T @ np.concatenate([by_eta, by_zeta])

    def take(self, cells: Cells) -> Self:  # noqa: ARG002 - there is one cell
        return self


def draw(field: Noisy, iterations: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw eta and zeta, each (iterations, N_CHAINS, R)."""
    eta, precision = field.centre()
    # The covariance is root root^T, from the Cholesky factor of its inverse.
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    target = _Whitened(field=field, middle=np.concatenate([eta, eta]), root=root)
    size = len(root)
    start = rng.standard_normal((size, 1, N_CHAINS))
    kept = sample_until_settled(target, start, np.ones((size, 1)), iterations, rng)[:, :, 0]
    both = target.middle[:, None] + np.einsum("rs,isc->irc", root, kept)
    return both[:, : size // 2].transpose(0, 2, 1), both[:, size // 2 :].transpose(0, 2, 1)
