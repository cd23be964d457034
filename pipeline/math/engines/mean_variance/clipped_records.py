"""Moments of a normal record clipped to -1..1, under any mean and variance; (3) is that of ``slices``."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.distributions.many_cells import CLIPPED_MOMENTS
from suffice.pipeline.math.engines.mean_variance.distribution import highest

if TYPE_CHECKING:
    from suffice.typing import Floats, Mask

_NODES = 48
_FARTHEST = 8.5
"""Standard deviations beyond which a normal distribution has next to nothing."""
_NOWHERE = 40.0
"""Standard deviations beyond which it has nothing at all."""
_CONSTANT = 1e-100
"""Variances in those of the normal distribution below which all records are at one bound."""
_LEAST_VARIANCE = 1e-60
"""Variance, in half ranges squared, that no noise lets anyone see."""
LEAST_SHARE = 0.02
"""What is left at least of the expected mean square deviation, far from the expected mean."""
TWO_VALUES = -2.0
"""The least that gamma of (3) can be: of records at two values."""
AT_A_BOUND = 1e4
"""Kurtosis, over N, above which all records are at one bound but for one in a thousand samples."""
LEAST_SPREAD = 1.0 / 16.0
"""Variance of E given m, over its expectation squared, times N: less where most records are at the bounds."""

_FAR_MEANS = np.sinh(np.linspace(-4.0, 4.0, 33))
_FAR_SCALES = np.linspace(-18.0, 7.0, 26)
"""Means, and log variances, that are searched for those of records before they were clipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedRecords:
    """Moments of one clipped record, under every mean and variance; all arrays of one shape.

    Attributes
    ----------
    mean, variance : ndarray, float64
    skewed : ndarray, float64
        Third moment about the mean over the variance.
    kurtosis : ndarray, float64
        Fourth moment about the mean over the variance squared.
    """

    mean: Floats
    variance: Floats
    skewed: Floats
    kurtosis: Floats

    @classmethod
    def of(cls, mean: Floats, log_variance: Floats, *, by_loops: bool = False) -> Self:
        """Integrate over what is not clipped; the arrays broadcast. Terms of one sign lose no digits."""
        from scipy.special import ndtr

        mean, sd = np.broadcast_arrays(mean, np.exp(log_variance / 2.0))
        low, high = (np.clip((bound - mean) / sd, -_NOWHERE, _NOWHERE) for bound in (-1.0, 1.0))
        nodes, weights = _rule()
        first, last = np.clip(low, -_FARTHEST, _FARTHEST), np.clip(high, -_FARTHEST, _FARTHEST)
        if by_loops:
            central = np.empty((4, *mean.shape))
            pairs = (low, high), (first, last), (ndtr(low), ndtr(-high))
            ends, inner, tails = (np.array(pair).reshape(2, -1) for pair in pairs)
            kernel().set_moments(ends, inner, tails, nodes, weights, central.reshape(4, -1))
            return cls._of_central(mean, sd, central)
        half = (last - first) / 2.0
        place = ((first + last) / 2.0)[..., None] + half[..., None] * nodes
        # t has a normal density inside of -1..1, and the normal tails as point masses at both ends.
        mass = half[..., None] * weights * np.exp(-(place**2) / 2.0)
        at_low, at_high = ndtr(low), ndtr(-high)
        mass /= (np.sum(mass, axis=-1) + at_low + at_high)[..., None]

        def moments(about: Floats, degrees: int) -> list[Floats]:
            inner, below, above = place - about[..., None], low - about, high - about
            moments, power = [], mass
            for degree in range(1, degrees + 1):
                power = power * inner
                moments.append(np.sum(power, axis=-1) + at_low * below**degree + at_high * above**degree)
            return moments

        # From where most records are: the middle of the distribution, or the bound next to it.
        origin = np.clip(0.0, low, high)
        (away,) = moments(origin, 1)
        # Central moments about E t: all terms of the even ones have one sign.
        return cls._of_central(mean, sd, np.stack([away, *moments(origin + away, 4)[1:]]))

    @classmethod
    def _of_central(cls, mean: Floats, sd: Floats, central: Floats) -> Self:
        """Return moments of records from standardised ones: by how much E t is off, and central ones."""
        away, second, third, fourth = central
        varies = second > _CONSTANT
        divisor = np.where(varies, second, 1.0)
        return cls(
            mean=np.clip(np.clip(mean, -1.0, 1.0) + sd * away, -1.0, 1.0),
            variance=np.maximum(sd**2 * second, _LEAST_VARIANCE),
            skewed=np.where(varies, sd * third / divisor, 0.0),
            kurtosis=np.where(varies, fourth / divisor / divisor, 3.0),
        )

    def flat(self) -> Self:
        """All in one dimension."""
        return replace(self, **{name: getattr(self, name).ravel() for name in self.__slots__})

    def take(self, part: slice) -> Self:
        """Some of those in one dimension."""
        return replace(self, **{name: getattr(self, name)[part] for name in self.__slots__})

    def deviations(self, n: float, mean: Floats) -> tuple[Floats, Floats]:
        """Expected mean square deviations of n records at means (n_means,), and the gamma's shape.

        Returns
        -------
        expected : ndarray of shape (..., n_means)
        shape : ndarray of shape (...)
        """
        part = (n - 1.0) / n
        middle, curved = part * self.variance, self.curved(n)
        skewed = np.where(self._varies(n), self.skewed, 0.0)
        away = mean - self.mean[..., None]
        # (3).
        expected = away * (part * skewed[..., None] + curved[..., None] / 2.0 * away)
        expected += (middle - curved / 2.0 * self.variance / n)[..., None]
        # Records within -1..1 deviate by no more.
        expected = np.minimum(expected, 1.0 - mean**2)
        return np.maximum(expected, LEAST_SHARE * middle[..., None]), self.shape(n)

    def _varies(self, n: float) -> Mask:
        """Whether n records are not all at one bound."""
        return np.asarray(self.kurtosis < AT_A_BOUND * n)

    def curved(self, n: float) -> Floats:
        """Second derivatives of the variance as a function of the mean, the gamma of (3), for n records."""
        curved = np.maximum(self.kurtosis - 3.0 - self.skewed**2 / self.variance, TWO_VALUES)
        return np.where(self._varies(n), curved, 0.0)

    def shape(self, n: float) -> Floats:
        """Shapes of the gammas that deviations of n records follow."""
        # Var E over ((N - 1) kappa_2 / N)^2 is (kappa_4 / kappa_2^2 + 2 N / (N - 1)) / N, less what (3)
        # explains of it by m.
        curved = self.curved(n)
        spread = (curved + 2.0 + 2.0 / (n - 1.0)) / n - curved**2 / (2.0 * (n - 1.0) ** 2)
        return np.asarray(1.0 / np.maximum(spread, LEAST_SPREAD / n))


