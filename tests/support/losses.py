"""What requests of tests cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    from fractions import Fraction


def pure(epsilon: Fraction) -> dict[str, Any]:
    """Return the fields of a request that costs so much epsilon, of a single statistic."""
    rho = PrivacyLoss.of_rho(epsilon**2 / 2).rounded_up.amount
    return {"loss": PrivacyLoss.of_epsilon(epsilon), "rho": rho}
