"""The scale of noise that a privacy loss takes, in either measure. Proofs in `sensitivity.md`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.exact_numbers import float_rounded_down, scale_rounded_up

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss


def noise_scale(loss: PrivacyLoss, *, l1_sensitivity: int, l2_squared: int | None) -> float:
    r"""Return the least float64 scale of Laplace noise at which a block loses at most so much.

    .. math:: b = \Delta_1 / \varepsilon, \qquad b = \sqrt{\Delta_2^2 / 2 \rho}

    both rounded up, so that the loss of a shift by 1, as OpenDP rounds it up, is small enough.

    Parameters
    ----------
    loss : PrivacyLoss
        Above 0.
    l1_sensitivity : int, > 0
        In lattice units.
    l2_squared : int, > 0, or None
        In squares of lattice units; needed for a loss of rho.
    """
    if loss.rho is None:
        # proof: scale
        return scale_rounded_up(l1_sensitivity, loss.amount)
    if l2_squared is None:
        message = "a loss of rho needs the square of the L2 sensitivity"
        raise ValueError(message)
    # proof: scale-in-rho
    largest = _root_rounded_down(2 * loss.rho / l2_squared)
    return scale_rounded_up(1, Fraction(largest))


def _root_rounded_down(square: Fraction) -> float:
    """Return the largest float64 whose square is at most a number."""
    shift = 2 * max(0, 64 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    whole = math.isqrt(math.floor(square * (1 << shift)))
    root = float_rounded_down(Fraction(whole + 1, 1 << (shift // 2)))
    while Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root
