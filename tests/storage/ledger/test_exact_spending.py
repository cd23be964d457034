"""An account of rho spends its grant to the last 1e-12, over any number of charges of either measure."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.errors import BudgetExceededError
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.opening import create_ledger
from support.charging import published
from support.losses import costing, pure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeRequest

FEW, MANY = 100, 100_000
PARTS = 10**12


def spend(path: Path, make_request: Callable[..., ChargeRequest], number: int) -> None:
    """Charge so often, each its own amount: every second a spec of epsilon k / 10^6, which costs k^2 / 2."""
    rng = random.Random(number)  # noqa: S311 - any amounts do
    charges = []
    for index in range(number):
        k = rng.randrange(1, 10**6)
        if index % 2:
            charges.append((pure(Fraction(k, 10**6)), -(-k * k // 2)))
        else:
            charges.append((costing(PrivacyMeasure.RHO, Fraction(k, PARTS)), k))
    total = sum(cost for _, cost in charges)
    assert sum(cost / PARTS for _, cost in charges) != total / PARTS, "the control: floats drift"
    with create_ledger(f"sqlite:///{path}") as ledger:
        ledger.grant("flights", rho=Fraction(total, PARTS), reason="exactly")
        for index, (fields, _cost) in enumerate(charges):
            request = make_request(name=f"r{index}", **fields)
            ledger.check(request)
            published(ledger, request)
        account = ledger.account("flights")
        assert (account.spent, account.remaining) == (Fraction(total, PARTS), Fraction(0))
        least = make_request(name="one-more", **costing(PrivacyMeasure.RHO, Fraction(1, PARTS)))
        with pytest.raises(BudgetExceededError):
            ledger.reserve(least)
        ledger.grant("flights", rho=Fraction(total + 1, PARTS), reason="for the last one")
        published(ledger, least)
        assert ledger.remaining("flights", "all") == 0
        assert ledger.verify() == ()


@pytest.mark.slow
def test_a_grant_is_spent_to_the_last_part(
    tmp_path: Path, make_request: Callable[..., ChargeRequest]
) -> None:
    spend(tmp_path / "ledger.db", make_request, FEW)


@pytest.mark.audit
@pytest.mark.timeout(14_400)
def test_a_grant_is_spent_to_the_last_part_over_very_many_charges(
    tmp_path: Path, make_request: Callable[..., ChargeRequest]
) -> None:
    spend(tmp_path / "ledger.db", make_request, MANY)
