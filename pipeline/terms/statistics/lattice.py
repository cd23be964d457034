"""The public lattice: every value of a bounded column becomes an integer before anything is summed.

Where a statistic is not linear in a value, a public function of it is applied first. It is made of additions,
multiplications and divisions alone: float64 fixes those to the last bit, but no library's logarithm. With
another one a record's lattice value could follow from the rows beside it in a vector, or from the machine
that a task runs on; then it would be no function of the record, and one record could move more than its own
share of a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context
from enum import IntEnum
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""The logarithm of 2 in two parts; multiples of the first by an exponent are exact."""
LOG_ODD = (2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
LOG_EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
LOG_FIRST = 6.666666666666735130e-01
"""Coefficients of fdlibm's logarithm, of powers of ``s^2`` with ``s = f / (2 + f)``."""
EXP = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
"""Coefficients of fdlibm's exponential."""
SMALLEST_EXPONENT = -700.0
"""Powers below its exponential are 0: every lattice rounds them to that."""

NARROWEST_LOGS = Fraction(1, 1 << 20)
"""The shortest interval of logarithms: float64 has enough numbers in it for the finest lattice."""

_BOUND_STEPS = 1 << 32
_DIGITS = Context(prec=60)


class Shape(IntEnum):
    """What is taken of ``z = (x - centre) / unit``; integers, since compiled kernels read them."""

    ABSOLUTE = 0
    SQUARE = 1
    POWER = 2
    LOG = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    r"""A public function of one value.

    .. math:: |z|, \quad z^2, \quad \min(\max(z, 0), 1)^k, \quad \log z, \qquad z = (x - c) / u

    Parameters
    ----------
    shape : Shape
        Which.
    centre, unit : float
        ``c`` and ``u > 0``, in the column's unit.
    exponent : float, > 0
        ``k``, of a power.
    """

    shape: Shape
    centre: float = 0.0
    unit: float = 1.0
    exponent: float = 1.0

    def apply(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the transformed values; the reference that the compiled kernel is tested against.

        Parameters
        ----------
        values : ndarray of float64, in the column's unit
            NaN stays NaN, and nothing else becomes it; the logarithm of what is not positive is -inf.

        Returns
        -------
        ndarray of float64, same shape, without a unit
        """
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            z = (values - self.centre) / self.unit
            if self.shape is Shape.ABSOLUTE:
                return np.abs(z)
            if self.shape is Shape.SQUARE:
                squares: NDArray[np.float64] = z * z
                return squares
            logarithms = _log(z)
            return logarithms if self.shape is Shape.LOG else _exp(logarithms * self.exponent)


def log_bound(number: Fraction) -> Fraction:
    """Return the logarithm of a public bound, rounded to a multiple of 2**-32: the same on every machine."""
    logarithm = Fraction(_ln(number)) * _BOUND_STEPS
    return Fraction(round(logarithm), _BOUND_STEPS)


def power_bound(number: Fraction, exponent: Fraction) -> Fraction:
    """Return a power of a public bound, rounded to float64: the same on every machine.

    Raises
    ------
    OverflowError
        Where it is beyond 1e300 or under 1e-300.
    """
    logarithm = _ln(number) * exponent
    if abs(logarithm) > 690:
        message = "the power leaves float64"
        raise OverflowError(message)
    digits = _DIGITS.divide(logarithm.numerator, logarithm.denominator)
    return Fraction(float(_DIGITS.exp(digits)))


def _ln(number: Fraction) -> Fraction:
    numerator, denominator = (_DIGITS.create_decimal(part) for part in number.as_integer_ratio())
    return Fraction(_DIGITS.subtract(_DIGITS.ln(numerator), _DIGITS.ln(denominator)))


def _log(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms: fdlibm's algorithm, under one unit in the last place from the truth."""
    positive = (z > 0.0) & (z < np.inf)
    mantissa, exponent = np.frexp(np.where(positive, z, 1.0))
    low = mantissa < np.sqrt(0.5)
    f = np.where(low, 2.0 * mantissa, mantissa) - 1.0
    k = (exponent - low).astype(np.float64)
    s = f / (2.0 + f)
    z2 = s * s
    w = z2 * z2
    odd = z2 * (LOG_FIRST + w * (LOG_ODD[0] + w * (LOG_ODD[1] + w * LOG_ODD[2])))
    even = w * (LOG_EVEN[0] + w * (LOG_EVEN[1] + w * LOG_EVEN[2]))
    half = 0.5 * f * f
    logarithm = k * LN2_HIGH - ((half - (s * (half + (odd + even)) + k * LN2_LOW)) - f)
    outside = np.where(z > 0.0, np.inf, np.where(np.isnan(z), np.nan, -np.inf))
    return np.where(positive, logarithm, outside)


def _exp(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exponentials of what is negative, 1 of the rest: fdlibm's algorithm."""
    within = (y < 0.0) & (y > SMALLEST_EXPONENT)
    inside = np.where(within, y, 0.0)
    k = np.rint(inside / (LN2_HIGH + LN2_LOW))
    high, low = inside - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    t = r * r
    c = r - t * (EXP[0] + t * (EXP[1] + t * (EXP[2] + t * (EXP[3] + t * EXP[4]))))
    exponential = np.ldexp(1.0 - ((low - (r * c) / (2.0 - c)) - high), k.astype(np.int64))
    outside = np.where(y >= 0.0, 1.0, np.where(np.isnan(y), np.nan, 0.0))
    return np.where(within, exponential, outside)


DEFAULT_BITS = 16


def require_interval(lower: Fraction, upper: Fraction) -> None:
    """Refuse bounds that are no interval, or between which float64 has too few numbers.

    Raises
    ------
    ValueError
        Naming the rule.
    """
    if lower >= upper:
        message = "lower must be below upper"
        raise ValueError(message)
    if float(upper - lower) / 2 < float(max(abs(lower), abs(upper))) * 2.0**-40:
        message = "the interval from lower to upper is too narrow for float64 beside its distance from 0"
        raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiser:
    r"""Clip a value to public bounds and round it to a public lattice.

    .. math:: X = \mathrm{clip}\bigl(\mathrm{rint}(((x - c) / h) \cdot s), \text{lowest}, \text{highest}\bigr)

    in float64, in this order, ties to even. Any rounding here is part of a public, deterministic
    function of one record: it costs no privacy.

    Parameters
    ----------
    centre, half_range : float
        ``c`` and ``h``, in the column's unit.
    steps : int
        ``s``: lattice steps per half range.
    lowest, highest : int
        Bounds of the result, in lattice steps.
    """

    centre: float
    half_range: float
    steps: int
    lowest: int
    highest: int

    @classmethod
    def centred(cls, lower: Fraction, upper: Fraction, bits: int) -> Quantiser:
        """Return the lattice of a bounded column: ``2**bits`` steps on either side of the centre."""
        steps = 1 << bits
        return cls(
            centre=float((lower + upper) / 2),
            half_range=float((upper - lower) / 2),
            steps=steps,
            lowest=-steps,
            highest=steps,
        )

    @classmethod
    def counting(cls, upper: int) -> Quantiser:
        """Return the lattice of a count clipped to ``0..upper``: the integers themselves."""
        return cls(centre=0.0, half_range=1.0, steps=1, lowest=0, highest=upper)

    @classmethod
    def from_zero(cls, largest: Fraction, bits: int) -> Quantiser:
        """Return the lattice of ``0..largest``: ``2**bits`` steps."""
        steps = 1 << bits
        return cls(centre=0.0, half_range=float(largest), steps=steps, lowest=0, highest=steps)

    @property
    def largest_magnitude(self) -> int:
        """Largest absolute lattice value."""
        return max(-self.lowest, self.highest)

    def quantise(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Map values to the lattice; the reference that the compiled kernels are tested against.

        Parameters
        ----------
        values : ndarray of float64, in the column's unit
            Infinities clip; NaN must have been dealt with.

        Returns
        -------
        ndarray of int64, same shape, in lattice steps
        """
        with np.errstate(over="ignore"):
            scaled = np.rint(((values - self.centre) / self.half_range) * self.steps)
        return np.clip(scaled, self.lowest, self.highest).astype(np.int64)
