"""What samples share: draws by the exponential mechanism among public points, by scores that are integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.documents import Positive  # noqa: TC001 - schemas read types

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

LOWEST_SCORE = -(1 << 62)
"""Scores below the highest by more are cut off: they leave room for the prior in 64 bits."""
SCORE_BITS = 20
"""Scores, their range and the scale are integers in units of 2**-20 nats."""
LARGEST_SAMPLE_SCALE = 1 << 46
"""Above, the data would hardly count."""
MAP_MARGIN = Fraction(1, 1 << 48)
"""Part of epsilon that is left for OpenDP's map, which float64 rounds up by less than `2**-49` of itself."""
LARGEST_RANGE = 1 << 62
"""OpenDP's map takes its double in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialDraws:
    """Draws of one of some public points in every cell; what is drawn says the class of the sample.

    Attributes
    ----------
    draws : int
        In each cell, independent given the data.
    range_sensitivity : int
        The largest range over the points of a change of the scores between neighbours, added up over cells,
        in the unit of the scores.
    scale : int
        ``t``, in the unit of the scores.
    """

    draws: Positive
    range_sensitivity: Positive
    scale: Positive

    @property
    def n_points(self) -> int:
        """Among how many points is drawn."""
        raise NotImplementedError

    @property
    def privacy_loss(self) -> Fraction:
        """What all draws lose at most, in nats: less than epsilon, much less where the temperature is 1."""
        return Fraction(self.draws * self.range_sensitivity, self.scale)

    @property
    def rho(self) -> Fraction:
        """What all draws lose at most in rho."""
        # proof: sample-range
        return self.draws * Fraction(self.range_sensitivity, self.scale) ** 2 / 8

    def candidates(self, n_cells: int) -> int:
        """Return among how many points the draws of so many cells choose; drawing takes as long."""
        return n_cells * self.n_points * self.draws


def smallest_scale(
    range_sensitivity: int, draws: int, loss: PrivacyLoss, *, least: int = 1 << SCORE_BITS
) -> int:
    r"""Return the least scale, at least 2**20, at which all draws lose less than is asked, in float64 too.

    .. math:: \max\bigl(2^{20}, \lfloor q \Delta / (1 - 2^{-48}) \varepsilon \rfloor + 1\bigr), \qquad
              \max\bigl(2^{20}, \lfloor \sqrt{q \Delta^2 / 8 (1 - 2^{-48}) \rho} \rfloor + 1\bigr)

    Parameters
    ----------
    range_sensitivity : int
        In 2**-20 nats.
    draws : int
        ``q``.
    loss : PrivacyLoss
        Of all draws together.
    least : int
        In the place of 2**20, which is the scale of the data's own posterior.
    """
    # proof: sample-range
    if loss.rho is not None:
        square = Fraction(draws * range_sensitivity**2, 8) / (loss.rho * (1 - MAP_MARGIN))
        return max(least, math.isqrt(math.floor(square)) + 1)
    epsilon = loss.amount
    return max(least, math.floor(draws * range_sensitivity / (epsilon * (1 - MAP_MARGIN))) + 1)
