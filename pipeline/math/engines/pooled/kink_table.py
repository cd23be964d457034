r"""The likelihood of the mean of a count that was released twice at one scale, from tables of two variables.

Model. Both numbers have discrete Laplace noise of the scale b; their kinks are at :math:`y \le y'`. Between
kinks the noise on both is flat, so that with :math:`K \sim \mathrm{Poisson}(\mu)`, c = 2 / b and

.. math::
    U(\mu; y) = \operatorname{E} e^{-c (K - y)_+}, \qquad V(\mu; y) = \operatorname{E} e^{-c (y - K)_+}

the likelihood (1) of ``count_likelihoods`` is

.. math::
    A(\mu; y, y') = \tanh^2 \bigl(\tfrac 1 {2b}\bigr) \, e^{-(y' - y) / b} \, (U(\mu; y') + V(\mu; y) - 1)
    \qquad (1)

as each of :math:`K \le y`, :math:`y < K \le y'` and :math:`y' < K` shows.

Method. Logarithms of U, V, 1 - U and 1 - V are tabulated once for all cells, at roots of y ``_ROOTS`` apart,
and at what the root of the mean is above that, ``_GAPS`` / ``_FINER`` apart by cubics through four; between
these they are linear: a Poisson law has the width 1/2 in roots, whatever its mean is. Above the middle of
both kinks (1) is U - (1 - V), and below V - (1 - U), so that tails do not cancel. Within 20 of its highest
log A is off by at most .006 at a scale of 2, .001 at 10 and 100, and .007 at 1,000, mostly below .001. Below
a kink of 0, U is :math:`e^{c y}` times that at 0. Tables are of scales of ``_LEAST_SCALE`` or more; from
``_WIDE`` on their points are further apart, since wide noise blurs kinks.

Symbols: y: ``low``; y': ``high``; rows: y by its root; columns: the root of the mean above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.count_likelihoods import log_above, log_below, log_less
from suffice.pipeline.math.engines.pooled.cells import cubic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Floats

_ROOTS, _GAPS, _FINER = 0.1, 0.2, 6
_DEPTH, _TAIL = 40.0, 4.5
"""What is e^-``_DEPTH`` of the highest is taken for 0; a Poisson law is, that far from its root."""
_FLOOR = -80.0
_MOST = 8_000_000
_LEAST_SCALE, _WIDE = 2.0, 60.0
_U, _V, _LESS_U, _LESS_V = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class KinkTable:
    """Logarithms of U, V, 1 - U and 1 - V.

    Attributes
    ----------
    value : ndarray of shape (4 * n_roots * n_gaps,), float32
    shape : (int, int)
        How many roots and gaps there are.
    lowest : float
        The first gap.
    scale : float
        b.
    wider : float
        By what factor roots and gaps are further apart than where noise is narrow.
    """

    value: NDArray[np.float32]
    shape: tuple[int, int]
    lowest: float
    scale: float
    wider: float

    @classmethod
    def of(cls, scale: float, highest: float) -> Self | None:
        """Tabulate kinks up to the highest; None where they are too many, or noise is next to none."""
        c = 2.0 / scale
        # Wide noise blurs kinks.
        wider = max(1.0, float(np.sqrt(scale / _WIDE)))
        roots, gaps = _ROOTS * wider, _GAPS * wider
        n_roots = int(np.ceil(np.sqrt(max(highest, 1.0)) / roots)) + 2
        # U is e^-_DEPTH at the mean _DEPTH / (1 - e^-c) where y is 0, V at 0 where y is _DEPTH / c.
        top = np.sqrt(_DEPTH / -np.expm1(-c)) + _TAIL
        lowest = -min(n_roots * roots, np.sqrt(_DEPTH / c) + _TAIL)
        n_coarse = int(np.ceil((top - lowest) / gaps)) + 4
        n_gaps = (n_coarse - 1) * _FINER + 1
        if scale < _LEAST_SCALE or n_roots * n_gaps > _MOST:
            return None
        root = np.arange(n_roots, dtype=np.float64)[:, None] * roots
        of_mean = root + float(lowest) + np.arange(n_coarse, dtype=np.float64) * gaps
        mean: Floats = np.maximum(np.abs(of_mean), 1e-9) ** 2
        y: Floats = root**2
        flat = np.zeros(1)
        # P(K <= y), P(K > y), and what the noise leaves of each.
        below, above = log_below(mean, y, flat, flat, y), log_above(mean, y, flat, flat, y)
        left, right = log_below(mean, y, flat + c, flat, y), log_above(mean, y, flat - c, flat, y)
        place = np.arange(n_gaps) / _FINER
        first = np.clip(place.astype(np.int64) - 1, 0, n_coarse - 4)
        weights = [weight.astype(np.float32) for weight in cubic(place - first)]
        value = np.empty((4, n_roots, n_gaps), dtype=np.float32)
        for name, exact in (
            (_U, np.logaddexp(below, right)),
            (_V, np.logaddexp(above, left)),
            (_LESS_U, log_less(above, right)),
            (_LESS_V, log_less(below, left)),
        ):
            known = np.maximum(exact, _FLOOR).astype(np.float32)
            value[name] = sum(known[:, first + tap] * weight for tap, weight in enumerate(weights))
        return cls(
            value=value.ravel(), shape=(n_roots, n_gaps), lowest=float(lowest), scale=scale, wider=wider
        )

    def log_likelihood(self, low: Floats, high: Floats, root: Floats) -> Floats:
        """Return log A of (1), (n_counts, n), at kinks (n_counts,) and roots of means (n_counts, n)."""
        is_upper = root**2 > ((low + high) / 2.0)[:, None]
        more = self._at(is_upper, (_U, high), (_V, low), root)
        less = self._at(is_upper, (_LESS_V, low), (_LESS_U, high), root)
        less -= more
        np.minimum(less, -1e-7, out=less)
        more += np.log1p(-np.exp(less))
        constant = 2.0 * np.log(np.tanh(0.5 / self.scale)) - (high - low) / self.scale
        # U below a kink of 0.
        constant += np.minimum(high, 0.0) * 2.0 / self.scale
        value: Floats = more + constant[:, None]
        return value

    def _at(
        self, is_first: NDArray[np.bool_], first: tuple[int, Floats], second: tuple[int, Floats], root: Floats
    ) -> NDArray[np.float32]:
        """Return one of two functions, each of a kink of its own, by bilinear interpolation."""
        n_roots, n_gaps = self.shape
        rows, shares, origins = [], [], []
        for name, kink in (first, second):
            of_kink = np.sqrt(np.maximum(kink, 0.0))
            place = np.clip(of_kink / (_ROOTS * self.wider), 0.0, n_roots - 1.001)
            row = place.astype(np.int32)
            rows.append((row + name * n_roots) * n_gaps)
            shares.append((place - row).astype(np.float32))
            origins.append(of_kink + self.lowest)
        step = _FINER / (_GAPS * self.wider)
        # At both rows the gap is that from the kink itself.
        place = ((root - np.where(is_first, *(each[:, None] for each in origins))) * step).astype(np.float32)
        np.clip(place, 0.0, n_gaps - 1.01, out=place)
        index = place.astype(np.int32)
        place -= index
        index += np.where(is_first, *(each[:, None] for each in rows))
        share = np.where(is_first, *(each[:, None] for each in shares))
        value = self.value.take(index)
        value += (self.value.take(index + 1) - value) * place
        index += n_gaps
        other = self.value.take(index)
        other += (self.value.take(index + 1) - other) * place
        value += (other - value) * share
        return value
