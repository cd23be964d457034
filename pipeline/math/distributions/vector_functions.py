r"""Compiled exponentials and logarithms without calls or branches: loops over them become vectors.

Method. With x = 2^k m and m from :math:`\sqrt{1/2}` to :math:`\sqrt 2`, by their series,

.. math::
    \log x = k \log 2 + 2 \operatorname{artanh} \frac{m - 1}{m + 1}, \qquad
    e^x = 2^k e^{x - k \log 2}, \quad k = \operatorname{rint} \frac{x}{\log 2}. \qquad (1)

Both are right to some 4e-16 of themselves. Arguments have to be as stated: there are no infinities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import types
from numba.extending import intrinsic

from suffice.pipeline.math.distributions.machine_code import vectorised

if TYPE_CHECKING:
    from suffice.typing import Floats

    def bits_of(x: float) -> int:
        """Return the bits of a number."""

    def number_of(bits: int) -> float:
        """Return the number that has these bits."""

else:

    @intrinsic
    def bits_of(_context: Any, _x: Any) -> Any:
        """Return the bits of a number."""
        return types.int64(types.float64), _bitcast

    @intrinsic
    def number_of(_context: Any, _bits: Any) -> Any:
        """Return the number that has these bits."""
        return types.float64(types.int64), _bitcast


def _bitcast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))


_LOG2_HIGH, _LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""Of log 2, 33 bits, by which multiples are exact, and the rest."""
_PER_LOG2, _ROUNDING = 1.4426950408889634, 6755399441055744.0
"""One over log 2; a sum with 3 * 2^51 is rounded to an integer, which is its lowest bits."""
_ROOT_HALF_BITS = 0x3FE6A09E00000000
_LOWEST = -700.0


@vectorised
def log(x: float) -> float:
    """Logarithm of a normal number above 0."""
    bits = bits_of(x)
    k = (bits - _ROOT_HALF_BITS) >> 52
    f = number_of(bits - (k << 52)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = 2.0 / 21.0
    series = series * z + 2.0 / 19.0
    series = series * z + 2.0 / 17.0
    series = series * z + 2.0 / 15.0
    series = series * z + 2.0 / 13.0
    series = series * z + 2.0 / 11.0
    series = series * z + 2.0 / 9.0
    series = series * z + 2.0 / 7.0
    series = series * z + 2.0 / 5.0
    series = series * z + 2.0 / 3.0
    power = float(k)
    return power * _LOG2_HIGH + (s * (2.0 + z * series) + power * _LOG2_LOW)


@vectorised
def put_logs(count: int, x: Floats, out: Floats) -> None:
    """Put logarithms of so many: a loop by itself, as others may hold too much to become vectors."""
    for i in range(count):
        out[i] = log(x[i])


@vectorised
def log1p(x: float) -> float:
    """Logarithm of 1 + x, x >= 0."""
    w = 1.0 + x
    # What rounding took from w.
    return log(w) + (x - (w - 1.0)) / w


@vectorised
def exp(x: float) -> float:
    """Exponential of a number below 700; of those below -700 that of -700."""
    x = max(x, _LOWEST)
    shifted = x * _PER_LOG2 + _ROUNDING
    k = shifted - _ROUNDING
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
    series = 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    return series * number_of((bits_of(shifted) + 1023) << 52)
