r"""Small matrices and special functions of many states side by side, in compiled loops.

Every array has states last, ``LANES`` of them: the innermost loops become vector instructions, and what a
block of states needs stays in the nearest caches. Sizes are those of the columns, so that loops around them
are short.

For x above 0, by eight steps of the recurrence and Stirling's series at y = x + 8,

.. math:: \log \Gamma(x) = \log \Gamma(y) - \log \prod_{i=0}^7 (x + i), \qquad
    \psi(x) = \psi(y) - \sum_{i=0}^7 \frac 1 {x + i}. \qquad (1)

Series end below 1e-14. Logarithms of what is no number above 0 are no numbers.
"""

# ruff: noqa: C901, PLR0912 - compiled loops, one step after the other

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.machine_code import merged, vectorised
from suffice.pipeline.math.distributions.vector_functions import exp, log

if TYPE_CHECKING:
    from suffice.typing import Floats

LANES = 64
"""States side by side: enough that loops are long, few enough that all arrays stay in a near cache."""
_LEAST, _MOST = 1e-300, 1e300
_HIGHEST = 700.0
_HALF_LOG_2_PI = 0.9189385332046727
_LOG_2 = 0.6931471805599453


@merged
def logarithm(x: float) -> float:
    """Logarithm; no number where there is none, or where x overflows."""
    return log(x) if _LEAST < x < _MOST else math.nan


@merged
def exponential(x: float) -> float:
    """Exponential; of more than 700 that of 700, which is far beyond what is likely."""
    return exp(min(x, _HIGHEST))


@merged
def gamma_functions(x: float) -> tuple[float, float]:
    """Logarithm of the gamma function, and its derivative, of a number above 0."""
    product, derivative = x, 1.0
    for i in range(1, 8):
        # (1): the product, and its derivative by x, whose ratio is the sum.
        derivative = derivative * (x + i) + product
        product *= x + i
    y = x + 8.0
    log_y, inverse = logarithm(y), 1.0 / y
    square = inverse * inverse
    # Stirling: B_2k / (2 k (2 k - 1) y^(2 k - 1)), and B_2k / (2 k y^2k).
    series = -691.0 / 360360.0 * square + 1.0 / 1188.0
    series = series * square - 1.0 / 1680.0
    series = series * square + 1.0 / 1260.0
    series = series * square - 1.0 / 360.0
    series = (series * square + 1.0 / 12.0) * inverse
    slopes = 1.0 / 12.0 * square - 691.0 / 32760.0
    slopes = slopes * square + 1.0 / 132.0
    slopes = slopes * square - 1.0 / 240.0
    slopes = slopes * square + 1.0 / 252.0
    slopes = slopes * square - 1.0 / 120.0
    slopes = (slopes * square + 1.0 / 12.0) * square
    value = (y - 0.5) * log_y - y + _HALF_LOG_2_PI + series - logarithm(product)
    return value, log_y - 0.5 * inverse - slopes - derivative / product


@vectorised
def add_multivariate_gamma(half: Floats, size: int, value: Floats, derivative: Floats) -> None:
    """Set log Gamma_d(half), up to a constant, and its derivative; see ``evidence.multivariate_gamma``."""
    pairs = size // 2
    for s in range(LANES):
        value[s], derivative[s] = -2.0 * pairs * _LOG_2 * half[s], -2.0 * pairs * _LOG_2
    for i in range(pairs):
        for s in range(LANES):
            log_gamma, digamma = gamma_functions(2.0 * (half[s] - i) - 1.0)
            value[s] += log_gamma
            derivative[s] += 2.0 * digamma
    if size % 2:
        for s in range(LANES):
            log_gamma, digamma = gamma_functions(half[s] - (size - 1) / 2.0)
            value[s] += log_gamma
            derivative[s] += digamma


@vectorised
def invert(matrix: Floats, size: int, log_determinant: Floats, row: Floats, column: Floats) -> None:
    """Invert positive definite matrices in place, by their lower triangles; set the log determinants."""
    for s in range(LANES):
        log_determinant[s] = 0.0
    for k in range(size):
        for i in range(size):
            above, below = min(i, k), max(i, k)
            for s in range(LANES):
                row[i, s] = matrix[below, above, s]
        for s in range(LANES):
            log_determinant[s] += logarithm(row[k, s])
            column[k, s] = 1.0 / row[k, s]
        # The sweep operator (Beaton 1964): after all columns the matrix is minus its inverse.
        for i in range(size):
            if i == k:
                continue
            for s in range(LANES):
                column[i, s] = row[i, s] * column[k, s]
            for j in range(i + 1):
                if j == k:
                    continue
                for s in range(LANES):
                    matrix[i, j, s] -= column[i, s] * row[j, s]
        for i in range(size):
            above, below = min(i, k), max(i, k)
            sign = -1.0 if i == k else 1.0
            for s in range(LANES):
                matrix[below, above, s] = sign * column[i, s]
    for i in range(size):
        for j in range(i + 1):
            for s in range(LANES):
                matrix[i, j, s] = matrix[j, i, s] = -matrix[i, j, s]


@vectorised
def root_and_inverse(matrix: Floats, size: int, root: Floats, inverse: Floats, log_root: Floats) -> None:
    """Set lower roots of positive definite matrices, their inverses and log determinants."""
    for s in range(LANES):
        log_root[s] = 0.0
    for j in range(size):
        for i in range(j, size):
            for s in range(LANES):
                root[i, j, s] = matrix[i, j, s]
            # L_ij = (M_ij - sum_k L_ik L_jk) / L_jj.
            for k in range(j):
                for s in range(LANES):
                    root[i, j, s] -= root[i, k, s] * root[j, k, s]
            if i == j:
                for s in range(LANES):
                    log_root[s] += 0.5 * logarithm(root[j, j, s])
                    root[j, j, s] = math.sqrt(root[j, j, s])
            else:
                for s in range(LANES):
                    root[i, j, s] /= root[j, j, s]
    invert_lower(root, size, inverse)


@vectorised
def invert_lower(root: Floats, size: int, inverse: Floats) -> None:
    """Set the lower triangles of inverses of lower triangular matrices, row by row."""
    for i in range(size):
        for s in range(LANES):
            inverse[i, i, s] = 1.0 / root[i, i, s]
        for j in range(i):
            for s in range(LANES):
                inverse[i, j, s] = 0.0
            # Forward substitution: row i of L^-1.
            for k in range(j, i):
                for s in range(LANES):
                    inverse[i, j, s] -= root[i, k, s] * inverse[k, j, s]
            for s in range(LANES):
                inverse[i, j, s] *= inverse[i, i, s]
