"""What a ledger that was restored from an older copy is told of charges that it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What a store names of a charge, where its ledger has other entries for it.

    Attributes
    ----------
    charge_id : str
    marker_sequence, marker_hash : int, str
        The entry that its marker names.
    drawing_sequence, drawing_hash : int and str, or None
        The entry that its manifest names, where it was published.
    """

    charge_id: str
    marker_sequence: int
    marker_hash: str
    drawing_sequence: int | None
    drawing_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCharge:
    """A charge as a store shows it, for a ledger that lacks it, or has it as never drawn.

    Attributes
    ----------
    named : Reconciled
    reserved : mapping
        What its ``reserved`` entry states, and the store's URI.
    plan_json : str
        The plan whose hash that entry states.
    manifest : bytes or None
        Of its release; None where a tombstone stands there.
    """

    named: Reconciled
    reserved: Mapping[str, Any]
    plan_json: str
    manifest: bytes | None