@lru_cache(maxsize=64)
def before_clipping(moments: tuple[float, float], widths: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the mean and the log variance of records that have these moments after they were clipped.

    Parameters
    ----------
    moments : (float, float)
        The mean of clipped records, and the log of their mean square deviation.
    widths : (float, float)
        How well each is known: the parameters are within about that.

    Returns
    -------
    parameters : ndarray of shape (2,), float64
        Within ``_FAR_MEANS`` and ``_FAR_SCALES``, where nothing closer was found.
    slopes : ndarray of shape (2, 2), float64
        Derivatives of the parameters (rows) by the moments.
    """

    def fit(mean: Floats, log_variance: Floats) -> Floats:
        records = ClippedRecords.of(mean[:, :, None], log_variance[:, None, :])
        off = ((records.mean - moments[0]) / widths[0], (np.log(records.variance) - moments[1]) / widths[1])
        return np.asarray(-(off[0] ** 2 + off[1] ** 2) / 2.0)

    peak, _ = highest(fit, (_FAR_MEANS, _FAR_SCALES))
    step = np.array([1e-4 * np.exp(peak[1] / 2.0), 1e-4])
    moved = peak + np.concatenate([np.diag(step), -np.diag(step)])
    near = ClippedRecords.of(moved[:, 0], moved[:, 1])
    values = np.stack([near.mean, np.log(near.variance)])
    # The inverse function theorem; where nothing is seen of a parameter its slope is 0.
    return peak, np.linalg.pinv((values[:, :2] - values[:, 2:]) / (2.0 * step), rcond=1e-6)


@cache
def _rule() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights / np.sqrt(2.0 * np.pi)


@cache
def kernel() -> Any:
    """Return the module of compiled loops."""
    # Late: compiled code takes longer to load than a few cells take.
    return importlib.import_module(CLIPPED_MOMENTS.module)
