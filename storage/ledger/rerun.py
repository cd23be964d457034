"""What a run does about a key that may already have a charge: one pure function decides."""

from __future__ import annotations

import json
import math
from enum import Enum, auto
from typing import TYPE_CHECKING

from suffice.errors import (
    AmendmentError,
    ChargeInProgressError,
    ChargeSpentError,
    SpecChangedError,
    WrongStoreError,
)
from suffice.pipeline.spec.windows_and_amendments import AmendedRelease
from suffice.storage.ledger.charge import ChargeState, is_held
from suffice.storage.ledger.ledger import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from suffice.storage.ledger.charge import Charge, ChargeRequest

_MOST_KEYS = 8
"""How many differing keys a message spells out."""


class Decision(Enum):
    """What a run may do with its key."""

    START = auto()
    """Reserve a new attempt."""
    TAKE_OVER = auto()
    """Continue with an expired charge that never drew: same charge, same reservation, next epoch."""
    PUBLISH_STAGED = auto()
    """Take over and publish the manifest that the ledger holds."""
    ALREADY_PUBLISHED = auto()
    """Nothing to do: the release stands."""
    ABANDON_AND_REFUSE = auto()
    """Take over, put the tombstone, abandon; raise :func:`spent_error` unless the draw was returned."""
    ABANDON_AND_START = auto()
    """Take over, put the tombstone, abandon, and reserve a new attempt."""


def decide_rerun(
    charge: Charge | None,
    request: ChargeRequest,
    *,
    now: datetime,
    new_attempt: bool,
    plan_of: Callable[[str], str],
) -> Decision:
    """Decide what a run may do about its key.

    Parameters
    ----------
    charge : Charge or None
        The newest attempt of the key.
    request : ChargeRequest
        What this run would charge.
    now : datetime, UTC
        :meth:`Ledger.now` of the same ledger.
    new_attempt : bool
        Whether the operator asked to draw again, and to be charged again.
    plan_of : callable
        Gives the plan with a hash, as :meth:`Ledger.plan`; asked only where a message names what differs.

    Returns
    -------
    Decision

    Raises
    ------
    SpecChangedError
        Where the key was charged for another canonical plan.
    WrongStoreError
        Where the key was charged with another store.
    ChargeInProgressError
        Where a live run holds the charge.
    ChargeSpentError
        Where the last attempt was abandoned after ``drawing``, its epsilon was not returned, and
        `new_attempt` is false.
    """
    if charge is None:
        return Decision.START
    _check_same_plan(charge, request, plan_of)
    _check_same_store(charge, request)
    if charge.state is ChargeState.PUBLISHED:
        return Decision.ALREADY_PUBLISHED
    if charge.state is ChargeState.STAGED:
        return Decision.PUBLISH_STAGED
    if charge.state is ChargeState.ABANDONED:
        if charge.counts_as == "spent" and not new_attempt:
            raise spent_error(charge)
        return Decision.START
    if is_held(charge, now):
        raise in_progress_error(charge, now)
    if charge.state is ChargeState.RESERVED:
        return Decision.TAKE_OVER
    return Decision.ABANDON_AND_START if new_attempt else Decision.ABANDON_AND_REFUSE


