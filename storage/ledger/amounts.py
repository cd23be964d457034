"""How the chain states amounts: integers of the smallest amount that an account's measure has.

Entries of an account of epsilon state millionths (``micro_epsilon``), those of an account of rho 1e-12
(``pico_rho``), so that nobody reads one for the other. Tables have one column for both, which the account's
measure gives its unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.exact_numbers import MOST_COUNTED
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.storage.ledger.charge import check_loss

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

AMOUNTS = ("granted", "spent", "reserved", "charged", "returned")
"""Amounts as tables and books name them."""

_PREFIXES = {PrivacyMeasure.EPSILON: "micro", PrivacyMeasure.RHO: "pico"}
_NAMES = {
    measure: {amount: f"{prefix}_{measure if amount == 'charged' else amount}" for amount in AMOUNTS}
    for measure, prefix in _PREFIXES.items()
}
_AMOUNTS = {measure: {name: amount for amount, name in names.items()} for measure, names in _NAMES.items()}


def stated_name(amount: str, measure: PrivacyMeasure) -> str:
    """Return what the chain calls an amount.

    Examples
    --------
    >>> stated_name("charged", PrivacyMeasure.EPSILON), stated_name("returned", PrivacyMeasure.RHO)
    ('micro_epsilon', 'pico_returned')
    """
    return _NAMES[measure][amount]


def stated(row: Mapping[str, Any], measure: PrivacyMeasure) -> dict[str, Any]:
    """Return a row as the chain states it: amounts by their names there, and no measure of epsilon."""
    names = _NAMES[measure]
    return {
        names.get(name, name): value
        for name, value in row.items()
        if name != "measure" or measure is not PrivacyMeasure.EPSILON
    }


def read(content: Mapping[str, Any], measure: PrivacyMeasure) -> dict[str, Any]:
    """Return what :func:`stated` was given, but for a measure of epsilon.

    Raises
    ------
    ValueError
        Where it has an amount under a name that the chain does not use.
    """
    if not content.keys().isdisjoint(AMOUNTS):
        message = "the chain names amounts with their units"
        raise ValueError(message)
    amounts = _AMOUNTS[measure]
    return {amounts.get(name, name): value for name, value in content.items()}


def stated_measure(content: Mapping[str, Any]) -> PrivacyMeasure:
    """Return the measure of the account that a grant states.

    Raises
    ------
    ValueError
        Where it states none that there is, or epsilon, which goes without saying.
    """
    if "measure" not in content:
        return PrivacyMeasure.EPSILON
    if content["measure"] != PrivacyMeasure.RHO:
        message = "a grant states no other measure than rho"
        raise ValueError(message)
    return PrivacyMeasure.RHO


def granted_loss(epsilon: Fraction | None, rho: Fraction | None) -> PrivacyLoss:
    """Return the total that a grant states.

    Raises
    ------
    UsageError
        Where it states none, both, or one that an account cannot count.
    """
    if epsilon is not None and rho is None:
        total = PrivacyLoss.of_epsilon(epsilon)
    elif rho is not None and epsilon is None:
        total = PrivacyLoss.of_rho(rho)
    else:
        message = "a grant states epsilon or rho, one of the two; the first of an account fixes which"
        raise UsageError(message)
    if check_loss(total) > MOST_COUNTED:
        message = f"{total} is more than an account counts: at most {total.measure.loss(MOST_COUNTED)}"
        raise UsageError(message)
    return total


GRANT_FIRST = "suffice ledger grant DATASET --epsilon TOTAL --reason TEXT, or --rho TOTAL for specs in rho"
"""What an owner does first."""


def no_ledger(place: str) -> str:
    """Say that there is no ledger, and how its owner makes one."""
    return (
        f"there is no ledger {place}: `suffice ledger grant DATASET --epsilon TOTAL --reason TEXT --create` "
        "makes one, or suffice.grant(..., create=True), with --rho TOTAL for specs in rho, and unit "
        "column:NAME if the spec's unit is a column"
    )
