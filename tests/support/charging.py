"""Charges in the states that tests of ledgers start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

if TYPE_CHECKING:
    from fractions import Fraction

    from suffice.storage.ledger.charge import Charge, ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

MANIFEST = b'{"format_version":1}'


def drawn(ledger: Ledger, request: ChargeRequest, **options: Any) -> Charge:
    """Return a charge behind which noise may exist."""
    return ledger.enter_drawing(ledger.reserve(request, **options))


def published(ledger: Ledger, request: ChargeRequest, **options: Any) -> Charge:
    """Return a charge whose release is out."""
    return ledger.publish(ledger.stage(drawn(ledger, request, **options), MANIFEST))


def shown(*epsilons: Fraction) -> str:
    """Return epsilons as they are written."""
    return " ".join(map(format_epsilon, epsilons))


def entry_count(ledger: Ledger) -> int:
    """Return how many entries the ledger's chain has."""
    count = 0
    while ledger.entry_hash(count + 1) is not None:
        count += 1
    return count
