"""What N rows may have been, on a grid of means and deviations, and the likelihood of that; see ``rows``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What N rows may have been.

    Attributes
    ----------
    n : float
    mean, blur : ndarray of shape (n_means,), float64
        Means of rows, and the variance of a point of their grid.
    alpha : float
        (N - 1) / 2, or less where that is far finer than the noise.
    log_e : ndarray of shape (n_deviations,), float64
        Of the first only the upper end is stated: it stands for all below.
    weight : ndarray of shape (n_deviations, n_means), float64
        The noise's, over that of the whole at its highest, times the prior of N and the area.
    is_outer : ndarray of shape (n_deviations, n_means), bool
        Where the noise leaves hardly anything.
    """

    n: float
    mean: Floats
    blur: Floats
    alpha: float
    log_e: Floats
    weight: Floats
    is_outer: NDArray[np.bool_]

    def log_likelihood(self, mean: Floats, log_variance: Floats) -> Floats:
        """Log likelihoods at positions (n, p) and (n, q): (n, p, q)."""
        along = self._of_deviations(log_variance)
        width = self.blur + np.exp(log_variance)[:, :, None] / self.n
        along -= np.log(2.0 * math.pi * width) / 2.0
        parts = (mean[:, :, None] - self.mean) ** 2
        parts = parts[:, :, None, :] * (-0.5 / width)[:, None, :, :]
        parts += along[:, None]
        top = np.maximum(np.max(parts, axis=-1), -1e300)
        parts -= top[..., None]
        with np.errstate(divide="ignore"):
            log_likelihood: Floats = top + np.log(np.sum(np.exp(parts, out=parts), axis=-1))
        return log_likelihood

    def _of_deviations(self, log_variance: Floats) -> Floats:
        """Logs of the sums over deviations, at positions (n, q): (n, q, n_means)."""
        from scipy.special import gammainc

        if self.n < 2.0:
            with np.errstate(divide="ignore"):
                return np.broadcast_to(np.log(self.weight[0]), (*log_variance.shape, len(self.mean))).copy()
        alpha = self.alpha
        level = self.log_e[1:] + math.log(self.n / (self.n - 1.0))
        distance = level - log_variance[:, :, None]
        distribution = float(log_height(np.array(alpha))) - alpha * (np.expm1(distance) - distance)
        below = gammainc(
            (self.n - 1.0) / 2.0, self.n / 2.0 * np.exp(np.minimum(self.log_e[0] - log_variance, 600.0))
        )
        if not np.any(self.weight[0]):
            below = np.zeros_like(below)
        with np.errstate(divide="ignore"):
            distribution = np.concatenate([np.log(below)[:, :, None], distribution], axis=2)
            top = np.maximum(np.max(distribution, axis=2, keepdims=True), -1e300)
            return np.asarray(top + np.log(np.exp(distribution - top) @ self.weight), dtype=np.float64)


def log_height(concentration: Floats) -> Floats:
    """Return a log a - a - log gamma(a)."""
    from scipy.special import gammaln

    large = np.maximum(concentration, 100.0)
    series = 0.5 * np.log(large / (2.0 * np.pi)) - 1.0 / (12.0 * large) + 1.0 / (360.0 * large**3)
    small = np.minimum(concentration, 100.0)
    exact = small * np.log(small) - small - gammaln(small)
    return np.where(concentration < 100.0, exact, series)
