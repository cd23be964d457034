r"""Privacy losses: an exact amount of one measure, epsilon or rho.

.. math::
    \varepsilon = \sup_{S} \log \frac{P(M(x) \in S)}{P(M(x') \in S)}, \qquad
    \rho = \sup_{\alpha > 1} \frac{D_\alpha(M(x) \,\|\, M(x'))}{\alpha}

over neighbouring data sets x, x'. Epsilon is the loss of pure differential privacy, rho that of
zero-concentrated differential privacy. Both add up over releases. What loses epsilon loses at most
:math:`\varepsilon^2 / 2` in rho (Bun, Steinke 2016, proposition 1.4); from rho follows nothing finite in
epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.delta import DELTAS, epsilon_at, shown_delta
from suffice.pipeline.terms.declaration.exact_numbers import (
    MICRO,
    PICO,
    format_number,
    parse_epsilon,
    parse_rho,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class PrivacyMeasure(StrEnum):
    """What an account counts: ``epsilon``, or ``rho``."""

    EPSILON = "epsilon"
    RHO = "rho"

    @property
    def parts(self) -> int:
        """How many of the smallest amounts make 1: accounts count in integers of these."""
        return MICRO if self is PrivacyMeasure.EPSILON else PICO

    def loss(self, count: int) -> PrivacyLoss:
        """Return the loss of so many smallest amounts."""
        return PrivacyLoss(self, Fraction(count, self.parts))


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """An amount of one measure.

    Parameters
    ----------
    measure : PrivacyMeasure
    amount : Fraction
        Epsilon in nats, or rho.
    """

    measure: PrivacyMeasure
    amount: Fraction

    @classmethod
    def of_epsilon(cls, epsilon: Fraction) -> PrivacyLoss:
        """Return so much epsilon."""
        return cls(PrivacyMeasure.EPSILON, epsilon)

    @classmethod
    def of_rho(cls, rho: Fraction) -> PrivacyLoss:
        """Return so much rho."""
        return cls(PrivacyMeasure.RHO, rho)

    @classmethod
    def read(cls, stated: Mapping[str, str]) -> PrivacyLoss:
        """Read what :attr:`stated` wrote, among other entries.

        Raises
        ------
        ValueError
            Where it states no loss, or both.
        """
        match (stated.get("epsilon"), stated.get("rho")):
            case (str(epsilon), None):
                return cls.of_epsilon(parse_epsilon(epsilon))
            case (None, str(rho)):
                return cls.of_rho(parse_rho(rho))
        message = "it states epsilon or rho, one of the two"
        raise ValueError(message)

    @property
    def epsilon(self) -> Fraction | None:
        """The amount where it is one of epsilon."""
        return self.amount if self.measure is PrivacyMeasure.EPSILON else None

    @property
    def rho(self) -> Fraction | None:
        """The amount where it is one of rho."""
        return self.amount if self.measure is PrivacyMeasure.RHO else None

    @property
    def epsilon_at(self) -> dict[str, float] | None:
        """The epsilon of a loss in rho by delta, rounded up; None of one in epsilon, or of none."""
        if self.rho is None or not self.rho:
            return None
        return {shown_delta(delta): epsilon_at(self.rho, delta) for delta in DELTAS}

    @property
    def text(self) -> str:
        """The amount alone, as people read it."""
        return format_number(self.amount)

    @property
    def stated(self) -> dict[str, str]:
        """The amount by its measure, as documents state it: ``{"epsilon": "0.5"}``."""
        return {str(self.measure): self.text}

    @property
    def count(self) -> int:
        """The amount in the smallest amounts that accounts count.

        Raises
        ------
        ValueError
            Where it is no multiple of these.
        """
        count = self.amount * self.measure.parts
        if count.denominator != 1:
            message = f"{self} is no multiple of 1/{self.measure.parts}"
            raise ValueError(message)
        return count.numerator

    @property
    def rounded_up(self) -> PrivacyLoss:
        """The least amount at least this one that accounts can count."""
        return self.measure.loss(math.ceil(self.amount * self.measure.parts))

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        self._check(other)
        return PrivacyLoss(self.measure, self.amount + other.amount)

    def __mul__(self, times: Fraction | int) -> PrivacyLoss:
        return PrivacyLoss(self.measure, self.amount * times)

    def __le__(self, other: PrivacyLoss) -> bool:
        self._check(other)
        return self.amount <= other.amount

    def __lt__(self, other: PrivacyLoss) -> bool:
        self._check(other)
        return self.amount < other.amount

    def _check(self, other: PrivacyLoss) -> None:
        if self.measure is not other.measure:
            message = f"{self.measure} and {other.measure} are not added or compared"
            raise ValueError(message)

    def __str__(self) -> str:
        return f"{self.measure} {self.text}"
