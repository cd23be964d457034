"""What requests of tests cost."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure

if TYPE_CHECKING:
    from suffice.storage.ledger.ledger import Ledger


MEASURES = tuple(PrivacyMeasure)


def costing(measure: PrivacyMeasure, amount: Fraction) -> dict[str, Any]:
    """Return the fields of a request that costs an account of a measure so much."""
    if measure is PrivacyMeasure.EPSILON:
        return pure(amount)
    return {"loss": PrivacyLoss.of_rho(amount), "rho": amount}


def total(ledger: Ledger, amount: Fraction | int | None = None, dataset: str = "flights") -> dict[str, Any]:
    """Return what a grant of so much states, in the account's measure; unless said, of what it has."""
    account = ledger.account(dataset)
    return stated(account.measure, account.granted if amount is None else Fraction(amount))


def stated(measure: PrivacyMeasure, amount: Fraction) -> dict[str, Any]:
    """Return what a grant of so much states."""
    return {str(measure): amount}


def pure(epsilon: Fraction) -> dict[str, Any]:
    """Return the fields of a request that costs so much epsilon, of a single statistic."""
    rho = PrivacyLoss.of_rho(epsilon**2 / 2).rounded_up.amount
    return {"loss": PrivacyLoss.of_epsilon(epsilon), "rho": rho}
