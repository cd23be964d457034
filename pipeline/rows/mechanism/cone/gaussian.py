"""Pairs of independent Gaussian variables: a direction by rejection, a length by an exponential variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.pipeline.rows.mechanism.cone.exponential import exponential
from suffice.pipeline.rows.mechanism.cone.intervals import Interval, root_of_quotient
from suffice.pipeline.rows.mechanism.cone.lazy_reals import Real, coin, uniform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.rows.mechanism.cone.bits import Bits


@dataclass(slots=True, repr=False)
class GaussianPair:
    r"""Two independent normal variables of mean 0 and variance 1/2.

    .. math:: (x, y) = \pm (a, b) \sqrt{E / (a^2 + b^2)}

    Parameters
    ----------
    radius_squared : Real
        ``E``, exponential.
    across, up : Real
        ``(a, b)``, uniform in the quarter of the unit disc where both are positive.
    signs : tuple of bool
        Whether x, and whether y, is negative.
    """

    radius_squared: Real
    across: Real
    up: Real
    signs: tuple[bool, bool]

    def reals(self) -> Iterator[Real]:
        """Yield what is known to a finite length."""
        yield self.radius_squared
        yield self.across
        yield self.up

    def magnitudes(self, length: int) -> tuple[Interval, Interval] | None:
        """Return ``|x|`` and ``|y|`` in units of ``2**-length``; None where they are not narrow."""
        a, b, energy = self.across.at(length), self.up.at(length), self.radius_squared.at(length)
        # s = a^2 + b^2, w = sqrt(E / s)
        square = Interval((a * a + b * b) >> length, (((a + 1) * (a + 1) + (b + 1) * (b + 1)) >> length) + 1)
        factor = root_of_quotient(energy, square, length)
        if factor is None:
            return None
        # |x| = a w, |y| = b w
        return (
            Interval((a * factor.low) >> length, (((a + 1) * factor.high) >> length) + 1),
            Interval((b * factor.low) >> length, (((b + 1) * factor.high) >> length) + 1),
        )


def gaussian_pair(bits: Bits) -> GaussianPair:
    """Return two independent normal variables of mean 0 and variance 1/2."""
    # proof: gaussian-pair
    radius_squared = exponential(bits)
    across, up = quarter_disc(bits)
    return GaussianPair(radius_squared, across, up, (coin(bits), coin(bits)))


def quarter_disc(bits: Bits) -> tuple[Real, Real]:
    """Return a point that is uniform where ``a, b > 0`` and ``a^2 + b^2 < 1``."""
    # proof: disc
    while True:
        across, up = uniform(bits), uniform(bits)
        while True:
            a, b, unit = across.digits, up.digits, 1 << 2 * across.length
            if (a + 1) * (a + 1) + (b + 1) * (b + 1) <= unit:
                return across, up
            if a * a + b * b >= unit:
                break
            across.lengthen(bits)
            up.lengthen(bits)
