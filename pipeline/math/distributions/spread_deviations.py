r"""Standard deviations and correlations that say nothing of each other: the default prior of several columns.

A standard deviation s, in half ranges of its column's bounds, has with :math:`l = 10^{-4}` and
:math:`\Lambda = \log(1 / l)` the density of :math:`\log s`

.. math:: q(s) = \Bigl[ \frac 1 {20} \cdot \frac{1 - l^8}{\Lambda\, (1 + (l / s)^8)}
    + \frac {19} {20} \cdot \frac{8}{\sqrt 2\, \pi}\, s^2 \Bigr] \frac{1}{1 + s^8}, \qquad (1)

a twentieth even over four decades, the rest flat in the variance, both up to about the half range. The even
part is a uniform number plus a logistic one of scale 1/8; the eighth power of the flat part is a ratio of
gamma numbers of 1/4 and 3/4. Where noise hides a variance, the flat part leaves its upper end, and that of
covariances, where the data leave it; the even part keeps a lower end below variances that are far smaller.

Correlations R are those of an inverse Wishart of :math:`\nu = 2 a + d - 1` degrees of freedom and scale I.
With P the inverse of R,

.. math:: p(R) = \frac{\Gamma(\nu / 2)^d}{\Gamma_d(\nu / 2)}\, |R|^{-(\nu + d + 1) / 2}
    \prod_j P_{jj}^{-\nu / 2}, \qquad \frac{1 + R_{ij}}{2} \sim \mathrm{Beta}(a, a), \qquad (2)

the same at every d (Barnard, McCulloch, Meng). An inverse Wishart whose scales :math:`v_j` are flat in their
logarithms, :math:`-\infty..\infty`, has (2) and standard deviations that are flat in theirs, so that

.. math:: p(\Sigma) \propto \int \mathrm{IW}(\Sigma;\ \nu,\ \operatorname{diag}(v_j)) \prod_j q(s_j)\,
    d \log v_j. \qquad (3)

Were q put on the scales :math:`v_j` instead, R would depend on s: a scale is about :math:`s_j^2 / P_{jj}`,
what a column has for itself. A density :math:`v^c` of scales weighs R by :math:`\prod_j P_{jj}^{-c}` given s,
which draws correlations to 0, and the more so the more columns there are.

Given n rows and their scatter, :math:`\Sigma_{jj}` is inverse gamma, of concentration :math:`a + n / 2` and
scale :math:`A_{jj} / 2` (``exact_moments``), but for q.

**Approximation.** There q is taken at one standard deviation, and the variances are moved by what its slope
:math:`k = d \log q / d \log s` moves their logarithms by:

.. math:: \hat s_j^2 = \frac{A_{jj}}{2 a + n^2 / (n + r)}, \quad r = 3 \text{ (2 about 0)}; \qquad
    A_{ij} \to A_{ij}\, e^{(k_i + k_j) / (4 a + 2 n)}. \qquad (4)

Where q is flat in the variance, :math:`\hat s^2` is the mean of the variance but for 1 / n^2; q of several
columns is a product of means for the mean of a product, right to :math:`2 \rho^2 / n` a pair. Of 20 rows,
their number private, upper quantiles of variances came out too high by .2 of their standard deviations.

Symbols:

- s, q: ``deviation``, in half ranges of the prior, and ``log_density``
- a: ``concentration``, > 0; l, Lambda: ``LEAST``, ``DECADES`` in nats
- A_jj, n: ``scale``, ``n``, as they broadcast

References
----------
Barnard, McCulloch, Meng. Modeling covariance matrices in terms of standard deviations and correlations, with
application to shrinkage. Statistica Sinica 10, 2000.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats

CONCENTRATION = 0.5
"""a of the default: every correlation has the arcsine law."""
EVEN = 0.05
"""The part of the weight that is even over the decades."""
LEAST = 1e-4
"""l: about the least standard deviation that the prior expects, in half ranges."""
DECADES = -math.log(LEAST)
_EVEN = EVEN * (1.0 - LEAST**8) / DECADES
_FLAT = (1.0 - EVEN) * 8.0 / math.sqrt(2.0) / math.pi


def log_density(deviation: Any, log: Callable[[Any], Any]) -> Any:
    """Return log q(s), by NumPy's or JAX's logarithm."""
    # (1), by (s / l)^8: its inverse has no end where chains come to columns that do not vary.
    least = (deviation / LEAST) ** 8
    inside = _EVEN * least / (1.0 + least) + _FLAT * deviation**2
    return log(inside) - log(1.0 + deviation**8)


def slope(deviation: Floats) -> Floats:
    """Return k, the derivative of log q(s) by log s."""
    least, above = (deviation / LEAST) ** 8, deviation**8
    even, flat = _EVEN * least / (1.0 + least), _FLAT * deviation**2
    risen = even * 8.0 / (1.0 + least) + 2.0 * flat
    by_log: Floats = risen / (even + flat) - 8.0 * above / (1.0 + above)
    return by_log


def sample(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw standard deviations, in half ranges."""
    even = np.exp(rng.logistic(scale=0.125, size=shape) - DECADES * rng.uniform(size=shape))
    ratio = rng.standard_gamma(0.25, shape) / rng.standard_gamma(0.75, shape)
    drawn: Floats = np.where(rng.uniform(size=shape) < EVEN, even, ratio**0.125)
    return drawn


def freedom(concentration: float, columns: int) -> float:
    """Return nu, the degrees of freedom of (2)."""
    return 2.0 * concentration + columns - 1.0


def log_density_of_correlations(correlation: Floats, concentration: float) -> Floats:
    """Return the log of (2), (n,), of correlation matrices (n, d, d)."""
    from scipy.special import gammaln, multigammaln

    size = correlation.shape[-1]
    half = freedom(concentration, size) / 2.0
    inverse = np.einsum("nii->ni", np.linalg.inv(correlation))
    constant = size * gammaln(half) - multigammaln(half, size)
    determinant = np.linalg.slogdet(correlation)[1]
    density: Floats = (
        constant - (half + (size + 1.0) / 2.0) * determinant - half * np.log(inverse).sum(axis=1)
    )
    return density


def rows_that_count(n: Any, concentration: float, *, linear: bool) -> tuple[Any, Any]:
    """Return what divides A in (4), and its derivative by n."""
    taken = 3.0 if linear else 2.0
    share = n / (n + taken)
    return 2.0 * concentration + n * share, share * (2.0 - share)


def moved(scale: Floats, n: Floats, half_range: Floats, concentration: float, *, linear: bool) -> Floats:
    """Return A (n_cells, d, d) of n rows (n_cells,) moved as in (4); half ranges (d,) in the unit of A."""
    count, _ = rows_that_count(n, concentration, linear=linear)
    deviation = np.sqrt(np.einsum("cii->ci", scale) / count[:, None]) / half_range
    factor = np.exp(slope(deviation) / (4.0 * concentration + 2.0 * n)[:, None])
    return scale * factor[:, :, None] * factor[:, None, :]