def decide_amended(
    others: Sequence[Charge], request: ChargeRequest, *, plan_of: Callable[[str], str]
) -> AmendedRelease:
    """Decide which release an amendment replaces: the newest that is published of its window.

    Parameters
    ----------
    others : sequence of Charge
        Of the same window's other editions, those that were not abandoned.
    request : ChargeRequest
        Of an amendment that has no charge yet.
    plan_of : callable
        As for :func:`decide_rerun`.

    Raises
    ------
    AmendmentError
        Where nothing of the window is published, or a later amendment was charged before.
    ChargeInProgressError
        Where an earlier edition is charged, and not published yet.
    SpecChangedError, WrongStoreError
        Where the window was charged for another canonical plan, or with another store.
    """
    if not others:
        message = (
            f"{request.label} would amend nothing: {request.name}@{request.window} is not published; release "
            "it first, without --amendment"
        )
        raise AmendmentError(message)
    newest = max(others, key=lambda charge: charge.amendment)
    if newest.amendment > request.amendment:
        message = f"{newest.label} was charged before {request.label}: amendments follow one another"
        raise AmendmentError(message)
    _check_same_plan(newest, request, plan_of)
    _check_same_store(newest, request)
    if newest.state is not ChargeState.PUBLISHED or newest.manifest_sha256 is None:
        message = f"{newest.label}, which {request.label} would amend, is {newest.state}: let it end first"
        raise ChargeInProgressError(message)
    return AmendedRelease(release_id=newest.release_id, manifest_sha256=newest.manifest_sha256)


def _check_same_store(charge: Charge, request: ChargeRequest) -> None:
    if charge.store_id != request.store_id:
        message = (
            f"{charge.label} was first charged for the store {charge.store_id} at {charge.store_uri}; "
            f"{request.store_uri} is the store {request.store_id}: use the first, or choose another name. If "
            "the first was moved: `suffice store adopt NEW_PLACE`"
        )
        raise WrongStoreError(message)


def spent_error(charge: Charge) -> ChargeSpentError:
    """Return the error for a charge that was abandoned after noise may have existed."""
    return ChargeSpentError(
        f"{charge.loss} is spent on attempt {charge.attempt} of {charge.label}, "
        f"which stopped while noise was drawn{without_a_witness(charge.witness)}; --new-attempt draws again "
        "and is charged again"
    )


def without_a_witness(witness: str | None) -> str:
    """Return what a message about a draw that is spent says where its charge has no witness."""
    return "" if witness else ", as the ledger has no witness to show that nobody saw it"


def in_progress_error(charge: Charge, now: datetime) -> ChargeInProgressError:
    """Return the error for a charge that another run holds.

    Orchestrators store its text, so it tells no time: how long a run reads follows from its rows.
    """
    seconds = max(0.0, (charge.lease_expires - now).total_seconds())
    minutes = math.ceil(LEASE.total_seconds() / 60)
    return ChargeInProgressError(
        f"{charge.label} is in progress; if that run has died, its lease passes within {minutes} minutes: "
        "run again then, or let `suffice release --wait` wait",
        seconds=seconds,
    )


def _check_same_plan(charge: Charge, request: ChargeRequest, plan_of: Callable[[str], str]) -> None:
    if charge.plan_hash == request.plan_hash:
        return
    keys = differing_keys(plan_of(charge.plan_hash), request.plan_json)
    more = f" and {len(keys) - _MOST_KEYS} more" if len(keys) > _MOST_KEYS else ""
    message = (
        f"{charge.label} is already charged for a different spec: choose another name "
        f"(what differs: {', '.join(keys[:_MOST_KEYS])}{more})"
    )
    raise SpecChangedError(message, keys)


def differing_keys(first: str, second: str) -> tuple[str, ...]:
    """Name the keys in which two canonical plans differ.

    Parameters
    ----------
    first, second : str
        JSON objects.

    Returns
    -------
    tuple of str
        Sorted paths of keys, the deepest objects that both plans have: ``privacy.epsilon``.

    Examples
    --------
    >>> differing_keys('{"a": {"b": 1, "c": [1]}, "d": 2}', '{"a": {"b": 1, "c": [2]}}')
    ('a.c', 'd')
    """
    return tuple(sorted(_differing(json.loads(first), json.loads(second), ())))


def _differing(first: object, second: object, path: tuple[str, ...]) -> list[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        absent = object()
        return [
            key
            for name in first.keys() | second.keys()
            for key in _differing(first.get(name, absent), second.get(name, absent), (*path, name))
        ]
    return [] if first == second else [".".join(path)]
