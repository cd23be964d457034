r"""Laws of the noise behind published numbers, by their tails in logarithms.

Models. Every law is symmetric about 0. With the scale b, or the standard deviation :math:`\sigma`,

.. math::
    p(z) = \frac{1}{2 b} e^{-|z| / b}, \qquad P(Z \ge z) = \tfrac 1 2 e^{-z / b}, \quad z \ge 0,
    \qquad (1)

.. math::
    P(Z = k) = \frac{1 - q}{1 + q} q^{|k|}, \qquad P(Z \ge k) = \frac{q^k}{1 + q},
    \quad k \ge 1, \quad q = e^{-1 / b}, \qquad (2)

.. math:: p(z) = \frac{1}{\sigma} \phi(z / \sigma), \qquad P(Z \ge z) = \Phi(-z / \sigma), \qquad (3)

.. math::
    P(Z = k) = \frac{1}{S} e^{-k^2 / 2 \sigma^2}, \qquad
    S = \sum_{j = -\infty}^\infty e^{-j^2 / 2 \sigma^2} : \qquad (4)

Laplace, geometric (discrete Laplace), Gaussian and discrete Gaussian. The second and the fourth are of whole
numbers k. :math:`P(Z \ge -z)` follows by symmetry, and a probability between two numbers from the tails on
the side on which both are small, so that nothing cancels far out.

Symbols:

- b: ``scale``, > 0; sigma: ``sd``, > 0, of (4) that of the Gaussian whose values are taken
- P(Z >= z): ``log_tail``, its logarithm

Method. Exact but for rounding. Tails of (4) are sums over all whole numbers within ``_TABLED`` sd; beyond,
every further term is smaller than the one before by the factor that the table ends with, and the sum is that
of a geometric series, off by less than a thousandth where probabilities are below e^-800. Of sd above 1e4
they are tails of (3) half a unit nearer, off by less than :math:`z^2 / 24 \sigma^4` of themselves.

References
----------
Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy. NeurIPS 2020. Ghosh, Roughgarden,
Sundararajan. Universally utility-maximizing privacy mechanisms. SIAM J. Comput. 41, 2012.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats

_TABLED = 40.0
_LARGEST_TABLE = 1e4
"""The standard deviation up to which a discrete Gaussian is summed: a table of 3 MB."""


@dataclass(frozen=True, slots=True)
class NoiseLaw(ABC):
    """A symmetric law of noise.

    Attributes
    ----------
    spread : float, > 0
        Its scale, or of the Gaussian ones its standard deviation.
    """

    spread: float
    is_whole: ClassVar[bool] = False

    @property
    @abstractmethod
    def sd(self) -> float:
        """The standard deviation of the noise."""

    @abstractmethod
    def log_density(self, noise: Floats) -> Floats:
        """Log densities; of laws of whole numbers log probabilities of whole numbers."""

    @abstractmethod
    def log_tail(self, noise: Floats) -> Floats:
        """Logarithms of P(Z >= noise); of laws of whole numbers at whole numbers."""

    @abstractmethod
    def reach(self, nats: float) -> float:
        """Return how far from 0 the tail is lower than the middle by so many nats."""

    def log_between(self, low: Floats, high: Floats) -> Floats:
        """Logarithms of P(low <= Z <= high); of laws of whole numbers both ends are whole, or infinite."""
        low, high = np.broadcast_arrays(np.asarray(low, np.float64), np.asarray(high, np.float64))
        # Both tails on the side on which they are small.
        is_mirrored = low + high < 0.0
        nearer, farther = np.where(is_mirrored, -high, low), np.where(is_mirrored, -low, high)
        more = self.log_tail(nearer)
        less = self.log_tail(farther + 1.0 if self.is_whole else farther)
        with np.errstate(divide="ignore", invalid="ignore"):
            # log(e^more - e^less).
            gap = np.where(less == -np.inf, -np.inf, less - more)
            return np.where(low > high, -np.inf, more + np.log(-np.expm1(np.minimum(gap, 0.0))))


@dataclass(frozen=True, slots=True)
class Laplace(NoiseLaw):
    """Laplace noise; ``spread`` is its scale."""

    @property
    def sd(self) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(2.0) * self.spread

    def log_density(self, noise: Floats) -> Floats:
        """Log densities."""
        density: Floats = -np.abs(noise) / self.spread - math.log(2.0 * self.spread)
        return density

    def log_tail(self, noise: Floats) -> Floats:
        """Logarithms of P(Z >= noise)."""
        # (1) on the right; on the left one less the other tail.
        half = np.exp(-np.abs(noise) / self.spread) / 2.0
        return np.where(noise >= 0.0, -noise / self.spread - math.log(2.0), np.log1p(-half))

    def reach(self, nats: float) -> float:
        """Return how far from 0 the tail is lower than the middle by so many nats."""
        return nats * self.spread


@dataclass(frozen=True, slots=True)
class Geometric(NoiseLaw):
    """Two-sided geometric noise, the discrete Laplace; ``spread`` is its scale."""

    is_whole: ClassVar[bool] = True

    @property
    def sd(self) -> float:
        """The standard deviation of the noise."""
        # The variance is 2 q / (1 - q)^2; of a small scale q is 0 in numbers.
        return math.sqrt(2.0) * math.exp(-0.5 / self.spread) / -math.expm1(-1.0 / self.spread)

    def log_density(self, noise: Floats) -> Floats:
        """Log probabilities of whole numbers."""
        # (1 - q) / (1 + q) = tanh(1 / 2b).
        probability: Floats = -np.abs(noise) / self.spread + math.log(math.tanh(0.5 / self.spread))
        return probability

    def log_tail(self, noise: Floats) -> Floats:
        """Logarithms of P(Z >= noise)."""
        normaliser = math.log1p(math.exp(-1.0 / self.spread))
        # (2); P(Z >= k) = 1 - P(Z >= 1 - k) where k is 0 or less.
        other = np.exp(np.minimum(noise - 1.0, 0.0) / self.spread - normaliser)
        with np.errstate(invalid="ignore"):
            return np.where(noise >= 1.0, -noise / self.spread - normaliser, np.log1p(-other))

    def reach(self, nats: float) -> float:
        """Return how far from 0 the tail is lower than the middle by so many nats."""
        return nats * self.spread + 1.0


@dataclass(frozen=True, slots=True)
class Gaussian(NoiseLaw):
    """Gaussian noise; ``spread`` is its standard deviation."""

    @property
    def sd(self) -> float:
        """The standard deviation of the noise."""
        return self.spread

    def log_density(self, noise: Floats) -> Floats:
        """Log densities."""
        density: Floats = -0.5 * (noise / self.spread) ** 2 - math.log(math.sqrt(2.0 * math.pi) * self.spread)
        return density

    def log_tail(self, noise: Floats) -> Floats:
        """Logarithms of P(Z >= noise)."""
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(-np.asarray(noise) / self.spread), dtype=np.float64)

    def reach(self, nats: float) -> float:
        """Return how far from 0 the tail is lower than the middle by so many nats."""
        return math.sqrt(2.0 * nats) * self.spread


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(NoiseLaw):
    """Discrete Gaussian noise; ``spread`` is the standard deviation of the Gaussian that it follows."""

    is_whole: ClassVar[bool] = True

    @property
    def sd(self) -> float:
        """The standard deviation of the noise: below ``spread``, and next to it from 1 on."""
        if self.spread > _LARGEST_TABLE:
            return self.spread
        whole = np.arange(1.0, math.ceil(_TABLED * self.spread) + 2.0)
        return math.sqrt(2.0 * float(np.sum(whole**2 * np.exp(self.log_density(whole)))))

    def log_density(self, noise: Floats) -> Floats:
        """Log probabilities of whole numbers."""
        probability: Floats = -0.5 * (noise / self.spread) ** 2 - _log_normaliser(self.spread)
        return probability

    def log_tail(self, noise: Floats) -> Floats:
        """Logarithms of P(Z >= noise)."""
        noise = np.asarray(noise, dtype=np.float64)
        if self.spread > _LARGEST_TABLE:
            return Gaussian(self.spread).log_tail(noise - 0.5)
        above = np.maximum(noise, 1.0 - noise)  # P(Z >= k) = 1 - P(Z >= 1 - k)
        table = _log_tails(self.spread)
        last = len(table) - 1
        tail = table[np.minimum(above, last).astype(np.int64)]
        far = (above > last) & np.isfinite(above)
        tail = np.where(far, _log_series(np.where(far, above, last), self.spread), tail)
        tail = np.where(above == np.inf, -np.inf, tail)
        return np.where(noise >= 1.0, tail, np.log1p(-np.exp(tail)))

    def reach(self, nats: float) -> float:
        """Return how far from 0 the tail is lower than the middle by so many nats."""
        return math.sqrt(2.0 * nats) * self.spread + 1.0


@lru_cache(maxsize=256)
def _log_normaliser(sd: float) -> float:
    """Return log S of (4)."""
    if sd > _LARGEST_TABLE:  # the sum is the integral but for e^(-2 pi^2 sd^2)
        return math.log(math.sqrt(2.0 * math.pi) * sd)
    whole = np.arange(1.0, math.ceil(_TABLED * sd) + 2.0)
    return math.log1p(2.0 * float(np.sum(np.exp(-0.5 * (whole / sd) ** 2))))


@lru_cache(maxsize=64)
def _log_tails(sd: float) -> Floats:
    """Logarithms of P(Z >= k) for k = 0, 1, ... of a discrete Gaussian."""
    whole = np.arange(math.ceil(_TABLED * sd) + 2.0)
    log_probability = -0.5 * (whole / sd) ** 2 - _log_normaliser(sd)
    log_probability[-1] = _log_series(whole[-1:], sd)[0]
    # Summed from the far end, so that small terms are not lost.
    tails: Floats = np.logaddexp.accumulate(log_probability[::-1])[::-1].copy()
    tails.flags.writeable = False
    return tails


def _log_series(noise: Floats, sd: float) -> Floats:
    """Return far tails: terms of (4) fall by e^(-(k + 1/2) / sigma^2), and then faster."""
    log_probability = -0.5 * (noise / sd) ** 2 - _log_normaliser(sd)
    tail: Floats = log_probability - np.log(-np.expm1(-(noise + 0.5) / sd**2))
    return tail


LAWS: dict[str, type[NoiseLaw]] = {
    "laplace": Laplace,
    "geometric": Geometric,
    "gaussian": Gaussian,
    "discrete_gaussian": DiscreteGaussian,
}
"""By the name that a declared law has."""
